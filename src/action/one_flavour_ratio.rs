//! One flavour over a heavier one, light (W) over heavy (V), by rational functions:
//!
//! ```text
//! S = phi^dag R r(W^dag W) R phi - (log det A_W - log det A_V),   r(x) ~ x^(-1/2),   R = R(V^dag V) ~ (V^dag V)^(1/4),
//! ```
//!
//! whose weight is |det W| / |det V| times the determinants of A, as for two flavours; these cancel where they are the
//! same (Clark, Kennedy, hep-lat/0608015; Grid's OneFlavourEvenOddRatioRational). Heat bath:
//! `phi = g(V^dag V) h(W^dag W) eta`, `g(x) ~ x^(-1/4)`, `h(x) ~ x^(1/4)`.
//!
//! With residues a_i, poles p_i of r and b_j, q_j of R, and `chi = R phi`, `psi = r chi`, the change under dU is
//!
//! ```text
//! sum_i a_i { -2 Re (W X_i)^dag dW X_i }                                        X_i = (W^dag W + p_i)^-1 chi
//! + sum_j b_j { -2 Re (V Y_j)^dag dV Z_j - 2 Re (V Z_j)^dag dV Y_j },   Y_j, Z_j = (V^dag V + q_j)^-1 {psi, phi}.
//! ```

use super::powers::{Powers, Wanted};
use super::{
    Action, ActionError, Fraction, OperatorParams, PairForce, Pseudofermion, QuarkOperator, QuarkParams,
    TermReport, pseudofermion,
};
use crate::field::{AlgebraField, Domain, MatrixField, ODD, Spinor};
use crate::math::ExactSum;
use crate::solver::Bounds;
use std::sync::Arc;

/// What a ratio of one flavour needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct OneFlavourRatioParams<P> {
    /// Its name in the input.
    pub name: String,
    /// W, the quark of the numerator. Solves of both start from zero whatever `guess` is.
    pub light: QuarkParams<P>,
    /// V, that of the denominator.
    pub heavy: QuarkParams<P>,
    /// Where the spectrum of `W^dag W` lies.
    pub light_range: [f64; 2],
    /// Where the spectrum of `V^dag V` lies.
    pub heavy_range: [f64; 2],
    /// Relative error on the ranges of the functions of heat bath and action.
    pub action_error: f64,
    /// The same of the force.
    pub force_error: f64,
    /// `|b - A x| / |b|` of every shift, for heat bath and action.
    pub action_residual: f64,
    /// The same for the force.
    pub force_residual: f64,
    /// The spectra are measured on every so many trajectories; at least 1.
    pub check_every: u64,
    /// Tells pseudofermions of one run apart.
    pub number: u8,
}

/// One flavour over a heavier one.
pub struct OneFlavourRatio<O: QuarkOperator> {
    params: OneFlavourRatioParams<O::Params>,
    quarks: Fraction<O>,
    pairs: PairForce,
    light_powers: Powers,
    heavy_powers: Powers,
    phi: Spinor,
    chi: Spinor,
    psi: Spinor,
    /// Solutions X or Y of all shifts.
    x: Vec<Spinor>,
    z: Vec<Spinor>,
    /// V Y and V Z
    images: [Spinor; 2],
}

impl<O: QuarkOperator> OneFlavourRatio<O> {
    /// Makes the functions, and room for the term.
    ///
    /// # Errors
    /// There is no such function; no room.
    ///
    /// # Panics
    /// `check_every` is 0; the quarks are not of one Schur complement.
    pub fn new<P>(domain: &Arc<Domain>, params: OneFlavourRatioParams<P>) -> Result<Self, ActionError>
    where
        P: OperatorParams<Operator = O>,
        O: QuarkOperator<Params = P>,
    {
        let powers = |heat_bath, action, range| {
            let &OneFlavourRatioParams { action_error, force_error, check_every, .. } = &params;
            Powers::new(Wanted { heat_bath, action, range, action_error, force_error, check_every })
        };
        let light_powers = powers((1, 4), (-1, 2), params.light_range)?;
        let heavy_powers = powers((-1, 4), (1, 4), params.heavy_range)?;
        let quarks = Fraction::new(domain, &params.light, &params.heavy)?;
        let spinor = || quarks.light.spinor();
        let several = |count| (0..count).map(|_| spinor()).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            pairs: quarks.pairs()?,
            phi: spinor()?,
            chi: spinor()?,
            psi: spinor()?,
            x: several(light_powers.poles().max(heavy_powers.poles()))?,
            z: several(heavy_powers.force.poles.len())?,
            images: [spinor()?, spinor()?],
            light_powers,
            heavy_powers,
            quarks,
            params,
        })
    }

    /// The ends of the spectra of W and V as last measured.
    pub fn measured(&self) -> [Option<Bounds>; 2] {
        [self.light_powers.measured(), self.heavy_powers.measured()]
    }

    /// Measures both spectra, where this trajectory does.
    fn check(&mut self) -> Result<(), ActionError> {
        self.light_powers.check(&mut self.quarks.light, "light quark")?;
        self.heavy_powers.check(&mut self.quarks.heavy, "heavy quark")
    }
}

impl<O: QuarkOperator> Action for OneFlavourRatio<O> {
    fn name(&self) -> &str {
        &self.params.name
    }

    fn refresh(&mut self, links: &MatrixField, seed: u64, trajectory: u64) -> Result<ExactSum, ActionError> {
        self.quarks.forget();
        self.quarks.update(links)?;
        self.light_powers.begin(seed, trajectory);
        self.heavy_powers.begin(seed, trajectory);
        self.check()?;
        let Self { quarks: Fraction { light, heavy, .. }, chi: eta, psi: source, x, .. } = self;
        eta.set_random(ODD, 0.5f64.sqrt(), pseudofermion(seed, trajectory, self.params.number))?;
        let residual = self.params.action_residual;
        light.apply_function(source, eta, &self.light_powers.heat_bath, x, residual)?;
        heavy.apply_function(&mut self.phi, source, &self.heavy_powers.heat_bath, x, residual)?;
        Ok(eta.norm2()? + self.quarks.log_det())
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        self.quarks.update(links)?;
        self.check()?;
        let Self { quarks: Fraction { light, heavy, .. }, chi, psi, x, .. } = self;
        let residual = self.params.action_residual;
        heavy.apply_function(chi, &self.phi, &self.heavy_powers.action, x, residual)?;
        light.apply_function(psi, chi, &self.light_powers.action, x, residual)?;
        Ok(chi.real_dot(psi)? + self.quarks.log_det())
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.quarks.update(links)?;
        let Self { quarks: Fraction { light, heavy, .. }, phi, chi, psi, x, z, .. } = self;
        let residual = self.params.force_residual;
        let mut iterations =
            heavy.apply_function(chi, phi, &self.heavy_powers.force, z, residual)?.iterations;
        iterations += light.apply_function(psi, chi, &self.light_powers.force, x, residual)?.iterations;
        let mut sum = self.pairs.begin(links, force)?;
        for (x, &residue) in x.iter().zip(&self.light_powers.force.residues) {
            sum.add_square(light, x, residue)?;
        }
        let y = &mut x[..z.len()];
        iterations += heavy.solve_shifted(y, psi, &self.heavy_powers.force.poles, residual)?.total.iterations;
        let [image_y, image_z] = &mut self.images;
        for ((y, z), &residue) in y.iter().zip(z.iter()).zip(&self.heavy_powers.force.residues) {
            heavy.apply(image_y, y, false)?;
            sum.add_pair(heavy, z, image_y, residue)?;
            heavy.apply(image_z, z, false)?;
            sum.add_pair(heavy, y, image_z, residue)?;
        }
        self.quarks.add_log_det(&mut sum, 0.5)?;
        sum.finish()?;
        Ok(iterations)
    }

    fn pseudofermions(&mut self) -> Vec<Pseudofermion<'_>> {
        self.quarks.forget();
        vec![Pseudofermion::odd(&mut self.phi)]
    }

    fn report(&self) -> Option<TermReport> {
        let powers = format!("; light: {}; heavy: {}", self.light_powers, self.heavy_powers);
        Some(self.quarks.solves().report(&powers))
    }
}
