//! The terms of domain-wall quarks, and their inverse for measurements.

use super::{
    DomainWallFermion, DomainWallParams, ExactOneFlavour, ExactOneFlavourParams, WallFlavours, WallQuark,
    Weights,
};
use crate::action::{
    Action, OneFlavourRatio, OneFlavourRatioParams, QuarkParams, Smeared, TwoFlavourRatio,
    TwoFlavourRatioParams,
};
use crate::family::{Family, FamilyError, OneFlavourFunctions};
use crate::field::{Domain, MatrixField};
use crate::measure::{MeasureError, Quark, Wanted};
use crate::operator::smeared;
use crate::solver::{Params, TermSolver};
use std::sync::Arc;

/// The mass of the Pauli-Villars fields.
const PAULI_VILLARS: f64 = 1.0;

impl Family for DomainWallFermion {
    fn name(&self) -> &str {
        &self.name
    }

    fn pseudofermions(&self) -> usize {
        1 + self.hasenbusch.len()
    }

    /// One term per ratio of masses.
    fn terms(&self, domain: &Arc<Domain>, number: u8) -> Result<Vec<Box<dyn Action>>, FamilyError> {
        let ratios: Vec<_> = [(&self.name, self.mass, &self.solver)]
            .into_iter()
            .chain(self.hasenbusch.iter().map(|factor| (&factor.name, factor.mass, &factor.solver)))
            .collect();
        let heavier = ratios.iter().skip(1).map(|(_, mass, _)| *mass).chain([PAULI_VILLARS]);
        (number..)
            .zip(ratios.iter().zip(heavier))
            .map(|(number, (&(name, mass, solver), heavy))| {
                let term = self.term(domain, Ratio { name: name.clone(), mass, heavy, solver, number })?;
                Ok(match self.stout {
                    Some(stout) => Box::new(Smeared::new(domain, term, stout.steps, stout.rho)?),
                    None => term,
                })
            })
            .collect()
    }

    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Quark>, MeasureError> {
        let max_iterations = self.solver.settings.max_iterations;
        let params = Params { residual: wanted.residual, max_iterations };
        let operator = self.operator(wanted.mass.unwrap_or(self.mass));
        Ok(Box::new(match self.stout {
            Some(stout) => WallQuark::new(&smeared(links, stout.steps, stout.rho)?, &operator, params)?,
            None => WallQuark::new(links, &operator, params)?,
        }))
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        let Weights::Optimal { spectrum, .. } = self.weights else { return Vec::new() };
        let (error, [lo, hi]) = (self.weights.on(self.n_s).sign_error(spectrum), spectrum);
        vec![("sign function", format!("{}: error {error:.1e} on [{lo}, {hi}]", self.name))]
    }
}

/// A ratio of the determinants of two masses.
struct Ratio<'a> {
    name: String,
    mass: f64,
    heavy: f64,
    solver: &'a TermSolver,
    number: u8,
}

impl DomainWallFermion {
    /// The operator of a quark of `mass`.
    #[must_use]
    pub fn operator(&self, mass: f64) -> DomainWallParams {
        let weights = self.weights.on(self.n_s);
        DomainWallParams { weights, m5: self.m5, mass: [mass; 2], boundary: self.boundary }
    }

    fn term(&self, domain: &Arc<Domain>, ratio: Ratio) -> Result<Box<dyn Action>, FamilyError> {
        let Ratio { name, mass, heavy: heavy_mass, solver, number } = ratio;
        let quark = |mass: f64| QuarkParams {
            operator: self.operator(mass),
            solver: solver.settings,
            link_reals: solver.link_reals,
            guess: solver.guess,
        };
        let (light, heavy) = (quark(mass), quark(heavy_mass));
        let (action_residual, force_residual) = (solver.action_residual, solver.force_residual);
        let refused = |error| FamilyError::of_term(&self.name, error);
        Ok(match self.flavours {
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
            WallFlavours::OneRational { functions, heavy_range } => {
                let OneFlavourFunctions { range, action_error, force_error, check_every } = functions;
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
}
