//! Measurements, `[measure.*]`: the observables read their own keys.

use crate::config::raw::Table;
use crate::family::keys::Term;
use crate::lattice::Extents;
use crate::measure::{FermionKeys, Measure, Reading};

pub(super) fn measure(table: Table, terms: &[Term], extents: Option<Extents>) -> Option<Measure> {
    let fermions = terms.iter().filter(|term| term.is_fermion);
    let fermions: Vec<FermionKeys> =
        fermions.map(|term| FermionKeys { name: term.name.clone(), allowed: term.allowed }).collect();
    Measure::read(table, &Reading { fermions: &fermions, extents })
}
