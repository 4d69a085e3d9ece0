//! The ends of the spectrum of |gamma_5 Mhat|, the even-odd operator without a twisted mass: its least eigenvalue is the gap, which says
//! how near a chain comes to links on which a determinant vanishes (Del Debbio et al., hep-lat/0512021); openQCD's `ms2` prints that of
//! even sites.
//!
//! Input: `[measure.spectrum.NAME]` with `fermion` and `error`.

use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::{MeasureError, Noise, Wanted, keys};
use crate::config::key::{Absent, Bound, Change, Key, number};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::device::Precision;
use crate::field::{ODD, Purpose, RandomAddress, Spinor};
use serde::Serialize;
use std::sync::Arc;

/// The observable `[measure.spectrum.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    /// NAME.
    pub name: String,
    /// The quark.
    pub quark: QuarkChoice,
    /// The relative error of both ends.
    pub error: f64,
}

/// Its entry in the list `spectra`.
#[derive(Serialize)]
struct SpectrumFound<'a> {
    /// NAME.
    name: &'a str,
    /// The least and the greatest eigenvalue of |gamma_5 Mhat|.
    least: f64,
    greatest: f64,
}

const ERROR: Key<f64> = Key::new(
    "error",
    number("an error from 1e-10 to 0.1", Bound::With(1e-10), Bound::With(0.1)),
    Absent::Is("1e-4"),
    Change::Free,
    "the relative error of both ends; about as many iterations as a solve with conjugate gradients",
);
/// `[measure.spectrum.NAME]`
const SECTION: Section = Section { keys: &[&keys::FERMION, &ERROR], tables: &[] };

pub(super) const OBSERVABLE: Registered =
    Registered { key: "spectrum", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a spectrum", &name, &table);
    let (fermion, _) = keys::twisted_fermion(&mut table, reading);
    let error = table.get_or(&ERROR, None);
    table.finish();
    // The residual is of solves; there are none.
    let wanted = Wanted { mass: None, twisted_mass: None, naik_epsilon: 0.0, residual: error };
    Some(Arc::new(Spectrum { name, quark: QuarkChoice { fermion: fermion?, wanted }, error }))
}

impl Observable for Spectrum {
    fn list(&self) -> Option<&'static str> {
        Some("spectra")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let Self { name, quark, error } = self;
        let mut normal = context.fermions.twisted(quark, 0.0)?;
        let mut start = Spinor::new(normal.domain(), Precision::Double)?;
        let Noise { seed, trajectory } = context.noise;
        start.set_random(ODD, 1.0, RandomAddress { seed, trajectory, purpose: Purpose::SPECTRUM })?;
        // Of squares.
        let bounds = normal.bounds(&mut start, 2.0 * error)?;
        let [least, greatest] = [bounds.least, bounds.greatest].map(f64::sqrt);
        Ok(record(&SpectrumFound { name, least, greatest }))
    }
}
