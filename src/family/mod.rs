//! The families of quarks: each with its operator, its terms of the Hamiltonian, its propagator, and its keys.
//!
//! - `wilson`: Wilson and clover quarks
//! - `domain_wall`: domain-wall quarks with any weights
//! - `staggered`: improved staggered quarks, asqtad and HISQ
//! - `fermion`: a fermion of any family, and the list of families
//! - `keys`: the keys that families share
//! - `qcdml`: what they share in ILDG's metadata
//! - `terms`: common parts of their terms

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod domain_wall;
mod fermion;
pub(crate) mod keys;
pub(crate) mod qcdml;
mod staggered;
mod terms;
mod wilson;

pub use domain_wall::*;
pub use fermion::{Family, FamilyError, Fermion};
pub(crate) use fermion::{PLACES, SECTIONS, fermions};
pub use keys::{OneFlavourFunctions, StoutSteps};
pub use qcdml::InQcdml;
pub use staggered::*;
pub use wilson::*;
