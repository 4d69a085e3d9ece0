//! The terms of domain-wall quarks that a checked input asks for.

use super::{AppError, terms};
use crate::action::{
    Action, OneFlavourRatio, OneFlavourRatioParams, QuarkParams, TwoFlavourRatio, TwoFlavourRatioParams,
};
use crate::family::{DomainWallParams, ExactOneFlavour, ExactOneFlavourParams};
use crate::field::Domain;
use crate::input::{DomainWallFermion, Rational, Solver, WallFlavours, Weights};
use crate::math::WallWeights;
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
    let _label = domain.device().label(&name);
    let (light, heavy) = (quark(mass), quark(heavy_mass));
    let (action_residual, force_residual) = (solver.action_residual, solver.force_residual);
    let refused = |error| terms::refused(&fermion.name, error);
    Ok(match fermion.flavours {
        WallFlavours::Two => {
            let params =
                TwoFlavourRatioParams { name, light, heavy, action_residual, force_residual, number };
            Box::new(TwoFlavourRatio::new(domain, params)?)
        }
        WallFlavours::OneEofa { range, error, check_every } => {
            let params = ExactOneFlavourParams {
                name,
                quark: light,
                heavy_mass,
                range,
                error,
                check_every,
                action_residual,
                force_residual,
                number,
            };
            Box::new(ExactOneFlavour::new(domain, params).map_err(refused)?)
        }
        WallFlavours::OneRational { rational, heavy_range } => {
            let Rational { range, action_error, force_error, check_every } = rational;
            let params = OneFlavourRatioParams {
                name,
                light,
                heavy,
                light_range: range,
                heavy_range,
                action_error,
                force_error,
                action_residual,
                force_residual,
                check_every,
                number,
            };
            Box::new(OneFlavourRatio::new(domain, params).map_err(refused)?)
        }
    })
}
