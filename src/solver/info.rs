//! Statistics and timings of a solve.

use super::SolverError;
use crate::field::{Dagger, Domain, FieldError, Spinor};
use crate::operator::Operator;
use std::sync::Arc;
use std::time::Instant;

/// Statistics of a solve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Info {
    /// Iterations, not counting updates.
    pub iterations: usize,
    /// Recomputations of the residual: reliable updates, restarts.
    pub updates: usize,
    /// Fallbacks after a failure of the iteration: first to defect correction, then to iterations in double precision.
    pub fallbacks: usize,
    /// Applications of M or its adjoint on the whole lattice, including halos.
    pub applications: usize,
    /// Final true relative residual.
    pub residual: f64,
    /// Wall time.
    pub seconds: f64,
    /// Wall time in the operator, including halos. On a GPU, which works asynchronously, 0 unless the domain is
    /// [profiled](crate::field::Domain::profile).
    pub operator_seconds: f64,
    /// Wall time in the preconditioner, as `operator_seconds`.
    pub preconditioner_seconds: f64,
    /// Coarse iterations, of multigrid.
    pub coarse_iterations: usize,
    /// Those of its third level.
    pub coarsest_iterations: usize,
    /// Wall time of coarse solves, as `operator_seconds`.
    pub coarse_seconds: f64,
    /// How often the preconditioner was set up or adapted to new links.
    pub setups: usize,
    /// Wall time in which the preconditioner was set up or adapted to new links.
    pub setup_seconds: f64,
    /// Wall time of communication that is not hidden by work, and of waiting for other ranks' sums.
    pub communication_seconds: f64,
}

impl Info {
    /// Adds another solve; the residual is the greater one.
    pub fn add(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.updates += other.updates;
        self.fallbacks += other.fallbacks;
        self.applications += other.applications;
        self.residual = self.residual.max(other.residual);
        self.seconds += other.seconds;
        self.operator_seconds += other.operator_seconds;
        self.preconditioner_seconds += other.preconditioner_seconds;
        self.coarse_iterations += other.coarse_iterations;
        self.coarsest_iterations += other.coarsest_iterations;
        self.coarse_seconds += other.coarse_seconds;
        self.setups += other.setups;
        self.setup_seconds += other.setup_seconds;
        self.communication_seconds += other.communication_seconds;
    }

    /// Counts a solve, also one that failed. A solve that missed its goal may still suffice, as the true residual shows. Returns
    /// `false` if the method stagnated, or a number was infinite or NaN: the solution is then useless.
    pub(super) fn count(&mut self, solve: Result<Self, SolverError>) -> Result<bool, FieldError> {
        match solve {
            Ok(done) => self.add(&done),
            Err(SolverError::Field(error)) => return Err(error),
            Err(error @ SolverError::NotConverged { .. }) => self.iterations += error.iterations(),
            Err(error) => {
                self.iterations += error.iterations();
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `out = M x` on the whole lattice, with statistics.
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

    /// `middle = M x` and `out = M^dag middle + shift x` on the whole lattice, with statistics.
    pub(super) fn apply_normal(
        &mut self,
        operator: &mut dyn Operator,
        out: &mut Spinor,
        middle: &mut Spinor,
        x: &Spinor,
        shift: f64,
    ) -> Result<(), FieldError> {
        let domain = Arc::clone(operator.domain());
        self.applications += 2;
        self.operator_seconds += timed(&domain, || operator.apply_normal(out, middle, x, shift))?;
        Ok(())
    }

    pub(super) fn failed(&self, wanted: f64) -> SolverError {
        SolverError::NotConverged { iterations: self.iterations, residual: self.residual, wanted }
    }
}

/// Seconds of `work`; 0 on an asynchronous device, unless the domain is profiled.
pub(super) fn timed(
    domain: &Domain,
    work: impl FnOnce() -> Result<(), FieldError>,
) -> Result<f64, FieldError> {
    let (profiled, later) = (domain.is_profiled(), domain.device().nature().is_gpu);
    if later && !profiled {
        return work().map(|()| 0.0);
    }
    let wait = || if profiled { domain.device().synchronize() } else { Ok(()) };
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
    pub(super) fn new(domain: &Arc<Domain>) -> Self {
        Self { domain: Arc::clone(domain), start: Instant::now(), waited: domain.communication_seconds() }
    }

    /// Sets the wall time of the solve, and its time in communication.
    pub(super) fn stop(&self, info: &mut Info) {
        info.seconds = self.start.elapsed().as_secs_f64();
        info.communication_seconds = self.domain.communication_seconds() - self.waited;
    }
}
