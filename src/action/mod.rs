//! Terms of the Hamiltonian. Each has a heat bath, a value and a force.
//!
//! - `gauge`: plaquettes, rectangles, parallelograms
//! - `determinant`: a determinant of quarks, or a ratio of two, to any power
//! - `function`: what differs between its powers
//! - `two_flavours`: heat bath, value and force for two flavours
//! - `rational`: heat bath, value and force for one flavour, by rational functions
//! - `powers`: rational functions for one quark, and the range of its spectrum
//! - `fraction`: a light quark, and the heavy one that divides it
//! - `pair`: the force from pairs of spinors
//! - `smeared`: a term on stout-smeared links

mod determinant;
mod fraction;
mod function;
mod gauge;
mod pair;
mod powers;
mod rational;
mod smeared;
mod two_flavours;

pub use determinant::{Determinant, DeterminantParams, Power};
pub use gauge::GaugeAction;
pub use pair::{Derivative, Pair, PairForce, PairSum};
pub use rational::{InnerPoles, RationalPower};
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
    /// The spectrum is not inside the range of the rational functions.
    #[error(
        "the eigenvalues of the {quark}'s operator, measured from {least:.4e} to {greatest:.4e}, do not lie well inside \
         the range [{lo:e}, {hi:e}] for which the rational functions are made; \
         give a wider range, as [{:.1e}, {:.1e}]",
        wanted[0],
        wanted[1]
    )]
    Range {
        /// The quark.
        quark: &'static str,
        /// The least eigenvalue of `W^dag W`.
        least: f64,
        /// The greatest eigenvalue.
        greatest: f64,
        /// Lower end of the range.
        lo: f64,
        /// Upper end of the range.
        hi: f64,
        /// A sufficient range.
        wanted: [f64; 2],
    },
    /// The heat bath did not draw from the weight of its action.
    #[error(
        "the heat bath of the exact one-flavour action is off by {error:.1e}, more than {bound:.0e}: the spectrum is not \
         inside the range [{lo:e}, {hi:e}] of its rational function; give a wider one"
    )]
    HeatBath {
        /// The error of the action of the heat bath's field.
        error: f64,
        /// The tolerated error.
        bound: f64,
        /// Lower end of the range.
        lo: f64,
        /// Upper end of the range.
        hi: f64,
    },
    /// The spectrum exceeds the range of the rational functions.
    #[error(
        "-D^2 has eigenvalues up to {greatest:.4}, not well below the {ceiling} up to which the rational functions are \
         made; give a greater lambda_max, as {wanted:.0}"
    )]
    Ceiling {
        /// The greatest eigenvalue measured.
        greatest: f64,
        /// The upper end of the functions' range.
        ceiling: f64,
        /// A sufficient upper end.
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
    /// The field, in double precision.
    pub field: &'a mut Spinor,
}

impl<'a> Pseudofermion<'a> {
    /// A pseudofermion on odd sites.
    pub(crate) fn odd(field: &'a mut Spinor) -> Self {
        Self { parity: ODD, field }
    }
}

/// Parameters of every term of quarks.
#[derive(Clone, Debug, PartialEq)]
pub struct TermHeader {
    /// Its name in the input.
    pub name: String,
    /// Distinguishes the pseudofermions of a run; for a term with several, the number of the first.
    pub number: u8,
    /// `|b - A x| / |b|` of every system of the action; also of the heat bath, unless the term has a separate one.
    pub action_residual: f64,
    /// `|b - A x| / |b|` of every system of the force.
    pub force_residual: f64,
}

/// A term's report on a trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct TermReport {
    /// One line.
    pub text: String,
    /// Whether it belongs in every log: a solver fell back, or links were near singular.
    pub notable: bool,
}

impl TermReport {
    /// Reports solves, followed by `more`.
    pub fn of(solves: Solves, more: &str) -> Self {
        Self { text: format!("{solves}{more}"), notable: solves.total.fallbacks > 0 }
    }
}

/// A term S of the Hamiltonian.
pub trait Action {
    /// Its name in the input.
    fn name(&self) -> &str;
    /// Draws the term's random fields (pseudofermions) for this trajectory, and returns its value.
    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError>;
    /// The value on `links`.
    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError>;
    /// `force_a(x, mu) += dS(e^{i eps T_a} U_mu(x)) / d eps`; returns the number of iterations.
    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError>;
    /// The names of the parts of its force if it has several, each for a level of its own; the first is the term's.
    /// Empty: the force is one.
    fn parts(&self) -> Vec<&str> {
        Vec::new()
    }
    /// As `add_force` for one of the `parts`, whose sum is the force; without a number for all of it.
    ///
    /// # Panics
    /// There is no such part.
    fn add_part(
        &mut self,
        part: Option<usize>,
        links: &MatrixField,
        force: &mut AlgebraField,
    ) -> Result<usize, ActionError> {
        assert!(part.is_none(), "the force of term '{}' is one", self.name());
        self.add_force(links, force)
    }
    /// Its pseudofermions in the order of their numbers, for reading or setting. Past solutions are forgotten, since
    /// they belong to the old fields.
    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        Vec::new()
    }
    /// The report for the log after a trajectory.
    fn report(&self) -> Option<TermReport> {
        None
    }
}

/// Safety margin: a measured eigenvalue must stay inside the range even after it is moved outwards by this fraction.
pub(crate) const MARGIN: f64 = 0.05;
/// Relative error bound of the measured ends of a spectrum.
pub(crate) const TOLERANCE: f64 = 0.01;

/// A vector with components along all eigenvectors.
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
