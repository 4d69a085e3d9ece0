//! GCR-DD whose Schwarz domain is the box of a rank, `block = "rank"`, on two and four ranks: every mix of
//! precisions reaches the true residual, with fewer halos than BiCGstab; molecular dynamics are those of conjugate
//! gradients, and reversible.

mod dynamics;

use super::quark::{EXTENTS, Quark, thermalised};
use crate::compare::distance;
use crate::devices::{domain, on_most_lanes};
use crate::ranks;
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::{Dagger, Domain, ODD, Spinor};
use hmc::lattice::{Boundary, Extents, Partition, volume};
use hmc::operator::CloverForm;
use hmc::solver::{GcrDd, Info, Matrix, Method, Settings};
use std::sync::Arc;

const GRIDS: [Extents; 4] = [[1, 1, 1, 2], [2, 1, 1, 1], [2, 1, 1, 2], [1, 2, 2, 1]];
const RESIDUAL: f64 = 1e-10;
const DIRAC_REALS: usize = 24;

const D: Precision = Precision::Double;
const S: Precision = Precision::Single;
const H: Precision = Precision::Half;
/// All that an input accepts.
const MIXES: [[Precision; 3]; 9] =
    [[D, D, D], [D, D, S], [D, D, H], [D, S, S], [D, S, H], [D, H, H], [S, S, S], [S, S, H], [S, H, H]];

/// The quark on a box of the links.
fn quark(domain: &Arc<Domain>, schur: Schur) -> Quark {
    // Not light: systems of one rank take some hundred iterations by BiCGstab.
    let params = WilsonParams {
        kappa: 0.13,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.769,
        clover: CloverForm::Linear,
        boundary: Boundary::ANTIPERIODIC,
        schur,
    };
    let links = ranks::links(thermalised(), domain.partition());
    Quark::new(domain, [&links; 3], params)
}

/// What solving `M^dag M x = b` did, and x.
fn solve(quark: &mut Quark, settings: Settings) -> (Info, Vec<f64>) {
    let b = quark.random(0);
    let (x, info) = quark.solve(settings, &b, RESIDUAL).unwrap();
    (info, reals(&x))
}

/// What solving `M x = b` did, and x.
fn solve_one(quark: &mut Quark, settings: Settings, residual: f64) -> (Info, Vec<f64>) {
    let b = quark.random(0);
    let (x, info) = quark.solve_one(settings, Matrix::Linear(Dagger::No), &b, residual).unwrap();
    (info, reals(&x))
}

fn reals(x: &Spinor) -> Vec<f64> {
    let mut reals = vec![0.0; volume(x.domain().partition().local()) * DIRAC_REALS];
    x.write_host(ODD, &mut reals).unwrap();
    reals
}

fn settings(method: Method, precisions: [Precision; 3], delta: f64) -> Settings {
    Settings { method, precisions, delta, max_iterations: 4000 }
}

fn gcr_dd(precisions: [Precision; 3], block: Option<Extents>) -> Settings {
    settings(Method::GcrDd(GcrDd { k_max: 16, n_mr: 8, block }), precisions, 0.1)
}

/// Every rank's part of a field put into its place.
fn join<'a>(parts: impl Iterator<Item = (&'a Partition, &'a Vec<f64>)>) -> Vec<f64> {
    let sites: Vec<f64> = (0..volume(EXTENTS)).map(|x| x as f64).collect();
    let mut all = vec![0.0; volume(EXTENTS) * DIRAC_REALS];
    for (partition, part) in parts {
        for (site, reals) in ranks::part(&sites, partition, 1).iter().zip(part.chunks_exact(DIRAC_REALS)) {
            let at = *site as usize * DIRAC_REALS;
            all[at..at + DIRAC_REALS].copy_from_slice(reals);
        }
    }
    all
}

/// Every mix on two ranks, the usual ones on every grid. The judge is one rank with the whole lattice.
#[test]
fn every_mix_reaches_the_true_residual_on_every_grid() {
    const USUAL: [[Precision; 3]; 3] = [[D, S, H], [D, H, H], [S, H, H]];
    for (grid, schur, mixes) in [
        ([1, 1, 1, 2], Schur::Symmetric, &MIXES[..]),
        ([2, 1, 1, 1], Schur::Asymmetric, &USUAL),
        ([2, 1, 1, 2], Schur::Symmetric, &USUAL),
        ([1, 2, 2, 1], Schur::Asymmetric, &USUAL),
    ] {
        let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
            let mut quark = quark(&on_most_lanes(partition, comm, 1), schur);
            mixes.iter().map(|mix| solve(&mut quark, gcr_dd(*mix, None))).collect::<Vec<_>>()
        });
        let mut judge = quark(&domain(EXTENTS), schur);
        let b = judge.random(0);
        for (n, mix) in mixes.iter().enumerate() {
            let info = found[0].1[n].0;
            let mut x = judge.spinor();
            x.read_host(ODD, &join(found.iter().map(|(partition, found)| (partition, &found[n].1)))).unwrap();
            let residual = judge.residual(&x, &b);
            println!(
                "{schur:?} {grid:?} {mix:?}: {} iterations, {} updates, {} applications, residual {residual:.3e}",
                info.iterations, info.updates, info.applications
            );
            assert_eq!(info.fallbacks, 0, "{grid:?} {mix:?}: {info:?}");
            // |b - M^dag M x| has the rounding of b, a few 1e-16, in it.
            let close = (residual - info.residual).abs() < 1e-3 * residual + 1e-15;
            assert!(residual <= RESIDUAL && close, "{grid:?} {mix:?}: {residual:e}, {info:?}");
        }
    }
}

/// Nothing crosses the cuts: in double, one rank with blocks of the boxes' extents does the same, but for rounding, which
/// is seen far from convergence. A sum over all ranks, or a hop over a cut, would make another preconditioner.
#[test]
fn the_domain_is_the_box_of_the_rank() {
    const LOOSE: f64 = 1e-3;
    let one = domain(EXTENTS);
    for grid in GRIDS {
        let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
            let mut quark = quark(&on_most_lanes(partition, comm, 1), Schur::Symmetric);
            solve_one(&mut quark, gcr_dd([D; 3], None), LOOSE)
        });
        let local = Some(std::array::from_fn(|mu| EXTENTS[mu] / grid[mu]));
        let settings = gcr_dd([D; 3], local);
        let (info, blocks) = solve_one(&mut quark(&one, Schur::Symmetric), settings, LOOSE);
        let difference = distance(&join(found.iter().map(|(partition, (_, x))| (partition, x))), &blocks);
        let iterations: Vec<usize> = found.iter().map(|(_, (info, _))| info.iterations).collect();
        println!(
            "{grid:?}: iterations {iterations:?}, of blocks {}, difference {difference:.1e}",
            info.iterations
        );
        assert!(iterations.iter().all(|n| *n == info.iterations), "{grid:?}: {iterations:?}, {info:?}");
        // Some 10^3 steps, each with a rounding of 1e-16; another preconditioner differs by LOOSE.
        assert!(difference < 1e-11, "{grid:?}: {difference:e}");
    }
}

/// The point of the method: halos are in the Krylov iteration alone.
#[test]
fn it_takes_fewer_halos_than_bicgstab() {
    for grid in GRIDS {
        let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
            let mut quark = quark(&on_most_lanes(partition, comm, 1), Schur::Symmetric);
            let bicgstab = settings(Method::BICGSTAB, [D, S, S], 1e-3);
            [gcr_dd([D, S, H], None), bicgstab]
                .map(|settings| solve_one(&mut quark, settings, RESIDUAL).0.applications)
        });
        let [gcr_dd, bicgstab] = found[0].1;
        println!("{grid:?}: {gcr_dd} applications of M, {bicgstab} by BiCGstab");
        assert!(2 * gcr_dd < bicgstab, "{grid:?}: {gcr_dd} applications, {bicgstab} by BiCGstab");
    }
}
