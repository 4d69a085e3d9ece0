//! Domain-wall quarks of any weights.
//!
//! - `operator`: the operator, even-odd preconditioned in four dimensions
//! - `slices`: matrices and vectors on the fifth dimension
//! - `action`: the operator's derivative, for the terms of the Hamiltonian
//! - `eofa`: one flavour, exactly
//! - `quark`: the propagator from wall to wall, and to the midpoint

mod action;
mod eofa;
mod operator;
mod quark;
mod slices;

pub use eofa::{ExactOneFlavour, ExactOneFlavourParams};
pub use operator::{DomainWall, DomainWallParams, MOST_SLICES};
pub use quark::WallQuark;
pub use slices::{OnSlices, SliceVector, reflect};
