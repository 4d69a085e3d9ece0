//! The list of formats. Each says in its file how it is known, read and written, and has a word here.

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

/// In the order in which marks are looked for.
pub(super) const FORMATS: [Row; 6] =
    [HDF5, super::ildg::ROW, super::nersc::ROW, super::milc::ROW, super::openqcd::ROW, super::raw::ROW];

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

const HDF5: Row = Row {
    format: Format::Hdf5,
    name: "HDF5",
    ending: "h5",
    has_mark: |bytes| bytes.starts_with(super::HDF5_SIGNATURE),
    #[cfg(feature = "hdf5")]
    header: |path, _| super::hdf5_config::header(path),
    #[cfg(not(feature = "hdf5"))]
    header: |path, _| Err(IoError::NoHdf5 { path: path.into() }),
    #[cfg(feature = "hdf5")]
    read: |path, partition, comm, _| super::hdf5_config::read(path, partition, comm),
    #[cfg(not(feature = "hdf5"))]
    read: |path, _, _, _| Err(IoError::NoHdf5 { path: path.into() }),
    writes: Writes::Hdf5,
};

impl Format {
    /// All that are written.
    pub const ALL: [Self; 5] = [Self::Hdf5, Self::Ildg, Self::Nersc, Self::Milc, Self::OpenQcd];

    pub(super) fn row(self) -> &'static Row {
        FORMATS.iter().find(|row| row.format == self).expect("each has one")
    }

    /// Its word in an input.
    #[must_use]
    pub fn word(self) -> &'static str {
        if self == Self::Hdf5 { "hdf5" } else { self.ending() }
    }

    /// The ending of its files, without a dot.
    #[must_use]
    pub fn ending(self) -> &'static str {
        self.row().ending
    }

    /// The precision in which links are written.
    #[must_use]
    pub fn precision(self) -> Precision {
        match self.row().writes {
            Writes::Links { precision, .. } => precision,
            Writes::Hdf5 | Writes::Nothing => Precision::Double,
        }
    }

    /// The format of files with this ending.
    #[must_use]
    pub fn of_ending(ending: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.ending() == ending)
    }

    /// The format that the name of a file asks for.
    ///
    /// # Errors
    /// Its ending is none of a format, in words.
    pub fn of_name(path: &Path) -> Result<Self, String> {
        let ending = path.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
        Self::of_ending(&ending).ok_or_else(|| {
            let known = Self::ALL.map(|format| format!(".{}", format.ending())).join(", ");
            format!("{}: '.{ending}' is no format; expected one of {known}", path.display())
        })
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.row().name)
    }
}
