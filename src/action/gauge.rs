//! Gauge actions: `S = beta sum_x { c0 sum (1 - Re tr P / 3) + c1 sum (1 - Re tr R / 3) + c2 sum (..) }`.

use super::{Action, ActionError};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use crate::math::ExactSum;
use crate::operator::{GaugeLoops, WallWeights};
use std::sync::Arc;

/// The gauge action.
///
/// ```
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let mut wilson = GaugeAction::new(&domain, 6.0, [1.0, 0.0, 0.0])?;
/// assert_eq!(wilson.value(&MatrixField::cold(&domain)?)?.value(), 0.0);
/// // beta times a sum over six plaquettes per site.
/// let links = MatrixField::hot(&domain, 1)?;
/// let plaquette = GaugeLoops::traces(&links)?.plaquette();
/// let expected = 6.0 * 6.0 * 256.0 * (1.0 - plaquette);
/// assert!((wilson.value(&links)?.value() / expected - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GaugeAction {
    loops: GaugeLoops,
}

impl GaugeAction {
    /// With `beta` and the coefficients of plaquette, rectangle and parallelogram.
    pub fn new(domain: &Arc<Domain>, beta: f64, coefficients: [f64; 3]) -> Result<Self, FieldError> {
        let [plaquette, rectangle, parallelogram] = coefficients.map(|c| beta * c);
        Ok(Self { loops: GaugeLoops::new(domain, plaquette, rectangle, parallelogram)? })
    }

    /// With these coefficients c_G of loops at the lower and the upper wall in time.
    #[must_use]
    pub fn with_c_g(self, c_g: [f64; 2]) -> Self {
        Self { loops: self.loops.with_walls(WallWeights::of_action(c_g)) }
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
