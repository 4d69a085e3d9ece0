//! Files: configurations, checkpoints and the history of a run.
//!
//! - `hdf5_config`: a configuration in HDF5, written by all ranks: the program's own format
//! - `hdf5_raw`: files, text attributes and datasets as HDF5's library writes them
//! - `hdf5_reader`: HDF5 files as they are read, without that library
//! - `format`, `formats`: what a format says of itself, and the list of them
//! - `nersc`, `milc`, `ildg`, `openqcd`, `raw`: configurations of other programs
//! - `cksum`: the checksum of ILDG's metadata
//! - `lime`: the container of ILDG's files: typed records in messages
//! - `bytes`: byte order, precision, links as site records
//! - `whole`: plaquette and link trace of the whole lattice, for headers
//! - `verify`: unitarity of links, and what their header says of them
//! - `safe`: a file is complete and checked before it has its name
//! - `checkpoint`: checkpoints and configurations of a chain, and the newest readable one
//! - `export`: configurations of a chain in other formats
//! - `records`: files that grow by one line per trajectory, each with a checksum
//! - `state`: links, momenta and pseudofermions of a trajectory
//! - `history`: one row per trajectory, as CSV that survives a crash
//! - `history_h5`: its twin in HDF5
//! - `xml`: XML as it is written here
//! - `error`: why a file could not be read or written
//!
//! In memory links are [`HostLinks`]: `[t][z][y][x][mu][row][column][re, im]`, mu = x, y, z, t, one
//! box per rank. Every rank reads its own box. Where `comm` is an argument the call is collective, and
//! all ranks return the same: values, or an error.

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod bytes;
#[cfg(feature = "hdf5")]
mod checkpoint;
mod cksum;
mod error;
#[cfg(feature = "hdf5")]
mod export;
mod format;
mod formats;
#[cfg(feature = "hdf5")]
mod hdf5_config;
#[cfg(feature = "hdf5")]
mod hdf5_raw;
#[cfg(feature = "hdf5")]
mod hdf5_reader;
mod history;
#[cfg(feature = "hdf5")]
mod history_h5;
mod ildg;
mod lime;
mod milc;
mod nersc;
mod openqcd;
mod raw;
mod records;
mod safe;
#[cfg(feature = "hdf5")]
mod state;
mod verify;
mod whole;
mod xml;

#[cfg(feature = "hdf5")]
pub use checkpoint::{Loaded, load_configuration, load_newest, load_state, save, save_configuration, states};
pub use error::IoError;
#[cfg(feature = "hdf5")]
pub use export::{export, export_path, missing_exports};
pub use format::Format;
pub use history::{Column, History, Table, Value};
#[cfg(feature = "hdf5")]
pub use history_h5::write_history_h5;
pub use ildg::ildg_cksum;
pub use records::{Form, Journal, Records};
pub use safe::{append_to, free_bytes, keep_copy, read_plain, unfollowed, write_aside, write_text};
#[cfg(feature = "hdf5")]
pub use state::{Place, State, read_state, state_input, write_state};
pub use xml::Element;

use crate::comm::{Comm, agree};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Extents, Partition, TimeBoundary, volume};
use crate::math::single;
use format::{Row, Writes};
use formats::FORMATS;
use rayon::prelude::*;
use std::path::Path;

/// No chain is longer. Where records are looked for, each trajectory up to that of the newest state is counted.
pub const MOST_TRAJECTORIES: u64 = 100_000_000;
/// The writer, as files name it.
const PROGRAM: &str = concat!("hmc ", env!("CARGO_PKG_VERSION"));
/// The first bytes of an HDF5 file.
const HDF5_SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The width of a file's reals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl Precision {
    /// Bytes of one real.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

/// What tells that links are those that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// A checksum, and what else the file says: no bit is another.
    Checksum,
    /// No checksum, but the plaquette that the file says, and that all links are in SU(3): only the last bits of some reals may
    /// be others.
    Plaquette,
    /// No checksum and no plaquette, but that all links are in SU(3): they may also have changed places.
    Unitarity,
}

impl std::fmt::Display for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Checksum => "checksum",
            Self::Plaquette => "plaquette",
            Self::Unitarity => "unitarity",
        })
    }
}

/// What a file says about its links. Only HDF5 files say everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The layout.
    pub format: Format,
    /// Extents of the lattice, x to t.
    pub extents: Extents,
    /// How the lattice ends in time: as HDF5 files with fixed walls say, or as the links show or the reader was told when they
    /// are read; until then periodic.
    pub time: TimeBoundary,
    /// The width of the reals.
    pub precision: Precision,
    /// The trajectory that made the links.
    pub trajectory: Option<u64>,
    /// The average of (1/3) Re tr P, as the writer found it.
    pub plaquette: Option<f64>,
    /// [`links_checksum`] of the links.
    pub links_checksum: Option<u64>,
    /// The program that wrote the file, and its version.
    pub program: Option<String>,
    /// The input of the run, as TOML.
    pub input: Option<String>,
    /// The methods that the run has chosen for terms with "auto"; what they mean is their writer's business.
    pub solvers: Option<String>,
    /// The state of the run (checkpoints only); what it means is its writer's business.
    pub state: Option<String>,
    /// The logical file name (ILDG).
    pub logical_name: Option<String>,
    /// What verifies the links when they are read.
    pub verified: Verified,
    /// What is odd about the file, a line each: unknown records, wrong flags. The links are read all the same.
    pub notes: Vec<String>,
}

impl Header {
    /// A header that says nothing but what every format does.
    fn new(format: Format, extents: Extents, precision: Precision) -> Self {
        Self {
            format,
            extents,
            time: TimeBoundary::Periodic,
            precision,
            trajectory: None,
            plaquette: None,
            links_checksum: None,
            program: None,
            input: None,
            solvers: None,
            state: None,
            logical_name: None,
            verified: Verified::Checksum,
            notes: Vec::new(),
        }
    }

    /// Lines to warn with: what is odd about the file, and that its links have no checksum.
    #[must_use]
    pub fn doubts(&self, path: &Path) -> Vec<String> {
        let by = match self.verified {
            Verified::Checksum => None,
            Verified::Plaquette => Some("the plaquette in its header and the unitarity of its links"),
            Verified::Unitarity => Some("the unitarity of its links"),
        };
        let by = by.map(|by| format!("has no checksum; verified by {by} alone"));
        self.notes.iter().cloned().chain(by).map(|what| format!("{}: {what}", path.display())).collect()
    }
}

/// What a writer says about the links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The trajectory that made the links, if it is known.
    pub trajectory: Option<u64>,
    /// The average of (1/3) Re tr P. Formats written by one rank get it computed anew.
    pub plaquette: f64,
    /// The input of the run, as TOML.
    pub input: String,
    /// The methods that the run has chosen, if it had to.
    pub solvers: Option<String>,
    /// The logical file name that ILDG's files say; without one they have a local one, by the file's name.
    pub logical_name: Option<String>,
}

/// What the user says of a file that does not say it itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Extents, x to t, of files without a header.
    pub extents: Option<Extents>,
    /// How time ends; links show only whether it is open.
    pub time: TimeBoundary,
    /// Whether the links have the sign of an antiperiodic boundary in time, which is to be taken out.
    pub has_boundary_sign: bool,
}

impl Told {
    /// The format; links alone where no mark is and extents are told.
    fn row(&self, path: &Path) -> Result<&'static Row, IoError> {
        match detect(path) {
            Err(IoError::UnknownFormat { .. }) if self.extents.is_some() => Ok(Format::Raw.row()),
            found => found.map(Format::row),
        }
    }
}

/// A box of links as its file holds them, and what the file's header says of all.
struct Read {
    links: HostLinks,
    header: Header,
    claims: Vec<verify::Claim>,
}

/// Finds the format by the file's first bytes, whatever its name.
///
/// # Errors
/// No format's mark is there, or the file cannot be read.
pub fn detect(path: &Path) -> Result<Format, IoError> {
    let (bytes, _) = bytes::head(path, 24)?;
    if let Some(row) = FORMATS.iter().find(|row| (row.has_mark)(&bytes)) {
        return Ok(row.format);
    }
    #[cfg(feature = "hdf5")]
    if hdf5_reader::start(path)?.is_some() {
        return Ok(Format::Hdf5);
    }
    if bytes.starts_with(b"\x1f\x8b") {
        Err(IoError::malformed(path, "packed by gzip: unpack it first"))
    } else if bytes.starts_with(b"version https://git-lfs") {
        Err(IoError::malformed(
            path,
            "a pointer of Git LFS and not the file itself: `git lfs pull` fetches it",
        ))
    } else {
        Err(IoError::UnknownFormat { path: path.into() })
    }
}

/// Reads what a file says about its links. Not collective.
///
/// # Errors
/// The file cannot be read, or its header makes no sense.
pub fn header(path: &Path) -> Result<Header, IoError> {
    header_as(path, &Told::default())
}

/// The same, with what the user says of the file.
///
/// # Errors
/// As [`header`]; or the file says something else.
pub fn header_as(path: &Path, told: &Told) -> Result<Header, IoError> {
    let header = (told.row(path)?.header)(path, told)?;
    match told.extents {
        Some(expected) if expected != header.extents => {
            Err(IoError::WrongLattice { path: path.into(), found: header.extents, expected })
        }
        _ => Ok(header),
    }
}

/// The header of a file that is the same one on all ranks: its size and its ends are compared. Collective.
///
/// # Errors
/// As [`header_as`]; or ranks have other files of this name.
pub fn header_on(path: &Path, told: &Told, comm: &dyn Comm) -> Result<Header, IoError> {
    require_one_file(path, comm)?;
    agree(comm, header_as(path, told))
}

/// Refuses a name under which ranks find other files: each would go its own way through them, and wait for the others for ever.
/// Collective.
fn require_one_file(path: &Path, comm: &dyn Comm) -> Result<(), IoError> {
    if comm.size() == 1 {
        return Ok(());
    }
    let own = agree(comm, bytes::ends(path))?;
    let all = comm.gather(&own);
    match all.iter().position(|other| *other != all[0]) {
        Some(rank) => {
            Err(IoError::malformed(path, format!("ranks 0 and {rank} find other files of this name")))
        }
        None => Ok(()),
    }
}

/// Reads a configuration of any format, each rank its own box, and verifies it: by the file's checksums, by the plaquette and
/// the link trace of its header as far as its digits go, and by each link's being in SU(3).
///
/// Links in single precision are not made unitary again. Links must be unitary to 1e-4; if there is no checksum, to 1e-8 in
/// double and 1e-5 in single precision.
///
/// # Errors
/// The file cannot be read, is damaged, or holds another lattice or links that are not in SU(3).
pub fn read_links(
    path: &Path,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(HostLinks, Header), IoError> {
    read_links_as(path, partition, comm, &Told::default())
}

/// The same, with what the user says of the file.
///
/// # Errors
/// As [`read_links`]; or there is no sign of a boundary to take out.
pub fn read_links_as(
    path: &Path,
    partition: &Partition,
    comm: &dyn Comm,
    told: &Told,
) -> Result<(HostLinks, Header), IoError> {
    require_one_file(path, comm)?;
    let mut read = (agree(comm, told.row(path))?.read)(path, partition, comm, told)?;
    if told.has_boundary_sign {
        verify::remove_boundary_sign(path, &mut read.links, partition, comm)?;
        // The link trace of the header may be with the sign or without it; the plaquette is the same.
        read.claims.retain(verify::Claim::is_of_plaquettes);
        read.header.links_checksum = None;
    }
    verified(read, path, partition, comm)
}

/// Verifies what was read; collective.
fn verified(
    read: Read,
    path: &Path,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(HostLinks, Header), IoError> {
    let Read { links, mut header, claims } = read;
    let told = partition.time;
    if header.time == TimeBoundary::Periodic {
        header.time = match time_boundary(&links, partition, comm) {
            TimeBoundary::Periodic if told.given() != [None; 2] => told,
            shown => shown,
        };
    } else if told.has_walls() && told != header.time {
        let what = format!("time is {}, but told was {told}", header.time);
        return Err(IoError::malformed(path, what));
    }
    if told.has_walls() && !header.time.has_walls() {
        return Err(IoError::malformed(path, "time is periodic, but the lattice has walls"));
    }
    let partition = &partition.with_time(header.time);
    verify::require_given(path, &links, partition, comm)?;
    header.notes.extend(verify::verify(path, &links, partition, comm, &header, &claims)?);
    Ok((links, header))
}

/// How the lattice of these links ends in time: it is open if all links that would leave the last slice are zero. Collective.
pub fn time_boundary(links: &HostLinks, partition: &Partition, comm: &dyn Comm) -> TimeBoundary {
    let open = partition.with_time(TimeBoundary::Open);
    let goes_on =
        |(n, link): (usize, &[f64])| !verify::is_of_lattice(n, &open) && link.iter().any(|real| *real != 0.0);
    let any = links.reals.par_chunks_exact(LINK_REALS).enumerate().any(goes_on);
    if comm.max(f64::from(u8::from(any))) == 0.0 { TimeBoundary::Open } else { TimeBoundary::Periodic }
}

/// Reads links whose bytes are in the order `first`, or perhaps in the other one: `read` also says whether a checksum is right,
/// if there is one. Without it, links that are unitary decide. Collective.
fn in_right_order(
    first: bytes::Endian,
    is_sure: bool,
    comm: &dyn Comm,
    mut read: impl FnMut(bytes::Endian) -> Result<(HostLinks, Option<bool>), IoError>,
) -> Result<(HostLinks, Option<bool>), IoError> {
    let is_right = |(links, is_right): &(HostLinks, Option<bool>)| {
        is_right.unwrap_or_else(|| verify::are_unitary(links, comm))
    };
    let found = read(first)?;
    if is_sure || is_right(&found) {
        return Ok(found);
    }
    let other = read(first.other())?;
    Ok(if is_right(&other) { other } else { found })
}

/// Bytes that a rank holds at most while it reads its box of a configuration, the links included, but for a chunk of a file that
/// was packed. To write one takes as many besides the links that are written: it is read back.
#[must_use]
pub fn bytes_to_read(partition: &Partition) -> usize {
    let local = partition.local();
    let of_sites = |sites: usize| sites * 4 * LINK_REALS * size_of::<f64>();
    let links = of_sites(volume(local));
    // How far each link is from unitary; layers as they are sent and as they are received, for the plaquette.
    let cut = (0..4).filter(|&mu| partition.is_cut(mu));
    let layers: usize = cut.map(|mu| of_sites(volume(local) / local[mu])).sum();
    links + volume(local) * 4 * size_of::<f64>() + 2 * layers
}

/// Writes a configuration beside its place, reads it back, compares, and only then gives it its name.
///
/// All ranks write, each its own box, and the file is the same to the byte on any grid. MILC's format holds single precision; all others hold the links to the last bit.
///
/// ```
/// use hmc::comm::Solo;
/// use hmc::io::{Format, Meta};
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let links = MatrixField::hot(&domain, 1)?.to_host()?;
/// let path = std::env::temp_dir().join(format!("hmc-doc-{}.nersc", std::process::id()));
/// write_links(&path, Format::Nersc, &links, domain.partition(), &Solo, &Meta::default())?;
/// let (read, header) = read_links(&path, domain.partition(), &Solo)?;
/// std::fs::remove_file(&path)?;
/// assert_eq!((read, header.format), (links, Format::Nersc));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The file cannot be written, or does not read back as it was written.
pub fn write_links(
    path: &Path,
    format: Format,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    meta: &Meta,
) -> Result<(), IoError> {
    let write = match format.row().writes {
        #[cfg(feature = "hdf5")]
        Writes::Hdf5 => return hdf5_config::write(path, links, partition, comm, meta, None),
        #[cfg(not(feature = "hdf5"))]
        Writes::Hdf5 => return Err(IoError::NoHdf5 { path: path.into() }),
        Writes::Nothing => return Err(IoError::malformed(path, format!("{format} are not written"))),
        Writes::Links { write, .. } => write,
    };
    require_box(path, links, partition)?;
    write_aside(path, comm, |temporary| {
        write(temporary, links, partition, comm, (meta, path))?;
        let (back, header) = read_links(temporary, partition, comm)?;
        if reads_back(header.precision, &back, links) {
            Ok(())
        } else {
            Err(IoError::damaged(temporary, "reads back as something else"))
        }
    })
}

/// Whether links of a file are those that were to be written, rounded as the file's reals are.
fn reads_back(precision: Precision, found: &HostLinks, links: &HostLinks) -> bool {
    match precision {
        Precision::Single => {
            found.reals.iter().zip(&links.reals).all(|(a, &b)| *a == f64::from(single(b)))
                && found.reals.len() == links.reals.len()
        }
        Precision::Double => found == links,
    }
}

/// A number that depends on the links alone, whatever the ranks and their grid.
///
/// The sum modulo 2^64, over all reals of the lattice, of a mix of the real's bits (-0 as +0) and its
/// place in `[t][z][y][x][mu][row][column][re, im]`. The mix is the finaliser of `SplitMix64` (Steele,
/// Lea, Flood, OOPSLA 2014): a bijection of the bits, so that no single altered real goes unseen.
pub fn links_checksum(links: &HostLinks, partition: &Partition, comm: &dyn Comm) -> u64 {
    checksum(&links.reals, partition, comm)
}

/// [`links_checksum`] of any field of `reals`.
fn checksum(reals: &[f64], partition: &Partition, comm: &dyn Comm) -> u64 {
    let local = partition.local();
    let site_reals = reals.len() / volume(local);
    let rows: Vec<_> = bytes::rows(partition).collect();
    let sum = reals
        .par_chunks(local[0] * site_reals)
        .zip(rows)
        .map(|(row, (_, first))| {
            let place = (first * site_reals) as u64;
            row.iter().zip(place..).fold(0, |sum: u64, (&x, n)| sum.wrapping_add(mix(x, n)))
        })
        .reduce(|| 0, u64::wrapping_add);
    let mut total = [sum.cast_signed()];
    comm.sum(&mut total);
    total[0].cast_unsigned()
}

/// One real's share of [`links_checksum`].
fn mix(x: f64, place: u64) -> u64 {
    let bits = if x == 0.0 { 0 } else { x.to_bits() };
    let mut z = bits.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Two sums modulo 2 (exclusive or) of every rank's words.
fn xor_over_ranks(comm: &dyn Comm, words: [u32; 2]) -> [u32; 2] {
    let own: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    comm.gather(&own).iter().fold([0; 2], |sum, bytes| {
        let word = |n: usize| bytes::four(bytes, 4 * n).map_or(0, u32::from_le_bytes);
        [sum[0] ^ word(0), sum[1] ^ word(1)]
    })
}

/// Refuses links whose box is not the partition's: a caller's mistake, told before a file is touched.
fn require_box(path: &Path, links: &HostLinks, partition: &Partition) -> Result<(), IoError> {
    let local = partition.local();
    if links.local == local && links.reals.len() == volume(local) * 4 * LINK_REALS {
        return Ok(());
    }
    Err(IoError::WrongLattice { path: path.into(), found: links.local, expected: local })
}
