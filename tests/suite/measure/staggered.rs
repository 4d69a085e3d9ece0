//! Measurements of staggered quarks, and condensates of Wilson's: the numbers of MILC and Chroma, the plain reference, exact
//! traces, the same bits on any ranks and lanes, and the program that measures them.
#![allow(clippy::excessive_precision, reason = "digits as printed by the peers")]

use super::{Measured, clover, keys, numbers};
use crate::compare::relative;
use crate::devices::{domain, most_lanes, on_lanes, on_one_lane};
use crate::program::parallel;
use crate::ranks;
use crate::reference::data;
use crate::reference::gauge::{Gauge, parity};
use crate::reference::staggered::{self as plain, ANTIPERIODIC, Staggered, Vector, reals, vectors};
use crate::reference::su3;
use crate::terms::whole;
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{REACH, Schur, Smearing, StaggeredParams, StaggeredQuark, WilsonParams, WilsonQuark};
use hmc::field::{Domain, EVEN, HostLinks, MatrixField, ODD};
use hmc::io;
use hmc::lattice::{Boundary, Extents, Partition, coordinates, volume};
use hmc::measure::{CondensateMean, Noise, Source, condensate, pion};
use hmc::operator::CloverForm;
use hmc::quark::{Inverse, QuarkParams, fields};
use hmc::solver::{GcrDd, Method, Past, Settings};
use num_complex::Complex64;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

const HISQ: Smearing = Smearing::Hisq { special: false };
const PHASES: [f64; 4] = [0.1, 0.2, 0.3, 1.0];
const NOISE: Noise = Noise { seed: 5, trajectory: 3 };

fn in_double<P>(operator: P) -> QuarkParams<P> {
    QuarkParams::in_double(operator, 5000)
}

/// Links of a file; of single precision re-unitarised, as MILC's numbers want them.
fn read(path: &Path, reunitarise: bool) -> MatrixField {
    let partition = Partition::whole(io::header(path).unwrap().extents).unwrap();
    let (links, _) = io::read_links(path, &partition, &Solo).unwrap();
    let mut links = whole(&links);
    if reunitarise {
        links.unitarity(true).unwrap();
    }
    links
}

fn staggered(links: &MatrixField, smearing: Smearing, mass: f64, naik_epsilon: f64) -> StaggeredQuark {
    let params = StaggeredParams { smearing, mass, naik_epsilon, boundary: Boundary::phases(PHASES) };
    StaggeredQuark::new(links, &in_double(params), 1e-13).unwrap()
}

fn close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (t, (found, expected)) in found.iter().zip(expected).enumerate() {
        relative(&format!("{name} {t}"), *found, *expected, tolerance);
    }
}

/// Residuals of 1e-13, theirs too, times a condition number below 10^2 of M.
#[test]
fn milc_pions() {
    let Some(path) = data::find("configs/lat.sample.l6666.hisq") else { return };
    let links = read(&path, true);
    let asqtad = Smearing::Asqtad { u0: 0.89 };
    for (name, smearing, time, quarks) in [
        ("asqtad_l6666hisq_ap", asqtad, 1.0, [(0.05, 0.0), (0.5, 0.0)]),
        ("hisq_l6666hisq_ap", HISQ, 1.0, [(0.05, 0.0), (0.5, -0.16875)]),
        ("hisq_l6666hisq_p", HISQ, 0.0, [(0.05, 0.0), (0.5, -0.16875)]),
    ] {
        let Some(table) = data::find(&format!("milc_corr/{name}.corr")) else { continue };
        for (mass, naik_epsilon) in quarks {
            let boundary = [0.0, 0.0, 0.0, time];
            let params =
                StaggeredParams { smearing, mass, naik_epsilon, boundary: Boundary::phases(boundary) };
            let mut quark = StaggeredQuark::new(&links, &in_double(params), 1e-13).unwrap();
            let ours = pion(&mut quark, Source::Point([0; 4])).unwrap();
            let key = format!("PION_5_d_d_d_d_m{mass}_m{mass}_p000");
            close(&format!("{name} m {mass}"), &ours, &data::milc_correlator(&table, &key, 0), 1e-11);
        }
    }
}

/// Six digits, and links in single precision: within 1.5 of the last digit.
#[test]
fn chroma_pions() {
    let Some(path) = data::find("configs/chroma_4444.nersc") else { return };
    let links = read(&path, false);
    for (mass, peer) in [
        (0.1, [0.405_543, 0.317_851, 0.292_172, 0.279_666]),
        (0.5, [0.085_909_6, 0.045_784_2, 0.033_050_5, 0.041_060_7]),
    ] {
        let smearing = Smearing::Asqtad { u0: 0.463_032 };
        let params =
            StaggeredParams { smearing, mass, naik_epsilon: 0.0, boundary: Boundary::phases(ANTIPERIODIC) };
        let mut quark = StaggeredQuark::new(&links, &in_double(params), 1e-13).unwrap();
        close(&format!("m {mass}"), &pion(&mut quark, Source::Point([0; 4])).unwrap(), &peer, 5e-6);
    }
}

/// M^-1 b by the program: one right-hand side for each of `b`.
fn solved(quark: &mut dyn Inverse, b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let domain = Arc::clone(quark.domain());
    let mut all = Vec::new();
    for some in b.chunks(quark.together()) {
        let mut rhs = fields(&domain, quark.kind(), some.len()).unwrap();
        let mut x = fields(&domain, quark.kind(), some.len()).unwrap();
        for (n, b) in some.iter().enumerate() {
            for parity in [EVEN, ODD] {
                rhs[parity][n].read_host(parity, b).unwrap();
            }
        }
        quark.solve(&mut x, &rhs).unwrap();
        for n in 0..some.len() {
            let mut found = vec![0.0; some[n].len()];
            for parity in [EVEN, ODD] {
                x[parity][n].write_host(parity, &mut found).unwrap();
            }
            all.push(found);
        }
    }
    all
}

/// `|b - M x| / |b|`, M of the plain reference, is what was asked for: for light quarks too, and for sources of one
/// parity or of both, more of them than colours.
#[test]
fn residuals_of_all_sites() {
    let extents = [4, 4, 2, 8];
    let links = Gauge::warm(extents, 0.5, 3);
    let field = whole(&links.to_host());
    let random: Vec<Vec<Vector>> = (0..4).map(|seed| plain::random_field(extents, seed + 1)).collect();
    let b = [
        random[0].clone(),
        plain::restrict(extents, &random[1], EVEN),
        random[2].clone(),
        plain::restrict(extents, &random[3], ODD),
        random[3].clone(),
    ];
    let d = Staggered::hisq(&links, -0.1, PHASES);
    for mass in [0.3, 1e-2, 1e-4] {
        let params =
            StaggeredParams { smearing: HISQ, mass, naik_epsilon: -0.1, boundary: Boundary::phases(PHASES) };
        let mut quark = StaggeredQuark::new(&field, &in_double(params), 1e-11).unwrap();
        let rhs: Vec<Vec<f64>> = b.iter().map(|b| reals(b)).collect();
        for (b, x) in b.iter().zip(solved(&mut quark, &rhs)) {
            let x = vectors(&x);
            let r = plain::axpy(&plain::axpy(b, -2.0 * mass, &x), -1.0, &d.apply(&x));
            let residual = (plain::dot(&r, &r).re / plain::dot(b, b).re).sqrt();
            println!("m {mass}: {residual:.1e}");
            assert!(residual < 1.01e-11, "m {mass}: {residual:e}");
        }
    }
}

/// Each colour of a wall by the plain reference: on slices of even and of odd corners.
#[test]
fn corner_walls() {
    let extents = [4, 2, 4, 6];
    let links = Gauge::warm(extents, 0.5, 8);
    let field = whole(&links.to_host());
    let (u0, mass) = (0.87, 0.2);
    for (d, smearing, eps) in [
        (Staggered::asqtad(&links, u0, PHASES), Smearing::Asqtad { u0 }, 0.0),
        (Staggered::hisq(&links, -0.2, PHASES), HISQ, -0.2),
    ] {
        for time in [0, 3] {
            let mut expected = vec![0.0; extents[3]];
            for colour in 0..3 {
                let mut b = vec![[su3::ZERO; 3]; volume(extents)];
                for (s, b) in b.iter_mut().enumerate() {
                    let [x, y, z, t] = coordinates(extents, s);
                    if t == time && [x, y, z].iter().all(|x| x % 2 == 0) {
                        b[colour] = su3::ONE;
                    }
                }
                let chi = d.solve_normal(mass, &b, 1e-13);
                let g = plain::axpy(&plain::scaled(2.0 * mass, &chi), -1.0, &d.apply(&chi));
                for (s, g) in g.iter().enumerate() {
                    let t = (coordinates(extents, s)[3] + extents[3] - time) % extents[3];
                    expected[t] += g.iter().map(Complex64::norm_sqr).sum::<f64>();
                }
            }
            let mut quark = staggered(&field, smearing, mass, eps);
            let found = pion(&mut quark, Source::CornerWall(time)).unwrap();
            close(&format!("{smearing:?} t {time}"), &found, &expected, 1e-11);
        }
    }
}

/// Re tr M^-1 over the sites of each parity, by a point source for every component.
fn exact_trace(quark: &mut dyn Inverse, extents: Extents) -> [f64; 2] {
    let reals = quark.kind().reals();
    let unit = |k: usize| {
        let mut b = vec![0.0; volume(extents) * reals];
        b[2 * k] = 1.0;
        b
    };
    let sources: Vec<Vec<f64>> = (0..volume(extents) * reals / 2).map(unit).collect();
    let mut trace = [0.0; 2];
    for (k, x) in solved(quark, &sources).iter().enumerate() {
        trace[parity(extents, 2 * k / reals)] += x[2 * k];
    }
    trace
}

/// The mean lies within 4 errors of the traces over even and odd sites; the parts within 4 of theirs, `part`.
fn check_condensate(name: &str, found: &CondensateMean, exact: [f64; 2], half_volume: f64, part: f64) {
    let exact = exact.map(|trace| trace / half_volume);
    println!("{name}: {found:?}, exact {exact:?}, error of the parts {part:.1e}");
    let mean = 0.5 * (exact[0] + exact[1]);
    assert!((found.mean - mean).abs() < 4.0 * found.error.unwrap(), "{name}");
    for (found, exact) in [(found.even, exact[0]), (found.odd, exact[1])] {
        assert!((found - exact).abs() < 4.0 * part, "{name}");
    }
}

/// The trace over even sites is that over odd ones, and `2 m tr (M^dag M)^-1` of the plain reference; for complex Gaussian
/// R the variance of R^dag A R is tr A^2, A the hermitian part 2 m (M^dag M)^-1 of M^-1. Parts have that of their parity, and
/// half of |K|^2, K the antihermitian part -D (M^dag M)^-1 between parities, whose noise cancels in the mean.
#[test]
fn staggered_condensate_is_the_trace() {
    let extents = [4, 2, 4, 4];
    let links = Gauge::warm(extents, 0.6, 4);
    let field = whole(&links.to_host());
    let (mass, eps, half_volume) = (0.1, -0.1, volume(extents) as f64 / 2.0);
    let d = Staggered::hisq(&links, eps, PHASES);
    let (mut expected, mut squares, mut cross) = ([0.0; 2], 0.0, 0.0);
    for (x, c) in (0..volume(extents)).flat_map(|x| [(x, 0), (x, 1), (x, 2)]) {
        let mut b = vec![[su3::ZERO; 3]; volume(extents)];
        b[x][c] = su3::ONE;
        let column = plain::scaled(2.0 * mass, &d.solve_normal(mass, &b, 1e-12));
        expected[parity(extents, x)] += column[x][c].re;
        squares += plain::dot(&column, &column).re;
        let other = plain::scaled(0.5 / mass, &d.apply(&column));
        cross += plain::dot(&other, &other).re;
    }
    let mut quark = staggered(&field, HISQ, mass, eps);
    let exact = exact_trace(&mut quark, extents);
    // Residuals of 1e-13 and 1e-12, times a condition number below 10^2.
    close("trace", &exact, &expected, 1e-10);
    close("odd trace", &exact[1..], &exact[..1], 1e-10);

    let sources = 200;
    let found = condensate(&mut quark, sources, NOISE, &|| false).unwrap();
    // Squares are of both parities.
    let part = (0.5 * (squares + 0.5 * cross) / sources as f64).sqrt() / half_volume;
    check_condensate("staggered", &found, exact, half_volume, part);
    let error = (squares / sources as f64).sqrt() / (2.0 * half_volume);
    // The error of an error of 200 sources is 5%.
    assert!((found.error.unwrap() / error - 1.0).abs() < 0.2, "{} is not {error}", found.error.unwrap());
    assert!((found.mean - 0.5 * (found.even + found.odd)).abs() < 1e-14);
    assert_eq!(found.values.len(), sources);
    assert!((found.values.iter().sum::<f64>() / sources as f64 - found.mean).abs() < 1e-14);

    // The first sources are the same, whatever their number, and others on other trajectories.
    let one = condensate(&mut quark, 1, NOISE, &|| false).unwrap();
    assert_eq!(one.error, None);
    let two = condensate(&mut quark, 2, NOISE, &|| false).unwrap();
    let other = condensate(&mut quark, 1, Noise { trajectory: 4, ..NOISE }, &|| false).unwrap();
    assert!(two.mean != one.mean && other.mean != one.mean);
    let second = 2.0 * two.mean - one.mean;
    assert!((two.error.unwrap() - 0.5 * (second - one.mean).abs()).abs() < 1e-12);
}

#[test]
fn wilson_condensate_is_the_trace() {
    let extents = [2, 2, 2, 4];
    let field = whole(&Gauge::warm(extents, 0.6, 14).to_host());
    for (c_sw, schur) in [(0.0, Schur::Symmetric), (1.2, Schur::Asymmetric)] {
        // mu is no part of M.
        let operator = WilsonParams {
            kappa: 0.12,
            mu: 0.5,
            twisted_mass: 0.0,
            c_sw,
            clover: CloverForm::Linear,
            boundary: Boundary::phases(PHASES),
            schur,
        };
        let mut quark = WilsonQuark::new(&field, &in_double(operator), 1e-10).unwrap();
        let exact = exact_trace(&mut quark, extents);
        let found = condensate(&mut quark, 50, NOISE, &|| false).unwrap();
        // The parts have no more than half of the noise of M^-1 between parities besides.
        let part = 2.0 * found.error.unwrap();
        check_condensate("Wilson", &found, exact, volume(extents) as f64 / 2.0, part);
    }
}

/// Measurements use the solver that the input gives its quark: in low precision, with few reals per link, by another
/// method. All reach the same true residual in double.
#[test]
fn solvers_of_any_kind_agree() {
    const RESIDUAL: f64 = 1e-12;
    let field = whole(&Gauge::warm([4, 4, 4, 8], 0.4, 21).to_host());
    let source = Source::Point([1, 2, 3, 4]);
    // |x - y| <= |M^-1| (|r_x| + |r_y|): the correlator falls to a hundredth, and condition numbers are below 10^3.
    let check = |what: &str, found: &[f64], expected: &[f64]| {
        let error = found
            .iter()
            .zip(expected)
            .map(|(found, expected)| (found / expected - 1.0).abs())
            .fold(0.0, f64::max);
        println!("{what}: {error:.1e}");
        assert!(error < 1e-7, "{what}: {error:e}");
    };
    let [d, s, h] = [Precision::Double, Precision::Single, Precision::Half];
    let of = |method, precisions| Settings { method, precisions, delta: 0.1, max_iterations: 2000 };
    let gcr_dd = Method::GcrDd(GcrDd { k_max: 8, n_mr: 4, block: Some([2, 2, 2, 4]) });
    let operator = WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.0,
        boundary: Boundary::phases(PHASES),
        schur: Schur::Symmetric,
        clover: CloverForm::Linear,
    };
    let expected =
        pion(&mut WilsonQuark::new(&field, &in_double(operator), RESIDUAL).unwrap(), source).unwrap();
    for (what, solver, link_reals, together) in [
        ("CG double-single", Settings::cg(s, 2000), 12, 4),
        ("CG double-half", Settings::cg(h, 2000), 8, 4),
        ("BiCGstab double-single", of(Method::BICGSTAB, [d, s, s]), 12, 1),
        ("GCR-DD double-single-half", of(gcr_dd, [d, s, h]), 12, 1),
    ] {
        let params = QuarkParams { operator, solver, link_reals, guess: Past::NONE };
        let mut quark = WilsonQuark::new(&field, &params, RESIDUAL).unwrap();
        assert_eq!(quark.together(), together, "{what}");
        check(what, &pion(&mut quark, source).unwrap(), &expected);
    }
    let expected = pion(&mut staggered(&field, HISQ, 0.1, -0.1), source).unwrap();
    for (what, precision, link_reals) in [("staggered double-single", s, 14), ("staggered double-half", h, 9)]
    {
        let operator = StaggeredParams {
            smearing: HISQ,
            mass: 0.1,
            naik_epsilon: -0.1,
            boundary: Boundary::phases(PHASES),
        };
        let params =
            QuarkParams { operator, solver: Settings::cg(precision, 5000), link_reals, guess: Past::NONE };
        let mut quark = StaggeredQuark::new(&field, &params, RESIDUAL).unwrap();
        check(what, &pion(&mut quark, source).unwrap(), &expected);
    }
}

type Results = (Vec<Vec<f64>>, Vec<CondensateMean>);

fn results(domain: &Arc<Domain>, links: &HostLinks) -> Results {
    let links = MatrixField::from_host(domain, links).unwrap();
    let mut hisq = staggered(&links, HISQ, 0.1, -0.1);
    let mut asqtad = staggered(&links, Smearing::Asqtad { u0: 0.9 }, 0.2, 0.0);
    let operator = WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.0,
        boundary: Boundary::phases(PHASES),
        schur: Schur::Symmetric,
        clover: CloverForm::Linear,
    };
    let mut wilson = WilsonQuark::new(&links, &in_double(operator), 1e-10).unwrap();
    let pions = vec![
        pion(&mut hisq, Source::Point([5, 3, 2, 7])).unwrap(),
        pion(&mut asqtad, Source::CornerWall(5)).unwrap(),
    ];
    let condensates = vec![
        condensate(&mut hisq, 5, NOISE, &|| false).unwrap(),
        condensate(&mut asqtad, 1, NOISE, &|| false).unwrap(),
        condensate(&mut wilson, 2, NOISE, &|| false).unwrap(),
    ];
    (pions, condensates)
}

#[test]
fn ranks_and_lanes_have_the_same_bits() {
    let extents = [8, 8, 4, 8];
    let links = Gauge::warm(extents, 0.6, 19).to_host();
    let expected = results(&on_one_lane(extents), &links);
    let lanes = domain(extents);
    println!("{} lanes", lanes.lanes().count());
    assert_eq!(results(&lanes, &links), expected, "lanes");
    for grid in [[1, 1, 1, 2], [2, 2, 1, 1]] {
        let found = ranks::on_grid(extents, grid, |partition, comm| {
            let domain = on_lanes(most_lanes(&partition, REACH), partition, comm, 2);
            results(&domain, &ranks::links(&links, &partition))
        });
        assert!(found.iter().all(|(_, found)| *found == expected), "grid {grid:?}");
    }
}

const DURING: &str = r#"
[measure.condensate.light]
fermion = "light"
sources = 3
"#;

/// No pseudofermions: the staggered quark is measured only.
const MEASURE: &str = r#"
[measure]
seed = 3
[measure.condensate.light]
fermion = "light"
sources = 3
[measure.condensate.strange]
fermion = "strange"
mass = 0.05
sources = 2
[measure.condensate.charm]
fermion = "strange"
mass = 0.5
naik_epsilon = -0.2
[measure.correlator.wall]
fermion = "strange"
mass = 0.05
source_kind = "corner-wall"
source = [0, 0, 0, 5]
[measure.correlator.kaon]
fermion = "strange"
mass = 0.05
other = { mass = 0.5 }
[measure.correlator.pion]
fermion = "strange"
mass = 0.05
other = { mass = 0.05 }
[measure.correlator.heavy]
fermion = "strange"
mass = 0.5
[fermion.light]
action = "wilson-clover"
kappa = 0.11
c_sw = 1.0
[fermion.strange]
action = "hisq"
"#;

#[test]
fn the_program_measures_them() {
    let measured = Measured::new(&clover(2, DURING), MEASURE);
    for (found, during) in measured.found.iter().zip(&measured.during) {
        let condensates = found["condensates"].as_array().unwrap();
        // Seed and trajectory are those of the run, so the numbers are.
        assert_eq!(condensates[0], during["condensates"][0]);
        assert_eq!(condensates[0]["mass"], Value::Null);
        let [strange, charm] = [&condensates[1], &condensates[2]];
        assert_eq!(keys(strange), ["name", "mass", "re", "error", "even", "odd", "sources", "values"]);
        assert_eq!((strange["mass"].as_f64(), strange["sources"].as_u64()), (Some(0.05), Some(2)));
        assert!(strange["error"].as_f64().unwrap() > 0.0);
        assert_eq!((charm["name"].as_str(), &charm["error"]), (Some("charm"), &Value::Null));
        assert!(condensates.iter().all(|c| c["re"].as_f64().unwrap() > 0.0), "{found}");
        assert_eq!(numbers(&found["correlators"][0]["re"]).len(), 8);
        // tr of 1 / ((2 m - D) (2 M + D)) by partial fractions: sums over t, with 1e-12 of a solve.
        let [kaon, pion, heavy] =
            [1, 2, 3].map(|n| numbers(&found["correlators"][n]["re"]).iter().sum::<f64>());
        let expected = (0.05 * pion + 0.5 * heavy) / 0.55;
        assert!((kaon / expected - 1.0).abs() < 1e-10, "{kaon} {expected}");
    }
    let thin = format!("{MEASURE}{}", parallel([1, 1, 2, 1], 1, 1));
    measured.again(2, &thin, &["--json"]).failed(2, &["4x4x2x8", "reach 3 layers"]);
    let other = measured.again(0, &MEASURE.replace("seed = 3", "seed = 4"), &["--json"]);
    other.succeeded();
    assert_ne!(other.out, measured.out);
}
