//! Reweighting factors: those of dense determinants, with errors that are true, the same on any ranks, and used by the report.

use super::{ALONE, Measured, clover};
use crate::program::{Scratch, objects, parallel};
use crate::reference::data;
use crate::reference::domain_wall as dense;
use crate::reference::gauge::Gauge;
use crate::reference::wilson::{Dirac, Parameters, Spinor, reals};
use hmc::comm::Solo;
use hmc::io;
use hmc::lattice::{Partition, volume};
use num_complex::Complex64;
use std::path::PathBuf;

const QUARK: &str = r#"
[fermion.light]
action = "wilson-clover"
kappa = 0.138
c_sw = 1.76
"#;

fn factor(name: &str, kind: &str, mu: &str, sources: usize) -> String {
    format!(
        "[measure.reweighting.{name}]\nfermion = \"light\"\nkind = \"{kind}\"\nmu = {mu}\nsources = {sources}\n"
    )
}

/// Exact logarithms of 4^4 links of openQCD's, on odd sites.
#[test]
fn factors_are_those_of_dense_determinants() {
    let Some(links) = data::find("configs/q444n1.openqcd") else { return };
    let links = links.to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let all = [
        ("one", "type-1", "[0.0, 0.15]", -3.543_952_212_107),
        ("two", "type-2", "[0.0, 0.15]", -0.023_078_934_072),
        ("far", "type-2", "[0.15, 0.4]", -0.922_691_997_313),
        ("steps", "type-1", "[0.0, 0.15, 0.22, 0.28, 0.34, 0.4]", -3.543_952_212_107 - 21.187_543_420_611),
    ];
    let text = all.iter().map(|(name, kind, mu, _)| factor(name, kind, mu, 40)).collect::<String>() + QUARK;
    let on = |ranks: usize, grid, lanes| {
        let text = format!("{text}{}", parallel(grid, lanes, 1));
        let ended = scratch.measure(ranks, &text, &["--json", &links]);
        ended.succeeded();
        ended.out
    };
    let one = on(0, ALONE, 0);
    assert_eq!(one, on(2, [1, 1, 1, 2], 1));
    let [found] = &objects(&one)[..] else { panic!("one configuration") };
    for (own, (name, _, _, exact)) in found["reweighting"].as_array().unwrap().iter().zip(all) {
        assert_eq!(own["name"], name);
        let [ln_w, error] = ["ln_w", "error"].map(|key| own[key].as_f64().unwrap());
        println!(
            "{name}: ln W {ln_w:.5} +- {error:.5}, exact {exact:.5}: {:.1} sigma",
            (ln_w - exact) / error
        );
        assert!((ln_w - exact).abs() < 4.0 * error && error < 0.05 * exact.abs(), "{name}");
    }
    let steps = found["reweighting"][3]["factors"].as_array().unwrap();
    assert_eq!((steps.len(), steps[4]["values"].as_array().unwrap().len()), (5, 40));
    for (wrong, told) in [
        (factor("x", "type-1", "[0.1]", 1), "mu: two numbers at least, each above the one before"),
        (factor("x", "type-1", "[0.2, 0.1]", 1), "mu: two numbers at least, each above the one before"),
        (factor("x", "type-3", "[0.0, 0.1]", 1), "kind: "),
        (
            factor("x", "type-1", "[0.0, 0.1]", 1).replace("\"light\"", "\"sea\""),
            "fermion: this is not for staggered quarks",
        ),
    ] {
        scratch
            .measure(0, &format!("{wrong}{QUARK}[fermion.sea]\naction = \"hisq\"\n"), &[&links])
            .failed(2, &[told]);
    }
}

/// The same of a rational function with an error of 4e-4, openQCD's of three poles, and the ends of its spectrum.
#[test]
fn rational_functions_and_spectra_are_those_of_dense_matrices() {
    let Some(links) = data::find("configs/q444n1.openqcd") else { return };
    let links = links.to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let quark = QUARK.to_owned()
        + "flavours = 1\npreconditioning = \"asymmetric\"\n[fermion.light.rational]\nrange = [0.36, 38.44]\naction_error = 5e-4\nforce_error = 5e-4\n";
    let text = format!(
        "{quark}[measure.reweighting.root]\nfermion = \"light\"\nkind = \"rational\"\nsources = 40\n\
         [measure.spectrum.light]\nfermion = \"light\"\nerror = 1e-9\n"
    );
    let on = |ranks: usize, grid, lanes| {
        let ended =
            scratch.measure(ranks, &format!("{text}{}", parallel(grid, lanes, 1)), &["--json", &links]);
        ended.succeeded();
        ended.out
    };
    let one = on(0, ALONE, 0);
    assert_eq!(one, on(2, [1, 1, 1, 2], 1));
    let [found] = &objects(&one)[..] else { panic!("one configuration") };
    let own = &found["reweighting"][0];
    let [ln_w, error] = ["ln_w", "error"].map(|key| own[key].as_f64().unwrap());
    println!("rational: ln W {ln_w:.6} +- {error:.6}, exact 0.050561208667");
    assert!((ln_w - 0.050_561_208_667).abs() < 4.0 * error && error < 0.005);
    for (key, exact) in [("least", 0.652_197_236_202), ("greatest", 5.877_512_432_35)] {
        let end = found["spectra"][0][key].as_f64().unwrap();
        println!("{key}: {end:.12}, exact {exact:.12}");
        assert!((end / exact - 1.0).abs() < 1e-9, "{key}");
    }
    let two = text.replace("flavours = 1", "flavours = 2");
    let [light, _] = two.split("[fermion.light.rational]").collect::<Vec<_>>()[..] else {
        panic!("two parts")
    };
    let [_, tables] = two.split("[measure.reweighting").collect::<Vec<_>>()[..] else { panic!("two parts") };
    let told = "kind: this needs one flavour by rational functions";
    scratch.measure(0, &format!("{light}[measure.reweighting{tables}"), &[&links]).failed(2, &[told]);
}

/// M on all sites.
fn matrix(gauge: &Gauge, kappa: f64, c_sw: f64) -> dense::Dense {
    let operator = Dirac::new(gauge, Parameters::from_kappa(kappa, c_sw));
    let sites = volume(gauge.extents);
    let columns: Vec<Vec<Complex64>> = (0..12 * sites)
        .map(|j| {
            let mut psi = vec![Spinor::default(); sites];
            psi[j / 12][j % 12 / 3][j % 3] = Complex64::ONE;
            reals(&operator.apply(&psi)).chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect()
        })
        .collect();
    dense::dense(12 * sites, |i, j| columns[j][i])
}

/// The file of these links.
fn written(scratch: &Scratch, gauge: &Gauge, name: &str) -> PathBuf {
    let (path, partition) = (scratch.at(name), Partition::whole(gauge.extents).unwrap());
    io::write_links(&path, io::Format::Ildg, &gauge.to_host(), &partition, &Solo, &io::Meta::default())
        .unwrap();
    path
}

/// Signs of one flavour on rough links, where some eigenvalues have gone through zero.
#[test]
fn signs_are_those_of_dense_determinants() {
    let (c_sw, scratch) = (0.6, Scratch::new());
    let (mut signs, mut negative) = (0, 0);
    for (seed, kappas) in [(1, [0.15, 0.19, 0.22]), (2, [0.17, 0.2, 0.24]), (3, [0.18, 0.21, 0.23])] {
        let gauge = Gauge::warm([2, 2, 2, 4], 0.9, seed);
        let path = written(&scratch, &gauge, &format!("{seed}.ildg"));
        for kappa in kappas {
            let text = format!(
                "[fermion.light]\naction = \"wilson-clover\"\nkappa = {kappa}\nc_sw = {c_sw}\nflavours = 1\n\
                 [fermion.light.rational]\nrange = [1e-6, 100.0]\n\
                 [measure.reweighting.sign]\nfermion = \"light\"\nkind = \"sign\"\nresidual = 1e-8\n"
            );
            let ended = scratch.measure(0, &text, &["--json", path.to_str().unwrap()]);
            ended.succeeded();
            let [found] = &objects(&ended.out)[..] else { panic!("one configuration") };
            let own = &found["reweighting"][0];
            let masses = own["path"].as_array().unwrap();
            let exact = dense::phase_of_det(matrix(&gauge, kappa, c_sw));
            let sign = own["sign"].as_i64().unwrap();
            println!(
                "seed {seed}, kappa {kappa}: sign {sign}, exact {exact:.3}, {} masses, gap {}",
                masses.len(),
                masses.last().unwrap()["least"]
            );
            assert!((exact - sign as f64).norm() < 1e-6, "{exact}");
            signs += 1;
            negative += i32::from(sign < 0);
        }
    }
    assert!((2..signs - 1).contains(&negative), "{negative} of {signs} are negative");
}

/// Another kappa, by dense determinants of M on all sites; in one step and in two.
#[test]
fn masses_are_those_of_dense_determinants() {
    let (extents, c_sw) = ([2, 2, 2, 4], 1.2);
    let gauge = Gauge::warm(extents, 0.5, 9);
    let log_det = |kappa: f64| dense::log_det(matrix(&gauge, kappa, c_sw));
    let exact = 2.0 * (log_det(0.125) - log_det(0.123));
    let scratch = Scratch::new();
    let path = written(&scratch, &gauge, "links.ildg");
    let quark = format!("[fermion.light]\naction = \"wilson-clover\"\nkappa = 0.123\nc_sw = {c_sw}\n");
    let factor = |name: &str, kappa: &str| {
        format!(
            "[measure.reweighting.{name}]\nfermion = \"light\"\nkind = \"mass\"\nkappa = {kappa}\nsources = 60\n"
        )
    };
    let text = quark.clone() + &factor("one", "[0.125, 0.123]") + &factor("two", "[0.125, 0.124, 0.123]");
    let ended = scratch.measure(0, &text, &["--json", path.to_str().unwrap()]);
    ended.succeeded();
    let [found] = &objects(&ended.out)[..] else { panic!("one configuration") };
    for own in found["reweighting"].as_array().unwrap() {
        let [ln_w, error] = ["ln_w", "error"].map(|key| own[key].as_f64().unwrap());
        println!("{}: ln W {ln_w:.4} +- {error:.4}, exact {exact:.4}", own["name"]);
        assert!((ln_w - exact).abs() < 4.0 * error && error < 0.1 * exact.abs());
    }
    for (wrong, code, told) in [
        (quark.clone() + &factor("x", "[0.125]"), 2, "kappa: two numbers at least"),
        (quark.clone() + &factor("x", "[0.125, 0.123]\nmu = [0.0, 0.1]"), 2, "mu: this kind has none"),
        (
            quark.replace("c_sw = 1.2", "c_sw = 1.2\nclover = \"exponential\"")
                + &factor("x", "[0.125, 0.123]"),
            2,
            "kind: this needs two flavours without an exponential clover term",
        ),
        (
            quark.clone()
                + "flavours = 1\n[fermion.light.rational]\nrange = [0.1, 10.0]\n"
                + &factor("x", "[0.125, 0.123]"),
            2,
            "kind: this needs two flavours",
        ),
    ] {
        scratch.measure(0, &wrong, &[path.to_str().unwrap()]).failed(code, &[told]);
    }
}

/// `hmc report` has the plaquette reweighted by each factor and, of different quarks, by their product.
#[test]
fn a_report_has_reweighted_means() {
    let tables = "[measure.loops]\n".to_owned()
        + &factor("soft", "type-1", "[0.0, 0.3]", 2)
        + "[measure.reweighting.root]\nfermion = \"strange\"\nkind = \"rational\"\nsources = 2\n";
    let run = clover(3, &tables).replace("thermalisation = 3", "thermalisation = 0");
    let strange = "[fermion.strange]\naction = \"wilson-clover\"\nkappa = 0.1\nc_sw = 1.0\nflavours = 1\n\
                   rational = { range = [0.2, 4.0], action_error = 1e-3 }\n[[hmc.level]]";
    let run = run.replace("[[hmc.level]]", strange).replace("\"light\"]", "\"light\", \"strange\"]");
    let measured = Measured::new(&run, &run);
    let ended = measured.scratch.run(0, &["report", "--json", "ensembles/chain"]);
    ended.succeeded();
    let [report] = &objects(&ended.out)[..] else { panic!("one object") };
    let all = report["observables"].as_array().unwrap_or_else(|| panic!("{report}"));
    for (by, factors) in [("soft", &[0][..]), ("root", &[1]), ("soft and root", &[0, 1])] {
        let [mut sum, mut weights] = [0.0; 2];
        for line in &measured.during {
            let ln_w = |n: &usize| line["reweighting"][n]["ln_w"].as_f64().unwrap();
            let weight = factors.iter().map(ln_w).sum::<f64>().exp();
            sum += weight * line["plaquette"].as_f64().unwrap();
            weights += weight;
        }
        let name = format!("plaquette, reweighted by {by}");
        let mean = all.iter().find(|mean| mean["name"] == name).unwrap_or_else(|| panic!("{report}"));
        let found = mean["mean"].as_f64().unwrap();
        assert!((found / (sum / weights) - 1.0).abs() < 1e-12, "{by}: {found} {}", sum / weights);
    }
}
