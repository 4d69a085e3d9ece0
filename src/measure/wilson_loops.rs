//! Wilson loops and the static potential:
//!
//! ```text
//! W(R, T) = < Re tr S_i(x; R) S_t(x + R i; T) S_i(x + T t; R)^dag S_t(x; T)^dag > / 3,   V(R) = ln W(R, T) / W(R, T + 1),
//! ```
//!
//! S_mu(x; n) is the product of n links from x in direction mu; the mean is over all sites and i = x, y, z. W(1, 1) is
//! the mean plaquette of the planes with t; loops are 1 on unit links. V, in units of the inverse lattice spacing, is
//! the energy of static quarks at distance R once it does not depend on T (Wilson, Phys. Rev. D 10 (1974) 2445).
//!
//! The line around the far side grows in time, `G_T(x) = U_t(x) G_{T-1}(x + t) U_t(x + R i)^dag` from `G_0 = S_i(R)`.
//! Every step needs one layer of neighbours: `W = < Re tr S_i(x; R) G_T(x)^dag > / 3`.
//!
//! Input: `[measure.wilson_loops]` with `r_max`, `t_max`.

use super::line::Extension;
use super::observable::{Context, Found, Keys, Observable, Reading, Registered, record};
use super::{MeasureError, Stop};
use crate::config::key::{Absent, Change, Key, integer};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::field::{FieldError, MatrixField};
use serde::Serialize;
use serde_json::Value;
use std::mem::swap;
use std::sync::Arc;

/// The longest side that an input may request.
const LONGEST: i64 = 1024;

/// The observable `[measure.wilson_loops]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WilsonLoops {
    /// The longest side in space.
    pub r_max: usize,
    /// The longest side in time.
    pub t_max: usize,
}

/// Its field in the JSON object.
#[derive(Serialize)]
struct WilsonLoopsFound {
    /// `[R - 1][T - 1]`: W(R, T).
    wilson_loops: Vec<Vec<f64>>,
}

const R_MAX: Key<usize> =
    Key::new("r_max", integer(1, LONGEST), Absent::Refused, Change::Free, "the largest R, in links");
const T_MAX: Key<usize> =
    Key::new("t_max", integer(1, LONGEST), Absent::Refused, Change::Free, "the largest T, in links");
/// `[measure.wilson_loops]`
const SECTION: Section = Section { keys: &[&R_MAX, &T_MAX], tables: &[] };

pub(super) const OBSERVABLE: Registered =
    Registered { key: "wilson_loops", text: "", keys: Keys::Table(&SECTION, read) };

fn read(mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    let [r_max, t_max] = [table.get(&R_MAX), table.get(&T_MAX)];
    if let Some([x, y, z, t]) = reading.extents {
        for (key, side, extent) in [("r_max", r_max, x.min(y).min(z)), ("t_max", t_max, t)] {
            if side.is_some_and(|side| 2 * side > extent) {
                let message =
                    format!("{key}: loops longer than half the lattice's extent {extent} wrap around it");
                table.warning(key, message);
            }
        }
    }
    if reading.time.has_walls() {
        table.mistake("", "wilson_loops: they are averaged over all of a periodic time; there are walls");
    }
    table.finish();
    Some(Arc::new(WilsonLoops { r_max: r_max?, t_max: t_max? }))
}

impl Observable for WilsonLoops {
    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        context.links.domain().require_periodic("averaged Wilson loops")?;
        let wilson_loops = wilson_loops(context.links, [self.r_max, self.t_max], context.stop)?;
        Ok(record(&WilsonLoopsFound { wilson_loops }))
    }

    /// W and V, one line per R and T.
    fn table(&self, found: &Found) -> String {
        let mut text = "  wilson_loops      R    T           W(R, T)              V(R)\n".to_owned();
        for (r, row) in (1..).zip(found["wilson_loops"].as_array().into_iter().flatten()) {
            let loops: Vec<f64> = row.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            for (t, w) in (1..).zip(&loops) {
                let v = loops.get(t).map(|next| (w / next).ln()).filter(|v| v.is_finite());
                let v = v.map_or_else(|| "-".to_owned(), |v| format!("{v:.10}"));
                text += &format!("  {:>16} {r:>2} {t:>4} {w:>17.10e} {v:>17}\n", "");
            }
        }
        text
    }
}

/// W(R, T) as `[R - 1][T - 1]`, up to `[r_max, t_max]`.
pub fn wilson_loops(
    links: &MatrixField,
    [r_max, t_max]: [usize; 2],
    stop: Stop,
) -> Result<Vec<Vec<f64>>, MeasureError> {
    let mut loops = vec![vec![0.0; t_max]; r_max];
    for direction in 0..3 {
        let mut walls = Walls::new(links, direction)?;
        for (r, row) in loops.iter_mut().enumerate() {
            if stop() {
                return Err(MeasureError::Stopped);
            }
            if r > 0 {
                walls.widen()?;
            }
            for (mean, w) in row.iter_mut().zip(walls.heights(t_max)?) {
                *mean += w / 3.0;
            }
        }
    }
    Ok(loops)
}

/// The sides of the loops of width R in one direction.
struct Walls<'a> {
    links: &'a MatrixField,
    direction: usize,
    /// S_i(x; R).
    base: MatrixField,
    /// U_t(x + R i).
    far: MatrixField,
    /// G_T(x).
    lid: MatrixField,
    spare: MatrixField,
}

impl<'a> Walls<'a> {
    /// The sides for R = 1.
    fn new(links: &'a MatrixField, direction: usize) -> Result<Self, FieldError> {
        let line = || MatrixField::new(links.domain(), 1);
        let (base, far, lid, spare) = (line()?, line()?, line()?, line()?);
        let mut walls = Self { links, direction, base, far, lid, spare };
        let first = |mu: usize| Extension { mu, links: Some(links), line: None, back: None, closing: None };
        first(direction).into(&mut walls.base)?;
        first(3).into(&mut walls.far)?;
        walls.shift()?;
        Ok(walls)
    }

    /// Extends R to R + 1.
    fn widen(&mut self) -> Result<(), FieldError> {
        let (mu, links) = (self.direction, Some(self.links));
        let longer = Extension { mu, links, line: Some(&self.base), back: None, closing: None };
        longer.into(&mut self.spare)?;
        swap(&mut self.base, &mut self.spare);
        self.shift()
    }

    /// Shifts the far side by one site.
    fn shift(&mut self) -> Result<(), FieldError> {
        let mu = self.direction;
        let further = Extension { mu, links: None, line: Some(&self.far), back: None, closing: None };
        further.into(&mut self.spare)?;
        swap(&mut self.far, &mut self.spare);
        Ok(())
    }

    /// The mean loops for T = 1 to `t_max` in this direction.
    fn heights(&mut self, t_max: usize) -> Result<Vec<f64>, FieldError> {
        let mut loops = Vec::with_capacity(t_max);
        for t in 0..t_max {
            let higher = Extension {
                mu: 3,
                links: Some(self.links),
                line: Some(if t == 0 { &self.base } else { &self.lid }),
                back: Some(&self.far),
                closing: Some(&self.base),
            };
            loops.push(higher.into(&mut self.spare)?.re);
            swap(&mut self.lid, &mut self.spare);
        }
        Ok(loops)
    }
}
