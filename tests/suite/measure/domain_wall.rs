//! Measurements of domain-wall quarks: Grid's numbers, dense matrices of the plain reference, the Ward identity, gauge
//! covariance and translations, the same bits on any ranks and lanes, and the program that measures them.

use super::{Measured, keys, numbers};
use crate::compare::distance;
use crate::devices::{domain, on_most_lanes, on_one_lane};
use crate::ranks;
use crate::reference::data;
use crate::reference::domain_wall::{self as plain, Field, Wall};
use crate::reference::gauge::{Gauge, random_transformation};
use crate::reference::su3;
use crate::reference::wilson::{Spinor, axpy, random_field, reals};
use crate::terms::{listed_weights, whole};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{DomainWallParams, WallQuark};
use hmc::field::{Domain, EVEN, HostLinks, MatrixField, ODD};
use hmc::io;
use hmc::lattice::{Boundary, Extents, Partition, coordinates, site, volume};
use hmc::math::WallWeights;
use hmc::measure::{CondensateMean, Correlators, Noise, Source, condensate, correlators};
use hmc::quark::{Inverse, QuarkParams, fields};
use hmc::solver::{Past, Settings};
use std::sync::Arc;

const ANTIPERIODIC: [f64; 4] = [0.0, 0.0, 0.0, 1.0];
const TWISTED: [f64; 4] = [0.1, -0.3, 0.5, 0.8];
const SPECTRUM: [f64; 2] = [0.1, 6.2];

fn in_double(operator: &DomainWallParams) -> QuarkParams<DomainWallParams> {
    QuarkParams::in_double(operator.clone(), 5000)
}

fn params(weights: WallWeights, m5: f64, mass: f64, boundary: [f64; 4]) -> DomainWallParams {
    DomainWallParams { weights, m5, mass: [mass; 2], boundary: Boundary::phases(boundary) }
}

/// Each kind of weights, an odd number of slices, and those that a reflection changes.
fn cases() -> [(&'static str, DomainWallParams); 6] {
    [
        ("Shamir 4", params(WallWeights::shamir(4), 1.8, 0.1, ANTIPERIODIC)),
        ("Mobius 5", params(WallWeights::mobius(5, 1.5, 0.5), 1.6, 0.05, TWISTED)),
        ("Borici 4", params(WallWeights::borici(4), 1.4, 0.0, ANTIPERIODIC)),
        ("symmetric 6", params(WallWeights::symmetric_optimal(6, SPECTRUM), 1.3, 0.2, TWISTED)),
        ("optimal 5", params(WallWeights::optimal(5, SPECTRUM), 1.8, 0.1, TWISTED)),
        ("listed 5", params(listed_weights(5, 0.6), 1.5, 0.1, ANTIPERIODIC)),
    ]
}

/// The greatest relative error.
fn worst(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max)
}

/// Residuals of 1e-13, squares of which are summed: Grid's were 1e-12 or smaller, times a condition number below 10^3.
#[test]
fn grid_pions_and_midpoints() {
    let Some(path) = data::find("configs/q844n1.openqcd") else { return };
    let partition = Partition::whole(io::header(&path).unwrap().extents).unwrap();
    let (links, _) = io::read_links(&path, &partition, &Solo).unwrap();
    let links = whole(&links);
    for (name, weights) in
        [("b1.0_c0.0", WallWeights::shamir(8)), ("b1.5_c0.5", WallWeights::mobius(8, 1.5, 0.5))]
    {
        let Some(table) = data::find(&format!("grid_dwf/dwf_q844n1_Ls8_m0.1_M51.8_{name}_bc-1.txt")) else {
            continue;
        };
        let peer = |key: &str| data::grid_correlator(&table, key);
        let quark = params(weights, 1.8, 0.1, ANTIPERIODIC);
        let mut quark = WallQuark::new(&links, &in_double(&quark), 1e-13).unwrap();
        let found = correlators(&mut quark, Source::Point([0; 4]), &|| false).unwrap();
        let midpoint = found.midpoint.as_ref().unwrap();
        let errors = [worst(&found.pion, &peer("PION")), worst(midpoint, &peer("J5Q"))];
        println!("{name}: greatest error of the pion {:.1e}, of J5q {:.1e}", errors[0], errors[1]);
        assert!(errors.iter().all(|error| *error < 1e-10), "{name}: {errors:?}");
        let mass = found.residual_mass().unwrap();
        let ratio: Vec<f64> = peer("J5Q").iter().zip(peer("PION")).map(|(j, p)| j / p).collect();
        assert!(worst(&mass.ratio, &ratio) < 1e-10);
        assert!((mass.mean - ratio[2..=6].iter().sum::<f64>() / 5.0).abs() < 1e-10 * mass.mean);
    }
}

fn wall<'a>(links: &'a Gauge, p: &DomainWallParams) -> Wall<'a> {
    Wall::new(links, [&p.weights.omega, &p.weights.sigma], p.m5, p.mass, p.boundary.theta())
}

/// P_+ `upper` + P_- `lower`.
fn chiral(upper: &[Spinor], lower: &[Spinor]) -> Vec<Spinor> {
    upper.iter().zip(lower).map(|(u, l)| [u[0], u[1], l[2], l[3]]).collect()
}

/// `D^-1 D_- (P_+ b on the first slice, P_- b on the last)`, by elimination.
fn solved(wall: &Wall, p: &DomainWallParams, b: &[Spinor]) -> Field {
    let (slices, sites) = (wall.slices(), b.len());
    let zero = vec![[[su3::ZERO; 3]; 4]; sites];
    let mut walls = vec![zero.clone(); slices];
    walls[0] = chiral(b, &zero);
    walls[slices - 1] = chiral(&zero, b);
    let kernel = wall.kernel(&walls);
    let rhs: Field = (0..slices).map(|s| axpy(&walls[s], -p.weights.sigma[s], &kernel[s])).collect();
    let all: Vec<usize> = (0..12 * sites * slices).collect();
    let matrix = plain::matrix_of(&all, [slices, sites], |psi| wall.apply(psi));
    let (_, x) = plain::eliminate(matrix, plain::flat(&rhs).into_iter().map(|z| vec![z]).collect());
    plain::shaped(&x.concat(), slices)
}

/// q_k.
fn at_place(x: &Field, k: usize) -> Vec<Spinor> {
    chiral(&x[(k + x.len() - 1) % x.len()], &x[k])
}

fn host(field: &hmc::quark::Fields, length: usize) -> Vec<f64> {
    let mut reals = vec![0.0; length];
    for parity in [EVEN, ODD] {
        field[parity][0].write_host(parity, &mut reals).unwrap();
    }
    reals
}

/// The quark and both fields at the midpoint, from a random source on all sites; from the walls to the walls both orders
/// of the weights are the same.
#[test]
fn propagators_are_those_of_dense_matrices() {
    let extents = [2, 2, 2, 2];
    let links = Gauge::warm(extents, 0.5, 7);
    let field = whole(&links.to_host());
    let b = random_field(extents, 31);
    for (name, p) in cases() {
        let mut quark = WallQuark::new(&field, &in_double(&p), 1e-13).unwrap();
        let domain = Arc::clone(quark.domain());
        let [mut rhs, mut x] = [(); 2].map(|()| fields(&domain, quark.kind(), 1).unwrap());
        for parity in [EVEN, ODD] {
            rhs[parity][0].read_host(parity, &reals(&b)).unwrap();
        }
        quark.solve(&mut x, &rhs).unwrap();
        let [there, back] = quark.midpoint(&rhs).unwrap().unwrap();

        let n_s = p.slices();
        let reversed = |w: &[f64]| w.iter().rev().copied().collect();
        let weights = WallWeights { omega: reversed(&p.weights.omega), sigma: reversed(&p.weights.sigma) };
        let turned = DomainWallParams { weights, ..p.clone() };
        let [expected, other] = [&p, &turned].map(|p| solved(&wall(&links, p), p, &b));
        for (what, found, expected) in [
            ("walls", &x, at_place(&expected, 0)),
            ("walls, reversed", &x, at_place(&other, 0)),
            ("midpoint", &there, at_place(&expected, n_s / 2)),
            ("midpoint, reversed", &back, at_place(&other, n_s - n_s / 2)),
        ] {
            let expected = reals(&expected);
            let error = distance(&host(found, expected.len()), &expected);
            println!("{name}, {what}: {error:.1e}");
            // The residual times a condition number below 10^3.
            assert!(error < 1e-11, "{name}, {what}: {error:e}");
        }
    }
}

/// The solver that the input gives the quark, in low precision and with few reals per link, has the same propagators.
#[test]
fn low_precision_has_the_same_propagators() {
    let field = whole(&Gauge::warm([4, 4, 2, 8], 0.4, 9).to_host());
    let (name, operator) = &cases()[0];
    let of = |solver, link_reals| {
        let params = QuarkParams { operator: operator.clone(), solver, link_reals, guess: Past::NONE };
        let mut quark = WallQuark::new(&field, &params, 1e-12).unwrap();
        correlators(&mut quark, Source::Point([3, 0, 1, 5]), &|| false).unwrap()
    };
    let expected = of(Settings::cg(Precision::Double, 5000), 18);
    for (precision, link_reals) in [(Precision::Single, 12), (Precision::Half, 8)] {
        let found = of(Settings::cg(precision, 5000), link_reals);
        let pairs = found.pion.iter().zip(&expected.pion);
        let error = pairs.map(|(found, expected)| (found / expected - 1.0).abs()).fold(0.0, f64::max);
        println!("{name}, {precision}: {error:.1e}");
        // The residual times a condition number below 10^3, where the correlator has fallen to a hundredth.
        assert!(error < 1e-7, "{name}, {precision}: {error:e}");
    }
}

/// Re tr q(0), of a point source.
fn trace_at(quark: &mut dyn Inverse, extents: Extents, source: Extents) -> f64 {
    let domain = Arc::clone(quark.domain());
    let at = 24 * site(extents, source);
    (0..12)
        .map(|component| {
            let [mut b, mut x] = [(); 2].map(|()| fields(&domain, quark.kind(), 1).unwrap());
            let mut unit = vec![0.0; 24 * volume(extents)];
            unit[at + 2 * component] = 1.0;
            for parity in [EVEN, ODD] {
                b[parity][0].read_host(parity, &unit).unwrap();
            }
            quark.solve(&mut x, &b).unwrap();
            host(&x, unit.len())[at + 2 * component]
        })
        .sum()
}

/// `sum_t <J5q P>(t) + m sum_t <P P>(t) = Re tr q(0)` on one configuration, for all weights.
#[test]
fn ward_identity() {
    let (extents, source) = ([4, 4, 2, 8], [3, 0, 1, 5]);
    let field = whole(&Gauge::warm(extents, 0.4, 9).to_host());
    for (name, p) in cases() {
        let mut quark = WallQuark::new(&field, &in_double(&p), 1e-13).unwrap();
        let found = correlators(&mut quark, Source::Point(source), &|| false).unwrap();
        let [pion, midpoint]: [f64; 2] = [found.pion.iter().sum(), found.midpoint.unwrap().iter().sum()];
        let trace = trace_at(&mut quark, extents, source);
        let error = ((midpoint + p.mass[0] * pion) / trace - 1.0).abs();
        println!(
            "{name}: J5q {midpoint:.12}, m pion {:.12}, trace {trace:.12}, error {error:.1e}",
            p.mass[0] * pion
        );
        assert!(error < 1e-11, "{name}: {error:e}");
    }
}

/// The links moved by `d`.
fn moved(links: &Gauge, d: Extents) -> Gauge {
    let extents = links.extents;
    let from = |s: usize| {
        let x = coordinates(extents, s);
        site(extents, std::array::from_fn(|mu| (x[mu] + extents[mu] - d[mu]) % extents[mu]))
    };
    Gauge { extents, links: (0..volume(extents)).map(|s| links.links[from(s)]).collect() }
}

/// A gauge transformation, and a move by an odd number of sites that takes the source along.
#[test]
fn correlators_are_invariant() {
    let extents = [4, 4, 2, 6];
    let links = Gauge::warm(extents, 0.5, 12);
    let transformed = links.transformed(&random_transformation(extents, 5));
    let optimal = params(WallWeights::optimal(6, SPECTRUM), 1.4, 0.1, ANTIPERIODIC);
    let of = |links: &Gauge, source: Extents| {
        let mut quark = WallQuark::new(&whole(&links.to_host()), &in_double(&optimal), 1e-13).unwrap();
        correlators(&mut quark, Source::Point(source), &|| false).unwrap()
    };
    let expected = of(&links, [1, 2, 0, 4]);
    let there = of(&moved(&links, [2, 3, 1, 5]), [3, 1, 1, 3]);
    for (name, found) in [("transformed", of(&transformed, [1, 2, 0, 4])), ("moved", there)] {
        let midpoint = worst(found.midpoint.as_ref().unwrap(), expected.midpoint.as_ref().unwrap());
        let errors = [worst(&found.pion, &expected.pion), midpoint];
        println!("{name}: {:.1e} {:.1e}", errors[0], errors[1]);
        assert!(errors.iter().all(|error| *error < 1e-9), "{name}: {errors:?}");
    }
}

fn results(domain: &Arc<Domain>, links: &HostLinks) -> Vec<(Correlators, CondensateMean)> {
    let links = MatrixField::from_host(domain, links).unwrap();
    let noise = Noise { seed: 5, trajectory: 3 };
    let of = |weights| {
        let mut quark =
            WallQuark::new(&links, &in_double(&params(weights, 1.8, 0.1, TWISTED)), 1e-8).unwrap();
        let correlators = correlators(&mut quark, Source::Point([3, 2, 1, 5]), &|| false).unwrap();
        (correlators, condensate(&mut quark, 2, noise, &|| false).unwrap())
    };
    vec![of(WallWeights::mobius(4, 1.5, 0.5)), of(WallWeights::optimal(4, SPECTRUM))]
}

#[test]
fn ranks_and_lanes_have_the_same_bits() {
    let extents = [4, 4, 4, 8];
    let links = Gauge::warm(extents, 0.5, 19).to_host();
    let expected = results(&on_one_lane(extents), &links);
    let lanes = domain(extents);
    println!("{} lanes", lanes.lanes().count());
    assert_eq!(results(&lanes, &links), expected, "lanes");
    for grid in [[1, 1, 1, 2], [1, 2, 1, 1]] {
        let found = ranks::on_grid(extents, grid, |partition, comm| {
            results(&on_most_lanes(partition, comm, 2), &ranks::links(&links, &partition))
        });
        assert!(found.iter().all(|(_, found)| *found == expected), "grid {grid:?}");
    }
}

/// A short chain with domain-wall quarks, measured on the way.
const RUN: &str = r#"[run]
name = "chain"
seed = 3
trajectories = 1
thermalisation = 1
start = "cold"
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 6.0
[fermion.light]
action = "domain-wall"
weights = "shamir"
n_s = 4
m5 = 1.8
mass = 0.5
[fermion.light.stout]
steps = 1
rho = 0.1
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge", "light"]
[measure.correlator.pion]
fermion = "light"
source = [1, 2, 3, 4]
"#;

const MEASURE: &str = r#"[measure.correlator.pion]
fermion = "light"
source = [1, 2, 3, 4]
[measure.correlator.lighter]
fermion = "light"
mass = 0.1
[measure.correlator.optimal]
fermion = "optimal"
[measure.condensate.light]
fermion = "light"
mass = 0.1
[fermion.light]
action = "domain-wall"
weights = "shamir"
n_s = 4
m5 = 1.8
mass = 0.5
[fermion.light.stout]
steps = 1
rho = 0.1
[fermion.optimal]
action = "domain-wall"
weights = "optimal"
spectrum = [0.2, 6.2]
n_s = 6
m5 = 1.8
mass = 0.1
"#;

#[test]
fn the_program_measures_them() {
    let measured = Measured::new(RUN, MEASURE);
    let ([found], [during]) = (&measured.found[..], &measured.during[..]) else {
        panic!("one configuration")
    };
    assert_eq!(found["correlators"][0], during["correlators"][0]);
    for entry in found["correlators"].as_array().unwrap() {
        assert_eq!(keys(entry), ["name", "re", "midpoint", "m_res", "m_res_mean"]);
        let [pion, midpoint, ratio] = ["re", "midpoint", "m_res"].map(|key| numbers(&entry[key]));
        assert!((0..8).all(|t| pion[t] > 0.0 && ratio[t] == midpoint[t] / pion[t]), "{entry}");
        let mean = ratio[2..=6].iter().sum::<f64>() / 5.0;
        assert!((entry["m_res_mean"].as_f64().unwrap() - mean).abs() < 1e-15);
    }
    // A lighter quark reaches further.
    let [heavy, light] = [0, 1].map(|n| {
        let pion = numbers(&found["correlators"][n]["re"]);
        pion[4] / pion[0]
    });
    assert!(light > 2.0 * heavy, "{light} {heavy}");
    assert!(found["condensates"][0]["re"].as_f64().unwrap() > 0.0);
}
