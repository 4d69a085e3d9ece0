//! Formats, and what each says of itself in its file.

use super::{Header, IoError, Meta, Precision, Read, Told};
use crate::comm::Comm;
use crate::field::HostLinks;
use crate::lattice::Partition;
use std::path::Path;

/// The formats of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// This program's own: HDF5 with `/gauge/U`.
    Hdf5,
    /// MILC version 5.
    Milc,
    /// The NERSC archive, also called Gauge Connection.
    Nersc,
    /// ILDG in a LIME container.
    Ildg,
    /// openQCD.
    OpenQcd,
    /// Links alone, of extents that the user tells: read only.
    Raw,
}

/// How a format is known, read and written.
pub(super) struct Row {
    pub format: Format,
    /// For people.
    pub name: &'static str,
    /// The ending of its files, without a dot.
    pub ending: &'static str,
    /// Whether these first 24 bytes are of such a file.
    pub has_mark: fn(&[u8]) -> bool,
    pub header: fn(&Path, &Told) -> Result<Header, IoError>,
    /// This rank's box; collective.
    pub read: fn(&Path, &Partition, &dyn Comm, &Told) -> Result<Read, IoError>,
    pub writes: Writes,
}

/// What is written of a format.
pub(super) enum Writes {
    /// It is read only.
    Nothing,
    /// By HDF5's library, which makes the file complete by itself.
    Hdf5,
    /// Links in this precision; collective. The file will have another name, which some formats say.
    Links { precision: Precision, write: WriteLinks },
}

type WriteLinks = fn(&Path, &HostLinks, &Partition, &dyn Comm, (&Meta, &Path)) -> Result<(), IoError>;
