//! Gauge actions: `S = beta sum_x { c0 sum (1 - Re tr P / 3) + c1 sum (1 - Re tr R / 3) + c2 sum (..) }`.

use super::{Action, ActionError};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use crate::math::ExactSum;
use crate::operator::GaugeLoops;
use std::sync::Arc;

/// The gauge action.
pub struct GaugeAction {
    loops: GaugeLoops,
}

impl GaugeAction {
    /// With `beta` and the coefficients of plaquette, rectangle and parallelogram.
    pub fn new(domain: &Arc<Domain>, beta: f64, coefficients: [f64; 3]) -> Result<Self, FieldError> {
        let [plaquette, rectangle, parallelogram] = coefficients.map(|c| beta * c);
        Ok(Self { loops: GaugeLoops::new(domain, plaquette, rectangle, parallelogram)? })
    }
}

impl Action for GaugeAction {
    fn name(&self) -> &str {
        "gauge"
    }

    fn refresh(&mut self, links: &MatrixField, _: u64, _: u64) -> Result<ExactSum, ActionError> {
        self.value(links)
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        Ok(self.loops.action(links)?)
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.loops.add_force(links, force, 1.0)?;
        Ok(0)
    }
}
