//! Measurements, `[measure.*]`: the observables read their own keys. The quark of a program that calls the library.

use crate::config::raw::Table;
use crate::family::keys::Term;
use crate::lattice::Extents;
use crate::measure::{FermionKeys, Measure, QuarkChoice, Reading, chosen_quark};

pub(super) fn measure(table: Table, terms: &[Term], extents: Option<Extents>) -> Option<Measure> {
    Measure::read(table, &Reading { fermions: &fermion_keys(terms), extents })
}

/// `[quark]`
pub(super) fn quark(table: Table, terms: &[Term]) -> Option<QuarkChoice> {
    chosen_quark(table, &Reading { fermions: &fermion_keys(terms), extents: None })
}

fn fermion_keys(terms: &[Term]) -> Vec<FermionKeys> {
    let fermions = terms.iter().filter(|term| term.is_fermion);
    fermions.map(|term| FermionKeys { name: term.name.clone(), allowed: term.allowed }).collect()
}
