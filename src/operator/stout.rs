//! Isotropic stout smearing of links (Morningstar, Peardon, hep-lat/0311018), and its force:
//!
//! ```text
//! U' = exp(iQ) U,  Q = (i/2)(Omega^dag - Omega) - (i/6) tr(Omega^dag - Omega),  Omega_mu = C_mu U_mu^dag,
//! C_mu(x) = rho sum_{nu != mu} [ U_nu(x) U_mu(x+nu) U_nu(x+mu)^dag + U_nu(x-nu)^dag U_mu(x-nu) U_nu(x-nu+mu) ]
//! ```
//!
//! These are their equations (1) to (4). Q is -6 rho times the force of plaquettes of weight 1,
//! `sum (1 - Re tr P / 3)`. So a step is an Euler step of length rho along the Wilson flow, with the kernels of gauge
//! force and drift. The derivative is in `kernels/stout.cuh`.

use super::{GaugeLoops, WallWeights};
use crate::device::kernels::{StoutForce, StoutInsertion};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use std::sync::Arc;

/// One step: Q from the links before it, and the links after it.
struct Level {
    exponent: AlgebraField,
    links: MatrixField,
}

/// Several steps with one rho, all kept for the force.
pub struct Stout {
    domain: Arc<Domain>,
    rho: f64,
    terms: i32,
    plaquettes: GaugeLoops,
    levels: Vec<Level>,
    insertion: Option<MatrixField>,
}

impl Stout {
    /// Memory for `steps` steps; with 0 steps links stay as they are.
    ///
    /// # Panics
    /// rho is negative or not below 1/2: the series of exp(iQ) holds for |Q| < 4, and |Q| may reach 8 rho. (Waves of
    /// momentum p are scaled by 1 - rho sum_mu 4 sin^2(p_mu / 2); all of them shrink if rho < 1/8.)
    pub fn new(domain: &Arc<Domain>, steps: usize, rho: f64) -> Result<Self, FieldError> {
        assert!((0.0..0.5).contains(&rho), "rho = {rho} is not from 0 to 1/2");
        let level =
            || Ok(Level { exponent: AlgebraField::new(domain)?, links: MatrixField::new(domain, 4)? });
        Ok(Self {
            domain: Arc::clone(domain),
            rho,
            terms: terms(rho),
            plaquettes: GaugeLoops::new(domain, 1.0, 0.0, 0.0)?.with_walls(WallWeights::NONE),
            levels: (0..steps).map(|_| level()).collect::<Result<_, FieldError>>()?,
            insertion: (steps > 0).then(|| MatrixField::new(domain, 4)).transpose()?,
        })
    }

    /// The smeared links.
    pub fn smear<'a>(&'a mut self, links: &'a MatrixField) -> Result<&'a MatrixField, FieldError> {
        let mut thin = links;
        for level in &mut self.levels {
            level.links.copy_from(thin)?;
            step(&self.plaquettes, self.rho, &mut level.exponent, &mut level.links)?;
            thin = &level.links;
        }
        Ok(thin)
    }

    /// Adds the force on `links` to `force`, given the force on the smeared links:
    /// `force += dS(smeared links) / d links`. `links` must be those of the last [`Stout::smear`]. `smeared` is
    /// overwritten.
    pub fn add_force(
        &mut self,
        links: &MatrixField,
        smeared: &mut AlgebraField,
        force: &mut AlgebraField,
    ) -> Result<(), FieldError> {
        for n in (0..self.levels.len()).rev() {
            let Some(insertion) = &mut self.insertion else { break };
            let thin = if n == 0 { links } else { &self.levels[n - 1].links };
            self.domain.check([thin.domain(), smeared.domain()]);
            let (g, sites) = (self.domain.geometry(), 2 * self.domain.half());
            let kernel = StoutInsertion {
                g,
                exponent: self.levels[n].exponent.algebra(),
                force: smeared.algebra_mut(),
                insertion: insertion.links_mut(),
                terms: self.terms,
                rho: self.rho,
            };
            self.domain.launch(&kernel, sites)?;
            insertion.fill_borders_to(1)?;
            let (links, insertion) = (thin.links(), insertion.links());
            self.domain.launch(&StoutForce { g, links, insertion, force: smeared.algebra_mut() }, sites)?;
        }
        force.combine(1.0, 1.0, smeared)?;
        Ok(())
    }
}

/// `links <- exp(iQ) links`; Q is kept in `exponent`.
fn step(
    plaquettes: &GaugeLoops,
    rho: f64,
    exponent: &mut AlgebraField,
    links: &mut MatrixField,
) -> Result<(), FieldError> {
    exponent.set_zero()?;
    plaquettes.add_force(links, exponent, -6.0 * rho)?;
    exponent.drift(links, 1.0)
}

/// The power after which the series `phi(z) = sum_k z^k / (k+1)!` is below rounding for |z| <= 12 rho. The eigenvalues
/// of Q before its trace is removed are within 6 rho of 0 (six plaquettes).
fn terms(rho: f64) -> i32 {
    let (mut k, mut term) = (0, 1.0);
    while term > 1e-18 {
        k += 1;
        term *= 12.0 * rho / f64::from(k + 1);
    }
    k
}

/// A smeared copy of `links`, for measurements.
///
/// # Panics
/// As [`Stout::new`].
pub fn smeared(links: &MatrixField, steps: usize, rho: f64) -> Result<MatrixField, FieldError> {
    let domain = links.domain();
    let stout = Stout::new(domain, 0, rho)?;
    let (mut exponent, mut out) = (AlgebraField::new(domain)?, MatrixField::new(domain, 4)?);
    out.copy_from(links)?;
    for _ in 0..steps {
        step(&stout.plaquettes, rho, &mut exponent, &mut out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::terms;

    /// Compares the truncated series with (e^z - 1) / z at the greatest z.
    #[test]
    fn the_series_is_long_enough() {
        for rho in [0.0, 1e-3, 0.1, 0.14, 0.3, 0.499] {
            let z: f64 = 12.0 * rho;
            let sum = (0..=terms(rho)).rev().fold(0.0, |sum, k| 1.0 + sum * z / f64::from(k + 2));
            let expected = if z == 0.0 { 1.0 } else { z.exp_m1() / z };
            assert!((sum / expected - 1.0).abs() < 1e-15, "{rho}: {} terms, {sum} {expected}", terms(rho));
        }
        assert_eq!(terms(0.0), 1);
        assert!(terms(0.14) < 25);
    }
}
