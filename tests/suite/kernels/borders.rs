//! Filled borders hold the neighbours' matrices, corners too, as deep as was asked and no deeper, on ranks cut in any
//! directions and on any lanes.

use crate::ranks;
use hmc::comm::Comm;
use hmc::device::{Cpu, Device, lane_counts};
use hmc::field::{Domain, Halo, LINK_REALS, MatrixField};
use hmc::lattice::{Extents, Partition, coordinates, site, volume};
use std::sync::Arc;

/// What no matrix holds.
const UNTOUCHED: f64 = -1.0;

/// A real of the matrix of a site of the lattice.
fn value(global: usize, block: usize, real: usize) -> f64 {
    ((global * 8 + block) * LINK_REALS + real) as f64
}

/// Calls `visit` with every real of a field of `blocks`, its site of the lattice, how many layers out it lies, block
/// and number. A CPU's layout: `[parity][site][block][real][lane]`, x fastest and halved.
fn visit(
    field: &mut MatrixField,
    blocks: usize,
    mut visit: impl FnMut(&mut f64, usize, usize, usize, usize),
) {
    let domain = Arc::clone(field.domain());
    let (partition, lanes) = (*domain.partition(), domain.lanes().0);
    let (outer, border) = (domain.outer(), domain.border());
    let whole: Extents = std::array::from_fn(|mu| outer[mu] + 2 * border[mu]);
    let width = volume(lanes);
    let reals = field.host_mut().expect("a CPU's memory is the host's");
    for place in 0..volume(whole) {
        let at = coordinates(whole, place);
        let parity = (0..4).map(|mu| at[mu] + border[mu]).sum::<usize>() % 2;
        let index = parity * volume(whole) / 2 + place / 2;
        let out = (0..4).map(|mu| {
            let (first, end) = (border[mu], border[mu] + outer[mu]);
            first.saturating_sub(at[mu]).max((at[mu] + 1).saturating_sub(end))
        });
        let depth = out.max().unwrap();
        for lane in 0..width {
            let box_at = coordinates(lanes, lane);
            let there = std::array::from_fn(|mu| {
                let extent = partition.global[mu];
                (partition.offset()[mu] + box_at[mu] * outer[mu] + at[mu] + extent - border[mu]) % extent
            });
            let global = site(partition.global, there);
            for block in 0..blocks {
                for real in 0..LINK_REALS {
                    let n = ((index * blocks + block) * LINK_REALS + real) * width + lane;
                    visit(&mut reals[n], global, depth, block, real);
                }
            }
        }
    }
}

/// Fills, and counts the reals that are not what they should be.
fn wrong(domain: &Arc<Domain>, blocks: usize, layers: usize) -> usize {
    let mut field = MatrixField::new(domain, blocks).unwrap();
    visit(&mut field, blocks, |x, global, depth, block, real| {
        *x = if depth == 0 { value(global, block, real) } else { UNTOUCHED };
    });
    let border = domain.border().into_iter().max().unwrap();
    if layers == border { field.fill_borders() } else { field.fill_borders_to(layers) }.unwrap();
    let mut wrong = 0;
    visit(&mut field, blocks, |x, global, depth, block, real| {
        let right = if depth <= layers { value(global, block, real) } else { UNTOUCHED };
        wrong += usize::from(*x != right);
    });
    wrong
}

fn check(global: Extents, grid: Extents, lanes: usize, border: usize) {
    if !lane_counts().contains(&lanes) {
        return;
    }
    let failures = ranks::run(volume(grid), |comm: Arc<dyn Comm>| {
        let partition = Partition::new(global, grid, comm.size(), comm.rank()).unwrap();
        let device = Device::new(Cpu::new(lanes).unwrap());
        let domain = Domain::new(partition, device, comm, border, Halo::Staged).unwrap();
        // Wires grow, are shared by fields of other kinds, and are used again.
        let mut fills = vec![(1, 1), (3, 1), (1, border), (2, border), (1, 1)];
        fills.extend((0..=border).map(|layers| (1, layers)));
        fills.into_iter().map(|(blocks, layers)| wrong(&domain, blocks, layers)).collect::<Vec<_>>()
    });
    let all = failures.concat();
    assert!(all.iter().all(|n| *n == 0), "{global:?} on {grid:?}, {lanes} lanes, {border} layers: {all:?}");
}

#[test]
fn one_direction_cut() {
    for mu in 0..4 {
        for ranks in [2, 3] {
            let grid = std::array::from_fn(|nu| if nu == mu { ranks } else { 1 });
            let global = std::array::from_fn(|nu| if nu == mu { 4 * ranks } else { 4 });
            for border in 1..=3 {
                check(global, grid, 1, border);
                check(global, grid, 8, border);
            }
        }
    }
}

#[test]
fn some_directions_cut() {
    for grid in [[2, 2, 1, 1], [1, 3, 1, 2], [2, 1, 2, 2], [1, 2, 2, 1]] {
        for border in 1..=3 {
            check(grid.map(|ranks| 4 * ranks), grid, 1, border);
        }
    }
    // Lanes in cut directions too.
    check([8, 16, 4, 8], [1, 2, 1, 2], 8, 3);
    check([4, 8, 8, 16], [1, 1, 2, 2], 8, 3);
    check([8, 4, 8, 8], [2, 1, 1, 2], 8, 2);
}

#[test]
fn all_directions_cut() {
    check([4; 4], [2; 4], 1, 2);
    check([8; 4], [2; 4], 1, 3);
    check([8; 4], [2; 4], 8, 2);
    check([8, 8, 8, 16], [2; 4], 8, 1);
}

#[test]
fn nothing_cut() {
    check([4; 4], [1; 4], 1, 2);
    check([4, 4, 4, 8], [1; 4], 8, 2);
}
