//! The terms of domain-wall quarks, and their inverse for measurements.

use super::{
    DomainWallFermion, DomainWallParams, ExactOneFlavour, ExactOneFlavourParams, WallFlavours, WallInverse,
    WallOnAllSites, WallQuark, Weights,
};
use crate::action::{Action, Determinant, DeterminantParams, Power};
use crate::family::qcdml::InQcdml;
use crate::family::terms::{header, on_smeared_links, quark};
use crate::family::{Family, FamilyError};
use crate::field::{Domain, MatrixField};
use crate::measure::{MeasureError, Wanted};
use crate::operator::smeared;
use crate::quark::{FullOperator, Inverse, QuarkParams};
use crate::solver::{Past, TermSolver};
use std::sync::Arc;

/// The mass of the Pauli-Villars fields.
const PAULI_VILLARS: f64 = 1.0;

impl Family for DomainWallFermion {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_rational(&self) -> bool {
        !matches!(self.flavours, WallFlavours::Two | WallFlavours::OneEofa { .. })
    }

    fn qcdml(&self) -> InQcdml {
        super::qcdml::qcdml(self)
    }

    fn pseudofermions(&self) -> usize {
        let copies = match &self.flavours {
            WallFlavours::Two | WallFlavours::OneEofa { .. } => 1,
            WallFlavours::OneRational { functions, .. } => functions.copies as usize,
        };
        copies + self.hasenbusch.len()
    }

    fn solvers(&self) -> Vec<(&str, &TermSolver)> {
        let factors = self.hasenbusch.iter().map(|factor| (factor.name.as_str(), &factor.solver));
        std::iter::once((self.name.as_str(), &self.solver)).chain(factors).collect()
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
                let _label = domain.device().label(name);
                let ratio = Ratio { name, mass, heavy, solver, number };
                on_smeared_links(domain, self.term(domain, ratio)?, self.stout)
            })
            .collect()
    }

    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError> {
        let (params, residual) = self.measured(wanted);
        Ok(Box::new(match self.stout {
            Some(stout) => WallQuark::new(&smeared(links, stout.steps, stout.rho)?, &params, residual)?,
            None => WallQuark::new(links, &params, residual)?,
        }))
    }

    fn full_operator(
        &self,
        links: &MatrixField,
        wanted: Wanted,
    ) -> Result<Box<dyn FullOperator>, MeasureError> {
        let operator = self.operator(wanted.mass.unwrap_or(self.mass));
        Ok(Box::new(match self.stout {
            Some(stout) => WallOnAllSites::new(&smeared(links, stout.steps, stout.rho)?, &operator)?,
            None => WallOnAllSites::new(links, &operator)?,
        }))
    }

    fn full_inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError> {
        let (params, residual) = self.measured(wanted);
        Ok(Box::new(match self.stout {
            Some(stout) => WallInverse::new(&smeared(links, stout.steps, stout.rho)?, &params, residual)?,
            None => WallInverse::new(links, &params, residual)?,
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
    name: &'a str,
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

    /// The quark of a measurement, and the residual of its solves.
    fn measured(&self, wanted: Wanted) -> (QuarkParams<DomainWallParams>, f64) {
        let operator = self.operator(wanted.mass.unwrap_or(self.mass));
        (QuarkParams { guess: Past::NONE, ..quark(operator, &self.solver) }, wanted.residual)
    }

    fn term(&self, domain: &Arc<Domain>, ratio: Ratio) -> Result<Box<dyn Action>, FamilyError> {
        let Ratio { name, mass, heavy: heavy_mass, solver, number } = ratio;
        let [light, heavy] = [mass, heavy_mass].map(|mass| quark(self.operator(mass), solver));
        let header = header(name, solver, number);
        let refused = |error| FamilyError::of_term(&self.name, error);
        let power = match &self.flavours {
            WallFlavours::Two => Power::Inverse,
            WallFlavours::OneRational { functions, heavy_range } => {
                functions.clone().power(Some(*heavy_range))
            }
            &WallFlavours::OneEofa { range, error, check_every, forecast } => {
                let quark = light;
                let params =
                    ExactOneFlavourParams { header, quark, heavy_mass, range, error, forecast, check_every };
                return Ok(Box::new(ExactOneFlavour::new(domain, params).map_err(refused)?));
            }
        };
        let params = DeterminantParams { header, light, heavy: Some(heavy), power };
        Ok(Box::new(Determinant::new(domain, params).map_err(refused)?))
    }
}
