//! The outer iteration of all solvers of one system: cycles of an iteration in its own precision, and between them the
//! true residual in double precision (Sleijpen, van der Vorst, Computing 56 (1996) 141; Clark et al., arXiv:0911.3191).
//!
//! A cycle corrects x until the residual of its iteration has fallen far enough. Then the true residual is computed. If
//! it has not fallen, the iteration is trusted less: first every cycle starts with fresh directions, then it runs in
//! double.

use super::info::Clock;
use super::{Info, Matrix, Params, SolverError, System};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, Spinor};
use std::sync::Arc;

/// The trust in the iteration in low precision. It decreases whenever the true residual has not fallen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// Directions are kept across updates.
    Reliable,
    /// Every update starts with fresh directions.
    DefectCorrection,
    /// Iterations in double precision.
    Double,
}

impl Trust {
    /// An update fails if it leaves more than this fraction of the residual's square.
    pub(super) const LEAST: f64 = 0.25;

    /// The trust after an update from `before` to `now`, squares of the residual, with the goal `target`.
    fn after(self, before: f64, now: f64, target: f64, info: &mut Info) -> Self {
        if now <= target.max(Self::LEAST * before) { self } else { self.less(info) }
    }

    pub(super) fn less(self, info: &mut Info) -> Self {
        info.fallbacks += 1;
        match self {
            Self::Reliable => Self::DefectCorrection,
            _ => Self::Double,
        }
    }
}

/// The start and the goal of a cycle.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// Square of the true residual.
    pub rr: f64,
    /// The iteration ends when its residual's square is at or below this.
    pub stop: f64,
    /// The limit of the whole solve.
    pub max_iterations: usize,
    /// The directions of the previous cycle are not reused.
    pub fresh: bool,
    pub trust: Trust,
}

impl Stage {
    /// Lowers the goal: until the residual has fallen by `delta`, but not below `stop`.
    pub(super) fn until(self, delta: f64) -> Self {
        Self { stop: self.stop.max(self.rr * delta * delta), ..self }
    }
}

/// The end of a cycle.
pub(super) struct Ended {
    /// Its directions cannot be reused.
    pub broke_down: bool,
    /// The square of the true residual up to which the iteration keeps its trust.
    pub allowed: f64,
}

/// An iteration between two computations of the true residual.
pub(super) trait Cycle {
    /// The precision of the iteration while it is trusted.
    fn precision(&self) -> Precision;

    /// Whether it can run in double precision instead.
    fn has_double(&self) -> bool {
        true
    }

    /// Corrects `x`. The true residual is in `outer`; the cycle may overwrite its fields.
    ///
    /// # Errors
    /// A number is infinite or NaN, or a step of conjugate gradients negative; in low precision x is then unchanged.
    fn run(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        outer: &mut Outer,
        stage: Stage,
        info: &mut Info,
    ) -> Result<Ended, SolverError>;
}

/// Fields of the outer iteration, in double precision.
pub(super) struct Outer {
    pub residual: Spinor,
    pub product: Spinor,
    /// `M x`, for the normal equations.
    pub middle: Option<Spinor>,
}

impl Outer {
    /// Workspace for systems of one kind of matrix.
    pub(super) fn new(domain: &Arc<Domain>, kind: Kind, matrix: Matrix) -> Result<Self, FieldError> {
        let spinor = || Spinor::of(domain, kind, Precision::Double, 1);
        let normal = matches!(matrix, Matrix::Normal { .. });
        Ok(Self { residual: spinor()?, product: spinor()?, middle: normal.then(spinor).transpose()? })
    }

    /// `residual = b - A x`; returns its square.
    pub(super) fn residual(
        &mut self,
        system: &mut System,
        x: &Spinor,
        b: &Spinor,
        info: &mut Info,
    ) -> Result<f64, FieldError> {
        system.apply(Precision::Double, &mut self.product, self.middle.as_mut(), x, info)?;
        self.residual.copy_from(b)?;
        self.residual.axpy_norm2(-1.0, &self.product)?.value()
    }
}

/// Solves the system by cycles, from the guess in `x`.
pub(super) fn refine(
    cycle: &mut dyn Cycle,
    outer: &mut Outer,
    system: &mut System,
    x: &mut Spinor,
    b: &Spinor,
    params: Params,
) -> Result<Info, SolverError> {
    let clock = Clock::new(system.operators.double.domain());
    let mut info = Info::default();
    let norm_b = b.norm2()?.value();
    if norm_b == 0.0 {
        x.set_zero()?;
        return Ok(info);
    }
    let lower = system.operators.lower(cycle.precision()).is_some() || !cycle.has_double();
    let mut stage = Stage {
        rr: outer.residual(system, x, b, &mut info)?,
        stop: params.residual * params.residual * norm_b,
        max_iterations: params.max_iterations,
        fresh: true,
        trust: if lower { Trust::Reliable } else { Trust::Double },
    };
    loop {
        let Stage { rr: before, stop: target, trust, .. } = stage;
        info.residual = (before / norm_b).sqrt();
        if !before.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        if before <= target {
            clock.stop(&mut info);
            return Ok(info);
        }
        let lost = trust == Trust::Double && !cycle.has_double();
        if info.iterations >= params.max_iterations || lost {
            return Err(info.failed(params.residual));
        }
        let mut broke_down = false;
        match cycle.run(system, x, outer, stage, &mut info) {
            Ok(ended) => {
                stage.rr = outer.residual(system, x, b, &mut info)?;
                stage.trust = trust.after(before, stage.rr, target.max(ended.allowed), &mut info);
                broke_down = ended.broke_down;
            }
            // The next precision may succeed where this one fails.
            Err(SolverError::NotFinite { .. }) if trust < Trust::Double => {
                stage.trust = trust.less(&mut info);
            }
            Err(error) => return Err(error),
        }
        // Keep the directions, unless the iteration failed or its precision changed.
        stage.fresh =
            broke_down || stage.trust == Trust::DefectCorrection || stage.trust != trust || stage.rr > before;
        info.updates += 1;
    }
}
