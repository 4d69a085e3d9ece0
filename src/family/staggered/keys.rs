//! `[fermion.NAME]` of improved staggered quarks, and their pseudofermions.

use super::rational_keys::{RationalKeys, RationalSource, STAGGERED_RATIONAL};
use super::solver_keys::{STAGGERED_SOLVER, StaggeredSolver, solver};
use super::{REACH, Smearing};
use crate::config::forms::{EPSILON, MASS, MOST_CONDITION, TADPOLE};
use crate::config::key::{Absent, Change, Key, Shape, form, integer, words};
use crate::config::raw::Table;
use crate::config::reader::{Read, Value, array, whole};
use crate::config::section::{Count, Inner, Section};
use crate::family::fermion::Keys;
use crate::family::keys::{self, BOUNDARY, Context, INNER_NAME, Purpose, heavy};
use crate::lattice::Boundary;
use crate::math::{Factor, MilcPseudofermion, Rational};
use crate::measure::{Allowed, MassOf};

/// Maximum number of copies that a message suggests.
const MAX_COPIES: u32 = 16;

/// `[fermion.NAME]`: improved staggered quarks with `M^dag M = 4 m^2 - D_eo D_oe` on even sites. All pseudofermions
/// form one term of the Hamiltonian, NAME.
#[derive(Clone, Debug, PartialEq)]
pub struct StaggeredFermion {
    /// NAME.
    pub name: String,
    /// The smearing of the links in the operator.
    pub smearing: Smearing,
    /// Factors of hops over the edge of the lattice.
    pub boundary: Boundary,
    /// In the order of the file; at least one in a run, possibly none for measurements only.
    pub pseudofermions: Vec<WeightFactors>,
    /// Their common solver.
    pub solver: StaggeredSolver,
}

/// `[[fermion.NAME.pseudofermion]]`: the weight `prod_i det(M^dag M at mass_i)^(p_i/q_i)` over the even sites, where
/// `det(M^dag M)^(1/4)` is one rooted flavour.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightFactors {
    /// At least one, in the order of the input or of its file.
    pub factors: Vec<MassFactor>,
    /// The number of pseudofermions, each with all powers divided by it; 1 for functions from a file.
    pub copies: u32,
    /// Correction to the Naik term of a heavy quark; 0 with asqtad.
    pub naik_epsilon: f64,
    /// The source of the rational functions.
    pub rational: RationalSource,
    /// The poles of its force that belong to a term of their own in the levels.
    pub inner: Option<InnerRoots>,
}

/// `inner` of `[[fermion.NAME.pseudofermion]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerRoots {
    /// The term's name in the levels.
    pub name: String,
    /// The number of the force's greatest poles in it; `None`: all.
    pub poles: Option<usize>,
}

/// One entry of `factors`: `det(M^dag M)^(p/q)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MassFactor {
    /// m of `M = 2 m + D`, above 0.
    pub mass: f64,
    /// Numerator p, not 0, and denominator q.
    pub power: (i32, u32),
}

const ASQTAD: &str = "asqtad";
const HISQ: &str = "hisq";

const ACTION: Key<&str> = Key::new(
    "action",
    words(&[(ASQTAD, ASQTAD), (HISQ, HISQ)]),
    Absent::Refused,
    Change::Fixed,
    "how links are smeared",
)
.settled_as("action");
const U0: Key<f64> = Key::new(
    "u0",
    TADPOLE,
    Absent::Means("required with `\"asqtad\"`, else refused"),
    Change::Fixed,
    "tadpole factor of the smearing; the gauge action has its own",
);
/// Whether the projection is to SU(3).
const PROJECTION: Key<bool> = Key::new(
    "projection",
    words(&[("u3", false), ("su3", true)]),
    Absent::Is("\"u3\""),
    Change::Fixed,
    "group to which links are projected between the two levels of smearing",
)
.note("only with `\"hisq\"`");
const COPIES: Key<u32> = keys::COPIES.note("only `1` with `file`");
const NAIK_EPSILON: Key<f64> = Key::new(
    "naik_epsilon",
    EPSILON,
    Absent::Is("0.0"),
    Change::Tuning,
    "correction to the Naik term of a heavy quark: one link 1 + eps/8, three links -(1 + eps)/24",
)
.settled_as("naik_epsilon")
.note("with `file` its own; only with `\"hisq\"`");
const FACTOR_MASS: Key<f64> =
    Key::new("mass", MASS, Absent::Refused, Change::Tuning, "m of M = 2 m + D").settled_as("factors");
const POWER: Key<(i32, u32)> = Key::new(
    "power",
    form("2 integers p, q", Shape::List(&Shape::Integer(-64, 64), Some(2)), power),
    Absent::Refused,
    Change::Tuning,
    "the power p/q: p from -64 to 64, not 0; q from 1 to 64",
)
.settled_as("factors");

const INNER_POLES: Key<usize> = Key::new(
    "poles",
    integer(1, 64),
    Absent::Means("all"),
    Change::Tuning,
    "so many of the force's greatest poles",
);

const INNER: Section = Section { keys: &[&INNER_NAME, &INNER_POLES], tables: &[] };
const FACTORS: Section = Section { keys: &[&FACTOR_MASS, &POWER], tables: &[] };

/// `[[fermion.NAME.pseudofermion]]`
pub(crate) const PSEUDOFERMION: Section = Section {
    keys: &[&COPIES, &NAIK_EPSILON],
    tables: &[
        Inner {
            name: "factors",
            count: Count::Listed,
            text: "the weight, prod_i det(M^dag M at m_i)^(p_i/q_i), as a list `[{ mass = m, power = [p, q] }, ..]`; \
                   required, unless `file` has it",
            sections: &[&FACTORS],
        },
        Inner { name: "rational", count: Count::Once, text: "", sections: &[&STAGGERED_RATIONAL] },
        Inner {
            name: "inner",
            count: Count::Once,
            text: "`{ name = .., poles = n }`: the force of the greatest poles, or of all, belongs to another term in \
                   `[[hmc.level]]`; pseudofermions with one name share it. Small poles need dear solves, and their force \
                   is small: they belong on a level outside",
            sections: &[&INNER],
        },
    ],
};

impl Keys for StaggeredFermion {
    const ACTION: &'static Key<&'static str> = &ACTION;
    const SIGNS: &'static [&'static str] = &["pseudofermion"];
    const REACH: usize = REACH;
    const SECTION: Section = Section {
        keys: &[&ACTION, &U0, &PROJECTION, &BOUNDARY],
        tables: &[
            Inner { name: "solver", count: Count::Once, text: "", sections: &[&STAGGERED_SOLVER] },
            Inner { name: "rational", count: Count::Once, text: "", sections: &[&STAGGERED_RATIONAL] },
            Inner { name: "pseudofermion", count: Count::Listed, text: "", sections: &[&PSEUDOFERMION] },
        ],
    };

    const PLACES: &'static [(&'static str, &'static Section)] = &[
        ("staggered", &Self::SECTION),
        ("pseudofermion", &PSEUDOFERMION),
        ("staggered rational", &STAGGERED_RATIONAL),
        ("staggered solver", &STAGGERED_SOLVER),
    ];

    fn allowed(action: &'static str) -> Option<Allowed> {
        let (mass, naik_epsilon) = (MassOf::Measurement(MASS), action == HISQ);
        let allowed = Allowed::mass_of("staggered", mass);
        Some(Allowed { naik_epsilon, corner_wall: true, chemical_potential: true, ..allowed })
    }

    fn read(
        name: String,
        mut table: Table,
        action: Option<&'static str>,
        context: &mut Context,
    ) -> Option<Self> {
        table.keep("action", &action.unwrap_or_default());
        let smearing = smearing(&mut table, action);
        let boundary = table.get(&BOUNDARY);
        let solver = solver(table.table("solver"));
        let mut rational = table.table("rational");
        let defaults = RationalKeys::read(&mut rational);
        if rational.has("index") {
            rational.mistake("index", "index: only a pseudofermion's own table has it");
        }
        rational.kept_elsewhere();
        rational.finish();
        let tables = table.list("pseudofermion");
        if tables.is_empty() && table.exists() && context.purpose == Purpose::Run {
            let message = "staggered quarks need at least one [[fermion.NAME.pseudofermion]]";
            table.mistake("pseudofermion", message);
        }
        let place = Place { naik: action.map(|action| action == HISQ), defaults: &defaults };
        let mut shared = Vec::new();
        let pseudofermions: Vec<_> = tables
            .into_iter()
            .enumerate()
            .map(|(index, table)| pseudofermion(table, index, &place, &mut shared, context))
            .collect();
        let pseudofermions: Option<Vec<WeightFactors>> = pseudofermions.into_iter().collect();
        let all = |own: &WeightFactors| own.inner.as_ref().is_some_and(|inner| inner.poles.is_none());
        if pseudofermions.as_ref().is_some_and(|list| !list.is_empty() && list.iter().all(all)) {
            let message = format!("inner: all poles have other terms, and none is left for '{name}'");
            table.mistake("pseudofermion", message);
        }
        if let Some(list) = &pseudofermions {
            table.keep_as("determinant", Change::Fixed, &powers(list));
        }
        table.finish();
        let pseudofermions = pseudofermions?;
        Some(Self { name, smearing: smearing?, boundary: boundary?, pseudofermions, solver })
    }
}

/// The power p/q of every mass and correction to the Naik term, over all pseudofermions: what is sampled, however it is
/// divided among them.
fn powers(pseudofermions: &[WeightFactors]) -> Vec<(f64, f64, (i128, i128))> {
    let mut sums: Vec<(f64, f64, (i128, i128))> = Vec::new();
    for WeightFactors { factors, naik_epsilon, .. } in pseudofermions {
        for MassFactor { mass, power: (p, q) } in factors {
            let (p, q) = (i128::from(*p), i128::from(*q));
            match sums.iter_mut().find(|(m, epsilon, _)| (m, epsilon) == (mass, naik_epsilon)) {
                Some((.., sum)) => *sum = lowest(sum.0 * q + p * sum.1, sum.1 * q),
                None => sums.push((*mass, *naik_epsilon, lowest(p, q))),
            }
        }
    }
    sums.retain(|(.., (p, _))| *p != 0);
    sums.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    sums
}

/// A fraction in lowest terms.
fn lowest(p: i128, q: i128) -> (i128, i128) {
    let (mut a, mut b) = (p.abs(), q);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (p / a, q / a)
}

/// The smearing of links; `None` after a mistake.
fn smearing(table: &mut Table, action: Option<&str>) -> Option<Smearing> {
    let (u0, projection) = (table.get(&U0), table.get(&PROJECTION));
    if action? == ASQTAD {
        table.demand("u0");
        if table.has("projection") {
            table.mistake("projection", "projection: only the action \"hisq\" has it");
        }
        return Some(Smearing::Asqtad { u0: u0? });
    }
    if table.has("u0") {
        table.mistake("u0", "u0: only the action \"asqtad\" has it; the gauge action has its own");
    }
    Some(Smearing::Hisq { special: projection? })
}

/// What the pseudofermions of a fermion share.
struct Place<'a> {
    /// Whether the action is HISQ; `None` after a mistake.
    naik: Option<bool>,
    defaults: &'a RationalKeys,
}

/// Reads the pseudofermion at `index` of the list; its inner term may be one of `shared`.
fn pseudofermion(
    mut table: Table,
    index: usize,
    place: &Place,
    shared: &mut Vec<String>,
    context: &mut Context,
) -> Option<WeightFactors> {
    table.call(&index.to_string());
    let (copies, naik_epsilon) = (table.get(&COPIES), table.get(&NAIK_EPSILON));
    if place.naik == Some(false) && table.has("naik_epsilon") {
        table.mistake("naik_epsilon", "naik_epsilon: only the action \"hisq\" has it");
    }
    let tables = table.list("factors");
    if tables.is_empty() && table.has("factors") {
        table.mistake("factors", "factors: a pseudofermion needs at least one");
    }
    let factors: Option<Vec<_>> = tables.into_iter().map(factor).collect::<Vec<_>>().into_iter().collect();
    let inner = inner(table.table("inner"), shared, context);
    let mut rational_table = table.table("rational");
    let rational = RationalKeys::read(&mut rational_table).source(&mut rational_table, index, place.defaults);
    rational_table.finish();
    let (factors, naik_epsilon) = match &rational {
        Some(RationalSource::File { functions, .. }) => {
            let naik_epsilon = table.has("naik_epsilon").then_some(naik_epsilon).flatten();
            check_file(&table, functions, factors.as_deref(), naik_epsilon, copies, place.naik);
            (Some(weight(functions)), Some(functions.naik_epsilon))
        }
        Some(RationalSource::Made { lambda_max, .. }) => {
            table.demand("factors");
            let all = factors.iter().flatten().map(|factor| factor.mass);
            if let Some(mass) =
                all.filter(|mass| lambda_max / (4.0 * mass * mass) > MOST_CONDITION).reduce(f64::min)
            {
                let told = format!(
                    "factors: the mass {mass:e}: lambda_max / (4 m^2) is above {MOST_CONDITION:e}, more than double precision tells apart"
                );
                table.mistake("factors", told);
            }
            if let (Some(factors), Some(copies)) = (&factors, copies)
                && !factors.is_empty()
            {
                check_powers(&table, factors, copies);
            }
            (factors, naik_epsilon)
        }
        None => (factors, naik_epsilon),
    };
    if let (Some(factors), Some(naik_epsilon)) = (&factors, naik_epsilon) {
        table.keep_as(
            "factors",
            Change::Tuning,
            &factors.iter().map(|factor| (factor.mass, factor.power)).collect::<Vec<_>>(),
        );
        table.keep("naik_epsilon", &naik_epsilon);
    }
    table.finish();
    let (copies, rational) = (copies?, rational?);
    Some(WeightFactors { factors: factors?, copies, naik_epsilon: naik_epsilon?, rational, inner: inner? })
}

/// Reads `inner`, whose name may be one of `shared`; `None` after a mistake.
fn inner(mut table: Table, shared: &mut Vec<String>, context: &mut Context) -> Option<Option<InnerRoots>> {
    if !table.exists() {
        return Some(None);
    }
    let name = context.add_named(&mut table, &INNER_NAME, shared);
    shared.extend(name.clone());
    let poles = table.has("poles").then(|| table.get(&INNER_POLES));
    table.finish();
    Some(Some(InnerRoots { name: name?, poles: poles.map_or(Some(None), |poles| poles.map(Some))? }))
}

fn factor(mut table: Table) -> Option<MassFactor> {
    let mass = table.get(&FACTOR_MASS);
    heavy(&table, mass);
    let power = table.get(&POWER);
    table.kept_elsewhere();
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

/// Checks that the functions of force, heat bath and action exist for these factors.
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

/// The weight of a pseudofermion from a file.
fn weight(functions: &MilcPseudofermion) -> Vec<MassFactor> {
    let factor = |&(mass, (p, q)): &(f64, (i32, u32))| MassFactor { mass, power: (-p, q) };
    functions.md.factors.iter().map(factor).collect()
}

/// Checks that a file's `functions` agree with the input, as far as the input has these keys.
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
            "copies: a file's functions belong to one pseudofermion; list it once per copy",
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
