//! Quarks, `[fermion.*]`, and the Hasenbusch factors that split their determinant.

use super::checked::{Fermion, Flavours, Hasenbusch, Rational, Schur, Stout, WilsonFermion};
use super::domain_wall::domain_wall;
use super::solver::{Boxes, SolverKeys, Systems};
use super::staggered::{Links, staggered};
use super::terms::{Quark, Term};
pub use crate::config::doubts::heavy;
use crate::config::raw::Table;
use crate::config::reader::{
    Read, Value, choice, error, four, is_name, name, number, positive, range, whole,
};
use crate::lattice::shape;
use toml::de::DeValue;

/// What quarks are read for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    Run,
    Measurement,
}

/// All fermions; their terms and those of their factors are added to `terms`.
pub fn fermions(
    root: &mut Table,
    terms: &mut Vec<Term>,
    boxes: Boxes,
    purpose: Purpose,
) -> Option<Vec<Fermion>> {
    let tables = root.named_tables("fermion");
    for (name, table) in &tables {
        if name == "gauge" || !is_name(name) {
            let message = format!(
                "a fermion cannot be named {name:?}: letters, digits, '.', '_', '-', and not 'gauge'"
            );
            table.mistake("", message);
        }
        terms.push(Term { name: name.clone(), at: table.at(""), quark: Some(Quark::Unknown) });
    }
    let fermions: Vec<_> =
        tables.into_iter().map(|(name, table)| fermion(name, table, terms, boxes, purpose)).collect();
    fermions.into_iter().collect()
}

/// What `action` chooses.
#[derive(Clone, Copy)]
enum Kind {
    Wilson { clover: bool },
    DomainWall,
    Staggered(Links),
}

/// Steps of a long link.
const LONG_LINK: usize = 3;

fn fermion(
    name: String,
    mut table: Table,
    terms: &mut Vec<Term>,
    boxes: Boxes,
    purpose: Purpose,
) -> Option<Fermion> {
    let kinds = [
        ("wilson-clover", Kind::Wilson { clover: true }),
        ("wilson", Kind::Wilson { clover: false }),
        ("domain-wall", Kind::DomainWall),
        ("asqtad", Kind::Staggered(Links::Asqtad)),
        ("hisq", Kind::Staggered(Links::Hisq)),
    ];
    let kind = table.read("action", choice(&kinds));
    let quark = kind.map(|kind| match kind {
        Kind::Wilson { .. } => Quark::Wilson,
        Kind::DomainWall => Quark::Unknown,
        Kind::Staggered(links) => Quark::Staggered { naik: links == Links::Hisq },
    });
    if let Some(term) = terms.iter_mut().find(|term| term.name == name) {
        term.quark = quark.or(term.quark);
    }
    if let Some((Kind::Staggered(_), partition)) = kind.zip(boxes.partition) {
        let local = partition.local();
        if (0..4).any(|mu| partition.is_cut(mu) && local[mu] < LONG_LINK) {
            let local = shape(local);
            let message = format!(
                "action: long links reach {LONG_LINK} layers, and a rank's box of {local} is thinner where it is \
                 cut: take fewer ranks or another grid"
            );
            table.mistake("action", message);
        }
    }
    match kind {
        Some(Kind::Staggered(links)) => staggered(name, table, Some(links), purpose).map(Fermion::Staggered),
        Some(Kind::Wilson { clover }) => wilson(name, table, Some(clover), terms, boxes).map(Fermion::Wilson),
        Some(Kind::DomainWall) => domain_wall(name, table, terms, boxes).map(Fermion::DomainWall),
        None if table.has("weights") || table.has("n_s") => {
            domain_wall(name, table, terms, boxes).map(Fermion::DomainWall)
        }
        None if table.has("pseudofermion") => staggered(name, table, None, purpose).map(Fermion::Staggered),
        None => wilson(name, table, None, terms, boxes).map(Fermion::Wilson),
    }
}

fn wilson(
    name: String,
    mut table: Table,
    clover: Option<bool>,
    terms: &mut Vec<Term>,
    boxes: Boxes,
) -> Option<WilsonFermion> {
    let count = table.read_known("flavours", 2, whole::<u32>(1..=2));
    let kappa = kappa(&mut table);
    if table.exists() && !table.has("kappa") && !table.has("mass") {
        table.mistake("", format!("[fermion.{name}] needs 'kappa' or 'mass'"));
    }
    let mu = table.read_known("mu", 0.0, number("a number, 0 at least", |mu| mu >= 0.0));
    let c_sw = table.read_if("c_sw", number("a number, 0 at least", |c_sw| c_sw >= 0.0));
    let large = c_sw.is_some_and(|c_sw| c_sw > 5.0);
    table.doubt("c_sw", large, "it is 1 at tree level, and about 1 to 3 where it was determined");
    match clover {
        Some(true) => table.demand("c_sw"),
        Some(false) if table.has("c_sw") => {
            table.mistake("c_sw", "c_sw: the action \"wilson\" has none; did you mean \"wilson-clover\"?");
        }
        _ => {}
    }
    let boundary = boundary(&mut table);
    let schurs = [("asymmetric", Schur::Asymmetric), ("symmetric", Schur::Symmetric)];
    let schur = table.read_or("preconditioning", Schur::Asymmetric, choice(&schurs));
    let stout = stout(&mut table);
    let systems = if count == Some(1) { Systems::Shifted("flavours = 1") } else { Systems::Any };
    let solver = SolverKeys::read(table.table("solver"), None, systems, boxes);

    let mut rational_table = table.table("rational");
    let rational = rational(&mut rational_table);
    rational_table.finish();
    only_flavours(&table, count, &["mu", "hasenbusch"], &["rational"]);
    let flavours = match count {
        Some(1) => {
            table.demand("rational");
            rational.map(Flavours::One)
        }
        count => count.map(|_| Flavours::Two),
    };

    let mut before = Before { kappa, mu };
    let factors: Vec<_> = table
        .list("hasenbusch")
        .into_iter()
        .map(|factor| hasenbusch(factor, &mut before, &solver, terms, boxes))
        .collect();
    table.finish();
    Some(WilsonFermion {
        name,
        flavours: flavours?,
        kappa: kappa?,
        mu: mu?,
        c_sw: if clover? { c_sw? } else { 0.0 },
        boundary,
        schur,
        stout: stout?,
        solver: solver.solver(),
        hasenbusch: factors.into_iter().collect::<Option<_>>()?,
    })
}

/// kappa, given as such or as a mass.
fn kappa(table: &mut Table) -> Option<f64> {
    let kappa = table.read_if("kappa", positive);
    let mass = table.read_if("mass", number("a mass above -4", |mass| mass > -4.0));
    if table.has("kappa") && table.has("mass") {
        table.mistake("mass", "mass: kappa is given too; keep one of them");
    }
    let beyond =
        "beyond the critical value at any coupling: kappa is 1/8 for free quarks, and always below 1/4";
    table.doubt("kappa", kappa.is_some_and(|kappa| kappa >= 0.25), beyond);
    table.doubt("mass", mass.is_some_and(|mass| mass <= -2.0), beyond);
    heavy(table, mass);
    kappa.or_else(|| mass.map(|mass| 0.5 / (mass + 4.0)))
}

/// The phases of all directions, in units of pi.
pub fn boundary(table: &mut Table) -> [f64; 4] {
    table.read_or("boundary", [0.0, 0.0, 0.0, 1.0], four("4 boundaries [x, y, z, t]", phase))
}

/// A boundary phase in units of pi.
fn phase(value: &Value) -> Read<f64> {
    match value.get_ref() {
        DeValue::String(_) => choice(&[("periodic", 0.0), ("antiperiodic", 1.0)])(value),
        _ => number("\"periodic\", \"antiperiodic\" or a phase from -2 to 2, in units of pi", |phase| {
            phase.abs() <= 2.0
        })(value),
    }
}

/// Refuses the keys that only `two` flavours have, or only `one`.
pub fn only_flavours(table: &Table, count: Option<u32>, two: &[&str], one: &[&str]) {
    let (refused, other) = match count {
        Some(1) => (two, 2),
        Some(_) => (one, 1),
        None => return,
    };
    for key in refused.iter().filter(|key| table.has(key)) {
        table.mistake(key, format!("{key}: only flavours = {other} has it"));
    }
}

/// The smearing of a fermion's links, perhaps none; `None` after a mistake.
pub fn stout(table: &mut Table) -> Option<Option<Stout>> {
    let mut table = table.table("stout");
    if !table.exists() {
        return Some(None);
    }
    let steps = table.read("steps", whole(1..=16));
    let rho = table.read("rho", number("a number between 0 and 0.25", |rho| rho > 0.0 && rho < 0.25));
    table.finish();
    Some(Some(Stout { steps: steps?, rho: rho? }))
}

/// The keys of one flavour's rational functions.
pub fn rational(table: &mut Table) -> Option<Rational> {
    let range = table.read("range", range);
    let action_error = table.read_or("action_error", 1e-12, error);
    let force_error = table.read_or("force_error", 1e-7, error);
    let check_every = table.read_or("check_every", 1, whole(1..=i64::MAX));
    Some(Rational { range: range?, action_error, force_error, check_every })
}

/// The masses of the factor before; `None`: not known, after a mistake.
struct Before {
    kappa: Option<f64>,
    mu: Option<f64>,
}

/// The name of a factor's term, which is added to `terms`.
pub fn factor_name(table: &mut Table, terms: &mut Vec<Term>) -> Option<String> {
    let name = table.read("name", name)?;
    if terms.iter().any(|term| term.name == name) {
        let message = format!("name: there is a term '{name}' already; each needs a name of its own");
        table.mistake("name", message);
    } else {
        terms.push(Term { name: name.clone(), at: table.at("name"), quark: None });
    }
    Some(name)
}

/// Reads a factor, and makes its masses those `before` the next one.
fn hasenbusch(
    mut table: Table,
    before: &mut Before,
    fermion: &SolverKeys,
    terms: &mut Vec<Term>,
    boxes: Boxes,
) -> Option<Hasenbusch> {
    let name = factor_name(&mut table, terms);
    let kappa = kappa(&mut table);
    let mu = table.read_if("mu", number("a number, 0 at least", |mu| mu >= 0.0));
    let given = ["kappa", "mass", "mu"].map(|key| table.has(key));
    if table.exists() && given == [false; 3] {
        table.mistake("", "a Hasenbusch factor needs 'kappa', 'mass' or 'mu', heavier than the one before");
    }
    if let (Some(kappa), Some(before)) = (kappa, before.kappa)
        && kappa >= before
    {
        let found = if given[0] { format!("kappa: {kappa}") } else { format!("mass: its kappa {kappa}") };
        let key = if given[0] { "kappa" } else { "mass" };
        table.mistake(key, format!("{found} is not below the {before} of the factor before{KEEP}"));
    }
    if let (Some(mu), Some(before)) = (mu, before.mu)
        && mu <= before
    {
        table.mistake("mu", format!("mu: {mu} is not above the {before} of the factor before{KEEP}"));
    }
    if given[0] || given[1] {
        before.kappa = kappa;
    }
    if given[2] {
        before.mu = mu;
    }
    let solver = SolverKeys::read(table.table("solver"), Some(fermion), Systems::Any, boxes).solver();
    table.finish();
    Some(Hasenbusch { name: name?, kappa: before.kappa?, mu: before.mu?, solver })
}

/// What to do about a mass that does not grow.
const KEEP: &str = ": order them from light to heavy, and leave out what stays";
