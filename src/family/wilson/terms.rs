//! The terms of Wilson and clover quarks, and their inverse for measurements.

use super::{
    DoubletParams, DoubletQuark, Flavours, Schur, Wilson, WilsonFermion, WilsonOnAllSites, WilsonParams,
    WilsonQuark,
};
use crate::action::{Action, ActionError, Derivative, Determinant, DeterminantParams, Power};
use crate::device::Precision;
use crate::family::qcdml::InQcdml;
use crate::family::terms::{header, on_smeared_links, quark};
use crate::family::{Family, FamilyError};
use crate::field::{Dagger, Domain, LINK_REALS, MatrixField, Spinor};
use crate::math::{Factor as RootFactor, Rational};
use crate::measure::{MeasureError, Wanted};
use crate::operator::{WilsonLinks, smeared};
use crate::quark::{
    Fields, FullOperator, HopDerivative, Inverse, Quark, QuarkError, QuarkParams, RootError, TwistedInverse,
    apply_derivative, combine, links_in_time,
};
use crate::solver::{Bounds, Info, Past, TermSolver};
use std::slice::from_ref;
use std::sync::Arc;

impl Family for WilsonFermion {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_rational(&self) -> bool {
        !matches!(self.flavours, Flavours::Two)
    }

    fn qcdml(&self) -> InQcdml {
        super::qcdml::qcdml(self)
    }

    fn pseudofermions(&self) -> usize {
        let copies = match &self.flavours {
            Flavours::Two => 1,
            Flavours::One(functions) | Flavours::OneAndOne { functions, .. } => functions.copies as usize,
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

    /// Only terms of the Hamiltonian have the regulator. A mass that is wanted is m0, and moves the diagonal of M alone.
    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError> {
        if let Flavours::OneAndOne { epsbar, .. } = self.flavours {
            let operator = DoubletParams { wilson: self.operator, epsbar };
            let params = QuarkParams { guess: Past::NONE, ..quark(operator, &self.solver) };
            return self.on_smeared(links, |links| {
                Ok(Box::new(DoubletQuark::new(links, &params, wanted.residual)?) as _)
            });
        }
        let kappa = wanted.mass.map_or(self.operator.kappa, |m0| 0.5 / (m0 + 4.0));
        let twisted_mass = wanted.twisted_mass.unwrap_or(self.operator.twisted_mass);
        let operator = WilsonParams { kappa, twisted_mass, ..self.operator };
        let (params, residual) = (quark(operator, &self.solver), wanted.residual);
        let solver = params.solver;
        let params = QuarkParams { solver, guess: Past::NONE, ..params };
        self.on_links(links, |links| Ok(Box::new(WilsonQuark::new(links, &params, residual)?) as _))
    }

    fn full_operator(
        &self,
        links: &MatrixField,
        wanted: Wanted,
    ) -> Result<Box<dyn FullOperator>, MeasureError> {
        let twisted_mass = wanted.twisted_mass.unwrap_or(self.operator.twisted_mass);
        let operator = WilsonParams { twisted_mass, ..self.operator };
        self.on_links(links, |links| Ok(Box::new(WilsonOnAllSites::new(links, &operator)?) as _))
    }

    fn twisted(
        &self,
        links: &MatrixField,
        wanted: Wanted,
        mu: f64,
    ) -> Result<Option<Box<dyn TwistedInverse>>, MeasureError> {
        let operator = WilsonParams { mu, schur: Schur::Asymmetric, ..self.operator };
        let params = QuarkParams { guess: Past::NONE, ..quark(operator, &self.solver) };
        let mut quark = Quark::new(links.domain(), &params)?;
        self.on_links(links, |links| Ok(quark.update(links)?))?;
        Ok(Some(Box::new(Twisted { quark, residual: wanted.residual })))
    }

    fn root_error(
        &self,
        links: &MatrixField,
        wanted: Wanted,
    ) -> Result<Option<Box<dyn RootError>>, MeasureError> {
        let Flavours::One(functions) = &self.flavours else { return Ok(None) };
        let params = QuarkParams { guess: Past::NONE, ..quark(self.operator, &self.solver) };
        let mut quark = Quark::with_shifts(links.domain(), &params, 1)?;
        self.on_links(links, |links| Ok(quark.update(links)?))?;
        let times = 2 * functions.copies;
        let power = [RootFactor { shift: 0.0, power: (-1, times) }];
        let root = Rational::to_error(&power, functions.range, functions.action_error)
            .map_err(|error| MeasureError::Refused(format!("[fermion.{}.rational]: {error}", self.name)))?;
        Ok(Some(Box::new(Root { quark, root, times, residual: wanted.residual })))
    }

    fn derivative(
        &self,
        links: &MatrixField,
        _: Wanted,
        order: u32,
    ) -> Result<Option<Box<dyn HopDerivative>>, MeasureError> {
        let in_time = self.on_links(links, |links| Ok(links_in_time(links, order)?))?;
        let boundary = self.operator.boundary;
        let mut hops = WilsonLinks::new(links.domain(), Precision::Double, LINK_REALS, 1, boundary)?;
        hops.update(&in_time)?;
        Ok(Some(Box::new(HopsInTime { hops, order })))
    }
}

/// `X + mu^2`
struct Twisted {
    quark: Quark<Wilson>,
    residual: f64,
}

impl TwistedInverse for Twisted {
    fn domain(&self) -> &Arc<Domain> {
        self.quark.domain()
    }

    fn solve(&mut self, x: &mut Spinor, b: &Spinor) -> Result<Info, QuarkError> {
        self.quark.solve(x, b, self.residual)
    }

    fn bounds(&mut self, start: &mut Spinor, tolerance: f64) -> Result<Bounds, QuarkError> {
        self.quark.bounds(start, tolerance)
    }
}

/// `X r(X)^times - 1`
struct Root {
    quark: Quark<Wilson>,
    root: Rational,
    times: u32,
    residual: f64,
}

impl RootError for Root {
    fn domain(&self) -> &Arc<Domain> {
        self.quark.domain()
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor) -> Result<(), QuarkError> {
        let Self { quark, root, times, residual } = self;
        let mut y = quark.spinor()?;
        y.copy_from(x)?;
        for _ in 0..*times {
            let solved = quark.solve_shifted(from_ref(&y), &root.poles, *residual)?;
            combine(&mut y, &solved[0].1, root)?;
        }
        let mut image = quark.spinor()?;
        quark.apply(&mut image, &y, Dagger::No)?;
        quark.apply(out, &image, Dagger::Yes)?;
        Ok(out.axpy(-1.0, x)?)
    }
}

/// `d^n M / d mu^n`.
struct HopsInTime {
    hops: WilsonLinks,
    order: u32,
}

impl HopDerivative for HopsInTime {
    fn apply(&mut self, out: &mut Fields, x: &Fields) -> Result<(), QuarkError> {
        let Self { hops, order } = self;
        apply_derivative(out, x, (*order, -0.5), |out, x, parity| hops.hop(out, x, parity, Dagger::No))
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
    /// As [`Self::on_smeared`], of a quark whose operator does not mix flavours.
    fn on_links<T>(
        &self,
        links: &MatrixField,
        make: impl FnOnce(&MatrixField) -> Result<T, MeasureError>,
    ) -> Result<T, MeasureError> {
        if let Flavours::OneAndOne { .. } = self.flavours {
            return Err(MeasureError::Refused(format!("[fermion.{}] has quarks of two masses", self.name)));
        }
        self.on_smeared(links, make)
    }

    /// What `make` makes of the links that the quark hops along.
    fn on_smeared<T>(
        &self,
        links: &MatrixField,
        make: impl FnOnce(&MatrixField) -> Result<T, MeasureError>,
    ) -> Result<T, MeasureError> {
        match self.stout {
            Some(stout) => make(&smeared(links, stout.steps, stout.rho)?),
            None => make(links),
        }
    }

    /// The factors of the determinant, the lightest first.
    fn factors(&self) -> Vec<Factor<'_>> {
        let mut all = vec![(self.name.as_str(), quark(self.operator, &self.solver), &self.solver)];
        all.extend(self.hasenbusch.iter().map(|h| {
            let operator = WilsonParams { kappa: h.kappa, mu: h.mu, ..self.operator };
            (h.name.as_str(), quark(operator, &h.solver), &h.solver)
        }));
        let last = all.last().map_or(&self.solver, |(_, _, solver)| *solver);
        let over = self.over.map(|operator| quark(operator, last));
        let heavier: Vec<Option<QuarkParams<WilsonParams>>> =
            all.iter().skip(1).map(|(_, quark, _)| Some(quark.clone())).chain([over]).collect();
        all.into_iter()
            .zip(heavier)
            .map(|((name, quark, solver), heavier)| Factor { name, quark, solver, heavier })
            .collect()
    }

    fn term(&self, domain: &Arc<Domain>, factor: Factor, number: u8) -> Result<Box<dyn Action>, FamilyError> {
        let Factor { name, quark: light, solver, heavier } = factor;
        let header = header(name, solver, number);
        let (power, heavy) = match &self.flavours {
            Flavours::Two => (Power::Inverse, heavier),
            Flavours::One(functions) => (functions.clone().power(None), None),
            Flavours::OneAndOne { epsbar, functions } => {
                let operator = DoubletParams { wilson: light.operator, epsbar: *epsbar };
                let light = quark(operator, solver);
                let power = functions.clone().power(None);
                return self
                    .made(Determinant::new(domain, DeterminantParams { header, light, heavy: None, power }));
            }
        };
        self.made(Determinant::new(domain, DeterminantParams { header, light, heavy, power }))
    }

    fn made<O: Derivative + 'static>(
        &self,
        term: Result<Determinant<O>, ActionError>,
    ) -> Result<Box<dyn Action>, FamilyError> {
        Ok(Box::new(term.map_err(|error| FamilyError::of_term(&self.name, error))?))
    }
}
