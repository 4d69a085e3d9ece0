//! `[gauge]`

use crate::config::forms::{OF_WALLS, POSITIVE, TADPOLE};
use crate::config::key::{Absent, Bound, Change, Key, integer, number, words};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::lattice::TimeBoundary;

/// `[gauge]`: `S = beta sum_x { c0 sum [1 - Re tr U/3] + c1 sum [1 - Re tr R/3] + c2 sum [1 - Re tr C/3] }`
/// with 6 plaquettes U, 12 rectangles R and 16 bent loops C per site.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// The coupling.
    pub beta: f64,
    /// c0, c1, c2; c0 of the actions with a tadpole factor is 1, as in MILC.
    pub coefficients: [f64; 3],
    /// The tadpole factor, if the action has one.
    pub u0: Option<f64>,
    /// c_G at the lower and the upper wall in time.
    pub c_g: [f64; 2],
}

/// A choice of `action`; c1 of the actions with `c0 + 8 c1 = 1`, if it is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Formula {
    Rectangle(Option<f64>),
    Tadpole,
    OneLoop,
}

impl Formula {
    /// The keys that it needs, and those that it may have besides.
    const fn keys(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Rectangle(None) => (&["c1"], &[]),
            Self::Rectangle(Some(_)) => (&[], &[]),
            Self::Tadpole => (&["u0"], &[]),
            Self::OneLoop => (&["u0"], &["n_f"]),
        }
    }
}

const ACTION: Key<Formula> = Key::new(
    "action",
    words(&[
        ("wilson", Formula::Rectangle(Some(0.0))),
        ("symanzik", Formula::Rectangle(Some(-1.0 / 12.0))),
        ("iwasaki", Formula::Rectangle(Some(-0.331))),
        ("dbw2", Formula::Rectangle(Some(-1.4088))),
        ("rectangle", Formula::Rectangle(None)),
        ("symanzik-tadpole", Formula::Tadpole),
        ("symanzik-1loop", Formula::OneLoop),
    ]),
    Absent::Refused,
    Change::Fixed,
    "which loops, see [conventions.md](conventions.md#gauge-actions)",
);
const BETA: Key<f64> = Key::new(
    "beta",
    POSITIVE,
    Absent::Refused,
    Change::Fixed,
    "the coupling: 6/g^2, with a tadpole factor 10/g^2",
);
const C1: Key<f64> = Key::new(
    "c1",
    number("a number above -10, below 1/8", Bound::Without(-10.0), Bound::Without(0.125)),
    Absent::Means("required with `\"rectangle\"`, else refused"),
    Change::Fixed,
    "the coefficient of rectangles",
);
const U0: Key<f64> = Key::new(
    "u0",
    TADPOLE,
    Absent::Means("required with `\"symanzik-tadpole\"` and `\"symanzik-1loop\"`, else refused"),
    Change::Fixed,
    "tadpole factor",
);
const N_F: Key<u32> =
    Key::new("n_f", integer(0, 16), Absent::Is("0"), Change::Fixed, "quark loops in the coefficients")
        .note("refused without `\"symanzik-1loop\"`");

const C_G: Key<[f64; 2]> = Key::new(
    "c_g",
    OF_WALLS,
    Absent::Is("1.0"),
    Change::Fixed,
    "improvement at walls in time: loops within an open one count c_g / 2, plaquettes that touch a given one c_g",
)
.note("refused without walls");

/// `[gauge]`
pub(super) const GAUGE: Section = Section { keys: &[&ACTION, &BETA, &C1, &U0, &N_F, &C_G], tables: &[] };

/// Reads `[gauge]`.
pub(super) fn gauge(mut table: Table, time: TimeBoundary) -> Option<Gauge> {
    let (action, beta) = (table.get(&ACTION), table.get(&BETA));
    let odd = beta.is_some_and(|beta| !(0.1..=100.0).contains(&beta));
    table.doubt(
        "beta",
        odd,
        "simulations are between 0.1 and 100: is it 6/g^2, or with a tadpole factor 10/g^2?",
    );
    let (c1, u0, n_f) = (table.get(&C1), table.get(&U0), table.get_or(&N_F, None));
    if let Some((needed, others)) = action.map(Formula::keys) {
        needed.iter().for_each(|key| table.demand(key));
        let is_strange = |key: &&str| table.has(key) && !needed.contains(key) && !others.contains(key);
        for key in ["c1", "u0", "n_f"].into_iter().filter(is_strange).collect::<Vec<_>>() {
            table.mistake(key, format!("{key}: this action has no such key"));
        }
    }
    let c_g = table.get_or(&C_G, None);
    if !time.has_walls() && table.has("c_g") {
        table.mistake("c_g", "c_g: there are no walls in time; see 'time_boundary' in [lattice]");
    }
    if time.has_walls() && action == Some(Formula::OneLoop) {
        let message =
            "action: loops through three directions have no walls; \"symanzik-tadpole\" has none of them";
        table.mistake("action", message);
    }
    table.finish();
    let coefficients = match action? {
        Formula::Rectangle(known) => {
            let c1 = known.or(c1)?;
            [1.0 - 8.0 * c1, c1, 0.0]
        }
        Formula::Tadpole => [1.0, -1.0 / (20.0 * u0? * u0?), 0.0],
        Formula::OneLoop => one_loop_coefficients(u0?, n_f).into(),
    };
    Some(Gauge { beta: beta?, coefficients, u0, c_g })
}

/// Luescher-Weisz with tadpole improvement, in MILC's two forms: quenched (asqtad), and with `n_f` HISQ quark loops.
fn one_loop_coefficients(u0: f64, n_f: u32) -> (f64, f64, f64) {
    let (rectangle, parallelogram) = match n_f {
        0 => (0.6264, 0.04335),
        n_f => (0.6264 - 1.1746 * f64::from(n_f), 0.0433 - 0.0156 * f64::from(n_f)),
    };
    let (square, log) = (u0 * u0, u0.ln());
    (1.0, -(1.0 - rectangle * log) / (20.0 * square), parallelogram * log / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MILC's `symanzik_1loop_gauge_action` and its HISQ form at u0 = 0.87, 4 flavours, by hand.
    #[test]
    fn one_loop_coefficients_of_milc() {
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        let log = -0.139_262_067_333_507_66;
        let (_, rectangle, parallelogram) = one_loop_coefficients(0.87, 0);
        close(rectangle, -(1.0 - 0.6264 * log) / 15.138);
        close(parallelogram, 0.04335 * log / 0.7569);
        let (plaquette, rectangle, parallelogram) = one_loop_coefficients(0.87, 4);
        close(plaquette, 1.0);
        close(rectangle, -(1.0 + 4.072 * log) / 15.138);
        close(parallelogram, -0.0191 * log / 0.7569);
    }
}
