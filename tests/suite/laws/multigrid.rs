//! What aggregation multigrid must do, of the plain two-level reference: the laws of its transfers and its coarse operator, and
//! numbers of iterations that do not grow as the quark becomes light. The program's own takes about as many.

use crate::devices::domain;
use crate::kernels::quark::{EXTENTS, Quark, thermalised};
use crate::reference::gauge::Gauge;
use crate::reference::multigrid::{Aggregates, TwoLevel, gcr, norm, smooth};
use crate::reference::wilson::{Dirac, Parameters, axpy, gamma5_field, random_field, zero_field};
use hmc::device::Precision::{Double, Single};
use hmc::family::{Schur, WilsonParams};
use hmc::field::Dagger;
use hmc::lattice::{Boundary, Extents, coordinates, volume};
use hmc::operator::CloverForm;
use hmc::solver::{GcrMultigrid, Matrix, Method, MultigridParams, Settings};
use num_complex::Complex64;

const C_SW: f64 = 1.769;

fn random(n: usize) -> Vec<Complex64> {
    let field = random_field([2, 2, 2, n.div_ceil(96)], 7);
    field.iter().flatten().flatten().copied().take(n).collect()
}

fn distance(a: &[Complex64], b: &[Complex64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt()
}

#[test]
fn transfers_and_the_coarse_operator() {
    let aggregates = Aggregates { lattice: [4, 4, 4, 8], block: [2, 2, 2, 4] };
    let gauge = Gauge::warm(aggregates.lattice, 0.4, 3);
    let dirac = Dirac::new(&gauge, Parameters::from_kappa(0.125, C_SW));
    let level = TwoLevel::new(&dirac, aggregates, 4, 4, 1);
    let c = random(level.size());
    // P^dag P = 1
    let fine = level.prolong(&c);
    assert!(distance(&level.restrict(&fine), &c) < 1e-13);
    // gamma_5 P = P sigma_3
    let flip = |c: &[Complex64]| -> Vec<Complex64> {
        let vectors = level.size() / volume(aggregates.counts()) / 2;
        c.iter().enumerate().map(|(i, c)| if (i / vectors).is_multiple_of(2) { *c } else { -c }).collect()
    };
    assert!(norm(&axpy(&gamma5_field(&fine), -1.0, &level.prolong(&flip(&c)))) < 1e-13);
    // A = P^dag M P, and A^dag = sigma_3 A sigma_3
    let apply = |c: &[Complex64], dagger: bool| -> Vec<Complex64> {
        let element =
            |i: usize, j: usize| if dagger { level.coarse[j][i].conj() } else { level.coarse[i][j] };
        (0..c.len()).map(|i| (0..c.len()).map(|j| element(i, j) * c[j]).sum()).collect()
    };
    assert!(distance(&level.restrict(&dirac.apply(&fine)), &apply(&c, false)) < 1e-12);
    assert!(distance(&flip(&apply(&flip(&c), false)), &apply(&c, true)) < 1e-12);
    // It couples neighbours alone.
    let (counts, per) = (aggregates.counts(), level.size() / volume(aggregates.counts()));
    for i in 0..level.size() {
        for j in 0..level.size() {
            let [a, b] = [i, j].map(|n| coordinates(counts, n / per));
            let apart = (0..4).filter(|&mu| a[mu] != b[mu]).count();
            assert!(apart < 2 || level.coarse[i][j].norm() < 1e-14, "{a:?} {b:?}");
        }
    }
    // The residual of a correction has no component that the coarse space sees.
    let b = random_field(aggregates.lattice, 9);
    let left = axpy(&b, -1.0, &dirac.apply(&level.correction(&b)));
    assert!(level.restrict(&left).iter().all(|c| c.norm() < 1e-12));
}

const BLOCK: Extents = [4; 4];
const PARAMS: WilsonParams = WilsonParams {
    kappa: 0.1352,
    mu: 0.0,
    twisted_mass: 0.0,
    c_sw: C_SW,
    clover: CloverForm::Linear,
    boundary: Boundary::ANTIPERIODIC,
    schur: Schur::Asymmetric,
};

/// Iterations of the program on thermalised links.
fn program(params: WilsonParams, dagger: Dagger) -> usize {
    let mut quark = Quark::new(&domain(EXTENTS), [thermalised(); 3], params);
    let params = MultigridParams { block: BLOCK, coarse_block: None, vectors: 16, steps: 8 };
    let settings = Settings {
        method: Method::Multigrid(GcrMultigrid { k_max: 40, params }),
        precisions: [Double, Single, Single],
        delta: 1e-5,
        max_iterations: 100,
    };
    let b = quark.random(0);
    let (_, info) = quark.solve_one(settings, Matrix::Linear(dagger), &b, 1e-8).unwrap();
    assert_eq!(info.fallbacks, 0);
    info.iterations
}

/// Doublets close to maximal twist, of either sign of mu: for M and its adjoint one space serves.
#[test]
fn doublets_take_as_few_iterations() {
    let reference = program(PARAMS, Dagger::No);
    for twisted_mass in [0.1, -0.01, 0.002] {
        for dagger in [Dagger::No, Dagger::Yes] {
            let own = program(WilsonParams { twisted_mass, ..PARAMS }, dagger);
            println!("twisted mass {twisted_mass}, {dagger:?}: {own} iterations, {reference} without");
            assert!(own <= reference + 2);
        }
    }
}

/// On thermalised links towards the critical mass, which for this c_sw is at kappa 0.13525 (Luescher et al.,
/// hep-lat/9609035).
#[test]
fn iterations_do_not_grow_towards_the_critical_mass() {
    let gauge = Gauge::from_host(thermalised());
    let aggregates = Aggregates { lattice: EXTENTS, block: BLOCK };
    let (b, zero) = (random_field(EXTENTS, 11), zero_field(EXTENTS));
    let counts = [0.134, 0.1352].map(|kappa| {
        let dirac = Dirac::new(&gauge, Parameters::from_kappa(kappa, C_SW));
        let level = TwoLevel::new(&dirac, aggregates, 16, 8, 1);
        let smoother = |r: &[_]| {
            let mut x = zero.clone();
            smooth(&dirac, &mut x, r, 8);
            x
        };
        let two = gcr(&dirac, |r| level.cycle(r), &b, 1e-8, 100).len();
        let one = gcr(&dirac, smoother, &b, 1e-8, 100).len();
        let schur = Schur::Symmetric;
        let own = program(WilsonParams { kappa, schur, ..PARAMS }, Dagger::No);
        println!("kappa {kappa}: {two} iterations, {one} with the smoother alone, {own} of the program");
        assert!(3 * own <= 4 * two, "{own} iterations of the program, {two} of the reference");
        [two, one]
    });
    let [[heavy, _], [light, alone]] = counts;
    assert!(light <= 20 && 2 * light <= 3 * heavy && 3 * alone > 5 * light, "{counts:?}");
}
