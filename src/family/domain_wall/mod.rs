//! Domain-wall quarks with any weights.
//!
//! - `operator`: the operator, even-odd preconditioned in four dimensions
//! - `slices`: matrices and vectors in the fifth dimension
//! - `action`: the operator's derivative, for the terms of the Hamiltonian
//! - `eofa`: one flavour by the exact action
//! - `quark`: propagators from the walls to the walls and to the midpoint
//! - `full`: the operator on all sites and slices, and its inverse
//! - `keys`: the keys in an input
//! - `qcdml`: the action in ILDG's metadata
//! - `terms`: the terms and the inverse for an input

mod action;
mod eofa;
mod full;
pub(crate) mod keys;
mod operator;
mod qcdml;
mod quark;
mod slices;
mod terms;

pub use eofa::{ExactOneFlavour, ExactOneFlavourParams};
pub use full::{WallInverse, WallOnAllSites};
pub use keys::{DomainWallFermion, WallFactor, WallFlavours, Weights};
pub use operator::{DomainWall, DomainWallParams};
pub use quark::WallQuark;
pub use slices::{OnSlices, reflect};
