//! Halos of half precision that are rounded in messages, on two and four ranks: what hops lose by it, that solves meet the
//! same true residuals in about as many iterations, and that nothing else changes a bit.

use super::quark::{EXTENTS, Quark, thermalised};
use crate::compare::{assert_same_bits, distance};
use crate::devices::{Choice, choices, on_most_lanes_by};
use crate::ranks;
use hmc::device::{Precision, has_emulation};
use hmc::family::{DomainWall, DomainWallParams, Schur, WilsonParams};
use hmc::field::{
    Dagger, Domain, Halo, HaloPrecision, MatrixField, ODD, Purpose, RandomAddress, Spinor, Transports,
};
use hmc::lattice::{Boundary, Extents, LaneGrid, Partition, volume};
use hmc::math::WallWeights;
use hmc::operator::Operator;
use hmc::solver::{Cg, GcrDd, Info, Method, Operators, Params, Settings};
use std::sync::Arc;

const GRIDS: [Extents; 4] = [[1, 1, 1, 2], [2, 1, 1, 1], [2, 1, 1, 2], [1, 2, 2, 1]];
const D: Precision = Precision::Double;
const H: Precision = Precision::Half;
const RESIDUAL: f64 = 1e-10;

fn rounded(transports: impl Into<Transports>) -> Transports {
    transports.into().with(HaloPrecision::Half)
}

fn quark(domain: &Arc<Domain>) -> Quark {
    let schur = Schur::Symmetric;
    let params = WilsonParams { kappa: 0.13, mu: 0.0, c_sw: 1.769, boundary: Boundary::ANTIPERIODIC, schur };
    let links = ranks::links(thermalised(), domain.partition());
    Quark::new(domain, [&links; 3], params)
}

/// M and M^dag on a rank, in double, single and half precision.
fn applied(domain: &Arc<Domain>) -> [Vec<f64>; 3] {
    let mut quark = quark(domain);
    let b = quark.random(0);
    [0, 1, 2].map(|n| {
        let of = |precision| Spinor::new(domain, precision).unwrap();
        let [mut x, mut y] = [Precision::ALL[n]; 2].map(of);
        let mut double = of(D);
        let mut all = Vec::new();
        for dagger in [Dagger::No, Dagger::Yes] {
            x.copy_from(&b).unwrap();
            quark.all[n].apply(&mut y, &x, dagger).unwrap();
            double.copy_from(&y).unwrap();
            let mut reals = vec![0.0; volume(domain.partition().local()) * 24];
            double.write_host(ODD, &mut reals).unwrap();
            all.extend(reals);
        }
        all
    })
}

/// The same on all ranks of a grid.
fn applied_on(grid: Extents, choice: Choice, transports: &Transports) -> [Vec<f64>; 3] {
    let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
        applied(&choice.domain_by(partition, comm, transports.clone()))
    });
    [0, 1, 2].map(|n| found.iter().flat_map(|(_, all)| all[n].clone()).collect())
}

/// Each hop over a cut loses half a step of 16-bit integers, 1.5e-5 of the greatest of twelve reals, as storage does of 24.
const LOST: f64 = 3e-5;

#[test]
fn hops_lose_what_storage_loses_and_all_devices_have_the_same_bits() {
    for grid in GRIDS {
        let local = Partition::new(EXTENTS, grid, volume(grid), 0).unwrap().local();
        let cut = grid.map(|ranks| ranks > 1);
        let choices = choices(|lanes| {
            LaneGrid::choose(local, cut, lanes).is_some_and(|grid| grid.is_thick(local, cut, 2))
        });
        let staged = Halo::Staged.into();
        let [double, single, half] = applied_on(grid, *choices.last().unwrap(), &staged);
        let mut first: Option<Vec<f64>> = None;
        for choice in choices {
            let emulated = matches!(choice, Choice::Emulated);
            for halo in if emulated { &[Halo::Staged, Halo::Nccl][..] } else { &[Halo::Staged] } {
                let found = applied_on(grid, choice, &rounded(*halo));
                let what = format!("{grid:?}, {choice:?}, {halo}");
                assert_same_bits(&found[0], &double, &what);
                assert_same_bits(&found[1], &single, &what);
                let lost = distance(&found[2], &half);
                println!("{what}: {lost:.1e}; half precision itself {:.1e}", distance(&half, &double));
                assert!(lost > 1e-7 && lost < LOST, "{what}: {lost:e}");
                assert_same_bits(&found[2], first.get_or_insert_with(|| found[2].clone()), &what);
            }
        }
    }
}

/// Peers of a node have each other's numbers as they are.
#[test]
fn only_messages_are_rounded() {
    if !has_emulation() {
        return println!("skipped: an emulated GPU: this build has none");
    }
    let grid = [2, 1, 1, 2];
    let of = |transports: Transports| applied_on(grid, Choice::Emulated, &transports);
    let full = of(Halo::Staged.into());
    assert_same_bits(&of(rounded(Halo::Peer))[2], &full[2], "peers");
    let all = of(rounded(Halo::Staged));
    for between in [Halo::Staged, Halo::Nccl] {
        let nodes = Transports::within(&[0, 0, 2, 2], between);
        assert_same_bits(&of(nodes.clone())[2], &full[2], "nodes");
        let found = of(rounded(nodes));
        let lost = [&full, &all].map(|other| distance(&found[2], &other[2]));
        println!("nodes of two, {between}: {lost:?}");
        assert!(lost.iter().all(|lost| (1e-7..LOST).contains(lost)), "{lost:?}");
        assert_same_bits(&found[0], &full[0], "double");
    }
}

/// A solve with full and with rounded halos on every grid: residuals are true, iterations within a tenth.
fn compare(name: &str, solve: impl Fn(&Arc<Domain>) -> (Info, f64) + Sync) {
    for grid in [[1, 1, 1, 2], [2, 1, 1, 2]] {
        let [full, half] = [HaloPrecision::Full, HaloPrecision::Half].map(|precision| {
            let transports = Transports::from(Halo::Staged).with(precision);
            let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
                solve(&on_most_lanes_by(partition, comm, 1, transports.clone()))
            });
            found[0].1
        });
        println!("{name}, {grid:?}: {} iterations, rounded {}", full.0.iterations, half.0.iterations);
        for (info, found) in [&full, &half] {
            let close = (found - info.residual).abs() < 1e-3 * found + 1e-14;
            assert!(info.residual <= RESIDUAL && close, "{name}, {grid:?}: {found:e}, {info:?}");
            assert_eq!(info.fallbacks, 0, "{name}, {grid:?}: {info:?}");
        }
        let more = half.0.iterations as f64 / full.0.iterations as f64;
        assert!((more - 1.0).abs() <= 0.1, "{name}, {grid:?}: {full:?} and {half:?}");
        assert!(full.0.residual != half.0.residual, "{name}, {grid:?}: nothing was rounded");
    }
}

#[test]
fn solves_of_wilson_quarks_meet_their_residuals() {
    let gcr_dd = Method::GcrDd(GcrDd { k_max: 16, n_mr: 8, block: None });
    for (name, method) in [("CG", Method::CG), ("BiCGstab", Method::BICGSTAB), ("GCR-DD", gcr_dd)] {
        let settings = Settings { method, precisions: [D, H, H], delta: 0.1, max_iterations: 4000 };
        compare(name, |domain| {
            let mut quark = quark(domain);
            let b = quark.random(0);
            let (x, info) = quark.solve(settings, &b, RESIDUAL).unwrap();
            (info, quark.residual(&x, &b))
        });
    }
}

#[test]
fn solves_of_domain_walls_meet_their_residuals() {
    let weights = WallWeights::mobius(6, 1.5, 0.5);
    let p = DomainWallParams { weights, m5: 1.8, mass: [0.1; 2], boundary: Boundary::ANTIPERIODIC };
    compare("domain walls", |domain| {
        let links = ranks::links(thermalised(), domain.partition());
        let links = MatrixField::from_host(domain, &links).unwrap();
        let [mut double, mut half] = [D, H].map(|precision| {
            let mut operator = DomainWall::several(domain, precision, 12, 1, &p).unwrap();
            operator.update(&links).unwrap();
            operator
        });
        let [mut b, mut x, mut y, mut z] = [(); 4].map(|()| Spinor::of(domain, p.kind(), D, 1).unwrap());
        b.set_random(ODD, 1.0, RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(0) }).unwrap();
        let goal = Params { residual: RESIDUAL, max_iterations: 4000 };
        let mut cg = Cg::new(domain, p.kind(), H, 0.1).unwrap();
        let mut operators = Operators::new(&mut double, Some(&mut half));
        let info = cg.solve_shifted(&mut operators, 0.0, &mut x, &b, goal).unwrap();
        double.apply(&mut y, &x, Dagger::No).unwrap();
        double.apply(&mut z, &y, Dagger::Yes).unwrap();
        z.axpy(-1.0, &b).unwrap();
        let found = (z.norm2().unwrap().value() / b.norm2().unwrap().value()).sqrt();
        (info, found)
    });
}
