//! Keys that several families share: boundary phases, stout smearing, flavours, rational functions, Hasenbusch factors.

use crate::action::InnerPoles;
pub(crate) use crate::config::doubts::heavy;
use crate::config::forms::{COUNT, ERROR, NAME, RANGE};
use crate::config::key::{Absent, Bound, Change, Form, Key, Shape, form, integer, number};
use crate::config::raw::Table;
use crate::config::reader::{Read, Value, choice, four};
use crate::config::section::{Count, Inner, Section};
use crate::lattice::Boundary;
use crate::measure::Allowed;
use crate::solver::Choices;
use crate::solver::keys::Boxes;
use toml::de::DeValue;

/// The purpose of reading quarks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// A chain.
    Run,
    /// Only measurements.
    Measurement,
}

/// A term that a level may contain.
pub(crate) struct Term {
    pub name: String,
    /// The byte of its table's header.
    pub at: usize,
    /// Whether it is the NAME of a `[fermion.NAME]`, which measurements may refer to.
    pub is_fermion: bool,
    /// What measurements may set for it; `None` after a mistake.
    pub allowed: Option<Allowed>,
}

/// What the reader of a fermion needs besides its table.
pub(crate) struct Context {
    /// The terms of the Hamiltonian so far.
    pub terms: Vec<Term>,
    /// The lattice.
    pub boxes: Boxes,
    /// The purpose of the quarks.
    pub purpose: Purpose,
    /// What a chain has chosen for terms with `method = "auto"`.
    pub choices: Choices,
}

impl Context {
    /// Adds a fermion; nothing else is known about it yet.
    pub(super) fn add_fermion(&mut self, name: &str, at: usize) {
        self.terms.push(Term { name: name.to_owned(), at, is_fermion: true, allowed: None });
    }

    /// Records what measurements may set for the fermion `name`.
    pub(super) fn allow(&mut self, name: &str, allowed: Option<Allowed>) {
        if let Some(term) = self.terms.iter_mut().find(|term| term.name == name) {
            term.allowed = allowed;
        }
    }

    /// The name of a Hasenbusch factor; adds its term.
    pub(super) fn add_factor(&mut self, table: &mut Table) -> Option<String> {
        self.add_named(table, &FACTOR_NAME, &[])
    }

    /// The term of a table by its `name`, which may be one of `shared`; adds it unless it is.
    pub(super) fn add_named(
        &mut self,
        table: &mut Table,
        name: &'static Key<String>,
        shared: &[String],
    ) -> Option<String> {
        let name = table.get(name)?;
        table.call(&name);
        table.keep("name", &name);
        if shared.contains(&name) {
            return Some(name);
        }
        if self.terms.iter().any(|term| term.name == name) {
            let message = format!("name: there is a term '{name}' already; each needs a name of its own");
            table.mistake("name", message);
        } else {
            let (name, at) = (name.clone(), table.at("name"));
            self.terms.push(Term { name, at, is_fermion: false, allowed: None });
        }
        Some(name)
    }
}

/// The name of a Hasenbusch factor's term, and of its table in records.
pub(super) const FACTOR_NAME: Key<String> =
    Key::new("name", NAME, Absent::Refused, Change::Tuning, "the term; no other may have this name")
        .settled_as("name");

/// The phases of all directions, in units of pi.
pub(super) const BOUNDARY: Key<Boundary> = Key::new(
    "boundary",
    form("4 of `\"periodic\"`, `\"antiperiodic\"`, number", Shape::List(&PHASE, Some(4)), |value| {
        four("4 boundaries [x, y, z, t]", phase)(value).map(Boundary::phases)
    }),
    Absent::Is("[\"periodic\", \"periodic\", \"periodic\", \"antiperiodic\"]"),
    Change::Fixed,
    "phase in x, y, z, t; a number, -2 to 2, is in units of pi",
);

const PHASE: Shape = Shape::Either(&[
    Shape::Words(&["periodic", "antiperiodic"]),
    Shape::Number(Bound::With(-2.0), Bound::With(2.0)),
]);

const PHASE_NUMBER: Form<f64> = number(
    "\"periodic\", \"antiperiodic\" or a phase from -2 to 2, in units of pi",
    Bound::With(-2.0),
    Bound::With(2.0),
);

/// A boundary phase in units of pi.
fn phase(value: &Value) -> Read<f64> {
    match value.get_ref() {
        DeValue::String(_) => choice(&[("periodic", 0.0), ("antiperiodic", 1.0)])(value),
        _ => PHASE_NUMBER.read(value),
    }
}

/// `stout` of `[fermion.NAME]`: the smearing of the links in the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoutSteps {
    /// Smearing steps, 1 to 16.
    pub steps: usize,
    /// Weight of a staple, 0 < rho < 0.25.
    pub rho: f64,
}

const STEPS: Key<usize> = Key::new(
    "steps",
    integer(1, 16),
    Absent::Refused,
    Change::Fixed,
    "smearing steps, all with the same rho",
);
const RHO: Key<f64> = Key::new(
    "rho",
    number("a number between 0 and 0.25", Bound::Without(0.0), Bound::Without(0.25)),
    Absent::Refused,
    Change::Fixed,
    "weight of a staple",
);

/// `stout`
pub(super) const STOUT: Section = Section { keys: &[&STEPS, &RHO], tables: &[] };
/// The description of `stout` in the documentation.
pub(super) const STOUT_TEXT: &str =
    "stout smearing of the links that the operator sees, for hops and clover term";

/// The smearing of a fermion's links, if any; `None` after a mistake.
pub(super) fn stout(table: &mut Table) -> Option<Option<StoutSteps>> {
    let mut table = table.table("stout");
    if !table.exists() {
        return Some(None);
    }
    let (steps, rho) = (table.get(&STEPS), table.get(&RHO));
    table.finish();
    Some(Some(StoutSteps { steps: steps?, rho: rho? }))
}

/// The number of degenerate flavours.
pub(super) const FLAVOURS: Key<u32> = Key::new(
    "flavours",
    integer(1, 2),
    Absent::Is("2"),
    Change::Fixed,
    "degenerate flavours: `2` by one determinant, `1` by its square root",
);

/// Refuses the keys that only two flavours have (`two`), or only one flavour (`one`).
pub(super) fn only_flavours(table: &Table, count: Option<u32>, two: &[&str], one: &[&str]) {
    let (refused, other) = match count {
        Some(1) => (two, 2),
        Some(_) => (one, 1),
        None => return,
    };
    for key in refused.iter().filter(|key| table.has(key)) {
        table.mistake(key, format!("{key}: only flavours = {other} has it"));
    }
}

/// `[fermion.NAME.rational]`: the functions of one flavour.
#[derive(Clone, Debug, PartialEq)]
pub struct OneFlavourFunctions {
    /// The number of pseudofermions, each with all powers divided by it.
    pub copies: u32,
    /// Bounds of the spectrum of Mhat^dag Mhat (for domain-wall quarks, of C C^dag), 0 < lo < hi.
    pub range: [f64; 2],
    /// Greatest relative error of the functions of heat bath and action.
    pub action_error: f64,
    /// Greatest relative error of the function of the force.
    pub force_error: f64,
    /// Trajectories between measurements of the spectrum, which enforce its bounds.
    pub check_every: u64,
    /// The poles of the force that are a term of their own in the levels.
    pub inner: Option<InnerPoles>,
}

/// The number of pseudofermions of equal roots of a determinant.
pub(super) const COPIES: Key<u32> = Key::new(
    "copies",
    integer(1, 64),
    Absent::Is("1"),
    Change::Tuning,
    "so many pseudofermions, each with all powers divided by this number",
);
const SPECTRUM_RANGE: Key<[f64; 2]> = Key::new(
    "range",
    RANGE,
    Absent::Refused,
    Change::Tuning,
    "bounds of the spectrum, enforced: of Mhat^dag Mhat with Wilson quarks, of C C^dag at `mass` with domain-wall quarks \
     and `\"rational\"`; with `\"eofa\"` see above",
);
/// Greatest relative error of the functions of heat bath and action.
pub(super) const ACTION_ERROR: Key<f64> = Key::new(
    "action_error",
    ERROR,
    Absent::Is("1e-12"),
    Change::Tuning,
    "greatest relative error of the functions of heat bath and action",
);
/// Greatest relative error of the function of the force.
pub(super) const FORCE_ERROR: Key<f64> = Key::new(
    "force_error",
    ERROR,
    Absent::Is("1e-7"),
    Change::Tuning,
    "greatest relative error of the function of the force",
);
/// Trajectories between checks of the spectrum.
pub(super) const CHECK_EVERY: Key<u64> = Key::new(
    "check_every",
    COUNT,
    Absent::Is("1"),
    Change::Tuning,
    "trajectories between checks of the spectrum",
);

/// The name of a part of a force, and of its table in records.
pub(super) const INNER_NAME: Key<String> =
    Key::new("name", NAME, Absent::Refused, Change::Tuning, "the part's name in the levels")
        .settled_as("name");
const INNER_POLES: Key<usize> = Key::new(
    "poles",
    integer(1, 64),
    Absent::Refused,
    Change::Tuning,
    "so many of the force's greatest poles; at least one is left outside",
);
/// `inner` of `[fermion.NAME.rational]`
pub(crate) const INNER: Section = Section { keys: &[&INNER_NAME, &INNER_POLES], tables: &[] };
/// `inner` as a table of another section.
const INNER_TABLE: Inner = Inner { name: "inner", count: Count::Once, text: INNER_TEXT, sections: &[&INNER] };
/// The description of `inner` in the documentation.
pub(super) const INNER_TEXT: &str = "`{ name = .., poles = n }`: the force of the greatest poles is a term of its own in `[[hmc.level]]`, which belongs on \
     a level inside the fermion's: they make most of the force, and their solves are cheap";

/// `[fermion.NAME.rational]`
pub(crate) const RATIONAL: Section = Section {
    keys: &[&SPECTRUM_RANGE, &COPIES, &ACTION_ERROR, &FORCE_ERROR, &CHECK_EVERY],
    tables: &[INNER_TABLE],
};

/// `[fermion.NAME.rational]` of domain-wall quarks.
pub(crate) const WALL_RATIONAL: Section = Section {
    keys: &[
        &SPECTRUM_RANGE,
        &HEAVY_RANGE,
        &COPIES,
        &WALL_ACTION_ERROR,
        &FORCE_ERROR,
        &CHECK_EVERY,
        &FORECAST,
    ],
    tables: &[INNER_TABLE],
};

/// As [`ACTION_ERROR`], which is of the heat bath alone with the exact one-flavour action: its default is looser then.
pub(super) const WALL_ACTION_ERROR: Key<f64> = Key::new(
    "action_error",
    ERROR,
    Absent::Means("`1e-12`; `1e-10` with `\"eofa\"`"),
    Change::Tuning,
    "greatest relative error of the functions of heat bath and action; with `\"eofa\"` that of the heat bath, see above",
)
.settled_as("action_error");
/// The number of solutions that a solve of the exact action's heat bath starts from.
pub(super) const FORECAST: Key<usize> = Key::new(
    "forecast",
    integer(0, 64),
    Absent::Is("8"),
    Change::Tuning,
    "with `\"eofa\"`: each solve of the heat bath starts from the best combination of so many solutions for other poles; `0`: \
     from that of the pole before",
);
/// Bounds of the spectrum at the Pauli-Villars mass.
pub(super) const HEAVY_RANGE: Key<[f64; 2]> = Key::new(
    "heavy_range",
    RANGE,
    Absent::Means("required with `\"rational\"`, else refused"),
    Change::Tuning,
    "bounds of the spectrum of C C^dag at mass 1",
);

/// Reads the keys of one flavour's rational functions, whose error is read already; `None` after a mistake.
pub(super) fn rational(
    table: &mut Table,
    action_error: Option<f64>,
    context: &mut Context,
) -> Option<OneFlavourFunctions> {
    let inner = inner(table.table("inner"), context);
    let (range, copies, force_error) =
        (table.get(&SPECTRUM_RANGE), table.get(&COPIES), table.get(&FORCE_ERROR));
    let check_every = table.get(&CHECK_EVERY);
    Some(OneFlavourFunctions {
        copies: copies?,
        range: range?,
        action_error: action_error?,
        force_error: force_error?,
        check_every: check_every?,
        inner: inner?,
    })
}

/// Reads `inner`; `None` after a mistake.
fn inner(mut table: Table, context: &mut Context) -> Option<Option<InnerPoles>> {
    if !table.exists() {
        return Some(None);
    }
    let name = context.add_named(&mut table, &INNER_NAME, &[]);
    let poles = table.get(&INNER_POLES);
    table.finish();
    Some(Some(InnerPoles { name: name?, poles: poles? }))
}
