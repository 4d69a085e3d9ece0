//! Every force is the derivative of its action: `sum_a p_a F_a = d S(exp(i eps P) U) / d eps` for any P.
//!
//! The derivative is the symmetric difference over six points, of error eps^6 S^(7) / 140. With Gaussian P the left
//! side is Gaussian of width |F|, which sets the scale of an error; along the force itself it is far larger.

mod reference;

use hmc::action::{Action, GaugeAction, QuarkParams, TwoFlavour, TwoFlavourParams};
use hmc::comm::Solo;
use hmc::device::{Cpu, Device, Precision, lane_counts};
use hmc::field::{AlgebraField, Domain, Halo, MatrixField};
use hmc::lattice::{Extents, LaneGrid, Partition};
use hmc::operator::{Schur, WilsonParams};
use reference::gauge::{Gauge, LinkField, random_momenta, shifted};
use reference::{su3, wilson as plain};
use std::sync::Arc;

/// One rank's domain with the most lanes that fit.
fn domain(extents: Extents) -> Arc<Domain> {
    let fits = |lanes: &usize| LaneGrid::choose(extents, [false; 4], *lanes).is_some();
    let lanes = lane_counts().into_iter().filter(fits).max().unwrap();
    let device = Device::new(Cpu::new(lanes).unwrap());
    Domain::new(Partition::whole(extents).unwrap(), device, Arc::new(Solo), 2, Halo::Staged).unwrap()
}

fn fields(links: &Gauge, domain: &Arc<Domain>) -> MatrixField {
    MatrixField::from_host(domain, &links.to_host()).unwrap()
}

/// `sum_a p_a F_a`, F as the program gives it.
fn along(momenta: &LinkField, force: &[f64]) -> f64 {
    let links = momenta.iter().flatten().zip(force.chunks_exact(8));
    links.map(|(p, f)| su3::components(p).iter().zip(f).map(|(p, f)| p * f).sum::<f64>()).sum()
}

/// The direction of the force, its components of root mean square 1 as those of random ones; and |F|.
fn direction(force: &[f64]) -> (LinkField, f64) {
    let norm = force.iter().map(|f| f * f).sum::<f64>().sqrt();
    let root = (force.len() as f64).sqrt() / norm;
    let link = |f: &[f64]| su3::scale(root, &su3::from_components(f.try_into().unwrap()));
    (force.chunks_exact(32).map(|f| std::array::from_fn(|mu| link(&f[8 * mu..8 * mu + 8]))).collect(), norm)
}

/// Compares force and action along two random directions and along the force itself.
fn check(what: &str, links: &Gauge, action: &mut dyn Action, domain: &Arc<Domain>, eps: f64, tolerance: f64) {
    let mut force = AlgebraField::new(domain).unwrap();
    action.add_force(&fields(links, domain), &mut force).unwrap();
    let force = force.to_host().unwrap();
    let (steepest, norm) = direction(&force);
    let extents = links.extents;
    for (name, p) in [
        ("direction 1", random_momenta(extents, 101)),
        ("direction 2", random_momenta(extents, 102)),
        ("along the force", steepest),
    ] {
        let mut s = |k: f64| action.value(&fields(&shifted(links, k * eps, &p), domain)).unwrap();
        // Differences of exact sums: no rounding of the large sum.
        let mut odd = |k: f64| (s(k) - s(-k)).value();
        let expected = (45.0 * odd(1.0) - 9.0 * odd(2.0) + odd(3.0)) / (60.0 * eps);
        let found = along(&p, &force);
        let error = (found - expected).abs() / found.abs().max(norm);
        println!("{what}, {name}: {found:.12e} against {expected:.12e}, error {error:.1e}");
        assert!(error < tolerance, "{what}, {name}: {found:e} is not {expected:e}: {error:.1e}");
    }
}

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
            check(&format!("{name} {extents:?}"), &links, &mut action, &domain, 4e-3, 1e-10);
        }
    }
}

fn two_flavour(domain: &Arc<Domain>, operator: WilsonParams, precision: Precision) -> TwoFlavour {
    let params = TwoFlavourParams {
        name: "light".into(),
        quark: QuarkParams { operator, precision, link_reals: 18, max_iterations: 2000, guess: 0 },
        action_residual: 1e-14,
        force_residual: 1e-14,
        number: 0,
    };
    TwoFlavour::new(domain, params).unwrap()
}

/// Errors are below 1e-10, of the differences.
fn fermion(extents: Extents, c_sw: f64, schur: Schur, precision: Precision) {
    // Rough, but the clover term of c_sw = 1 is still positive.
    let links = Gauge::warm(extents, 0.8, 5);
    assert!(links.plaquette() < 0.3);
    let domain = domain(extents);
    let operator = WilsonParams { kappa: 0.115, mu: 0.0, c_sw, boundary: [0.0, 0.3, 0.0, 1.0], schur };
    let mut term = two_flavour(&domain, operator, precision);
    let phi: Vec<f64> =
        plain::random_field(extents, 23).iter().flatten().flatten().flat_map(|z| [z.re, z.im]).collect();
    term.set_phi(&phi).unwrap();
    let what = format!("two flavours {extents:?} c_sw {c_sw} {schur:?} {precision:?}");
    check(&what, &links, &mut term, &domain, 5e-3, 1e-9);
}

#[test]
fn two_flavours_in_double() {
    for c_sw in [0.0, 1.0] {
        for schur in [Schur::Asymmetric, Schur::Symmetric] {
            fermion([4; 4], c_sw, schur, Precision::Double);
        }
    }
}

#[test]
fn two_flavours_in_double_and_single() {
    for c_sw in [0.0, 1.0] {
        for schur in [Schur::Asymmetric, Schur::Symmetric] {
            fermion([4; 4], c_sw, schur, Precision::Single);
        }
    }
}

#[test]
fn two_flavours_on_uneven_extents() {
    fermion([4, 2, 6, 8], 1.0, Schur::Asymmetric, Precision::Double);
    fermion([6, 4, 2, 4], 1.0, Schur::Symmetric, Precision::Double);
    fermion([2, 4, 6, 4], 0.0, Schur::Symmetric, Precision::Double);
}
