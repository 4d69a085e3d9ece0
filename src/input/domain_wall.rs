//! Domain-wall quarks, `[fermion.NAME]` with the action "domain-wall": the weights of the fifth dimension, how one
//! flavour comes about, the masses that split two flavours.

use super::checked::{Rational, Solver, Stout};
use super::fermions::{boundary, factor_name, only_flavours, rational, stout};
use super::solver::{Boxes, SolverKeys, Systems};
use super::terms::{Quark, Term};
use crate::config::raw::Table;
use crate::config::reader::{Read, Value, choice, number, range, whole};

/// `[fermion.NAME]`: domain-wall quarks, even-odd preconditioned in four dimensions. With C(m) the even-odd operator on
/// N_s slices, the Hasenbusch masses m_1 < .. < m_n split two flavours into terms of the Hamiltonian, and one that comes
/// about by the exact action, with det C (m):
///
/// ```text
/// det C C^dag (m) / det C C^dag (1) = ratio(m / m_1) ratio(m_1 / m_2) .. ratio(m_n / 1)
/// ```
///
/// where m = 1 is the Pauli-Villars operator. The first ratio goes by NAME; each factor's name is that of the ratio of its
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
    /// How many flavours, and how one of them comes about.
    pub flavours: WallFlavours,
    /// Phase a direction in units of pi: 0 periodic, 1 antiperiodic.
    pub boundary: [f64; 4],
    /// Smearing of the links that the operator sees.
    pub stout: Option<Stout>,
    /// The masses m_1 .. m_n; none with one flavour by rational functions.
    pub hasenbusch: Vec<WallFactor>,
    /// The solver of the term NAME.
    pub solver: Solver,
}

/// `weights`: omega_s and sigma_s of `D = (omega_s D_w + 1) delta + (sigma_s D_w - 1) L`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weights {
    /// omega = 1, sigma = 0.
    Shamir,
    /// omega = sigma = 1.
    Borici,
    /// omega = b, sigma = c.
    Mobius {
        /// Above 0.
        b: f64,
        /// From 0 to b.
        c: f64,
    },
    /// omega = sigma, by which the sign function of the kernel is best approximated.
    Optimal {
        /// Bounds of the spectrum of |H_w|, 0 < lo < hi.
        spectrum: [f64; 2],
        /// The best with `omega_s = omega_(N_s + 1 - s)`.
        symmetric: bool,
    },
}

impl Weights {
    /// Whether omega is sigma.
    fn has_equal_terms(&self) -> bool {
        match *self {
            Self::Shamir => false,
            Self::Borici | Self::Optimal { .. } => true,
            Self::Mobius { b, c } => b == c,
        }
    }

    /// Whether `omega_s = omega_(N_s + 1 - s)`, likewise sigma: gamma_5 and a reflection of s make D hermitian.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        !matches!(self, Self::Optimal { symmetric: false, .. })
    }
}

/// Degenerate flavours of a domain-wall quark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WallFlavours {
    /// Two: `det C C^dag (m) / det C C^dag (1)`.
    Two,
    /// One, by the exact one-flavour action (Chen, Chiu arXiv:1403.1683).
    OneEofa {
        /// Bounds of the spectra of the action's two hermitian operators, 0 < lo < hi.
        range: [f64; 2],
        /// Greatest relative error of the function of the heat bath.
        error: f64,
        /// The heat bath is checked, and the range enforced, every so many trajectories.
        check_every: u64,
    },
    /// One, `det (C C^dag (m))^(1/2) / det (C C^dag (1))^(1/2)` by rational functions.
    OneRational {
        /// Its range is that of C C^dag at the quark's mass.
        rational: Rational,
        /// Bounds of the spectrum of C C^dag at the Pauli-Villars mass 1.
        heavy_range: [f64; 2],
    },
}

/// `[[fermion.NAME.hasenbusch]]` of domain-wall quarks, with what it inherits.
#[derive(Clone, Debug, PartialEq)]
pub struct WallFactor {
    /// The term of the ratio of this mass to the next, or of the last mass to 1.
    pub name: String,
    /// Above the mass before, below 1.
    pub mass: f64,
    /// The solver of this term.
    pub solver: Solver,
}

/// What `weights` chooses.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    Shamir,
    Borici,
    Mobius,
    Optimal { symmetric: bool },
}

/// What `one_flavour` chooses.
#[derive(Clone, Copy, PartialEq)]
enum OneFlavour {
    Eofa,
    Rational,
}

/// The mass of a domain-wall quark: 1 is that of the Pauli-Villars fields.
pub fn mass(value: &Value) -> Read<f64> {
    number("a mass from 0 to below 1", |mass| (0.0..1.0).contains(&mass))(value)
}

/// Reads the table of domain-wall quarks, tells measurements of their mass, and adds the terms of their factors.
pub fn domain_wall(
    name: String,
    mut table: Table,
    terms: &mut Vec<Term>,
    boxes: Boxes,
) -> Option<DomainWallFermion> {
    let (family, weights) = weights(&mut table);
    let n_s = table.read("n_s", whole(4..=48));
    if let (Some(Family::Optimal { symmetric: true }), Some(odd)) = (family, n_s.filter(|n| n % 2 == 1)) {
        let message =
            format!("n_s: the weights \"optimal-symmetric\" come in pairs: take an even number, not {odd}");
        table.mistake("n_s", message);
    }
    let m5 = table.read("m5", number("a number between 0 and 2", |m5| m5 > 0.0 && m5 < 2.0));
    let mass = table.read("mass", mass);
    if let Some(term) = terms.iter_mut().find(|term| term.name == name) {
        term.quark = Some(Quark::DomainWall { mass });
    }
    let count = table.read_known("flavours", 2, whole::<u32>(1..=2));
    let ways = [("eofa", OneFlavour::Eofa), ("rational", OneFlavour::Rational)];
    let way = table.read_if("one_flavour", choice(&ways));
    let symmetric = weights.is_none_or(|weights| weights.is_symmetric());
    if count == Some(1) && way == Some(OneFlavour::Eofa) && !symmetric {
        let message = "one_flavour: \"eofa\" needs weights that are the same from both walls: take \
                       \"optimal-symmetric\" for \"optimal\", or one_flavour = \"rational\"";
        table.mistake("one_flavour", message);
    }
    // Pauli-Villars fields of mass 1 make omega + sigma L singular: 1 + L^N_s is 0 there.
    let odd = n_s.filter(|n_s| n_s % 2 == 1);
    if let (Some(1), Some(OneFlavour::Eofa), Some(n_s), true) =
        (count, way, odd, weights.is_some_and(|weights| weights.has_equal_terms()))
    {
        let message = format!("n_s: \"eofa\" with omega = sigma needs an even number, not {n_s}");
        table.mistake("n_s", message);
    }
    // The kernel's denominator at the physical modes, where D_w is near -M5.
    if let (Some(Weights::Mobius { b, c }), Some(m5)) = (weights, m5)
        && (b - c) * m5 >= 2.0
    {
        let message = format!(
            "b: (b - c) m5 is {}, and has to be below 2: else the kernel's sign is wrong on the physical modes",
            (b - c) * m5
        );
        table.mistake("b", message);
    }
    let boundary = boundary(&mut table);
    let stout = stout(&mut table);
    let systems = match (count, way) {
        (Some(1), Some(OneFlavour::Rational)) => Systems::Shifted("one_flavour = \"rational\""),
        _ => Systems::Wall,
    };
    let solver = SolverKeys::read(table.table("solver"), None, systems, boxes);

    let one_flavour = one_flavour(table.table("rational"), way);
    only_flavours(&table, count, &[], &["one_flavour", "rational"]);
    if count == Some(1) && way == Some(OneFlavour::Rational) && table.has("hasenbusch") {
        table.mistake("hasenbusch", "hasenbusch: with flavours = 1 only one_flavour = \"eofa\" has it");
    }
    let flavours = match count {
        Some(1) => {
            table.demand("one_flavour");
            table.demand("rational");
            one_flavour
        }
        count => count.map(|_| WallFlavours::Two),
    };

    let mut before = mass;
    let factors = table.list("hasenbusch");
    let factors: Vec<_> =
        factors.into_iter().map(|table| factor(table, &mut before, &solver, terms, boxes)).collect();
    table.finish();
    Some(DomainWallFermion {
        name,
        weights: weights?,
        n_s: n_s?,
        m5: m5?,
        mass: mass?,
        flavours: flavours?,
        boundary,
        stout: stout?,
        hasenbusch: factors.into_iter().collect::<Option<_>>()?,
        solver: solver.solver(),
    })
}

/// The weights, and their family, which may be known where they are not.
fn weights(table: &mut Table) -> (Option<Family>, Option<Weights>) {
    let families = [
        ("shamir", Family::Shamir),
        ("borici", Family::Borici),
        ("mobius", Family::Mobius),
        ("optimal", Family::Optimal { symmetric: false }),
        ("optimal-symmetric", Family::Optimal { symmetric: true }),
    ];
    let family = table.read("weights", choice(&families));
    let b = table.read_if("b", number("a number above 0", |b| b > 0.0));
    let c = table.read_if("c", number("a number, 0 at least", |c| c >= 0.0));
    let spectrum = table.read_if("spectrum", range);
    // Where sigma exceeds omega, the kernel gamma_5 D_w (2 + (b - c) D_w)^-1 may have a pole.
    if let (Some(b), Some(c)) = (b, c)
        && c > b
    {
        table.mistake("c", format!("c: {c} is above b = {b}: the kernel could have a pole"));
    }
    let keys: &[&'static str] = match family {
        Some(Family::Mobius) => &["b", "c"],
        Some(Family::Optimal { .. }) => &["spectrum"],
        Some(Family::Shamir | Family::Borici) | None => &[],
    };
    keys.iter().for_each(|key| table.demand(key));
    let owners = [
        ("b", "\"mobius\" have"),
        ("c", "\"mobius\" have"),
        ("spectrum", "\"optimal\" and \"optimal-symmetric\" have"),
    ];
    for (key, owner) in owners.into_iter().filter(|(key, _)| family.is_some() && !keys.contains(key)) {
        if table.has(key) {
            table.mistake(key, format!("{key}: only the weights {owner} it"));
        }
    }
    let weights = family.and_then(|family| {
        Some(match family {
            Family::Shamir => Weights::Shamir,
            Family::Borici => Weights::Borici,
            Family::Mobius => Weights::Mobius { b: b?, c: c? },
            Family::Optimal { symmetric } => Weights::Optimal { spectrum: spectrum?, symmetric },
        })
    });
    (family, weights)
}

/// Reads `[fermion.NAME.rational]`.
fn one_flavour(mut table: Table, way: Option<OneFlavour>) -> Option<WallFlavours> {
    let rational = rational(&mut table);
    let heavy_range = table.read_if("heavy_range", range);
    match way {
        Some(OneFlavour::Rational) => table.demand("heavy_range"),
        Some(OneFlavour::Eofa) => {
            for key in ["heavy_range", "force_error"].into_iter().filter(|key| table.has(key)) {
                table.mistake(key, format!("{key}: only one_flavour = \"rational\" has it"));
            }
        }
        None => {}
    }
    table.finish();
    let rational = rational?;
    Some(match way? {
        OneFlavour::Eofa => WallFlavours::OneEofa {
            range: rational.range,
            error: rational.action_error,
            check_every: rational.check_every,
        },
        OneFlavour::Rational => WallFlavours::OneRational { rational, heavy_range: heavy_range? },
    })
}

/// Reads a factor, and makes its mass the one `before` the next; `None`: not known, after a mistake.
fn factor(
    mut table: Table,
    before: &mut Option<f64>,
    fermion: &SolverKeys,
    terms: &mut Vec<Term>,
    boxes: Boxes,
) -> Option<WallFactor> {
    let name = factor_name(&mut table, terms);
    let mass = table.read("mass", number("a mass between 0 and 1", |mass| mass > 0.0 && mass < 1.0));
    if let (Some(mass), Some(before)) = (mass, *before)
        && mass <= before
    {
        let message =
            format!("mass: {mass} is not above the {before} before it: order them from light to heavy");
        table.mistake("mass", message);
    }
    *before = mass;
    let solver = SolverKeys::read(table.table("solver"), Some(fermion), Systems::Wall, boxes).solver();
    table.finish();
    Some(WallFactor { name: name?, mass: mass?, solver })
}
