//! Common parts of the terms of Wilson and domain-wall quarks: a term's quark, header, links and functions.

use super::{FamilyError, OneFlavourFunctions, StoutSteps};
use crate::action::{Action, Power, RationalPower, Smeared, TermHeader};
use crate::field::Domain;
use crate::quark::QuarkParams;
use crate::solver::TermSolver;
use std::sync::Arc;

/// A quark with the settings of `solver`.
pub(super) fn quark<P>(operator: P, solver: &TermSolver) -> QuarkParams<P> {
    let &TermSolver { settings, link_reals, guess, .. } = solver;
    QuarkParams { operator, solver: settings, link_reals, guess }
}

/// Name and residuals of a term.
pub(super) fn header(name: &str, solver: &TermSolver, number: u8) -> TermHeader {
    let &TermSolver { action_residual, force_residual, .. } = solver;
    TermHeader { name: name.to_owned(), number, action_residual, force_residual }
}

/// The term on the links that the quark's operator uses.
pub(super) fn on_smeared_links(
    domain: &Arc<Domain>,
    term: Box<dyn Action>,
    stout: Option<StoutSteps>,
) -> Result<Box<dyn Action>, FamilyError> {
    Ok(match stout {
        Some(stout) => Box::new(Smeared::new(domain, term, stout.steps, stout.rho)?),
        None => term,
    })
}

impl OneFlavourFunctions {
    /// One flavour by these functions, over a heavier quark with the spectrum `heavy_range`.
    pub(super) fn power(self, heavy_range: Option<[f64; 2]>) -> Power {
        let Self { copies, range, action_error, force_error, check_every, inner } = self;
        Power::Rational(RationalPower {
            copies,
            range,
            heavy_range,
            action_error,
            force_error,
            check_every,
            inner,
        })
    }
}
