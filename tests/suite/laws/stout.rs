//! Stout smearing: what smeared links are, how they turn under gauge transformations, and that the force through
//! them is the derivative of the action, reversible, and the same on any ranks.

use crate::ranks;
use crate::reference::gauge::{Gauge, LinkField, random_momenta, random_transformation, shifted};
use crate::reference::{stout, su3, wilson as plain};
use hmc::action::{Action, Determinant, DeterminantParams, GaugeAction, Power, Smeared, TermHeader};
use hmc::comm::{Comm, Solo};
use hmc::device::{Cpu, Device, Precision, lane_counts};
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{AlgebraField, Domain, Halo, HostLinks, LINK_REALS, MatrixField};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::lattice::{Extents, LaneGrid, Partition, volume};
use hmc::operator::{GaugeLoops, Stout, smeared};
use hmc::quark::QuarkParams;
use hmc::solver::Settings;
use num_complex::Complex64;
use std::sync::{Arc, OnceLock};

const IWASAKI: [f64; 3] = [1.0 + 8.0 * 0.331, -0.331, 0.0];

/// A rank's domain with the most lanes that fit.
fn domain_of(partition: Partition, comm: Arc<dyn Comm>, border: usize) -> Arc<Domain> {
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    let fits = |lanes: &usize| {
        LaneGrid::choose(partition.local(), cut, *lanes)
            .is_some_and(|grid| (0..4).all(|mu| !cut[mu] || grid.outer(partition.local())[mu] >= border))
    };
    let lanes = lane_counts().into_iter().filter(fits).max().unwrap();
    Domain::new(partition, Device::new(Cpu::new(lanes).unwrap()), comm, border, Halo::Staged).unwrap()
}

fn domain(extents: Extents) -> Arc<Domain> {
    domain_of(Partition::whole(extents).unwrap(), Arc::new(Solo), 2)
}

fn field(links: &Gauge, domain: &Arc<Domain>) -> MatrixField {
    MatrixField::from_host(domain, &links.to_host()).unwrap()
}

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
    let params = DeterminantParams {
        header: TermHeader {
            name: "light".into(),
            number: 0,
            action_residual: residual.min(1e-12),
            force_residual: residual,
        },
        light: QuarkParams { operator, solver: Settings::cg(precision, 5000), link_reals: 18, guess: 0 },
        heavy: None,
        power: Power::Inverse,
    };
    Determinant::new(domain, params).unwrap()
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
    let operator = WilsonParams { kappa: 0.115, mu: 0.0, c_sw: 1.0, boundary: [0.0, 0.3, 0.0, 1.0], schur };
    let mut inner = two_flavour(domain, operator, precision, 1e-14);
    inner.set_phi(phi).unwrap();
    Smeared::new(domain, Box::new(inner), steps, rho).unwrap()
}

fn random_phi(extents: Extents) -> Vec<f64> {
    plain::random_field(extents, 23).iter().flatten().flatten().flat_map(|z| [z.re, z.im]).collect()
}

fn force_of(term: &mut dyn Action, links: &MatrixField) -> Vec<f64> {
    let mut force = AlgebraField::new(links.domain()).unwrap();
    term.add_force(links, &mut force).unwrap();
    force.to_host().unwrap()
}

/// `sum_a p_a F_a`, F as the program gives it.
fn along(momenta: &LinkField, force: &[f64]) -> f64 {
    let links = momenta.iter().flatten().zip(force.chunks_exact(8));
    links.map(|(p, f)| su3::components(p).iter().zip(f).map(|(p, f)| p * f).sum::<f64>()).sum()
}

/// Force and action along two random directions and along the force itself, as `force.rs` does it: the error of
/// the difference over six points is eps^6 S^(7) / 140, and |F| sets the scale. Along the force S and its higher
/// derivatives change most, and rounding matters least: there eps is a quarter.
fn check(what: &str, links: &Gauge, term: &mut dyn Action, domain: &Arc<Domain>, eps: f64, tolerance: f64) {
    let force = force_of(term, &field(links, domain));
    let norm = force.iter().map(|f| f * f).sum::<f64>().sqrt();
    assert!(norm > 1e-3, "{what}: a force");
    let root = (force.len() as f64).sqrt() / norm;
    let link = |f: &[f64]| su3::scale(root, &su3::from_components(f.try_into().unwrap()));
    let steepest: LinkField =
        force.chunks_exact(32).map(|f| std::array::from_fn(|mu| link(&f[8 * mu..8 * mu + 8]))).collect();
    for (name, p, eps) in [
        ("direction 1", random_momenta(links.extents, 101), eps),
        ("direction 2", random_momenta(links.extents, 102), eps),
        ("along the force", steepest, eps / 4.0),
    ] {
        let mut s = |k: f64| term.value(&field(&shifted(links, k * eps, &p), domain)).unwrap();
        let mut odd = |k: f64| (s(k) - s(-k)).value();
        let expected = (45.0 * odd(1.0) - 9.0 * odd(2.0) + odd(3.0)) / (60.0 * eps);
        let found = along(&p, &force);
        let error = (found - expected).abs() / found.abs().max(norm);
        println!("{what}, {name}: {found:.12e} against {expected:.12e}, error {error:.1e}");
        assert!(error < tolerance, "{what}, {name}: {found:e} is not {expected:e}: {error:.1e}");
    }
}

#[test]
fn force_of_a_gauge_action() {
    for (extents, steps, rho) in
        [([4, 4, 4, 4], 1, 0.14), ([4, 4, 6, 8], 2, 0.12), ([2, 6, 4, 2], 2, 0.1), ([4, 4, 4, 4], 3, 0.1)]
    {
        let domain = domain(extents);
        let mut term = gauge(&domain, steps, rho);
        let what = format!("gauge action {extents:?} of {steps} steps, rho {rho}");
        check(&what, &Gauge::random(extents, 17), &mut term, &domain, 3e-3, 5e-10);
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
        let mut term = quarks(&domain, schur, precision, steps, rho, &random_phi(extents));
        let what = format!("two flavours of {steps} steps, rho {rho}, {schur:?} {precision:?}");
        check(&what, &Gauge::warm(extents, 0.8, 5), &mut term, &domain, 3e-3, 1e-9);
    }
}

/// Q = 0, and Q with two eigenvalues that are equal: no small divisors.
#[test]
fn force_where_eigenvalues_of_q_meet() {
    let extents = [4; 4];
    let domain = domain(extents);
    let mut term = quarks(&domain, Schur::Asymmetric, Precision::Double, 2, 0.12, &random_phi(extents));
    check("unit links", &Gauge::unit(extents), &mut term, &domain, 3e-3, 1e-9);
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
        check(&what, &Gauge { extents, links }, &mut term, &domain, 3e-3, 1e-9);
    }
}

/// Without steps all is as without smearing.
#[test]
fn no_steps_change_nothing() {
    let domain = domain([4; 4]);
    let links = field(&Gauge::random([4; 4], 3), &domain);
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
        let thin = field(&links, &domain);
        let before = GaugeLoops::traces(&thin).unwrap().plaquette();
        for (steps, rho) in [(1, 0.1), (2, 0.1), (3, 0.1), (3, 0.14)] {
            let mut found = smeared(&thin, steps, rho).unwrap();
            let mut levels = Stout::new(&domain, steps, rho).unwrap();
            assert_eq!(levels.smear(&thin).unwrap().distance(&found).unwrap(), 0.0, "both ways to smear");
            let expected = field(&stout::smeared(&links, steps, rho), &domain);
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
    let (thin, turned) = (field(&links, &domain), field(&links.transformed(&g), &domain));
    for steps in 1..=3 {
        let smooth = Gauge::from_host(&smeared(&thin, steps, 0.12).unwrap().to_host().unwrap());
        let expected = field(&smooth.transformed(&g), &domain);
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

/// Smeared links, action and force have the same bits on every grid of ranks, with one layer of borders and with two.
#[test]
fn ranks_have_the_same_bits() {
    let extents = [8, 4, 8, 8];
    let links = Gauge::random(extents, 19).to_host();
    let (steps, rho) = (2, 0.13);
    // Plaquettes reach one layer.
    let results = |domain: &Arc<Domain>, links: &HostLinks| {
        let thin = MatrixField::from_host(domain, links).unwrap();
        let inner = GaugeAction::new(domain, 5.7, [1.0, 0.0, 0.0]).unwrap();
        let mut term = Smeared::new(domain, Box::new(inner), steps, rho).unwrap();
        let value = term.value(&thin).unwrap().value();
        (smeared(&thin, steps, rho).unwrap().to_host().unwrap().reals, value, force_of(&mut term, &thin))
    };
    let whole = results(&domain(extents), &links);
    assert!(whole.2.iter().all(|f| f.is_finite()) && whole.1 > 0.0);
    for (grid, border) in
        [([1, 1, 1, 2], 1), ([2, 1, 1, 1], 2), ([2, 2, 1, 1], 1), ([1, 1, 2, 4], 1), ([2, 2, 2, 1], 1)]
    {
        let size = volume(grid);
        let partition = |rank| Partition::new(extents, grid, size, rank).unwrap();
        let found = ranks::run(size, |comm| {
            let partition = partition(comm.rank());
            let reals = ranks::part(&links.reals, &partition, 4 * LINK_REALS);
            let domain = domain_of(partition, comm, border);
            results(&domain, &HostLinks { local: partition.local(), reals })
        });
        for (rank, (smooth, value, force)) in found.iter().enumerate() {
            let what = format!("grid {grid:?}, border {border}, rank {rank}");
            let partition = partition(rank);
            assert!(smooth == &ranks::part(&whole.0, &partition, 4 * LINK_REALS), "{what}: links");
            assert_eq!(*value, whole.1, "{what}: action");
            assert!(force == &ranks::part(&whole.2, &partition, 32), "{what}: force");
        }
    }
}

const OMELYAN: Scheme = Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 };

/// Two flavours on links of two steps outside, the gauge action inside.
fn chain(links: &HostLinks, steps: u32, tau: f64, residual: f64) -> Chain {
    let domain = domain_of(Partition::whole([4; 4]).unwrap(), Arc::new(Solo), 1);
    let operator = WilsonParams {
        kappa: 0.125,
        mu: 0.0,
        c_sw: 1.0,
        boundary: [0.0, 0.0, 0.0, 1.0],
        schur: Schur::Asymmetric,
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
