//! Measurements on the links of one configuration.

use super::assemble;
use crate::app::AppError;
use crate::family::Fermion;
use crate::field::MatrixField;
use crate::measure::{Context, Fermions, Found, Measure, MeasureError, Measured, Noise, QuarkChoice, Stop};
use crate::quark::{HopDerivative, Inverse, RootError, TwistedInverse};
use serde::Serialize;

/// What was measured on a configuration: a line of `measurements.jsonl`, before its checksum, or of `hmc measure --json`.
#[derive(Serialize)]
pub(in crate::app) struct Line {
    /// The configuration, as it was named; only in `hmc measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Trajectories done; `null` if the file does not say.
    pub trajectory: Option<u64>,
    /// Fields of the line itself, of one observable after the other.
    #[serde(flatten)]
    pub observables: Found,
}

/// The quarks of an input on the links of one configuration.
struct Quarks<'a> {
    links: &'a MatrixField,
    fermions: &'a [Fermion],
}

impl Fermions for Quarks<'_> {
    fn inverse(&mut self, choice: &QuarkChoice) -> Result<Box<dyn Inverse>, MeasureError> {
        assemble::quark(self.links, self.fermions, choice)
    }

    fn twisted(&mut self, choice: &QuarkChoice, mu: f64) -> Result<Box<dyn TwistedInverse>, MeasureError> {
        assemble::twisted(self.links, self.fermions, choice, mu)
    }

    fn root_error(&mut self, choice: &QuarkChoice) -> Result<Box<dyn RootError>, MeasureError> {
        assemble::root_error(self.links, self.fermions, choice)
    }

    fn derivative(
        &mut self,
        choice: &QuarkChoice,
        order: u32,
    ) -> Result<Box<dyn HopDerivative>, MeasureError> {
        assemble::derivative(self.links, self.fermions, choice, order)
    }
}

/// Makes the measurements of `measure`; `noise` is the key of random sources.
///
/// # Errors
/// A solve failed, or `stop` requested a stop.
pub(in crate::app) fn observables(
    links: &MatrixField,
    measure: &Measure,
    fermions: &[Fermion],
    noise: Noise,
    stop: Stop,
) -> Result<Measured, AppError> {
    let mut fermions = Quarks { links, fermions };
    Ok(measure.run(&mut Context { links, fermions: &mut fermions, noise, stop })?)
}
