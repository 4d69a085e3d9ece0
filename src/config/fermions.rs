//! Quarks, `[fermion.*]`, and the Hasenbusch factors that split their determinant.

use super::checked::{Fermion, Flavours, Hasenbusch, Rational, Schur, Stout};
use super::raw::Table;
use super::reader::{Read, Value, array, choice, four, is_name, name, number, positive, whole};
use super::solver::{Boxes, SolverKeys};
use super::terms::Term;
use toml::de::DeValue;

/// All fermions; their terms and those of their factors are added to `terms`.
pub fn fermions(root: &mut Table, terms: &mut Vec<Term>, boxes: Boxes) -> Option<Vec<Fermion>> {
    let tables = root.named_tables("fermion");
    for (name, table) in &tables {
        if name == "gauge" || !is_name(name) {
            let message = format!(
                "a fermion cannot be named {name:?}: letters, digits, '.', '_', '-', and not 'gauge'"
            );
            table.mistake("", message);
        }
        terms.push(Term { name: name.clone(), at: table.at(""), quark: true });
    }
    let fermions: Vec<_> =
        tables.into_iter().map(|(name, table)| fermion(name, table, terms, boxes)).collect();
    fermions.into_iter().collect()
}

fn fermion(name: String, mut table: Table, terms: &mut Vec<Term>, boxes: Boxes) -> Option<Fermion> {
    let clover = table.read("action", choice(&[("wilson-clover", true), ("wilson", false)]));
    let count = table.read_known("flavours", 2, whole::<u32>(1..=2));
    let kappa = kappa(&mut table);
    if table.exists() && !table.has("kappa") && !table.has("mass") {
        table.mistake("", format!("[fermion.{name}] needs 'kappa' or 'mass'"));
    }
    let mu = table.read_known("mu", 0.0, number("a number, 0 at least", |mu| mu >= 0.0));
    let c_sw = table.read_if("c_sw", number("a number, 0 at least", |c_sw| c_sw >= 0.0));
    match clover {
        Some(true) => table.demand("c_sw"),
        Some(false) if table.has("c_sw") => {
            table.mistake("c_sw", "c_sw: the action \"wilson\" has none; did you mean \"wilson-clover\"?");
        }
        _ => {}
    }
    let boundary = table.read_or("boundary", [0.0, 0.0, 0.0, 1.0], four("4 boundaries [x, y, z, t]", phase));
    let schurs = [("asymmetric", Schur::Asymmetric), ("symmetric", Schur::Symmetric)];
    let schur = table.read_or("preconditioning", Schur::Asymmetric, choice(&schurs));
    let stout_table = table.table("stout");
    let stout = if stout_table.exists() { stout(stout_table).map(Some) } else { Some(None) };
    let solver = SolverKeys::read(table.table("solver"), None, count == Some(1), boxes);

    let rational_table = table.table("rational");
    let rational = if rational_table.exists() { rational(rational_table) } else { None };
    let refused: &[_] = match count {
        Some(1) => &["mu", "hasenbusch"],
        Some(_) => &["rational"],
        None => &[],
    };
    for key in refused.iter().copied().filter(|key| table.has(key)) {
        let other = if key == "rational" { 1 } else { 2 };
        table.mistake(key, format!("{key}: only flavours = {other} has it"));
    }
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
    Some(Fermion {
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
    kappa.or_else(|| mass.map(|mass| 0.5 / (mass + 4.0)))
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

fn stout(mut table: Table) -> Option<Stout> {
    let steps = table.read("steps", whole(1..=16));
    let rho = table.read("rho", number("a number between 0 and 0.25", |rho| rho > 0.0 && rho < 0.25));
    table.finish();
    Some(Stout { steps: steps?, rho: rho? })
}

fn rational(mut table: Table) -> Option<Rational> {
    let range = table.read("range", range);
    let error =
        |value: &Value| number("an error from 1e-14 to 1e-3", |error| (1e-14..=1e-3).contains(&error))(value);
    let action_error = table.read_or("action_error", 1e-12, error);
    let force_error = table.read_or("force_error", 1e-7, error);
    let check_every = table.read_or("check_every", 1, whole(1..=i64::MAX));
    table.finish();
    Some(Rational { range: range?, action_error, force_error, check_every })
}

fn range(value: &Value) -> Read<[f64; 2]> {
    let expected = "bounds [lo, hi], 0 < lo < hi";
    let range: [f64; 2] = array(expected, positive)(value)?;
    if range[0] < range[1] {
        return Ok(range);
    }
    Err(vec![(value.span().start, format!("expected {expected}, found {range:?}"))])
}

/// The masses of the factor before; `None`: not known, after a mistake.
struct Before {
    kappa: Option<f64>,
    mu: Option<f64>,
}

/// Reads a factor, and makes its masses those `before` the next one.
fn hasenbusch(
    mut table: Table,
    before: &mut Before,
    fermion: &SolverKeys,
    terms: &mut Vec<Term>,
    boxes: Boxes,
) -> Option<Hasenbusch> {
    let name = table.read("name", name);
    if let Some(name) = &name {
        if terms.iter().any(|term| term.name == *name) {
            let message = format!("name: there is a term '{name}' already; each needs a name of its own");
            table.mistake("name", message);
        } else {
            terms.push(Term { name: name.clone(), at: table.at("name"), quark: false });
        }
    }
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
    let solver = SolverKeys::read(table.table("solver"), Some(fermion), false, boxes).solver();
    table.finish();
    Some(Hasenbusch { name: name?, kappa: before.kappa?, mu: before.mu?, solver })
}

/// What to do about a mass that does not grow.
const KEEP: &str = ": order them from light to heavy, and leave out what stays";
