//! The list of formats.

use super::Precision;
use super::format::{Format, Row, Writes};
use std::path::Path;

/// In the order in which marks are looked for.
pub(super) const FORMATS: [Row; 6] =
    [HDF5, super::ildg::ROW, super::nersc::ROW, super::milc::ROW, super::openqcd::ROW, super::raw::ROW];

const HDF5: Row = Row {
    format: Format::Hdf5,
    name: "HDF5",
    ending: "h5",
    has_mark: |bytes| bytes.starts_with(super::HDF5_SIGNATURE),
    #[cfg(feature = "hdf5")]
    header: |path, _| super::hdf5_config::header(path),
    #[cfg(not(feature = "hdf5"))]
    header: |path, _| Err(super::IoError::NoHdf5 { path: path.into() }),
    #[cfg(feature = "hdf5")]
    read: |path, partition, comm, _| super::hdf5_config::read(path, partition, comm),
    #[cfg(not(feature = "hdf5"))]
    read: |path, _, _, _| Err(super::IoError::NoHdf5 { path: path.into() }),
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
