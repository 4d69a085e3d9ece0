//! Fields on this rank's box, and what moves between boxes.
//!
//! - `domain`: the box with its device and ranks
//! - `host`: links as files hold them
//! - `matrix`: 3x3 matrices with borders: links, insertions, lines
//! - `algebra`: one element of su(3) a link: momenta, forces
//! - `spinor`: Dirac spinors of one parity, and their linear algebra
//! - `faces`: half spinors that cross ranks
//! - `random`: where in the random stream a field is drawn

mod algebra;
mod domain;
mod faces;
mod host;
mod matrix;
mod random;
mod spinor;

pub use algebra::AlgebraField;
pub use domain::{Domain, Halo};
pub use faces::{FaceSource, Faces};
pub use host::{HostLinks, LINK_REALS};
pub use matrix::MatrixField;
pub use random::{Purpose, RandomAddress};
pub use spinor::Spinor;

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
    /// Ranks failed to talk.
    #[error(transparent)]
    Comm(#[from] crate::comm::CommError),
}
