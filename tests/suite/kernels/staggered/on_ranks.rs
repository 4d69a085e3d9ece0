//! The same bits on any ranks: D and sums, in every storage, of single fields and of several.

use super::*;
use crate::devices::on_one_lane;
use hmc::field::{EVEN, ODD};

/// What of D must not depend on the cut: for each storage and number of fields, D chi and a sum over it.
struct Results {
    fields: Vec<Vec<f64>>,
    sums: Vec<f64>,
}

fn results(domain: &Arc<Domain>, links: &Links, whole: &[Vec<f64>]) -> Results {
    let mut all = Results { fields: Vec::new(), sums: Vec::new() };
    let own: Vec<_> = whole.iter().map(|whole| ranks::part(whole, domain.partition(), 6)).collect();
    for storage in Precision::ALL.into_iter().flat_map(|p| LONG_REALS.map(|r| (p, r))) {
        for fields in [1, 4] {
            let mut operator = links.operator(domain, storage, fields, BOUNDARY);
            for parity in [EVEN, ODD] {
                let load =
                    |parity| -> Vec<_> { own.iter().map(|x| upload(domain, storage.0, parity, x)).collect() };
                let (input, x) = (joined(&load(1 - parity)[..fields]), joined(&load(parity)[..fields]));
                let mut out = Spinor::of(domain, Kind::Colour, storage.0, fields).unwrap();
                // Twice, for ghost zones come in turns.
                for shift in [0.2, 0.3] {
                    operator.hop(&mut out, &input, parity, 0.9, Some((shift, &x))).unwrap();
                }
                all.fields.extend((0..fields).map(|n| download(&taken(&out, n), parity)));
                all.sums.extend(out.dot_each(&x).unwrap());
            }
        }
    }
    all
}

fn same_on(extents: Extents, grids: &[[usize; 4]]) {
    let links = Links::random(extents, 21);
    let whole: Vec<_> = (0..4).map(|n| reals(&plain::random_field(extents, 60 + n))).collect();
    let one = on_one_lane(extents);
    let expected = results(&one, &links, &whole);
    for &grid in grids {
        let size = volume(grid);
        let partition = |rank| Partition::new(extents, grid, size, rank).unwrap();
        for choice in choices_of(&partition(0)) {
            let found = ranks::run(size, |comm| {
                let domain = choice.domain(partition(comm.rank()), comm);
                (results(&domain, &links, &whole), domain.lanes())
            });
            println!("{extents:?} on {grid:?}: {choice:?} as {:?}", found[0].1.0);
            for (rank, (found, _)) in found.iter().enumerate() {
                let what = format!("grid {grid:?}, {choice:?}, rank {rank}");
                assert_same_bits(&found.sums, &expected.sums, &format!("{what}: sums"));
                for (n, (found, expected)) in found.fields.iter().zip(&expected.fields).enumerate() {
                    let expected = ranks::part(expected, &partition(rank), 6);
                    assert_same_bits(found, &expected, &format!("{what}: field {n}"));
                }
            }
        }
    }
}

#[test]
fn boxes_of_four_and_more_have_the_same_bits() {
    same_on([8, 4, 8, 8], &[[1; 4], [1, 1, 1, 2], [2, 1, 1, 1], [2, 1, 1, 2]]);
    same_on([4, 8, 8, 4], &[[1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1]]);
    same_on([8, 8, 2, 8], &[[2, 2, 1, 2]]);
    // Some sites are of no boundary.
    same_on([4, 4, 4, 16], &[[1, 1, 1, 2]]);
}

/// Where other directions are too thin, lanes split cut ones: some hops over the edge of a lane's box then end in this
/// rank, some in another.
#[test]
fn cut_directions_split_over_lanes_have_the_same_bits() {
    same_on([2, 2, 2, 64], &[[1, 1, 1, 2], [1, 1, 1, 4]]);
    same_on([64, 2, 2, 2], &[[2, 1, 1, 1]]);
    same_on([2, 16, 16, 2], &[[1, 2, 2, 1], [1, 2, 1, 1]]);
}

/// The thinnest box that D takes in a cut direction is four layers.
#[test]
fn thin_boxes_do_not_fit() {
    let cut = [false, false, false, true];
    for (local, thick) in [([4, 4, 4, 4], true), ([4, 4, 4, 2], false), ([2, 2, 2, 4], true)] {
        assert_eq!(LaneGrid([1; 4]).is_thick(local, cut, REACH), thick, "{local:?}");
    }
    let split = LaneGrid::choose([2, 2, 2, 8], cut, 4).unwrap();
    assert!(!split.is_thick([2, 2, 2, 8], cut, REACH), "{split:?}");
}
