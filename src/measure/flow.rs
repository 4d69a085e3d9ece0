//! The gradient flow `dV/dt = -g0^2 (dS) V` (Luscher, arXiv:1006.4518), by his third-order scheme (appendix C):
//!
//! ```text
//! W1 = exp(Z0/4) W0,  W2 = exp(8 Z1/9 - 17 Z0/36) W1,  W3 = exp(3 Z2/4 - 8 Z1/9 + 17 Z0/36) W2.
//! ```
//!
//! t in lattice units; E a site; t0 and w0 where t^2 E and t d/dt t^2 E are 0.3 (Borsanyi et al., arXiv:1203.4469).

use super::{MeasureError, Stop};
use crate::field::{AlgebraField, FieldError, MatrixField};
use crate::operator::{GaugeLoops, field_energy};

/// The action that drives the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKernel {
    /// Plaquettes.
    Wilson,
    /// Plaquettes and rectangles: c1 = -1/12.
    Symanzik,
}

/// Observables at one flow time.
#[derive(Clone, Copy, Debug)]
pub struct FlowPoint {
    /// Flow time.
    pub t: f64,
    /// `E = 2 sum_{mu<nu} Re tr (1 - P)` a site.
    pub e_plaquette: f64,
    /// E of the clover field strength.
    pub e_clover: f64,
    /// Topological charge.
    pub q: f64,
}

/// Flows a copy of `links` to `t_max` in steps of `step`; a point at t = 0 and after each `every` steps.
///
/// # Errors
/// The device is lost, or the flow was told to stop.
pub fn flow(
    links: &MatrixField,
    kernel: FlowKernel,
    step: f64,
    t_max: f64,
    every: usize,
    stop: Stop,
) -> Result<Vec<FlowPoint>, MeasureError> {
    let domain = links.domain();
    let c1 = if kernel == FlowKernel::Symanzik { -1.0 / 12.0 } else { 0.0 };
    // g0^2 S does not depend on the coupling: beta = 6.
    let loops = GaugeLoops::new(domain, 6.0 * (1.0 - 8.0 * c1), 6.0 * c1, 0.0)?;
    let mut v = MatrixField::new(domain, 4)?;
    v.copy_from(links)?;
    let (mut force, mut z) = (AlgebraField::new(domain)?, AlgebraField::new(domain)?);
    let mut points = vec![point(&v, 0.0)?];
    let steps = (t_max / step).round() as usize;
    for n in 1..=steps {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        // z accumulates the exponent; a force is -Z / step.
        for (old, new) in [(0.0, -0.25), (-17.0 / 9.0, -8.0 / 9.0), (-1.0, -0.75)] {
            force.set_zero()?;
            loops.add_force(&v, &mut force, 1.0)?;
            z.combine(old, new * step, &force)?;
            z.drift(&mut v, 1.0)?;
        }
        if n % every == 0 {
            points.push(point(&v, n as f64 * step)?);
        }
    }
    Ok(points)
}

fn point(v: &MatrixField, t: f64) -> Result<FlowPoint, FieldError> {
    let (e_clover, q) = field_energy(v)?;
    let e_plaquette = 36.0 * (1.0 - GaugeLoops::traces(v)?.plaquette());
    Ok(FlowPoint { t, e_plaquette, e_clover, q })
}

/// t0 and w0 of the clover E, interpolated linearly; `None` where the flow ends before.
pub fn reference_scales(points: &[FlowPoint]) -> (Option<f64>, Option<f64>) {
    const LEVEL: f64 = 0.3;
    let squared: Vec<(f64, f64)> = points.iter().map(|p| (p.t, p.t * p.t * p.e_clover)).collect();
    let slopes: Vec<(f64, f64)> = squared
        .windows(2)
        .map(|w| {
            let t = 0.5 * (w[0].0 + w[1].0);
            (t, t * (w[1].1 - w[0].1) / (w[1].0 - w[0].0))
        })
        .collect();
    let crossing = |curve: &[(f64, f64)]| {
        curve
            .windows(2)
            .find(|w| w[0].1 < LEVEL && w[1].1 >= LEVEL)
            .map(|w| w[0].0 + (LEVEL - w[0].1) / (w[1].1 - w[0].1) * (w[1].0 - w[0].0))
    };
    (crossing(&squared), crossing(&slopes).map(f64::sqrt))
}
