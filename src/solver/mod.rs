//! Solvers of `M x = b` and `M^dag M x = b`, in one precision or several.
//!
//! - `cg`: conjugate gradients on the normal equations
//! - `block`: conjugate gradients on several right-hand sides at once
//! - `bicgstab`: stabilised biconjugate gradients
//! - `gcr`: generalised conjugate residuals, preconditioned by `schwarz`
//! - `schwarz`: additive Schwarz, minimal residual steps in blocks
//! - `normal`: `M^dag M x = b` by any of them
//! - `multishift`: conjugate gradients with many shifts at once
//! - `keys`: the keys of solvers in an input
//! - `guess`: where to start, from past solutions
//! - `spectrum`: the ends of the spectrum of `M^dag M`
//!
//! Every solve ends with the true residual in double, checked.

mod bicgstab;
mod block;
mod cg;
mod gcr;
mod guess;
pub(crate) mod keys;
mod multishift;
mod normal;
mod schwarz;
mod spectrum;

pub use bicgstab::BiCgStab;
pub use block::BlockCg;
pub use cg::Cg;
pub use gcr::{Gcr, GcrParams};
pub use guess::Guess;
pub use keys::TermSolver;
pub use multishift::{MultiInfo, MultiShift};
pub use normal::{Method, NormalSolver, Settings, usual_delta};
pub use spectrum::{Bounds, bounds, greatest};

use crate::device::Precision;
use crate::field::{Domain, FieldError, Spinor};
use crate::operator::Operator;
use std::sync::Arc;
use std::time::Instant;

/// An operator in the precisions that a solve may use; for GCR-DD, the preconditioner's has blocks.
pub struct Operators<'a> {
    /// The final judge.
    pub double: &'a mut dyn Operator,
    /// In single.
    pub single: Option<&'a mut dyn Operator>,
    /// In half.
    pub half: Option<&'a mut dyn Operator>,
}

impl Operators<'_> {
    /// The one in `precision`.
    ///
    /// # Panics
    /// There is none.
    pub fn at(&mut self, precision: Precision) -> &mut dyn Operator {
        match precision {
            Precision::Double => self.double,
            Precision::Single => *self.single.as_mut().expect("an operator in single"),
            Precision::Half => *self.half.as_mut().expect("an operator in half"),
        }
    }

    /// The one in double, and the one in `precision` where that is lower.
    fn pair(&mut self, precision: Precision) -> (&mut dyn Operator, Option<&mut dyn Operator>) {
        let lower = match precision {
            Precision::Double => None,
            Precision::Single => self.single.as_mut().map(|o| &mut **o as &mut dyn Operator),
            Precision::Half => self.half.as_mut().map(|o| &mut **o as &mut dyn Operator),
        };
        (self.double, lower)
    }
}

/// What a solve must reach.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// `|b - M x| / |b|`, or `|b - M^dag M x| / |b|`.
    pub residual: f64,
    /// More are an error.
    pub max_iterations: usize,
}

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
    fn apply(
        &mut self,
        operator: &mut dyn Operator,
        out: &mut Spinor,
        x: &Spinor,
        dagger: bool,
    ) -> Result<(), FieldError> {
        let domain = Arc::clone(operator.domain());
        self.applications += 1;
        self.operator_seconds += timed(&domain, || operator.apply(out, x, dagger))?;
        Ok(())
    }

    /// `out = M^dag x + shift y` on the whole lattice, counted and timed.
    fn apply_adjoint_plus(
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

    fn failed(&self, wanted: f64) -> SolverError {
        SolverError::NotConverged { iterations: self.iterations, residual: self.residual, wanted }
    }
}

/// Seconds of `work`; of a device that works on behind the host's back, where the domain is profiled.
fn timed(domain: &Domain, work: impl FnOnce() -> Result<(), FieldError>) -> Result<f64, FieldError> {
    let wait = || if domain.is_profiled() { domain.device().synchronize() } else { Ok(()) };
    wait()?;
    let start = Instant::now();
    work()?;
    wait()?;
    Ok(start.elapsed().as_secs_f64())
}

/// How far the iteration in low precision is trusted. Whenever its residual, computed anew, has not
/// fallen, it is trusted less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// Directions live on over updates.
    Reliable,
    /// Every update starts anew.
    DefectCorrection,
    /// Iterations in double.
    Double,
}

impl Trust {
    /// An update that leaves more than this of the residual's square is a failure.
    const LEAST: f64 = 0.25;

    /// After an update that brought the residual's square from `before` to `now`, `target` being asked for.
    fn after(self, before: f64, now: f64, target: f64, info: &mut Info) -> Self {
        if now <= target.max(Self::LEAST * before) { self } else { self.less(info) }
    }

    fn less(self, info: &mut Info) -> Self {
        info.fallbacks += 1;
        match self {
            Self::Reliable => Self::DefectCorrection,
            _ => Self::Double,
        }
    }
}

/// Why a solve failed.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// The residual did not come down.
    #[error(
        "the solver did not converge: residual {residual:.3e} after {iterations} iterations, {wanted:.1e} was asked for"
    )]
    NotConverged {
        /// Iterations done.
        iterations: usize,
        /// True relative residual reached.
        residual: f64,
        /// The one asked for.
        wanted: f64,
    },
    /// The ends of the spectrum did not settle.
    #[error(
        "the ends of the operator's spectrum did not converge: relative error {error:.1e} after {iterations} iterations, \
         {wanted:.1e} was asked for"
    )]
    Spectrum {
        /// Iterations done.
        iterations: usize,
        /// Bound of the relative error of the worse end.
        error: f64,
        /// The one asked for.
        wanted: f64,
    },
    /// A number of the iteration is no number.
    #[error("the solver met {what} that is not finite after {iterations} iterations")]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Iterations done.
        iterations: usize,
    },
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl SolverError {
    /// Iterations done before it.
    fn iterations(&self) -> usize {
        match *self {
            Self::NotConverged { iterations, .. }
            | Self::Spectrum { iterations, .. }
            | Self::NotFinite { iterations, .. } => iterations,
            Self::Field(_) => 0,
        }
    }
}
