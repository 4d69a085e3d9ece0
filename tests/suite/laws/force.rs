//! Every force is the derivative of its action: `sum_a p_a F_a = d S(exp(i eps P) U) / d eps` for any P.
//!
//! The derivative is the symmetric difference over six points, of error eps^6 S^(7) / 140. With Gaussian P the left
//! side is Gaussian of width |F|, which sets the scale of an error; along the force itself it is far larger.

use super::doublet;
use crate::devices;
use crate::devices::{domain, on_lanes, on_one_lane};
use crate::ranks;
use crate::reference::gauge::Gauge;
use crate::terms::{check_force, check_refresh, fields, quark, random_phi, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::{AlgebraField, Domain, HostLinks, MatrixField};
use hmc::lattice::{Boundary, Extents};
use hmc::operator::CloverForm;
use std::sync::Arc;

/// Errors are below 1e-11, of rounding: 1e-10 leaves room for other directions.
#[test]
fn gauge_actions() {
    let u0 = 0.87_f64;
    let one_loop = [1.0, -(1.0 - 0.6264 * u0.ln()) / (20.0 * u0 * u0), 0.04335 * u0.ln() / (u0 * u0)];
    let improved = |c1: f64| [1.0 - 8.0 * c1, c1, 0.0];
    for extents in [[4, 4, 4, 4], [4, 4, 6, 8], [2, 6, 4, 2]] {
        let links = Gauge::random(extents, 17);
        let domain = domain(extents);
        for (name, coefficients) in [
            ("wilson", [1.0, 0.0, 0.0]),
            ("symanzik", improved(-1.0 / 12.0)),
            ("iwasaki", improved(-0.331)),
            ("dbw2", improved(-1.4088)),
            ("symanzik-1loop", one_loop),
            ("parallelograms alone", [0.0, 0.0, 1.0]),
        ] {
            let mut action = GaugeAction::new(&domain, 5.7, coefficients).unwrap();
            check_force(&format!("{name} {extents:?}"), &links, &mut action, &domain, 4e-3, 1e-10);
        }
    }
}

const NONE: (f64, CloverForm) = (0.0, CloverForm::Linear);
const LINEAR: (f64, CloverForm) = (1.0, CloverForm::Linear);
/// As large as on the coarsest lattices.
const EXPONENTIAL: (f64, CloverForm) = (2.5, CloverForm::Exponential);

const DOUBLET: WilsonParams = WilsonParams {
    kappa: 0.12,
    mu: 0.1,
    twisted_mass: 0.2,
    c_sw: 1.3,
    clover: CloverForm::Linear,
    boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
    schur: Schur::Asymmetric,
};

/// Errors are below 1e-10, of the differences.
fn fermion(extents: Extents, (c_sw, clover): (f64, CloverForm), schur: Schur, precision: Precision) {
    // Rough, but the clover term of c_sw = 1 is still positive.
    let links = Gauge::warm(extents, 0.8, 5);
    assert!(links.plaquette() < 0.3);
    let domain = domain(extents);
    let operator = WilsonParams {
        kappa: 0.115,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw,
        clover,
        boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
        schur,
    };
    let mut term = two_flavours(&domain, quark(operator, precision), [1e-14; 2]);
    term.set_phi(&random_phi(extents, 23)).unwrap();
    let what = format!("two flavours {extents:?} c_sw {c_sw} {clover:?} {schur:?} {precision:?}");
    check_force(&what, &links, &mut term, &domain, 5e-3, 1e-9);
}

#[test]
fn two_flavours_in_double() {
    for form in [NONE, LINEAR, EXPONENTIAL] {
        for schur in [Schur::Asymmetric, Schur::Symmetric] {
            fermion([4; 4], form, schur, Precision::Double);
        }
    }
}

#[test]
fn two_flavours_in_double_and_single() {
    for form in [NONE, LINEAR, EXPONENTIAL] {
        for schur in [Schur::Asymmetric, Schur::Symmetric] {
            fermion([4; 4], form, schur, Precision::Single);
        }
    }
}

#[test]
fn two_flavours_on_uneven_extents() {
    fermion([4, 2, 6, 8], LINEAR, Schur::Asymmetric, Precision::Double);
    fermion([6, 4, 2, 4], EXPONENTIAL, Schur::Symmetric, Precision::Double);
    fermion([2, 4, 6, 4], NONE, Schur::Symmetric, Precision::Double);
}

/// A twisted mass on all sites, and a regulator on odd ones.
#[test]
fn twisted_mass_doublets() {
    for c_sw in [0.0, 1.3] {
        for precision in [Precision::Double, Precision::Single] {
            let extents = [4, 2, 4, 6];
            let (links, domain) = (Gauge::warm(extents, 0.5, 22), domain(extents));
            let operator = WilsonParams { c_sw, ..DOUBLET };
            let mut term = two_flavours(&domain, quark(operator, precision), [1e-14; 2]);
            term.set_phi(&random_phi(extents, 23)).unwrap();
            check_force(
                &format!("doublet c_sw {c_sw} {precision:?}"),
                &links,
                &mut term,
                &domain,
                5e-3,
                1e-9,
            );
            check_refresh("heat bath", &fields(&links, &domain), &mut term, 1e-11);
        }
    }
}

/// Two flavours of exponential clover quarks, and doublets: S and force have the same bits on lanes, emulated GPUs and ranks.
#[test]
fn exponential_clover_and_doublets_have_the_same_bits_everywhere() {
    let exponential = WilsonParams {
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.9,
        clover: CloverForm::Exponential,
        schur: Schur::Symmetric,
        ..DOUBLET
    };
    for operator in [exponential, DOUBLET, WilsonParams { c_sw: 0.0, ..DOUBLET }] {
        the_same_bits_everywhere(|domain| {
            Box::new(two_flavours(domain, quark(operator, Precision::Half), [1e-6, 1e-5]))
        });
    }
    the_same_bits_everywhere(|domain| {
        Box::new(doublet::term(domain, doublet::PARAMS, (Precision::Half, 2), [1e-6, 1e-5], 1e-6))
    });
}

fn the_same_bits_everywhere(make: impl Fn(&Arc<Domain>) -> Box<dyn Action> + Sync) {
    let extents = [4, 4, 8, 8];
    let links = Gauge::warm(extents, 0.5, 5).to_host();
    let results = |domain: &Arc<Domain>, links: &HostLinks| {
        let links = MatrixField::from_host(domain, links).unwrap();
        let mut term = make(domain);
        let drawn = term.refresh(&links, 3, 0).unwrap().value();
        let valued = term.value(&links).unwrap().value();
        let mut force = AlgebraField::new(domain).unwrap();
        let iterations = term.add_force(&links, &mut force).unwrap();
        ((drawn, valued, iterations), force.to_host().unwrap())
    };
    let (sums, force) = results(&on_one_lane(extents), &links);
    for domain in devices::domains(extents) {
        let found = results(&domain, &links);
        assert!(found.0 == sums && found.1 == force, "{}", domain.device().backend().name());
    }
    for grid in [[1, 1, 1, 2], [1, 2, 2, 1]] {
        let found = ranks::on_grid(extents, grid, |partition, comm| {
            results(&on_lanes(1, partition, comm, 2), &ranks::links(&links, &partition))
        });
        for (partition, own) in found {
            assert_eq!(own.0, sums, "grid {grid:?}");
            assert!(own.1 == ranks::part(&force, &partition, 32), "grid {grid:?}");
        }
    }
}
