//! Fields on this rank's box, and the communication between boxes.
//!
//! - `domain`: the box with its device and ranks
//! - `layout`: how fields of one precision lie in memory
//! - `local`: a lattice on this process alone, and initial links
//! - `host`: links in host memory, in file order
//! - `borders`: communication that fills the borders of matrices
//! - `matrix`: 3x3 matrices with borders: links, insertions, lines
//! - `algebra`: one element of su(3) per link: momenta, forces
//! - `spinor`: fermion fields of one parity, and their linear algebra
//! - `number`: numbers that follow from sums over the lattice
//! - `dirac`: linear algebra that exists only for Dirac spinors
//! - `several`: linear algebra of several fields at once
//! - `shared`: what operators have in common
//! - `faces`: communication for hops
//! - `order`: the sites of a hop, those first that need no ghost zones
//! - `signals`: flags that ranks raise in the memory of others
//! - `transports`: how halos travel between each two ranks
//! - `hop_links`: an operator's own links
//! - `random`: the place of a field's random numbers in the stream

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod algebra;
mod borders;
mod dirac;
mod domain;
mod faces;
mod hop_links;
mod host;
mod layout;
mod local;
mod matrix;
mod number;
mod order;
mod parts;
mod random;
mod several;
mod shared;
mod signals;
mod spinor;
#[cfg(test)]
mod tests;
mod transports;

pub use algebra::AlgebraField;
pub use dirac::Dagger;
pub use domain::Domain;
pub use faces::{Crossing, Faces};
pub(crate) use faces::{FaceData, FaceSource, Reached};
pub(crate) use hop_links::{GhostLinks, HopLinks, LinkFaces};
pub use host::{HostLinks, LINK_REALS};
pub use layout::Layout;
pub use matrix::MatrixField;
pub(crate) use matrix::number_of;
pub use number::{Quotient, StabNumbers, Sum};
pub(crate) use number::{least_length, numbers_of};
pub(crate) use parts::Part;
pub use random::{Purpose, RandomAddress};
pub use several::ShiftSteps;
pub use shared::Sharing;
pub(crate) use shared::{Shared, Workspace, common};
pub use spinor::{Kind, Spinor};
pub use transports::{Halo, Transports};

/// Even sites, as numbered by kernels.
pub const EVEN: usize = 0;
/// Odd sites, as numbered by kernels.
pub const ODD: usize = 1;

/// Why a field could not be made or changed. Every call may find the device or a rank lost, and every allocation may
/// find no memory; functions document other errors only.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] crate::device::DeviceError),
    /// The lattice cannot be divided in this way.
    #[error(transparent)]
    Partition(#[from] crate::lattice::PartitionError),
    /// What was asked for is for periodic time alone.
    #[error("{0}: only with periodic time, and this lattice has walls")]
    Walls(&'static str),
    /// Communication between ranks failed.
    #[error(transparent)]
    Comm(#[from] crate::comm::CommError),
}
