//! A quark: one operator W on odd sites, in each precision that is asked for, with all that solves and derivatives
//! of it need. Which operator it is, its parameters tell.

use super::{ActionError, Derivative, TermReport, combine};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, MatrixField, Spinor};
use crate::math::{ExactSum, Rational};
use crate::operator::{CloverTerm, Operator};
use crate::solver::{
    Bounds, Guess, Info, Method, MultiInfo, MultiShift, NormalSolver, Operators, Params, Settings, bounds,
};
use std::sync::Arc;

/// An operator of quarks, as terms of the Hamiltonian make and keep it.
pub trait QuarkOperator: Derivative + Sized {
    /// Its parameters.
    type Params: OperatorParams<Operator = Self>;

    /// Room for the operator in `precision` with links of `link_reals`, to be solved by `method`.
    ///
    /// # Errors
    /// No room.
    fn make(
        domain: &Arc<Domain>,
        precision: Precision,
        link_reals: usize,
        params: &Self::Params,
        method: Method,
    ) -> Result<Self, FieldError>;

    /// The clover term that it needs; `None` without one.
    ///
    /// # Errors
    /// No room.
    fn clover_term(_: &Arc<Domain>, _: &Self::Params) -> Result<Option<CloverTerm>, FieldError> {
        Ok(None)
    }

    /// Takes over new links and the clover term that was updated on them.
    ///
    /// # Errors
    /// The device is lost.
    fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError>;

    /// Whether the determinants of A are the same for two quarks, and cancel in a ratio of them.
    ///
    /// # Panics
    /// They are no quarks of one ratio.
    fn determinants_cancel(_: &Self::Params, _: &Self::Params) -> bool {
        true
    }
}

/// Parameters of an operator, which they choose.
pub trait OperatorParams: Clone + std::fmt::Debug + PartialEq {
    /// The operator.
    type Operator: QuarkOperator<Params = Self>;
}

/// What a quark needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkParams<P> {
    /// The operator.
    pub operator: P,
    /// How its systems are solved.
    pub solver: Settings,
    /// Reals of a link in the operator: 18, 12 or 8; with 8, the operator in double has 12.
    pub link_reals: usize,
    /// Past solutions from which the next is guessed.
    pub guess: usize,
}

/// One operator, its solver, its past solutions.
pub struct Quark<O: QuarkOperator> {
    params: QuarkParams<O::Params>,
    domain: Arc<Domain>,
    clover: Option<CloverTerm>,
    double: O,
    single: Option<O>,
    half: Option<O>,
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
    pub(crate) fn add(&mut self, info: &Info) {
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

    /// What a term says of them, with more behind.
    pub(crate) fn report(self, more: &str) -> TermReport {
        TermReport { text: format!("{self}{more}"), notable: self.total.fallbacks > 0 }
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

impl<O: QuarkOperator> Quark<O> {
    /// Room for the operator.
    ///
    /// # Errors
    /// No room.
    pub fn new<P>(domain: &Arc<Domain>, params: &QuarkParams<P>) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let Settings { method, precisions, .. } = params.solver;
        let make = |precision, reals| O::make(domain, precision, reals, &params.operator, method);
        let lower = |precision| {
            precisions.contains(&precision).then(|| make(precision, params.link_reals)).transpose()
        };
        let double = make(Precision::Double, params.link_reals.max(12))?;
        Ok(Self {
            domain: Arc::clone(domain),
            clover: O::clover_term(domain, &params.operator)?,
            solver: NormalSolver::new(domain, double.kind(), params.solver)?,
            double,
            single: lower(Precision::Single)?,
            half: lower(Precision::Half)?,
            guess: Guess::new(params.guess),
            shifted: None,
            solves: Solves::default(),
            params: params.clone(),
        })
    }

    /// What it was made of.
    pub fn params(&self) -> &QuarkParams<O::Params> {
        &self.params
    }

    /// The box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// What W acts on.
    pub fn kind(&self) -> Kind {
        self.double.kind()
    }

    /// A field that W acts on, in double, zero everywhere.
    pub(crate) fn spinor(&self) -> Result<Spinor, FieldError> {
        Spinor::of(&self.domain, self.kind(), Precision::Double, 1)
    }

    /// Its clover term, if it has one.
    pub(crate) fn clover(&self) -> Option<&CloverTerm> {
        self.clover.as_ref()
    }

    /// W in double, and its clover term.
    pub(crate) fn operator(&mut self) -> (&mut O, Option<&CloverTerm>) {
        (&mut self.double, self.clover.as_ref())
    }

    /// W in every precision that there is.
    pub(crate) fn operators(&mut self) -> impl Iterator<Item = &mut O> {
        std::iter::once(&mut self.double).chain(&mut self.single).chain(&mut self.half)
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

    /// `sum log det A` over the sites that belong to the action. Without a clover term it is a constant, and left
    /// out.
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

    /// The same from what x holds.
    pub(crate) fn solve_on(
        &mut self,
        x: &mut Spinor,
        b: &Spinor,
        residual: f64,
    ) -> Result<Info, ActionError> {
        let mut operators = Operators {
            double: &mut self.double,
            single: self.single.as_mut().map(|o| o as &mut dyn Operator),
            half: self.half.as_mut().map(|o| o as &mut dyn Operator),
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
            None => self.shifted.insert(MultiShift::new(&self.domain, self.double.kind(), precisions[1])?),
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

    /// `out = r(W^dag W) b`, with the solutions of its poles in the first of `x`.
    ///
    /// # Errors
    /// No convergence.
    pub(crate) fn apply_function(
        &mut self,
        out: &mut Spinor,
        b: &Spinor,
        r: &Rational,
        x: &mut [Spinor],
        residual: f64,
    ) -> Result<Info, ActionError> {
        let x = &mut x[..r.poles.len()];
        let info = self.solve_shifted(x, b, &r.poles, residual)?.total;
        combine(out, b, x, r)?;
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
