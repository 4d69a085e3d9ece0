//! Stout smearing as Morningstar and Peardon write it, hep-lat/0311018, equations (1) to (4):
//!
//! C_mu(x) = sum_{nu != mu} rho [ U_nu(x) U_mu(x+nu) U_nu(x+mu)^dag + U_nu(x-nu)^dag U_mu(x-nu) U_nu(x-nu+mu) ],
//! Omega = C U^dag, Q = (i/2)(Omega^dag - Omega) - (i/6) tr(Omega^dag - Omega), U' = exp(iQ) U.
//!
//! The exponential is a Taylor series of a power of the matrix; it uses no eigenvalues and no invariants of Q.

use super::gauge::{Gauge, Step};
use super::su3::{self, I, M3};

/// One step.
pub fn step(gauge: &Gauge, rho: f64) -> Gauge {
    let links = (0..gauge.links.len()).map(|x| std::array::from_fn(|mu| link(gauge, rho, x, mu))).collect();
    Gauge { extents: gauge.extents, links }
}

/// `steps` steps.
pub fn smeared(gauge: &Gauge, steps: usize, rho: f64) -> Gauge {
    (0..steps).fold(gauge.clone(), |gauge, _| step(&gauge, rho))
}

fn link(gauge: &Gauge, rho: f64, x: usize, mu: usize) -> M3 {
    let mut c = su3::zero();
    for nu in (0..4).filter(|&nu| nu != mu) {
        let above: [Step; 3] = [(nu, 1), (mu, 1), (nu, -1)];
        let below: [Step; 3] = [(nu, -1), (mu, 1), (nu, 1)];
        c = su3::add(&c, &su3::add(&gauge.product(x, &above), &gauge.product(x, &below)));
    }
    let u = &gauge.links[x][mu];
    let omega = su3::scale(rho, &su3::mul(&c, &su3::adjoint(u)));
    let d = su3::sub(&su3::adjoint(&omega), &omega);
    let q = su3::sub(&su3::scale(I / 2.0, &d), &su3::scale(I / 6.0 * su3::trace(&d), &su3::one()));
    su3::mul(&su3::exp_i(&q), u)
}
