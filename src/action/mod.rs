//! Terms of the Hamiltonian: each can be refreshed, valued, and differentiated.
//!
//! - `gauge`: plaquettes, rectangles, parallelograms
//! - `quark`: one Wilson(-clover) operator with its solver
//! - `pair`: the force of pairs of spinors
//! - `two_flavour`: two flavours of Wilson(-clover) quarks
//! - `ratio`: a ratio of two-flavour determinants
//! - `one_flavour`: one flavour, by rational functions
//! - `smeared`: a term on stout-smeared links

mod gauge;
mod one_flavour;
mod pair;
mod quark;
mod ratio;
mod smeared;
mod two_flavour;

pub use gauge::GaugeAction;
pub use one_flavour::{OneFlavour, OneFlavourParams};
pub use pair::{PairForce, PairSum};
pub use quark::{Quark, QuarkParams, Solves};
pub use ratio::{TwoFlavourRatio, TwoFlavourRatioParams};
pub use smeared::Smeared;
pub use two_flavour::{TwoFlavour, TwoFlavourParams};

use crate::field::{AlgebraField, FieldError, MatrixField, RandomAddress};
use crate::math::{ExactSum, RationalError};
use crate::operator::OperatorError;
use crate::solver::SolverError;

/// Why a term failed.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// An operator failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A solve failed.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// A rational function cannot be made.
    #[error(transparent)]
    Rational(#[from] RationalError),
    /// The spectrum does not lie in the range of the rational functions.
    #[error(
        "the eigenvalues of the quark's operator, measured from {least:.4e} to {greatest:.4e}, do not lie well inside \
         the range [{lo:e}, {hi:e}] for which the rational functions are made; \
         give a wider range, as [{:.1e}, {:.1e}]",
        wanted[0],
        wanted[1]
    )]
    Range {
        /// The least eigenvalue of `W^dag W`.
        least: f64,
        /// The greatest.
        greatest: f64,
        /// Lower end of the range.
        lo: f64,
        /// Upper end of the range.
        hi: f64,
        /// A range that would do.
        wanted: [f64; 2],
    },
}

impl From<FieldError> for ActionError {
    fn from(error: FieldError) -> Self {
        Self::Operator(error.into())
    }
}

/// A term S of the Hamiltonian.
pub trait Action {
    /// Its name in the input.
    fn name(&self) -> &str;
    /// Draws what is random in it (pseudofermions) for this trajectory, and values it.
    ///
    /// # Errors
    /// An operator failed.
    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError>;
    /// Its value on `links`.
    ///
    /// # Errors
    /// A solve failed.
    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError>;
    /// `force_a(x, mu) += dS(e^{i eps T_a} U_mu(x)) / d eps`; returns the solver's iterations.
    ///
    /// # Errors
    /// A solve failed.
    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError>;
    /// What else the log is to say of it, in a line.
    fn report(&self) -> Option<String> {
        None
    }
}

/// The address of pseudofermion `number`.
fn pseudofermion(seed: u64, trajectory: u64, number: u8) -> RandomAddress {
    RandomAddress { seed, trajectory, purpose: crate::field::Purpose::Pseudofermion(number) }
}
