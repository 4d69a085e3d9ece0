//! Observables on a configuration.
//!
//! - `polyakov`: the Polyakov loop in t
//! - `flow`: the gradient flow with E, Q, t0 and w0
//! - `correlator`: pseudoscalar correlators from point sources

mod correlator;
mod flow;
mod polyakov;

pub use correlator::{CorrelatorParams, pion};
pub use flow::{FlowKernel, FlowPoint, flow, reference_scales};
pub use polyakov::polyakov;

use crate::field::FieldError;
use crate::operator::OperatorError;
use crate::solver::SolverError;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
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
