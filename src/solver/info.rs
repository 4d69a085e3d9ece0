//! What a solve did, and how long it took.

use super::SolverError;
use crate::field::{Dagger, Domain, FieldError, Spinor};
use crate::operator::Operator;
use std::sync::Arc;
use std::time::Instant;

/// What a solve did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Info {
    /// Iterations, without the work of the updates.
    pub iterations: usize,
    /// Times the residual was computed anew: reliable updates, restarts.
    pub updates: usize,
    /// Times the iteration lost its way and the solver fell back: first to defect correction, then to
    /// iterations in double.
    pub fallbacks: usize,
    /// Applications of M or its adjoint on the whole lattice, each with its halos.
    pub applications: usize,
    /// True relative residual at the end.
    pub residual: f64,
    /// Wall time.
    pub seconds: f64,
    /// Wall time in the operator, halos included. On a GPU, whose work goes on behind the host's, only
    /// where the domain is [profiled](crate::field::Domain::profile).
    pub operator_seconds: f64,
    /// Wall time in the preconditioner, as `operator_seconds`.
    pub preconditioner_seconds: f64,
    /// Wall time in messages that no work hides, and in waiting for other ranks' sums.
    pub communication_seconds: f64,
}

impl Info {
    /// Adds what another solve did; the residual is the greater.
    pub fn add(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.updates += other.updates;
        self.fallbacks += other.fallbacks;
        self.applications += other.applications;
        self.residual = self.residual.max(other.residual);
        self.seconds += other.seconds;
        self.operator_seconds += other.operator_seconds;
        self.preconditioner_seconds += other.preconditioner_seconds;
        self.communication_seconds += other.communication_seconds;
    }

    /// `out = M x` on the whole lattice, counted and timed.
    pub(super) fn apply(
        &mut self,
        operator: &mut dyn Operator,
        out: &mut Spinor,
        x: &Spinor,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let domain = Arc::clone(operator.domain());
        self.applications += 1;
        self.operator_seconds += timed(&domain, || operator.apply(out, x, dagger))?;
        Ok(())
    }

    /// `out = M^dag x + shift y` on the whole lattice, counted and timed.
    pub(super) fn apply_adjoint_plus(
        &mut self,
        operator: &mut dyn Operator,
        out: &mut Spinor,
        x: &Spinor,
        shift: f64,
        y: &Spinor,
    ) -> Result<(), FieldError> {
        let domain = Arc::clone(operator.domain());
        self.applications += 1;
        self.operator_seconds += timed(&domain, || operator.apply_adjoint_plus(out, x, shift, y))?;
        Ok(())
    }

    pub(super) fn failed(&self, wanted: f64) -> SolverError {
        SolverError::NotConverged { iterations: self.iterations, residual: self.residual, wanted }
    }
}

/// Seconds of `work`; of a device that works on behind the host's back, where the domain is profiled.
pub(super) fn timed(
    domain: &Domain,
    work: impl FnOnce() -> Result<(), FieldError>,
) -> Result<f64, FieldError> {
    let wait = || if domain.is_profiled() { domain.device().synchronize() } else { Ok(()) };
    wait()?;
    let start = Instant::now();
    work()?;
    wait()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Time since the start of a solve.
pub(super) struct Clock {
    domain: Arc<Domain>,
    start: Instant,
    waited: f64,
}

impl Clock {
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self { domain: Arc::clone(domain), start: Instant::now(), waited: domain.communication_seconds() }
    }

    /// Sets the wall time of the solve, and that of it which messages took.
    pub fn stop(&self, info: &mut Info) {
        info.seconds = self.start.elapsed().as_secs_f64();
        info.communication_seconds = self.domain.communication_seconds() - self.waited;
    }
}
