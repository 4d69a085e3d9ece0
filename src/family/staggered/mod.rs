//! Improved staggered quarks, asqtad and HISQ.
//!
//! - `operator`: the operator D
//! - `links`: the links that it sees, and the force through them
//! - `staples`: fat7 and its kin by staples of staples, and the gradient through it
//! - `unitary`: the unitary factor of matrices, and the gradient through it
//! - `rooted`: the term of rooted quarks, by rational functions
//! - `quark`: the inverse on all sites

mod links;
mod operator;
mod quark;
mod rooted;
mod staples;
mod unitary;

pub use links::{Gradients, Smearing, StaggeredLinks};
pub use operator::{REACH, Staggered};
pub use quark::{StaggeredParams, StaggeredQuark};
pub use rooted::{Rooted, RootedParams, RootedPseudofermion, RootedSolver};
pub use staples::Paths;
pub use unitary::{LEAST_SINGULAR_VALUE, unitary_factor, unitary_gradient};
