//! `[fermion.NAME]` of domain-wall quarks: weights of the fifth dimension, flavours and their actions, Hasenbusch
//! masses.

use crate::config::forms::{NOT_NEGATIVE, POSITIVE, RANGE};
use crate::config::key::{Absent, Bound, Change, Form, Key, Shape, form, integer, number, words};
use crate::config::raw::Table;
use crate::config::reader::list;
use crate::config::section::{Count, Inner, Section};
use crate::family::fermion::Keys;
use crate::family::keys::{
    BOUNDARY, Context, FACTOR_NAME, FLAVOURS, FORECAST, HEAVY_RANGE, OneFlavourFunctions, STOUT, STOUT_TEXT,
    StoutSteps, WALL_ACTION_ERROR, WALL_RATIONAL, only_flavours, rational, stout,
};
use crate::lattice::Boundary;
use crate::math::WallWeights;
use crate::measure::{Allowed, MassOf};
use crate::solver::TermSolver;
use crate::solver::keys::{SolverKeys, Systems, WALL_SOLVER};

/// `[fermion.NAME]`: domain-wall quarks, even-odd preconditioned in four dimensions. With C(m) the even-odd operator on
/// N_s slices, the Hasenbusch masses m_1 < .. < m_n split two flavours into terms of the Hamiltonian. With the exact
/// action they split one flavour in the same way, with det C (m):
///
/// ```text
/// det C C^dag (m) / det C C^dag (1) = ratio(m / m_1) ratio(m_1 / m_2) .. ratio(m_n / 1)
/// ```
///
/// where m = 1 is the Pauli-Villars operator. The first ratio has the name NAME; each factor names the ratio of its
/// mass to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainWallFermion {
    /// NAME.
    pub name: String,
    /// The weights omega_s and sigma_s.
    pub weights: Weights,
    /// Slices of the fifth dimension, 4 to 48.
    pub n_s: usize,
    /// Height of the wall, between 0 and 2: D_w has the mass `-m5`.
    pub m5: f64,
    /// m, from 0 to below 1.
    pub mass: f64,
    /// The number of flavours, and the action of a single one.
    pub flavours: WallFlavours,
    /// Factors of hops over the edge of the lattice.
    pub boundary: Boundary,
    /// Smearing of the links in the operator.
    pub stout: Option<StoutSteps>,
    /// The masses m_1 .. m_n; empty for one flavour by rational functions.
    pub hasenbusch: Vec<WallFactor>,
    /// The solver of the term NAME.
    pub solver: TermSolver,
}

/// `weights`: omega_s and sigma_s of `D_5 = (omega_s D_w + 1) delta + (sigma_s D_w - 1) L`.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// omega = 1, sigma = 0.
    Shamir,
    /// omega = sigma = 1.
    Borici,
    /// omega = b, sigma = c.
    Mobius {
        /// Positive.
        b: f64,
        /// From 0 to b.
        c: f64,
    },
    /// omega = sigma, with the best approximation of the sign function of H_w.
    Optimal {
        /// Bounds of the spectrum of |H_w|, 0 < lo < hi.
        spectrum: [f64; 2],
        /// Whether to take the best weights with `omega_s = omega_(N_s + 1 - s)`.
        symmetric: bool,
    },
    /// One by one: omega_s positive, sigma_s from 0 to omega_s, and their difference the same for all s.
    Listed(WallWeights),
}

impl Weights {
    /// The weights of `n_s` slices.
    ///
    /// # Panics
    /// Listed weights are of another number of slices.
    #[must_use]
    pub fn on(&self, n_s: usize) -> WallWeights {
        match *self {
            Self::Listed(ref weights) => {
                assert_eq!(weights.n_s(), n_s, "weights of every slice");
                weights.clone()
            }
            Self::Shamir => WallWeights::shamir(n_s),
            Self::Borici => WallWeights::borici(n_s),
            Self::Mobius { b, c } => WallWeights::mobius(n_s, b, c),
            Self::Optimal { spectrum, symmetric: false } => WallWeights::optimal(n_s, spectrum),
            Self::Optimal { spectrum, symmetric: true } => WallWeights::symmetric_optimal(n_s, spectrum),
        }
    }

    /// Whether omega = sigma.
    fn has_equal_terms(&self) -> bool {
        match *self {
            Self::Shamir => false,
            Self::Borici | Self::Optimal { .. } => true,
            Self::Mobius { b, c } => b == c,
            Self::Listed(ref weights) => weights.omega == weights.sigma,
        }
    }

    /// Whether `omega_s = omega_(N_s + 1 - s)`, and sigma_s is a multiple of omega_s: then gamma_5 and the reflection of s make
    /// D_5 hermitian.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        match self {
            Self::Listed(weights) => weights.is_symmetric() && weights.are_proportional(),
            Self::Optimal { symmetric, .. } => *symmetric,
            Self::Shamir | Self::Borici | Self::Mobius { .. } => true,
        }
    }
}

/// Degenerate flavours of a domain-wall quark.
#[derive(Clone, Debug, PartialEq)]
pub enum WallFlavours {
    /// Two: `det C C^dag (m) / det C C^dag (1)`.
    Two,
    /// One, by the exact one-flavour action (Chen, Chiu arXiv:1403.1683).
    OneEofa {
        /// Bounds of the spectra of the action's two hermitian operators, 0 < lo < hi.
        range: [f64; 2],
        /// Greatest relative error of the function of the heat bath.
        error: f64,
        /// Trajectories between checks of the heat bath, which enforce the range.
        check_every: u64,
        /// The number of other poles' solutions from which a solve of the heat bath starts.
        forecast: usize,
    },
    /// One, `det (C C^dag (m))^(1/2) / det (C C^dag (1))^(1/2)`, by rational functions.
    OneRational {
        /// The functions; their range is that of C C^dag at the quark's mass.
        functions: OneFlavourFunctions,
        /// Bounds of the spectrum of C C^dag at the Pauli-Villars mass 1.
        heavy_range: [f64; 2],
    },
}

/// `[[fermion.NAME.hasenbusch]]` of domain-wall quarks, with what it inherits.
#[derive(Clone, Debug, PartialEq)]
pub struct WallFactor {
    /// The name of the term: the ratio of this mass to the next, or of the last mass to 1.
    pub name: String,
    /// Above the previous mass, below 1.
    pub mass: f64,
    /// The solver of this term.
    pub solver: TermSolver,
}

/// The values of `weights`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Formula {
    Shamir,
    Borici,
    Mobius,
    Optimal { symmetric: bool },
    Listed,
}

/// The values of `one_flavour`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Eofa,
    Rational,
}

/// The mass of a domain-wall quark; 1 is the mass of the Pauli-Villars fields.
const WALL_MASS: Form<f64> = number("a mass from 0 to below 1", Bound::With(0.0), Bound::Without(1.0));

const ACTION: Key<&str> = Key::new(
    "action",
    words(&[("domain-wall", "domain-wall")]),
    Absent::Refused,
    Change::Fixed,
    "domain-wall quarks of any weights",
)
.settled_as("action");
const WEIGHTS: Key<Formula> = Key::new(
    "weights",
    words(&[
        ("shamir", Formula::Shamir),
        ("borici", Formula::Borici),
        ("mobius", Formula::Mobius),
        ("optimal", Formula::Optimal { symmetric: false }),
        ("optimal-symmetric", Formula::Optimal { symmetric: true }),
        ("listed", Formula::Listed),
    ]),
    Absent::Refused,
    Change::Fixed,
    "omega_s and sigma_s, see below",
);
const B: Key<f64> = Key::new(
    "b",
    number("a number above 0", Bound::Without(0.0), Bound::Free),
    Absent::Means("required with `\"mobius\"`, else refused"),
    Change::Fixed,
    "omega_s; (`b` - `c`) `m5` must be below 2",
);
const C: Key<f64> = Key::new(
    "c",
    NOT_NEGATIVE,
    Absent::Means("required with `\"mobius\"`, else refused"),
    Change::Fixed,
    "sigma_s; at most `b`",
);
const SPECTRUM: Key<[f64; 2]> = Key::new(
    "spectrum",
    RANGE,
    Absent::Means("required with `\"optimal\"` and `\"optimal-symmetric\"`, else refused"),
    Change::Fixed,
    "bounds of \\|H_w\\|, H_w = gamma_5 D_w, for which the weights are best; not enforced",
);
const LISTED: &str = "required with `\"listed\"`, else refused";
const OMEGA: Key<Vec<f64>> = Key::new(
    "omega",
    form(
        "array of numbers above 0",
        Shape::List(&Shape::Number(Bound::Without(0.0), Bound::Free), None),
        |value| list("an array of `n_s` numbers", |value| POSITIVE.read(value))(value),
    ),
    Absent::Means(LISTED),
    Change::Fixed,
    "omega_1 .. omega_n_s",
);
const SIGMA: Key<Vec<f64>> = Key::new(
    "sigma",
    form(
        "array of numbers, 0 at least",
        Shape::List(&Shape::Number(Bound::With(0.0), Bound::Free), None),
        |value| list("an array of `n_s` numbers", |value| NOT_NEGATIVE.read(value))(value),
    ),
    Absent::Means(LISTED),
    Change::Fixed,
    "sigma_1 .. sigma_n_s; each at most omega_s, and omega_s - sigma_s the same for all s",
);
const N_S: Key<usize> = Key::new(
    "n_s",
    integer(4, 48),
    Absent::Refused,
    Change::Fixed,
    "slices of the fifth dimension; even with `\"optimal-symmetric\"`, and with `\"eofa\"` if omega = sigma",
);
const M5: Key<f64> = Key::new(
    "m5",
    number("a number between 0 and 2", Bound::Without(0.0), Bound::Without(2.0)),
    Absent::Refused,
    Change::Fixed,
    "height of the wall, M5",
);
const MASS: Key<f64> = Key::new(
    "mass",
    WALL_MASS,
    Absent::Refused,
    Change::Fixed,
    "m; this is TWQCD's m_q / (2 m0), with m0 its M5",
);
const ONE_FLAVOUR: Key<Way> = Key::new(
    "one_flavour",
    words(&[("eofa", Way::Eofa), ("rational", Way::Rational)]),
    Absent::Means("required with `flavours = 1`, else refused"),
    Change::Tuning,
    "one flavour by the exact one-flavour action, or by rational functions; see below",
);
const FACTOR_MASS: Key<f64> = Key::new(
    "mass",
    number("a mass between 0 and 1", Bound::Without(0.0), Bound::Without(1.0)),
    Absent::Refused,
    Change::Tuning,
    "above that of the factor before",
);

/// `[[fermion.NAME.hasenbusch]]`
pub(crate) const HASENBUSCH: Section = Section {
    keys: &[&FACTOR_NAME, &FACTOR_MASS],
    tables: &[Inner { name: "solver", count: Count::Once, text: "", sections: &[&WALL_SOLVER] }],
};

impl Keys for DomainWallFermion {
    const ACTION: &'static Key<&'static str> = &ACTION;
    const SIGNS: &'static [&'static str] = &["weights", "n_s"];
    const SECTION: Section = Section {
        keys: &[
            &ACTION,
            &WEIGHTS,
            &B,
            &C,
            &SPECTRUM,
            &OMEGA,
            &SIGMA,
            &N_S,
            &M5,
            &MASS,
            &FLAVOURS,
            &ONE_FLAVOUR,
            &BOUNDARY,
        ],
        tables: &[
            Inner { name: "stout", count: Count::Once, text: STOUT_TEXT, sections: &[&STOUT] },
            Inner { name: "solver", count: Count::Once, text: "", sections: &[&WALL_SOLVER] },
            Inner { name: "rational", count: Count::Once, text: "", sections: &[&WALL_RATIONAL] },
            Inner { name: "hasenbusch", count: Count::Listed, text: "", sections: &[&HASENBUSCH] },
        ],
    };

    const PLACES: &'static [(&'static str, &'static Section)] = &[
        ("domain-wall", &Self::SECTION),
        ("domain-wall hasenbusch", &HASENBUSCH),
        ("domain-wall rational", &WALL_RATIONAL),
        ("domain-wall solver", &WALL_SOLVER),
    ];

    /// The mass is known only after the table was read.
    fn allowed(_: &'static str) -> Option<Allowed> {
        None
    }

    fn read(name: String, mut table: Table, _: Option<&'static str>, context: &mut Context) -> Option<Self> {
        table.keep("action", &"domain-wall");
        let (formula, weights) = weights(&mut table);
        let lists = (table.get(&OMEGA), table.get(&SIGMA));
        let (n_s, m5, mass) = (table.get(&N_S), table.get(&M5), table.get(&MASS));
        let allowed = Allowed::mass_of("domain-wall", MassOf::Either(WALL_MASS, mass));
        context.allow(&name, Some(Allowed { has_spin: true, ..allowed }));
        let (count, way) = (table.get(&FLAVOURS), table.get(&ONE_FLAVOUR));
        check_slices(&table, formula, n_s);
        let weights = listed(&mut table, formula, lists, n_s).or(weights);
        if count == Some(1) && way == Some(Way::Eofa) {
            check_eofa(&table, weights.as_ref(), n_s);
        }
        check_kernel(&table, weights.as_ref(), m5);
        let (boundary, stout) = (table.get(&BOUNDARY), stout(&mut table));
        let systems = match (count, way) {
            (Some(1), Some(Way::Rational)) => Systems::Shifted { by: "one_flavour = \"rational\"" },
            _ => Systems::Wall,
        };
        let solver =
            SolverKeys::read(table.table("solver"), None, systems, context.boxes, context.choices.get(&name));
        let flavours = flavours(&mut table, count, way, context);
        let mut before = mass;
        let mut factors = Vec::new();
        for table in table.list("hasenbusch") {
            factors.push(factor(table, &mut before, &solver, context));
        }
        let hasenbusch = factors.into_iter().collect::<Option<Vec<_>>>();
        if let Some(factors) = &hasenbusch {
            // Their order is that of the ratios.
            table.keep_as(
                "hasenbusch",
                Change::Tuning,
                &factors.iter().map(|factor| &factor.name).collect::<Vec<_>>(),
            );
        }
        table.finish();
        Some(Self {
            name,
            weights: weights?,
            n_s: n_s?,
            m5: m5?,
            mass: mass?,
            flavours: flavours?,
            boundary: boundary?,
            stout: stout?,
            hasenbusch: hasenbusch?,
            solver: solver.solver(),
        })
    }
}

fn check_slices(table: &Table, formula: Option<Formula>, n_s: Option<usize>) {
    if let (Some(Formula::Optimal { symmetric: true }), Some(odd)) = (formula, n_s.filter(|n| n % 2 == 1)) {
        let message =
            format!("n_s: the weights \"optimal-symmetric\" come in pairs: take an even number, not {odd}");
        table.mistake("n_s", message);
    }
}

/// Checks the requirements of the exact one-flavour action on the weights.
fn check_eofa(table: &Table, weights: Option<&Weights>, n_s: Option<usize>) {
    if !weights.is_none_or(|weights| weights.is_symmetric()) {
        let message = "one_flavour: \"eofa\" needs weights that are the same from both walls: take \
                       \"optimal-symmetric\" for \"optimal\", or one_flavour = \"rational\"";
        table.mistake("one_flavour", message);
    }
    // For Pauli-Villars fields (mass 1), omega + sigma L would be singular, because 1 + L^N_s = 0.
    let odd = n_s.filter(|n_s| n_s % 2 == 1);
    if let Some(n_s) = odd.filter(|_| weights.is_some_and(|weights| weights.has_equal_terms())) {
        let message = format!("n_s: \"eofa\" with omega = sigma needs an even number, not {n_s}");
        table.mistake("n_s", message);
    }
}

/// Checks the kernel's denominator at the physical modes, where D_w is near -M5.
fn check_kernel(table: &Table, weights: Option<&Weights>, m5: Option<f64>) {
    let difference = match weights {
        Some(&Weights::Mobius { b, c }) => Some(("b", "b - c", b - c)),
        Some(Weights::Listed(weights)) => weights.kernel_difference().map(|k| ("omega", "omega - sigma", k)),
        _ => None,
    };
    if let (Some((key, words, difference)), Some(m5)) = (difference, m5)
        && difference * m5 >= 2.0
    {
        let message = format!(
            "{key}: ({words}) m5 is {}, and has to be below 2: else the kernel's sign is wrong on the physical modes",
            difference * m5
        );
        table.mistake(key, message);
    }
}

/// The weights of every slice, if the formula asks for a list.
fn listed(
    table: &mut Table,
    formula: Option<Formula>,
    (omega, sigma): (Option<Vec<f64>>, Option<Vec<f64>>),
    n_s: Option<usize>,
) -> Option<Weights> {
    if formula != Some(Formula::Listed) {
        for key in ["omega", "sigma"].into_iter().filter(|key| formula.is_some() && table.has(key)) {
            table.mistake(key, format!("{key}: only the weights \"listed\" have it"));
        }
        return None;
    }
    ["omega", "sigma"].iter().for_each(|key| table.demand(key));
    let (omega, sigma) = (omega?, sigma?);
    let n_s = n_s?;
    let lengths = [("omega", omega.len()), ("sigma", sigma.len())];
    if let Some((key, found)) = lengths.into_iter().find(|(_, found)| *found != n_s) {
        table.mistake(key, format!("{key}: {found} numbers for {n_s} slices"));
        return None;
    }
    let weights = WallWeights { omega, sigma };
    if weights.kernel_difference().is_none_or(|k| k < 0.0) {
        let message = "sigma: omega_s - sigma_s has to be the same for all s, and 0 at least: else the slices have no common \
                       kernel, or one with a pole";
        table.mistake("sigma", message);
    }
    Some(Weights::Listed(weights))
}

/// The formula of the weights, and the weights; the formula may be known even if the weights are `None`, as
/// those that are listed.
fn weights(table: &mut Table) -> (Option<Formula>, Option<Weights>) {
    let formula = table.get(&WEIGHTS);
    let (b, c, spectrum) = (table.get(&B), table.get(&C), table.get(&SPECTRUM));
    // If sigma exceeds omega, the kernel gamma_5 D_w (2 + (b - c) D_w)^-1 may have a pole.
    if let (Some(b), Some(c)) = (b, c)
        && c > b
    {
        table.mistake("c", format!("c: {c} is above b = {b}: the kernel could have a pole"));
    }
    let keys: &[&'static str] = match formula {
        Some(Formula::Mobius) => &["b", "c"],
        Some(Formula::Optimal { .. }) => &["spectrum"],
        Some(Formula::Shamir | Formula::Borici | Formula::Listed) | None => &[],
    };
    keys.iter().for_each(|key| table.demand(key));
    let owners = [
        ("b", "\"mobius\" have"),
        ("c", "\"mobius\" have"),
        ("spectrum", "\"optimal\" and \"optimal-symmetric\" have"),
    ];
    for (key, owner) in owners.into_iter().filter(|(key, _)| formula.is_some() && !keys.contains(key)) {
        if table.has(key) {
            table.mistake(key, format!("{key}: only the weights {owner} it"));
        }
    }
    let weights = formula.and_then(|formula| {
        Some(match formula {
            Formula::Shamir => Weights::Shamir,
            Formula::Borici => Weights::Borici,
            Formula::Mobius => Weights::Mobius { b: b?, c: c? },
            Formula::Optimal { symmetric } => Weights::Optimal { spectrum: spectrum?, symmetric },
            Formula::Listed => return None,
        })
    });
    (formula, weights)
}

/// The flavours and their action; `None` after a mistake.
fn flavours(
    table: &mut Table,
    count: Option<u32>,
    way: Option<Way>,
    context: &mut Context,
) -> Option<WallFlavours> {
    let one = one_flavour(table.table("rational"), way, context);
    only_flavours(table, count, &[], &["one_flavour", "rational"]);
    if count == Some(1) && way == Some(Way::Rational) && table.has("hasenbusch") {
        table.mistake("hasenbusch", "hasenbusch: with flavours = 1 only one_flavour = \"eofa\" has it");
    }
    match count? {
        1 => {
            table.demand("one_flavour");
            table.demand("rational");
            one
        }
        _ => Some(WallFlavours::Two),
    }
}

/// Reads `[fermion.NAME.rational]`.
fn one_flavour(mut table: Table, way: Option<Way>, context: &mut Context) -> Option<WallFlavours> {
    let usual = if way == Some(Way::Eofa) { 1e-10 } else { 1e-12 };
    let action_error = table.get(&WALL_ACTION_ERROR).unwrap_or(usual);
    table.keep("action_error", &action_error);
    let functions = rational(&mut table, Some(action_error), context);
    let heavy_range = table.get(&HEAVY_RANGE);
    let forecast = table.get(&FORECAST);
    match way {
        Some(Way::Rational) => {
            table.demand("heavy_range");
            if table.has("forecast") {
                table.mistake("forecast", "forecast: only one_flavour = \"eofa\" has it");
            }
        }
        Some(Way::Eofa) => {
            for key in
                ["heavy_range", "copies", "force_error", "inner"].into_iter().filter(|key| table.has(key))
            {
                table.mistake(key, format!("{key}: only one_flavour = \"rational\" has it"));
            }
        }
        None => {}
    }
    table.finish();
    let functions = functions?;
    Some(match way? {
        Way::Eofa => WallFlavours::OneEofa {
            range: functions.range,
            error: functions.action_error,
            check_every: functions.check_every,
            forecast: forecast?,
        },
        Way::Rational => WallFlavours::OneRational { functions, heavy_range: heavy_range? },
    })
}

/// Reads a factor, and sets `before` to its mass for the next one; `None` after a mistake.
fn factor(
    mut table: Table,
    before: &mut Option<f64>,
    fermion: &SolverKeys,
    context: &mut Context,
) -> Option<WallFactor> {
    let name = context.add_factor(&mut table);
    let mass = table.get(&FACTOR_MASS);
    if let (Some(mass), Some(before)) = (mass, *before)
        && mass <= before
    {
        let message =
            format!("mass: {mass} is not above the {before} before it: order them from light to heavy");
        table.mistake("mass", message);
    }
    *before = mass;
    let chosen = name.as_ref().and_then(|name| context.choices.get(name));
    let keys = SolverKeys::read(table.table("solver"), Some(fermion), Systems::Wall, context.boxes, chosen);
    table.finish();
    Some(WallFactor { name: name?, mass: mass?, solver: keys.solver() })
}
