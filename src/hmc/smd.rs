//! Stochastic molecular dynamics (Luscher, Schaefer, arXiv:1105.4749, section 6; Francis, Fritzsch, Luscher, Rago,
//! arXiv:1911.04533): trajectories of many short cycles. Between them momenta and pseudofermions are refreshed in part,
//!
//! ```text
//! P <- c1 P + c2 eta,  phi <- c1 phi + c2 W^dag eta',  c1 = exp(-friction tau),  c1^2 + c2^2 = 1,
//! ```
//!
//! where tau is the length of a cycle. Each cycle ends with a Metropolis step. If it refuses, the links and momenta before the
//! cycle return, the momenta turned. All is new at the start of a trajectory. So a chain goes on from links alone, as with HMC,
//! and no bit depends on where a job ended.

use crate::action::Action;
use crate::field::{AlgebraField, FieldError, MatrixField, Spinor};
use std::sync::Arc;

/// How a trajectory is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smd {
    /// The friction gamma.
    pub friction: f64,
    /// Cycles in a trajectory.
    pub cycles: u64,
}

/// The state of a cycle before its molecular dynamics.
pub(super) struct Cycles {
    pub(super) params: Smd,
    /// c1 and c2.
    weights: [f64; 2],
    /// The links at the start of the trajectory, aside.
    pub(super) first: MatrixField,
    momenta: AlgebraField,
    /// The pseudofermions of all terms.
    phi: Vec<Spinor>,
}

impl Cycles {
    /// Memory for the terms of a chain whose cycles are of length `tau`.
    pub(super) fn new(
        params: Smd,
        tau: f64,
        links: &MatrixField,
        actions: &mut [Box<dyn Action>],
    ) -> Result<Self, FieldError> {
        let domain = Arc::clone(links.domain());
        let _label = domain.device().label("cycles");
        let all = actions.iter_mut().flat_map(|term| term.pseudofermions());
        let like = |field: &Spinor| Spinor::of(&domain, field.kind(), field.precision(), field.fields());
        let share = params.friction * tau;
        Ok(Self {
            params,
            weights: [(-share).exp(), (-(-2.0 * share).exp_m1()).sqrt()],
            first: MatrixField::aside(&domain, 4)?,
            momenta: AlgebraField::new(&domain)?,
            phi: all.map(|one| like(one.field)).collect::<Result<_, _>>()?,
        })
    }

    /// Whether anything of the old fields is left after a refreshment.
    pub(super) fn keeps(&self) -> bool {
        self.weights[0] != 0.0
    }

    /// Keeps the momenta at the end of a cycle, before they are drawn anew.
    pub(super) fn keep_momenta(&mut self, momenta: &AlgebraField) -> Result<(), FieldError> {
        self.momenta.copy_from(momenta)
    }

    /// Adds what is left of the old fields to new ones.
    pub(super) fn mix(
        &self,
        momenta: &mut AlgebraField,
        actions: &mut [Box<dyn Action>],
    ) -> Result<(), FieldError> {
        let [c1, c2] = self.weights;
        momenta.combine(c2, c1, &self.momenta)?;
        let all = actions.iter_mut().flat_map(|term| term.pseudofermions());
        all.zip(&self.phi).try_for_each(|(one, old)| {
            one.field.scale(c2)?;
            one.field.axpy(c1, old)
        })
    }

    /// Keeps the fields with which a cycle starts.
    pub(super) fn begin(
        &mut self,
        momenta: &AlgebraField,
        actions: &mut [Box<dyn Action>],
    ) -> Result<(), FieldError> {
        self.momenta.copy_from(momenta)?;
        let all = actions.iter_mut().flat_map(|term| term.pseudofermions());
        all.zip(&mut self.phi).try_for_each(|(one, kept)| kept.copy_from(one.field))
    }

    /// Turns the momenta with which the cycle started.
    pub(super) fn turn(&self, momenta: &mut AlgebraField) -> Result<(), FieldError> {
        momenta.combine(0.0, -1.0, &self.momenta).map(|_| ())
    }
}
