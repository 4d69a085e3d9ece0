//! What is measured, `[measure.*]`: the observables read their own keys.

use super::domain_wall;
use super::terms::{Quark, Term};
use crate::config::raw::Table;
use crate::lattice::Extents;
use crate::measure::{FamilyKeys, FermionKeys, MassKey, Measure, Reading};

pub fn measure(table: Table, terms: &[Term], extents: Option<Extents>) -> Option<Measure> {
    let known = |term: &Term| Some(FermionKeys { name: term.name.clone(), family: family(term.quark?) });
    let fermions: Vec<FermionKeys> = terms.iter().filter_map(known).collect();
    Measure::read(table, &Reading { fermions: &fermions, extents })
}

/// What a family allows measurements.
fn family(quark: Quark) -> Option<FamilyKeys> {
    let (name, mass) = match quark {
        Quark::Unknown => return None,
        Quark::Wilson => ("Wilson", MassKey::OfFermion),
        Quark::DomainWall { mass } => ("domain-wall", MassKey::Default(mass, domain_wall::mass)),
        Quark::Staggered { .. } => ("staggered", MassKey::OfMeasurement),
    };
    let naik_epsilon = matches!(quark, Quark::Staggered { naik: true });
    Some(FamilyKeys { name, mass, naik_epsilon, spin: !matches!(quark, Quark::Staggered { .. }) })
}
