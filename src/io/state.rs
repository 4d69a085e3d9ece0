//! The state of a trajectory, links, momenta and pseudofermions, in HDF5: what `hmc replay` starts from.
//!
//! `/gauge/U` and `/momenta/P` of shape `[Lt, Lz, Ly, Lx, 4, 3, 3]`, and for each term of quarks `/pseudofermion/TERM/0`, `/1`,
//! .. of shape `[Lt, Lz, Ly, Lx, 4, 3]`, all complex as in configurations. P = sum_a p_a T_a, hermitian and traceless.
//! Attributes of `/`:
//!
//! | name | type | meaning |
//! |---|---|---|
//! | `kind` | text | `hmc state` |
//! | `version` | u64 | 1 |
//! | `input` | text | the input of the run, as TOML |
//! | `crc32` | u64 | CRC-32 of the input and of each field's checksum; other programs may leave it out |
//!
//! Any program may write it, so what is read is checked for what it must be, and not by the checksum alone.

use super::hdf5_config::{DATASET as LINKS, LINKS as MATRICES};
use super::hdf5_raw::{self, failed};
use super::hdf5_reader::{Reader, Slab};
use super::safe::require_room;
use super::verify::is_of_lattice;
use super::{IoError, checksum, hdf5_reader, require_box, write_aside};
use crate::comm::{Comm, agree, from_first};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Partition, coordinates, volume};
use hdf5::{File, Group};
use num_complex::Complex64;
use std::path::Path;

const KIND: &str = "hmc state";
const VERSION: u64 = 1;
const MOMENTA: &str = "momenta/P";
const PSEUDOFERMIONS: &str = "pseudofermion";
const CRC: &str = "crc32";
/// Elements may be off by so much: of links of single precision, and of momenta.
const SPECIAL_UNITARY_TO: f64 = 1e-6;
const HERMITIAN_TO: f64 = 1e-10;

/// A state: one rank's box.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The input of the run, as TOML.
    pub input: String,
    /// The links.
    pub links: HostLinks,
    /// The matrices P, laid out as links are.
    pub momenta: HostLinks,
    /// Pseudofermions, `[t][z][y][x][slice][spin][colour][re, im]`, without `[spin]` if they are colour vectors, without
    /// `[slice]` if they have no fifth dimension: zero on sites of the other parity.
    pub pseudofermions: Vec<(Place, Vec<f64>)>,
}

impl State {
    /// The reals of links, momenta and pseudofermions.
    fn fields(&self) -> impl Iterator<Item = &Vec<f64>> {
        let pseudofermions = self.pseudofermions.iter().map(|(_, reals)| reals);
        [&self.links.reals, &self.momenta.reals].into_iter().chain(pseudofermions)
    }

    /// The CRC-32 of the input and of each field's checksum; collective.
    fn crc32(&self, partition: &Partition, comm: &dyn Comm) -> u32 {
        let sums: Vec<_> = self.fields().map(|reals| checksum(reals, partition, comm)).collect();
        crc32fast::hash(format!("{sums:016x?}{}", self.input).as_bytes())
    }
}

/// Which pseudofermion it is, and what it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The term of the Hamiltonian.
    pub term: String,
    /// Which of the term's, from 0.
    pub number: usize,
    /// The sites it lives on.
    pub parity: usize,
    /// Reals of a slice of a site, 6 per colour vector.
    pub slice_reals: usize,
    /// Slices of the fifth dimension; 1 without one.
    pub slices: usize,
}

impl Place {
    fn dataset(&self) -> String {
        format!("{PSEUDOFERMIONS}/{}/{}", self.term, self.number)
    }

    /// Reals of a site.
    pub fn site_reals(&self) -> usize {
        self.slices * self.slice_reals
    }

    /// The shape on a site: colours, spins and slices if there are some.
    fn tail(&self) -> Vec<usize> {
        let spins = self.slice_reals / 6;
        [self.slices, spins, 3].into_iter().skip_while(|&n| n == 1).collect()
    }
}

/// The input that a state holds.
///
/// # Errors
/// The file cannot be read, or is none of a state.
pub fn state_input(path: &Path) -> Result<String, IoError> {
    if hdf5_reader::start(path)?.is_none() {
        return Err(IoError::malformed(path, "no state of hmc replay: not an HDF5 file"));
    }
    read_input(&Reader::open(path)?, path)
}

/// Reads the state of a trajectory with pseudofermions at the places `wanted`; collective.
///
/// # Errors
/// The file cannot be read, is of another lattice, has other pseudofermions; links are not in SU(3) to 1e-6, momenta
/// not hermitian and traceless to 1e-10, pseudofermions not zero on the other parity.
pub fn read_state(
    path: &Path,
    partition: &Partition,
    comm: &dyn Comm,
    wanted: &[Place],
) -> Result<State, IoError> {
    let file = agree(comm, Reader::open(path))?;
    let input = agree(comm, read_input(&file, path))?;
    agree(comm, nothing_else(&file, path, wanted))?;
    let (local, global) = (partition.local(), partition.global);
    let read = |name: &str, tail: &[usize]| {
        let read = || file.dataset(name, global, tail)?.read(&Slab::new(partition, tail));
        agree(comm, read())
    };
    let state = State {
        links: HostLinks { local, reals: read(LINKS, &MATRICES)? },
        momenta: HostLinks { local, reals: read(MOMENTA, &MATRICES)? },
        pseudofermions: wanted
            .iter()
            .map(|place| Ok((place.clone(), read(&place.dataset(), &place.tail())?)))
            .collect::<Result<_, IoError>>()?,
        input,
    };
    agree(comm, check(path, &state, partition))?;
    let found = state.crc32(partition, comm);
    let written = || {
        let all = file.attributes()?;
        all.has(CRC).then(|| all.integer(CRC)).transpose()
    };
    let written = agree(comm, written())?;
    if written.is_some_and(|written| written != u64::from(found)) {
        return Err(IoError::damaged(
            path,
            "input and fields do not have the checksum crc32 (whoever changes them deletes it)",
        ));
    }
    Ok(state)
}

/// Writes a state beside `path`, reads it back, compares, and only then gives the file its name; collective.
///
/// # Errors
/// The file cannot be written, or the state is none that [`read_state`] takes.
pub fn write_state(
    path: &Path,
    state: &State,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(), IoError> {
    agree(comm, require_box(path, &state.links, partition))?;
    agree(comm, require_box(path, &state.momenta, partition))?;
    let places: Vec<Place> = state.pseudofermions.iter().map(|(place, _)| place.clone()).collect();
    let site_reals = 8 * LINK_REALS + places.iter().map(|place| place.site_reals()).sum::<usize>();
    let bytes = volume(partition.global) * site_reals * 8 + state.input.len() + (1 << 16);
    write_aside(path, comm, |temporary| {
        agree(comm, if comm.rank() == 0 { require_room(temporary, bytes as u64) } else { Ok(()) })?;
        put(temporary, state, partition, comm)?;
        let same = read_state(temporary, partition, comm, &places)? == *state;
        if same { Ok(()) } else { Err(IoError::damaged(temporary, "reads back as something else")) }
    })
}

/// Rank 0 lays the file out, then every rank writes its boxes.
fn put(path: &Path, state: &State, partition: &Partition, comm: &dyn Comm) -> Result<(), IoError> {
    let crc32 = state.crc32(partition, comm);
    let make = || {
        let file = hdf5_raw::create(path)?;
        let starts = lay_out(&file, state, crc32, partition).map_err(failed(path, "lay out the file"))?;
        file.close().map_err(failed(path, "close the file"))?;
        Ok::<Vec<u8>, IoError>(starts.into_iter().flat_map(u64::to_le_bytes).collect())
    };
    let made = agree(comm, if comm.rank() == 0 { make() } else { Ok(Vec::new()) })?;
    let starts = from_first(comm, made);
    let starts = starts.as_chunks().0.iter().map(|start| u64::from_le_bytes(*start));
    let write = |(reals, start): (&Vec<f64>, u64)| hdf5_raw::write(path, start, partition, reals);
    agree(comm, state.fields().zip(starts).try_for_each(write))
}

/// Attributes and empty datasets: those of links and momenta, then the pseudofermions'; returns where each begins.
fn lay_out(file: &File, state: &State, crc32: u32, partition: &Partition) -> hdf5::Result<Vec<u64>> {
    hdf5_raw::put_text(file, "kind", KIND)?;
    file.new_attr::<u64>().create("version")?.write_scalar(&VERSION)?;
    hdf5_raw::put_text(file, "input", &state.input)?;
    file.new_attr::<u64>().create(CRC)?.write_scalar(&u64::from(crc32))?;
    let mut all = vec![(LINKS.to_owned(), MATRICES.to_vec()), (MOMENTA.to_owned(), MATRICES.to_vec())];
    all.extend(state.pseudofermions.iter().map(|(place, _)| (place.dataset(), place.tail())));
    let start = |(name, tail): &(String, Vec<usize>)| {
        let (folder, last) = name.rsplit_once('/').unwrap_or(("/", name));
        hdf5_raw::lay_out(&group(file, folder)?, last, partition.global, tail)
    };
    all.iter().map(start).collect()
}

/// The group of this path, made with its parents if it is not there.
fn group(file: &File, path: &str) -> hdf5::Result<Group> {
    let mut group = file.group("/")?;
    for name in path.split('/') {
        group = if group.link_exists(name) {
            group.group(name)?
        } else {
            group.create_group_builder().obj_track_times(false).create(name)?
        };
    }
    Ok(group)
}

/// Checks kind and version, and reads the input.
fn read_input(file: &Reader, path: &Path) -> Result<String, IoError> {
    let all = file.attributes()?;
    if !all.has("kind") {
        return Err(IoError::malformed(path, "no state of hmc replay: there is no attribute kind"));
    }
    let kind = all.text("kind")?;
    if kind != KIND {
        return Err(IoError::malformed(path, format!("kind is '{kind}', but '{KIND}' is expected")));
    }
    let version = all.integer("version")?;
    if version != VERSION {
        let what = format!("a state of version {version}, this program reads {VERSION}");
        return Err(IoError::malformed(path, what));
    }
    all.text("input")
}

/// Refuses pseudofermions of no term.
fn nothing_else(file: &Reader, path: &Path, wanted: &[Place]) -> Result<(), IoError> {
    for term in file.members(PSEUDOFERMIONS)? {
        if wanted.iter().all(|place| place.term != term) {
            let what =
                format!("/{PSEUDOFERMIONS}/{term}: the input has no term '{term}' with pseudofermions");
            return Err(IoError::malformed(path, what));
        }
        for number in file.members(&format!("{PSEUDOFERMIONS}/{term}"))? {
            let name = format!("{PSEUDOFERMIONS}/{term}/{number}");
            if wanted.iter().all(|place| place.dataset() != name) {
                let count = wanted.iter().filter(|place| place.term == term).count();
                let what = format!("/{name}: the term has {count} pseudofermions, numbered from 0");
                return Err(IoError::malformed(path, what));
            }
        }
    }
    Ok(())
}

/// Refuses what cannot be a state.
fn check(path: &Path, state: &State, partition: &Partition) -> Result<(), IoError> {
    let (local, offset) = (partition.local(), partition.offset());
    let at = |site: usize| {
        let x = coordinates(local, site);
        let x: [usize; 4] = std::array::from_fn(|mu| x[mu] + offset[mu]);
        format!("site {x:?} (x, y, z, t)")
    };
    let refuse = |name: &str, site, what: String| {
        Err(IoError::malformed(path, format!("/{name} at {}{what}", at(site))))
    };
    for name in [LINKS, MOMENTA] {
        let reals = if name == LINKS { &state.links.reals } else { &state.momenta.reals };
        let mut all = reals.chunks_exact(LINK_REALS).enumerate();
        let beyond = |(n, matrix): &(usize, &[f64])| {
            !is_of_lattice(*n, partition) && matrix.iter().any(|real| *real != 0.0)
        };
        if let Some((n, _)) = all.find(beyond) {
            return refuse(name, n / 4, ", direction 3: not zero, but it leaves the last slice".into());
        }
    }
    let links = state.links.reals.chunks_exact(LINK_REALS).enumerate();
    for (n, link) in links.filter(|(n, _)| is_of_lattice(*n, partition)) {
        if !is_at_most(off_special_unitary(&matrix(link)), SPECIAL_UNITARY_TO) {
            let what = format!(", direction {}: not in SU(3) to {SPECIAL_UNITARY_TO:e}", n % 4);
            return refuse(LINKS, n / 4, what);
        }
    }
    for (n, momentum) in state.momenta.reals.chunks_exact(LINK_REALS).enumerate() {
        if !is_at_most(off_hermitian(&matrix(momentum)), HERMITIAN_TO) {
            let what = format!(", direction {}: not hermitian and traceless to {HERMITIAN_TO:e}", n % 4);
            return refuse(MOMENTA, n / 4, what);
        }
    }
    for (place, reals) in &state.pseudofermions {
        for (n, site) in reals.chunks_exact(place.site_reals()).enumerate() {
            // Boxes have even extents, so a site's parity is the same in its box.
            let here = coordinates(local, n).iter().sum::<usize>() % 2 == place.parity;
            let parity = ["even", "odd"][place.parity];
            if !site.iter().all(|x| x.is_finite()) {
                return refuse(&place.dataset(), n, ": not finite".into());
            }
            if !here && site.iter().any(|&x| x != 0.0) {
                return refuse(&place.dataset(), n, format!(": not zero, but it lives on {parity} sites"));
            }
        }
    }
    Ok(())
}

/// False for NaN.
fn is_at_most(x: f64, bound: f64) -> bool {
    x <= bound
}

type Matrix = [[Complex64; 3]; 3];

fn matrix(reals: &[f64]) -> Matrix {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| Complex64::new(reals[6 * i + 2 * j], reals[6 * i + 2 * j + 1]))
    })
}

/// The greatest of `values`, or a NaN among them.
fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most: f64, x| if most.is_nan() || x <= most { most } else { x })
}

/// The greatest element of `P - P^dag` and `tr P`.
fn off_hermitian(p: &Matrix) -> f64 {
    let pairs = (0..9).map(|n| (p[n / 3][n % 3] - p[n % 3][n / 3].conj()).norm());
    greatest(pairs.chain([(p[0][0] + p[1][1] + p[2][2]).norm()]))
}

/// The greatest element of `U U^dag - 1` of the first two rows, and of the third less the conjugate of their product.
fn off_special_unitary(u: &Matrix) -> f64 {
    let product = |i: usize, j: usize| (0..3).map(|k| u[i][k] * u[j][k].conj()).sum::<Complex64>();
    let rows = [product(0, 0) - 1.0, product(1, 1) - 1.0, product(0, 1)].map(Complex64::norm);
    let third = (0..3).map(|k| {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        (u[2][k] - (u[0][i] * u[1][j] - u[0][j] * u[1][i]).conj()).norm()
    });
    greatest(rows.into_iter().chain(third))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_known_for_what_they_are() {
        let unit = &HostLinks::unit([2; 4]).reals[..LINK_REALS];
        let with = |at: usize, value: f64| {
            let mut reals = unit.to_vec();
            reals[at] = value;
            matrix(&reals)
        };
        assert!(off_special_unitary(&matrix(unit)) < 1e-15);
        // diag(1, 1, -1) is unitary, of determinant -1.
        assert!(off_special_unitary(&with(16, -1.0)) > 1.0);
        for at in 0..LINK_REALS {
            assert!(!is_at_most(off_special_unitary(&with(at, f64::NAN)), 1e300), "real {at}");
            assert!(!is_at_most(off_hermitian(&with(at, f64::NAN)), 1e300), "real {at}");
        }
        assert!(off_hermitian(&with(16, -2.0)) < 1e-15);
        for p in [matrix(unit), with(2, 0.5), with(1, 0.5)] {
            assert!(off_hermitian(&p) > 0.4);
        }
        assert!(!is_at_most(off_hermitian(&with(16, f64::NAN)), 1.0));
    }
}
