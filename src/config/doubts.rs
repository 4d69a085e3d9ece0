//! Values that are allowed but unwise.

use super::raw::Table;

/// Warns of a `mass` that no quark has, in lattice units.
pub(crate) fn heavy(table: &Table, mass: Option<f64>) {
    let far = mass.is_some_and(|mass| mass > 10.0);
    table.doubt("mass", far, "in units of the lattice spacing: a quark above 10 has next to no effect");
}

/// Warns of a residual of the action that is seen in dH.
pub(crate) fn loose(table: &Table, key: &str, residual: f64) {
    table.doubt(
        key,
        residual > 1e-6,
        "above 1e-6, the error of the action is seen in dH, and accept/reject is wrong by it",
    );
}

/// Warns of a residual that rounding may put out of reach.
pub(crate) fn tight(table: &Table, key: &str, residual: f64) {
    table.doubt(
        key,
        residual < 1e-14,
        "below 1e-14, rounding in double precision may put it out of reach, which ends the job",
    );
}
