//! `[hmc]`: molecular dynamics, and the levels of all terms.

use crate::config::forms::{COUNT, POSITIVE};
use crate::config::key::{Absent, Bound, Change, Key, Shape, form, integer, number, words};
use crate::config::raw::Table;
use crate::config::reader::{list, placed_text};
use crate::config::report::{hint, nearest};
use crate::config::section::{Count, Inner, Section};
use crate::family::keys::Term;
use crate::hmc::{Level, Scheme, Smd};

/// `[hmc]`
#[derive(Clone, Debug, PartialEq)]
pub struct Hmc {
    /// Length of a trajectory.
    pub tau: f64,
    /// From outermost to innermost.
    pub levels: Vec<Level>,
    /// The terms on each level: `gauge`, and names of fermions, of their Hasenbusch factors and of inner poles. Each
    /// occurs once.
    pub terms: Vec<Vec<String>>,
    /// The division of trajectories by stochastic molecular dynamics, of whose cycles `tau` is the length.
    pub smd: Option<Smd>,
    /// Trajectories between projections of the links to SU(3).
    pub reproject_every: u64,
    /// Trajectories between measurements of reversibility; 0: never.
    pub reversibility_every: u64,
    /// Trajectories between those that are walked twice, to compare their bits; 0: never.
    pub verify_every: u64,
}

/// The `lambda` of least error; Omelyan, Mryglod, Folk (2003); Takaishi, de Forcrand hep-lat/0505020.
const USUAL_LAMBDA: f64 = 0.193_183_327_503_783_6;

const TAU: Key<f64> = Key::new(
    "tau",
    POSITIVE,
    Absent::Is("1.0"),
    Change::Tuning,
    "length of a trajectory, or with `smd` of a cycle, for H = sum tr P^2 + S",
);
const REPROJECT_EVERY: Key<u64> = Key::new(
    "reproject_every",
    COUNT,
    Absent::Is("1"),
    Change::Tuning,
    "trajectories between projections of the links to SU(3)",
);
const REVERSIBILITY_EVERY: Key<u64> = Key::new(
    "reversibility_every",
    integer(0, i64::MAX),
    Absent::Is("100"),
    Change::Free,
    "trajectories between measurements of reversibility, each of which takes two trajectories; 0: never. The history has the \
     numbers, and the log warns above 1e-3 in dH",
);
const VERIFY_EVERY: Key<u64> = Key::new(
    "verify_every",
    integer(0, i64::MAX),
    Absent::Is("0"),
    Change::Free,
    "trajectories between those that are walked twice: if the bits differ, as from a bad GPU or node, the job ends and \
     nothing of the trajectory is kept; 0: never",
);
/// The words of schemes, those of one weight with the usual one.
pub const SCHEMES: [(&str, Scheme); 6] = [
    ("leapfrog", Scheme::Leapfrog),
    ("2mn", Scheme::Omelyan2 { lambda: USUAL_LAMBDA }),
    ("2mn-position", Scheme::Omelyan2Position { lambda: USUAL_LAMBDA }),
    ("omf4", Scheme::Omelyan4),
    ("force-gradient", Scheme::ForceGradient),
    ("3g1f", Scheme::ThreeToOne),
];
const INTEGRATOR: Key<Scheme> = Key::new(
    "integrator",
    words(&SCHEMES),
    Absent::Refused,
    Change::Tuning,
    "`\"2mn\"`: second-order Omelyan; `\"2mn-position\"`: the same, drift first; `\"omf4\"`: fourth-order Omelyan",
);
const LAMBDA: Key<f64> = Key::new(
    "lambda",
    number("a number between 0 and 0.5", Bound::Without(0.0), Bound::Without(0.5)),
    Absent::Means("`0.1931833275037836`; only with `\"2mn\"` and `\"2mn-position\"`"),
    Change::Tuning,
    "weight of the outer kicks, or drifts",
)
.settled_as("lambda");
const STEPS: Key<u32> = Key::new(
    "steps",
    integer(1, 1_000_000),
    Absent::Means("required; not on the inner level of `\"3g1f\"`"),
    Change::Tuning,
    "steps in one step of the level outside, or in the trajectory",
)
.settled_as("steps");
const TERMS: Key<Vec<(String, usize)>> = Key::new(
    "terms",
    form("array of texts", Shape::List(&Shape::Text(""), None), |value| {
        list("names of terms, like [\"gauge\"]", placed_text)(value)
    }),
    Absent::Refused,
    Change::Tuning,
    "`\"gauge\"`, names of fermions, of their Hasenbusch factors and of `inner` poles: each on exactly one level",
)
.settled_as("terms");

const FRICTION: Key<f64> = Key::new(
    "friction",
    POSITIVE,
    Absent::Refused,
    Change::Tuning,
    "gamma; between cycles c_1 = exp(-gamma tau) of momenta and pseudofermions stays, 0.3 is usual",
);
const CYCLES: Key<u64> = Key::new(
    "cycles",
    integer(1, 1_000_000),
    Absent::Refused,
    Change::Fixed,
    "cycles in a trajectory, at whose start momenta and pseudofermions are new",
);
/// `[hmc.smd]`
pub(super) const SMD: Section = Section { keys: &[&FRICTION, &CYCLES], tables: &[] };

/// `[[hmc.level]]`
pub(super) const LEVEL: Section = Section { keys: &[&INTEGRATOR, &LAMBDA, &STEPS, &TERMS], tables: &[] };
/// `[hmc]`
pub(super) const HMC: Section = Section {
    keys: &[&TAU, &REPROJECT_EVERY, &REVERSIBILITY_EVERY, &VERIFY_EVERY],
    tables: &[
        Inner { name: "level", count: Count::Listed, text: "", sections: &[&LEVEL] },
        Inner { name: "smd", count: Count::Once, text: "", sections: &[&SMD] },
    ],
};

/// Reads `[hmc.smd]`; `Some(None)` without it, `None` after a mistake.
fn smd(mut table: Table) -> Option<Option<Smd>> {
    if !table.exists() {
        table.finish();
        return Some(None);
    }
    let (friction, cycles) = (table.get(&FRICTION), table.get(&CYCLES));
    table.finish();
    Some(Some(Smd { friction: friction?, cycles: cycles? }))
}

/// Reads `[hmc]`; its levels must contain all `terms`.
pub(super) fn hmc(mut table: Table, terms: &[Term]) -> Option<Hmc> {
    let tau = table.get_or(&TAU, None);
    table.doubt("tau", tau > 10.0, "a trajectory is mostly 0.5 to 4 long, and its cost grows with it");
    table.doubt(
        "tau",
        tau < 0.01,
        "a trajectory is mostly 0.5 to 4 long; the chain hardly moves in one like this",
    );
    let [reproject_every, reversibility_every, verify_every] =
        [&REPROJECT_EVERY, &REVERSIBILITY_EVERY, &VERIFY_EVERY].map(|key| table.get_or(key, None));
    let smd = smd(table.table("smd"));
    let tables = table.list("level");
    if table.exists() && tables.is_empty() {
        table.mistake("", "no [[hmc.level]]: the gauge force needs at least one");
    }
    let check_terms = !tables.is_empty();
    let mut placed = Vec::new();
    let count = tables.len();
    let (mut levels, mut beside) = (Vec::new(), Some(false));
    for (depth, table) in (1..).zip(tables) {
        let place = Place { depth, inside: count - depth, beside };
        let (integrator, level) = read_level(table, place, terms, &mut placed);
        beside = integrator.map(|integrator| beside != Some(true) && integrator == Scheme::ThreeToOne);
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
    let (levels, terms) = levels.into_iter().collect::<Option<_>>()?;
    let smd = smd?;
    present.then_some(Hmc { tau, levels, terms, smd, reproject_every, reversibility_every, verify_every })
}

/// The position of a level.
struct Place {
    /// From 1, the outermost.
    depth: usize,
    /// The number of levels inside this one.
    inside: usize,
    /// Whether the level outside is the outer one of "3g1f"; `None` if its integrator has a mistake.
    beside: Option<bool>,
}

/// Reads a level, and appends its terms with their depth to `placed`. The integrator may be known even if the level is
/// `None`.
fn read_level(
    mut table: Table,
    place: Place,
    known: &[Term],
    placed: &mut Vec<(String, usize)>,
) -> (Option<Scheme>, Option<(Level, Vec<String>)>) {
    table.call(&(place.depth - 1).to_string());
    let mut integrator = table.get(&INTEGRATOR);
    let lambda = table.get(&LAMBDA);
    let beside = place.beside.unwrap_or(integrator == Some(Scheme::ThreeToOne));
    let steps = steps(&mut table, beside);
    let many = steps.is_some_and(|steps| steps > 1000);
    table.doubt(
        "steps",
        many,
        "mostly 1 to 50, for a step of 0.02 to 0.3; forces are computed in each of them",
    );
    let terms = table.get(&TERMS);
    match (&mut integrator, lambda) {
        (Some(Scheme::Omelyan2 { lambda } | Scheme::Omelyan2Position { lambda }), Some(given)) => {
            *lambda = given;
        }
        (Some(_), Some(_)) => {
            table.mistake("lambda", "lambda: only the integrators \"2mn\" and \"2mn-position\" have it");
        }
        _ => {}
    }
    match (integrator, place.inside) {
        (Some(Scheme::ThreeToOne), inside) if !beside && inside != 1 => {
            let expected =
                "\"3g1f\" is for the two innermost levels: the quarks, and inside them the gauge field";
            table.mistake(
                "integrator",
                format!("integrator: {expected}; {inside} levels are inside this one"),
            );
        }
        (Some(other), _) if beside && other != Scheme::ThreeToOne => {
            table.mistake("integrator", "integrator: expected \"3g1f\", as on the level outside");
        }
        _ => {}
    }
    if let Some(terms) = &terms {
        place_terms(&table, terms, place.depth, known, placed);
    }
    let terms: Option<Vec<String>> = terms.map(|terms| terms.into_iter().map(|(name, _)| name).collect());
    if let Some(Scheme::Omelyan2 { lambda } | Scheme::Omelyan2Position { lambda }) = &integrator {
        table.keep("lambda", lambda);
    }
    if let (Some(steps), Some(terms)) = (steps, &terms) {
        table.keep_as("steps", Change::Tuning, &steps);
        table.keep("terms", terms);
    }
    table.kept_elsewhere();
    table.finish();
    let level = integrator.zip(steps).map(|(scheme, steps)| Level { scheme, steps });
    (integrator, level.zip(terms))
}

/// The steps. They are omitted on the inner level of "3g1f", which is `beside` the outer one.
fn steps(table: &mut Table, beside: bool) -> Option<u32> {
    let found = table.get(&STEPS);
    if !beside {
        table.demand("steps");
        return found;
    }
    if found.is_some() {
        table.mistake("steps", "steps: the inner level of \"3g1f\" always has 3; leave it out");
    }
    Some(3)
}

/// Checks that each of a level's `terms` is known and is on no other level.
fn place_terms(
    table: &Table,
    terms: &[(String, usize)],
    depth: usize,
    known: &[Term],
    placed: &mut Vec<(String, usize)>,
) {
    if terms.is_empty() {
        table.mistake("terms", "terms: a level needs at least one");
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
            // Do not also report the intended term as missing.
            placed.extend(nearest(name, &words).map(|meant| (meant.to_owned(), depth)));
        }
    }
}
