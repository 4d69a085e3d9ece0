//! The gauge term, and the levels on which it and those of the fermions live.

use super::checked::{Gauge, Hmc, Integrator, Level};
use crate::config::raw::Table;
use crate::config::reader::{Read, Value, choice, list, number, placed_text, positive, whole};
use crate::config::report::{hint, nearest};

/// `lambda` of least error, Omelyan, Mryglod, Folk (2003); Takaishi, de Forcrand hep-lat/0505020.
const LAMBDA: f64 = 0.193_183_327_503_783_6;

/// Something that a level can name.
pub struct Term {
    pub name: String,
    /// The byte of its table's header.
    pub at: usize,
    /// What the NAME of a `[fermion.NAME]` is: measurements can ask for it.
    pub quark: Option<Quark>,
}

/// What measurements must know of a fermion.
#[derive(Clone, Copy, PartialEq)]
pub enum Quark {
    /// After a mistake in `action`.
    Unknown,
    Wilson,
    DomainWall {
        /// Its own; `None` after a mistake.
        mass: Option<f64>,
    },
    Staggered {
        /// Whether its Naik term takes a correction.
        naik: bool,
    },
}

/// Coefficients by PHYSICS section 2; the one-loop action's `c_plaquette` is 1, as in MILC.
pub fn gauge(mut table: Table) -> Option<Gauge> {
    const ONE_LOOP: &str = "symanzik-1loop";
    let names = [
        ("wilson", Some(0.0)),
        ("symanzik", Some(-1.0 / 12.0)),
        ("iwasaki", Some(-0.331)),
        ("dbw2", Some(-1.4088)),
        (ONE_LOOP, None),
    ];
    let action = table.read("action", choice(&names.map(|entry| (entry.0, entry))));
    let beta = table.read("beta", positive);
    let odd = beta.is_some_and(|beta| !(0.1..=100.0).contains(&beta));
    table.doubt(
        "beta",
        odd,
        "simulations are between 0.1 and 100: is it 6/g^2, or with \"symanzik-1loop\" 10/g^2?",
    );
    let u0 = table.read_if("u0", number("a tadpole factor above 0, 1 at most", |u0| u0 > 0.0 && u0 <= 1.0));
    let n_f = table.read_or("n_f", 0, whole(0..=16));
    let one_loop = matches!(action, Some((_, None)));
    if one_loop {
        table.demand("u0");
    } else if action.is_some() {
        for key in ["u0", "n_f"].into_iter().filter(|key| table.has(key)) {
            table.mistake(key, format!("{key}: only the action \"{ONE_LOOP}\" has it"));
        }
    }
    table.finish();
    let (action, c1) = action?;
    let (c_plaquette, c_rectangle, c_parallelogram) = match c1 {
        Some(c1) => (1.0 - 8.0 * c1, c1, 0.0),
        None => one_loop_coefficients(u0?, n_f),
    };
    Some(Gauge { action: action.to_owned(), beta: beta?, c_plaquette, c_rectangle, c_parallelogram })
}

/// Luescher-Weisz with tadpoles, in MILC's two forms: quenched (asqtad), and with `n_f` HISQ quark loops.
fn one_loop_coefficients(u0: f64, n_f: u32) -> (f64, f64, f64) {
    let (rectangle, parallelogram) = match n_f {
        0 => (0.6264, 0.04335),
        n_f => (0.6264 - 1.1746 * f64::from(n_f), 0.0433 - 0.0156 * f64::from(n_f)),
    };
    let (square, log) = (u0 * u0, u0.ln());
    (1.0, -(1.0 - rectangle * log) / (20.0 * square), parallelogram * log / square)
}

pub fn hmc(mut table: Table, terms: &[Term]) -> Option<Hmc> {
    let tau = table.read_or("tau", 1.0, positive);
    table.doubt("tau", tau > 10.0, "a trajectory is mostly 0.5 to 4 long, and its cost grows with it");
    let reproject_every = table.read_or("reproject_every", 1, whole(1..=i64::MAX));
    let reversibility_every = table.read_or("reversibility_every", 0, whole(0..=i64::MAX));
    let tables = table.list("level");
    if table.exists() && tables.is_empty() {
        table.mistake("", "no [[hmc.level]]: the gauge force needs one at least");
    }
    let check_terms = !tables.is_empty();
    let mut placed = Vec::new();
    let count = tables.len();
    let (mut levels, mut beside) = (Vec::new(), Some(false));
    for (depth, table) in (1..).zip(tables) {
        let place = Place { depth, inside: count - depth, beside };
        let (integrator, level) = read_level(table, place, terms, &mut placed);
        beside = integrator.map(|integrator| beside != Some(true) && integrator == Integrator::ThreeToOne);
        levels.push(level);
    }
    let homeless = terms.iter().filter(|term| placed.iter().all(|(name, _)| *name != term.name));
    for term in homeless.filter(|_| check_terms) {
        let message =
            format!("the term '{}' is on no level: name it in the terms of one [[hmc.level]]", term.name);
        table.mistake_at(term.at, message);
    }
    let present = table.exists();
    table.finish();
    let levels = levels.into_iter().collect::<Option<Vec<_>>>()?;
    present.then_some(Hmc { tau, levels, reproject_every, reversibility_every })
}

/// Where a level stands.
struct Place {
    /// From 1, the outermost.
    depth: usize,
    /// How many levels are inside this one.
    inside: usize,
    /// The level outside is the outer one of the two of "3g1f"; `None`: its integrator has a mistake.
    beside: Option<bool>,
}

/// Reads a level, and adds its terms with their depth to those `placed`. The integrator may be known where the level
/// is not.
fn read_level(
    mut table: Table,
    place: Place,
    known: &[Term],
    placed: &mut Vec<(String, usize)>,
) -> (Option<Integrator>, Option<Level>) {
    let schemes = [
        ("leapfrog", Integrator::Leapfrog),
        ("2mn", Integrator::Omelyan2 { lambda: LAMBDA }),
        ("2mn-position", Integrator::Omelyan2Position { lambda: LAMBDA }),
        ("omf4", Integrator::Omelyan4),
        ("force-gradient", Integrator::ForceGradient),
        ("3g1f", Integrator::ThreeToOne),
    ];
    let mut integrator = table.read("integrator", choice(&schemes));
    let lambda = table.read_if("lambda", number("a number between 0 and 0.5", |x| x > 0.0 && x < 0.5));
    let beside = place.beside.unwrap_or(integrator == Some(Integrator::ThreeToOne));
    let steps = if beside { steps_beside(&mut table) } else { table.read("steps", whole_steps) };
    let many = steps.is_some_and(|steps| steps > 1000);
    table.doubt(
        "steps",
        many,
        "mostly 1 to 50, for a step of 0.02 to 0.3; forces are computed in each of them",
    );
    let terms = table.read("terms", list("names of terms, like [\"gauge\"]", placed_text));
    match (&mut integrator, lambda) {
        (Some(Integrator::Omelyan2 { lambda } | Integrator::Omelyan2Position { lambda }), Some(given)) => {
            *lambda = given;
        }
        (Some(_), Some(_)) => {
            table.mistake("lambda", "lambda: only the integrators \"2mn\" and \"2mn-position\" have it");
        }
        _ => {}
    }
    match (integrator, place.inside) {
        (Some(Integrator::ThreeToOne), inside) if !beside && inside != 1 => {
            let expected =
                "\"3g1f\" is of the two innermost levels, the quarks' and inside it the gauge field's";
            table.mistake(
                "integrator",
                format!("integrator: {expected}; {inside} levels are inside this one"),
            );
        }
        (Some(other), _) if beside && other != Integrator::ThreeToOne => {
            table.mistake("integrator", "integrator: expected \"3g1f\", as on the level outside");
        }
        _ => {}
    }
    if let Some(terms) = &terms {
        place_terms(&table, terms, place.depth, known, placed);
    }
    table.finish();
    let level = integrator.zip(steps).zip(terms).map(|((integrator, steps), terms)| Level {
        integrator,
        steps,
        terms: terms.into_iter().map(|(name, _)| name).collect(),
    });
    (integrator, level)
}

fn whole_steps(value: &Value) -> Read<u32> {
    whole(1..=1_000_000)(value)
}

/// The steps of the inner level of "3g1f", which are not given.
fn steps_beside(table: &mut Table) -> Option<u32> {
    if table.read_if("steps", whole_steps).is_some() {
        table.mistake("steps", "steps: the inner level of \"3g1f\" always has 3; leave it out");
    }
    Some(3)
}

/// Each of a level's `terms` is a known one and on no other level.
fn place_terms(
    table: &Table,
    terms: &[(String, usize)],
    depth: usize,
    known: &[Term],
    placed: &mut Vec<(String, usize)>,
) {
    if terms.is_empty() {
        table.mistake("terms", "terms: a level needs one at least");
    }
    let words: Vec<&str> = known.iter().map(|term| term.name.as_str()).collect();
    for (name, at) in terms {
        if let Some((_, other)) = placed.iter().find(|(old, _)| old == name) {
            let place = if *other == depth { "this level".to_owned() } else { format!("level {other}") };
            table.mistake_at(*at, format!("terms: '{name}' is on {place} already"));
        } else if words.contains(&name.as_str()) {
            placed.push((name.clone(), depth));
        } else {
            table.mistake_at(*at, format!("terms: unknown term '{name}'{}", hint(name, &words)));
            // The term that was meant is not called homeless on top.
            placed.extend(nearest(name, &words).map(|meant| (meant.to_owned(), depth)));
        }
    }
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
