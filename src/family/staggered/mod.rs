//! Improved staggered quarks, asqtad and HISQ.
//!
//! - `operator`: the operator D
//! - `links`: its smeared links, and the force through them
//! - `staples`: fat7 and similar smearings by staples of staples, and their gradient
//! - `unitary`: the unitary factor of matrices, and its gradient
//! - `rooted`: the term of rooted quarks, by rational functions
//! - `quark`: the inverse on all sites
//! - `full`: the operator on all sites
//! - `keys`: the keys in an input
//! - `qcdml`: the action in ILDG's metadata
//! - `rational_keys`: the sources of rational functions
//! - `solver_keys`: the keys of the solver
//! - `terms`: the term and the inverse for an input

mod full;
pub(crate) mod keys;
mod links;
mod operator;
mod qcdml;
mod quark;
pub(crate) mod rational_keys;
mod rooted;
pub(crate) mod solver_keys;
mod staples;
mod terms;
mod unitary;

pub use full::StaggeredOnAllSites;
pub use keys::{InnerRoots, MassFactor, StaggeredFermion, WeightFactors};
pub use links::{Gradients, Smearing, StaggeredLinks};
pub use operator::{REACH, Staggered};
pub use quark::{StaggeredDerivative, StaggeredParams, StaggeredQuark};
pub use rational_keys::RationalSource;
pub use rooted::{Rooted, RootedParams, RootedPseudofermion, RootedSolver};
pub use solver_keys::StaggeredSolver;
pub use staples::Paths;
pub use unitary::{LEAST_SINGULAR_VALUE, unitary_factor, unitary_gradient};
