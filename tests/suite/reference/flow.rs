//! Field strength, its energy and charge, and the gradient flow (Luscher, arXiv:1006.4518).
//!
//! F_{mu nu}(x) = (Q_{mu nu} - Q_{nu mu})/8, Q the sum of the four leaves that turn from mu to nu;
//! antihermitian. For E and Q its trace is removed; in the clover term it stays.
//!
//! E_plaq = (2/V) sum_x sum_{mu<nu} Re tr(1 - U_{mu nu});
//! E_clover = -(1/V) sum_x sum_{mu<nu} tr F_{mu nu} F_{mu nu};
//! Q = (1/4 pi^2) sum_x tr(F_xy F_zt - F_xz F_yt + F_xt F_yz) s, s = `SIGN_OPENQCD` or `SIGN_MILC`.

use super::gauge::{Gauge, GaugeAction, LinkField, Step, loops_through_links, plaquettes, rectangles};
use super::su3::{self, M3};

/// The sign s of Q in openQCD.
pub const SIGN_OPENQCD: f64 = 1.0;
/// The planes (mu, nu) in the order of `field_strengths`.
pub const PLANES: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

/// F_{mu nu}(x), with its trace.
pub fn field_strength(gauge: &Gauge, x: usize, mu: usize, nu: usize) -> M3 {
    let leaves: [[Step; 4]; 4] = [
        [(mu, 1), (nu, 1), (mu, -1), (nu, -1)],
        [(nu, 1), (mu, -1), (nu, -1), (mu, 1)],
        [(mu, -1), (nu, -1), (mu, 1), (nu, 1)],
        [(nu, -1), (mu, 1), (nu, 1), (mu, -1)],
    ];
    let q = leaves.iter().fold(su3::zero(), |sum, leaf| su3::add(&sum, &gauge.product(x, leaf)));
    su3::scale(0.125, &su3::sub(&q, &su3::adjoint(&q)))
}

/// The six traceless F of a site, in the order of `PLANES`.
fn field_strengths(gauge: &Gauge, x: usize) -> [M3; 6] {
    PLANES.map(|(mu, nu)| su3::traceless_antihermitian(&field_strength(gauge, x, mu, nu)))
}

/// E from the plaquette.
pub fn energy_plaquette(gauge: &Gauge) -> f64 {
    2.0 * 6.0 * 3.0 * (1.0 - gauge.plaquette())
}

/// E from the clover leaves: (planes with t, planes in space); E is their sum.
pub fn energy_clover(gauge: &Gauge) -> (f64, f64) {
    let (mut time, mut space) = (0.0, 0.0);
    for x in 0..gauge.links.len() {
        for (f, (_, nu)) in field_strengths(gauge, x).iter().zip(PLANES) {
            let part = -su3::trace(&su3::mul(f, f)).re / gauge.links.len() as f64;
            if nu == 3 {
                time += part;
            } else {
                space += part;
            }
        }
    }
    (time, space)
}

/// Q from the clover leaves, with openQCD's sign.
pub fn topological_charge(gauge: &Gauge) -> f64 {
    let sum: f64 = (0..gauge.links.len())
        .map(|x| {
            let [xy, xz, xt, yz, yt, zt] = field_strengths(gauge, x);
            let tr = |a: &M3, b: &M3| su3::trace(&su3::mul(a, b)).re;
            tr(&xy, &zt) - tr(&xz, &yt) + tr(&xt, &yz)
        })
        .sum();
    SIGN_OPENQCD * sum / (4.0 * std::f64::consts::PI.powi(2))
}

/// Kernel of the flow.
pub fn wilson_kernel() -> GaugeAction {
    GaugeAction::wilson(1.0)
}

/// Kernel of the flow with c1 = -1/12.
pub fn symanzik_kernel() -> GaugeAction {
    GaugeAction::rectangle(1.0, -1.0 / 12.0)
}

/// Z in dV/dt = Z V: -{c0 sum of plaquettes + c1 sum of rectangles through the link}, {} the traceless
/// antihermitian part.
fn generator(gauge: &Gauge, kernel: &GaugeAction) -> LinkField {
    let mut z = vec![[su3::zero(); 4]; gauge.links.len()];
    for (c, loops) in [(kernel.plaquette, plaquettes()), (kernel.rectangle, rectangles())] {
        if c != 0.0 {
            accumulate(&mut z, -c, &loops_through_links(gauge, &loops));
        }
    }
    z.iter().map(|z| z.map(|z| su3::traceless_antihermitian(&z))).collect()
}

fn accumulate(sum: &mut LinkField, factor: f64, term: &LinkField) {
    for (sum, term) in sum.iter_mut().flatten().zip(term.iter().flatten()) {
        *sum = su3::add(sum, &su3::scale(factor, term));
    }
}

/// exp(sum_k c_k Z_k) V.
fn moved(gauge: &Gauge, terms: &[(f64, &LinkField)]) -> Gauge {
    let mut exponent = vec![[su3::zero(); 4]; gauge.links.len()];
    for (c, z) in terms {
        accumulate(&mut exponent, *c, z);
    }
    let links = gauge.links.iter().zip(&exponent);
    let link = |(u, z): (&[M3; 4], &[M3; 4])| std::array::from_fn(|mu| su3::mul(&su3::exp(&z[mu]), &u[mu]));
    Gauge { extents: gauge.extents, links: links.map(link).collect() }
}

/// One step of Luscher's third-order Runge-Kutta scheme (appendix C):
/// W1 = exp(Z0/4) W0, W2 = exp(8/9 Z1 - 17/36 Z0) W1, W3 = exp(3/4 Z2 - 8/9 Z1 + 17/36 Z0) W2, Z_i = eps Z(W_i).
pub fn flow_step(gauge: &Gauge, kernel: &GaugeAction, eps: f64) -> Gauge {
    let z0 = generator(gauge, kernel);
    let w1 = moved(gauge, &[(0.25 * eps, &z0)]);
    let z1 = generator(&w1, kernel);
    let w2 = moved(&w1, &[(8.0 / 9.0 * eps, &z1), (-17.0 / 36.0 * eps, &z0)]);
    let z2 = generator(&w2, kernel);
    moved(&w2, &[(0.75 * eps, &z2), (-8.0 / 9.0 * eps, &z1), (17.0 / 36.0 * eps, &z0)])
}

/// `steps` steps of size `eps`.
pub fn flow(gauge: &Gauge, kernel: &GaugeAction, eps: f64, steps: usize) -> Gauge {
    (0..steps).fold(gauge.clone(), |gauge, _| flow_step(&gauge, kernel, eps))
}
