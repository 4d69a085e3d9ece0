//! Quarks, as used by terms of the Hamiltonian and by measurements: the operator in several precisions, and solves with
//! it.
//!
//! - `operator`: the requirements on an even-odd preconditioned operator; its parameters
//! - `even_odd`: one operator W on odd sites, with clover term, solver and past solutions
//! - `inverse`: `M x = b` on all sites
//! - `full`: M on all sites
//! - `derivative`: derivatives in the chemical potential
//! - `twisted`: solves with a twisted mass
//! - `solves`: statistics of solves
//!
//! A quark always follows the settings of its solver ([`Settings`](crate::solver::Settings)).

mod derivative;
mod even_odd;
mod full;
mod inverse;
mod operator;
mod solves;
mod twisted;

pub use derivative::{HopDerivative, apply as apply_derivative, links_in_time};
pub use even_odd::{Goal, Quark, Start};
pub use full::FullOperator;
pub use inverse::{AllSites, Fields, FullInverse, Inverse, fields};
pub use operator::{Eliminated, OperatorParams, QuarkOperator, QuarkParams, Storage};
pub use solves::Solves;
pub use twisted::{RootError, TwistedInverse};

use crate::field::{FieldError, Spinor};
use crate::math::Rational;
use crate::operator::OperatorError;
use crate::solver::SolverError;

/// Why a quark failed.
#[derive(Debug, thiserror::Error)]
pub enum QuarkError {
    /// An operator failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A solve failed.
    #[error(transparent)]
    Solver(#[from] SolverError),
}

impl From<FieldError> for QuarkError {
    fn from(error: FieldError) -> Self {
        Self::Operator(error.into())
    }
}

/// The most pseudofermions whose systems are solved at once: each has two sums in flight, of which a GPU keeps a limited
/// number. The forces of staggered quarks take as many solutions.
pub const TOGETHER: usize = 8;

/// `b = constant b + sum_n residue_n x_n`, which is `r(A) b` if `x_n = (A + pole_n)^-1 b`.
pub fn combine(b: &mut Spinor, x: &[Spinor], r: &Rational) -> Result<(), FieldError> {
    b.scale(r.constant)?;
    x.iter().zip(&r.residues).try_for_each(|(x, &residue)| b.axpy(residue, x))
}
