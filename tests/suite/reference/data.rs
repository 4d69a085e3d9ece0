//! Readers for the peers' numbers: `$HMC_REFERENCE`, else `../shared/reference` from the project's root.

use super::gauge::{Gauge, LinkField};
use super::su3::M3;
use super::wilson::Spinor;
use hmc::field::HostLinks;
use hmc::lattice::Extents;
use num_complex::Complex64;
use std::path::{Path, PathBuf};

/// The file `name` of the reference data; prints 'skipped' and gives `None` where it is not.
pub fn find(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder =
        std::env::var_os("HMC_REFERENCE").map_or_else(|| root.join("../shared/reference"), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Raw little-endian doubles.
pub fn doubles(path: &Path) -> Vec<f64> {
    read(path).chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Matrices, one a link, `[t][z][y][x][mu][row][column][re, im]`.
pub fn link_field(path: &Path) -> LinkField {
    let complex = complexes(&doubles(path));
    complex.chunks_exact(36).map(|z| std::array::from_fn(|mu| matrix(&z[9 * mu..]))).collect()
}

/// Dirac fields, `[t][z][y][x][spin][colour][re, im]`.
pub fn spinor_field(path: &Path) -> Vec<Spinor> {
    let complex = complexes(&doubles(path));
    complex.chunks_exact(12).map(|z| std::array::from_fn(|s| std::array::from_fn(|c| z[3 * s + c]))).collect()
}

/// MILC version 5, single precision, either byte order: 96 bytes of header, then the links. Not re-unitarised.
pub fn milc(path: &Path) -> Gauge {
    let bytes = read(path);
    let big = bytes[..4] == [0, 0, 0x4e, 0x87];
    assert!(big || bytes[..4] == [0x87, 0x4e, 0, 0], "{}", path.display());
    let word = |b: &[u8]| -> u32 {
        let b = b.try_into().unwrap();
        if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
    };
    let local: Extents = std::array::from_fn(|mu| word(&bytes[4 + 4 * mu..8 + 4 * mu]) as usize);
    let reals = bytes[96..].chunks_exact(4).map(|b| f64::from(f32::from_bits(word(b)))).collect();
    Gauge::from_host(&HostLinks { local, reals })
}

/// The lines of numbers of a table.
pub fn table(path: &Path) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect()
}

/// The n-th correlator (from 0) of a MILC file whose key begins with `key`: real parts.
pub fn milc_correlator(path: &Path, key: &str, n: usize) -> Vec<f64> {
    milc_complex_correlator(path, key, n).iter().map(|z| z.re).collect()
}

/// The same with imaginary parts.
pub fn milc_complex_correlator(path: &Path, key: &str, n: usize) -> Vec<Complex64> {
    let text = std::fs::read_to_string(path).unwrap();
    let start = format!("correlator_key:               {key}");
    let block = text.split("---").filter(|block| block.contains(&start)).nth(n).unwrap();
    let lines = block.lines().skip_while(|line| !line.starts_with("...")).skip(1);
    let number = |line: &str, column: usize| line.split_whitespace().nth(column).unwrap().parse().unwrap();
    lines.map(|line| Complex64::new(number(line, 1), number(line, 2))).collect()
}

/// The correlator `key` of a table of Grid's, lines `REF key t value`.
pub fn grid_correlator(path: &Path, key: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(path).unwrap();
    let start = format!("REF {key} ");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&start));
    lines.map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap()).collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn complexes(reals: &[f64]) -> Vec<Complex64> {
    reals.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect()
}

fn matrix(z: &[Complex64]) -> M3 {
    std::array::from_fn(|i| std::array::from_fn(|j| z[3 * i + j]))
}

/// A configuration of MILC's in single precision, re-unitarised as MILC does it.
pub fn milc_links(name: &str) -> Option<Gauge> {
    find(&format!("configs/{name}")).map(|path| milc(&path).reunitarised())
}
