//! `[fermion.NAME]` of Wilson and clover quarks, and the Hasenbusch factors that split their determinant.

use super::{Schur, WilsonParams};
use crate::config::forms::{NOT_NEGATIVE, OF_WALLS, POSITIVE};
use crate::config::key::{Absent, Bound, Change, Key, number, words};
use crate::config::raw::Table;
use crate::config::section::{Count, Inner, Section};
use crate::family::fermion::Keys;
use crate::family::keys::{
    ACTION_ERROR, BOUNDARY, Context, FACTOR_NAME, FLAVOURS, OneFlavourFunctions, Purpose, RATIONAL, STOUT,
    STOUT_TEXT, StoutSteps, heavy, only_flavours, rational, stout,
};
use crate::measure::{Allowed, MassOf};
use crate::operator::CloverForm;
use crate::solver::TermSolver;
use crate::solver::keys::{SOLVER, SolverKeys, Systems};

/// `[fermion.NAME]`: Wilson(-clover) quarks, even-odd preconditioned. With W the even-odd operator, the Hasenbusch
/// factors W1 .. Wn split two flavours into terms of the Hamiltonian:
///
/// ```text
/// det W0^dag W0 = ratio(W0 / W1) ratio(W1 / W2) .. det Wn^dag Wn
/// ```
///
/// or, over a heavier operator V, with ratio(Wn / V) at the end.
///
/// The first ratio (without factors, the determinant) has the name NAME; each factor names the ratio or determinant
/// after it.
#[derive(Clone, Debug, PartialEq)]
pub struct WilsonFermion {
    /// NAME.
    pub name: String,
    /// The number of flavours, and the functions of a single one.
    pub flavours: Flavours,
    /// The operator W0; for one flavour, without a twisted mass.
    pub operator: WilsonParams,
    /// Smearing of the links in the operator.
    pub stout: Option<StoutSteps>,
    /// The solver of the term NAME.
    pub solver: TermSolver,
    /// The factors W1 .. Wn, each heavier than the previous one.
    pub hasenbusch: Vec<Hasenbusch>,
    /// The operator V whose determinant divides the weight, if there is one.
    pub over: Option<WilsonParams>,
}

/// Flavours of a quark.
#[derive(Clone, Debug, PartialEq)]
pub enum Flavours {
    /// Two: `det W^dag W`.
    Two,
    /// One: `det (Mhat^dag Mhat)^(1/2)` by rational functions.
    One(OneFlavourFunctions),
    /// Two of different masses: the same with the operator of both.
    OneAndOne {
        /// The mass splitting.
        epsbar: f64,
        /// The functions of the power 1/2.
        functions: OneFlavourFunctions,
    },
}

/// `[[fermion.NAME.hasenbusch]]`, with what it inherits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hasenbusch {
    /// The name of the term: the ratio of this factor to the next, or the last factor's determinant.
    pub name: String,
    /// kappa of this factor.
    pub kappa: f64,
    /// Twisted mass of this factor.
    pub mu: f64,
    /// The solver of this term.
    pub solver: TermSolver,
}

const CLOVER: &str = "wilson-clover";
const ACTION: Key<&str> = Key::new(
    "action",
    words(&[(CLOVER, CLOVER), ("wilson", "wilson")]),
    Absent::Refused,
    Change::Fixed,
    "with or without a clover term",
)
.settled_as("action");
const KAPPA: Key<f64> =
    Key::new("kappa", POSITIVE, Absent::Means("this or `mass`"), Change::Fixed, "kappa = 1 / (2 (m0 + 4))")
        .settled_as("kappa");
const MASS: Key<f64> = Key::new(
    "mass",
    number("a mass above -4", Bound::Without(-4.0), Bound::Free),
    Absent::Means("this or `kappa`"),
    Change::Fixed,
    "bare mass m0",
)
.settled_as("kappa");
const MU: Key<f64> = Key::new(
    "mu",
    NOT_NEGATIVE,
    Absent::Is("0.0"),
    Change::Fixed,
    "twisted mass of the even-odd operator, see below",
)
.note("refused with `flavours = 1`");
const TWISTED_MASS: Key<f64> = Key::new(
    "twisted_mass",
    NOT_NEGATIVE,
    Absent::Is("0.0"),
    Change::Fixed,
    "mu of a doublet with D + i mu gamma_5 tau_3 on all sites; tmLQCD's `2KappaMu` is 2 kappa mu",
)
.note("needs `preconditioning = \"asymmetric\"`; refused with `flavours = 1` and an exponential clover term");
const SPLITTING: Key<f64> = Key::new(
    "mass_splitting",
    NOT_NEGATIVE,
    Absent::Is("0.0"),
    Change::Fixed,
    "epsbar of two flavours of different masses, `D + i mubar gamma_5 tau_3 - epsbar tau_1`, with mubar the `twisted_mass`; \
     tmLQCD's `2KappaEpsBar` is 2 kappa epsbar",
)
.note(
    "needs `twisted_mass`, which must differ, and `[fermion.NAME.rational]`; refused with `flavours = 1`, `mu`, `hasenbusch` and \
     `over`; solved by `cg`",
);
const FACTOR_KAPPA: Key<f64> = Key::new(
    "kappa",
    POSITIVE,
    Absent::Means("that of the factor before"),
    Change::Tuning,
    "below that of the factor before",
)
.settled_as("kappa");
const FACTOR_MASS: Key<f64> = Key::new(
    "mass",
    number("a mass above -4", Bound::Without(-4.0), Bound::Free),
    Absent::Means("this or `kappa`"),
    Change::Tuning,
    "bare mass m0, in place of `kappa`",
)
.settled_as("kappa");
const FACTOR_MU: Key<f64> = Key::new(
    "mu",
    NOT_NEGATIVE,
    Absent::Means("that of the factor before"),
    Change::Tuning,
    "above that of the factor before",
)
.settled_as("mu");
const OVER_KAPPA: Key<f64> =
    Key::new("kappa", POSITIVE, Absent::Means("that of `[fermion.NAME]`"), Change::Fixed, "kappa of V");
const OVER_MU: Key<f64> = Key::new(
    "mu",
    NOT_NEGATIVE,
    Absent::Means("that of `[fermion.NAME]`"),
    Change::Fixed,
    "twisted mass of V",
);
/// `over` of `[fermion.NAME]`
const OVER: Section = Section { keys: &[&OVER_KAPPA, &OVER_MU], tables: &[] };
const OVER_TEXT: &str = "`{ kappa = .., mu = .. }`: a heavier operator V, whose determinant divides the weight: det W^dag W / det V^dag V. The last term \
     is then a ratio too. Only with `flavours = 2`";
const C_SW: Key<f64> = Key::new(
    "c_sw",
    NOT_NEGATIVE,
    Absent::Means("required with `\"wilson-clover\"`, else refused"),
    Change::Fixed,
    "clover coefficient",
)
.settled_as("c_sw");
const FORM: Key<CloverForm> = Key::new(
    "clover",
    words(&[("linear", CloverForm::Linear), ("exponential", CloverForm::Exponential)]),
    Absent::Is("\"linear\""),
    Change::Fixed,
    "the form of the clover term: 4 + m0 + F, or (4 + m0) exp(F / (4 + m0))",
)
.note("refused without `\"wilson-clover\"`");
const C_F: Key<[f64; 2]> = Key::new(
    "c_f",
    OF_WALLS,
    Absent::Is("1.0"),
    Change::Fixed,
    "improvement at walls in time: the mass on the slices beside them is greater by c_f - 1",
)
.note("refused without walls");
const PRECONDITIONING: Key<Schur> = Key::new(
    "preconditioning",
    words(&[("symmetric", Schur::Symmetric), ("asymmetric", Schur::Asymmetric)]),
    Absent::Is("\"symmetric\""),
    Change::Fixed,
    "the even-odd operator Mhat, by [conventions.md](conventions.md#wilson-and-clover-quarks); the symmetric one takes a \
     quarter of the iterations less",
);

/// `[fermion.NAME.hasenbusch]`
pub(crate) const HASENBUSCH: Section = Section {
    keys: &[&FACTOR_NAME, &FACTOR_KAPPA, &FACTOR_MASS, &FACTOR_MU],
    tables: &[Inner { name: "solver", count: Count::Once, text: "", sections: &[&SOLVER] }],
};

impl Keys for WilsonFermion {
    const ACTION: &'static Key<&'static str> = &ACTION;
    const SIGNS: &'static [&'static str] = &["kappa", "c_sw"];
    const KNOWS_WALLS: bool = true;
    const SECTION: Section = Section {
        keys: &[
            &ACTION,
            &FLAVOURS,
            &KAPPA,
            &MASS,
            &MU,
            &TWISTED_MASS,
            &SPLITTING,
            &C_SW,
            &FORM,
            &BOUNDARY,
            &C_F,
            &PRECONDITIONING,
        ],
        tables: &[
            Inner { name: "stout", count: Count::Once, text: STOUT_TEXT, sections: &[&STOUT] },
            Inner { name: "over", count: Count::Once, text: OVER_TEXT, sections: &[&OVER] },
            Inner { name: "solver", count: Count::Once, text: "", sections: &[&SOLVER] },
            Inner { name: "rational", count: Count::Once, text: "", sections: &[&RATIONAL] },
            Inner { name: "hasenbusch", count: Count::Listed, text: "", sections: &[&HASENBUSCH] },
        ],
    };

    const PLACES: &'static [(&'static str, &'static Section)] = &[
        ("wilson", &Self::SECTION),
        ("hasenbusch", &HASENBUSCH),
        ("rational", &RATIONAL),
        ("solver", &SOLVER),
    ];

    fn allowed(_: &'static str) -> Option<Allowed> {
        let allowed = Allowed::mass_of("Wilson", MassOf::Fermion);
        Some(Allowed { has_spin: true, chemical_potential: true, twisted_mass: true, ..allowed })
    }

    fn read(
        name: String,
        mut table: Table,
        action: Option<&'static str>,
        context: &mut Context,
    ) -> Option<Self> {
        // The action "wilson" is recorded like "wilson-clover", without its term.
        table.keep("action", &"wilson");
        let count = table.get(&FLAVOURS);
        let kappa = kappa(&mut table, [&KAPPA, &MASS]);
        if table.exists() && !table.has("kappa") && !table.has("mass") {
            table.mistake("", format!("[fermion.{name}] needs 'kappa' or 'mass'"));
        }
        let (mu, twist, epsbar) = (table.get(&MU), table.get(&TWISTED_MASS), table.get(&SPLITTING));
        let is_split = epsbar.is_some_and(|epsbar| epsbar != 0.0);
        let c_sw = c_sw(&mut table, action);
        let boundary = table.get(&BOUNDARY);
        let c_f = table.get_or(&C_F, None);
        if context.purpose == Purpose::Run && !context.boxes.time.has_walls() && table.has("c_f") {
            table.mistake("c_f", "c_f: there are no walls in time; see 'time_boundary' in [lattice]");
        }
        let clover = table.get(&FORM);
        if action != Some(CLOVER) && table.has("clover") {
            table.mistake("clover", "clover: the action \"wilson\" has no clover term");
        }
        let schur = table.get(&PRECONDITIONING);
        let stout = stout(&mut table);
        let systems = match count {
            Some(1) => Systems::Shifted { by: "flavours = 1" },
            _ if is_split => Systems::Shifted { by: "mass_splitting" },
            _ => Systems::Any,
        };
        let solver =
            SolverKeys::read(table.table("solver"), None, systems, context.boxes, context.choices.get(&name));
        let flavours = flavours(&mut table, count, epsbar.filter(|_| is_split), context);
        let mut before = Before { kappa, mu };
        let factors: Vec<_> = table
            .list("hasenbusch")
            .into_iter()
            .map(|factor| hasenbusch(factor, &mut before, &solver, context))
            .collect();
        let (solver, hasenbusch) = (solver.solver(), factors.into_iter().collect::<Option<Vec<_>>>());
        if twist.is_some_and(|twist| twist != 0.0) {
            let refusals = [
                (count == Some(1), "is of two flavours"),
                (schur == Some(Schur::Symmetric), "needs preconditioning = \"asymmetric\""),
                (clover == Some(CloverForm::Exponential), "has no exponential clover term"),
            ];
            for (_, refusal) in refusals.into_iter().filter(|(refused, _)| *refused) {
                table.mistake("twisted_mass", format!("twisted_mass: a doublet {refusal}"));
            }
        }
        if is_split && twist == Some(0.0) {
            table.mistake("mass_splitting", "mass_splitting: it needs 'twisted_mass'");
        } else if let (true, Some(kappa), Some(twist), Some(epsbar)) = (is_split, kappa, twist, epsbar) {
            if twist.powi(2) == epsbar.powi(2) {
                table.mistake("mass_splitting", "mass_splitting: it must differ from 'twisted_mass'");
            } else if epsbar >= twist.hypot(0.5 / kappa) {
                let message = "mass_splitting: it must be below sqrt((4 + m0)^2 + twisted_mass^2)";
                table.mistake("mass_splitting", message);
            }
        }
        let over = over(table.table("over"), [kappa, mu], &before);
        if let (Some(kappa), Some(c_sw), Some(factors)) = (kappa, c_sw, &hasenbusch) {
            table.keep("kappa", &kappa);
            table.keep("c_sw", &c_sw);
            // Their order is that of the ratios.
            table.keep_as(
                "hasenbusch",
                Change::Tuning,
                &factors.iter().map(|factor| &factor.name).collect::<Vec<_>>(),
            );
        }
        table.finish();
        let operator = WilsonParams {
            kappa: kappa?,
            mu: mu?,
            twisted_mass: twist?,
            c_sw: c_sw?,
            clover: clover?,
            boundary: boundary?.with_c_f(c_f),
            schur: schur?,
        };
        let hasenbusch = hasenbusch?;
        let over = over?.map(|[kappa, mu]| WilsonParams { kappa, mu, ..operator });
        let is_two = matches!(flavours, Some(Flavours::Two));
        let other_kappa = is_two && operator.clover == CloverForm::Linear && operator.twisted_mass == 0.0;
        let one_flavour = matches!(flavours, Some(Flavours::One(_))).then_some(operator.kappa);
        let is_plain = operator.twisted_mass == 0.0;
        let allowed = Self::allowed("").map(|all| Allowed {
            quarks: if is_plain { all.quarks } else { "twisted-mass" },
            is_mixed: is_split,
            twist: Some(operator.twisted_mass).filter(|_| !is_plain && !is_split),
            chemical_potential: is_plain,
            twisted_mass: is_plain,
            other_kappa,
            one_flavour,
            ..all
        });
        context.allow(&name, allowed);
        Some(Self { name, flavours: flavours?, operator, stout: stout?, solver, hasenbusch, over })
    }
}

/// The clover coefficient, 0 with the action "wilson".
fn c_sw(table: &mut Table, action: Option<&str>) -> Option<f64> {
    let c_sw = table.get(&C_SW);
    let large = c_sw.is_some_and(|c_sw| c_sw > 5.0);
    table.doubt("c_sw", large, "it is 1 at tree level, and about 1 to 3 where it was determined");
    match action? {
        CLOVER => {
            table.demand("c_sw");
            c_sw
        }
        _ => {
            if table.has("c_sw") {
                let message = "c_sw: the action \"wilson\" has none; did you mean \"wilson-clover\"?";
                table.mistake("c_sw", message);
            }
            Some(0.0)
        }
    }
}

/// The flavours; `None` after a mistake.
fn flavours(
    table: &mut Table,
    count: Option<u32>,
    epsbar: Option<f64>,
    context: &mut Context,
) -> Option<Flavours> {
    let mut functions = table.table("rational");
    let action_error = functions.get(&ACTION_ERROR);
    let found = rational(&mut functions, action_error, context);
    functions.finish();
    let of_two = ["mu", "hasenbusch", "over"];
    let Some(epsbar) = epsbar else {
        only_flavours(table, count, &of_two, &["rational"]);
        return match count? {
            1 => {
                table.demand("rational");
                found.map(Flavours::One)
            }
            _ => Some(Flavours::Two),
        };
    };
    for key in of_two.iter().filter(|key| table.has(key)) {
        table.mistake(key, format!("{key}: two flavours of different masses have none"));
    }
    if count == Some(1) {
        table.mistake("mass_splitting", "mass_splitting: only flavours = 2 has it");
    }
    table.demand("rational");
    found.map(|functions| Flavours::OneAndOne { epsbar, functions })
}

/// kappa, given directly or by the mass.
fn kappa(table: &mut Table, [kappa, mass]: [&Key<f64>; 2]) -> Option<f64> {
    let (kappa, mass) = (table.get(kappa), table.get(mass));
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

/// kappa and mu of `over`, which must be heavier than the last factor; `Some(None)` without the table, `None` after a mistake.
fn over(mut table: Table, [kappa, mu]: [Option<f64>; 2], last: &Before) -> Option<Option<[f64; 2]>> {
    if !table.exists() {
        return Some(None);
    }
    let (kappa, mu) = (table.get(&OVER_KAPPA).or(kappa), table.get(&OVER_MU).or(mu));
    let found = kappa.zip(mu);
    if let (Some((kappa, mu)), Some(before)) = (found, last.kappa.zip(last.mu)) {
        let is_heavier = kappa <= before.0 && mu >= before.1 && (kappa, mu) != before;
        if !is_heavier {
            let message = format!(
                "over: kappa {kappa} and mu {mu} are not heavier than {} and {} of the last factor",
                before.0, before.1
            );
            table.mistake("", message);
        }
    }
    table.finish();
    found.map(|(kappa, mu)| Some([kappa, mu]))
}

/// The masses of the previous factor; `None` after a mistake.
struct Before {
    kappa: Option<f64>,
    mu: Option<f64>,
}

/// Advice about a mass that does not increase.
const KEEP: &str = ": order them from light to heavy, and leave out what stays";

/// Reads a factor, and sets `before` to its masses for the next one.
fn hasenbusch(
    mut table: Table,
    before: &mut Before,
    fermion: &SolverKeys,
    context: &mut Context,
) -> Option<Hasenbusch> {
    let name = context.add_factor(&mut table);
    let kappa = kappa(&mut table, [&FACTOR_KAPPA, &FACTOR_MASS]);
    let mu = table.get(&FACTOR_MU);
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
    if let (Some(kappa), Some(mu)) = (before.kappa, before.mu) {
        table.keep("kappa", &kappa);
        table.keep("mu", &mu);
    }
    let chosen = name.as_ref().and_then(|name| context.choices.get(name));
    let keys = SolverKeys::read(table.table("solver"), Some(fermion), Systems::Any, context.boxes, chosen);
    table.finish();
    Some(Hasenbusch { name: name?, kappa: before.kappa?, mu: before.mu?, solver: keys.solver() })
}
