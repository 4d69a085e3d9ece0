//! What measurements may set for a quark. The quark's family decides.

use crate::config::key::Form;

/// What a measurement's table may set for the quark that it names.
#[derive(Clone, Copy)]
pub(crate) struct Allowed {
    /// The quarks' name in messages.
    pub quarks: &'static str,
    /// Whether its operator mixes two flavours, which only mesons can tell apart.
    pub is_mixed: bool,
    /// Where the mass may come from.
    pub mass: MassOf,
    /// Whether the Naik term has a correction.
    pub naik_epsilon: bool,
    /// Whether corner walls are possible.
    pub corner_wall: bool,
    /// Whether the fields are Dirac spinors instead of colour vectors.
    pub has_spin: bool,
    /// Whether there are derivatives in the chemical potential.
    pub chemical_potential: bool,
    /// Its twisted mass on all sites, for which measurements may take another one.
    pub twist: Option<f64>,
    /// Whether the even-odd operator takes a twisted mass.
    pub twisted_mass: bool,
    /// Whether weights move it to another kappa: two flavours, whose mass stands on the diagonal alone.
    pub other_kappa: bool,
    /// kappa, if it is one flavour by rational functions.
    pub one_flavour: Option<f64>,
}

impl Allowed {
    /// Colour vectors, and no more than a mass: families add what is theirs.
    pub(crate) fn mass_of(quarks: &'static str, mass: MassOf) -> Self {
        Self {
            quarks,
            is_mixed: false,
            mass,
            naik_epsilon: false,
            corner_wall: false,
            has_spin: false,
            chemical_potential: false,
            twist: None,
            twisted_mass: false,
            other_kappa: false,
            one_flavour: None,
        }
    }
}

/// Where the mass of a measured quark comes from.
#[derive(Clone, Copy)]
pub(crate) enum MassOf {
    /// Only the fermion.
    Fermion,
    /// Only the measurement, with these values.
    Measurement(Form<f64>),
    /// The measurement, with these values, or else the fermion's mass, which is `None` after a mistake.
    Either(Form<f64>, Option<f64>),
}

/// A measurement's settings for a quark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The mass; `None`: the fermion's.
    pub mass: Option<f64>,
    /// The twisted mass of a doublet's quark; `None`: the fermion's, if it has any.
    pub twisted_mass: Option<f64>,
    /// The correction to the Naik term; 0 for quarks without one.
    pub naik_epsilon: f64,
    /// `|b - M x| / |b|` of every solve.
    pub residual: f64,
}
