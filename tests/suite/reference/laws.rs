//! Laws of the reference for gauge fields and Wilson quarks. A tolerance is relative unless it says absolute.
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]
#![allow(clippy::excessive_precision, clippy::needless_range_loop, reason = "digits as printed by the peers")]

use crate::compare::{close, relative};
use crate::reference::flow;
use crate::reference::gauge::{self, Gauge, GaugeAction};
use crate::reference::su3::{self, I, ONE};
use crate::reference::wilson::{self, Dirac, Parameters};

#[test]
fn gammas_and_rotation() {
    // openQCD: g_mu = ((0, e_mu), (e_mu^dag, 0)), e_t = -1, e_k = -i s_k; S g S^dag is ours, exactly.
    let zero = su3::ZERO;
    let e = [
        [[zero, -I], [-I, zero]],
        [[zero, -ONE], [ONE, zero]],
        [[-I, zero], [zero, I]],
        [[-ONE, zero], [zero, -ONE]],
    ];
    let s = wilson::from_openqcd();
    let s_dag: wilson::M4 = std::array::from_fn(|i| std::array::from_fn(|j| s[j][i].conj()));
    for mu in 0..4 {
        let mut peer = [[zero; 4]; 4];
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            peer[a][2 + b] = e[mu][a][b];
            peer[2 + a][b] = e[mu][b][a].conj();
        }
        assert_eq!(wilson::mul4(&wilson::mul4(&s, &peer), &s_dag), wilson::gamma(mu), "mu = {mu}");
    }
    let diagonal = wilson::gamma5();
    for (i, expected) in [ONE, ONE, -ONE, -ONE].into_iter().enumerate() {
        assert_eq!(diagonal[i][i], expected);
    }
}

#[test]
fn su3_algebra() {
    let t = su3::generators();
    for a in 0..8 {
        for b in 0..8 {
            let expected = if a == b { 0.5 } else { 0.0 };
            assert!((su3::trace(&su3::mul(&t[a], &t[b])) - expected).norm() < 1e-15);
        }
    }
    let u = su3::exp_i(&su3::Rng(5).algebra());
    assert!(su3::norm2(&su3::sub(&su3::mul(&u, &su3::adjoint(&u)), &su3::one())).sqrt() < 1e-14);
    assert!((su3::det(&u) - 1.0).norm() < 1e-14);
}

#[test]
fn force_is_the_derivative_and_observables_are_invariant() {
    let u = Gauge::random([2, 4, 4, 6], 1);
    let action = GaugeAction { beta: 1.3, plaquette: 1.0, rectangle: -0.3, parallelogram: 0.2 };
    let p = gauge::random_momenta(u.extents, 2);
    let numeric = gauge::derivative(&u, &p, 1e-3, |u| action.value(u));
    // Truncation eps^4 |S^(5)|/30 and rounding 1e-16 S sqrt(terms)/eps, both near 1e-9.
    close("dS", gauge::inner(&p, &action.force(&u)), numeric, 1e-9, 100.0);
    let g = gauge::random_transformation(u.extents, 3);
    let v = u.transformed(&g);
    relative("S", action.value(&v), action.value(&u), 1e-13);
    close("Q", flow::topological_charge(&v), flow::topological_charge(&u), 1e-12, 1.0);
    close("|polyakov|", (v.polyakov() - u.polyakov()).norm(), 0.0, 1e-14, 1.0);
    assert_eq!(Gauge::from_host(&u.to_host()).links, u.links);
    let d = Dirac::new(&u, Parameters { mass: 0.1, c_sw: 1.2, phases: [0.1, 0.2, 0.3, 1.0] });
    let d_transformed = Dirac::new(&v, d.parameters);
    let psi = wilson::random_field(u.extents, 4);
    let covariant = wilson::transformed(&d.apply(&psi), &g);
    let error = wilson::axpy(&d_transformed.apply(&wilson::transformed(&psi, &g)), -1.0, &covariant);
    assert!(wilson::dot(&error, &error).norm() < 1e-26 * wilson::dot(&psi, &psi).norm());
    let chi = wilson::random_field(u.extents, 5);
    let (left, right) = (wilson::dot(&chi, &d.apply(&psi)), wilson::dot(&d.apply_dagger(&chi), &psi));
    assert!((left - right).norm() < 1e-12 * left.norm());
}

/// M psi = 0 on the sites of parity q gives (M psi)_p = Mhat psi_p; the adjoints are adjoints.
#[test]
fn schur_forms() {
    let u = Gauge::warm([4, 2, 4, 2], 0.3, 7);
    let d = Dirac::new(&u, Parameters { mass: 0.2, c_sw: 1.5, phases: [0.0, 0.0, 0.0, 1.0] });
    for p in 0..2 {
        let psi = wilson::restrict(u.extents, &wilson::random_field(u.extents, 8), p);
        let full = wilson::axpy(&psi, -1.0, &d.diagonal_inverse(&d.hop(&psi)));
        let image = d.apply(&full);
        let asymmetric = d.schur_asymmetric(&psi);
        let symmetric = d.diagonal(&d.schur_symmetric(&psi));
        for other in [&asymmetric, &symmetric] {
            let error = wilson::axpy(&image, -1.0, other);
            assert!(wilson::dot(&error, &error).re < 1e-26 * wilson::dot(&image, &image).re);
        }
        let chi = wilson::restrict(u.extents, &wilson::random_field(u.extents, 9), p);
        for (a, b) in [
            (wilson::dot(&chi, &asymmetric), wilson::dot(&d.schur_asymmetric_dagger(&chi), &psi)),
            (wilson::dot(&chi, &d.schur_symmetric(&psi)), wilson::dot(&d.schur_symmetric_dagger(&chi), &psi)),
        ] {
            assert!((a - b).norm() < 1e-12 * a.norm());
        }
    }
}
