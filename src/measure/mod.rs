//! Observables on a configuration.
//!
//! - `polyakov`: the Polyakov loop in t
//! - `flow`: the gradient flow with E, Q, t0 and w0
//! - `allowed`: what measurements may say of a quark
//! - `keys`: the keys of `[measure]`
//! - `correlator`: pseudoscalar correlators and the residual mass
//! - `condensate`: chiral condensates by random sources

mod allowed;
mod condensate;
mod correlator;
mod flow;
pub(crate) mod keys;
mod polyakov;

pub use allowed::Wanted;
pub(crate) use allowed::{Allowed, MassOf};
pub use condensate::{Condensate, Noise, condensate};
pub use correlator::{Correlators, ResidualMass, Source, correlators, pion};
pub use flow::{FlowKernel, FlowPoint, flow, reference_scales};
pub use polyakov::polyakov;

use crate::field::FieldError;
use crate::operator::OperatorError;
use crate::quark::QuarkError;
use crate::solver::SolverError;

/// Asked before each step of a flow and each solve: whether to stop there. The same on all ranks, and collective.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It was told to stop.
    #[error("stopped before its end")]
    Stopped,
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// An operator failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A solve failed.
    #[error(transparent)]
    Solver(#[from] SolverError),
}

impl From<QuarkError> for MeasureError {
    fn from(error: QuarkError) -> Self {
        match error {
            QuarkError::Operator(error) => Self::Operator(error),
            QuarkError::Solver(error) => Self::Solver(error),
        }
    }
}
