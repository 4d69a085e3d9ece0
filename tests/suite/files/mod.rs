//! Files of configurations for tests: random links, and files of other programs made of our own.

mod foreign;
mod formats;
mod h5py;
mod ildg;
mod limits;
mod milc;
mod mutated;
mod records;
pub mod strangers;

use crate::program::Scratch;
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{self, Format, IoError, Meta, Precision};
use hmc::lattice::{Extents, Partition, coordinates, site, volume};
use std::fs;
use std::path::{Path, PathBuf};

pub const FORMATS: [Format; 5] = [Format::Hdf5, Format::Milc, Format::Nersc, Format::Ildg, Format::OpenQcd];

/// SplitMix64: numbers in [-1, 1).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / 2f64.powi(52) - 1.0
    }
}

pub fn times(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Random SU(3) links: two random rows made orthonormal, the third their conjugate cross product.
pub fn random_links(extents: Extents, seed: u64) -> HostLinks {
    let mut random = Random(seed);
    let mut links = HostLinks::unit(extents);
    for link in links.reals.chunks_exact_mut(18) {
        let mut rows = [[[0.0; 2]; 3]; 3];
        for i in 0..2 {
            let mut row: [[f64; 2]; 3] = std::array::from_fn(|_| [random.real(), random.real()]);
            for other in rows.iter().take(i) {
                let dot = (0..3).fold([0.0; 2], |sum, k| {
                    let p = times([other[k][0], -other[k][1]], row[k]);
                    [sum[0] + p[0], sum[1] + p[1]]
                });
                for k in 0..3 {
                    let p = times(dot, other[k]);
                    row[k] = [row[k][0] - p[0], row[k][1] - p[1]];
                }
            }
            let norm = row.iter().flatten().map(|x| x * x).sum::<f64>().sqrt();
            rows[i] = row.map(|z| z.map(|x| x / norm));
        }
        for k in 0..3 {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            let (p, q) = (times(rows[0][i], rows[1][j]), times(rows[0][j], rows[1][i]));
            rows[2][k] = [p[0] - q[0], q[1] - p[1]];
        }
        for (to, from) in link.iter_mut().zip(rows.as_flattened().as_flattened()) {
            *to = *from;
        }
    }
    links
}

/// The averages of Re tr P over space-space and space-time planes.
pub fn plaquettes(links: &HostLinks) -> [f64; 2] {
    let extents = links.local;
    let entry = |s: usize, mu: usize, i: usize, j: usize| {
        let u = links.link(s, mu);
        [u[6 * i + 2 * j], u[6 * i + 2 * j + 1]]
    };
    let mut sums = [0.0; 2];
    for s in 0..volume(extents) {
        let forward = |mu: usize| {
            let mut x = coordinates(extents, s);
            x[mu] = (x[mu] + 1) % extents[mu];
            site(extents, x)
        };
        for nu in 1..4 {
            for mu in 0..nu {
                // tr U_mu(x) U_nu(x+mu) [U_nu(x) U_mu(x+nu)]^dag
                let product = |first: usize, second: usize, i: usize, j: usize| {
                    (0..3).fold([0.0; 2], |sum, k| {
                        let p = times(entry(s, first, i, k), entry(forward(first), second, k, j));
                        [sum[0] + p[0], sum[1] + p[1]]
                    })
                };
                for n in 0..9 {
                    let (there, back) = (product(mu, nu, n / 3, n % 3), product(nu, mu, n / 3, n % 3));
                    sums[usize::from(nu == 3)] += there[0] * back[0] + there[1] * back[1];
                }
            }
        }
    }
    sums.map(|sum| sum / (3 * volume(extents)) as f64)
}

/// The average of (1/3) Re tr P.
pub fn plaquette(links: &HostLinks) -> f64 {
    plaquettes(links).iter().sum::<f64>() / 6.0
}

pub fn meta() -> Meta {
    Meta {
        trajectory: Some(123),
        plaquette: 0.1 + 0.2,
        input: "[lattice]\nname = \"é\"\n".into(),
        solvers: None,
        logical_name: None,
    }
}

pub fn write(path: &Path, format: Format, links: &HostLinks) -> Result<(), IoError> {
    let partition = Partition::whole(links.local).unwrap();
    let meta = Meta { plaquette: plaquette(links), ..meta() };
    io::write_links(path, format, links, &partition, &Solo, &meta)
}

pub fn read(path: &Path, extents: Extents) -> Result<HostLinks, IoError> {
    io::read_links(path, &Partition::whole(extents).unwrap(), &Solo).map(|(links, _)| links)
}

/// The reference configurations, or `None` and a word about it.
pub fn reference() -> Option<PathBuf> {
    let folder = std::env::var_os("HMC_REFERENCE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference"), PathBuf::from);
    let configs = folder.join("configs");
    if configs.is_dir() {
        return Some(configs);
    }
    println!("skipped: reference data not found");
    None
}

/// The bytes of a file of `links`.
pub fn written(folder: &Scratch, format: Format, links: &HostLinks) -> Vec<u8> {
    let path = folder.at("written");
    write(&path, format, links).unwrap();
    fs::read(&path).unwrap()
}

/// Where the links start: behind the header's last line.
pub fn nersc_start(file: &[u8]) -> usize {
    let end = b"END_HEADER\n";
    file.windows(end.len()).position(|window| window == end).unwrap() + end.len()
}

/// Our own NERSC file of `links` with so many rows and this precision, big-endian.
pub fn nersc(folder: &Scratch, links: &HostLinks, rows: usize, precision: Precision) -> Vec<u8> {
    let own = written(folder, Format::Nersc, links);
    let header = String::from_utf8(own[..nersc_start(&own)].to_vec()).unwrap();
    let mut data = Vec::new();
    for &x in links.reals.chunks_exact(18).flat_map(|link| &link[..6 * rows]) {
        match precision {
            Precision::Single => data.extend((x as f32).to_be_bytes()),
            Precision::Double => data.extend(x.to_be_bytes()),
        }
    }
    let words = data.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
    let checksum = words.fold(0, u32::wrapping_add);
    let mut header = with_key(&header, "CHECKSUM", &format!("{checksum:x}"));
    if rows == 2 {
        header = with_key(&header, "DATATYPE", "4D_SU3_GAUGE");
    }
    if precision == Precision::Single {
        header = with_key(&header, "FLOATING_POINT", "IEEE32BIG");
    }
    [header.into_bytes(), data].concat()
}

/// A NERSC header where `key` has another value.
pub fn with_key(header: &str, key: &str, value: &str) -> String {
    let line = |line: &str| {
        if line.starts_with(&format!("{key} =")) { format!("{key} = {value}\n") } else { format!("{line}\n") }
    };
    header.lines().map(line).collect()
}

/// A NERSC file with another header.
pub fn with_header(file: &[u8], change: impl FnOnce(&str) -> String) -> Vec<u8> {
    let start = nersc_start(file);
    [change(std::str::from_utf8(&file[..start]).unwrap()).as_bytes(), &file[start..]].concat()
}

/// A NERSC file without the line of `key`.
pub fn without_key(file: &[u8], key: &str) -> Vec<u8> {
    let is_other = |line: &&str| !line.starts_with(&format!("{key} ="));
    with_header(file, |header| header.lines().filter(is_other).map(|line| format!("{line}\n")).collect())
}

/// A record of a LIME file.
#[derive(Clone, Debug, PartialEq)]
pub struct LimeRecord {
    pub kind: String,
    pub flags: u16,
    pub data: Vec<u8>,
}

/// The records of a LIME file by its specification: magic, version, flags, length, type of 128 bytes, padded data.
pub fn lime_records(file: &[u8]) -> Vec<LimeRecord> {
    let mut records = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let (header, body) = rest.split_at(144);
        assert_eq!(header[..6], [0x45, 0x67, 0x89, 0xab, 0, 1], "magic and version");
        let flags = u16::from_be_bytes([header[6], header[7]]);
        let length = u64::from_be_bytes(header[8..16].try_into().unwrap()) as usize;
        let end = header[16..].iter().position(|&b| b == 0).unwrap();
        assert!(header[16 + end..].iter().all(|&b| b == 0), "the type is padded by zeros");
        let padded = length.next_multiple_of(8);
        assert!(body[length..padded].iter().all(|&b| b == 0), "data are padded by zeros");
        let kind = String::from_utf8(header[16..16 + end].to_vec()).unwrap();
        records.push(LimeRecord { kind, flags, data: body[..length].to_vec() });
        rest = &body[padded..];
    }
    records
}

/// A LIME file of these records.
pub fn lime_file(records: &[LimeRecord]) -> Vec<u8> {
    let mut file = Vec::new();
    for LimeRecord { kind, flags, data } in records {
        file.extend([0x45, 0x67, 0x89, 0xab, 0, 1]);
        file.extend(flags.to_be_bytes());
        file.extend((data.len() as u64).to_be_bytes());
        let end = file.len() + 128;
        file.extend(kind.as_bytes());
        file.resize(end, 0);
        file.extend(data);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    file
}

/// An ILDG file without its checksum; its last message ends before.
pub fn without_scidac_checksum(file: &[u8]) -> Vec<u8> {
    let mut records = lime_records(file);
    records.retain(|record| record.kind != "scidac-checksum");
    records.last_mut().unwrap().flags |= 0x4000;
    lime_file(&records)
}
