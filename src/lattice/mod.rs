//! The lattice and how it is cut: over ranks, and inside a rank over SIMD lanes.
//!
//! - `extents`: sites in natural order (x fastest), parity
//! - `partition`: the rank grid and one rank's box
//! - `lanes`: a rank's box as W equal boxes, one a SIMD lane
//! - `boundary`: the factors of a quark's hops over the edge of the lattice

mod boundary;
mod extents;
mod lanes;
mod partition;

pub use boundary::*;
pub use extents::{Extents, coordinates, shape, site, volume};
pub use lanes::{LaneGrid, MAX_LANES};
pub use partition::{MOST_SITES, Partition, PartitionError, choose_grid};
