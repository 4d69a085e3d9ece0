//! `M^dag M x = b` by two solves, `M^dag y = b` and `M x = y`, and `M x = b` by one. The true residual of the system decides. If
//! the method fails, conjugate gradients take over.

use super::info::Clock;
use super::{
    Cg, Info, LinearSolver, Matrix, Operators, Params, Setup, Solver, SolverError, System, usual_delta,
};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Spinor};
use std::sync::Arc;

/// Workspace of solves.
pub struct TwoSolves {
    solver: Box<dyn LinearSolver>,
    residual: Spinor,
    product: Spinor,
    y: Spinor,
    /// The change of x.
    change: Spinor,
    /// Of the conjugate gradients that take over.
    precision: Precision,
    /// Allocated when the method has failed.
    rescue: Option<Cg>,
}

/// Corrections of x until the method counts as failed.
const CORRECTIONS: usize = 5;
/// The share of the residual that each of the two solves may leave.
const SHARE: f64 = 0.4;

impl TwoSolves {
    /// Workspace in addition to that of `solver`. If it fails, conjugate gradients iterate in `precision`.
    pub fn new(
        domain: &Arc<Domain>,
        solver: Box<dyn LinearSolver>,
        precision: Precision,
    ) -> Result<Self, FieldError> {
        let spinor = || Spinor::new(domain, Precision::Double);
        let [residual, product, y, change] = [spinor()?, spinor()?, spinor()?, spinor()?];
        Ok(Self { solver, residual, product, y, change, precision, rescue: None })
    }

    /// Corrects `x` until the residual is reached. Returns `false` if the method failed.
    fn correct(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
        info: &mut Info,
    ) -> Result<bool, SolverError> {
        let norm_b = b.norm2()?.value().sqrt();
        if norm_b == 0.0 {
            x.set_zero()?;
            return Ok(true);
        }
        let mut before = f64::INFINITY;
        for correction in 0.. {
            info.apply_normal(operators.double, &mut self.product, &mut self.y, x, 0.0)?;
            self.residual.copy_from(b)?;
            let norm_r = self.residual.axpy_norm2(-1.0, &self.product)?.value()?.sqrt();
            info.residual = norm_r / norm_b;
            if info.residual <= params.residual {
                break;
            }
            let left = params.max_iterations.saturating_sub(info.iterations);
            // Also if a correction made it worse, or the residual is NaN.
            let better = info.residual < before;
            before = info.residual;
            let goal = Params { residual: SHARE * params.residual * norm_b / norm_r, max_iterations: left };
            if correction == CORRECTIONS
                || left == 0
                || !better
                || !self.change(operators, norm_r, goal, info)?
            {
                return Ok(false);
            }
            x.axpy(1.0, &self.change)?;
        }
        Ok(true)
    }

    /// Sets `change` to reduce the residual, of norm `norm_r`, by the factor `goal`. Returns `false` if it is not
    /// finite.
    fn change(
        &mut self,
        operators: &mut Operators,
        norm_r: f64,
        goal: Params,
        info: &mut Info,
    ) -> Result<bool, SolverError> {
        let Self { solver, residual, y, change, .. } = self;
        let within = |residual: f64| Params { residual: residual.clamp(1e-14, 0.1), ..goal };
        y.set_zero()?;
        let mut system = System { operators, matrix: Matrix::Linear(Dagger::Yes) };
        if !info.count(solver.solve(&mut system, y, residual, within(goal.residual)))? {
            return Ok(false);
        }
        // The measure is |M^dag (y - M change)|: the norm of M^dag is at least |r| / |y|, and rarely above four times
        // that.
        let norm_y = y.norm2()?.value().sqrt();
        change.set_zero()?;
        let reduction = SHARE * goal.residual.min(goal.residual * norm_r / norm_y);
        system.matrix = Matrix::Linear(Dagger::No);
        Ok(info.count(solver.solve(&mut system, change, y, within(reduction)))?)
    }

    /// Conjugate gradients, counted as a fallback. They start from x if it is better than zero.
    fn rescue(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
        info: &mut Info,
    ) -> Result<(), SolverError> {
        let double = &*operators.double;
        let cg = match &mut self.rescue {
            Some(cg) => cg,
            None => {
                let delta = usual_delta(self.precision == Precision::Half);
                self.rescue.insert(Cg::new(double.domain(), double.kind(), self.precision, delta)?)
            }
        };
        if !matches!(info.residual.partial_cmp(&1.0), Some(std::cmp::Ordering::Less)) {
            x.set_zero()?;
        }
        let rescued = cg.solve(operators, x, b, params)?;
        info.add(&rescued);
        info.fallbacks += 1;
        info.residual = rescued.residual;
        Ok(())
    }
}

impl TwoSolves {
    /// Solves `M x_n = b_n` to `|b_n - M x_n| <= residual |b_n|` from the guesses in `x`.
    pub fn solve_linear(
        &mut self,
        operators: &mut Operators,
        x: &mut [Spinor],
        b: &[Spinor],
        params: Params,
    ) -> Result<Info, SolverError> {
        let clock = Clock::new(operators.double.domain());
        let mut system = System { operators, matrix: Matrix::Linear(Dagger::No) };
        let (mut info, solved) = self.solver.solve_each(&mut system, x, b, params)?;
        let mut residual = if solved.iter().all(|&solved| solved) { info.residual } else { 0.0 };
        for ((x, b), solved) in x.iter_mut().zip(b).zip(solved) {
            if !solved {
                info.residual = f64::INFINITY;
                self.rescue_linear(operators, x, b, params, &mut info)?;
                residual = residual.max(info.residual);
            }
        }
        info.residual = residual;
        clock.stop(&mut info);
        Ok(info)
    }

    /// Conjugate gradients for `M^dag M x = M^dag b`, until the residual of `M x = b` is reached.
    fn rescue_linear(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
        info: &mut Info,
    ) -> Result<(), SolverError> {
        let mut rhs = Spinor::new(b.domain(), Precision::Double)?;
        info.apply(operators.double, &mut rhs, b, Dagger::Yes)?;
        let norm_b = b.norm2()?.value().sqrt();
        let mut goal = params;
        for _ in 0..CORRECTIONS {
            self.rescue(operators, x, &rhs, goal, info)?;
            info.apply(operators.double, &mut self.product, x, Dagger::No)?;
            self.residual.copy_from(b)?;
            info.residual = self.residual.axpy_norm2(-1.0, &self.product)?.value()?.sqrt() / norm_b;
            if info.residual <= params.residual {
                return Ok(());
            }
            // It would make a goal that nothing reaches.
            if !info.residual.is_finite() {
                return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
            }
            goal.residual *= SHARE * params.residual / info.residual;
        }
        Err(info.failed(params.residual))
    }
}

impl Solver for TwoSolves {
    fn solve(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        let clock = Clock::new(operators.double.domain());
        let mut info = Info::default();
        if !self.correct(operators, x, b, params, &mut info)? {
            self.rescue(operators, x, b, params, &mut info)?;
        }
        clock.stop(&mut info);
        Ok(info)
    }
}

impl Setup for TwoSolves {
    fn keeps(&self) -> bool {
        self.solver.keeps()
    }

    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        self.solver.update(operators)
    }

    fn forget(&mut self) {
        self.solver.forget();
    }
}
