//! A light quark W, and optionally a heavy one V that divides it: the quarks of a determinant.

use super::{ActionError, PairForce, PairSum};
use crate::field::{FieldError, MatrixField};
use crate::math::ExactSum;
use crate::quark::{OperatorParams, Quark, QuarkOperator, QuarkParams, Solves};

/// The quarks.
pub(super) struct Fraction<O: QuarkOperator> {
    /// W
    pub light: Quark<O>,
    /// V
    pub heavy: Option<Quark<O>>,
    /// Whether determinants of A remain.
    log_det: bool,
}

impl<O: QuarkOperator> Fraction<O> {
    /// Makes both with `quark`.
    ///
    /// # Panics
    /// The quarks do not form a ratio.
    pub(super) fn new<P>(
        quark: impl Fn(&QuarkParams<P>) -> Result<Quark<O>, FieldError>,
        light: &QuarkParams<P>,
        heavy: Option<&QuarkParams<P>>,
    ) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let cancel = heavy.is_some_and(|heavy| O::determinants_cancel(&light.operator, &heavy.operator));
        Ok(Self { light: quark(light)?, heavy: heavy.map(quark).transpose()?, log_det: !cancel })
    }

    /// Workspace for the forces of both.
    pub(super) fn pairs(&self) -> Result<PairForce, FieldError> {
        let clover = self.all().any(|quark| quark.clover().is_some());
        PairForce::new(self.light.domain(), self.light.kind(), clover)
    }

    fn all(&self) -> impl Iterator<Item = &Quark<O>> {
        std::iter::once(&self.light).chain(&self.heavy)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Quark<O>> {
        std::iter::once(&mut self.light).chain(&mut self.heavy)
    }

    /// Adopts new links.
    ///
    /// # Errors
    /// A clover term is not positive.
    pub(super) fn update(&mut self, links: &MatrixField) -> Result<(), ActionError> {
        Ok(self.all_mut().try_for_each(|quark| quark.update(links))?)
    }

    /// As [`Quark::forget`].
    pub(super) fn forget(&mut self) {
        self.all_mut().for_each(Quark::forget);
    }

    /// `-(log det A_W - log det A_V)`, times the flavours that the operators act on
    pub(super) fn log_det(&self) -> ExactSum {
        if !self.log_det {
            return ExactSum::default();
        }
        let heavy = self.heavy.as_ref().map(Quark::log_det).unwrap_or_default();
        let one = heavy - self.light.log_det();
        (0..O::FLAVOURS).fold(ExactSum::default(), |sum, _| sum + one)
    }

    /// Statistics of the solves of both.
    pub(super) fn solves(&self) -> Solves {
        self.all().fold(Solves::default(), |sum, quark| sum.with(quark.solves()))
    }
}

impl<O: super::Derivative> Fraction<O> {
    /// Adds `-2 weight d (log det A_W - log det A_V)`, times the flavours that the operators act on.
    pub(super) fn add_log_det(&self, sum: &mut PairSum, weight: f64) -> Result<(), FieldError> {
        if !self.log_det {
            return Ok(());
        }
        let weight = f64::from(O::FLAVOURS) * weight;
        sum.add_log_det(&self.light, weight)?;
        self.heavy.iter().try_for_each(|heavy| sum.add_log_det(heavy, -weight))
    }
}
