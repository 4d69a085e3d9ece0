//! A light quark W over a heavy one V: what ratios of determinants are made of.

use super::{ActionError, OperatorParams, PairForce, PairSum, Quark, QuarkOperator, QuarkParams, Solves};
use crate::field::{Domain, FieldError, MatrixField};
use crate::math::ExactSum;
use std::sync::Arc;

/// The two quarks.
pub(super) struct Fraction<O: QuarkOperator> {
    /// W
    pub light: Quark<O>,
    /// V
    pub heavy: Quark<O>,
    /// Whether the determinants of A differ.
    log_det: bool,
}

impl<O: QuarkOperator> Fraction<O> {
    /// Room for both.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// They are no quarks of one ratio.
    pub fn new<P>(
        domain: &Arc<Domain>,
        light: &QuarkParams<P>,
        heavy: &QuarkParams<P>,
    ) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let log_det = !O::determinants_cancel(&light.operator, &heavy.operator);
        Ok(Self { light: Quark::new(domain, light)?, heavy: Quark::new(domain, heavy)?, log_det })
    }

    /// Room for forces of both.
    ///
    /// # Errors
    /// No room.
    pub fn pairs(&self) -> Result<PairForce, FieldError> {
        let clover = self.light.clover().is_some() || self.heavy.clover().is_some();
        PairForce::new(self.light.domain(), self.light.kind(), clover)
    }

    /// Takes over new links.
    ///
    /// # Errors
    /// A clover term is not positive.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), ActionError> {
        self.light.update(links)?;
        self.heavy.update(links)
    }

    /// As [`Quark::forget`].
    pub fn forget(&mut self) {
        self.light.forget();
        self.heavy.forget();
    }

    /// `-(log det A_W - log det A_V)`
    pub fn log_det(&self) -> ExactSum {
        if self.log_det { self.heavy.log_det() - self.light.log_det() } else { ExactSum::default() }
    }

    /// Adds `-2 weight d (log det A_W - log det A_V)`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_log_det(&self, sum: &mut PairSum, weight: f64) -> Result<(), FieldError> {
        if self.log_det {
            sum.add_log_det(&self.light, weight)?;
            sum.add_log_det(&self.heavy, -weight)?;
        }
        Ok(())
    }

    /// What the solves of both did.
    pub fn solves(&self) -> Solves {
        self.light.solves().with(self.heavy.solves())
    }
}
