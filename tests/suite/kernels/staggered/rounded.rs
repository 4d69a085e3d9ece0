//! Halos in half precision that are rounded in messages: what D loses by it, and solves that meet their residuals.

use super::*;
use hmc::comm::Comm;
use hmc::device::lane_counts;
use hmc::field::{EVEN, Halo, HaloPrecision, ODD, Transports};
use hmc::solver::{Cg, Info, Operators, Params};

const EXTENTS: Extents = [8, 4, 8, 8];
const GRIDS: [Extents; 3] = [[1, 1, 1, 2], [2, 1, 1, 1], [2, 1, 1, 2]];
const RESIDUAL: f64 = 1e-10;

fn domain_by(choice: Choice, partition: Partition, comm: Arc<dyn Comm>, how: HaloPrecision) -> Arc<Domain> {
    choice.domain_by(partition, comm, Transports::from(Halo::Staged).with(how))
}

/// D of four fields at once and of one, on a rank.
fn hops(domain: &Arc<Domain>, links: &Links, precision: Precision, whole: &[Vec<f64>]) -> Vec<f64> {
    let own: Vec<_> = whole.iter().map(|whole| ranks::part(whole, domain.partition(), 6)).collect();
    let mut all = Vec::new();
    for fields in [1, 4] {
        let mut operator = links.operator(domain, (precision, 14), fields, BOUNDARY);
        let load: Vec<_> = own[..fields].iter().map(|x| upload(domain, precision, ODD, x)).collect();
        let mut out = Spinor::of(domain, Kind::Colour, precision, fields).unwrap();
        operator.hop(&mut out, &joined(&load), EVEN, 0.9, None).unwrap();
        all.extend((0..fields).flat_map(|n| download(&taken(&out, n), EVEN)));
    }
    all
}

/// A colour vector's norm is its own, so each is off by half a step of its greatest real, as in storage.
#[test]
fn hops_lose_what_storage_loses_and_all_devices_have_the_same_bits() {
    let links = Links::random(EXTENTS, 21);
    let whole: Vec<_> = (0..4).map(|n| reals(&plain::random_field(EXTENTS, 60 + n))).collect();
    for grid in GRIDS {
        let first_box = Partition::new(EXTENTS, grid, volume(grid), 0).unwrap();
        let of = |choice, how, precision| -> Vec<f64> {
            let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
                hops(&domain_by(choice, partition, comm, how), &links, precision, &whole)
            });
            found.into_iter().flat_map(|(_, found)| found).collect()
        };
        let mut first: Option<Vec<f64>> = None;
        for choice in choices_of(&first_box) {
            let what = format!("{grid:?}, {choice:?}");
            for precision in [D, S] {
                let [full, half] =
                    [HaloPrecision::Full, HaloPrecision::Half].map(|how| of(choice, how, precision));
                assert_same_bits(&half, &full, &what);
            }
            let [full, half] = [HaloPrecision::Full, HaloPrecision::Half].map(|how| of(choice, how, H));
            let lost = distance(&half, &full);
            println!("{what}: {lost:.1e}");
            assert!(lost > 1e-7 && lost < 2.0 * HALF_STEP, "{what}: {lost:e}");
            assert_same_bits(&half, first.get_or_insert_with(|| half.clone()), &what);
        }
    }
}

/// Conjugate gradients on a rank, and the true residual by the operator in double.
fn solve(domain: &Arc<Domain>, links: &Links) -> (Info, f64) {
    let [mut double, mut half] =
        [(D, 18), (H, 14)].map(|storage| links.operator(domain, storage, 1, plain::ANTIPERIODIC));
    let whole = reals(&plain::random_field(EXTENTS, 5));
    let b = upload(domain, D, EVEN, &ranks::part(&whole, domain.partition(), 6));
    let [mut x, mut y, mut z] = [(); 3].map(|()| colour(domain, D));
    let shift = 0.04;
    let mut cg = Cg::new(domain, Kind::Colour, H, 0.1).unwrap();
    let goal = Params { residual: RESIDUAL, max_iterations: 4000 };
    let mut operators = Operators::new(&mut double, Some(&mut half));
    let info = cg.solve_shifted(&mut operators, shift, &mut x, &b, goal).unwrap();
    double.hop(&mut y, &x, ODD, 1.0, None).unwrap();
    double.hop(&mut z, &y, EVEN, -1.0, Some((shift, &x))).unwrap();
    z.axpy(-1.0, &b).unwrap();
    let found = (z.norm2().unwrap().value() / b.norm2().unwrap().value()).sqrt();
    (info, found)
}

#[test]
fn solves_meet_their_residuals() {
    let links = Links::smooth(EXTENTS, 0.3, 31);
    let lanes = Choice::Lanes(lane_counts()[0]);
    for grid in GRIDS {
        let [full, half] = [HaloPrecision::Full, HaloPrecision::Half].map(|how| {
            let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
                solve(&domain_by(lanes, partition, comm, how), &links)
            });
            found[0].1
        });
        println!("{grid:?}: {} iterations, rounded {}", full.0.iterations, half.0.iterations);
        for (info, found) in [&full, &half] {
            let close = (found - info.residual).abs() < 1e-2 * found + 1e-14;
            assert!(info.residual <= RESIDUAL && close, "{grid:?}: {found:e}, {info:?}");
            assert_eq!(info.fallbacks, 0, "{grid:?}: {info:?}");
        }
        let more = half.0.iterations as f64 / full.0.iterations as f64;
        assert!((more - 1.0).abs() <= 0.1, "{grid:?}: {full:?} and {half:?}");
        assert!(full.0.residual != half.0.residual, "{grid:?}: nothing was rounded");
    }
}
