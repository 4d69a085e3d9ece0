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

use crate::action::ActionError;

/// Why a measurement failed.
pub type MeasureError = ActionError;
