//! Solvers of `M x = b` and `M^dag M x = b`, in one precision or several.
//!
//! - `method`: the register of methods, which maps a term's settings to its [`Solver`]
//! - `row`: what a method says of itself there
//! - `operators`: the systems: an operator in its precisions, and the matrix made of it
//! - `refine`: the outer iteration of all solvers: true residuals in double precision, trust, fallbacks
//! - `cg`: conjugate gradients on the normal equations
//! - `block`: conjugate gradients on several right-hand sides at once
//! - `multishift`: conjugate gradients with many shifts at once
//! - `bicgstab`: stabilised biconjugate gradients
//! - `gcr`: generalised conjugate residuals with a preconditioner
//! - `schwarz`: additive Schwarz as preconditioner, with minimal-residual steps in blocks
//! - `multigrid`: aggregation multigrid as preconditioner
//! - `normal`: `M^dag M x = b` by two solves of `M x = b`
//! - `keys`: the keys of solvers in an input
//! - `mixes`: the combinations of their precisions
//! - `choice`: what `method = "auto"` chooses from, and what it has chosen
//! - `guess`: a first guess from past solutions
//! - `spectrum`: the ends of the spectrum of `M^dag M`
//! - `info`: statistics and timings of a solve
//!
//! Every solve ends with a check of the true residual in double precision. A new solver, or a new [`Preconditioner`], is a file
//! with its settings, keys and row, and a line in `method`.

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod bicgstab;
mod block;
mod cg;
mod choice;
mod gcr;
mod guess;
mod info;
pub(crate) mod keys;
mod method;
pub(crate) mod mixes;
mod multigrid;
mod multishift;
mod normal;
mod operators;
mod refine;
mod row;
mod schwarz;
mod spectrum;

pub use bicgstab::{BiCgStab, StabilizedBiCg};
pub use block::{BlockCg, BlockInfo};
pub use cg::{Cg, ConjugateGradients};
pub use choice::{Choice, Choices};
pub use gcr::{Gcr, GcrParams};
pub use guess::{Forecast, Guess, Past};
pub use info::Info;
pub use keys::TermSolver;
pub use method::{Method, MethodSolver, Settings};
pub use multigrid::{GcrMultigrid, Multigrid, MultigridParams};
pub use multishift::{MultiInfo, MultiShift};
pub use normal::TwoSolves;
pub use operators::{Matrix, Mixed, Operators, System};
pub use row::usual_delta;
pub use schwarz::{GcrDd, Schwarz};
pub use spectrum::{Bounds, Tridiagonal, bounds, greatest};

use info::timed;

use crate::field::{Dagger, FieldError, Spinor};

/// The goal of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// `|b - A x| / |b|`, where A is the matrix of the system.
    pub residual: f64,
    /// The maximum number of iterations; more are an error.
    pub max_iterations: usize,
}

/// What a solver or preconditioner keeps over a trajectory, such as a deflation space. By default nothing.
pub trait Setup {
    /// Whether it keeps anything. If not, its memory is given back after every solve, for the next one of any term.
    fn keeps(&self) -> bool {
        false
    }

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

/// A solver of `M^dag M x = b`. It owns its workspace and allocates nothing during a solve, unless its method fails and
/// another takes over.
pub trait Solver: Setup {
    /// Solves `M^dag M x = b` to `|b - M^dag M x| <= residual |b|` from the guess in `x`.
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
    fn solve(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError>;

    /// Solves the systems `x_n`, `b_n` of one matrix, as many together as it can. Returns the statistics of all, and for each
    /// whether it was solved.
    fn solve_each(
        &mut self,
        system: &mut System,
        x: &mut [Spinor],
        b: &[Spinor],
        params: Params,
    ) -> Result<(Info, Vec<bool>), FieldError> {
        let (mut info, mut solved) = (Info::default(), Vec::with_capacity(b.len()));
        for (x, b) in x.iter_mut().zip(b) {
            let end = self.solve(system, x, b, params);
            solved.push(end.is_ok());
            info.count(end)?;
        }
        Ok((info, solved))
    }
}

/// An approximate inverse of M, cheap to apply, with workspace of its own.
pub trait Preconditioner: Setup {
    /// `out_n ~ M^-1 x_n`, or the inverse of the adjoint, for several systems; `info` counts what it does besides.
    fn apply(
        &mut self,
        operators: &mut Operators,
        out: &mut [&mut Spinor],
        x: &[&Spinor],
        dagger: Dagger,
        info: &mut Info,
    ) -> Result<(), FieldError>;

    /// Learns that a solve took so many iterations to reduce the residual by so many powers of ten.
    fn solved(&mut self, _iterations: usize, _digits: f64) {}
}

/// Why a solve failed. Any solve may fail to converge, or meet an infinite number or NaN.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// The residual did not reach the goal.
    #[error(
        "the solver did not converge: residual {residual:.3e} after {iterations} iterations, {wanted:.1e} was asked for"
    )]
    NotConverged {
        /// Iterations so far.
        iterations: usize,
        /// The true relative residual.
        residual: f64,
        /// The goal.
        wanted: f64,
    },
    /// The residual of an iteration no longer falls.
    #[error("the solver stagnated after {iterations} iterations")]
    Stagnated {
        /// Iterations so far.
        iterations: usize,
    },
    /// The ends of the spectrum did not converge.
    #[error(
        "the ends of the operator's spectrum did not converge: relative error {error:.1e} after {iterations} iterations, \
         {wanted:.1e} was asked for"
    )]
    Spectrum {
        /// Iterations so far.
        iterations: usize,
        /// Bound of the relative error, for the worse end.
        error: f64,
        /// The goal.
        wanted: f64,
    },
    /// A number in the iteration is infinite or NaN.
    #[error("the solver met {what} that is not finite after {iterations} iterations")]
    NotFinite {
        /// The number.
        what: &'static str,
        /// Iterations so far.
        iterations: usize,
    },
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl SolverError {
    /// Iterations before the failure.
    fn iterations(&self) -> usize {
        match *self {
            Self::NotConverged { iterations, .. }
            | Self::Stagnated { iterations }
            | Self::Spectrum { iterations, .. }
            | Self::NotFinite { iterations, .. } => iterations,
            Self::Field(_) => 0,
        }
    }
}
