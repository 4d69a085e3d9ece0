//! A quark: one Wilson(-clover) operator W with all that solves and derivatives of it need.
//!
//! W is `Mhat`, or with a twisted mass mu `Mhat + i mu gamma_5` (symmetric form: `Mhat + i mu A_oo^-1 gamma_5`).

use super::ActionError;
use crate::device::Precision;
use crate::field::{Domain, FieldError, MatrixField, Spinor};
use crate::math::ExactSum;
use crate::operator::{CloverTerm, Operator, Schur, SchwarzOperator, Wilson, WilsonParams};
use crate::solver::{
    Bounds, Guess, Info, Method, MultiInfo, MultiShift, NormalSolver, Operators, Params, Settings, bounds,
};
use std::sync::Arc;

/// What a quark needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkParams {
    /// The operator.
    pub operator: WilsonParams,
    /// How its systems are solved.
    pub solver: Settings,
    /// Reals of a link in the operator: 18, 12 or 8; with 8, the operator in double has 12.
    pub link_reals: usize,
    /// Past solutions from which the next is guessed.
    pub guess: usize,
}

/// One operator, its solver, its past solutions.
pub struct Quark {
    params: QuarkParams,
    domain: Arc<Domain>,
    clover: Option<CloverTerm>,
    double: Wilson,
    single: Option<Wilson>,
    half: Option<Wilson>,
    solver: NormalSolver,
    guess: Guess,
    shifted: Option<MultiShift>,
    solves: Solves,
}

/// What the solves of a term did since the heat bath.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Solves {
    /// How many.
    pub count: usize,
    /// Together; the residual is the greatest.
    pub total: Info,
}

impl Solves {
    fn add(&mut self, info: &Info) {
        self.count += 1;
        self.total.add(info);
    }

    /// Those of two quarks.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.count += other.count;
        self.total.add(&other.total);
        self
    }
}

impl std::fmt::Display for Solves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Info { iterations, updates, fallbacks, applications, residual, .. } = self.total;
        let share = |part: f64| 100.0 * part / self.total.seconds.max(1e-30);
        write!(
            f,
            "{} solves: {iterations} iterations, {updates} updates, {applications} applications, greatest residual \
             {residual:.1e}, {:.2} s (operator {:.0}%, preconditioner {:.0}%, messages {:.0}%)",
            self.count,
            self.total.seconds,
            share(self.total.operator_seconds),
            share(self.total.preconditioner_seconds),
            share(self.total.communication_seconds)
        )?;
        if fallbacks > 0 {
            write!(f, "; {fallbacks} fallbacks to a higher precision or another method")?;
        }
        Ok(())
    }
}

impl Quark {
    /// Room for the operator.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, params: &QuarkParams) -> Result<Self, FieldError> {
        let Settings { method, precisions, .. } = params.solver;
        let wilson = |precision, reals| -> Result<Wilson, FieldError> {
            let operator = Wilson::new(domain, precision, reals, params.operator)?;
            if let Method::GcrDd { block, .. } = method { operator.with_blocks(block) } else { Ok(operator) }
        };
        let lower = |precision| {
            precisions.contains(&precision).then(|| wilson(precision, params.link_reals)).transpose()
        };
        Ok(Self {
            domain: Arc::clone(domain),
            clover: Wilson::clover_term(domain, &params.operator)?,
            double: wilson(Precision::Double, params.link_reals.max(12))?,
            single: lower(Precision::Single)?,
            half: lower(Precision::Half)?,
            solver: NormalSolver::new(domain, params.solver)?,
            guess: Guess::new(params.guess),
            shifted: None,
            solves: Solves::default(),
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
        for lower in [&mut self.single, &mut self.half].into_iter().flatten() {
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

    /// Drops past solutions and the count of solves: at the start of a trajectory, so that a resumed run goes on
    /// with the same bits.
    pub fn forget(&mut self) {
        self.guess.forget();
        self.solves = Solves::default();
    }

    /// What the solves did since [`Quark::forget`].
    pub fn solves(&self) -> Solves {
        self.solves
    }

    fn solve_on(&mut self, x: &mut Spinor, b: &Spinor, residual: f64) -> Result<Info, ActionError> {
        let mut operators = Operators {
            double: &mut self.double,
            single: self.single.as_mut().map(|o| o as &mut dyn SchwarzOperator),
            half: self.half.as_mut().map(|o| o as &mut dyn SchwarzOperator),
        };
        let info = self.solver.solve(&mut operators, x, b, residual)?;
        self.solves.add(&info);
        Ok(info)
    }

    /// Solves `(W^dag W + s_i) x_i = b` for all shifts, from zero, each to `residual`.
    ///
    /// # Errors
    /// No convergence.
    ///
    /// # Panics
    /// The method is not CG.
    pub fn solve_shifted(
        &mut self,
        x: &mut [Spinor],
        b: &Spinor,
        shifts: &[f64],
        residual: f64,
    ) -> Result<MultiInfo, ActionError> {
        let Settings { precisions, max_iterations, .. } = self.params.solver;
        let params = Params { residual, max_iterations };
        let solver = match &mut self.shifted {
            Some(solver) => solver,
            None => self.shifted.insert(MultiShift::new(&self.domain, precisions[1])?),
        };
        let sloppy = match precisions[1] {
            Precision::Double => None,
            Precision::Single => self.single.as_mut(),
            Precision::Half => self.half.as_mut(),
        };
        let sloppy = sloppy.map(|o| o as &mut dyn Operator);
        let info = solver.solve(&mut self.double, sloppy, self.solver.cg(), x, b, shifts, params)?;
        self.solves.add(&info.total);
        Ok(info)
    }

    /// The least and the greatest eigenvalue of `W^dag W`, from the vector `start`, which is overwritten.
    ///
    /// # Errors
    /// No convergence.
    pub fn bounds(&mut self, start: &mut Spinor, tolerance: f64) -> Result<Bounds, ActionError> {
        Ok(bounds(&mut self.double, start, tolerance, self.params.solver.max_iterations)?)
    }
}
