//! `(M^dag M + s) x = b` for the least shifts by flexible GCR. Two cycles of multigrid precondition it, one for the adjoint:
//!
//! ```text
//! (M^dag M + s)^-1 ~ C C',   C ~ M^-1,   C' ~ M^-dag.
//! ```
//!
//! The preconditioned matrix is close to `1 + s (M^dag M)^-1`: for shifts of the size of the least eigenvalue that is close to
//! 1, up to a few eigenvalues. So one coarse operator serves all shifts, without twisted masses; of the symmetric even-odd form
//! with one the square is no `M^dag M + s` anyway.
//!
//! The directions of one shift are good ones for the next: there they come first, without cycles.
//!
//! The Krylov space is in single precision, the cycles are in single or half. The true residual in double decides; where the
//! method fails, conjugate gradients take over.

use super::{
    Cg, Gcr, GcrParams, Info, LinearSolver, Matrix, Multigrid, MultigridParams, Operators, Params,
    Preconditioner, Setup, SolverError, System,
};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Spinor};
use std::sync::Arc;

/// The precision of the Krylov space.
const KRYLOV: Precision = Precision::Single;
/// The residual falls by this factor between restarts, which drop all directions before.
const DELTA: f64 = 1e-5;
/// The digits of a solve that tell whether the space serves.
const ENOUGH: f64 = 3.0;

/// Workspace of solves. It keeps the space of multigrid.
pub struct LightShifts {
    shifts: usize,
    gcr: Gcr,
    /// Whether the next solve is the first with its right-hand side.
    first: bool,
}

/// Multigrid for `M^dag M`.
struct TwoCycles {
    multigrid: Multigrid,
    /// `M^-dag x`
    middle: Spinor,
}

impl LightShifts {
    /// Workspace to solve the `shifts` least ones, with cycles in `precision` and up to `k_max` directions.
    ///
    /// # Panics
    /// As [`Multigrid::new`].
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        shifts: usize,
        k_max: usize,
        params: MultigridParams,
    ) -> Result<Self, FieldError> {
        let multigrid = Multigrid::new(domain, precision, params, 1)?;
        let cycles = TwoCycles { multigrid, middle: Spinor::new(domain, KRYLOV)? };
        let params = GcrParams { precisions: [Precision::Double, KRYLOV], k_max, delta: DELTA };
        Ok(Self { shifts, gcr: Gcr::normal(domain, params, Box::new(cycles))?, first: true })
    }

    /// Begins with a right-hand side. Returns the positions of the least shifts, the least first: in this order they are solved.
    pub(super) fn begin(&mut self, shifts: &[f64]) -> Vec<usize> {
        self.first = true;
        let mut order: Vec<usize> = (0..shifts.len()).collect();
        order.sort_by(|&i, &j| shifts[i].total_cmp(&shifts[j]));
        order.truncate(self.shifts);
        order
    }

    /// Solves `(M^dag M + shift) x = b` from the guess in `x`. If that fails, `cg` takes over.
    pub(super) fn solve(
        &mut self,
        cg: &mut Cg,
        operators: &mut Operators,
        shift: f64,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        let mut system = System { operators, matrix: Matrix::Normal { shift } };
        let solved = if std::mem::take(&mut self.first) {
            self.gcr.solve(&mut system, x, b, params)
        } else {
            self.gcr.solve_like_the_last(&mut system, x, b, params)
        };
        let failed = match solved {
            Err(SolverError::Field(error)) => return Err(error.into()),
            Err(failed) => failed,
            solved => return solved,
        };
        // What a failure leaves may be worse than zero, or no number; so may its directions.
        self.first = true;
        if !matches!(failed, SolverError::NotConverged { residual, .. } if residual < 1.0) {
            x.set_zero()?;
        }
        let mut info = cg.solve_shifted(operators, shift, x, b, params)?;
        info.iterations += failed.iterations();
        info.fallbacks += 1;
        Ok(info)
    }
}

impl Setup for LightShifts {
    fn keeps(&self) -> bool {
        self.gcr.keeps()
    }

    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        self.gcr.update(operators)
    }

    fn forget(&mut self) {
        self.gcr.forget();
    }
}

impl Preconditioner for TwoCycles {
    /// `out ~ (M^dag M)^-1 x`, which is its own adjoint.
    fn apply(
        &mut self,
        operators: &mut Operators,
        out: &mut [&mut Spinor],
        x: &[&Spinor],
        _: Dagger,
        info: &mut Info,
    ) -> Result<(), FieldError> {
        let Self { multigrid, middle } = self;
        for (out, x) in out.iter_mut().zip(x) {
            multigrid.apply(operators, &mut [&mut *middle], &[*x], Dagger::Yes, info)?;
            multigrid.apply(operators, &mut [&mut **out], &[&*middle], Dagger::No, info)?;
        }
        Ok(())
    }

    /// After a good guess only what is hard is left: few digits tell nothing of the space.
    fn solved(&mut self, iterations: usize, digits: f64) {
        if digits >= ENOUGH {
            self.multigrid.solved(iterations, digits);
        }
    }
}

impl Setup for TwoCycles {
    fn keeps(&self) -> bool {
        self.multigrid.keeps()
    }

    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        self.multigrid.update(operators)
    }

    fn forget(&mut self) {
        self.multigrid.forget();
    }
}
