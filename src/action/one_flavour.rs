//! One flavour of Wilson(-clover) quarks by a rational function (RHMC):
//!
//! ```text
//! S = phi^dag r(W^dag W) phi - log det A_ee  (symmetric form: - log det A_ee A_oo),   r(x) ~ x^(-1/2),
//! ```
//!
//! whose weight is |det W| (Clark, Kennedy, hep-lat/0608015). With `r(x) = c + sum_i a_i / (x + p_i)` and
//! `X_i = (W^dag W + p_i)^-1 phi` the change under dU is `sum_i a_i { -2 Re (W X_i)^dag dW X_i }`. Heat bath:
//! `phi = h(W^dag W) eta`, `h(x) ~ x^(1/4)`.
//!
//! r and h are right on a range, so the ends of the spectrum are measured, at the refresh and at the value of every
//! `check_every`-th trajectory and of the first of a run. Outside the range the trajectory fails.

use super::{Action, ActionError, PairForce, Quark, QuarkParams, pseudofermion};
use crate::device::Precision;
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use crate::math::{ExactSum, Factor, Rational};
use crate::solver::Bounds;
use std::sync::Arc;

/// What a one-flavour term needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct OneFlavourParams {
    /// Its name in the input.
    pub name: String,
    /// The quark. Its solves start from zero whatever `guess` is.
    pub quark: QuarkParams,
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

/// A measured end counts as outside when this part of it more would be.
const MARGIN: f64 = 0.05;
/// Relative error bound of the measured ends.
const TOLERANCE: f64 = 0.01;
/// The part of the random stream from which the spectrum's first vector is drawn.
const PROBE: u8 = 15;

/// One flavour.
pub struct OneFlavour {
    params: OneFlavourParams,
    quark: Quark,
    pairs: PairForce,
    heat_bath: Rational,
    action: Rational,
    force: Rational,
    phi: Spinor,
    x: Vec<Spinor>,
    /// Where the run is, for the check.
    seed: u64,
    trajectory: u64,
    measured: Option<Bounds>,
}

impl OneFlavour {
    /// Makes the functions, and room for the term.
    ///
    /// # Errors
    /// There is no such function; no room.
    ///
    /// # Panics
    /// `check_every` is 0.
    pub fn new(domain: &Arc<Domain>, params: OneFlavourParams) -> Result<Self, ActionError> {
        assert!(params.check_every > 0, "the spectrum is checked on some trajectories");
        let function =
            |power, error| Rational::to_error(&[Factor { shift: 0.0, power }], params.range, error);
        let heat_bath = function((1, 4), params.action_error)?;
        let action = function((-1, 2), params.action_error)?;
        let force = function((-1, 2), params.force_error)?;
        let most = heat_bath.poles.len().max(action.poles.len()).max(force.poles.len());
        let spinor = || Spinor::new(domain, Precision::Double);
        Ok(Self {
            quark: Quark::new(domain, &params.quark)?,
            pairs: PairForce::new(domain, params.quark.operator.c_sw != 0.0)?,
            heat_bath,
            action,
            force,
            phi: spinor()?,
            x: (0..most).map(|_| spinor()).collect::<Result<_, _>>()?,
            seed: 0,
            trajectory: 0,
            measured: None,
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
        self.measured
    }

    /// `-log det A` over the parities that belong to the action.
    fn log_det(&self) -> ExactSum {
        ExactSum::default() - self.quark.log_det()
    }

    /// Measures the spectrum of the quark as it is.
    fn check(&mut self) -> Result<(), ActionError> {
        let mut start = Spinor::new(self.phi.domain(), Precision::Double)?;
        let (seed, trajectory) = (self.seed, self.trajectory);
        start.set_random(ODD, 1.0, RandomAddress { seed, trajectory, purpose: Purpose::Probe(PROBE) })?;
        let bounds = self.quark.bounds(&mut start, TOLERANCE)?;
        self.measured = Some(bounds);
        let ([lo, hi], Bounds { least, greatest, .. }) = (self.params.range, bounds);
        if lo > (1.0 - MARGIN) * least || hi < (1.0 + MARGIN) * greatest {
            return Err(ActionError::Range {
                least,
                greatest,
                lo,
                hi,
                wanted: [0.5 * least, 1.2 * greatest],
            });
        }
        Ok(())
    }
}

/// `constant phi + sum_i residue_i x_i` into `out`.
fn combine(out: &mut Spinor, phi: &Spinor, x: &[Spinor], r: &Rational) -> Result<(), FieldError> {
    out.copy_from(phi)?;
    out.scale(r.constant)?;
    for (x, &residue) in x.iter().zip(&r.residues) {
        out.axpy(residue, x)?;
    }
    Ok(())
}

impl Action for OneFlavour {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.quark.forget();
        self.quark.update(links)?;
        (self.seed, self.trajectory) = (seed, trajectory);
        if self.measured.is_none() || trajectory.is_multiple_of(self.params.check_every) {
            self.check()?;
        }
        let mut eta = Spinor::new(self.phi.domain(), Precision::Double)?;
        eta.set_random(ODD, 0.5f64.sqrt(), pseudofermion(seed, trajectory, self.params.number))?;
        let x = &mut self.x[..self.heat_bath.poles.len()];
        self.quark.solve_shifted(x, &eta, &self.heat_bath.poles, self.params.action_residual)?;
        combine(&mut self.phi, &eta, x, &self.heat_bath)?;
        Ok(eta.norm2()? + self.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.quark.update(links)?;
        if self.trajectory.is_multiple_of(self.params.check_every) {
            self.check()?;
        }
        let x = &mut self.x[..self.action.poles.len()];
        self.quark.solve_shifted(x, &self.phi, &self.action.poles, self.params.action_residual)?;
        let mut sum = Spinor::new(self.phi.domain(), Precision::Double)?;
        combine(&mut sum, &self.phi, x, &self.action)?;
        Ok(self.phi.real_dot(&sum)? + self.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.quark.update(links)?;
        let x = &mut self.x[..self.force.poles.len()];
        let info = self.quark.solve_shifted(x, &self.phi, &self.force.poles, self.params.force_residual)?;
        let mut sum = self.pairs.begin(links, force)?;
        for (x, &residue) in x.iter().zip(&self.force.residues) {
            sum.add_square(&mut self.quark, x, residue)?;
        }
        sum.add_log_det(&self.quark, 0.5)?;
        sum.finish()?;
        Ok(info.total.iterations)
    }

    fn report(&self) -> Option<String> {
        let functions = [("heat bath", &self.heat_bath), ("action", &self.action), ("force", &self.force)]
            .map(|(name, r)| format!("{name} {} poles, error {:.1e}", r.poles.len(), r.error))
            .join("; ");
        let [lo, hi] = self.params.range;
        let measured = match self.measured {
            Some(Bounds { least, greatest, .. }) => {
                format!("spectrum [{least:.4e}, {greatest:.4e}] in the range [{lo:.1e}, {hi:.1e}]")
            }
            None => format!("range [{lo:.1e}, {hi:.1e}], spectrum not yet measured"),
        };
        Some(format!("{}; {measured}; {functions}", self.quark.solves()))
    }
}
