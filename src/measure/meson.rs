//! Two-point functions of mesons with momentum, for one Wilson or domain-wall quark or for two different ones:
//!
//! ```text
//! C(t, p) = sum_{x at t} e^{-i p.(x - x0)} < O_snk(x) O_src(x0)^dag >,   O = psibar_1 Gamma psi_2,
//!         = - sum_{x at t} e^{-i p.(x - x0)} tr[ Gamma_snk S(x) (gamma_t Gamma_src^dag gamma_t) gamma_5 T(x)^dag gamma_5 ]
//! ```
//!
//! for two flavours, hence without disconnected parts; `S(x) = M_2^-1(x, x0)`, and T of the other quark, which is S if both
//! have one mass. Quarks whose operator mixes two flavours have S from each to each one. `p_k = 2 pi n_k / L_k`, t is
//! counted from x0. Gamma matrices are in the DeGrand-Rossi basis (`src/measure/gamma.rs`). A channel with several
//! components is their mean. Nothing is normalised: M has the diagonal `4 + m0` (it is not `2 kappa M`); for
//! domain-wall quarks S is the propagator from wall to wall. With this definition and equal operators, C(t, 0) is
//! positive for t > 0 if reflection positivity holds (Luscher, Commun. Math. Phys. 54 (1977) 283).
//!
//! | channel | Gamma_src | Gamma_snk | J^PC |
//! |---|---|---|---|
//! | `pion` | gamma_5 | gamma_5 | 0^-+ |
//! | `a4` | gamma_t gamma_5 | gamma_t gamma_5 | 0^-+ |
//! | `a4p` | gamma_5 | gamma_t gamma_5 | 0^-+ |
//! | `scalar` | 1 | 1 | 0^++ |
//! | `sp` | gamma_5 | 1 | zero on average without a twisted mass |
//! | `ps` | 1 | gamma_5 | zero on average without a twisted mass |
//! | `rho` (`rho_x`, `rho_y`, `rho_z`) | gamma_k | gamma_k | 1^-- |
//! | `rho_tensor` | gamma_k gamma_t | gamma_k gamma_t | 1^-- |
//! | `a1` | gamma_k gamma_5 | gamma_k gamma_5 | 1^++ |
//! | `b1` | gamma_j gamma_k, j < k | gamma_j gamma_k | 1^+- |
//!
//! The axial Ward identity gives the quark mass, of two quarks the mean of both: with `a4p` and `pion` at p = 0,
//!
//! ```text
//! m(t) = { (C_a4p(t + 1) - C_a4p(t - 1)) / 2 + c_A (C_pion(t + 1) - 2 C_pion(t) + C_pion(t - 1)) } / (2 C_pion(t))
//! ```
//!
//! (PCAC mass, without Z_A / Z_P; Luscher, Sint, Sommer, Weisz, hep-lat/9605038).
//!
//! Input: `[measure.meson.NAME]` with `fermion`, `mass`, `other`, `source_kind`, `source`, `sources`, `channels`, `momenta`, `c_a`, `residual`.

use super::contraction::{Density, Momentum};
use super::gamma::Gamma;
use super::observable::{Context, Found, Keys, Observable, QuarkChoice, Reading, Registered, record};
use super::propagator::{Keep, Propagator, Source};
use super::report::{mean_in_the_middle, number};
use super::{MeasureError, Stop, keys};
use crate::config::key::{Absent, Bound, Change, Key, Shape, form, number as real};
use crate::config::raw::Table;
use crate::config::reader::{array, choice, list, whole};
use crate::config::section::Section;
use crate::field::Kind;
use crate::quark::Inverse;
use num_complex::Complex64;
use serde::Serialize;
use std::sync::Arc;

/// The largest momentum integer.
const MAX_MOMENTUM: i64 = 1024;

/// The operators at source and sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Pseudoscalar.
    Pion,
    /// Axial vector in time.
    A4,
    /// Pseudoscalar at the source, axial vector in time at the sink.
    A4P,
    /// Scalar.
    Scalar,
    /// Pseudoscalar at the source, scalar at the sink.
    SP,
    /// Scalar at the source, pseudoscalar at the sink.
    PS,
    /// Vector, mean of x, y, z.
    Rho,
    /// Vector in one direction, 0 to 2.
    RhoAlong(usize),
    /// Tensor with t, mean of three.
    RhoTensor,
    /// Axial vector, mean of x, y, z.
    A1,
    /// Tensor in space, mean of three.
    B1,
}

/// Channels by their names.
const CHANNELS: [(&str, Channel); 13] = [
    ("pion", Channel::Pion),
    ("a4", Channel::A4),
    ("a4p", Channel::A4P),
    ("scalar", Channel::Scalar),
    ("sp", Channel::SP),
    ("ps", Channel::PS),
    ("rho", Channel::Rho),
    ("rho_x", Channel::RhoAlong(0)),
    ("rho_y", Channel::RhoAlong(1)),
    ("rho_z", Channel::RhoAlong(2)),
    ("rho_tensor", Channel::RhoTensor),
    ("a1", Channel::A1),
    ("b1", Channel::B1),
];

impl Channel {
    /// All channels.
    pub const ALL: [Self; CHANNELS.len()] = {
        let mut all = [Self::Pion; CHANNELS.len()];
        let mut n = 0;
        while n < CHANNELS.len() {
            all[n] = CHANNELS[n].1;
            n += 1;
        }
        all
    };

    /// The name in the input.
    #[must_use]
    pub fn name(self) -> &'static str {
        CHANNELS.iter().find(|(_, channel)| *channel == self).map_or("", |(name, _)| name)
    }

    /// `[Gamma_src, Gamma_snk]` of each component.
    #[must_use]
    pub fn components(self) -> Vec<[Gamma; 2]> {
        let (five, [x, y, z, t]) = (Gamma::FIVE, Gamma::MU);
        let same = |gammas: &[Gamma]| gammas.iter().map(|gamma| [*gamma; 2]).collect();
        match self {
            Self::Pion => same(&[five]),
            Self::A4 => same(&[t.times(five)]),
            Self::A4P => vec![[five, t.times(five)]],
            Self::Scalar => same(&[Gamma::ONE]),
            Self::SP => vec![[five, Gamma::ONE]],
            Self::PS => vec![[Gamma::ONE, five]],
            Self::Rho => same(&[x, y, z]),
            Self::RhoAlong(k) => same(&[Gamma::MU[k]]),
            Self::RhoTensor => same(&[x.times(t), y.times(t), z.times(t)]),
            Self::A1 => same(&[x.times(five), y.times(five), z.times(five)]),
            Self::B1 => same(&[x.times(y), x.times(z), y.times(z)]),
        }
    }
}

/// The observable `[measure.meson.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Meson {
    /// NAME.
    pub name: String,
    /// The quark.
    pub quark: QuarkChoice,
    /// The other quark, if there is one.
    pub other: Option<QuarkChoice>,
    /// c_A of the PCAC mass.
    pub c_a: f64,
    /// x0, or a slice.
    pub source: Source,
    /// The number of random slices.
    pub sources: usize,
    /// The channels, in the order of the input.
    pub channels: Vec<Channel>,
    /// The momenta, in the order of the input.
    pub momenta: Vec<Momentum>,
}

/// Its entry in the list `mesons`.
#[derive(Serialize)]
struct MesonFound<'a> {
    /// NAME.
    name: &'a str,
    /// One entry per channel and momentum.
    correlators: Vec<MesonEntry>,
    /// The PCAC mass m(t), if both its channels were measured at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pcac: Option<Vec<f64>>,
    /// Its mean over Lt/4 <= t <= 3 Lt/4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pcac_mean: Option<f64>,
}

/// C(t, p) of one channel.
#[derive(Serialize)]
struct MesonEntry {
    /// Its name in the input; with quarks that mix flavours, `_` and those of sink and source follow, as `pion_01`.
    channel: String,
    /// n of `p_k = 2 pi n_k / L_k`.
    momentum: Momentum,
    /// Real parts for t from 0 to Lt - 1, counted from the source.
    re: Vec<f64>,
    /// Imaginary parts.
    im: Vec<f64>,
}

/// The names of the channels, for the schema.
const CHANNEL_NAMES: [&str; CHANNELS.len()] = {
    let mut names = [""; CHANNELS.len()];
    let mut n = 0;
    while n < CHANNELS.len() {
        names[n] = CHANNELS[n].0;
        n += 1;
    }
    names
};
const CHANNELS_KEY: Key<Vec<Channel>> = Key::new(
    "channels",
    form("array of names of channels", Shape::List(&Shape::Words(&CHANNEL_NAMES), None), |value| {
        list("names of channels, like [\"pion\"]", choice(&CHANNELS))(value)
    }),
    Absent::Is("[\"pion\"]"),
    Change::Free,
    "the channels, see below",
);
const MOMENTA: Key<Vec<[i32; 3]>> = Key::new(
    "momenta",
    form(
        "array of 3 integers",
        Shape::List(&Shape::List(&Shape::Integer(-MAX_MOMENTUM, MAX_MOMENTUM), Some(3)), None),
        |value| {
            let momentum = array("3 integers [n_x, n_y, n_z]", whole(-MAX_MOMENTUM..=MAX_MOMENTUM));
            list("momenta, like [[0, 0, 0], [1, 0, 0]]", momentum)(value)
        },
    ),
    Absent::Is("[[0, 0, 0]]"),
    Change::Free,
    "momenta p = 2 pi n / L of the sink",
);
const C_A: Key<f64> = Key::new(
    "c_a",
    real("a number", Bound::Free, Bound::Free),
    Absent::Is("0.0"),
    Change::Free,
    "c_A of the PCAC mass, which is measured with the channels `pion` and `a4p` at rest",
);
/// `[measure.meson.NAME]`
const SECTION: Section = Section {
    keys: &[
        &keys::FERMION,
        &keys::QUARK_MASS,
        &keys::QUARK_TWIST,
        &keys::QUARK_EPSILON,
        &keys::SOURCE_KIND,
        &keys::SOURCE,
        &keys::SLICES,
        &CHANNELS_KEY,
        &MOMENTA,
        &C_A,
        &keys::SOURCE_RESIDUAL,
    ],
    tables: &[keys::OTHER_TABLE],
};

pub(super) const OBSERVABLE: Registered =
    Registered { key: "meson", text: "", keys: Keys::Named(&SECTION, read) };

fn read(name: String, mut table: Table, reading: &Reading) -> Option<Arc<dyn Observable>> {
    keys::check_name("a meson", &name, &table);
    let (quark, allowed) = keys::quark_of_mesons(&mut table, reading);
    if let Some(allowed) = allowed.filter(|allowed| !allowed.has_spin) {
        let message = format!(
            "fermion: {} quarks have no spin; use [measure.correlator.NAME] for their pion",
            allowed.quarks
        );
        table.mistake("fermion", message);
    }
    let other = keys::other(table.table("other"), reading, (quark.as_ref(), allowed));
    let source = keys::source(&mut table, reading, allowed);
    let (channels, momenta) = (table.get_or(&CHANNELS_KEY, None), table.get_or(&MOMENTA, None));
    for (key, is_empty) in [("channels", channels.is_empty()), ("momenta", momenta.is_empty())] {
        if is_empty {
            table.mistake(key, format!("{key}: at least one is required"));
        }
    }
    if matches!(source, Some((Source::Slice { .. }, _))) && momenta.iter().any(|momentum| *momentum != [0; 3])
    {
        table.mistake("momenta", "momenta: from a slice only [[0, 0, 0]]; its phases have no momentum");
    }
    let c_a = table.get_or(&C_A, None);
    if table.has("c_a") && !PCAC.iter().all(|channel| channels.contains(channel)) {
        table.mistake("c_a", "c_a: the PCAC mass needs the channels \"pion\" and \"a4p\"");
    }
    if table.has("c_a") && allowed.is_some_and(|allowed| allowed.is_mixed) {
        table.mistake("c_a", "c_a: two flavours of different masses have no PCAC mass");
    }
    table.finish();
    let (source, sources) = source?;
    Some(Arc::new(Meson { name, quark: quark?, other: other?, c_a, source, sources, channels, momenta }))
}

impl Observable for Meson {
    fn list(&self) -> Option<&'static str> {
        Some("mesons")
    }

    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        let lattice = context.links.domain().partition().lattice();
        self.source.require_inside(lattice, &format!("measure.meson.{}", self.name))?;
        let stop = context.stop;
        let mut quark = context.fermions.inverse(&self.quark)?;
        let mut other = self.other.as_ref().map(|other| context.fermions.inverse(other)).transpose()?;
        let flavours = quark.flavours();
        // Real and imaginary parts from each flavour to each one, of each channel and momentum.
        let of = |source: Source| {
            let new =
                |other: &mut Box<dyn Inverse>| Propagator::new(&mut **other, source, Keep::Columns, stop);
            let other = other.as_mut().map(new).transpose()?;
            let mut parts = Vec::new();
            for flavour in 0..flavours {
                for first in Propagator::from_flavour(&mut *quark, source, flavour, Keep::Columns, stop)? {
                    let pair = [&first, other.as_ref().unwrap_or(&first)];
                    for &channel in &self.channels {
                        for values in mesons(pair, channel, &self.momenta, stop)? {
                            let (re, im) = values.iter().map(|z| (z.re, z.im)).unzip();
                            parts.extend::<[Vec<f64>; 2]>([re, im]);
                        }
                    }
                }
            }
            Ok(parts)
        };
        let mut parts = self.source.mean(self.sources, context.noise, lattice.extents, of)?.into_iter();
        let mut correlators = Vec::new();
        for (source, sink) in (0..flavours).flat_map(|source| (0..flavours).map(move |sink| (source, sink))) {
            let both = if flavours == 1 { String::new() } else { format!("_{sink}{source}") };
            for (channel, &momentum) in
                self.channels.iter().flat_map(|c| self.momenta.iter().map(move |p| (c, p)))
            {
                let [re, im] = [(); 2].map(|()| parts.next().expect("two parts"));
                correlators.push(MesonEntry { channel: channel.name().to_owned() + &both, momentum, re, im });
            }
        }
        let at_rest = |channel: Channel| {
            let own = |entry: &&MesonEntry| entry.channel == channel.name() && entry.momentum == [0; 3];
            correlators.iter().find(own).map(|entry| entry.re.as_slice())
        };
        let [pion, a4p] = PCAC.map(at_rest);
        let pcac = pion.zip(a4p).map(|(pion, a4p)| pcac(pion, a4p, self.c_a));
        let pcac_mean = pcac.as_deref().map(mean_in_the_middle);
        Ok(record(&MesonFound { name: &self.name, correlators, pcac, pcac_mean }))
    }

    /// A block per channel and momentum, a line per t: real and imaginary part.
    fn table(&self, found: &Found) -> String {
        let mut text = String::new();
        for entry in found["correlators"].as_array().into_iter().flatten() {
            let channel = entry["channel"].as_str().unwrap_or_default();
            text += &format!(
                "  {:<16} {}  {channel}  momentum {}\n",
                "mesons",
                self.name,
                number(&entry["momentum"])
            );
            let parts = ["re", "im"].map(|key| entry[key].as_array().cloned().unwrap_or_default());
            for (t, (re, im)) in parts[0].iter().zip(&parts[1]).enumerate() {
                text += &format!("  {t:>16} {} {}\n", number(re), number(im));
            }
        }
        if let Some(mean) = found.get("pcac_mean") {
            text += &format!("  {:<16} {}  {}\n", "PCAC mass", self.name, number(mean));
        }
        text
    }
}

/// The channels of the PCAC mass.
const PCAC: [Channel; 2] = [Channel::Pion, Channel::A4P];

/// m(t) for t from 0 to Lt - 1; near the source it is no mass.
fn pcac(pion: &[f64], a4p: &[f64], c_a: f64) -> Vec<f64> {
    let extent = pion.len();
    let mass = |t: usize| {
        let [after, before] = [(t + 1) % extent, (t + extent - 1) % extent];
        let slope = 0.5 * (a4p[after] - a4p[before]);
        let curvature = (pion[after] - 2.0 * pion[t]) + pion[before];
        (slope + c_a * curvature) / (2.0 * pion[t])
    };
    (0..extent).map(mass).collect()
}

/// `[momentum][t]`: C(t, p) of one channel, from the propagators S and T.
///
/// # Panics
/// The propagators have no spin, or other sources.
pub fn mesons(
    [first, other]: [&Propagator; 2],
    channel: Channel,
    momenta: &[Momentum],
    stop: Stop,
) -> Result<Vec<Vec<Complex64>>, MeasureError> {
    assert_eq!([first.kind(), other.kind()], [Kind::Dirac; 2], "mesons of quarks with spin");
    assert_eq!(first.source, other.source, "propagators from one source");
    let columns = [&first.columns, &other.columns];
    let mut density = Density::new(columns[0][0][0].domain())?;
    let components = channel.components();
    let mut found: Vec<Vec<Complex64>> = vec![Vec::new(); momenta.len()];
    for [source, sink] in &components {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        let at_sink = Gamma::FIVE.times(*sink).negative();
        let at_source = source.bar().times(Gamma::FIVE);
        density.contract(columns, [at_sink, at_source])?;
        for (momentum, sum) in momenta.iter().zip(&mut found) {
            let slices = density.slices(*momentum, first.source.origin())?;
            sum.resize(slices.len(), Complex64::default());
            sum.iter_mut().zip(slices).for_each(|(sum, slice)| *sum += slice);
        }
    }
    let count = components.len() as f64;
    found.iter_mut().flatten().for_each(|value| *value /= count);
    Ok(found)
}
