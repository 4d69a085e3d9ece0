//! Observables on a configuration.
//!
//! - `observable`: the trait of observables, and what they work on
//! - `register`: the list of all, and the measurements of an input
//! - `keys`: keys that several observables share
//! - `report`: results as text
//! - `loops`: plaquettes and rectangles
//! - `line`: products of links along straight lines
//! - `polyakov`: the Polyakov loop in t
//! - `wilson_loops`: Wilson loops and the static potential
//! - `flow`: the gradient flow with E, Q, t0 and w0
//! - `allowed`: what measurements may set for a quark
//! - `propagator`: the propagator from all components of a source
//! - `gamma`: products of gamma matrices
//! - `contraction`: contractions of propagators, summed over time slices
//! - `correlator`: pseudoscalar correlators and the residual mass
//! - `meson`: two-point functions of mesons with momentum
//! - `condensate`: chiral condensates from random sources
//! - `mu_derivative`: traces of derivatives in the chemical potential
//! - `reweighting`: reweighting factors of twisted masses, kappas, rational functions and signs
//! - `sign`: the sign of a determinant, by eigenvalues along a path of masses
//! - `spectrum`: the ends of the spectrum of Wilson quarks

mod allowed;
mod condensate;
mod contraction;
mod correlator;
mod flow;
mod gamma;
mod keys;
mod line;
mod loops;
mod meson;
mod mu_derivative;
mod observable;
mod polyakov;
mod propagator;
mod register;
mod report;
mod reweighting;
mod sign;
mod spectrum;
mod wilson_loops;

pub use allowed::Wanted;
pub(crate) use allowed::{Allowed, MassOf};
pub use condensate::{Condensate, CondensateMean, condensate};
pub use contraction::{Density, Momentum};
pub use correlator::{Correlator, Correlators, ResidualMass, correlators, pion};
pub use flow::{Flow, FlowKernel, FlowPoint, FlowSlices, flow, flow_by_slice, reference_scales};
pub use gamma::Gamma;
pub(crate) use keys::chosen_quark;
pub use loops::Loops;
pub use meson::{Channel, Meson, mesons};
pub use mu_derivative::{MuDerivative, MuTraces, Trace, mu_traces};
pub use observable::{Context, Fermions, Found, NoFermions, Noise, Observable, QuarkChoice};
pub(crate) use observable::{FermionKeys, Reading};
pub use polyakov::{Polyakov, polyakov};
pub use propagator::{Keep, Propagator, Source};
pub(crate) use register::{MEASURE, MEASURE_SEED};
pub use register::{Measure, Measured};
pub use reweighting::{Regulator, Reweighting, Weight};
pub use spectrum::Spectrum;
pub use wilson_loops::{WilsonLoops, wilson_loops};

use crate::field::FieldError;
use crate::operator::OperatorError;
use crate::quark::QuarkError;
use crate::solver::SolverError;

/// Whether to stop; called before each step of a flow and before each solve. Collective: all ranks get the same answer.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It was stopped.
    #[error("stopped before its end")]
    Stopped,
    /// It does not fit the lattice of the configuration.
    #[error("{0}")]
    Refused(String),
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
