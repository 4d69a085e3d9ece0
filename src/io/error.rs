//! Why a file could not be read or written.

use crate::comm::CommError;
use crate::lattice::{Extents, shape};
use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be read or written. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: `open`, `rename`...
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder has too little room for the file.
    #[error("{}: {needed} bytes are needed, the file system has {free} left", path.display())]
    DiskFull {
        /// The file that was to be written.
        path: PathBuf,
        /// Its size.
        needed: u64,
        /// What is free.
        free: u64,
    },
    /// No known format's mark at the start.
    #[error("{}: no HDF5, ILDG, NERSC, MILC or openQCD configuration", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// An HDF5 file, and a build without the feature `hdf5`.
    #[cfg(not(feature = "hdf5"))]
    #[error("{}: HDF5, which this build does not have", path.display())]
    NoHdf5 {
        /// The file.
        path: PathBuf,
    },
    /// The file ends early.
    #[error("{}: truncated: {expected} bytes expected, {found} found", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The size that its header implies.
        expected: u64,
        /// Its size.
        found: u64,
    },
    /// The header makes no sense, or says what this program does not read.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The content is not what was written: a checksum differs, or links are no SU(3) matrices.
    #[error("{}: damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// A configuration of another lattice.
    #[error("{}: holds a lattice of {}, but {} is asked for", path.display(), shape(*.found), shape(*.expected))]
    WrongLattice {
        /// The file.
        path: PathBuf,
        /// Extents in the file.
        found: Extents,
        /// Extents of the run.
        expected: Extents,
    },
    /// Links need more memory than there is.
    #[error(
        "{}: {:.1} GB of memory are needed{}; more ranks divide them",
        path.display(),
        *needed as f64 / 1e9,
        node.map_or(String::new(), |node| format!(", this node has {:.1} GB, limits such as ulimit -v aside", node as f64 / 1e9))
    )]
    NoMemory {
        /// The file that was to be read.
        path: PathBuf,
        /// Bytes that are needed at once.
        needed: u64,
        /// Bytes of the node, if it says.
        node: Option<u64>,
    },
    /// HDF5 failed.
    #[error("{}: HDF5 cannot {action}: {message}", path.display())]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: String,
        /// HDF5's own words.
        message: String,
    },
    /// There are checkpoints or configurations, and all are damaged.
    #[error(
        "{}: none of its checkpoints and configurations can be read; put back a copy of one, or give the run another \
         name\n  {}",
        folder.display(),
        reasons.join("\n  ")
    )]
    NoState {
        /// The ensemble's folder.
        folder: PathBuf,
        /// One reason a file.
        reasons: Vec<String>,
    },
    /// Another rank failed; its message names the file.
    #[error(transparent)]
    Ranks(#[from] CommError),
}

impl IoError {
    /// Whether the file may be whole: the system could not read it just now.
    #[cfg(feature = "hdf5")]
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::System { .. } | Self::NoMemory { .. })
    }

    /// For `map_err`: the system refused `action` on `path`.
    pub(super) fn system(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::System { path, action, source }
    }

    pub(super) fn malformed(path: &Path, what: impl Into<String>) -> Self {
        Self::Malformed { path: path.into(), what: one_line(&what.into()) }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), what: one_line(&what.into()) }
    }
}

/// A text that may quote a file, without line breaks and other control characters: those are escaped.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_stays_on_its_line() {
        let error = IoError::malformed(Path::new("x"), "kind is 'a\nerror: \u{1b}[31mé'");
        assert_eq!(error.to_string(), "x: kind is 'a\\nerror: \\u{1b}[31mé'");
    }
}
