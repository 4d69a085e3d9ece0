//! Solvers of `M x = b` and `M^dag M x = b`, in one precision or several.
//!
//! - `method`: the register of methods, by which a term of the Hamiltonian names its [`Solver`]
//! - `operators`: what is solved: an operator in its precisions, and the matrix made of it
//! - `refine`: the outer iteration of all solvers: true residuals in double, trust, fallbacks
//! - `cg`: conjugate gradients on the normal equations
//! - `block`: conjugate gradients on several right-hand sides at once
//! - `multishift`: conjugate gradients with many shifts at once
//! - `bicgstab`: stabilised biconjugate gradients
//! - `gcr`: generalised conjugate residuals with a preconditioner
//! - `schwarz`: additive Schwarz as preconditioner, minimal residual steps in blocks
//! - `normal`: `M^dag M x = b` by two solves of `M x = b`
//! - `keys`: the keys of solvers in an input
//! - `guess`: a first guess from past solutions
//! - `spectrum`: the ends of the spectrum of `M^dag M`
//! - `info`: what a solve did, and how long it took
//!
//! Every solve ends with a check of the true residual in double. A new solver is a file with its [`Solver`] or
//! [`LinearSolver`] and a line in `method`; a new preconditioner is a file with its [`Preconditioner`] and a line there.

mod bicgstab;
mod block;
mod cg;
mod gcr;
mod guess;
mod info;
pub(crate) mod keys;
mod method;
mod multishift;
mod normal;
mod operators;
mod refine;
mod schwarz;
mod spectrum;

pub use bicgstab::BiCgStab;
pub use block::{BlockCg, BlockInfo};
pub use cg::Cg;
pub use gcr::{Gcr, GcrParams};
pub use guess::Guess;
pub use info::Info;
pub use keys::TermSolver;
pub use method::{Method, Settings, usual_delta};
pub use multishift::{MultiInfo, MultiShift};
pub use normal::TwoSolves;
pub use operators::{Matrix, Operators, System};
pub use schwarz::Schwarz;
pub use spectrum::{Bounds, bounds, greatest};

use info::timed;

use crate::field::{Dagger, FieldError, Spinor};

/// What a solve must reach.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// `|b - A x| / |b|`, A the matrix of the system.
    pub residual: f64,
    /// More are an error.
    pub max_iterations: usize,
}

/// What a solver or preconditioner keeps over a trajectory, such as a deflation space. By default nothing.
pub trait Setup {
    /// Adapts it to new links, which the operators have taken over.
    ///
    /// # Errors
    /// The set-up failed.
    fn update(&mut self, _: &mut Operators) -> Result<(), SolverError> {
        Ok(())
    }

    /// Drops it at the start of a trajectory, so that a resumed run goes on with the same bits.
    fn forget(&mut self) {}
}

/// A solver of `M^dag M x = b`. It owns its workspace and allocates nothing in a solve, unless a method has failed and
/// another takes over.
pub trait Solver: Setup {
    /// Solves `M^dag M x = b` to `|b - M^dag M x| <= residual |b|` from the guess in `x`.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    fn solve(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError>;
}

/// A solver of `M x = b` and of `M^dag x = b`; otherwise as [`Solver`].
pub trait LinearSolver: Setup {
    /// Solves the system, whose matrix is M or its adjoint, from the guess in `x`.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    fn solve(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError>;
}

/// An approximate inverse of M, cheap to apply, with workspace of its own.
pub trait Preconditioner: Setup {
    /// `out ~ M^-1 x`, or of the adjoint.
    ///
    /// # Errors
    /// The device is lost.
    fn apply(
        &mut self,
        operators: &mut Operators,
        out: &mut Spinor,
        x: &Spinor,
        dagger: Dagger,
    ) -> Result<(), FieldError>;
}

/// Why a solve failed.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// The residual did not come down.
    #[error(
        "the solver did not converge: residual {residual:.3e} after {iterations} iterations, {wanted:.1e} was asked for"
    )]
    NotConverged {
        /// Iterations done.
        iterations: usize,
        /// True relative residual reached.
        residual: f64,
        /// The one asked for.
        wanted: f64,
    },
    /// The ends of the spectrum did not settle.
    #[error(
        "the ends of the operator's spectrum did not converge: relative error {error:.1e} after {iterations} iterations, \
         {wanted:.1e} was asked for"
    )]
    Spectrum {
        /// Iterations done.
        iterations: usize,
        /// Bound of the relative error of the worse end.
        error: f64,
        /// The one asked for.
        wanted: f64,
    },
    /// A number of the iteration is infinite or NaN.
    #[error("the solver met {what} that is not finite after {iterations} iterations")]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Iterations done.
        iterations: usize,
    },
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl SolverError {
    /// Iterations done before it.
    fn iterations(&self) -> usize {
        match *self {
            Self::NotConverged { iterations, .. }
            | Self::Spectrum { iterations, .. }
            | Self::NotFinite { iterations, .. } => iterations,
            Self::Field(_) => 0,
        }
    }
}
