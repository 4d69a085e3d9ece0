//! One flavour of quarks by a rational function (RHMC):
//!
//! ```text
//! S = phi^dag r(W^dag W) phi - log det A,   r(x) ~ x^(-1/2),
//! ```
//!
//! whose weight is |det W| det A, A as for two flavours (Clark, Kennedy, hep-lat/0608015). With
//! `r(x) = c + sum_i a_i / (x + p_i)` and `X_i = (W^dag W + p_i)^-1 phi` the change under dU is
//! `sum_i a_i { -2 Re (W X_i)^dag dW X_i }`. Heat bath: `phi = h(W^dag W) eta`, `h(x) ~ x^(1/4)`.
//!
//! Outside the range on which r and h are right the trajectory fails (`powers`).

use super::powers::{Powers, Wanted};
use super::{
    Action, ActionError, OperatorParams, PairForce, Pseudofermion, Quark, QuarkOperator, QuarkParams,
    TermReport, pseudofermion,
};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use crate::solver::Bounds;
use std::sync::Arc;

/// What a one-flavour term needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct OneFlavourParams<P> {
    /// Its name in the input.
    pub name: String,
    /// The quark. Its solves start from zero whatever `guess` is.
    pub quark: QuarkParams<P>,
    /// Where the spectrum of `W^dag W` lies.
    pub range: [f64; 2],
    /// Relative error on the range of the functions of heat bath and action.
    pub action_error: f64,
    /// The same of the force.
    pub force_error: f64,
    /// `|b - A x| / |b|` of every shift, for heat bath and action.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
    /// The spectrum is measured on every so many trajectories; at least 1.
    pub check_every: u64,
    /// Tells pseudofermions of one run apart.
    pub number: u8,
}

/// One flavour.
pub struct OneFlavour<O: QuarkOperator> {
    params: OneFlavourParams<O::Params>,
    quark: Quark<O>,
    pairs: PairForce,
    powers: Powers,
    phi: Spinor,
    x: Vec<Spinor>,
}

impl<O: QuarkOperator> OneFlavour<O> {
    /// Makes the functions, and room for the term.
    ///
    /// # Errors
    /// There is no such function; no room.
    ///
    /// # Panics
    /// `check_every` is 0.
    pub fn new<P>(domain: &Arc<Domain>, params: OneFlavourParams<P>) -> Result<Self, ActionError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let &OneFlavourParams { range, action_error, force_error, check_every, .. } = &params;
        let (heat_bath, action) = ((1, 4), (-1, 2));
        let powers =
            Powers::new(Wanted { heat_bath, action, range, action_error, force_error, check_every })?;
        let quark = Quark::new(domain, &params.quark)?;
        Ok(Self {
            pairs: PairForce::new(domain, quark.kind(), quark.clover().is_some())?,
            phi: quark.spinor()?,
            x: (0..powers.poles()).map(|_| quark.spinor()).collect::<Result<_, _>>()?,
            powers,
            quark,
            params,
        })
    }

    /// Sets the pseudofermion: for tests and replays. Host reals as `Spinor::read_host` takes them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_phi(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        self.phi.read_host(ODD, reals)
    }

    /// The ends of the spectrum as last measured.
    pub fn measured(&self) -> Option<Bounds> {
        self.powers.measured()
    }

    /// `-log det A` over the parities that belong to the action.
    fn log_det(&self) -> ExactSum {
        ExactSum::default() - self.quark.log_det()
    }
}

impl<O: QuarkOperator> Action for OneFlavour<O> {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.quark.forget();
        self.quark.update(links)?;
        self.powers.begin(seed, trajectory);
        self.powers.check(&mut self.quark, "quark")?;
        let mut eta = self.quark.spinor()?;
        eta.set_random(ODD, 0.5f64.sqrt(), pseudofermion(seed, trajectory, self.params.number))?;
        let residual = self.params.action_residual;
        self.quark.apply_function(&mut self.phi, &eta, &self.powers.heat_bath, &mut self.x, residual)?;
        Ok(eta.norm2()? + self.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.quark.update(links)?;
        self.powers.check(&mut self.quark, "quark")?;
        let mut image = self.quark.spinor()?;
        let residual = self.params.action_residual;
        self.quark.apply_function(&mut image, &self.phi, &self.powers.action, &mut self.x, residual)?;
        Ok(self.phi.real_dot(&image)? + self.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.quark.update(links)?;
        let x = &mut self.x[..self.powers.force.poles.len()];
        let info =
            self.quark.solve_shifted(x, &self.phi, &self.powers.force.poles, self.params.force_residual)?;
        let mut sum = self.pairs.begin(links, force)?;
        for (x, &residue) in x.iter().zip(&self.powers.force.residues) {
            sum.add_square(&mut self.quark, x, residue)?;
        }
        sum.add_log_det(&self.quark, 0.5)?;
        sum.finish()?;
        Ok(info.total.iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.quark.forget();
        vec![Pseudofermion::odd(&mut self.phi)]
    }

    fn report(&self) -> Option<TermReport> {
        Some(self.quark.solves().report(&format!("; {}", self.powers)))
    }
}
