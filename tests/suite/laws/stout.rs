//! Stout smearing: what smeared links are, how they turn under gauge transformations, and that the force through
//! them is the derivative of the action, reversible, and the same on any ranks.

use crate::devices::domain;
use crate::reference::gauge::{Gauge, random_transformation};
use crate::reference::{stout, su3};
use crate::terms::{OMELYAN, check_force_by, fields, quark, random_phi, two_flavours};
use hmc::action::{Action, Determinant, GaugeAction, Smeared};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{AlgebraField, Domain, HostLinks, MatrixField};
use hmc::hmc::{Chain, Level};
use hmc::lattice::{Boundary, volume};
use hmc::operator::{CloverForm, GaugeLoops, Stout, smeared};
use num_complex::Complex64;
use std::sync::{Arc, OnceLock};

/// Of differences: along the force a quarter.
const STEPS: [f64; 2] = [3e-3, 7.5e-4];
const IWASAKI: [f64; 3] = [1.0 + 8.0 * 0.331, -0.331, 0.0];

fn gauge(domain: &Arc<Domain>, steps: usize, rho: f64) -> Smeared {
    let inner = GaugeAction::new(domain, 5.7, IWASAKI).unwrap();
    Smeared::new(domain, Box::new(inner), steps, rho).unwrap()
}

fn two_flavour(
    domain: &Arc<Domain>,
    operator: WilsonParams,
    precision: Precision,
    residual: f64,
) -> Determinant<Wilson> {
    two_flavours(domain, quark(operator, precision), [residual.min(1e-12), residual])
}

/// Two flavours with a pseudofermion of the test's own, behind `steps` steps.
fn quarks(
    domain: &Arc<Domain>,
    schur: Schur,
    precision: Precision,
    steps: usize,
    rho: f64,
    phi: &[f64],
) -> Smeared {
    let operator = WilsonParams {
        kappa: 0.115,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.0,
        boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
        schur,
        clover: CloverForm::Linear,
    };
    let mut inner = two_flavour(domain, operator, precision, 1e-14);
    inner.set_phi(phi).unwrap();
    Smeared::new(domain, Box::new(inner), steps, rho).unwrap()
}

fn force_of(term: &mut dyn Action, links: &MatrixField) -> Vec<f64> {
    let mut force = AlgebraField::new(links.domain()).unwrap();
    term.add_force(links, &mut force).unwrap();
    force.to_host().unwrap()
}

#[test]
fn force_of_a_gauge_action() {
    for (extents, steps, rho) in
        [([4, 4, 4, 4], 1, 0.14), ([4, 4, 6, 8], 2, 0.12), ([2, 6, 4, 2], 2, 0.1), ([4, 4, 4, 4], 3, 0.1)]
    {
        let domain = domain(extents);
        let mut term = gauge(&domain, steps, rho);
        let what = format!("gauge action {extents:?} of {steps} steps, rho {rho}");
        check_force_by(&what, &Gauge::random(extents, 17), &mut term, &domain, STEPS, 5e-10);
    }
}

#[test]
fn force_of_two_flavours() {
    for (steps, rho, schur, precision) in [
        (1, 0.14, Schur::Asymmetric, Precision::Double),
        (2, 0.1, Schur::Symmetric, Precision::Double),
        (3, 0.12, Schur::Asymmetric, Precision::Single),
    ] {
        let extents = [4; 4];
        let domain = domain(extents);
        let mut term = quarks(&domain, schur, precision, steps, rho, &random_phi(extents, 23));
        let what = format!("two flavours of {steps} steps, rho {rho}, {schur:?} {precision:?}");
        check_force_by(&what, &Gauge::warm(extents, 0.8, 5), &mut term, &domain, STEPS, 1e-9);
    }
}

/// Q = 0, and Q with two eigenvalues that are equal: no small divisors.
#[test]
fn force_where_eigenvalues_of_q_meet() {
    let extents = [4; 4];
    let domain = domain(extents);
    let mut term = quarks(&domain, Schur::Asymmetric, Precision::Double, 2, 0.12, &random_phi(extents, 23));
    check_force_by("unit links", &Gauge::unit(extents), &mut term, &domain, STEPS, 1e-9);
    for scale in [1e-9, 1.0] {
        let mut rng = su3::Rng(77);
        let mut link = || {
            let angle = scale * rng.gaussian();
            let mut u = su3::zero();
            for (k, turns) in [1.0, 1.0, -2.0].into_iter().enumerate() {
                u[k][k] = Complex64::cis(turns * angle);
            }
            u
        };
        let links = (0..volume(extents)).map(|_| std::array::from_fn(|_| link())).collect();
        let what = format!("abelian links of size {scale:e}");
        check_force_by(&what, &Gauge { extents, links }, &mut term, &domain, STEPS, 1e-9);
    }
}

/// Without steps all is as without smearing.
#[test]
fn no_steps_change_nothing() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::random([4; 4], 3), &domain);
    let mut bare = GaugeAction::new(&domain, 5.7, IWASAKI).unwrap();
    let mut term = gauge(&domain, 0, 0.1);
    assert_eq!(term.name(), bare.name());
    assert_eq!(term.value(&links).unwrap().value(), bare.value(&links).unwrap().value());
    assert_eq!(force_of(&mut term, &links), force_of(&mut bare, &links));
}

/// Links on random and on smooth fields: the reference's; in SU(3); of greater plaquette.
#[test]
fn links_are_those_of_the_paper() {
    let extents = [4, 6, 2, 8];
    let domain = domain(extents);
    for (name, links) in [("random", Gauge::random(extents, 1)), ("warm", Gauge::warm(extents, 0.4, 2))] {
        let thin = fields(&links, &domain);
        let before = GaugeLoops::traces(&thin).unwrap().plaquette();
        for (steps, rho) in [(1, 0.1), (2, 0.1), (3, 0.1), (3, 0.14)] {
            let mut found = smeared(&thin, steps, rho).unwrap();
            let mut levels = Stout::new(&domain, steps, rho).unwrap();
            assert_eq!(levels.smear(&thin).unwrap().distance(&found).unwrap(), 0.0, "both ways to smear");
            let expected = fields(&stout::smeared(&links, steps, rho), &domain);
            let (distance, moved) = (found.distance(&expected).unwrap(), found.distance(&thin).unwrap());
            let unitarity = found.unitarity(false).unwrap();
            let plaquette = GaugeLoops::traces(&found).unwrap().plaquette();
            println!(
                "{name}, {steps} steps of rho {rho}: moved {moved:.2}, {distance:.1e} from the reference, \
                 {unitarity:.1e} from SU(3), plaquette {before:.6} to {plaquette:.6}"
            );
            assert!(moved > 0.1);
            // Some ten roundings of 1e-16 an element and step.
            assert!(distance < 1e-14 && unitarity < 1e-14, "{distance:e} {unitarity:e}");
            assert!(plaquette > before + 0.1, "{before} {plaquette}");
        }
    }
}

#[test]
fn links_and_force_are_covariant() {
    let extents = [4, 6, 4, 8];
    let domain = domain(extents);
    let (links, g) = (Gauge::warm(extents, 0.6, 31), random_transformation(extents, 32));
    let (thin, turned) = (fields(&links, &domain), fields(&links.transformed(&g), &domain));
    for steps in 1..=3 {
        let smooth = Gauge::from_host(&smeared(&thin, steps, 0.12).unwrap().to_host().unwrap());
        let expected = fields(&smooth.transformed(&g), &domain);
        let distance = smeared(&turned, steps, 0.12).unwrap().distance(&expected).unwrap();
        let mut term = gauge(&domain, steps, 0.12);
        let (before, after) = (force_of(&mut term, &thin), force_of(&mut term, &turned));
        let (mut worst, mut size) = (0.0_f64, 0.0_f64);
        for (n, (before, after)) in before.chunks_exact(8).zip(after.chunks_exact(8)).enumerate() {
            let (f, g) = (su3::from_components(before.try_into().unwrap()), &g[n / 4]);
            let expected = su3::components(&su3::mul(&su3::mul(g, &f), &su3::adjoint(g)));
            for (expected, found) in expected.iter().zip(after) {
                worst = worst.max((expected - found).abs());
                size = size.max(found.abs());
            }
        }
        println!("{steps} steps: links to {distance:.1e}, forces to {worst:.1e} of {size:.1e}");
        assert!(distance < 1e-14, "{steps} steps: {distance:e}");
        assert!(worst < 1e-13 * size, "{steps} steps: {worst:e} of {size:e}");
    }
}

/// Two flavours on links of two steps outside, the gauge action inside.
fn chain(links: &HostLinks, steps: u32, tau: f64, residual: f64) -> Chain {
    let domain = domain([4; 4]);
    let operator = WilsonParams {
        kappa: 0.125,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.0,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Asymmetric,
        clover: CloverForm::Linear,
    };
    let inner = two_flavour(&domain, operator, Precision::Double, residual);
    let light: Box<dyn Action> = Box::new(Smeared::new(&domain, Box::new(inner), 2, 0.12).unwrap());
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0]).unwrap());
    let levels = [Level { scheme: OMELYAN, steps }, Level { scheme: OMELYAN, steps: 2 }];
    let field = MatrixField::from_host(&domain, links).unwrap();
    Chain::new(field, &levels, vec![vec![light], vec![gauge]], tau, 2024).unwrap()
}

/// A configuration of the ensemble.
fn thermalised() -> &'static HostLinks {
    static LINKS: OnceLock<HostLinks> = OnceLock::new();
    LINKS.get_or_init(|| {
        let mut chain = chain(&Gauge::warm([4; 4], 0.3, 1).to_host(), 8, 1.0, 1e-9);
        let accepted =
            (0..12).filter(|&n| chain.trajectory(n, n < 4).unwrap().accepted).collect::<Vec<_>>().len();
        assert!(accepted >= 9, "{accepted} of 12 accepted");
        chain.links.unitarity(true).unwrap();
        chain.links.to_host().unwrap()
    })
}

/// Rounding of 1e-16 in 10^2 moves, amplified by less than 10^3.
#[test]
fn trajectories_are_reversible() {
    let mut chain = chain(thermalised(), 8, 1.0, 1e-13);
    let report = chain.reversibility(7).unwrap();
    println!("{report:?}");
    assert!(report.distance < 1e-12 && report.delta_h != 0.0, "{report:?}");
}

#[test]
fn the_hamiltonian_is_kept_to_second_order() {
    let mean = |steps| {
        let mut chain = chain(thermalised(), steps, 0.5, 1e-14);
        let mut sum = 0.0;
        for number in 100..104 {
            sum += chain.trajectory(number, true).unwrap().delta_h.abs();
            chain.links.set_host(thermalised()).unwrap();
        }
        sum / 4.0
    };
    let (coarse, fine) = (mean(6), mean(12));
    let order = (coarse / fine).log2();
    println!("|dH| {coarse:.3e} with 6 steps, {fine:.3e} with 12: order {order:.3}");
    assert!(fine > 1e-9 && coarse < 0.5, "{coarse:e} {fine:e}");
    assert!((order - 2.0).abs() < 0.1, "order {order}");
}
