//! Terms of the Hamiltonian: each can be refreshed, valued, and differentiated.
//!
//! - `gauge`: plaquettes, rectangles, parallelograms
//! - `quark`: one operator of quarks with its solver
//! - `pair`: the force of pairs of spinors
//! - `two_flavour`: two flavours of quarks
//! - `fraction`: a light quark over a heavy one
//! - `ratio`: a ratio of two-flavour determinants
//! - `powers`: rational functions for one quark, and the range of its spectrum
//! - `one_flavour`: one flavour, by rational functions
//! - `one_flavour_ratio`: one flavour over a heavier one, by rational functions
//! - `smeared`: a term on stout-smeared links

mod fraction;
mod gauge;
mod one_flavour;
mod one_flavour_ratio;
mod pair;
mod powers;
mod quark;
mod ratio;
mod smeared;
mod two_flavour;

pub use gauge::GaugeAction;
pub use one_flavour::{OneFlavour, OneFlavourParams};
pub use one_flavour_ratio::{OneFlavourRatio, OneFlavourRatioParams};
pub use pair::{Derivative, Pair, PairForce, PairSum};
pub use quark::{OperatorParams, Quark, QuarkOperator, QuarkParams, Solves};
pub use ratio::{TwoFlavourRatio, TwoFlavourRatioParams};
pub use smeared::Smeared;
pub use two_flavour::{TwoFlavour, TwoFlavourParams};

use fraction::Fraction;

use crate::device::Precision;
use crate::field::{
    AlgebraField, Domain, FieldError, Kind, MatrixField, ODD, Purpose, RandomAddress, Spinor,
};
use crate::math::{ExactSum, Rational, RationalError};
use crate::operator::OperatorError;
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

/// `constant b + sum_n residue_n x_n` into `out`.
pub(crate) fn combine(out: &mut Spinor, b: &Spinor, x: &[Spinor], r: &Rational) -> Result<(), FieldError> {
    out.copy_from(b)?;
    out.scale(r.constant)?;
    for (x, &residue) in x.iter().zip(&r.residues) {
        out.axpy(residue, x)?;
    }
    Ok(())
}

/// What a term says of a trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct TermReport {
    /// A line.
    pub text: String,
    /// Whether every log has to have it: a solver fell back, links were near singular.
    pub notable: bool,
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
    /// What the log may say of it after a trajectory.
    fn report(&self) -> Option<TermReport> {
        None
    }
}

/// A measured end of a spectrum counts as outside a range when this part of it more would be.
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
