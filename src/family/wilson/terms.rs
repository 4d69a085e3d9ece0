//! The terms of Wilson and clover quarks, and their inverse for measurements.

use super::{Flavours, WilsonFermion, WilsonParams, WilsonQuark};
use crate::action::{Action, Determinant, DeterminantParams, Power};
use crate::family::terms::{header, on_smeared_links, quark};
use crate::family::{Family, FamilyError};
use crate::field::{Domain, MatrixField};
use crate::measure::{MeasureError, Wanted};
use crate::operator::smeared;
use crate::quark::{Inverse, QuarkParams};
use crate::solver::{Past, TermSolver};
use std::sync::Arc;

impl Family for WilsonFermion {
    fn name(&self) -> &str {
        &self.name
    }

    fn pseudofermions(&self) -> usize {
        let copies = match &self.flavours {
            Flavours::Two => 1,
            Flavours::One(functions) => functions.copies as usize,
        };
        copies + self.hasenbusch.len()
    }

    fn solvers(&self) -> Vec<(&str, &TermSolver)> {
        let factors = self.hasenbusch.iter().map(|factor| (factor.name.as_str(), &factor.solver));
        std::iter::once((self.name.as_str(), &self.solver)).chain(factors).collect()
    }

    fn terms(&self, domain: &Arc<Domain>, number: u8) -> Result<Vec<Box<dyn Action>>, FamilyError> {
        (number..)
            .zip(self.factors())
            .map(|(number, factor)| {
                let _label = domain.device().label(factor.name);
                on_smeared_links(domain, self.term(domain, factor, number)?, self.stout)
            })
            .collect()
    }

    /// Only terms of the Hamiltonian have the twisted mass.
    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError> {
        let (params, residual) =
            (QuarkParams { guess: Past::NONE, ..quark(self.operator, &self.solver) }, wanted.residual);
        Ok(Box::new(match self.stout {
            Some(stout) => WilsonQuark::new(&smeared(links, stout.steps, stout.rho)?, &params, residual)?,
            None => WilsonQuark::new(links, &params, residual)?,
        }))
    }
}

/// A factor of the determinant, and the next heavier one in its denominator.
struct Factor<'a> {
    name: &'a str,
    quark: QuarkParams<WilsonParams>,
    solver: &'a TermSolver,
    heavier: Option<QuarkParams<WilsonParams>>,
}

impl WilsonFermion {
    /// The factors of the determinant, the lightest first.
    fn factors(&self) -> Vec<Factor<'_>> {
        let quark = |kappa: f64, mu: f64, solver: &TermSolver| {
            quark(WilsonParams { kappa, mu, ..self.operator }, solver)
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
        let Factor { name, quark: light, solver, heavier } = factor;
        let (power, heavy) = match &self.flavours {
            Flavours::Two => (Power::Inverse, heavier),
            Flavours::One(functions) => (functions.clone().power(None), None),
        };
        let params = DeterminantParams { header: header(name, solver, number), light, heavy, power };
        let term = Determinant::new(domain, params);
        Ok(Box::new(term.map_err(|error| FamilyError::of_term(&self.name, error))?))
    }
}
