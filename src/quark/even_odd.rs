//! A quark: one operator W on odd sites, in each precision that its solver uses, with everything for solves and
//! derivatives. The type of the parameters selects the operator.

use super::{OperatorParams, QuarkError, QuarkOperator, QuarkParams, Solves, Storage, combine};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Kind, MatrixField, Spinor};
use crate::math::{ExactSum, Rational};
use crate::operator::CloverTerm;
use crate::solver::{
    BlockCg, Bounds, Guess, Info, MethodSolver, Mixed, MultiInfo, MultiShift, Operators, Params, Settings,
    SolverError, bounds,
};
use std::slice::{from_mut, from_ref};
use std::sync::Arc;

/// The starting vector of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zero: the solution depends only on the right-hand side and the links.
    Zero,
    /// The content of x.
    Given,
    /// The best combination of past solutions. The new solution becomes the latest of them.
    Past,
}

/// The residual that a solve must reach, and its starting vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// `|b - W^dag W x| / |b|`
    pub residual: f64,
    /// The starting vector.
    pub start: Start,
}

/// One operator with its solver and past solutions.
pub struct Quark<O: QuarkOperator> {
    params: QuarkParams<O::Params>,
    domain: Arc<Domain>,
    clover: Option<CloverTerm>,
    w: Mixed<O>,
    systems: Systems,
    /// A solver that keeps something from solve to solve.
    solver: Option<MethodSolver>,
    guess: Guess,
    solves: Solves,
}

/// Solutions of systems with shifts whose true residuals are computed at once.
const CHECKED: usize = 4;

/// The systems that a quark solves.
#[derive(Clone, Copy, PartialEq)]
enum Systems {
    One,
    /// So many right-hand sides with several shifts.
    Shifts(usize),
    /// So many right-hand sides of `W^dag W` at once.
    Several(usize),
    /// So many of W.
    Linear(usize),
}

impl<O: QuarkOperator> Quark<O> {
    /// A quark that solves one system at a time.
    pub fn new<P>(domain: &Arc<Domain>, params: &QuarkParams<P>) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        Self::make(domain, params, Systems::One)
    }

    /// A quark that also solves systems with several shifts at once, for up to `sides` right-hand sides.
    ///
    /// # Panics
    /// The method is not CG.
    pub fn with_shifts<P>(
        domain: &Arc<Domain>,
        params: &QuarkParams<P>,
        sides: usize,
    ) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let method = params.solver.method;
        assert!(
            !params.solver.is_linear(),
            "systems with shifts are solved by conjugate gradients, not {method:?}"
        );
        Self::make(domain, params, Systems::Shifts(sides))
    }

    /// A quark that solves up to `fields` systems at once, as far as the method can.
    pub fn with_fields(
        domain: &Arc<Domain>,
        params: &QuarkParams<O::Params>,
        fields: usize,
    ) -> Result<Self, FieldError> {
        let systems = match params.solver.together(fields) {
            1 => Systems::One,
            several if params.solver.is_linear() => Systems::Linear(several),
            several => Systems::Several(several),
        };
        Self::make(domain, params, systems)
    }

    fn make(
        domain: &Arc<Domain>,
        params: &QuarkParams<O::Params>,
        systems: Systems,
    ) -> Result<Self, FieldError> {
        let fields = match systems {
            Systems::Several(fields) | Systems::Shifts(fields) => fields,
            Systems::One | Systems::Linear(_) => 1,
        };
        let make = |precision| {
            let whole = params.solver.whole() == Some(precision);
            let is_double = precision == Precision::Double;
            let checks = is_double && matches!(systems, Systems::Shifts(_));
            let fields = if checks { fields.max(CHECKED) } else { fields };
            let link_reals = if is_double { params.link_reals.max(12) } else { params.link_reals };
            O::make(domain, Storage { precision, link_reals, fields, whole }, &params.operator)
        };
        let [_, iteration, last] = params.solver.precisions;
        let wanted = |precision: Precision| match systems {
            Systems::Shifts(_) => (iteration..=last).contains(&precision),
            _ => params.solver.precisions.contains(&precision),
        };
        Ok(Self {
            domain: Arc::clone(domain),
            clover: O::clover_term(domain, &params.operator)?,
            systems,
            solver: None,
            guess: Guess::new(params.guess),
            w: Mixed::new(wanted, make)?,
            solves: Solves::default(),
            params: params.clone(),
        })
    }

    /// The parameters.
    pub fn params(&self) -> &QuarkParams<O::Params> {
        &self.params
    }

    /// This rank's box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The maximum number of right-hand sides solved at once.
    pub fn together(&self) -> usize {
        match self.systems {
            Systems::Several(fields) | Systems::Linear(fields) => fields,
            Systems::One | Systems::Shifts(_) => 1,
        }
    }

    /// The kind of fields that W acts on.
    pub fn kind(&self) -> Kind {
        self.w.double.kind()
    }

    /// A field that W acts on, in double precision, zero everywhere.
    pub(crate) fn spinor(&self) -> Result<Spinor, FieldError> {
        Spinor::of(&self.domain, self.kind(), Precision::Double, 1)
    }

    /// The clover term, if there is one.
    pub(crate) fn clover(&self) -> Option<&CloverTerm> {
        self.clover.as_ref()
    }

    /// W in double precision, and its clover term.
    pub(crate) fn operator(&mut self) -> (&mut O, Option<&CloverTerm>) {
        (&mut self.w.double, self.clover.as_ref())
    }

    /// W in all its precisions.
    pub(crate) fn operators(&mut self) -> impl Iterator<Item = &mut O> {
        self.w.all()
    }

    /// Adopts new links.
    ///
    /// # Errors
    /// The clover term is not positive, or the solver's set-up failed.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), QuarkError> {
        if let Some(clover) = &mut self.clover {
            clover.update(links)?;
        }
        self.w.all().try_for_each(|w| w.update(links, self.clover.as_ref()))?;
        if let Some(solver) = &mut self.solver {
            solver.normal().update(&mut self.w.operators())?;
        }
        Ok(())
    }

    /// `out = W x`, or `W^dag x`, on odd sites in double precision.
    pub fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        self.w.double.apply(out, x, dagger)
    }

    /// `sum log det A` over the sites that belong to the action. Without a clover term it is a constant and left out.
    pub fn log_det(&self) -> ExactSum {
        self.clover.as_ref().map(CloverTerm::log_det).unwrap_or_default()
    }

    /// Solves `W^dag W x = b` from zero, to `|b - W^dag W x| = residual |b|`. The solution depends only on b and the
    /// links.
    pub fn solve(&mut self, x: &mut Spinor, b: &Spinor, residual: f64) -> Result<Info, QuarkError> {
        self.solve_from(from_mut(x), from_ref(b), Goal { residual, start: Start::Zero })
    }

    /// As [`Quark::solve`], from the best combination of past solutions; remembers the new one.
    pub fn solve_guessed(&mut self, x: &mut Spinor, b: &Spinor, residual: f64) -> Result<Info, QuarkError> {
        self.solve_from(from_mut(x), from_ref(b), Goal { residual, start: Start::Past })
    }

    /// Whether the method solves `W x = b` without its normal equations.
    pub(super) fn solves_linear_systems(&self) -> bool {
        self.params.solver.is_linear()
    }

    /// Solves `W x_n = b_n` from zero.
    ///
    /// # Panics
    /// The method [cannot](Self::solves_linear_systems).
    pub(super) fn solve_linear(
        &mut self,
        x: &mut [Spinor],
        b: &[Spinor],
        residual: f64,
    ) -> Result<Info, QuarkError> {
        let params = self.goal(residual);
        x.iter_mut().try_for_each(Spinor::set_zero)?;
        self.by_the_solver(|solver, operators| match solver {
            MethodSolver::Linear(solver) => solver.solve_linear(operators, x, b, params),
            MethodSolver::Normal(_) => panic!("a method that solves the normal equations alone"),
        })
    }

    /// Solves systems by the method's solver.
    fn by_the_solver(
        &mut self,
        solve: impl FnOnce(&mut MethodSolver, &mut Operators) -> Result<Info, SolverError>,
    ) -> Result<Info, QuarkError> {
        let (kind, domain, together) = (self.kind(), &self.domain, self.together());
        let mut operators = self.w.operators();
        let mut solver = match self.solver.take() {
            Some(solver) => solver,
            None => {
                let mut made = self.params.solver.solver(domain, kind, together)?;
                made.normal().update(&mut operators)?;
                made
            }
        };
        let total = solve(&mut solver, &mut operators)?;
        self.solver = solver.normal().keeps().then_some(solver);
        self.solves.add(&total);
        Ok(total)
    }

    /// Solves `W^dag W x_n = b_n`.
    pub(super) fn solve_from(
        &mut self,
        x: &mut [Spinor],
        b: &[Spinor],
        goal: Goal,
    ) -> Result<Info, QuarkError> {
        for (x, b) in x.iter_mut().zip(b) {
            match goal.start {
                Start::Zero => x.set_zero()?,
                Start::Given => {}
                Start::Past => self.guess.start(&mut self.w.double, x, b)?,
            }
        }
        let params = self.goal(goal.residual);
        let total = if let Systems::Several(fields) = self.systems {
            let (delta, iteration) = (self.params.solver.delta, self.params.solver.of_one_system());
            let mut block = BlockCg::new(&self.domain, self.kind(), iteration, delta, fields)?;
            let mut operators = self.w.operators();
            let total = block.solve(&mut operators, 0.0, x, b, params)?.total;
            self.solves.add(&total);
            total
        } else {
            self.by_the_solver(|solver, operators| {
                let mut total = Info::default();
                for (x, b) in x.iter_mut().zip(b) {
                    total.add(&solver.normal().solve(operators, x, b, params)?);
                }
                Ok(total)
            })?
        };
        if goal.start == Start::Past {
            x.iter().try_for_each(|x| self.guess.remember(x))?;
        }
        Ok(total)
    }

    /// Drops past solutions, the solver's set-up and the statistics. This is done at the start of a trajectory, so that
    /// a resumed run gives the same bits.
    pub fn forget(&mut self) {
        self.guess.forget();
        self.solves = Solves::default();
        if let Some(solver) = &mut self.solver {
            solver.normal().forget();
        }
    }

    /// Statistics of the solves since [`Quark::forget`].
    pub fn solves(&self) -> Solves {
        self.solves
    }

    /// Solves `(W^dag W + s_i) x_i = b_n` for all shifts, each to `residual`; returns what each right-hand side took, and its
    /// solutions.
    ///
    /// # Panics
    /// The quark was not made [with shifts](Self::with_shifts), or for fewer right-hand sides.
    pub fn solve_shifted(
        &mut self,
        b: &[Spinor],
        shifts: &[f64],
        residual: f64,
    ) -> Result<Vec<(MultiInfo, Vec<Spinor>)>, QuarkError> {
        assert!(matches!(self.systems, Systems::Shifts(sides) if b.len() <= sides), "a quark with shifts");
        let params = self.goal(residual);
        let Settings { precisions: [_, iteration, refinement], delta, .. } = self.params.solver;
        let own = |_: &Spinor| shifts.iter().map(|_| self.spinor()).collect();
        let mut x: Vec<Vec<Spinor>> = b.iter().map(own).collect::<Result<_, _>>()?;
        let (kind, precisions) = (self.kind(), [iteration, refinement]);
        let solver = MultiShift::new(&self.domain, kind, precisions, delta, CHECKED);
        let infos = {
            let (mut x, b): (Vec<_>, Vec<_>) = x.iter_mut().map(Vec::as_mut_slice).zip(b).unzip();
            solver.solve_several(&mut self.w.operators(), &mut x, &b, shifts, params)?
        };
        infos.iter().for_each(|info| self.solves.add(&info.total));
        Ok(infos.into_iter().zip(x).collect())
    }

    fn goal(&self, residual: f64) -> Params {
        Params { residual, max_iterations: self.params.solver.max_iterations }
    }

    /// `b_n = r(W^dag W) b_n`; returns what each took, and the solutions for its poles.
    pub(crate) fn apply_function(
        &mut self,
        b: &mut [Spinor],
        r: &Rational,
        residual: f64,
    ) -> Result<Vec<(MultiInfo, Vec<Spinor>)>, QuarkError> {
        let solved = self.solve_shifted(b, &r.poles, residual)?;
        b.iter_mut().zip(&solved).try_for_each(|(b, (_, x))| combine(b, x, r))?;
        Ok(solved)
    }

    /// The least and the greatest eigenvalue of `W^dag W`, by Lanczos from the vector `start`, which is overwritten.
    pub fn bounds(&mut self, start: &mut Spinor, tolerance: f64) -> Result<Bounds, QuarkError> {
        Ok(bounds(&mut self.w.double, start, tolerance, self.params.solver.max_iterations)?)
    }
}
