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

use super::{Action, ActionError, PairForce, Quark, QuarkParams, pseudofermion};
use crate::device::Precision;
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use std::sync::Arc;

/// What a ratio needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoFlavourRatioParams {
    /// Its name in the input.
    pub name: String,
    /// W, the quark of the numerator.
    pub light: QuarkParams,
    /// V, that of the denominator.
    pub heavy: QuarkParams,
    /// `|b - A x| / |b|` for the action, and for the heat bath's solve with V.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
    /// Tells pseudofermions of one run apart.
    pub number: u8,
}

/// A ratio of determinants.
pub struct TwoFlavourRatio {
    params: TwoFlavourRatioParams,
    light: Quark,
    heavy: Quark,
    pairs: PairForce,
    /// Whether the determinants of A differ.
    log_det: bool,
    phi: Spinor,
    /// `V^dag phi`
    source: Spinor,
    x: Spinor,
}

impl TwoFlavourRatio {
    /// Room for the term.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// The quarks differ in the Schur complement: the determinants of A_oo would not match.
    pub fn new(domain: &Arc<Domain>, params: TwoFlavourRatioParams) -> Result<Self, FieldError> {
        let (light, heavy) = (&params.light.operator, &params.heavy.operator);
        assert_eq!(light.schur, heavy.schur, "a ratio is of one Schur complement");
        let spinor = || Spinor::new(domain, Precision::Double);
        Ok(Self {
            light: Quark::new(domain, &params.light)?,
            heavy: Quark::new(domain, &params.heavy)?,
            pairs: PairForce::new(domain, light.c_sw != 0.0 || heavy.c_sw != 0.0)?,
            log_det: (light.kappa, light.c_sw) != (heavy.kappa, heavy.c_sw),
            phi: spinor()?,
            source: spinor()?,
            x: spinor()?,
            params,
        })
    }

    fn update(&mut self, links: &MatrixField) -> Result<(), ActionError> {
        self.light.update(links)?;
        self.heavy.update(links)
    }

    /// `-2 (log det A_W - log det A_V)`
    fn log_det(&self) -> ExactSum {
        if !self.log_det {
            return ExactSum::default();
        }
        let one = self.heavy.log_det() - self.light.log_det();
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

impl Action for TwoFlavourRatio {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.light.forget();
        self.heavy.forget();
        self.update(links)?;
        let eta = &mut self.x;
        eta.set_random(ODD, 0.5f64.sqrt(), pseudofermion(seed, trajectory, self.params.number))?;
        let weight = eta.norm2()?;
        self.light.apply(&mut self.source, eta, true)?;
        self.heavy.solve(&mut self.x, &self.source, self.params.action_residual)?;
        self.heavy.apply(&mut self.phi, &self.x, false)?;
        Ok(weight + self.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.update(links)?;
        self.heavy.apply(&mut self.source, &self.phi, true)?;
        self.light.solve(&mut self.x, &self.source, self.params.action_residual)?;
        Ok(self.source.real_dot(&self.x)? + self.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.update(links)?;
        self.heavy.apply(&mut self.source, &self.phi, true)?;
        let info = self.light.solve_guessed(&mut self.x, &self.source, self.params.force_residual)?;
        let mut sum = self.pairs.begin(links, force)?;
        sum.add_square(&mut self.light, &self.x, 1.0)?;
        sum.add_pair(&mut self.heavy, &self.x, &self.phi, -1.0)?;
        if self.log_det {
            sum.add_log_det(&self.light, 1.0)?;
            sum.add_log_det(&self.heavy, -1.0)?;
        }
        sum.finish()?;
        Ok(info.iterations)
    }

    fn report(&self) -> Option<String> {
        Some(self.light.solves().with(self.heavy.solves()).to_string())
    }
}
