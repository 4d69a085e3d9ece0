//! The gradient flow `dV/dt = -g0^2 (dS) V` (Luscher, arXiv:1006.4518), by the third-order scheme of its appendix C:
//!
//! ```text
//! W1 = exp(Z0/4) W0,  W2 = exp(8 Z1/9 - 17 Z0/36) W1,  W3 = exp(3 Z2/4 - 8 Z1/9 + 17 Z0/36) W2.
//! ```
//!
//! With an error given, steps are halved until W3 is near that of second order with the same stages, `exp(2 Z1 - Z0) W0`, and
//! doubled where it is much nearer (Wandelt, Guenther, DOI 10.1137/15M1016138, have the idea for Lie groups).
//!
//! t is in lattice units, E is per site. t0 and w0 are defined by t^2 E = 0.3 and t d/dt t^2 E = 0.3 (Borsanyi et al.,
//! arXiv:1203.4469). They are found on the flow's own steps: `every` does not change them.
//!
//! The Zeuthen flow (Ramos, Sint, arXiv:1508.05552) has the tree-level improved action, and `1 + D_mu D_mu^* / 12` before
//! its force.
//!
//! Input: `[measure.flow]` with `kernel`, `step`, `error`, `t_max`, `every`, `slices`.

use super::observable::{Context, Found, Keys, Observable, Reading, Registered, record};
use super::{MeasureError, Stop};
use crate::config::forms::POSITIVE;
use crate::config::key::{Absent, Bound, Change, Key, integer, number, words};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::field::{AlgebraField, FieldError, MatrixField};
use crate::operator::{GaugeLoops, WallWeights, Zeuthen, field_energy, slice_energy, slice_field_energy};
use serde::Serialize;
use std::sync::Arc;

/// A flow of more steps causes a warning.
const MOST_STEPS: f64 = 100_000.0;

/// The observable `[measure.flow]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The action that drives the flow.
    pub kernel: FlowKernel,
    /// Step in flow time.
    pub step: f64,
    /// How far a step may be from that of second order, if steps are chosen by their error.
    pub error: Option<f64>,
    /// Last flow time.
    pub t_max: f64,
    /// Steps between measurements.
    pub every: usize,
    /// Whether each slice is measured by itself too.
    pub slices: bool,
}

/// Its fields in the JSON object.
#[derive(Serialize)]
struct FlowFound {
    /// One entry per measured flow time.
    flow: Vec<FlowPoint>,
    /// The same by slice, if that is wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flow_slices: Vec<FlowSlices>,
    /// t0; null if the flow ends before.
    t0: Option<f64>,
    /// w0; null if the flow ends before.
    w0: Option<f64>,
}

/// The action that drives the flow.
const KERNEL: Key<FlowKernel> = Key::new(
    "kernel",
    words(&[
        ("wilson", FlowKernel::Wilson),
        ("symanzik", FlowKernel::Symanzik),
        ("iwasaki", FlowKernel::Iwasaki),
        ("dbw2", FlowKernel::Dbw2),
        ("zeuthen", FlowKernel::Zeuthen),
    ]),
    Absent::Is("\"wilson\""),
    Change::Free,
    "the action that drives the flow; `\"symanzik\"` at tree level, `\"zeuthen\"` without errors of order a^2 in the flow",
)
.note("`\"zeuthen\"` is refused between walls in time");
/// The step.
const STEP: Key<f64> = Key::new(
    "step",
    POSITIVE,
    Absent::Is("0.02"),
    Change::Free,
    "step in flow time; at most 0.15 (`\"wilson\"`), 0.09 (`\"symanzik\"`, `\"zeuthen\"`), 0.04 (`\"iwasaki\"`) or 0.012 (`\"dbw2\"`), above which the \
     integration is unstable",
)
.unit("a^2");
/// The error.
const ERROR: Key<f64> = Key::new(
    "error",
    number("an error from 1e-12 to 1e-2", Bound::With(1e-12), Bound::With(1e-2)),
    Absent::Means("none: steps of `step`"),
    Change::Free,
    "with it, each step is as long as elements of links that differ by so much from the scheme of second order allow; `step` is the first,      and counts `every` and `t_max`",
);
/// The final flow time.
const T_MAX: Key<f64> =
    Key::new("t_max", POSITIVE, Absent::Refused, Change::Free, "last flow time, a whole number of steps")
        .unit("a^2");
/// Steps between measurements.
const EVERY: Key<usize> =
    Key::new("every", integer(1, 1_000_000), Absent::Is("1"), Change::Free, "steps between measurements");
/// Each slice.
const SLICES: Key<bool> = Key::new(
    "slices",
    words(&[("on", true), ("off", false)]),
    Absent::Is("\"off\""),
    Change::Free,
    "`\"on\"`: each time slice is measured by itself too, as `flow_slices`",
);
/// `[measure.flow]`
const SECTION: Section = Section { keys: &[&KERNEL, &STEP, &ERROR, &T_MAX, &EVERY, &SLICES], tables: &[] };

pub(super) const OBSERVABLE: Registered =
    Registered { key: "flow", text: "", keys: Keys::Table(&SECTION, read) };

fn read(mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    let (kernel, step) = (table.get_or(&KERNEL, None), table.get_or(&STEP, None));
    let (t_max, every) = (table.get(&T_MAX), table.get_or(&EVERY, None));
    let (error, slices) = (table.get(&ERROR), table.get_or(&SLICES, None));
    let limit = kernel.longest_step();
    if step > limit {
        let message = format!("step: the integration is unstable at {step}; expected {limit} at most");
        table.mistake("step", message);
    } else if let Some(t_max) = t_max {
        check_length(&table, step, t_max, reading);
    }
    if kernel == FlowKernel::Zeuthen && reading.time.has_walls() {
        table.mistake("kernel", "kernel: the Zeuthen flow is not defined at walls in time");
    }
    table.finish();
    Some(Arc::new(Flow { kernel, step, error, t_max: t_max?, every, slices }))
}

/// Checks that a flow to `t_max` is a whole number of steps, not too many, and not wider than the lattice.
fn check_length(table: &Table, step: f64, t_max: f64, reading: &Reading) {
    let steps = t_max / step;
    if steps.round() < 1.0 || (steps - steps.round()).abs() > 1e-6 * steps {
        table.mistake("t_max", format!("t_max: {t_max} is not a whole number of steps of {step}"));
    }
    if steps > MOST_STEPS {
        let message = format!("t_max: {steps:.0} steps of {step} take a long time; 0.01 to 0.05 is usual");
        table.warning("t_max", message);
    }
    let (radius, least) =
        ((8.0 * t_max).sqrt(), reading.extents.and_then(|extents| extents.into_iter().min()));
    if let Some(least) = least.filter(|least| radius > *least as f64) {
        let message = format!(
            "t_max: links are smeared over sqrt(8 t) = {radius:.1}, more than the extent {least} of the lattice"
        );
        table.warning("t_max", message);
    }
}

impl Observable for Flow {
    fn border(&self) -> usize {
        GaugeLoops::reach(self.kernel.c1())
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let mut curve = Curve::default();
        let (flow, flow_slices) = walk(context.links, self, context.stop, Some(&mut curve))?;
        let (t0, w0) = reference_scales(&curve.points);
        Ok(record(&FlowFound { flow, flow_slices, t0, w0 }))
    }
}

/// The action that drives the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKernel {
    /// Plaquettes.
    Wilson,
    /// Plaquettes and rectangles: c1 = -1/12.
    Symanzik,
    /// c1 = -0.331.
    Iwasaki,
    /// c1 = -1.4088.
    Dbw2,
    /// That of `Symanzik`, with `1 + D_mu D_mu^* / 12` before its force.
    Zeuthen,
}

impl FlowKernel {
    /// The coefficient of rectangles; `c0 = 1 - 8 c1`.
    const fn c1(self) -> f64 {
        match self {
            Self::Wilson => 0.0,
            Self::Symanzik | Self::Zeuthen => -1.0 / 12.0,
            Self::Iwasaki => -0.331,
            Self::Dbw2 => -1.4088,
        }
    }

    /// The third-order scheme is stable below 2.51 over the free kernel's greatest eigenvalue, 16 (1 - 8 c1).
    const fn longest_step(self) -> f64 {
        match self {
            Self::Wilson => 0.15,
            Self::Symanzik | Self::Zeuthen => 0.09,
            Self::Iwasaki => 0.04,
            Self::Dbw2 => 0.012,
        }
    }
}

/// Observables at one flow time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FlowPoint {
    /// Flow time.
    pub t: f64,
    /// `E = 2 sum_{mu<nu} Re tr (1 - P)` per site.
    pub e_plaquette: f64,
    /// E from the clover field strength.
    pub e_clover: f64,
    /// Topological charge.
    pub q: f64,
}

/// Observables of each slice at one flow time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSlices {
    /// Flow time.
    pub t: f64,
    /// `2 sum_{mu<nu} Re tr (1 - P)` per site of a slice, half of the plaquettes that reach to the next and to the last one.
    pub e_plaquette: Vec<f64>,
    /// E from the clover field strength, per site of a slice.
    pub e_clover: Vec<f64>,
    /// Topological charge of a slice.
    pub q: Vec<f64>,
}

/// Flows a copy of `links` to `t_max` in steps of `step`; a point at t = 0 and after each `every` steps.
///
/// ```
/// use hmc::prelude::*;
/// let links = MatrixField::hot(&Domain::local([4; 4])?, 1)?;
/// let points = flow(&links, FlowKernel::Wilson, 0.02, 0.1, 1, &|| false)?;
/// assert_eq!(points.len(), 6);
/// assert!(points[5].e_plaquette < points[0].e_plaquette);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    let (points, _) =
        walk(links, &Flow { kernel, step, error: None, t_max, every, slices: false }, stop, None)?;
    Ok(points)
}

/// As [`flow`], with each slice.
///
/// # Errors
/// As [`flow`].
pub fn flow_by_slice(
    links: &MatrixField,
    kernel: FlowKernel,
    step: f64,
    t_max: f64,
    every: usize,
    stop: Stop,
) -> Result<Vec<FlowSlices>, MeasureError> {
    let (_, slices) =
        walk(links, &Flow { kernel, step, error: None, t_max, every, slices: true }, stop, None)?;
    Ok(slices)
}

/// Points of the lattice, and those of slices if they are wanted; adds E after each step to `curve`.
fn walk(
    links: &MatrixField,
    of: &Flow,
    stop: Stop,
    mut curve: Option<&mut Curve>,
) -> Result<(Vec<FlowPoint>, Vec<FlowSlices>), MeasureError> {
    let Flow { step, t_max, every, slices, .. } = *of;
    let mut flowing = Flowing::new(links, of)?;
    let first = point(&flowing.v, 0.0)?;
    curve.iter_mut().for_each(|curve| curve.add(0.0, first.e_clover));
    let (mut points, mut by_slice) = (vec![first], Vec::new());
    if slices {
        by_slice.push(slices_at(&flowing.v, 0.0)?);
    }
    let steps = (t_max / step).round() as usize;
    // Of steps with an error, only the times that are shown are fixed.
    let apart = if of.error.is_some() { every } else { 1 };
    for n in (1..=steps / apart).map(|n| n * apart) {
        let (mut now, t) = (flow_time(n - apart, step), flow_time(n, step));
        while now < t {
            if stop() {
                return Err(MeasureError::Stopped);
            }
            now = flowing.advance(now, t)?;
            let shown = now == t && n % every == 0;
            if shown {
                points.push(point(&flowing.v, t)?);
                if slices {
                    by_slice.push(slices_at(&flowing.v, t)?);
                }
            }
            if let Some(curve) = curve.as_mut().filter(|curve| !curve.is_complete()) {
                let shown = points.last().filter(|_| shown);
                let energy = || field_energy(&flowing.v).map(|(e, _)| e);
                curve.add(now, shown.map_or_else(energy, |point| Ok(point.e_clover))?);
            }
        }
    }
    Ok((points, by_slice))
}

/// Links that flow.
struct Flowing {
    step: f64,
    loops: GaugeLoops,
    zeuthen: Option<Zeuthen>,
    v: MatrixField,
    force: AlgebraField,
    z: AlgebraField,
    chosen: Option<Chosen>,
}

/// What chooses steps by their error.
struct Chosen {
    error: f64,
    /// The next step, and its limit.
    next: f64,
    longest: f64,
    /// The links before a step.
    before: MatrixField,
    /// Those of second order after it, and the exponent that leads there.
    second: MatrixField,
    exponent: AlgebraField,
}

impl Flowing {
    fn new(links: &MatrixField, of: &Flow) -> Result<Self, FieldError> {
        let (domain, c1) = (links.domain(), of.kernel.c1());
        // g0^2 S does not depend on the coupling; take beta = 6.
        let loops = GaugeLoops::new(domain, 6.0 * (1.0 - 8.0 * c1), 6.0 * c1, 0.0)?;
        let mut v = MatrixField::new(domain, 4)?;
        v.copy_from(links)?;
        let chosen = match of.error {
            None => None,
            Some(error) => Some(Chosen {
                error,
                next: of.step,
                longest: of.kernel.longest_step(),
                before: MatrixField::new(domain, 4)?,
                second: MatrixField::new(domain, 4)?,
                exponent: AlgebraField::new(domain)?,
            }),
        };
        let (force, z) = (AlgebraField::new(domain)?, AlgebraField::new(domain)?);
        let (step, loops) = (of.step, loops.with_walls(WallWeights::OF_FLOW));
        let zeuthen = (of.kernel == FlowKernel::Zeuthen).then(|| Zeuthen::new(domain)).transpose()?;
        Ok(Self { step, loops, zeuthen, v, force, z, chosen })
    }

    /// The step from `now` to `end`; if its error matters, perhaps less far. Returns the time.
    fn advance(&mut self, now: f64, end: f64) -> Result<f64, FieldError> {
        let Some(mut chosen) = self.chosen.take() else {
            return self.third_order(self.step, None).map(|()| end);
        };
        let reached = loop {
            // A remainder would be too short for a step.
            let is_last = now + 1.001 * chosen.next >= end;
            let step = if is_last { end - now } else { chosen.next };
            chosen.before.copy_from(&self.v)?;
            self.third_order(step, Some(&mut chosen.exponent))?;
            chosen.second.copy_from(&chosen.before)?;
            chosen.exponent.drift(&mut chosen.second, 1.0)?;
            let off = self.v.distance(&chosen.second)?;
            if off <= chosen.error || step < 1e-9 {
                // The distance rises with the third power of the step.
                if off < chosen.error / 16.0 && !is_last {
                    chosen.next = (2.0 * chosen.next).min(chosen.longest);
                }
                break if is_last { end } else { now + step };
            }
            chosen.next = 0.5 * step;
            self.v.copy_from(&chosen.before)?;
        };
        self.chosen = Some(chosen);
        Ok(reached)
    }

    /// A step of third order, and the exponent of that of second order with the same stages.
    fn third_order(&mut self, step: f64, mut second: Option<&mut AlgebraField>) -> Result<(), FieldError> {
        let Self { loops, zeuthen, v, force, z, .. } = self;
        // z accumulates the exponent; the force is -Z / step.
        let stages = [(0.0, -0.25), (-17.0 / 9.0, -8.0 / 9.0), (-1.0, -0.75)];
        for ((old, new), of_second) in stages.into_iter().zip([Some((0.0, 1.0)), Some((1.0, -2.0)), None]) {
            force.set_zero()?;
            loops.add_force(v, force, 1.0)?;
            if let Some(zeuthen) = zeuthen {
                zeuthen.improve(v, force)?;
            }
            z.combine(old, new * step, force)?;
            z.drift(v, 1.0)?;
            if let (Some(exponent), Some((old, new))) = (&mut second, of_second) {
                exponent.combine(old, new * step, force)?;
            }
        }
        Ok(())
    }
}

fn slices_at(v: &MatrixField, t: f64) -> Result<FlowSlices, FieldError> {
    let (e_clover, q) = slice_field_energy(v)?.into_iter().unzip();
    Ok(FlowSlices { t, e_plaquette: slice_energy(v)?, e_clover, q })
}

/// n steps, as the decimal number that is meant: 0.15, not 0.15000000000000002.
fn flow_time(n: usize, step: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    (n as f64 * step * DIGITS).round() / DIGITS
}

fn point(v: &MatrixField, t: f64) -> Result<FlowPoint, FieldError> {
    let (e_clover, q) = field_energy(v)?;
    let e_plaquette = 36.0 * (1.0 - GaugeLoops::traces(v)?.plaquette());
    Ok(FlowPoint { t, e_plaquette, e_clover, q })
}

/// What t^2 E and its slope are where t0 and w0 are.
const LEVEL: f64 = 0.3;

/// E after each step, until t0 and w0 are known.
#[derive(Default)]
struct Curve {
    /// Flow time and E.
    points: Vec<(f64, f64)>,
    /// Points since both were passed: two more are used.
    beyond: usize,
}

impl Curve {
    fn add(&mut self, t: f64, e: f64) {
        if let Some((before, old)) = self.points.last() {
            let (square, last) = (t * t * e, before * before * old);
            let slope = 0.5 * (t + before) * (square - last) / (t - before);
            self.beyond += usize::from(self.beyond > 0 || (last >= LEVEL && slope >= LEVEL));
        }
        self.points.push((t, e));
    }

    fn is_complete(&self) -> bool {
        self.beyond > 2
    }
}

/// t0 and w0 of E at flow times, both ascending; `None` where the flow ends before. 1 / sqrt(E), which is nearly linear in t, is
/// interpolated by the polynomial through four neighbours: times that are a fifth of t0 apart give t0 to 1e-4.
pub fn reference_scales(curve: &[(f64, f64)]) -> (Option<f64>, Option<f64>) {
    let roots: Vec<(f64, f64)> = curve.iter().map(|(t, e)| (*t, e.sqrt().recip())).collect();
    let squared = |near: &[(f64, f64)], t: f64| (t / through(near, t).0).powi(2);
    let slope = |near: &[(f64, f64)], t: f64| {
        let (root, derivative) = through(near, t);
        2.0 * (t / root).powi(2) * (1.0 - t * derivative / root)
    };
    (crossing(&roots, squared), crossing(&roots, slope).map(f64::sqrt))
}

/// The polynomial through the points and its derivative, at `t`.
fn through(points: &[(f64, f64)], t: f64) -> (f64, f64) {
    let (mut value, mut derivative) = (0.0, 0.0);
    for (i, (own, height)) in points.iter().enumerate() {
        let others =
            || points.iter().enumerate().filter(move |(j, _)| *j != i).map(|(j, (time, _))| (j, time));
        let product = |but: usize| -> f64 {
            others().filter(|(j, _)| *j != but).map(|(_, time)| (t - time) / (own - time)).product()
        };
        value += height * product(i);
        derivative += height * others().map(|(k, time)| product(k) / (own - time)).sum::<f64>();
    }
    (value, derivative)
}

/// Where `height` first rises through the level; it is given the four points next to a time, and the time.
fn crossing(points: &[(f64, f64)], height: impl Fn(&[(f64, f64)], f64) -> f64) -> Option<f64> {
    let mut below = false;
    for (n, pair) in points.windows(2).enumerate() {
        let first = n.saturating_sub(1).min(points.len().saturating_sub(4));
        let near = &points[first..points.len().min(first + 4)];
        let [mut low, mut high] = [pair[0].0, pair[1].0];
        // Polynomials of neighbouring intervals differ a little where they meet.
        if below && height(near, low) >= LEVEL {
            return Some(low);
        }
        if height(near, low) < LEVEL && height(near, high) >= LEVEL {
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if height(near, middle) < LEVEL { low = middle } else { high = middle }
            }
            return Some(0.5 * (low + high));
        }
        below = height(near, high) < LEVEL;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E that begins at 30 and goes on so that t^2 E rises like t / 2.
    fn energy(t: f64) -> f64 {
        0.5 / (t + 0.05) + 0.05 / (t + 0.05).powi(2)
    }

    #[test]
    fn scales_hardly_depend_on_the_distance_of_times() {
        let curve = |every: usize| -> Vec<(f64, f64)> {
            (0..=200).step_by(every).map(|n| flow_time(n, 0.02)).map(|t| (t, energy(t))).collect()
        };
        let (t0, w0) = reference_scales(&curve(1));
        let (t0, w0) = (t0.unwrap(), w0.unwrap());
        assert!((t0 * t0 * energy(t0) - 0.3).abs() < 1e-7, "{t0}");
        for every in [2, 5] {
            let (other, slope) = reference_scales(&curve(every));
            assert!((other.unwrap() - t0).abs() < 1e-3 * t0, "{other:?} {t0}");
            assert!((slope.unwrap() - w0).abs() < 1e-3 * w0, "{slope:?} {w0}");
        }
    }

    #[test]
    fn a_flow_that_ends_before_has_no_scales() {
        assert_eq!(reference_scales(&[]), (None, None));
        assert_eq!(reference_scales(&[(0.0, 3.0), (0.1, 2.0)]), (None, None));
        assert_eq!(reference_scales(&[(0.0, 0.0), (0.1, 0.0), (0.2, 0.0)]), (None, None));
    }

    #[test]
    fn times_are_decimal() {
        assert_eq!([3, 6, 12].map(|n| flow_time(n, 0.05)), [0.15, 0.3, 0.6]);
    }
}
