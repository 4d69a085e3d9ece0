//! Fields on this rank's box, and what moves between boxes.
//!
//! - `domain`: the box with its device and ranks
//! - `local`: a lattice on this process alone, and links to start from
//! - `host`: links as files hold them
//! - `borders`: what crosses ranks to fill the borders of matrices
//! - `matrix`: 3x3 matrices with borders: links, insertions, lines
//! - `algebra`: one element of su(3) a link: momenta, forces
//! - `spinor`: fermion fields of one parity, and their linear algebra
//! - `dirac`: linear algebra of Dirac spinors alone
//! - `several`: the same on several fields at once
//! - `faces`: what crosses ranks for a hop
//! - `random`: where in the random stream a field is drawn

mod algebra;
mod borders;
mod dirac;
mod domain;
mod faces;
mod host;
mod local;
mod matrix;
mod random;
mod several;
mod spinor;
#[cfg(test)]
mod tests;

pub use algebra::AlgebraField;
pub use domain::{Domain, Halo};
pub(crate) use faces::{FaceHop, FaceSource};
pub use faces::{FaceReals, Faces};
pub use host::{HostLinks, LINK_REALS};
pub use matrix::MatrixField;
pub(crate) use matrix::number_of;
pub use random::{Purpose, RandomAddress};
pub use several::ShiftStep;
pub use spinor::{Kind, Spinor};

/// Even and odd sites, as kernels number them.
pub const EVEN: usize = 0;
/// See [`EVEN`].
pub const ODD: usize = 1;

/// Why a field could not be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] crate::device::DeviceError),
    /// The lattice cannot be cut so.
    #[error(transparent)]
    Partition(#[from] crate::lattice::PartitionError),
    /// Ranks failed to talk.
    #[error(transparent)]
    Comm(#[from] crate::comm::CommError),
}
