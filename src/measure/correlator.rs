//! Pseudoscalar correlators: `C(t) = sum_{x at t} sum over components of source and sink |M^-1(x, source)|^2`.
//! Components are spins and colours; for staggered quarks, colours. Domain-wall quarks also have a correlator at the
//! midpoint.
//!
//! Input: `[measure.correlator.NAME]` with the quark and its source.

use super::contraction::Density;
use super::gamma::Gamma;
use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::propagator::{Keep, Propagator, Source};
use super::{MeasureError, Stop, keys};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::quark::{Fields, Inverse};
use serde::Serialize;
use std::sync::Arc;

/// The observable `[measure.correlator.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlator {
    /// NAME.
    pub name: String,
    /// The quark.
    pub quark: QuarkChoice,
    /// The source.
    pub source: Source,
}

/// Its entry in the list `correlators`.
#[derive(Serialize)]
struct CorrelatorFound<'a> {
    /// NAME.
    name: &'a str,
    /// C(t) for t from 0 to Lt - 1, counted from the source.
    re: Vec<f64>,
    /// The correlator of J5q at the midpoint with the source; only for domain-wall quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    midpoint: Option<Vec<f64>>,
    /// The residual mass R(t).
    #[serde(skip_serializing_if = "Option::is_none")]
    m_res: Option<Vec<f64>>,
    /// Its mean over Lt/4 <= t <= 3 Lt/4.
    #[serde(skip_serializing_if = "Option::is_none")]
    m_res_mean: Option<f64>,
}

/// `[measure.correlator.NAME]`
const SECTION: Section = Section {
    keys: &[
        &keys::FERMION,
        &keys::QUARK_MASS,
        &keys::QUARK_EPSILON,
        &keys::SOURCE_KIND,
        &keys::SOURCE,
        &keys::SOURCE_RESIDUAL,
    ],
    tables: &[],
};

pub(super) const OBSERVABLE: Registered =
    Registered { key: "correlator", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a correlator", &name, &table);
    let (quark, allowed) = keys::quark(&mut table, reading);
    let source = keys::source(&mut table, reading, allowed);
    table.finish();
    Some(Arc::new(Correlator { name, quark: quark?, source: source? }))
}

impl Observable for Correlator {
    fn list(&self) -> Option<&'static str> {
        Some("correlators")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let extents = context.links.domain().partition().global;
        self.source.require_inside(extents, &format!("measure.correlator.{}", self.name))?;
        let mut quark = context.fermions.inverse(&self.quark)?;
        let found = correlators(&mut *quark, self.source, context.stop)?;
        let (m_res, m_res_mean) = found.residual_mass().map(|mass| (mass.ratio, mass.mean)).unzip();
        let Correlators { pion, midpoint } = found;
        Ok(record(&CorrelatorFound { name: &self.name, re: pion, midpoint, m_res, m_res_mean }))
    }
}

/// C(t) for t from 0 to Lt - 1, counted from the source; not normalised.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlators {
    /// The correlator of the pseudoscalar density with itself.
    pub pion: Vec<f64>,
    /// For a quark with a fifth dimension: the correlator of J5q, the density at its midpoint, with the density at the
    /// source.
    pub midpoint: Option<Vec<f64>>,
}

/// The contribution of a finite fifth dimension to the quark mass: away from the source, `R(t) = <J5q P>(t) / <P P>(t)`
/// is the residual mass (Blum et al., hep-lat/0007038).
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualMass {
    /// R(t).
    pub ratio: Vec<f64>,
    /// Its mean over Lt/4 <= t <= 3 Lt/4.
    pub mean: f64,
}

impl Correlators {
    /// The residual mass of a quark with a fifth dimension.
    pub fn residual_mass(&self) -> Option<ResidualMass> {
        let ratio: Vec<f64> = self.midpoint.as_ref()?.iter().zip(&self.pion).map(|(j, p)| j / p).collect();
        let middle = &ratio[ratio.len().div_ceil(4)..=3 * ratio.len() / 4];
        Some(ResidualMass { mean: middle.iter().sum::<f64>() / middle.len() as f64, ratio })
    }
}

/// Only the pion's correlator.
pub fn pion(quark: &mut dyn Inverse, source: Source) -> Result<Vec<f64>, MeasureError> {
    Ok(correlators(quark, source, &|| false)?.pion)
}

/// The correlators of a quark from a source.
pub fn correlators(quark: &mut dyn Inverse, source: Source, stop: Stop) -> Result<Correlators, MeasureError> {
    let propagator = Propagator::new(quark, source, Keep::Midpoint, stop)?;
    let mut density = Density::new(quark.domain())?;
    let mut trace = |s: &Fields, t: &Fields| -> Result<Vec<f64>, MeasureError> {
        density.contract([s, t], [Gamma::ONE; 2])?;
        Ok(density.slices([0; 3], source.origin())?.iter().map(|z| z.re).collect())
    };
    let pion = trace(&propagator.columns, &propagator.columns)?;
    let midpoint = propagator.midpoint.as_ref().map(|[x, y]| trace(x, y)).transpose()?;
    Ok(Correlators { pion, midpoint })
}
