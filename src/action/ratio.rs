//! A ratio of two-flavour determinants, light (W) over heavy (V), in mass, twisted mass or both:
//!
//! ```text
//! S = phi^dag V (W^dag W)^-1 V^dag phi - 2 (log det A_W - log det A_V),
//! ```
//!
//! whose weight is `det(W^dag W) / det(V^dag V)` times the determinants of A that belong to it; these cancel where
//! kappa and c_sw are the same. Small forces of the light quark live on a long step, the heavy one's on a short
//! (Hasenbusch, hep-lat/0107019; Hasenbusch, Jansen, hep-lat/0211042; Urbach et al., hep-lat/0506011).
//!
//! Heat bath: `phi = V (V^dag V)^-1 W^dag eta`, so that `V^dag phi = W^dag eta`. With
//! `X = (W^dag W)^-1 V^dag phi` the change under dU is `-2 Re (W X)^dag dW X + 2 Re phi^dag dV X`.

use super::{
    Action, ActionError, Fraction, OperatorParams, PairForce, Pseudofermion, QuarkOperator, QuarkParams,
    TermReport, pseudofermion,
};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use std::sync::Arc;

/// What a ratio needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoFlavourRatioParams<P> {
    /// Its name in the input.
    pub name: String,
    /// W, the quark of the numerator.
    pub light: QuarkParams<P>,
    /// V, that of the denominator.
    pub heavy: QuarkParams<P>,
    /// `|b - A x| / |b|` for the action, and for the heat bath's solve with V.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
    /// Tells pseudofermions of one run apart.
    pub number: u8,
}

/// A ratio of determinants.
pub struct TwoFlavourRatio<O: QuarkOperator> {
    params: TwoFlavourRatioParams<O::Params>,
    quarks: Fraction<O>,
    pairs: PairForce,
    phi: Spinor,
    /// `V^dag phi`
    source: Spinor,
    x: Spinor,
}

impl<O: QuarkOperator> TwoFlavourRatio<O> {
    /// Room for the term.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// The quarks are not of one Schur complement.
    pub fn new<P>(domain: &Arc<Domain>, params: TwoFlavourRatioParams<P>) -> Result<Self, FieldError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let quarks = Fraction::new(domain, &params.light, &params.heavy)?;
        let spinor = || quarks.light.spinor();
        Ok(Self { pairs: quarks.pairs()?, phi: spinor()?, source: spinor()?, x: spinor()?, quarks, params })
    }

    /// `-2 (log det A_W - log det A_V)`
    fn log_det(&self) -> ExactSum {
        let one = self.quarks.log_det();
        one + one
    }

    /// Sets the pseudofermion: for tests and replays. Host reals as `Spinor::read_host` takes them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_phi(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        self.phi.read_host(ODD, reals)
    }
}

impl<O: QuarkOperator> Action for TwoFlavourRatio<O> {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.quarks.forget();
        self.quarks.update(links)?;
        let eta = &mut self.x;
        eta.set_random(ODD, 0.5f64.sqrt(), pseudofermion(seed, trajectory, self.params.number))?;
        let weight = eta.norm2()?;
        self.quarks.light.apply(&mut self.source, eta, true)?;
        self.quarks.heavy.solve(&mut self.x, &self.source, self.params.action_residual)?;
        self.quarks.heavy.apply(&mut self.phi, &self.x, false)?;
        Ok(weight + self.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.quarks.update(links)?;
        self.quarks.heavy.apply(&mut self.source, &self.phi, true)?;
        self.quarks.light.solve(&mut self.x, &self.source, self.params.action_residual)?;
        Ok(self.source.real_dot(&self.x)? + self.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.quarks.update(links)?;
        self.quarks.heavy.apply(&mut self.source, &self.phi, true)?;
        let info = self.quarks.light.solve_guessed(&mut self.x, &self.source, self.params.force_residual)?;
        let mut sum = self.pairs.begin(links, force)?;
        sum.add_square(&mut self.quarks.light, &self.x, 1.0)?;
        sum.add_pair(&mut self.quarks.heavy, &self.x, &self.phi, -1.0)?;
        self.quarks.add_log_det(&mut sum, 1.0)?;
        sum.finish()?;
        Ok(info.iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.quarks.forget();
        vec![Pseudofermion::odd(&mut self.phi)]
    }

    fn report(&self) -> Option<TermReport> {
        Some(self.quarks.solves().report(""))
    }
}
