//! The gradient flow: steps that are chosen by their error, and the Zeuthen flow.

use super::ALONE;
use crate::devices::domains;
use crate::program::{Scratch, objects, parallel};
use crate::reference::data;
use crate::reference::gauge::Gauge;
use hmc::field::{Domain, HostLinks, LINK_REALS, MatrixField};
use hmc::lattice::coordinates;
use hmc::measure::{FlowKernel, flow};
use serde_json::Value;

/// As a flow of fine steps, at the same times; the same on ranks; rougher with a greater error.
#[test]
fn steps_by_their_error_are_as_good_as_fine_ones() {
    let Some(links) = data::find("configs/q844n1.openqcd") else { return };
    let links = links.to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let flow = |keys: &str, (ranks, grid, lanes): (usize, [usize; 4], usize)| -> Vec<Value> {
        let text = format!("[measure.flow]\nt_max = 2.0\n{keys}{}", parallel(grid, lanes, 1));
        let ended = scratch.measure(ranks, &text, &["--json", &links]);
        ended.succeeded();
        let [found] = &objects(&ended.out)[..] else { panic!("one configuration") };
        let points = found["flow"].as_array().unwrap().clone();
        points.into_iter().chain([found["t0"].clone()]).collect()
    };
    let one = (0, ALONE, 0);
    let fine = flow("step = 0.0025\nevery = 200\n", one);
    let mut before = f64::INFINITY;
    for error in ["1e-3", "1e-5", "1e-7"] {
        let keys = format!("step = 0.02\nevery = 25\nerror = {error}\n");
        let found = flow(&keys, one);
        assert_eq!(found, flow(&keys, (2, [1, 1, 1, 2], 1)));
        let mut worst = 0.0_f64;
        for (fine, found) in fine.iter().zip(&found).filter(|(fine, _)| fine.is_object()) {
            assert_eq!(fine["t"], found["t"]);
            for key in ["e_plaquette", "e_clover"] {
                let [fine, found] = [fine, found].map(|point| point[key].as_f64().unwrap());
                worst = worst.max((found / fine - 1.0).abs());
            }
        }
        println!("error {error}: E off by {worst:.1e} at most");
        assert!(worst < 0.3 * before && found.len() == 6, "{worst:e}");
        before = worst;
    }
    assert!(before < 1e-6, "{before:e}");
    let wrong = "[measure.flow]\nt_max = 2.0\nerror = 0.1\n";
    scratch.measure(0, wrong, &[&links]).failed(2, &["error: expected an error from 1e-12 to 1e-2"]);
}

/// A weak abelian wave with momentum (p, p, 0, 0) decays with the eigenvalue of the free kernel: p^ = 2 sin(p / 2),
/// lambda = 2 p^^2 of plaquettes, times 1 + p^^2 / 6 with rectangles, times 1 - p^^2 / 12 of the Zeuthen flow.
#[test]
fn a_wave_decays_as_the_free_kernels_say() {
    let extents = [8, 8, 4, 4];
    let domain = Domain::local(extents).unwrap();
    let p = std::f64::consts::TAU / 8.0;
    let mut links = HostLinks::unit(extents);
    for (at, link) in links.reals.chunks_exact_mut(LINK_REALS).enumerate() {
        let (site, mu) = (at / 4, at % 4);
        let [x, y, ..] = coordinates(extents, site);
        let sign = [1.0, -1.0, 0.0, 0.0][mu];
        let angle = 1e-3 * sign * (p * ((x + y) as f64 + 0.5)).cos();
        // exp(i angle diag(1, 0, -1))
        for (row, angle) in [(0, angle), (2, -angle)] {
            (link[8 * row], link[8 * row + 1]) = (angle.cos(), angle.sin());
        }
    }
    let links = MatrixField::from_host(&domain, &links).unwrap();
    let square = (2.0 * (0.5 * p).sin()).powi(2);
    let rectangles = 1.0 + square / 6.0;
    let free = [
        (FlowKernel::Wilson, 2.0 * square),
        (FlowKernel::Symanzik, 2.0 * square * rectangles),
        (FlowKernel::Zeuthen, 2.0 * square * rectangles * (1.0 - square / 12.0)),
    ];
    for (kernel, expected) in free {
        let points = flow(&links, kernel, 0.02, 1.0, 50, &|| false).unwrap();
        let found = 0.5 * (points[0].e_plaquette / points[1].e_plaquette).ln();
        assert!((found / expected - 1.0).abs() < 1e-5, "{kernel:?}: {found} {expected}");
    }
}

/// The Zeuthen flow has the same bits on lanes, an emulated GPU and ranks.
#[test]
fn the_zeuthen_flow_is_the_same_everywhere() {
    let extents = [4, 4, 4, 8];
    let links = Gauge::warm(extents, 0.6, 31).to_host();
    let energies = domains(extents).into_iter().map(|domain| {
        let links = MatrixField::from_host(&domain, &links).unwrap();
        let points = flow(&links, FlowKernel::Zeuthen, 0.02, 0.2, 5, &|| false).unwrap();
        points
            .iter()
            .flat_map(|point| [point.e_plaquette, point.e_clover, point.q].map(f64::to_bits))
            .collect()
    });
    let energies: Vec<Vec<u64>> = energies.collect();
    assert!(energies.windows(2).all(|pair| pair[0] == pair[1]), "{energies:?}");
    let Some(links) = data::find("configs/q844n1.openqcd") else { return };
    let scratch = Scratch::new();
    let measured = |ranks, grid| {
        let text = format!("[measure.flow]\nkernel = \"zeuthen\"\nt_max = 0.2\n{}", parallel(grid, 0, 1));
        let ended = scratch.measure(ranks, &text, &["--json", links.to_str().unwrap()]);
        ended.succeeded();
        ended.out
    };
    assert_eq!(measured(0, ALONE), measured(2, [2, 1, 1, 1]));
    let walls = "[lattice]\ntime_boundary = \"open\"\n[measure.flow]\nkernel = \"zeuthen\"\nt_max = 0.2\n";
    scratch.measure(0, walls, &[links.to_str().unwrap()]).failed(2, &["not defined at walls"]);
}
