//! Keys that several observables have in common: the quark, its source, the name.

use super::observable::{QuarkChoice, Reading};
use super::propagator::Source;

use crate::config::doubts::{heavy, tight};
use crate::config::raw::Table;
use crate::config::reader::{
    MAX_EXTENT, Read, Value, choice, epsilon, four, is_name, mass, residual, text, whole,
};
use crate::config::report::hint;
use crate::lattice::shape;

/// A fermion of the input that measurements can name.
pub(crate) struct FermionKeys {
    /// NAME of `[fermion.NAME]`.
    pub name: String,
    /// What its family allows; `None` after a mistake in its action, where everything is.
    pub family: Option<FamilyKeys>,
}

/// What the family of a fermion allows measurements.
#[derive(Clone, Copy)]
pub(crate) struct FamilyKeys {
    /// Its name in messages.
    pub name: &'static str,
    /// Whose the mass is.
    pub mass: MassKey,
    /// Whether its Naik term takes a correction.
    pub naik_epsilon: bool,
    /// Whether its fields are Dirac spinors, from sources at one site; else they are colour vectors, from corner walls too.
    pub spin: bool,
}

/// Whose the mass of a measured quark is.
#[derive(Clone, Copy)]
pub(crate) enum MassKey {
    /// The fermion's alone.
    OfFermion,
    /// The fermion's own, unless a measurement has another, which this reads; `None` after a mistake in it.
    Default(Option<f64>, fn(&Value) -> Read<f64>),
    /// The measurement's alone.
    OfMeasurement,
}

/// Reports a NAME that is not allowed.
pub(super) fn check_name(what: &str, name: &str, table: &Table) {
    if !is_name(name) {
        table.mistake("", format!("{what} cannot be named {name:?}: letters, digits, '.', '_', '-'"));
    }
}

/// The keys `fermion`, `mass`, `naik_epsilon` and `residual`, and what the fermion's family allows.
pub(super) fn quark(table: &mut Table, reading: &Reading) -> (Option<QuarkChoice>, Option<FamilyKeys>) {
    let (fermion, family) = fermion(table, reading);
    let residual = table.read_or("residual", 1e-12, residual);
    tight(table, "residual", residual);
    let mass = quark_mass(table, family);
    let naik_epsilon = table.read_or("naik_epsilon", 0.0, epsilon);
    if table.has("naik_epsilon") && family.is_some_and(|family| !family.naik_epsilon) {
        table.mistake("naik_epsilon", "naik_epsilon: only the action \"hisq\" has it");
    }
    // Reported already.
    let lacks_mass =
        family.is_some_and(|family| !matches!(family.mass, MassKey::OfFermion)) && mass.is_none();
    let choice = fermion.filter(|_| !lacks_mass);
    (choice.map(|fermion| QuarkChoice { fermion, mass, naik_epsilon, residual }), family)
}

/// The fermion that a measurement names, and what its family allows.
fn fermion(table: &mut Table, reading: &Reading) -> (Option<String>, Option<FamilyKeys>) {
    let Some(name) = table.read("fermion", text) else { return (None, None) };
    if let Some(known) = reading.fermions.iter().find(|fermion| fermion.name == name) {
        return (Some(name), known.family);
    }
    let words: Vec<&str> = reading.fermions.iter().map(|fermion| fermion.name.as_str()).collect();
    let all = if words.is_empty() { "; there is no [fermion.NAME]".to_owned() } else { hint(&name, &words) };
    table.mistake("fermion", format!("fermion: unknown fermion '{name}'{all}"));
    (None, None)
}

fn quark_mass(table: &mut Table, family: Option<FamilyKeys>) -> Option<f64> {
    let key = family.map(|family| family.mass);
    if let Some(MassKey::Default(own, reader)) = key {
        return table.read_known("mass", own, |value| reader(value).map(Some)).flatten();
    }
    let found = table.read_if("mass", mass);
    heavy(table, found);
    match key {
        Some(MassKey::OfFermion) if table.has("mass") => {
            table.mistake("mass", "mass: that of Wilson quarks is in their [fermion.NAME]");
        }
        Some(MassKey::OfMeasurement) => table.demand("mass"),
        _ => {}
    }
    found
}

/// The keys `source` and `source_kind`; `None` after a mistake.
pub(super) fn source(table: &mut Table, reading: &Reading, family: Option<FamilyKeys>) -> Option<Source> {
    let kinds = [("point", false), ("corner-wall", true)];
    let wall = table.read_known("source_kind", false, choice(&kinds));
    let at = point(table, reading);
    if wall == Some(true) && at[..3] != [0; 3] {
        table.mistake("source", "source: of a corner wall only t counts; x, y and z must be 0");
    }
    if let Some(family) = family.filter(|family| wall == Some(true) && family.spin) {
        table.mistake("source_kind", format!("source_kind: {} quarks have \"point\" only", family.name));
    }
    Some(if wall? { Source::CornerWall(at[3]) } else { Source::Point(at) })
}

/// The key `source`: coordinates on the lattice.
pub(super) fn point(table: &mut Table, reading: &Reading) -> [usize; 4] {
    let at = table.read_or("source", [0; 4], four("4 coordinates [x, y, z, t]", whole(0..=MAX_EXTENT)));
    if let Some(extents) = reading.extents.filter(|extents| (0..4).any(|mu| at[mu] >= extents[mu])) {
        let message = format!("source: {at:?} is outside the lattice of {}", shape(extents));
        table.mistake("source", message);
    }
    at
}
