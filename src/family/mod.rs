//! The families of quarks: each with its operator, its terms of the Hamiltonian, its propagator, and its keys.
//!
//! - `wilson`: Wilson and clover quarks
//! - `domain_wall`: domain-wall quarks with any weights
//! - `staggered`: improved staggered quarks, asqtad and HISQ
//! - `fermion`: a fermion of any family, and the list of families
//! - `keys`: the keys that families share
//! - `terms`: common parts of their terms

mod domain_wall;
mod fermion;
pub(crate) mod keys;
mod staggered;
mod terms;
mod wilson;

pub(crate) use domain_wall::keys::WALL_HASENBUSCH as WALL_FACTOR;
pub use domain_wall::*;
pub use fermion::{Family, FamilyError, Fermion};
pub(crate) use fermion::{SECTIONS, fermions};
pub use keys::{OneFlavourFunctions, StoutSteps};
pub(crate) use staggered::keys::PSEUDOFERMION;
pub(crate) use staggered::rational_keys::STAGGERED_RATIONAL;
pub(crate) use staggered::solver_keys::STAGGERED_SOLVER;
pub use staggered::*;
pub(crate) use wilson::keys::HASENBUSCH as WILSON_FACTOR;
pub use wilson::*;
