//! Pseudoscalar correlators: `C(t) = sum_{x at t} sum over components of source and sink |M^-1(x, source)|^2`, of two quarks
//! the real part of the product of the one and the conjugate of the other, as for kaons. Components are spins and colours;
//! for staggered quarks, colours. Domain-wall quarks also have a correlator at the midpoint.
//!
//! Input: `[measure.correlator.NAME]` with the quark and its source.

use super::contraction::Density;
use super::gamma::Gamma;
use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::propagator::{Keep, Propagator, Source};
use super::report::mean_in_the_middle;
use super::{MeasureError, Stop, keys};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::field::EVEN;
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
    /// The other quark, if there is one.
    pub other: Option<QuarkChoice>,
    /// The source.
    pub source: Source,
    /// The number of random slices.
    pub sources: usize,
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
        &keys::QUARK_TWIST,
        &keys::QUARK_EPSILON,
        &keys::SOURCE_KIND,
        &keys::SOURCE,
        &keys::SLICES,
        &keys::SOURCE_RESIDUAL,
    ],
    tables: &[keys::OTHER_TABLE],
};

pub(super) const OBSERVABLE: Registered =
    Registered { key: "correlator", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a correlator", &name, &table);
    let (quark, allowed) = keys::quark(&mut table, reading);
    let other = keys::other(table.table("other"), reading, (quark.as_ref(), allowed));
    let source = keys::source(&mut table, reading, allowed);
    table.finish();
    let (source, sources) = source?;
    Some(Arc::new(Correlator { name, quark: quark?, other: other?, source, sources }))
}

impl Observable for Correlator {
    fn list(&self) -> Option<&'static str> {
        Some("correlators")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let lattice = context.links.domain().partition().lattice();
        self.source.require_inside(lattice, &format!("measure.correlator.{}", self.name))?;
        let stop = context.stop;
        let mut quark = context.fermions.inverse(&self.quark)?;
        let mut other = self.other.as_ref().map(|other| context.fermions.inverse(other)).transpose()?;
        let of = |source: Source| {
            let Some(other) = &mut other else {
                let Correlators { pion, midpoint } = correlators(&mut *quark, source, stop)?;
                return Ok(std::iter::once(pion).chain(midpoint).collect());
            };
            let first = Propagator::new(&mut *quark, source, Keep::Columns, stop)?;
            let second = Propagator::new(&mut **other, source, Keep::Columns, stop)?;
            Ok(vec![pseudoscalar([&first.columns, &second.columns], source)?])
        };
        let mut found = self.source.mean(self.sources, context.noise, lattice.extents, of)?.into_iter();
        let found = Correlators { pion: found.next().expect("a correlator"), midpoint: found.next() };
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
        Some(ResidualMass { mean: mean_in_the_middle(&ratio), ratio })
    }
}

/// Only the pion's correlator.
pub fn pion(quark: &mut dyn Inverse, source: Source) -> Result<Vec<f64>, MeasureError> {
    Ok(correlators(quark, source, &|| false)?.pion)
}

/// The correlators of a quark from a source.
pub fn correlators(quark: &mut dyn Inverse, source: Source, stop: Stop) -> Result<Correlators, MeasureError> {
    let Propagator { columns, midpoint, .. } = Propagator::new(quark, source, Keep::Midpoint, stop)?;
    let midpoint = midpoint.as_ref().map(|[x, y]| pseudoscalar([x, y], source)).transpose()?;
    Ok(Correlators { pion: pseudoscalar([&columns, &columns], source)?, midpoint })
}

/// `Re sum_{x at t} tr[S(x) T(x)^dag]` for t from 0 to Lt - 1, counted from the source.
fn pseudoscalar([s, t]: [&Fields; 2], source: Source) -> Result<Vec<f64>, MeasureError> {
    let mut density = Density::new(s[EVEN][0].domain())?;
    density.contract([s, t], [Gamma::ONE; 2])?;
    Ok(density.slices([0; 3], source.origin())?.iter().map(|z| z.re).collect())
}
