//! Gauge covariance, gamma_5-hermiticity, and the free field.
//!
//! U_mu(x) -> g(x) U_mu(x) g(x+mu)^dag, psi(x) -> g(x) psi(x), F_mu(x) -> g(x) F_mu(x) g(x)^dag. Products with g round
//! by 1e-16 each.

use crate::compare::relative;
use crate::devices::domain;
use crate::reference::gauge::{Gauge, random_transformation};
use crate::reference::su3::{self, I, M3};
use crate::reference::wilson as plain;
use crate::reference::wilson::{distance, reals, spinors};
use crate::terms::{quark, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams, WilsonQuark};
use hmc::field::{AlgebraField, Dagger, Domain, EVEN, MatrixField, ODD, Spinor};
use hmc::lattice::{Boundary, Extents, coordinates, volume};
use hmc::measure::{FlowKernel, Source, flow, pion, polyakov};
use hmc::operator::{CloverForm, CloverTerm, GaugeLoops, Operator, WilsonLinks};
use hmc::quark::QuarkParams;
use num_complex::Complex64;
use std::f64::consts::PI;
use std::sync::Arc;

const EXTENTS: Extents = [4, 6, 4, 8];

/// Links, the same transformed, and g.
struct Pair {
    domain: Arc<Domain>,
    links: MatrixField,
    transformed: MatrixField,
    g: Vec<M3>,
}

fn pair() -> Pair {
    let (links, g, domain) =
        (Gauge::warm(EXTENTS, 0.6, 31), random_transformation(EXTENTS, 32), domain(EXTENTS));
    let field = |links: &Gauge| MatrixField::from_host(&domain, &links.to_host()).unwrap();
    let (links, transformed) = (field(&links), field(&links.transformed(&g)));
    assert!(links.distance(&transformed).unwrap() > 1.0, "a transformation that does something");
    Pair { domain, links, transformed, g }
}

fn upload(domain: &Arc<Domain>, field: &[plain::Spinor], parity: usize) -> Spinor {
    let mut x = Spinor::new(domain, Precision::Double).unwrap();
    x.read_host(parity, &reals(field)).unwrap();
    x
}

/// The field on the sites of `parity`, zero elsewhere.
fn download(x: &Spinor, parity: usize) -> Vec<plain::Spinor> {
    let mut reals = vec![0.0; 24 * volume(EXTENTS)];
    x.write_host(parity, &mut reals).unwrap();
    spinors(&reals)
}

fn params(c_sw: f64, schur: Schur) -> WilsonParams {
    WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases([0.2, 0.0, 0.5, 1.0]),
        schur,
    }
}

/// All four: with and without the clover term, both Schur complements.
fn all_params() -> [WilsonParams; 4] {
    [
        params(0.0, Schur::Asymmetric),
        params(0.0, Schur::Symmetric),
        params(1.2, Schur::Asymmetric),
        params(1.2, Schur::Symmetric),
    ]
}

fn wilson(links: &MatrixField, params: WilsonParams) -> (Wilson, Option<CloverTerm>) {
    let domain = links.domain();
    let mut clover = Wilson::clover_term(domain, &params).unwrap();
    if let Some(clover) = &mut clover {
        clover.update(links).unwrap();
    }
    let mut operator = Wilson::new(domain, Precision::Double, 18, params).unwrap();
    operator.update(links, clover.as_ref()).unwrap();
    // The operator points into the clover term.
    (operator, clover)
}

#[test]
fn loops_actions_and_flow_are_invariant() {
    let p = pair();
    let (a, b) = (GaugeLoops::traces(&p.links).unwrap(), GaugeLoops::traces(&p.transformed).unwrap());
    relative("plaquette in space", b.plaquette_space, a.plaquette_space, 1e-13);
    relative("plaquette in time", b.plaquette_time, a.plaquette_time, 1e-13);
    relative("rectangle", b.rectangle, a.rectangle, 1e-13);
    let (a, b) = (polyakov(&p.links).unwrap(), polyakov(&p.transformed).unwrap());
    assert!((a - b).norm() < 1e-14 && a.norm() > 1e-4, "Polyakov loops {a} and {b}");
    for coefficients in [[1.0, 0.0, 0.0], [1.0 + 8.0 * 0.331, -0.331, 0.0], [1.0, -0.07, -0.02]] {
        let mut action = GaugeAction::new(&p.domain, 5.7, coefficients).unwrap();
        let mut value = |links: &MatrixField| action.value(links).unwrap().value();
        relative(&format!("action {coefficients:?}"), value(&p.transformed), value(&p.links), 1e-13);
    }
    for kernel in [FlowKernel::Wilson, FlowKernel::Symanzik, FlowKernel::Zeuthen] {
        let run = |links: &MatrixField| flow(links, kernel, 0.05, 0.2, 1, &|| false).unwrap();
        let (a, b) = (run(&p.links), run(&p.transformed));
        assert_eq!((a.len(), b.len()), (5, 5));
        for (a, b) in a.iter().zip(&b) {
            relative(&format!("{kernel:?} t {} E_plaq", a.t), b.e_plaquette, a.e_plaquette, 1e-12);
            relative(&format!("{kernel:?} t {} E_clover", a.t), b.e_clover, a.e_clover, 1e-12);
            assert!((a.q - b.q).abs() < 1e-12 && a.q != 0.0, "Q {} and {}", a.q, b.q);
        }
    }
}

/// Force components of links transformed, and those of the transformed links' force.
fn forces_agree(what: &str, p: &Pair, force: impl Fn(&MatrixField) -> Vec<f64>) {
    let (a, b) = (force(&p.links), force(&p.transformed));
    let (mut worst, mut size) = (0.0_f64, 0.0_f64);
    for (n, (a, b)) in a.chunks_exact(8).zip(b.chunks_exact(8)).enumerate() {
        let f = su3::from_components(a.try_into().unwrap());
        let g = &p.g[n / 4];
        let turned = su3::components(&su3::mul(&su3::mul(g, &f), &su3::adjoint(g)));
        for (turned, b) in turned.iter().zip(b) {
            worst = worst.max((turned - b).abs());
            size = size.max(b.abs());
        }
    }
    println!("force of {what}: worst {worst:.1e} of {size:.1e}");
    assert!(worst < 1e-12 * size, "force of {what}: {worst:e} of {size:e}");
}

#[test]
fn forces_are_covariant() {
    let p = pair();
    forces_agree("plaquettes, rectangles, parallelograms", &p, |links| {
        let mut action = GaugeAction::new(&p.domain, 5.7, [1.0, -0.07, -0.02]).unwrap();
        let mut force = AlgebraField::new(&p.domain).unwrap();
        action.add_force(links, &mut force).unwrap();
        force.to_host().unwrap()
    });
}

#[test]
fn two_flavours_are_invariant() {
    let p = pair();
    let phi = plain::random_field(EXTENTS, 41);
    let phi_transformed = plain::transformed(&phi, &p.g);
    for operator in all_params() {
        let mut term = two_flavours(&p.domain, quark(operator, Precision::Double), [1e-14; 2]);
        term.set_phi(&reals(&phi)).unwrap();
        let before = term.value(&p.links).unwrap().value();
        let unturned = term.value(&p.transformed).unwrap().value();
        term.set_phi(&reals(&phi_transformed)).unwrap();
        let after = term.value(&p.transformed).unwrap().value();
        let what = format!("S of c_sw {} {:?}", operator.c_sw, operator.schur);
        relative(&what, after, before, 1e-12);
        assert!((unturned - before).abs() > 1e-6 * before.abs(), "{what} depends on phi");
        let phi = &phi;
        let term = std::cell::RefCell::new(term);
        forces_agree(&what, &p, |links| {
            let turned = std::ptr::eq(links, &raw const p.transformed);
            let mut term = term.borrow_mut();
            term.set_phi(&reals(if turned { &phi_transformed } else { phi })).unwrap();
            let mut force = AlgebraField::new(&p.domain).unwrap();
            term.add_force(links, &mut force).unwrap();
            force.to_host().unwrap()
        });
    }
}

#[test]
fn correlators_are_invariant() {
    let p = pair();
    let of = |links: &MatrixField| {
        let mut quark =
            WilsonQuark::new(links, &QuarkParams::in_double(params(1.2, Schur::Symmetric), 1000), 1e-13)
                .unwrap();
        pion(&mut quark, Source::Point([1, 2, 3, 0])).unwrap()
    };
    let (a, b) = (of(&p.links), of(&p.transformed));
    assert_eq!((a.len(), b.len()), (EXTENTS[3], EXTENTS[3]));
    // Residuals of 1e-13 against C(t) that falls by 10^3.
    for (t, (a, b)) in a.iter().zip(&b).enumerate() {
        relative(&format!("C({t})"), *b, *a, 1e-9);
    }
}

#[test]
fn operators_are_covariant() {
    let p = pair();
    let psi = plain::random_field(EXTENTS, 51);
    let (x, turned) = (upload(&p.domain, &psi, ODD), upload(&p.domain, &plain::transformed(&psi, &p.g), ODD));
    let mut y = Spinor::new(&p.domain, Precision::Double).unwrap();
    for params in all_params() {
        let (mut before, _clover) = wilson(&p.links, params);
        let (mut after, _clover_after) = wilson(&p.transformed, params);
        for dagger in [false, true] {
            before.apply(&mut y, &x, dagger.into()).unwrap();
            let expected = plain::transformed(&download(&y, ODD), &p.g);
            after.apply(&mut y, &turned, dagger.into()).unwrap();
            let error = distance(&download(&y, ODD), &expected);
            assert!(error < 1e-14, "{params:?} dagger {dagger}: {error:e}");
            after.apply(&mut y, &x, dagger.into()).unwrap();
            assert!(distance(&download(&y, ODD), &expected) > 0.1, "the transformation does something");
        }
    }
}

/// (chi, M psi) = (M^dag chi, psi); and M^dag = g5 M g5 of the full and of the asymmetric operator.
#[test]
fn operators_are_gamma5_hermitian() {
    let p = pair();
    let (psi, chi) = (plain::random_field(EXTENTS, 61), plain::random_field(EXTENTS, 62));
    let (x, z) = (upload(&p.domain, &psi, ODD), upload(&p.domain, &chi, ODD));
    let turned = upload(&p.domain, &plain::gamma5_field(&psi), ODD);
    let spinor = || Spinor::new(&p.domain, Precision::Double).unwrap();
    let (mut y, mut w) = (spinor(), spinor());
    for params in all_params() {
        let (mut operator, _clover) = wilson(&p.links, params);
        operator.apply(&mut y, &x, Dagger::No).unwrap();
        operator.apply(&mut w, &z, Dagger::Yes).unwrap();
        let (left, right) = (z.dot(&y).unwrap(), w.dot(&x).unwrap());
        let size = (z.norm2().unwrap().value() * y.norm2().unwrap().value()).sqrt();
        assert!((left - right).norm() < 1e-14 * size, "{params:?}: {left} and {right}");
        assert!(left.norm() > 1e-6 * size);
        if params.schur == Schur::Asymmetric || params.c_sw == 0.0 {
            operator.apply(&mut y, &turned, Dagger::No).unwrap();
            operator.apply(&mut w, &x, Dagger::Yes).unwrap();
            let error = distance(&download(&w, ODD), &plain::gamma5_field(&download(&y, ODD)));
            assert!(error < 1e-14, "{params:?}: {error:e}");
        }
    }
    // The hopping term itself, on both parities.
    let mut hop =
        WilsonLinks::new(&p.domain, Precision::Double, 18, 1, params(0.0, Schur::Asymmetric).boundary)
            .unwrap();
    hop.update(&p.links).unwrap();
    for parity in [EVEN, ODD] {
        let x = upload(&p.domain, &psi, 1 - parity);
        let turned = upload(&p.domain, &plain::gamma5_field(&psi), 1 - parity);
        hop.hop(&mut w, &x, parity, Dagger::Yes).unwrap();
        hop.hop(&mut y, &turned, parity, Dagger::No).unwrap();
        let error = distance(&download(&w, parity), &plain::gamma5_field(&download(&y, parity)));
        assert!(error < 1e-14, "D to parity {parity}: {error:e}");
    }
}

/// On unit links and psi = e^{ipx} u, p = pi (2 n + theta) / L:
/// `D psi = 2 sum_mu (cos p_mu - i g_mu sin p_mu) psi`, and Mhat is A - D D / (4 A), or that divided by A.
#[test]
fn free_field() {
    let domain = domain(EXTENTS);
    let links = MatrixField::from_host(&domain, &Gauge::unit(EXTENTS).to_host()).unwrap();
    let boundary = params(0.0, Schur::Asymmetric).boundary;
    let mut hop = WilsonLinks::new(&domain, Precision::Double, 18, 1, boundary).unwrap();
    hop.update(&links).unwrap();
    let mut y = Spinor::new(&domain, Precision::Double).unwrap();
    let u = plain::random_field([1; 4], 71)[0];
    for n in [[0, 0, 0, 0], [1, 0, 0, 0], [0, 2, 1, 0], [3, 5, 2, 7], [1, 1, 1, 1]] {
        let p: [f64; 4] = std::array::from_fn(|mu| {
            PI * (2.0 * f64::from(n[mu]) + boundary.theta()[mu]) / EXTENTS[mu] as f64
        });
        let wave = |u: &plain::Spinor| -> Vec<plain::Spinor> {
            let at = |x: usize| {
                let angle: f64 = coordinates(EXTENTS, x).iter().zip(p).map(|(&x, p)| x as f64 * p).sum();
                u.map(|c| c.map(|z| z * Complex64::cis(angle)))
            };
            (0..volume(EXTENTS)).map(at).collect()
        };
        let hopped = |u: &plain::Spinor| -> plain::Spinor {
            let mut sum = [[su3::ZERO; 3]; 4];
            for (mu, p) in p.iter().enumerate() {
                let turned = plain::spin_mul(&plain::gamma(mu), u);
                for s in 0..4 {
                    for c in 0..3 {
                        sum[s][c] += 2.0 * (p.cos() * u[s][c] - I * p.sin() * turned[s][c]);
                    }
                }
            }
            sum
        };
        let (psi, once, twice) = (wave(&u), wave(&hopped(&u)), wave(&hopped(&hopped(&u))));
        for parity in [EVEN, ODD] {
            hop.hop(&mut y, &upload(&domain, &psi, 1 - parity), parity, Dagger::No).unwrap();
            let error = distance(&download(&y, parity), &plain::restrict(EXTENTS, &once, parity));
            assert!(error < 1e-14, "D at n = {n:?}: {error:e}");
        }
        for params in all_params() {
            let a = params.diagonal();
            let mut expected = plain::axpy(&psi, -0.25 / (a * a), &twice);
            if params.schur == Schur::Asymmetric {
                expected = plain::axpy(&expected, a - 1.0, &expected);
            }
            let (mut operator, _clover) = wilson(&links, params);
            operator.apply(&mut y, &upload(&domain, &psi, ODD), Dagger::No).unwrap();
            let error = distance(&download(&y, ODD), &plain::restrict(EXTENTS, &expected, ODD));
            assert!(error < 1e-14, "{params:?} at n = {n:?}: {error:e}");
        }
    }
}
