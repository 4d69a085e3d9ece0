//! Every kernel against the plain reference, on every lane count of this machine.

use crate::compare::{assert_same_bits, relative};
use crate::devices::domains;
use crate::reference;
use crate::reference::gauge::{self, Gauge};
use crate::reference::wilson::{self as plain, Dirac, Parameters, distance, reals, spinors};
use crate::terms::{quark, two_flavours};
use hmc::action::{Action, GaugeAction, Smeared};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams, WilsonQuark};
use hmc::field::{AlgebraField, Dagger, EVEN, MatrixField, ODD, Spinor};
use hmc::lattice::{Boundary, Extents};
use hmc::measure::{FlowKernel, Source, flow, pion, polyakov};
use hmc::operator::{CloverForm, GaugeLoops, Operator, smeared};
use hmc::quark::QuarkParams;
use num_complex::Complex64;

const EXTENTS: Extents = [4, 8, 4, 8];

#[test]
fn gauge_observables_and_forces() {
    let links = Gauge::random(EXTENTS, 11);
    for domain in domains(EXTENTS) {
        let lanes = domain.lanes().count();
        let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
        assert_eq!(field.to_host().unwrap(), links.to_host(), "lanes {lanes}: host round trip");
        let traces = GaugeLoops::traces(&field).unwrap();
        relative("plaquette", traces.plaquette(), links.plaquette(), 1e-13);
        relative("plaquette with t", traces.plaquette_time, links.plaquette_time(), 1e-13);
        relative("rectangle", traces.rectangle, links.rectangle(), 1e-12);
        let loop_ = polyakov(&field).unwrap();
        assert!(
            (loop_ - links.polyakov()).norm() < 1e-14,
            "Polyakov loop {loop_} against {}",
            links.polyakov()
        );
        for coefficients in [[1.0, 0.0, 0.0], [1.0 + 8.0 * 0.331, -0.331, 0.0], [1.0, -0.07, -0.02]] {
            let [plaquette, rectangle, parallelogram] = coefficients;
            let action = gauge::GaugeAction { beta: 5.7, plaquette, rectangle, parallelogram };
            let mut own = GaugeAction::new(&domain, 5.7, coefficients).unwrap();
            relative("gauge action", own.value(&field).unwrap().value(), action.value(&links), 1e-13);
            let mut force = AlgebraField::new(&domain).unwrap();
            own.add_force(&field, &mut force).unwrap();
            // Kicked from zero, the momenta are the force; their kinetic term is its norm.
            let expected = action.force(&links);
            let mut momenta = AlgebraField::new(&domain).unwrap();
            let (norm2, _) = momenta.combine(0.0, 1.0, &force).unwrap();
            relative("norm of the gauge force", norm2, gauge::inner(&expected, &expected), 1e-12);
            // And the links drift along it as they should.
            let mut moved = MatrixField::from_host(&domain, &links.to_host()).unwrap();
            force.drift(&mut moved, 0.01).unwrap();
            let expected =
                MatrixField::from_host(&domain, &gauge::shifted(&links, 0.01, &expected).to_host()).unwrap();
            let distance = moved.distance(&expected).unwrap();
            assert!(distance < 1e-13, "lanes {lanes}: drift along the force: {distance:.1e}");
        }
    }
}

#[test]
fn gradient_flow() {
    let links = Gauge::warm(EXTENTS, 0.6, 5);
    for domain in domains(EXTENTS) {
        let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
        for (kernel, action, step) in [
            (FlowKernel::Wilson, reference::flow::wilson_kernel(), 0.05),
            (FlowKernel::Symanzik, reference::flow::symanzik_kernel(), 0.05),
            (FlowKernel::Iwasaki, gauge::GaugeAction::rectangle(1.0, -0.331), 0.03),
            (FlowKernel::Dbw2, gauge::GaugeAction::rectangle(1.0, -1.4088), 0.01),
        ] {
            let points = flow(&field, kernel, step, 2.0 * step, 2, &|| false).unwrap();
            let end = reference::flow::flow(&links, &action, step, 2);
            relative(
                "E of plaquettes at t = 0",
                points[0].e_plaquette,
                reference::flow::energy_plaquette(&links),
                1e-12,
            );
            relative(
                "E of plaquettes",
                points[1].e_plaquette,
                reference::flow::energy_plaquette(&end),
                1e-12,
            );
            let (time, space) = reference::flow::energy_clover(&end);
            relative("E of the clover", points[1].e_clover, time + space, 1e-12);
            let charge = reference::flow::topological_charge(&end);
            // The reference has openQCD's sign, the program MILC's.
            assert!((points[1].q + charge).abs() < 1e-13, "Q {} against {}", points[1].q, -charge);
        }
    }
}

/// The force is compared with differences of the reference's own action of its own smeared links.
#[test]
fn stout_smearing() {
    let extents = [4, 4, 4, 8];
    let links = Gauge::random(extents, 13);
    let direction = gauge::random_momenta(extents, 22);
    let action = gauge::GaugeAction::rectangle(5.7, -0.331);
    for (steps, rho) in [(1, 0.14), (2, 0.1)] {
        let expected = reference::stout::smeared(&links, steps, rho);
        let derivative = gauge::derivative(&links, &direction, 1e-3, |links| {
            action.value(&reference::stout::smeared(links, steps, rho))
        });
        for domain in domains(extents) {
            let lanes = domain.lanes().count();
            let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
            let found = smeared(&field, steps, rho).unwrap();
            let expected = MatrixField::from_host(&domain, &expected.to_host()).unwrap();
            let distance = found.distance(&expected).unwrap();
            assert!(distance < 1e-14, "lanes {lanes}, {steps} steps: {distance:.1e}");
            let inner = GaugeAction::new(&domain, 5.7, [1.0 + 8.0 * 0.331, -0.331, 0.0]).unwrap();
            let mut term = Smeared::new(&domain, Box::new(inner), steps, rho).unwrap();
            let mut force = AlgebraField::new(&domain).unwrap();
            term.add_force(&field, &mut force).unwrap();
            let force = force.to_host().unwrap();
            let links = direction.iter().flatten().zip(force.chunks_exact(8));
            let found: f64 = links
                .map(|(p, f)| reference::su3::components(p).iter().zip(f).map(|(a, b)| a * b).sum::<f64>())
                .sum();
            relative(&format!("force through {steps} steps, lanes {lanes}"), found, derivative, 1e-8);
        }
    }
}

fn params(c_sw: f64, schur: Schur) -> WilsonParams {
    WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases([0.0, 0.5, 0.0, 1.0]),
        schur,
    }
}

#[test]
fn preconditioned_operators() {
    let links = Gauge::warm(EXTENTS, 0.5, 3);
    let psi = plain::random_field(EXTENTS, 7);
    for c_sw in [0.0, 1.3] {
        let p = params(c_sw, Schur::Asymmetric);
        let dirac =
            Dirac::new(&links, Parameters { mass: 0.5 / p.kappa - 4.0, c_sw, phases: p.boundary.theta() });
        let odd = plain::restrict(EXTENTS, &psi, ODD);
        for schur in [Schur::Asymmetric, Schur::Symmetric] {
            let expected = match schur {
                Schur::Asymmetric => [dirac.schur_asymmetric(&odd), dirac.schur_asymmetric_dagger(&odd)],
                Schur::Symmetric => [dirac.schur_symmetric(&odd), dirac.schur_symmetric_dagger(&odd)],
            };
            for domain in domains(EXTENTS) {
                let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
                let p = params(c_sw, schur);
                let mut clover = Wilson::clover_term(&domain, &p).unwrap();
                if let Some(clover) = &mut clover {
                    clover.update(&field).unwrap();
                    let expected = dirac.log_det(EVEN)
                        + if schur == Schur::Symmetric { dirac.log_det(ODD) } else { 0.0 };
                    relative("log det", clover.log_det().value(), expected, 1e-13);
                }
                for (precision, tolerance) in [(Precision::Double, 1e-14), (Precision::Single, 1e-6)] {
                    for reals_kept in [18, 12] {
                        let mut operator = Wilson::new(&domain, precision, reals_kept, p).unwrap();
                        operator.update(&field, clover.as_ref()).unwrap();
                        let mut x = Spinor::new(&domain, precision).unwrap();
                        let mut y = Spinor::new(&domain, precision).unwrap();
                        x.read_host(ODD, &reals(&psi)).unwrap();
                        for (dagger, expected) in [false, true].into_iter().zip(&expected) {
                            operator.apply(&mut y, &x, dagger.into()).unwrap();
                            let mut out = vec![0.0; 24 * psi.len()];
                            y.write_host(ODD, &mut out).unwrap();
                            let error = distance(&spinors(&out), expected);
                            let lanes = domain.lanes().count();
                            assert!(
                                error < tolerance,
                                "{schur:?} c_sw {c_sw} dagger {dagger} {precision:?} {reals_kept} lanes {lanes}: {error:.1e}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn linear_algebra() {
    let (a, b) = (plain::random_field(EXTENTS, 1), plain::random_field(EXTENTS, 2));
    let (odd_a, odd_b) = (plain::restrict(EXTENTS, &a, ODD), plain::restrict(EXTENTS, &b, ODD));
    let expected = plain::dot(&odd_a, &odd_b);
    for domain in domains(EXTENTS) {
        for (precision, tolerance) in [(Precision::Double, 1e-13), (Precision::Single, 1e-5)] {
            let make = |field: &[plain::Spinor]| {
                let mut x = Spinor::new(&domain, precision).unwrap();
                x.read_host(ODD, &reals(field)).unwrap();
                x
            };
            let (x, mut y) = (make(&a), make(&b));
            let found = x.dot(&y).unwrap();
            assert!((found - expected).norm() < tolerance * expected.norm(), "{found} against {expected}");
            relative("norm", x.norm2().unwrap().value(), plain::dot(&odd_a, &odd_a).re, tolerance);
            y.caxpy(Complex64::new(0.3, -0.7), &x).unwrap();
            y.caxpy(Complex64::new(0.0, 0.7), &x).unwrap();
            y.axpy(0.25, &x).unwrap();
            let mut out = vec![0.0; 24 * a.len()];
            y.write_host(ODD, &mut out).unwrap();
            let z = plain::axpy(&odd_b, 0.55, &odd_a);
            let error = distance(&spinors(&out), &z);
            assert!(error < tolerance, "axpy in {precision:?}: {error:.1e}");
        }
    }
}

#[test]
fn two_flavour_forces() {
    let extents = [4, 4, 4, 4];
    let links = Gauge::warm(extents, 0.5, 3);
    let phi = plain::random_field(extents, 9);
    let direction = gauge::random_momenta(extents, 21);
    for (c_sw, schur) in
        [(0.0, Schur::Asymmetric), (0.0, Schur::Symmetric), (1.3, Schur::Asymmetric), (1.3, Schur::Symmetric)]
    {
        let operator = params(c_sw, schur);
        for domain in domains(extents) {
            let mut term = two_flavours(&domain, quark(operator, Precision::Double), [1e-14; 2]);
            term.set_phi(&reals(&phi)).unwrap();
            let mut value = |links: &Gauge| {
                let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
                term.value(&field).unwrap().value()
            };
            let value = std::cell::RefCell::new(&mut value);
            let expected = gauge::derivative(&links, &direction, 1e-3, |at| value.borrow_mut()(at));
            let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
            let mut force = AlgebraField::new(&domain).unwrap();
            term.add_force(&field, &mut force).unwrap();
            let host = force.to_host().unwrap();
            let found: f64 = direction
                .iter()
                .flatten()
                .zip(host.chunks_exact(8))
                .map(|(p, f)| reference::su3::components(p).iter().zip(f).map(|(a, b)| a * b).sum::<f64>())
                .sum();
            relative(
                &format!("force of c_sw {c_sw}, {schur:?}, lanes {}", domain.lanes().count()),
                found,
                expected,
                1e-8,
            );
        }
    }
}

#[test]
fn pion_correlator() {
    let extents = [4, 4, 4, 8];
    let links = Gauge::warm(extents, 0.5, 8);
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        let operator = params(1.1, schur);
        let dirac = Dirac::new(
            &links,
            Parameters { mass: 0.5 / operator.kappa - 4.0, c_sw: 1.1, phases: operator.boundary.theta() },
        );
        let source = [1, 0, 2, 3];
        let expected = dirac.pion(source, 1e-13);
        for domain in domains(extents) {
            let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
            let mut quark = WilsonQuark::new(&field, &QuarkParams::in_double(operator, 1000), 1e-13).unwrap();
            let found = pion(&mut quark, Source::Point(source)).unwrap();
            for t in 0..8 {
                relative(&format!("C({t})"), found[t], expected[t], 1e-9);
            }
        }
    }
}

/// M^dag M at once, where the last hop of M may make what M^dag begins with, is M and then M^dag, to the bit.
#[test]
fn the_normal_operator_is_both_halves() {
    let links = Gauge::warm(EXTENTS, 0.5, 12);
    for domain in domains(EXTENTS) {
        let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
        for (c_sw, schur) in [(0.0, Schur::Symmetric), (1.3, Schur::Asymmetric), (1.3, Schur::Symmetric)] {
            for (precision, mu) in Precision::ALL.into_iter().flat_map(|p| [(p, 0.0), (p, 0.3)]) {
                let p = WilsonParams { mu, ..params(c_sw, schur) };
                let mut clover = Wilson::clover_term(&domain, &p).unwrap();
                if let Some(clover) = &mut clover {
                    clover.update(&field).unwrap();
                }
                let mut operator = Wilson::several(&domain, precision, 12, 2, p).unwrap();
                operator.update(&field, clover.as_ref()).unwrap();
                let several = || Spinor::several(&domain, precision, 2).unwrap();
                let [mut x, mut middle, mut out, mut half, mut whole] = [(); 5].map(|()| several());
                let mut one = Spinor::new(&domain, Precision::Double).unwrap();
                // The second field is zero on most sites, and too small for half precision on some.
                let mut small = vec![0.0; EXTENTS.iter().product::<usize>() * 24];
                (small[24], small[24 * 901 + 7]) = (1.0, 1e-32);
                for (n, reals) in [reals(&plain::random_field(EXTENTS, 30)), small].iter().enumerate() {
                    one.read_host(ODD, reals).unwrap();
                    x.copy_field(n, &one, 0).unwrap();
                }
                operator.apply_normal(&mut out, &mut middle, &x, 0.2).unwrap();
                operator.apply(&mut half, &x, Dagger::No).unwrap();
                operator.apply(&mut whole, &half, Dagger::Yes).unwrap();
                whole.axpy_each(&[0.2; 2], &x).unwrap();
                for (n, pair) in (0..2).flat_map(|n| [(n, [&middle, &half]), (n, [&out, &whole])]) {
                    let bits = pair.map(|of| {
                        let mut out = vec![0.0; EXTENTS.iter().product::<usize>() * 24];
                        one.copy_field(0, of, n).unwrap();
                        one.write_host(ODD, &mut out).unwrap();
                        out
                    });
                    assert!(bits[0].iter().any(|x| *x != 0.0));
                    let what =
                        format!("{schur:?}, c_sw {c_sw}, mu {mu}, {precision}, {}", domain.lanes().count());
                    assert_same_bits(&bits[0], &bits[1], &what);
                }
            }
        }
    }
}
