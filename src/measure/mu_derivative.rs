//! Traces of derivatives in the chemical potential mu at mu = 0, from which fluctuations of charges are made (Allton et al.,
//! hep-lat/0305007; with HISQ quarks: Bazavov et al., arXiv:1203.0784). With `M' = dM / d mu`, per site and source by source:
//!
//! ```text
//! first = R^dag M^-1 M' R,   second = R^dag M^-1 M'' R,   product = R^dag M^-1 M' M^-1 M' R,
//! ```
//!
//! with the complex Gaussian R of condensates. So `d ln det M / d mu` is the mean of `first`, times the volume, and
//! `d^2 ln det M / d mu^2` that of `second - product`. A product of traces needs different sources, for which each one's values
//! are there. `first` is imaginary in the mean, `second` and `product` are real.
//!
//! Input: `[measure.mu_derivative.NAME]` with the quark and `sources`.

use super::condensate::SOURCES;
use super::observable::Noise;
use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::{MeasureError, Stop, keys};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::field::{EVEN, ODD, Purpose};
use crate::quark::{Fields, HopDerivative, Inverse, fields};
use num_complex::Complex64;
use serde::Serialize;
use std::sync::Arc;

/// The observable `[measure.mu_derivative.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MuDerivative {
    /// NAME.
    pub name: String,
    /// The quark.
    pub quark: QuarkChoice,
    /// Random sources, 1 to [`Purpose::SOURCES`].
    pub sources: usize,
}

/// One of the traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// The mean over sources, real and imaginary part.
    pub mean: [f64; 2],
    /// Their standard errors from the scatter of the sources; `None` for one source.
    pub error: Option<[f64; 2]>,
    /// Of each source.
    pub values: Vec<[f64; 2]>,
}

/// The traces of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MuTraces {
    /// tr M^-1 M'
    pub first: Trace,
    /// tr M^-1 M''
    pub second: Trace,
    /// tr M^-1 M' M^-1 M'
    pub product: Trace,
}

/// Its entry in the list `mu_derivatives`.
#[derive(Serialize)]
struct MuDerivativeFound<'a> {
    /// NAME.
    name: &'a str,
    /// The mass of the quark; null for Wilson quarks.
    mass: Option<f64>,
    /// Number of sources.
    sources: usize,
    #[serde(flatten)]
    traces: MuTraces,
}

/// `[measure.mu_derivative.NAME]`
const SECTION: Section = Section {
    keys: &[&keys::FERMION, &keys::QUARK_MASS, &keys::QUARK_EPSILON, &SOURCES, &keys::SOURCE_RESIDUAL],
    tables: &[],
};

pub(super) const OBSERVABLE: Registered =
    Registered { key: "mu_derivative", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a mu_derivative", &name, &table);
    let (quark, allowed) = keys::quark(&mut table, reading);
    if let Some(allowed) = allowed.filter(|allowed| !allowed.chemical_potential) {
        let message =
            format!("fermion: {} quarks have no derivative in the chemical potential", allowed.quarks);
        table.mistake("fermion", message);
    }
    let sources = table.get_or(&SOURCES, None);
    table.finish();
    Some(Arc::new(MuDerivative { name, quark: quark?, sources }))
}

impl Observable for MuDerivative {
    fn list(&self) -> Option<&'static str> {
        Some("mu_derivatives")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let Self { name, quark: choice, sources } = self;
        let mut quark = context.fermions.inverse(choice)?;
        let [mut once, mut twice] =
            [context.fermions.derivative(choice, 1)?, context.fermions.derivative(choice, 2)?];
        let traces =
            mu_traces(&mut *quark, [&mut *once, &mut *twice], *sources, context.noise, context.stop)?;
        let (mass, sources) = (choice.wanted.mass, *sources);
        Ok(record(&MuDerivativeFound { name, mass, sources, traces }))
    }
}

/// The traces from the first `sources` sources of the configuration, by M' and M''.
///
/// # Panics
/// No sources, or more than [`Purpose::SOURCES`].
pub fn mu_traces(
    quark: &mut dyn Inverse,
    [once, twice]: [&mut dyn HopDerivative; 2],
    sources: usize,
    noise: Noise,
    stop: Stop,
) -> Result<MuTraces, MeasureError> {
    assert!((1..=Purpose::SOURCES).contains(&sources), "{sources} sources");
    let domain = Arc::clone(quark.domain());
    let mut found: [Vec<Complex64>; 3] = Default::default();
    let numbers: Vec<usize> = (0..sources).collect();
    for some in numbers.chunks(quark.together()) {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        let made = || fields(&domain, quark.kind(), some.len());
        let [mut r, mut b, mut x] = [made()?, made()?, made()?];
        noise.draw(&mut r, some)?;
        let mut keep = |trace: usize, x: &Fields| -> Result<(), MeasureError> {
            for n in 0..some.len() {
                let of = |parity: usize| r[parity][n].dot(&x[parity][n]);
                found[trace].push((of(EVEN)? + of(ODD)?) / domain.quark_volume());
            }
            Ok(())
        };
        twice.apply(&mut b, &r)?;
        quark.solve(&mut x, &b)?;
        keep(1, &x)?;
        once.apply(&mut b, &r)?;
        quark.solve(&mut x, &b)?;
        keep(0, &x)?;
        once.apply(&mut b, &x)?;
        quark.solve(&mut x, &b)?;
        keep(2, &x)?;
    }
    let [first, second, product] = found.map(|values| Trace::of(&values));
    Ok(MuTraces { first, second, product })
}

impl Trace {
    fn of(values: &[Complex64]) -> Self {
        let count = values.len() as f64;
        let parts = |part: fn(&Complex64) -> f64| -> [f64; 2] {
            let mean = values.iter().map(part).sum::<f64>() / count;
            let scatter: f64 = values.iter().map(|value| (part(value) - mean).powi(2)).sum();
            [mean, (scatter / count / (count - 1.0)).sqrt()]
        };
        let [re, im] = [parts(|z| z.re), parts(|z| z.im)];
        Self {
            mean: [re[0], im[0]],
            error: (values.len() > 1).then_some([re[1], im[1]]),
            values: values.iter().map(|z| [z.re, z.im]).collect(),
        }
    }
}
