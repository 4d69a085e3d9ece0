//! Terms of the Hamiltonian: each can be refreshed, valued, and differentiated.
//!
//! - `gauge`: plaquettes, rectangles, parallelograms
//! - `determinant`: a determinant of quarks, or a ratio of two, to any power
//! - `two_flavours`: its heat bath, value and force for two flavours
//! - `rational`: the same for one flavour, by rational functions
//! - `powers`: rational functions for one quark, and the range of its spectrum
//! - `fraction`: a light quark, and the heavy one that it is divided by
//! - `pair`: the force of pairs of spinors
//! - `smeared`: a term on stout-smeared links

mod determinant;
mod fraction;
mod gauge;
mod pair;
mod powers;
mod rational;
mod smeared;
mod two_flavours;

pub use determinant::{Determinant, DeterminantParams, Power};
pub use gauge::GaugeAction;
pub use pair::{Derivative, Pair, PairForce, PairSum};
pub use rational::RationalPower;
pub use smeared::Smeared;

use fraction::Fraction;

use crate::device::Precision;
use crate::field::{
    AlgebraField, Domain, FieldError, Kind, MatrixField, ODD, Purpose, RandomAddress, Spinor,
};
use crate::math::{ExactSum, RationalError};
use crate::operator::OperatorError;
use crate::quark::{QuarkError, Solves};
use crate::solver::SolverError;
use std::sync::Arc;

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
        "the eigenvalues of the {quark}'s operator, measured from {least:.4e} to {greatest:.4e}, do not lie well inside \
         the range [{lo:e}, {hi:e}] for which the rational functions are made; \
         give a wider range, as [{:.1e}, {:.1e}]",
        wanted[0],
        wanted[1]
    )]
    Range {
        /// Which quark.
        quark: &'static str,
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
    /// A heat bath did not draw from the weight of its action.
    #[error(
        "the heat bath of the exact one-flavour action is off by {error:.1e}, more than {bound:.0e}: the spectrum is not \
         inside the range [{lo:e}, {hi:e}] of its rational function; give a wider one"
    )]
    HeatBath {
        /// How far the width of a mode is off, if it is a single one.
        error: f64,
        /// What it may be.
        bound: f64,
        /// Lower end of the range.
        lo: f64,
        /// Upper end of the range.
        hi: f64,
    },
    /// The spectrum reaches beyond the rational functions.
    #[error(
        "-D^2 has eigenvalues up to {greatest:.4}, not well below the {ceiling} up to which the rational functions are \
         made; give a greater lambda_max, as {wanted:.0}"
    )]
    Ceiling {
        /// The greatest eigenvalue as measured.
        greatest: f64,
        /// Where the functions end.
        ceiling: f64,
        /// An end that would do.
        wanted: f64,
    },
}

impl From<FieldError> for ActionError {
    fn from(error: FieldError) -> Self {
        Self::Operator(error.into())
    }
}

impl From<QuarkError> for ActionError {
    fn from(error: QuarkError) -> Self {
        match error {
            QuarkError::Operator(error) => Self::Operator(error),
            QuarkError::Solver(error) => Self::Solver(error),
        }
    }
}

/// A pseudofermion of a term.
pub struct Pseudofermion<'a> {
    /// The sites it lives on.
    pub parity: usize,
    /// The field, in double.
    pub field: &'a mut Spinor,
}

impl<'a> Pseudofermion<'a> {
    /// On odd sites.
    pub(crate) fn odd(field: &'a mut Spinor) -> Self {
        Self { parity: ODD, field }
    }
}

/// What every term of quarks needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct TermHeader {
    /// Its name in the input.
    pub name: String,
    /// Tells pseudofermions of one run apart; if the term has several, the number of the first.
    pub number: u8,
    /// `|b - A x| / |b|` of every system of the action. Unless the term has another one for it, of the heat bath too.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
}

/// What a term reports of a trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct TermReport {
    /// A line.
    pub text: String,
    /// Whether every log has to have it: a solver fell back, links were near singular.
    pub notable: bool,
}

impl TermReport {
    /// Reports solves, with `more` behind.
    pub fn of(solves: Solves, more: &str) -> Self {
        Self { text: format!("{solves}{more}"), notable: solves.total.fallbacks > 0 }
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
    /// Its pseudofermions in the order of their numbers, to be read or set. Past solutions are forgotten: they were of
    /// the fields before.
    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        Vec::new()
    }
    /// What the log may report of it after a trajectory.
    fn report(&self) -> Option<TermReport> {
        None
    }
}

/// Safety margin: a measured eigenvalue must stay inside the range even after it is moved outwards by this fraction.
pub(crate) const MARGIN: f64 = 0.05;
/// Relative error bound of the measured ends.
pub(crate) const TOLERANCE: f64 = 0.01;

/// A vector that has something of all eigenvectors.
pub(crate) fn probe(
    kind: Kind,
    domain: &Arc<Domain>,
    parity: usize,
    seed: u64,
    trajectory: u64,
) -> Result<Spinor, FieldError> {
    let mut start = Spinor::of(domain, kind, Precision::Double, 1)?;
    start.set_random(parity, 1.0, RandomAddress { seed, trajectory, purpose: Purpose::SPECTRUM })?;
    Ok(start)
}

/// The address of pseudofermion `number`.
pub(crate) fn pseudofermion(seed: u64, trajectory: u64, number: u8) -> RandomAddress {
    RandomAddress { seed, trajectory, purpose: Purpose::Pseudofermion(number) }
}
