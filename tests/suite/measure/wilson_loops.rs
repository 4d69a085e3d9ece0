//! Wilson loops: products along paths, plaquettes and rectangles, gauge invariance, the same bits on any ranks, lanes and
//! device.

use crate::devices;
use crate::devices::{on_lanes, on_one_lane};
use crate::ranks;
use crate::reference::gauge::{Gauge, Step, random_transformation};
use hmc::field::{Domain, HostLinks, MatrixField};
use hmc::lattice::{coordinates, site, volume};
use hmc::measure::wilson_loops;
use hmc::operator::GaugeLoops;
use std::sync::Arc;

fn loops(domain: &Arc<Domain>, links: &HostLinks, longest: [usize; 2]) -> Vec<Vec<f64>> {
    let links = MatrixField::from_host(domain, links).unwrap();
    wilson_loops(&links, longest, &|| false).unwrap()
}

fn path(mu: usize, r: usize, t: usize) -> Vec<Step> {
    [vec![(mu, 1); r], vec![(3, 1); t], vec![(mu, -1); r], vec![(3, -1); t]].concat()
}

/// Up to loops that wind around the lattice.
#[test]
fn loops_are_products_along_paths() {
    let extents = [4, 2, 6, 4];
    let links = Gauge::random(extents, 7);
    let found = loops(&on_one_lane(extents), &links.to_host(), [3, 5]);
    for (r, row) in (1..).zip(&found) {
        for (t, found) in (1..).zip(row) {
            let expected = links.mean_loop(&[0, 1, 2].map(|mu| path(mu, r, t)));
            // Rounding of some dozens of products.
            assert!((found - expected).abs() < 1e-14, "{r} {t}: {found} is not {expected}");
        }
    }
    assert!(wilson_loops(&MatrixField::new(&on_one_lane(extents), 4).unwrap(), [1, 1], &|| true).is_err());
}

/// The lattice with direction mu called `order[mu]`.
fn renamed(links: &Gauge, order: [usize; 4]) -> Gauge {
    let extents = std::array::from_fn(|mu| links.extents[order[mu]]);
    let from = |s: usize| {
        let (x, mut y) = (coordinates(extents, s), [0; 4]);
        (0..4).for_each(|mu| y[order[mu]] = x[mu]);
        &links.links[site(links.extents, y)]
    };
    let links = (0..volume(extents)).map(|s| order.map(|mu| from(s)[mu])).collect();
    Gauge { extents, links }
}

/// With each direction as time once, every plane comes twice and every rectangle twice.
#[test]
fn small_loops_are_plaquettes_and_rectangles() {
    let links = Gauge::warm([4, 6, 4, 8], 0.6, 2);
    let field = MatrixField::from_host(&on_one_lane(links.extents), &links.to_host()).unwrap();
    let traces = GaugeLoops::traces(&field).unwrap();
    let (mut plaquette, mut rectangle) = (0.0, 0.0);
    for order in [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0]] {
        let turned = renamed(&links, order);
        let found = loops(&on_one_lane(turned.extents), &turned.to_host(), [2, 2]);
        plaquette += found[0][0] / 4.0;
        rectangle += (found[0][1] + found[1][0]) / 8.0;
        if order[3] == 3 {
            assert!((found[0][0] - traces.plaquette_time).abs() < 1e-14);
        }
    }
    assert!((plaquette - traces.plaquette()).abs() < 1e-14, "{plaquette}");
    assert!((rectangle - traces.rectangle).abs() < 1e-14, "{rectangle}");
}

#[test]
fn loops_are_gauge_invariant() {
    let links = Gauge::random([4, 4, 2, 6], 5);
    let turned = links.transformed(&random_transformation(links.extents, 8));
    let domain = on_one_lane(links.extents);
    let [a, b] = [&links, &turned].map(|links| loops(&domain, &links.to_host(), [2, 3]));
    let worst = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-14, "{worst:e}");
}

#[test]
fn ranks_lanes_and_devices_have_the_same_bits() {
    let extents = [4, 8, 4, 8];
    let links = Gauge::warm(extents, 0.7, 4).to_host();
    let longest = [3, 5];
    let expected = loops(&on_one_lane(extents), &links, longest);
    for domain in devices::domains(extents) {
        assert_eq!(loops(&domain, &links, longest), expected, "{}", domain.device().backend().name());
    }
    for grid in [[1, 1, 1, 2], [2, 1, 1, 1], [1, 2, 1, 2]] {
        let found = ranks::on_grid(extents, grid, |partition, comm| {
            let lanes = if grid[0] == 2 { 1 } else { 4 };
            loops(&on_lanes(lanes, partition, comm, 1), &ranks::links(&links, &partition), longest)
        });
        assert!(found.iter().all(|(_, found)| *found == expected), "grid {grid:?}");
    }
}
