//! The terms of domain-wall quarks that a checked input asks for.

use super::{AppError, terms};
use crate::action::{Action, Determinant, DeterminantParams, Power};
use crate::family::{DomainWallParams, ExactOneFlavour, ExactOneFlavourParams};
use crate::field::Domain;
use crate::input::{DomainWallFermion, Solver, WallFlavours, Weights};
use crate::math::WallWeights;
use crate::quark::QuarkParams;
use std::sync::Arc;

/// The mass of the Pauli-Villars fields.
const PAULI_VILLARS: f64 = 1.0;

/// Weights of `n_s` slices.
pub(super) fn weights(weights: Weights, n_s: usize) -> WallWeights {
    match weights {
        Weights::Shamir => WallWeights::shamir(n_s),
        Weights::Borici => WallWeights::borici(n_s),
        Weights::Mobius { b, c } => WallWeights::mobius(n_s, b, c),
        Weights::Optimal { spectrum, symmetric: false } => WallWeights::optimal(n_s, spectrum),
        Weights::Optimal { spectrum, symmetric: true } => WallWeights::symmetric_optimal(n_s, spectrum),
    }
}

/// The operator of a quark of `mass`.
pub(super) fn operator(fermion: &DomainWallFermion, mass: f64) -> DomainWallParams {
    DomainWallParams {
        weights: weights(fermion.weights, fermion.n_s),
        m5: fermion.m5,
        mass: [mass; 2],
        boundary: fermion.boundary,
    }
}

/// The terms, one a ratio of masses, the lightest first; their pseudofermions are numbered from `number` on.
///
/// # Errors
/// No room, or a rational function that cannot be made.
pub(super) fn terms(
    domain: &Arc<Domain>,
    fermion: &DomainWallFermion,
    number: u8,
) -> Result<Vec<Box<dyn Action>>, AppError> {
    let ratios: Vec<_> = [(&fermion.name, fermion.mass, &fermion.solver)]
        .into_iter()
        .chain(fermion.hasenbusch.iter().map(|factor| (&factor.name, factor.mass, &factor.solver)))
        .collect();
    let heavier = ratios.iter().skip(1).map(|(_, mass, _)| *mass).chain([PAULI_VILLARS]);
    (number..)
        .zip(ratios.iter().zip(heavier))
        .map(|(number, (&(name, mass, solver), heavy))| {
            let ratio = Ratio { name: name.clone(), mass, heavy, solver, number };
            term(domain, fermion, ratio)
        })
        .collect()
}

/// A ratio of the determinants of two masses.
struct Ratio<'a> {
    name: String,
    mass: f64,
    heavy: f64,
    solver: &'a Solver,
    number: u8,
}

fn term(
    domain: &Arc<Domain>,
    fermion: &DomainWallFermion,
    Ratio { name, mass, heavy: heavy_mass, solver, number }: Ratio,
) -> Result<Box<dyn Action>, AppError> {
    let quark = |mass: f64| QuarkParams {
        operator: operator(fermion, mass),
        solver: terms::settings(solver),
        link_reals: solver.link_reals,
        guess: solver.guess,
    };
    let (light, heavy) = (quark(mass), Some(quark(heavy_mass)));
    let header = terms::header(&name, solver, number);
    let refused = |error| terms::refused(&fermion.name, error);
    let power = match fermion.flavours {
        WallFlavours::Two => Power::Inverse,
        WallFlavours::OneRational { rational, heavy_range } => terms::rational(&rational, Some(heavy_range)),
        WallFlavours::OneEofa { range, error, check_every } => {
            let params =
                ExactOneFlavourParams { header, quark: light, heavy_mass, range, error, check_every };
            return Ok(Box::new(ExactOneFlavour::new(domain, params).map_err(refused)?));
        }
    };
    let params = DeterminantParams { header, light, heavy, power };
    Ok(Box::new(Determinant::new(domain, params).map_err(refused)?))
}
