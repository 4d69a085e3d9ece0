//! The terms of the Hamiltonian that a checked input names.

use super::{AppError, domain_wall, rooted};
use crate::action::{
    Action, ActionError, GaugeAction, OneFlavour, OneFlavourParams, QuarkParams, Smeared, TwoFlavour,
    TwoFlavourParams, TwoFlavourRatio, TwoFlavourRatioParams,
};
use crate::device::Precision;
use crate::family::{Rooted, Schur, WilsonParams};
use crate::field::{Domain, Purpose};
use crate::input::{self, Fermion, Flavours, Input, Rational, Real, Solver, Stout, WilsonFermion};
use crate::solver::{Method, Settings};
use std::sync::Arc;

/// All terms: the gauge action, then the quarks' in the order of the input.
///
/// # Errors
/// No room, or a rational function that cannot be made.
pub fn all(domain: &Arc<Domain>, input: &Input) -> Result<Vec<Box<dyn Action>>, AppError> {
    let gauge = &input.gauge;
    let coefficients = [gauge.c_plaquette, gauge.c_rectangle, gauge.c_parallelogram];
    let mut terms: Vec<Box<dyn Action>> = vec![Box::new(GaugeAction::new(domain, gauge.beta, coefficients)?)];
    let pseudofermions: usize = input.fermions.iter().map(Fermion::pseudofermions).sum();
    if pseudofermions > Purpose::PSEUDOFERMIONS {
        let most = Purpose::PSEUDOFERMIONS;
        return Err(AppError::Refused(format!("{pseudofermions} pseudofermions: a run has {most} at most")));
    }
    // They are numbered through all terms.
    let mut number = 0;
    for fermion in &input.fermions {
        match fermion {
            Fermion::Wilson(fermion) => {
                for factor in factors(fermion) {
                    let _label = domain.device().label(factor.name);
                    let term = term(domain, fermion, &factor, number)?;
                    number += 1;
                    terms.push(smeared(domain, term, fermion.stout)?);
                }
            }
            Fermion::Staggered(fermion) => {
                let params = rooted::params(fermion, number)?;
                number += params.pseudofermions.len() as u8;
                let _label = domain.device().label(&params.name);
                terms.push(Box::new(Rooted::new(domain, params)?));
            }
            Fermion::DomainWall(fermion) => {
                for term in domain_wall::terms(domain, fermion, number)? {
                    number += 1;
                    let _label = domain.device().label(term.name());
                    terms.push(smeared(domain, term, fermion.stout)?);
                }
            }
        }
    }
    Ok(terms)
}

/// The term on the links that the quark sees.
fn smeared(
    domain: &Arc<Domain>,
    term: Box<dyn Action>,
    stout: Option<Stout>,
) -> Result<Box<dyn Action>, AppError> {
    Ok(match stout {
        Some(stout) => Box::new(Smeared::new(domain, term, stout.steps, stout.rho)?),
        None => term,
    })
}

/// Of a term that could not be made, a rational function as what the input asks for in vain.
pub(super) fn refused(fermion: &str, error: ActionError) -> AppError {
    match error {
        ActionError::Rational(why) => AppError::Refused(format!("[fermion.{fermion}.rational]: {why}")),
        other => AppError::Action(other),
    }
}

/// The operator of a quark without a twisted mass: what correlators are of.
pub fn operator(fermion: &WilsonFermion) -> WilsonParams {
    WilsonParams {
        kappa: fermion.kappa,
        mu: 0.0,
        c_sw: fermion.c_sw,
        boundary: fermion.boundary,
        schur: match fermion.schur {
            input::Schur::Asymmetric => Schur::Asymmetric,
            input::Schur::Symmetric => Schur::Symmetric,
        },
    }
}

/// A factor of the determinant, and the next heavier one that it is divided by.
pub(super) struct Factor<'a> {
    name: &'a str,
    pub quark: QuarkParams<WilsonParams>,
    solver: &'a Solver,
    pub heavier: Option<QuarkParams<WilsonParams>>,
}

/// The factors of a quark's determinant, the lightest first.
pub(super) fn factors(fermion: &WilsonFermion) -> Vec<Factor<'_>> {
    let quark = |kappa: f64, mu: f64, solver: &Solver| QuarkParams {
        operator: WilsonParams { kappa, mu, ..operator(fermion) },
        solver: settings(solver),
        link_reals: solver.link_reals,
        guess: solver.guess,
    };
    let mut all =
        vec![(fermion.name.as_str(), quark(fermion.kappa, fermion.mu, &fermion.solver), &fermion.solver)];
    all.extend(
        fermion.hasenbusch.iter().map(|h| (h.name.as_str(), quark(h.kappa, h.mu, &h.solver), &h.solver)),
    );
    let heavier: Vec<Option<QuarkParams<WilsonParams>>> =
        all.iter().skip(1).map(|(_, quark, _)| Some(quark.clone())).chain([None]).collect();
    all.into_iter()
        .zip(heavier)
        .map(|((name, quark, solver), heavier)| Factor { name, quark, solver, heavier })
        .collect()
}

pub(super) fn precision(real: Real) -> Precision {
    match real {
        Real::Double => Precision::Double,
        Real::Single => Precision::Single,
        Real::Half => Precision::Half,
    }
}

pub(super) fn settings(solver: &Solver) -> Settings {
    Settings {
        method: match solver.method {
            input::Method::Cg => Method::Cg,
            input::Method::BiCgStab => Method::BiCgStab,
            input::Method::GcrDd { k_max, n_mr, block } => Method::GcrDd { k_max, n_mr, block },
        },
        precisions: solver.precision.map(precision),
        delta: solver.delta,
        max_iterations: solver.max_iterations,
    }
}

fn term(
    domain: &Arc<Domain>,
    fermion: &WilsonFermion,
    factor: &Factor,
    number: u8,
) -> Result<Box<dyn Action>, AppError> {
    let (name, quark, solver) = (factor.name.to_string(), factor.quark.clone(), factor.solver);
    let (action_residual, force_residual) = (solver.action_residual, solver.force_residual);
    Ok(match (&fermion.flavours, &factor.heavier) {
        (Flavours::Two, None) => {
            let params = TwoFlavourParams { name, quark, action_residual, force_residual, number };
            Box::new(TwoFlavour::new(domain, params)?)
        }
        (Flavours::Two, Some(heavy)) => {
            let (light, heavy) = (quark, heavy.clone());
            let params =
                TwoFlavourRatioParams { name, light, heavy, action_residual, force_residual, number };
            Box::new(TwoFlavourRatio::new(domain, params)?)
        }
        (Flavours::One(rational), _) => {
            let &Rational { range, action_error, force_error, check_every } = rational;
            let params = OneFlavourParams {
                name,
                quark,
                range,
                action_error,
                force_error,
                action_residual,
                force_residual,
                check_every,
                number,
            };
            Box::new(OneFlavour::new(domain, params).map_err(|error| refused(&fermion.name, error))?)
        }
    })
}
