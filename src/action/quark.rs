//! A quark: one Wilson(-clover) operator W with all that solves and derivatives of it need.
//!
//! W is `Mhat`, or with a twisted mass mu `Mhat + i mu gamma_5` (symmetric form: `Mhat + i mu A_oo^-1 gamma_5`).

use super::ActionError;
use crate::device::Precision;
use crate::field::{Domain, FieldError, MatrixField, Spinor};
use crate::math::ExactSum;
use crate::operator::{CloverTerm, Operator, Schur, Wilson, WilsonParams};
use crate::solver::{Bounds, Cg, Guess, Info, MultiInfo, MultiShift, Params, bounds};
use std::sync::Arc;

/// What a quark needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkParams {
    /// The operator.
    pub operator: WilsonParams,
    /// Precision of the iterations.
    pub precision: Precision,
    /// Reals of a link in the operator: 18 or 12.
    pub link_reals: usize,
    /// More iterations of a solve are an error.
    pub max_iterations: usize,
    /// Past solutions from which the next is guessed.
    pub guess: usize,
}

/// The residual of an iteration in low precision falls by this factor between reliable updates.
const UPDATE_FACTOR: f64 = 1e-3;

/// One operator, its solver, its past solutions.
pub struct Quark {
    params: QuarkParams,
    domain: Arc<Domain>,
    clover: Option<CloverTerm>,
    double: Wilson,
    lower: Option<Wilson>,
    solver: Cg,
    guess: Guess,
    shifted: Option<MultiShift>,
}

impl Quark {
    /// Room for the operator.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, params: &QuarkParams) -> Result<Self, FieldError> {
        let wilson = |precision| Wilson::new(domain, precision, params.link_reals, params.operator);
        let lower = (params.precision != Precision::Double).then(|| wilson(params.precision)).transpose()?;
        Ok(Self {
            domain: Arc::clone(domain),
            clover: Wilson::clover_term(domain, &params.operator)?,
            double: wilson(Precision::Double)?,
            lower,
            solver: Cg::new(domain, params.precision, UPDATE_FACTOR)?,
            guess: Guess::new(params.guess),
            shifted: None,
            params: params.clone(),
        })
    }

    /// What it was made of.
    pub fn params(&self) -> &QuarkParams {
        &self.params
    }

    /// Whether the form is the symmetric one.
    pub(super) fn is_symmetric(&self) -> bool {
        self.params.operator.schur == Schur::Symmetric
    }

    /// Its clover term, if it has one.
    pub(super) fn clover(&self) -> Option<&CloverTerm> {
        self.clover.as_ref()
    }

    /// W in double.
    pub(super) fn operator(&mut self) -> &mut Wilson {
        &mut self.double
    }

    /// Takes over new links.
    ///
    /// # Errors
    /// The clover term is not positive.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), ActionError> {
        if let Some(clover) = &mut self.clover {
            clover.update(links)?;
        }
        self.double.update(links, self.clover.as_ref())?;
        if let Some(lower) = &mut self.lower {
            lower.update(links, self.clover.as_ref())?;
        }
        Ok(())
    }

    /// `out = W x`, or `W^dag x`, on odd sites in double.
    ///
    /// # Errors
    /// The device is lost.
    pub fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        self.double.apply(out, x, dagger)
    }

    /// `sum log det A` over the sites that belong to the action: even ones, and in the symmetric form odd ones.
    /// Without a clover term it is a constant, and left out.
    pub fn log_det(&self) -> ExactSum {
        self.clover.as_ref().map(CloverTerm::log_det).unwrap_or_default()
    }

    /// Solves `W^dag W x = b` from zero, to `|b - W^dag W x| = residual |b|`: x depends on b and the links alone.
    ///
    /// # Errors
    /// No convergence.
    pub fn solve(&mut self, x: &mut Spinor, b: &Spinor, residual: f64) -> Result<Info, ActionError> {
        x.set_zero()?;
        self.solve_on(x, b, residual)
    }

    /// The same from the best combination of past solutions, and remembers the new one.
    ///
    /// # Errors
    /// No convergence.
    pub fn solve_guessed(&mut self, x: &mut Spinor, b: &Spinor, residual: f64) -> Result<Info, ActionError> {
        self.guess.start(&mut self.double, x, b)?;
        let info = self.solve_on(x, b, residual)?;
        self.guess.remember(&self.domain, x)?;
        Ok(info)
    }

    /// Drops past solutions: at the start of a trajectory, so that a resumed run goes on with the same bits.
    pub fn forget(&mut self) {
        self.guess.forget();
    }

    fn solve_on(&mut self, x: &mut Spinor, b: &Spinor, residual: f64) -> Result<Info, ActionError> {
        let params = Params { residual, max_iterations: self.params.max_iterations };
        let sloppy = self.lower.as_mut().map(|s| s as &mut dyn Operator);
        Ok(self.solver.solve(&mut self.double, sloppy, x, b, params)?)
    }

    /// Solves `(W^dag W + s_i) x_i = b` for all shifts, from zero, each to `residual`.
    ///
    /// # Errors
    /// No convergence.
    pub fn solve_shifted(
        &mut self,
        x: &mut [Spinor],
        b: &Spinor,
        shifts: &[f64],
        residual: f64,
    ) -> Result<MultiInfo, ActionError> {
        let params = Params { residual, max_iterations: self.params.max_iterations };
        let solver = match &mut self.shifted {
            Some(solver) => solver,
            None => self.shifted.insert(MultiShift::new(&self.domain, self.params.precision)?),
        };
        let sloppy = self.lower.as_mut().map(|s| s as &mut dyn Operator);
        Ok(solver.solve(&mut self.double, sloppy, &mut self.solver, x, b, shifts, params)?)
    }

    /// The least and the greatest eigenvalue of `W^dag W`, from the vector `start`, which is overwritten.
    ///
    /// # Errors
    /// No convergence.
    pub fn bounds(&mut self, start: &mut Spinor, tolerance: f64) -> Result<Bounds, ActionError> {
        Ok(bounds(&mut self.double, start, tolerance, self.params.max_iterations)?)
    }
}
