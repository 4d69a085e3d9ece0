//! What measurements may say of a quark. Its family decides.

use crate::config::key::Form;

/// What the table of a measurement may say of the quark that it names.
#[derive(Clone, Copy)]
pub(crate) struct Allowed {
    /// Which quarks these are, as messages call them.
    pub quarks: &'static str,
    /// Whether a measurement has a mass.
    pub mass: MassOf,
    /// Whether the Naik term takes a correction.
    pub naik_epsilon: bool,
    /// Whether there are corner walls.
    pub corner_wall: bool,
    /// Whether its fields are Dirac spinors, and not colour vectors.
    pub has_spin: bool,
}

/// Where the mass of a measured quark comes from.
#[derive(Clone, Copy)]
pub(crate) enum MassOf {
    /// Its fermion alone.
    Fermion,
    /// The measurement alone; its values.
    Measurement(Form<f64>),
    /// The measurement or else the fermion; its values, and the fermion's: `None` after a mistake.
    Either(Form<f64>, Option<f64>),
}

/// What a measurement wants of a quark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The mass; `None`: that of the fermion.
    pub mass: Option<f64>,
    /// Correction to the Naik term; 0 for quarks without one.
    pub naik_epsilon: f64,
    /// `|b - M x| / |b|` of every solve.
    pub residual: f64,
}
