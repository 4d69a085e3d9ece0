//! The Polyakov loop: mean over space of `tr prod_t U_t(x, t) / 3`.
//!
//! Lines are extended one link at a time, W(x) <- U_t(x) W(x + t), from every t at once, so the products are the same
//! for all ranks and lanes. The trace does not depend on where a line starts, so the mean is over all sites.
//!
//! Input: the empty table `[measure.polyakov]`; `hmc measure` always includes it.

use super::MeasureError;
use super::line::Extension;
use super::observable::{Context, Found, Keys, Observable, Registered, record};
use crate::field::{FieldError, MatrixField};
use num_complex::Complex64;
use serde::Serialize;
use std::sync::Arc;

/// The observable `[measure.polyakov]`.
#[derive(Clone, Copy, Debug)]
pub struct Polyakov;

/// Its fields in the JSON object.
#[derive(Serialize)]
struct PolyakovFound {
    /// Real and imaginary part.
    polyakov: [f64; 2],
}

pub(super) const OBSERVABLE: Registered = Registered {
    key: "polyakov",
    text: "empty; Polyakov loop in t",
    keys: Keys::Switch(|| Arc::new(Polyakov)),
};

impl Observable for Polyakov {
    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let line = polyakov(context.links)?;
        Ok(record(&PolyakovFound { polyakov: [line.re, line.im] }))
    }
}

/// Mean Polyakov loop.
pub fn polyakov(links: &MatrixField) -> Result<Complex64, FieldError> {
    let domain = links.domain();
    let (mut line, mut longer) = (MatrixField::new(domain, 1)?, MatrixField::new(domain, 1)?);
    let mut mean = Complex64::default();
    for length in 0..domain.partition().global[3] {
        let line_so_far = (length > 0).then_some(&line);
        let step = Extension { mu: 3, links: Some(links), line: line_so_far, back: None, closing: None };
        mean = step.into(&mut longer)?;
        std::mem::swap(&mut line, &mut longer);
    }
    Ok(mean)
}
