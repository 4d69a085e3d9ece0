//! Two degenerate flavours of quarks:
//!
//! ```text
//! S = phi^dag (W^dag W)^-1 phi - 2 log det A,
//! ```
//!
//! A that of Wilson-clover quarks on even sites, and in the symmetric form on odd ones. With X = (W^dag W)^-1 phi the
//! change under dU is -2 Re (W X)^dag dW X. With a twisted mass the term is the last determinant of a chain of ratios,
//! `det(W^dag W + ..)` at the greatest mu (Hasenbusch, hep-lat/0107019).

use super::{
    Action, ActionError, OperatorParams, PairForce, Pseudofermion, Quark, QuarkOperator, QuarkParams,
    TermReport, pseudofermion,
};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use std::sync::Arc;

/// What a two-flavour term needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoFlavourParams<P> {
    /// Its name in the input.
    pub name: String,
    /// The quark.
    pub quark: QuarkParams<P>,
    /// `|b - A x| / |b|` for the action.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
    /// Tells pseudofermions of one run apart.
    pub number: u8,
}

/// Two degenerate flavours.
pub struct TwoFlavour<O: QuarkOperator> {
    params: TwoFlavourParams<O::Params>,
    quark: Quark<O>,
    pairs: PairForce,
    phi: Spinor,
    x: Spinor,
}

impl<O: QuarkOperator> TwoFlavour<O> {
    /// Room for the term.
    ///
    /// # Errors
    /// No room.
    pub fn new<P>(domain: &Arc<Domain>, params: TwoFlavourParams<P>) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let quark = Quark::new(domain, &params.quark)?;
        Ok(Self {
            pairs: PairForce::new(domain, quark.kind(), quark.clover().is_some())?,
            phi: quark.spinor()?,
            x: quark.spinor()?,
            quark,
            params,
        })
    }

    /// `-2 log det A` over the parities that belong to the action.
    fn log_det(&self) -> ExactSum {
        let one = self.quark.log_det();
        ExactSum::default() - one - one
    }

    /// Sets the pseudofermion: for tests and replays. Host reals as `Spinor::read_host` takes them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_phi(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        self.phi.read_host(ODD, reals)
    }
}

impl<O: QuarkOperator> Action for TwoFlavour<O> {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.quark.forget();
        self.quark.update(links)?;
        // phi = W^dag eta with weight exp(-|eta|^2)
        let eta = &mut self.x;
        eta.set_random(ODD, 0.5f64.sqrt(), pseudofermion(seed, trajectory, self.params.number))?;
        self.quark.apply(&mut self.phi, eta, true)?;
        Ok(eta.norm2()? + self.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.quark.update(links)?;
        self.quark.solve(&mut self.x, &self.phi, self.params.action_residual)?;
        Ok(self.phi.real_dot(&self.x)? + self.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.quark.update(links)?;
        let info = self.quark.solve_guessed(&mut self.x, &self.phi, self.params.force_residual)?;
        let mut sum = self.pairs.begin(links, force)?;
        sum.add_square(&mut self.quark, &self.x, 1.0)?;
        sum.add_log_det(&self.quark, 1.0)?;
        sum.finish()?;
        Ok(info.iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.quark.forget();
        vec![Pseudofermion::odd(&mut self.phi)]
    }

    fn report(&self) -> Option<TermReport> {
        Some(self.quark.solves().report(""))
    }
}
