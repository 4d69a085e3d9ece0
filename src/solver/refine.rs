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

/// A system between its cycles.
pub(super) struct Refinement {
    pub info: Info,
    stage: Stage,
    wanted: f64,
    norm_b: f64,
    has_double: bool,
}

impl Refinement {
    /// A system with the guess `x`, for an iteration that is trusted so far at first, and that may run in double precision or not.
    pub(super) fn begin(
        (trust, has_double): (Trust, bool),
        outer: &mut Outer,
        system: &mut System,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Self, FieldError> {
        let mut info = Info::default();
        let norm_b = b.norm2()?.value();
        let rr = if norm_b == 0.0 {
            x.set_zero()?;
            0.0
        } else {
            outer.residual(system, x, b, &mut info)?
        };
        let stage = Stage {
            rr,
            stop: params.residual * params.residual * norm_b,
            max_iterations: params.max_iterations,
            fresh: true,
            trust,
        };
        Ok(Self { info, stage, wanted: params.residual, norm_b, has_double })
    }

    /// What the next cycle is to do; nothing if the system is solved.
    pub(super) fn next(&mut self) -> Result<Option<Stage>, SolverError> {
        let Self { info, stage: Stage { rr, stop, max_iterations, trust, .. }, norm_b, .. } = self;
        if *norm_b == 0.0 {
            return Ok(None);
        }
        info.residual = (*rr / *norm_b).sqrt();
        if !rr.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        if *rr <= *stop {
            return Ok(None);
        }
        let lost = *trust == Trust::Double && !self.has_double;
        if info.iterations >= *max_iterations || lost {
            return Err(info.failed(self.wanted));
        }
        Ok(Some(self.stage))
    }

    /// Judges a cycle, which has changed `x`.
    pub(super) fn judge(
        &mut self,
        ended: &Ended,
        outer: &mut Outer,
        system: &mut System,
        [x, b]: [&Spinor; 2],
    ) -> Result<(), FieldError> {
        let Self { info, stage, .. } = self;
        let Stage { rr: before, stop: target, trust, .. } = *stage;
        stage.rr = outer.residual(system, x, b, info)?;
        stage.trust = trust.after(before, stage.rr, target.max(ended.allowed), info);
        // Keep the directions, unless the iteration failed or its precision changed.
        stage.fresh = ended.broke_down
            || stage.trust == Trust::DefectCorrection
            || stage.trust != trust
            || stage.rr > before;
        info.updates += 1;
        Ok(())
    }

    /// After a cycle that failed: the next precision may succeed where this one met a number that is not finite.
    fn failed(&mut self, error: SolverError) -> Result<(), SolverError> {
        let Self { info, stage, .. } = self;
        if !matches!(error, SolverError::NotFinite { .. }) || stage.trust == Trust::Double {
            return Err(error);
        }
        stage.trust = stage.trust.less(info);
        stage.fresh = true;
        info.updates += 1;
        Ok(())
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
    let lower = system.operators.lower(cycle.precision()).is_some();
    let trust = if lower { Trust::Reliable } else { Trust::Double };
    let mut own = Refinement::begin((trust, true), outer, system, x, b, params)?;
    while let Some(stage) = own.next()? {
        let before = own.info.iterations;
        match cycle.run(system, x, outer, stage, &mut own.info) {
            Ok(ended) => own.judge(&ended, outer, system, [x, b])?,
            Err(error) => own.failed(error)?,
        }
        // A goal that is NaN lets a cycle end before its first step, again and again.
        if stage.trust == Trust::Double && own.info.iterations == before && own.next()?.is_some() {
            return Err(SolverError::Stagnated { iterations: before });
        }
    }
    clock.stop(&mut own.info);
    Ok(own.info)
}
