//! Reweighting factors from random sources: by the weight of each configuration, an ensemble whose two flavours of Wilson quarks
//! have a regulator mu_n becomes one with mu_0, and one whose single flavour has `det R(X)^-1`, R a power of its rational
//! function, becomes that of `det X^(1/2)`; of two flavours the mass moves, too. With `X = Mhat^dag Mhat`,
//!
//! ```text
//! type 1:  W = prod_k det (X + mu_(k-1)^2) / det (X + mu_k^2)
//! type 2:  W = prod_k det (X + mu_(k-1)^2)^2 (X + 2 mu_k^2) / { (X + 2 mu_(k-1)^2) (X + mu_k^2)^2 }
//! rational:  W = det X^(1/2) R = det (1 + Z)^(1/2),   Z = X R^2 - 1
//! mass:  W = prod_k det D_(k-1)^dag D_(k-1) / det D_k^dag D_k,   D_k = D(kappa_k) on all sites
//! ```
//!
//! (Luscher, Palombi, arXiv:0810.0946; Luscher, Schaefer, arXiv:1206.2809). A factor is `< exp(-eta^dag (R - 1) eta) >` with
//! `W = det R^-1`. With `u = X + a`, `a = mu_(k-1)^2`, `d = mu_k^2 - a`, `v = X + 2 mu_k^2`,
//!
//! ```text
//! type 1:  R - 1 = d u^-1
//! type 2:  R - 1 = d { (d + 2 a) u^-1 v^-1 + a d u^-2 v^-1 }
//! mass:  eta^dag (R - 1) eta = |eta + d z|^2 - |eta|^2,   z = D_(k-1)^-1 eta,   d = 1 / 2 kappa_k - 1 / 2 kappa_(k-1)
//! ```
//!
//! and for the rational function `(1 + Z)^(-1/2) - 1` to the fourth power of Z, which is as small as the function's error. The
//! twisted masses are those of the asymmetric operator; the rational function is that of the action's own.
//!
//! The action of one flavour has the modulus of its determinant: its sign is a weight, too (`sign`).
//!
//! Each factor has sources of its own, so that the mean of their product is the product of their means. Several factors in place
//! of one scatter less.
//!
//! Input: `[measure.reweighting.NAME]` with `fermion`, `kind`, `mu` or `kappa`, `sources` and `residual`.

use super::condensate::SOURCES;
use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::{Allowed, MeasureError, Noise, Stop, Wanted, keys, sign};
use crate::config::doubts::tight;
use crate::config::forms::{NOT_NEGATIVE, POSITIVE};
use crate::config::key::{Absent, Bound, Change, Key, Shape, form, words};
use crate::config::raw::Table;
use crate::config::reader::list;
use crate::config::section::Section;
use crate::device::Precision;
use crate::field::{EVEN, ODD, Purpose, RandomAddress, Spinor};
use crate::quark::{Inverse, RootError, TwistedInverse, fields};
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// The form of the regulated determinant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regulator {
    /// `X + mu^2`
    One,
    /// `(X + mu^2)^2 / (X + 2 mu^2)`
    Two,
}

/// What weights take out.
#[derive(Clone, Debug, PartialEq)]
pub enum Weight {
    /// A twisted mass: mu_0 < mu_1 < .., the one wanted, those in between, and that of the ensemble.
    Twist(Regulator, Vec<f64>),
    /// Another kappa: the one wanted, those in between, and that of the ensemble.
    Mass(Vec<f64>),
    /// The error of a rational function.
    Rational,
    /// The sign of the determinant at this kappa.
    Sign(f64),
}

/// The words of `kind`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Twist(Regulator),
    Mass,
    Rational,
    Sign,
}

/// The observable `[measure.reweighting.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reweighting {
    /// NAME.
    pub name: String,
    /// The quark.
    pub quark: QuarkChoice,
    /// What the weights take out.
    pub kind: Weight,
    /// Random sources of each factor.
    pub sources: usize,
}

impl Reweighting {
    /// The quark, and what of its determinant the factor changes: twisted mass, kappa, rational function or sign. Factors of
    /// the same replace each other.
    pub(crate) fn part(&self) -> (&str, u8) {
        let part = match self.kind {
            Weight::Twist(..) => 0,
            Weight::Mass(_) => 1,
            Weight::Rational => 2,
            Weight::Sign(_) => 3,
        };
        (&self.quark.fermion, part)
    }
}

/// Its entry in the list `reweighting`.
#[derive(Serialize)]
struct ReweightingFound<'a> {
    /// NAME.
    name: &'a str,
    /// ln |W|: the sum over factors.
    ln_w: f64,
    /// The sign of W where it may be negative.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign: Option<i32>,
    /// The masses along which it was followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<sign::Place>,
    /// Its error from the scatter of sources; null for one source.
    error: Option<f64>,
    /// For each factor.
    factors: Vec<FactorFound>,
}

/// A factor of W.
#[derive(Serialize)]
struct FactorFound {
    /// mu_(k-1), mu_k.
    #[serde(skip_serializing_if = "Option::is_none")]
    mu: Option<[f64; 2]>,
    /// kappa_(k-1), kappa_k.
    #[serde(skip_serializing_if = "Option::is_none")]
    kappa: Option<[f64; 2]>,
    /// `ln < exp(-e) >`
    ln_w: f64,
    /// e of each source.
    values: Vec<f64>,
}

const KIND: Key<Kind> = Key::new(
    "kind",
    words(&[
        ("type-1", Kind::Twist(Regulator::One)),
        ("type-2", Kind::Twist(Regulator::Two)),
        ("mass", Kind::Mass),
        ("rational", Kind::Rational),
        ("sign", Kind::Sign),
    ]),
    Absent::Refused,
    Change::Free,
    "the regulated determinant: X + mu^2, or (X + mu^2)^2 / (X + 2 mu^2); `\"mass\"`: another kappa of two flavours with a linear clover term; `\"rational\"`: the function of `[fermion.NAME.rational]`, \
     whose `action_error` is mostly so small that the weight is 1; `\"sign\"`: of one flavour's determinant, by solves at some ten heavier masses, \
     about ten each",
);
const MU: Key<Vec<f64>> = Key::new(
    "mu",
    form(
        "array of growing numbers, 0 at least",
        Shape::List(&Shape::Number(Bound::With(0.0), Bound::Free), None),
        |value| list("twisted masses, like [0.0, 0.001]", |value| NOT_NEGATIVE.read(value))(value),
    ),
    Absent::Means("required with `\"type-1\"` and `\"type-2\"`, else refused"),
    Change::Free,
    "the twisted mass wanted, mostly 0, then that of the ensemble; those in between divide W into factors",
);
const KAPPA: Key<Vec<f64>> = Key::new(
    "kappa",
    form(
        "array of positive numbers",
        Shape::List(&Shape::Number(Bound::Without(0.0), Bound::Free), None),
        |value| list("kappas, like [0.1367, 0.1366]", |value| POSITIVE.read(value))(value),
    ),
    Absent::Means("required with `\"mass\"`, else refused"),
    Change::Free,
    "the kappa wanted, then that of the ensemble; those in between divide W into factors",
);
/// `[measure.reweighting.NAME]`
const SECTION: Section =
    Section { keys: &[&keys::FERMION, &KIND, &MU, &KAPPA, &SOURCES, &keys::SOURCE_RESIDUAL], tables: &[] };

pub(super) const OBSERVABLE: Registered =
    Registered { key: "reweighting", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a reweighting factor", &name, &table);
    let (fermion, allowed) = keys::twisted_fermion(&mut table, reading);
    let residual = table.get_or(&keys::SOURCE_RESIDUAL, None);
    tight(&table, "residual", residual);
    let (kind, sources) = (table.get(&KIND), table.get_or(&SOURCES, None));
    let refusal = match (kind, allowed) {
        (Some(Kind::Mass), Some(Allowed { other_kappa: false, .. })) => {
            "needs two flavours without an exponential clover term"
        }
        (Some(Kind::Rational | Kind::Sign), Some(Allowed { one_flavour: None, .. })) => {
            "needs one flavour by rational functions"
        }
        _ => "",
    };
    if !refusal.is_empty() {
        table.mistake("kind", format!("kind: this {refusal}"));
    }
    let needed = match kind {
        Some(Kind::Twist(_)) => Some("mu"),
        Some(Kind::Mass) => Some("kappa"),
        Some(Kind::Rational | Kind::Sign) | None => None,
    };
    if kind == Some(Kind::Sign) && table.has("sources") {
        table.mistake("sources", "sources: this kind has none");
    }
    for key in ["mu", "kappa"] {
        if needed == Some(key) {
            table.demand(key);
        } else if kind.is_some() && table.has(key) {
            table.mistake(key, format!("{key}: this kind has none"));
        }
    }
    let (mu, kappa) = (table.get(&MU), table.get(&KAPPA));
    if mu.as_ref().is_some_and(|mu| mu.len() < 2 || mu.windows(2).any(|pair| pair[0] >= pair[1])) {
        table.mistake("mu", "mu: two numbers at least, each above the one before");
    }
    if kappa.as_ref().is_some_and(|kappa| kappa.len() < 2) {
        table.mistake("kappa", "kappa: two numbers at least");
    }
    let factors = mu.as_ref().or(kappa.as_ref()).map_or(1, |steps| steps.len().saturating_sub(1));
    if sources * factors > Purpose::SOURCES {
        let most = Purpose::SOURCES;
        table.mistake("sources", format!("sources: with {factors} factors, at most {most} in all"));
    }
    table.finish();
    let wanted = Wanted { mass: None, twisted_mass: None, naik_epsilon: 0.0, residual };
    let quark = QuarkChoice { fermion: fermion?, wanted };
    let kind = match kind? {
        Kind::Twist(regulator) => Weight::Twist(regulator, mu?),
        Kind::Mass => Weight::Mass(kappa?),
        Kind::Rational => Weight::Rational,
        Kind::Sign => Weight::Sign(allowed?.one_flavour?),
    };
    Some(Arc::new(Reweighting { name, quark, kind, sources }))
}

impl Observable for Reweighting {
    fn list(&self) -> Option<&'static str> {
        Some("reweighting")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let (mut factors, mut sign, mut path) = (Vec::new(), None, Vec::new());
        let mut add = |mu, kappa, values: Vec<f64>| {
            factors.push(FactorFound { mu, kappa, ln_w: ln_mean(&values), values });
        };
        // Estimates that are multiplied, as those of different names are, need independent sources.
        let own = u64::from(crc32fast::hash(self.name.as_bytes())) << 31;
        let noise = Noise { seed: context.noise.seed ^ own, ..context.noise };
        let numbers = |k: usize| (k * self.sources..(k + 1) * self.sources, noise);
        match &self.kind {
            Weight::Twist(regulator, mu) => {
                for (k, pair) in mu.windows(2).enumerate() {
                    let [from, to] = [pair[0], pair[1]];
                    let mut u = context.fermions.twisted(&self.quark, from)?;
                    let mut v = match regulator {
                        Regulator::One => None,
                        Regulator::Two => Some(context.fermions.twisted(&self.quark, 2f64.sqrt() * to)?),
                    };
                    let values = exponents((&mut u, &mut v), [from, to], numbers(k), context.stop)?;
                    add(Some([from, to]), None, values);
                }
            }
            Weight::Mass(kappa) => {
                for (k, pair) in kappa.windows(2).enumerate() {
                    let m0 = |kappa: f64| 0.5 / kappa - 4.0;
                    let wanted = Wanted { mass: Some(m0(pair[0])), ..self.quark.wanted };
                    let mut quark =
                        context.fermions.inverse(&QuarkChoice { wanted, ..self.quark.clone() })?;
                    let d = m0(pair[1]) - m0(pair[0]);
                    let values = mass_exponents(&mut *quark, d, numbers(k), context.stop)?;
                    add(None, Some([pair[0], pair[1]]), values);
                }
            }
            Weight::Sign(kappa) => {
                let (found, places) = sign::sign(&self.quark, *kappa, context)?;
                (sign, path) = (Some(found), places);
            }
            Weight::Rational => {
                let mut root = context.fermions.root_error(&self.quark)?;
                add(None, None, root_exponents(&mut *root, numbers(0), context.stop)?);
            }
        }
        let error = (self.sources > 1 && sign.is_none())
            .then(|| factors.iter().map(|factor| error(&factor.values).powi(2)).sum::<f64>().sqrt());
        let ln_w = factors.iter().fold(0.0, |sum, factor| sum + factor.ln_w);
        Ok(record(&ReweightingFound { name: &self.name, ln_w, sign, path, error, factors }))
    }
}

type Twisted = Box<dyn TwistedInverse>;

/// `eta^dag (R - 1) eta` of the sources of these numbers, from the inverses of u and, for type 2, of v.
fn exponents(
    (u, v): (&mut Twisted, &mut Option<Twisted>),
    [from, to]: [f64; 2],
    (numbers, noise): (Range<usize>, Noise),
    stop: Stop,
) -> Result<Vec<f64>, MeasureError> {
    let domain = Arc::clone(u.domain());
    let new = || Spinor::new(&domain, Precision::Double);
    let [mut eta, mut x, mut z] = [new()?, new()?, new()?];
    let a = from * from;
    let d = to * to - a;
    let one = |number: usize| {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        draw(&mut eta, noise, number)?;
        u.solve(&mut x, &eta)?;
        let Some(v) = v else { return Ok(d * eta.real_dot(&x)?.value()) };
        v.solve(&mut z, &x)?;
        Ok(d * ((d + 2.0 * a) * eta.real_dot(&z)?.value() + a * d * x.real_dot(&z)?.value()))
    };
    numbers.map(one).collect()
}

/// The source of this number.
fn draw(eta: &mut Spinor, Noise { seed, trajectory }: Noise, number: usize) -> Result<(), MeasureError> {
    let address = RandomAddress { seed, trajectory, purpose: Purpose::Source(number as u16) };
    Ok(eta.set_random(ODD, 0.5_f64.sqrt(), address)?)
}

/// `|eta + d D^-1 eta|^2 - |eta|^2` of the sources of these numbers, on all sites.
fn mass_exponents(
    quark: &mut dyn Inverse,
    d: f64,
    (numbers, noise): (Range<usize>, Noise),
    stop: Stop,
) -> Result<Vec<f64>, MeasureError> {
    let domain = Arc::clone(quark.domain());
    let numbers: Vec<usize> = numbers.collect();
    let mut found = Vec::with_capacity(numbers.len());
    for some in numbers.chunks(quark.together()) {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        let mut eta = fields(&domain, quark.kind(), some.len())?;
        let mut z = fields(&domain, quark.kind(), some.len())?;
        noise.draw(&mut eta, some)?;
        quark.solve(&mut z, &eta)?;
        for n in 0..some.len() {
            let mut e = 0.0;
            for parity in [EVEN, ODD] {
                let [eta, z] = [&eta[parity][n], &z[parity][n]];
                e += 2.0 * d * eta.real_dot(z)?.value() + d * d * z.norm2()?.value();
            }
            found.push(e);
        }
    }
    Ok(found)
}

/// `eta^dag { (1 + Z)^(-1/2) - 1 } eta` of the sources of these numbers.
fn root_exponents(
    root: &mut dyn RootError,
    (numbers, noise): (Range<usize>, Noise),
    stop: Stop,
) -> Result<Vec<f64>, MeasureError> {
    let domain = Arc::clone(root.domain());
    let new = || Spinor::new(&domain, Precision::Double);
    let [mut eta, mut once, mut twice] = [new()?, new()?, new()?];
    let one = |number: usize| {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        draw(&mut eta, noise, number)?;
        root.apply(&mut once, &eta)?;
        root.apply(&mut twice, &once)?;
        // Z is hermitian.
        let powers = [eta.real_dot(&once)?, once.norm2()?, once.real_dot(&twice)?, twice.norm2()?];
        let coefficients = [-1.0 / 2.0, 3.0 / 8.0, -5.0 / 16.0, 35.0 / 128.0];
        Ok(coefficients.iter().zip(powers).map(|(c, power)| c * power.value()).sum())
    };
    numbers.map(one).collect()
}

/// `ln < exp(-e) >`, of any size.
fn ln_mean(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = values.iter().map(|e| (least - e).exp()).sum();
    (sum / values.len() as f64).ln() - least
}

/// The standard error of it.
fn error(values: &[f64]) -> f64 {
    let (count, ln_w) = (values.len() as f64, ln_mean(values));
    let variance = values.iter().map(|e| ((-e - ln_w).exp() - 1.0).powi(2)).sum::<f64>() / count;
    (variance / (count - 1.0)).sqrt()
}
