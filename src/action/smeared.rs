//! A term on stout-smeared links, `S(U) = S_inner(V(U))`. Its force is carried from V to U (Morningstar, Peardon,
//! hep-lat/0311018).

use super::{Action, ActionError, Pseudofermion, TermReport};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use crate::math::ExactSum;
use crate::operator::Stout;
use std::sync::Arc;

/// The term with its smearing. Links are smeared at each call, since they may have changed.
pub struct Smeared {
    inner: Box<dyn Action>,
    stout: Stout,
    force: AlgebraField,
}

impl Smeared {
    /// `inner` on links after `steps` steps with `rho`.
    ///
    /// # Panics
    /// As [`Stout::new`].
    pub fn new(
        domain: &Arc<Domain>,
        inner: Box<dyn Action>,
        steps: usize,
        rho: f64,
    ) -> Result<Self, FieldError> {
        Ok(Self { inner, stout: Stout::new(domain, steps, rho)?, force: AlgebraField::new(domain)? })
    }
}

impl Action for Smeared {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.inner.refresh(self.stout.smear(links)?, seed, trajectory)
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.inner.value(self.stout.smear(links)?)
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.add_part(None, links, force)
    }

    fn parts(&self) -> Vec<&str> {
        self.inner.parts()
    }

    fn add_part(
        &mut self,
        part: Option<usize>,
        links: &MatrixField,
        force: &mut AlgebraField,
    ) -> Result<usize, ActionError> {
        self.force.set_zero()?;
        let iterations = self.inner.add_part(part, self.stout.smear(links)?, &mut self.force)?;
        self.stout.add_force(links, &mut self.force, force)?;
        Ok(iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.inner.pseudofermions()
    }

    fn report(&self) -> Option<TermReport> {
        self.inner.report()
    }
}
