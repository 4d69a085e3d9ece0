//! Conjugate gradients on the normal equations, in one precision or two.
//!
//! - `cg`: the solver
//! - `guess`: where to start, from past solutions
//! - `multishift`: many shifts at once
//! - `spectrum`: the ends of the spectrum

mod cg;
mod guess;
mod multishift;
mod spectrum;

pub use cg::{Cg, Info, Params};
pub use guess::Guess;
pub use multishift::{MultiInfo, MultiShift};
pub use spectrum::{Bounds, bounds};

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
    /// A number of the iteration is no number.
    #[error("the solver met {what} that is not finite after {iterations} iterations")]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Iterations done.
        iterations: usize,
    },
    /// A field failed.
    #[error(transparent)]
    Field(#[from] crate::field::FieldError),
}
