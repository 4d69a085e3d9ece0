//! Improved staggered quarks, `[fermion.NAME]` with the action "asqtad" or "hisq": their pseudofermions, the sources
//! of their rational functions, and their solver.

use super::checked::{
    MassFactor, Projection, Pseudofermion, RationalSource, Real, StaggeredFermion, StaggeredSmearing,
    StaggeredSolver, Strategy,
};
use super::fermions::{Purpose, boundary, heavy};
use super::solver::{PLAIN, tight};
use crate::config::raw::Table;
use crate::config::reader::{
    Read, Value, array, choice, epsilon, error, mass, number, positive, residual, text, whole,
};
use crate::math::{Factor, MilcPseudofermion, Rational, milc_rationals};
use crate::solver::usual_delta;
use std::path::PathBuf;

/// Copies of a pseudofermion that are suggested at most.
const MAX_COPIES: u32 = 16;
/// Errors of the functions of heat bath, action and force by default.
const ERRORS: [f64; 3] = [1e-12, 1e-12, 1e-7];

/// The greatest eigenvalue of -D^2 is never below this.
const LEAST_LAMBDA_MAX: f64 = 1.0;

/// How links are fattened.
#[derive(Clone, Copy, PartialEq)]
pub enum Links {
    Asqtad,
    Hisq,
}

/// Reads the table of staggered quarks; the kind of `links` is not known after a mistake.
pub fn staggered(
    name: String,
    mut table: Table,
    links: Option<Links>,
    purpose: Purpose,
) -> Option<StaggeredFermion> {
    let u0 = table.read_if("u0", number("a tadpole factor above 0, 1 at most", |u0| u0 > 0.0 && u0 <= 1.0));
    let groups = [("u3", Projection::U3), ("su3", Projection::Su3)];
    let projection = table.read_known("projection", Projection::U3, choice(&groups));
    match links {
        Some(Links::Asqtad) => {
            table.demand("u0");
            if table.has("projection") {
                table.mistake("projection", "projection: only the action \"hisq\" has it");
            }
        }
        Some(Links::Hisq) if table.has("u0") => {
            table.mistake("u0", "u0: only the action \"asqtad\" has it; the gauge action has its own");
        }
        _ => {}
    }
    let boundary = boundary(&mut table);
    let solver = solver(table.table("solver"));
    let mut rational = table.table("rational");
    let defaults = Keys::read(&mut rational);
    if rational.has("index") {
        rational.mistake("index", "index: only a pseudofermion's own table has it");
    }
    rational.finish();
    let tables = table.list("pseudofermion");
    if tables.is_empty() && table.exists() && purpose == Purpose::Run {
        table.mistake("pseudofermion", "staggered quarks need one [[fermion.NAME.pseudofermion]] at least");
    }
    let naik = links.map(|links| links == Links::Hisq);
    let place = Place { naik, defaults: &defaults };
    let pseudofermions: Vec<_> =
        tables.into_iter().enumerate().map(|(index, table)| pseudofermion(table, index, &place)).collect();
    table.finish();
    let links = match links? {
        Links::Asqtad => StaggeredSmearing::Asqtad { u0: u0? },
        Links::Hisq => StaggeredSmearing::Hisq { projection: projection? },
    };
    let pseudofermions = pseudofermions.into_iter().collect::<Option<_>>()?;
    Some(StaggeredFermion { name, links, boundary, pseudofermions, solver })
}

/// What the pseudofermions of a fermion share.
struct Place<'a> {
    /// Whether the action is HISQ; `None` after a mistake.
    naik: Option<bool>,
    defaults: &'a Keys,
}

/// Reads the pseudofermion at `index` of the list.
fn pseudofermion(mut table: Table, index: usize, place: &Place) -> Option<Pseudofermion> {
    let copies = table.read_known("copies", 1, whole::<u32>(1..=64));
    let naik_epsilon = table.read_known("naik_epsilon", 0.0, epsilon);
    if place.naik == Some(false) && table.has("naik_epsilon") {
        table.mistake("naik_epsilon", "naik_epsilon: only the action \"hisq\" has it");
    }
    let tables = table.list("factors");
    if tables.is_empty() && table.has("factors") {
        table.mistake("factors", "factors: a pseudofermion needs one at least");
    }
    let factors: Option<Vec<_>> = tables.into_iter().map(factor).collect::<Vec<_>>().into_iter().collect();
    let mut rational_table = table.table("rational");
    let rational = Keys::read(&mut rational_table).source(&rational_table, index, place.defaults);
    rational_table.finish();
    let (factors, naik_epsilon) = match &rational {
        Some(RationalSource::File { functions, .. }) => {
            let naik_epsilon = table.has("naik_epsilon").then_some(naik_epsilon).flatten();
            check_file(&table, functions, factors.as_deref(), naik_epsilon, copies, place.naik);
            (Some(weight(functions)), Some(functions.naik_epsilon))
        }
        Some(RationalSource::Made { .. }) => {
            table.demand("factors");
            if let (Some(factors), Some(copies)) = (&factors, copies)
                && !factors.is_empty()
            {
                check_powers(&table, factors, copies);
            }
            (factors, naik_epsilon)
        }
        None => (factors, naik_epsilon),
    };
    table.finish();
    let (copies, rational) = (copies? as usize, rational?);
    Some(Pseudofermion { factors: factors?, copies, naik_epsilon: naik_epsilon?, rational })
}

fn factor(mut table: Table) -> Option<MassFactor> {
    let mass = table.read("mass", mass);
    heavy(&table, mass);
    let power = table.read("power", power);
    table.finish();
    Some(MassFactor { mass: mass?, power: power? })
}

fn power(value: &Value) -> Read<(i32, u32)> {
    let expected = "a power [p, q]: integers, p from -64 to 64 but not 0, q from 1 to 64";
    let [p, q]: [i32; 2] = array(expected, whole(-64..=64))(value)?;
    match u32::try_from(q) {
        Ok(q) if p != 0 && q != 0 => Ok((p, q)),
        _ => Err(vec![(value.span().start, format!("expected {expected}, found [{p}, {q}]"))]),
    }
}

/// The functions of force, heat bath and action can be made of these factors.
fn check_powers(table: &Table, factors: &[MassFactor], copies: u32) {
    let check = |copies: u32| {
        [(-1, 1), (1, 2)].into_iter().try_for_each(|(sign, root)| {
            let factor = |factor: &MassFactor| Factor {
                shift: 4.0 * factor.mass * factor.mass,
                power: (sign * factor.power.0, factor.power.1 * root * copies),
            };
            Rational::check(&factors.iter().map(factor).collect::<Vec<_>>(), [1.0, 2.0])
        })
    };
    if let Err(error) = check(copies) {
        let enough = (copies + 1..=MAX_COPIES).find(|copies| check(*copies).is_ok());
        let advice = enough.map_or(String::new(), |copies| format!("; copies = {copies} would do"));
        table.mistake("factors", format!("factors: {error}{advice}"));
    }
}

/// The weight of a file's pseudofermion.
fn weight(functions: &MilcPseudofermion) -> Vec<MassFactor> {
    let factor = |&(mass, (p, q)): &(f64, (i32, u32))| MassFactor { mass, power: (-p, q) };
    functions.md.factors.iter().map(factor).collect()
}

/// A file's `functions` are of what the input says, where it says it.
fn check_file(
    table: &Table,
    functions: &MilcPseudofermion,
    factors: Option<&[MassFactor]>,
    naik_epsilon: Option<f64>,
    copies: Option<u32>,
    naik: Option<bool>,
) {
    if copies.is_some_and(|copies| copies != 1) {
        table.mistake(
            "copies",
            "copies: a file's functions are of one pseudofermion; name it once for each copy",
        );
    }
    let of_file = functions.naik_epsilon;
    if naik_epsilon.is_some_and(|given| given != of_file) {
        table.mistake("naik_epsilon", format!("naik_epsilon: the file has {of_file}"));
    } else if naik == Some(false) && of_file != 0.0 {
        let message =
            format!("rational: the file has naik_epsilon {of_file}; only the action \"hisq\" has one");
        table.mistake("rational", message);
    }
    let weight = weight(functions);
    let same = |a: &MassFactor, b: &MassFactor| {
        let product = |x: &MassFactor, y: &MassFactor| i64::from(x.power.0) * i64::from(y.power.1);
        a.mass == b.mass && product(a, b) == product(b, a)
    };
    let within =
        |some: &[MassFactor], all: &[MassFactor]| some.iter().all(|a| all.iter().any(|b| same(a, b)));
    if let Some(given) = factors.filter(|given| !given.is_empty())
        && !(given.len() == weight.len() && within(given, &weight) && within(&weight, given))
    {
        let list = weight.iter().map(|MassFactor { mass, power: (p, q) }| format!("{mass}^({p}/{q})"));
        let list = list.collect::<Vec<_>>().join(" ");
        table.mistake("factors", format!("factors: the file has {list}; leave them out to take its own"));
    }
}

/// The keys of a table `rational`, of a fermion or of a pseudofermion.
struct Keys {
    file: Option<File>,
    index: Option<usize>,
    /// `None` too after a mistake.
    lambda_max: Option<f64>,
    /// Whether the table has `lambda_max`, right or wrong.
    has_lambda_max: bool,
    /// Of heat bath, action and force.
    errors: [Option<f64>; 3],
    /// Whether it has a key of functions that are made.
    makes: bool,
    check_every: Option<u64>,
}

/// A file, and its pseudofermions; `None` after a mistake.
struct File {
    path: PathBuf,
    list: Option<Vec<MilcPseudofermion>>,
}

impl Keys {
    fn read(table: &mut Table) -> Self {
        const KEYS: [&str; 3] = ["heat_bath_error", "action_error", "force_error"];
        let file = table.read_if("file", text).map(|path| read_file(table, PathBuf::from(path)));
        let lambda_max = table.read_if("lambda_max", positive);
        if let Some(low) = lambda_max.filter(|lambda_max| *lambda_max < LEAST_LAMBDA_MAX) {
            let message = format!(
                "lambda_max: {low:e} is below the spectrum: the greatest eigenvalue of -D^2 is about 4 to 22, of smooth \
                 links the greatest; give a bound above it"
            );
            table.mistake("lambda_max", message);
        }
        let errors = KEYS.map(|key| table.read_if(key, error));
        let made: Vec<_> = ["lambda_max"].into_iter().chain(KEYS).filter(|key| table.has(key)).collect();
        if table.has("file") {
            for key in &made {
                table.mistake(key, format!("{key}: a file's functions are as they are; keep one of both"));
            }
        }
        Self {
            file,
            index: table.read_if("index", whole(0..=1000)),
            lambda_max,
            has_lambda_max: table.has("lambda_max"),
            errors,
            makes: !made.is_empty(),
            check_every: table.read_if("check_every", whole(1..=i64::MAX)),
        }
    }

    /// The source of the pseudofermion at `place` of the list, of these keys out of its own `table` and the `defaults`.
    fn source(&self, table: &Table, place: usize, defaults: &Self) -> Option<RationalSource> {
        let check_every = self.check_every.or(defaults.check_every).unwrap_or(1);
        let inherited = defaults.file.as_ref().filter(|_| !self.makes);
        if table.has("file") || inherited.is_some() {
            let File { path, list } = self.file.as_ref().or(inherited.filter(|_| !table.has("file")))?;
            let list = list.as_ref()?;
            let index = self.index.unwrap_or(place);
            if index >= list.len() {
                let found = list.len();
                let message = format!("index: pseudofermion {index}, from 0, of a file that has {found}");
                table.mistake("index", message);
            }
            let functions = list.get(index)?.clone();
            return Some(RationalSource::File { path: path.clone(), index, functions, check_every });
        }
        if table.has("index") {
            table.mistake("index", "index: it is that of a pseudofermion in a 'file', and there is none");
        }
        if !self.has_lambda_max && !defaults.has_lambda_max {
            let message = "a pseudofermion needs 'lambda_max' or 'file', in the table 'rational' of its own or in \
                           that of its fermion";
            table.mistake("", message);
        }
        let [heat_bath_error, action_error, force_error] =
            std::array::from_fn(|i| self.errors[i].or(defaults.errors[i]).unwrap_or(ERRORS[i]));
        let lambda_max = if self.has_lambda_max { self.lambda_max } else { defaults.lambda_max }?;
        Some(RationalSource::Made { lambda_max, heat_bath_error, action_error, force_error, check_every })
    }
}

/// The pseudofermions of a file in MILC's format, whose name is the key `file` of the `table`.
fn read_file(table: &Table, path: PathBuf) -> File {
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let list = text.and_then(|text| milc_rationals(&text).map_err(|error| error.to_string()));
    let list = list.map_err(|error| table.mistake("file", format!("file: {}: {error}", path.display())));
    File { path, list: list.ok() }
}

fn solver(mut table: Table) -> StaggeredSolver {
    let strategies = [("multi-shift", Strategy::MultiShift), ("one-by-one", Strategy::OneByOne)];
    let strategy = table.read_known("strategy", Strategy::MultiShift, choice(&strategies));
    // Refining each of many shifts takes more than single precision gains.
    let default = if strategy == Some(Strategy::OneByOne) {
        [Real::Double, Real::Single, Real::Single]
    } else {
        [Real::Double; 3]
    };
    let precision = table.read_or("precision", default, choice(&PLAIN));
    let half = precision[1] == Real::Half;
    let delta = number("a number between 0 and 1", |x| x > 0.0 && x < 1.0);
    let solver = StaggeredSolver {
        strategy: strategy.unwrap_or(Strategy::MultiShift),
        precision,
        delta: table.read_or("delta", usual_delta(half), delta),
        long_link_reals: table.read_or("long_link_reals", 14, long_link_reals),
        heat_bath_residual: table.read_or("heat_bath_residual", 1e-11, residual),
        action_residual: table.read_or("action_residual", 1e-11, residual),
        force_residual: table.read_or("force_residual", 1e-9, residual),
        max_iterations: table.read_or("max_iterations", 10_000, whole(1..=1_000_000_000)),
    };
    tight(&table, "heat_bath_residual", solver.heat_bath_residual);
    tight(&table, "action_residual", solver.action_residual);
    tight(&table, "force_residual", solver.force_residual);
    if half && strategy == Some(Strategy::MultiShift) {
        let message = "precision: all shifts at once are solved in \"double\" or \"double-single\"; the strategy \
                       \"one-by-one\" has \"double-half\" too";
        table.mistake("precision", message);
    }
    table.finish();
    solver
}

fn long_link_reals(value: &Value) -> Read<usize> {
    let reals = whole(9..=18)(value)?;
    if [9, 14, 18].contains(&reals) {
        return Ok(reals);
    }
    Err(vec![(value.span().start, format!("expected 18, 14 or 9 reals a long link, found {reals}"))])
}
