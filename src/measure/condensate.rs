//! The chiral condensate from random sources: `Re R^dag M^-1 R` per site, with complex Gaussian R, `<R R^dag> = 1`. Its
//! mean is `Re tr M^-1 / V`, the trace over components and sites. For staggered quarks this is MILC's PBP, with `M = 2 m + D`
//! and no factor of flavours. With a twisted mass `Re tr i gamma_5 M^-1 / V` is measured too, the condensate at maximal
//! twist; it is `mu tr (M^dag M)^-1 / V`.
//!
//! Input: `[measure.condensate.NAME]` with the quark and `sources`.

use super::observable::Noise;
use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::{MeasureError, Stop, Wanted, keys};
use crate::config::key::{Absent, Change, Key, integer};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::device::Precision;
use crate::field::{EVEN, FieldError, Kind, ODD, Purpose, RandomAddress, Spinor};
use crate::quark::{Fields, Inverse, fields};
use serde::Serialize;
use std::sync::Arc;

/// The observable `[measure.condensate.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condensate {
    /// NAME.
    pub name: String,
    /// The quark.
    pub quark: QuarkChoice,
    /// Random sources, 1 to [`Purpose::SOURCES`].
    pub sources: usize,
}

/// Its entry in the list `condensates`.
#[derive(Serialize)]
struct CondensateFound<'a> {
    /// NAME.
    name: &'a str,
    /// The mass of the quark; null for Wilson quarks.
    mass: Option<f64>,
    /// Its twisted mass, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    twisted_mass: Option<f64>,
    /// The mean of `even` and `odd`.
    re: f64,
    /// Standard error of `re` from the scatter of the sources; null for one source.
    error: Option<f64>,
    /// The part with R^dag on even sites, per even site.
    even: f64,
    /// The part with R^dag on odd sites, per odd site.
    odd: f64,
    /// Number of sources.
    sources: usize,
    /// With a twisted mass: the mean of `Re i R^dag gamma_5 M^-1 R` per site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pseudoscalar: Option<f64>,
    /// Its standard error; none for one source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pseudoscalar_error: Option<f64>,
    /// Of each source, whose mean is `re`: products of different ones are unbiased squares of the trace.
    values: &'a [f64],
}

/// Random sources.
pub(super) const SOURCES: Key<usize> =
    Key::new("sources", integer(1, Purpose::SOURCES as i64), Absent::Is("1"), Change::Free, "random sources");
/// `[measure.condensate.NAME]`
const SECTION: Section = Section {
    keys: &[
        &keys::FERMION,
        &keys::QUARK_MASS,
        &keys::QUARK_TWIST,
        &keys::QUARK_EPSILON,
        &SOURCES,
        &keys::SOURCE_RESIDUAL,
    ],
    tables: &[],
};

pub(super) const OBSERVABLE: Registered =
    Registered { key: "condensate", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a condensate", &name, &table);
    let (quark, _) = keys::quark(&mut table, reading);
    let sources = table.get_or(&SOURCES, None);
    table.finish();
    Some(Arc::new(Condensate { name, quark: quark?, sources }))
}

impl Observable for Condensate {
    fn list(&self) -> Option<&'static str> {
        Some("condensates")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let Self { name, quark: choice, sources } = self;
        let mut quark = context.fermions.inverse(choice)?;
        let CondensateMean { mean, error, even, odd, values, pseudoscalar } =
            condensate(&mut *quark, *sources, context.noise, context.stop)?;
        let Wanted { mass, twisted_mass, .. } = choice.wanted;
        let pseudoscalar = twisted_mass.and(pseudoscalar);
        Ok(record(&CondensateFound {
            name,
            mass,
            twisted_mass,
            re: mean,
            error,
            even,
            odd,
            sources: *sources,
            pseudoscalar: pseudoscalar.map(|(mean, _)| mean),
            pseudoscalar_error: pseudoscalar.and_then(|(_, error)| error),
            values: &values,
        }))
    }
}

impl Noise {
    /// Draws the sources of these numbers.
    pub(super) fn draw(self, r: &mut Fields, numbers: &[usize]) -> Result<(), FieldError> {
        let Self { seed, trajectory } = self;
        for (n, &number) in numbers.iter().enumerate() {
            let address = RandomAddress { seed, trajectory, purpose: Purpose::Source(number as u16) };
            for parity in [EVEN, ODD] {
                r[parity][n].set_random(parity, 0.5_f64.sqrt(), address)?;
            }
        }
        Ok(())
    }
}

/// Means over sources.
#[derive(Clone, Debug, PartialEq)]
pub struct CondensateMean {
    /// The mean of `even` and `odd`.
    pub mean: f64,
    /// Standard error of `mean` from the scatter of the sources; `None` for a single one.
    pub error: Option<f64>,
    /// `Re R^dag M^-1 R` with R^dag on even sites, per even site.
    pub even: f64,
    /// `Re R^dag M^-1 R` with R^dag on odd sites, per odd site.
    pub odd: f64,
    /// Of each source, whose mean is `mean`.
    pub values: Vec<f64>,
    /// For Dirac spinors: the mean of `Re i R^dag gamma_5 M^-1 R` per site, which is zero without a twisted mass, and its error.
    pub pseudoscalar: Option<(f64, Option<f64>)>,
}

/// The condensate from the first `sources` sources of the configuration.
///
/// # Panics
/// No sources, or more than [`Purpose::SOURCES`]; the quark mixes flavours.
pub fn condensate(
    quark: &mut dyn Inverse,
    sources: usize,
    noise: Noise,
    stop: Stop,
) -> Result<CondensateMean, MeasureError> {
    assert!((1..=Purpose::SOURCES).contains(&sources), "{sources} sources");
    assert_eq!(quark.flavours(), 1, "a quark that mixes no flavours");
    let domain = Arc::clone(quark.domain());
    let half_volume = domain.quark_volume() / 2.0;
    let numbers: Vec<usize> = (0..sources).collect();
    let mut found: Vec<[f64; 2]> = Vec::with_capacity(sources);
    let mut pseudoscalars: Vec<f64> = Vec::new();
    let mut turned = Spinor::of(&domain, quark.kind(), Precision::Double, 1)?;
    for some in numbers.chunks(quark.together()) {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        let mut b = fields(&domain, quark.kind(), some.len())?;
        let mut x = fields(&domain, quark.kind(), some.len())?;
        noise.draw(&mut b, some)?;
        quark.solve(&mut x, &b)?;
        for n in 0..some.len() {
            let of = |parity: usize| Ok::<_, MeasureError>(b[parity][n].real_dot(&x[parity][n])?.value());
            found.push([of(EVEN)? / half_volume, of(ODD)? / half_volume]);
            if quark.kind() == Kind::Dirac {
                let mut sum = 0.0;
                for parity in [EVEN, ODD] {
                    turned.set_zero()?;
                    turned.add_twist(1.0, &x[parity][n])?;
                    sum += b[parity][n].real_dot(&turned)?.value();
                }
                pseudoscalars.push(sum / (2.0 * half_volume));
            }
        }
    }
    let values: Vec<f64> = found.iter().map(|parts| 0.5 * (parts[EVEN] + parts[ODD])).collect();
    let (mean, error) = mean_and_error(&values);
    let of = |parity: usize| found.iter().map(|parts| parts[parity]).sum::<f64>() / sources as f64;
    let pseudoscalar = (!pseudoscalars.is_empty()).then(|| mean_and_error(&pseudoscalars));
    Ok(CondensateMean { mean, error, even: of(EVEN), odd: of(ODD), values, pseudoscalar })
}

/// The mean of sources, and its error if there are several.
fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (mean, (values.len() > 1).then(|| (variance / (count - 1.0)).sqrt()))
}
