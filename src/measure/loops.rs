//! Mean plaquettes and rectangles, `Re tr / 3`: 1 on unit links.
//!
//! Input: the empty table `[measure.loops]`; `hmc measure` always includes it.

use super::MeasureError;
use super::observable::{Context, Found, Keys, Observable, Registered, record};
use crate::operator::GaugeLoops;
use serde::Serialize;
use std::sync::Arc;

/// The observable `[measure.loops]`.
#[derive(Clone, Copy, Debug)]
pub struct Loops;

/// Its fields in the JSON object.
#[derive(Serialize)]
struct LoopsFound {
    /// Mean over all six planes.
    plaquette: f64,
    /// Mean over the planes xy, xz, yz.
    plaquette_space: f64,
    /// Mean over the planes xt, yt, zt.
    plaquette_time: f64,
    /// Mean over all 2x1 rectangles.
    rectangle: f64,
}

pub(super) const OBSERVABLE: Registered = Registered {
    key: "loops",
    text: "empty; plaquette and rectangle",
    keys: Keys::Switch(|| Arc::new(Loops)),
};

impl Observable for Loops {
    fn border(&self) -> usize {
        2
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let traces = GaugeLoops::traces(context.links)?;
        Ok(record(&LoopsFound {
            plaquette: traces.plaquette(),
            plaquette_space: traces.plaquette_space,
            plaquette_time: traces.plaquette_time,
            rectangle: traces.rectangle,
        }))
    }
}
