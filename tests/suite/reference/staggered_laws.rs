//! Laws of the reference for improved staggered quarks. A tolerance is relative unless it says absolute.
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]
#![allow(clippy::excessive_precision, clippy::needless_range_loop, reason = "digits as printed by the peers")]

use crate::compare::{close_links, relative};
use crate::reference::gauge::{self, Gauge};
use crate::reference::staggered::{self, ANTIPERIODIC, Paths, Staggered, Vector};
use crate::reference::su3::{self, M3, Rng};
use hmc::lattice::{Extents, coordinates};
use num_complex::Complex64;

const EXTENTS: Extents = [4, 2, 6, 4];
const U0: f64 = 0.862;

fn close_vectors(name: &str, ours: &[Vector], peer: &[Vector], tolerance: f64) {
    assert_eq!(ours.len(), peer.len());
    let error = (norm2(&staggered::axpy(ours, -1.0, peer)) / norm2(peer)).sqrt();
    println!("{name}: relative error {error:.1e}");
    assert!(error <= tolerance, "{name}: {error:e}");
}

fn norm2(chi: &[Vector]) -> f64 {
    staggered::dot(chi, chi).re
}

/// On unit links D^2 e^{ipx} = -4 sum_mu (9/8 sin p_mu - 1/24 sin 3p_mu)^2 e^{ipx}. By hand for
/// p = (pi/3, pi/2, 0, pi/6): 4 [(9/8)^2 3/4 + (9/8 + 1/24)^2 + (9/16 - 1/24)^2] = 1487/144.
#[test]
fn free_field() {
    let u = Gauge::unit([6, 4, 2, 6]);
    let pi = std::f64::consts::PI;
    let p = [pi / 3.0, pi / 2.0, 0.0, pi / 6.0];
    let wave = |x: usize| {
        let y = coordinates(u.extents, x);
        let phase: f64 = (0..4).map(|mu| p[mu] * y[mu] as f64).sum();
        [1.0, 2.0, -3.0].map(|c| Complex64::from_polar(c, phase))
    };
    let chi: Vec<Vector> = (0..u.links.len()).map(wave).collect();
    for d in [Staggered::asqtad(&u, 1.0, ANTIPERIODIC), Staggered::hisq(&u, 0.0, ANTIPERIODIC)] {
        let mass = 0.3;
        let expected = staggered::scaled(4.0 * mass * mass + 1487.0 / 144.0, &chi);
        close_vectors("free", &d.normal(mass, &chi), &expected, 1e-14);
    }
}

#[test]
fn paths() {
    // The number of paths of each length, and the sum of the coefficients on unit links.
    for mu in 0..4 {
        let paths = Paths { lepage: 1.0, ..Paths::fat7() }.fat(mu);
        let count = |length| paths.iter().filter(|(_, path)| path.len() == length).count();
        assert_eq!([1, 3, 5, 7].map(count), [1, 6, 24 + 6, 48]);
        let sum = |paths: Paths| paths.fat(mu).iter().map(|(c, _)| c).sum::<f64>();
        for (sum, expected) in
            [(sum(Paths::fat7()), 1.0), (sum(Paths::asqtad(1.0)), 1.125), (sum(Paths::hisq(0.8)), 1.225)]
        {
            assert!((sum - expected).abs() < 1e-14, "{sum} is not {expected}");
        }
    }
    // As MILC prints them, 7 digits.
    let asqtad = Paths::asqtad(U0);
    for (ours, peer) in [
        (asqtad.naik, -5.607_564e-2),
        (asqtad.three, 8.411_346e-2),
        (asqtad.five, 2.830_030e-2),
        (asqtad.seven, 6.347_828e-3),
        (asqtad.lepage, -1.132_012e-1),
    ] {
        relative("coefficient", ours, peer, 1e-6);
    }
}

/// X_mu(x) -> g(x) X_mu(x) g(x+mu)^dag, N over three links, D chi -> g D chi. Rough links, so sums of 85 paths of
/// up to seven products; W moves by the error of V over its smallest singular value.
#[test]
fn gauge_covariance() {
    let u = Gauge::warm(EXTENTS, 0.4, 1);
    let g = gauge::random_transformation(EXTENTS, 2);
    let v = u.transformed(&g);
    let chi = staggered::random_field(EXTENTS, 3);
    let phases = [0.1, 0.2, 0.3, 1.0];
    for (name, of) in [
        (
            "asqtad",
            Box::new(|u: &Gauge| Staggered::asqtad(u, 0.8, phases)) as Box<dyn Fn(&Gauge) -> Staggered>,
        ),
        ("hisq", Box::new(|u: &Gauge| Staggered::hisq(u, -0.2, phases))),
    ] {
        let (d, moved) = (of(&u), of(&v));
        close_links(&format!("{name} fat"), &moved.fat.links, &d.fat.transformed(&g).links, 1e-12);
        let ours = moved.apply(&staggered::transformed(&chi, &g));
        close_vectors(name, &ours, &staggered::transformed(&d.apply(&chi), &g), 1e-13);
    }
}

/// <a, D b> = -<D a, b>; D takes one parity to the other; M^dag M = (2m - D)(2m + D) keeps it.
#[test]
fn antihermitian() {
    let u = Gauge::warm(EXTENTS, 0.4, 5);
    let (a, b) = (staggered::random_field(EXTENTS, 6), staggered::random_field(EXTENTS, 7));
    for phases in [ANTIPERIODIC, [0.3, 0.0, -0.2, 0.7]] {
        for d in [Staggered::asqtad(&u, 0.8, phases), Staggered::hisq(&u, 0.1, phases)] {
            let (left, right) = (staggered::dot(&a, &d.apply(&b)), staggered::dot(&d.apply(&a), &b));
            assert!((left + right).norm() < 1e-13 * left.norm(), "{left} {right}");
            for p in 0..2 {
                let even = staggered::restrict(EXTENTS, &b, p);
                assert_eq!(norm2(&staggered::restrict(EXTENTS, &d.apply(&even), p)), 0.0);
                let mass = 0.2;
                let m = staggered::axpy(&d.apply(&even), 2.0 * mass, &even);
                let m_dagger_m = staggered::axpy(&staggered::scaled(2.0 * mass, &m), -1.0, &d.apply(&m));
                close_vectors("M^dag M", &m_dagger_m, &d.normal(mass, &even), 1e-14);
                let solution = d.solve_normal(mass, &even, 1e-12);
                close_vectors("solved", &d.normal(mass, &solution), &even, 1e-11);
            }
        }
    }
}

/// V = W H with W unitary and H hermitian and positive, and no other: for HISQ's own V, and for
/// V = A diag(s) B with A, B unitary, where W = A B.
#[test]
fn unitary_factor() {
    let u = Gauge::warm(EXTENTS, 0.4, 11);
    let v = staggered::smear(&u, |mu| Paths::fat7().fat(mu));
    let w = staggered::reunitarised_fat7(&u);
    let mut farthest = 0.0_f64;
    for (v, w) in v.links.iter().flatten().zip(w.links.iter().flatten()) {
        let w_dagger = su3::adjoint(w);
        assert!(su3::norm2(&su3::sub(&su3::mul(&w_dagger, w), &su3::one())).sqrt() < 1e-14);
        let h = su3::mul(&w_dagger, v);
        assert!(su3::norm2(&su3::sub(&h, &su3::adjoint(&h))).sqrt() < 1e-14);
        // The leading minors.
        let minor = (h[0][0] * h[1][1] - h[0][1] * h[1][0]).re;
        assert!(h[0][0].re > 0.0 && minor > 0.0 && su3::det(&h).re > 0.0);
        farthest = farthest.max((su3::det(w) - 1.0).norm());
    }
    assert!(farthest > 1e-3, "U(3), not SU(3): {farthest:e}");
    let mut rng = Rng(12);
    for s in [[1.0, 1.0, 1.0], [1e-3, 0.1, 2.0], [1e-3, 1e-3, 1e3], [5e2, 7.0, 0.3]] {
        let (a, b) = (rng.su3(), su3::scale(Complex64::from_polar(1.0, 0.7), &rng.su3()));
        let diagonal: M3 =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { s[i].into() } else { su3::ZERO }));
        let w = staggered::project_u3(&su3::mul(&su3::mul(&a, &diagonal), &b));
        let error = su3::norm2(&su3::sub(&w, &su3::mul(&a, &b))).sqrt();
        // The rounding of V over its smallest singular value.
        let bound = 1e-15 * s.iter().copied().fold(0.0, f64::max) / s.iter().copied().fold(1.0, f64::min);
        println!("s {s:?}: error {error:.1e} of {bound:.1e}");
        assert!(error < 10.0 * bound, "s {s:?}: {error:e}");
    }
}
