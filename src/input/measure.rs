//! Measurements, `[measure.*]`: the observables read their own keys. The quark of a program that calls the library.

use crate::config::raw::Table;
use crate::family::keys::Term;
use crate::lattice::{Extents, TimeBoundary};
use crate::measure::{FermionKeys, Measure, QuarkChoice, Reading, chosen_quark};

pub(super) fn measure(
    table: Table,
    terms: &[Term],
    extents: Option<Extents>,
    time: TimeBoundary,
) -> Option<Measure> {
    Measure::read(table, &Reading { fermions: &fermion_keys(terms), extents, time })
}

/// `[quark]`
pub(super) fn quark(table: Table, terms: &[Term]) -> Option<QuarkChoice> {
    chosen_quark(
        table,
        &Reading { fermions: &fermion_keys(terms), extents: None, time: TimeBoundary::Periodic },
    )
}

fn fermion_keys(terms: &[Term]) -> Vec<FermionKeys> {
    let fermions = terms.iter().filter(|term| term.is_fermion);
    fermions.map(|term| FermionKeys { name: term.name.clone(), allowed: term.allowed }).collect()
}
