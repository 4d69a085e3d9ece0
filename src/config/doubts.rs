//! Values that are allowed but unwise wherever they stand.

use super::raw::Table;

/// Warns of a `mass` in units of the lattice that no quark has.
pub fn heavy(table: &Table, mass: Option<f64>) {
    let far = mass.is_some_and(|mass| mass > 10.0);
    table.doubt("mass", far, "in units of the lattice spacing: above 10 such a quark does next to nothing");
}

/// Warns of a residual that rounding may keep a solve from.
pub fn tight(table: &Table, key: &str, residual: f64) {
    table.doubt(
        key,
        residual < 1e-14,
        "below 1e-14 rounding in double may end the job: it may not be reached",
    );
}
