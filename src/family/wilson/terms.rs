//! The terms of Wilson and clover quarks, and their inverse for measurements.

use super::{Flavours, WilsonFermion, WilsonParams, WilsonQuark};
use crate::action::{
    Action, OneFlavour, OneFlavourParams, QuarkParams, Smeared, TwoFlavour, TwoFlavourParams,
    TwoFlavourRatio, TwoFlavourRatioParams,
};
use crate::family::{Family, FamilyError, OneFlavourFunctions};
use crate::field::{Domain, MatrixField};
use crate::measure::{MeasureError, Quark, Wanted};
use crate::operator::smeared;
use crate::solver::{Params, TermSolver};
use std::sync::Arc;

impl Family for WilsonFermion {
    fn name(&self) -> &str {
        &self.name
    }

    fn pseudofermions(&self) -> usize {
        1 + self.hasenbusch.len()
    }

    fn terms(&self, domain: &Arc<Domain>, number: u8) -> Result<Vec<Box<dyn Action>>, FamilyError> {
        (number..)
            .zip(self.factors())
            .map(|(number, factor)| {
                let term = self.term(domain, factor, number)?;
                Ok(match self.stout {
                    Some(stout) => Box::new(Smeared::new(domain, term, stout.steps, stout.rho)?),
                    None => term,
                })
            })
            .collect()
    }

    /// The twisted mass belongs to terms alone.
    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Quark>, MeasureError> {
        let max_iterations = self.solver.settings.max_iterations;
        let wanted = Params { residual: wanted.residual, max_iterations };
        let operator = WilsonParams { mu: 0.0, ..self.operator };
        Ok(Box::new(match self.stout {
            Some(stout) => WilsonQuark::new(&smeared(links, stout.steps, stout.rho)?, operator, wanted)?,
            None => WilsonQuark::new(links, operator, wanted)?,
        }))
    }
}

/// A factor of the determinant, and the next heavier one that it is divided by.
pub(crate) struct Factor<'a> {
    pub name: &'a str,
    pub quark: QuarkParams<WilsonParams>,
    pub solver: &'a TermSolver,
    pub heavier: Option<QuarkParams<WilsonParams>>,
}

impl WilsonFermion {
    /// The factors of the determinant, the lightest first.
    pub(crate) fn factors(&self) -> Vec<Factor<'_>> {
        let quark = |kappa: f64, mu: f64, solver: &TermSolver| QuarkParams {
            operator: WilsonParams { kappa, mu, ..self.operator },
            solver: solver.settings,
            link_reals: solver.link_reals,
            guess: solver.guess,
        };
        let WilsonParams { kappa, mu, .. } = self.operator;
        let mut all = vec![(self.name.as_str(), quark(kappa, mu, &self.solver), &self.solver)];
        all.extend(
            self.hasenbusch.iter().map(|h| (h.name.as_str(), quark(h.kappa, h.mu, &h.solver), &h.solver)),
        );
        let heavier: Vec<Option<QuarkParams<WilsonParams>>> =
            all.iter().skip(1).map(|(_, quark, _)| Some(quark.clone())).chain([None]).collect();
        all.into_iter()
            .zip(heavier)
            .map(|((name, quark, solver), heavier)| Factor { name, quark, solver, heavier })
            .collect()
    }

    fn term(&self, domain: &Arc<Domain>, factor: Factor, number: u8) -> Result<Box<dyn Action>, FamilyError> {
        let Factor { name, quark, solver, heavier } = factor;
        let name = name.to_string();
        let (action_residual, force_residual) = (solver.action_residual, solver.force_residual);
        Ok(match (&self.flavours, heavier) {
            (Flavours::Two, None) => {
                let params = TwoFlavourParams { name, quark, action_residual, force_residual, number };
                Box::new(TwoFlavour::new(domain, params)?)
            }
            (Flavours::Two, Some(heavy)) => {
                let light = quark;
                let params =
                    TwoFlavourRatioParams { name, light, heavy, action_residual, force_residual, number };
                Box::new(TwoFlavourRatio::new(domain, params)?)
            }
            (&Flavours::One(functions), _) => {
                let OneFlavourFunctions { range, action_error, force_error, check_every } = functions;
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
                let term = OneFlavour::new(domain, params);
                Box::new(term.map_err(|error| FamilyError::of_term(&self.name, error))?)
            }
        })
    }
}
