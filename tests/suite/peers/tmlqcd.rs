//! Twisted-mass doublets, against tmLQCD's numbers.

use super::program::{force_of, full_operator, matrices, rotated};
use crate::compare::{close_links, relative};
use crate::devices::domain;
use crate::laws::doublet;
use crate::reference::data;
use crate::reference::su3::M3;
use crate::reference::wilson::{self as plain, reals, sincos, sincos_of_flavour, spinors};
use crate::terms::{quark, two_flavours};
use hmc::action::{Action, PairForce};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{
    Doublet, DoubletOnAllSites, DoubletParams, DoubletQuark, Schur, WilsonParams, WilsonQuark,
};
use hmc::field::{AlgebraField, Dagger, EVEN, MatrixField, ODD, Spinor};
use hmc::io;
use hmc::lattice::{Boundary, Extents, Partition, volume};
use hmc::measure::{Channel, Keep, Propagator, Source, mesons, pion};
use hmc::operator::CloverForm;
use hmc::quark::{Fields, FullInverse, FullOperator, Inverse, Quark, QuarkParams, fields};
use num_complex::Complex64;
use std::collections::HashMap;
use std::slice::from_ref;

/// The last number of each line, by the words before it.
fn expected(name: &str) -> Option<HashMap<String, f64>> {
    let text = std::fs::read_to_string(data::find(&format!("tmlqcd/{name}_expected.txt"))?).unwrap();
    let mut found = HashMap::new();
    for line in text.lines() {
        // "times 4kappa^2" in brackets is ours.
        let (line, is_ours) = (line.trim_end_matches(')'), line.ends_with(')'));
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(Ok(number)) = words.last().map(|word| word.parse()) else { continue };
        let key = match words[0] {
            "charged_pion" => format!("charged_pion {}", words[1]),
            "nd_pp" => format!("nd_pp {} {} {}", words[2], words[4], words[6]),
            first if is_ours || !first.starts_with("monomial") => first.to_owned(),
            _ => continue,
        };
        found.insert(key, number);
    }
    Some(found)
}

/// `sum_a (d_a / 2) T_a` of each link.
fn theirs_of(name: &str) -> Option<Vec<[M3; 4]>> {
    let d = data::doubles(&data::find(&format!("tmlqcd/{name}_force_d8.f64"))?);
    let link = |d: &[f64]| -> M3 {
        let f: Vec<f64> = d.iter().map(|d| 0.25 * d).collect();
        let eighth = f[7] / 3f64.sqrt();
        let off = |n: usize| Complex64::new(f[n], -f[n + 1]);
        let real = |x: f64| Complex64::new(x, 0.0);
        [
            [real(f[2] + eighth), off(0), off(3)],
            [off(0).conj(), real(eighth - f[2]), off(5)],
            [off(3).conj(), off(5).conj(), real(-2.0 * eighth)],
        ]
    };
    Some(d.chunks_exact(32).map(|site| std::array::from_fn(|mu| link(&site[8 * mu..8 * mu + 8]))).collect())
}

fn params(kappa: f64, c_sw: f64, two_kappa_mu: f64) -> WilsonParams {
    WilsonParams {
        kappa,
        mu: 0.0,
        // Its gamma_5 is -gamma_5 here: its first flavour is our second.
        twisted_mass: -two_kappa_mu / (2.0 * kappa),
        c_sw,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Asymmetric,
        clover: CloverForm::Linear,
    }
}

/// Configurations, with their extents, kappa, c_sw and 2 kappa mu.
const ALL: [(&str, Extents, f64, f64, f64); 2] =
    [("q444n1", [4; 4], 0.138, 1.76, 0.03), ("q844n1", [4, 4, 4, 8], 0.13, 1.909_52, 0.06)];

#[test]
fn doublets() {
    for (name, extents, kappa, c_sw, two_kappa_mu) in ALL {
        let Some(path) = data::find(&format!("configs/{name}.openqcd")) else { return };
        let Some(peer) = expected(name) else { return };
        let (links, _) = io::read_links(&path, &Partition::whole(extents).unwrap(), &Solo).unwrap();
        let links = MatrixField::from_host(&domain(extents), &links).unwrap();
        let params = params(kappa, c_sw, two_kappa_mu);
        let rotation = plain::from_openqcd();
        let psi = rotated(&rotation, &sincos(extents));

        let ours = full_operator(&links, &params, &reals(&psi));
        let Some(path) = data::find(&format!("tmlqcd/{name}_Dtm_sincos.f64")) else { return };
        let theirs = reals(&rotated(&rotation, &data::spinor_field(&path)));
        let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{name}: D psi, worst real {worst:.1e}");
        assert!(worst < 1e-13, "{worst:e}");

        // (D(mu)^dag D(mu))^-1 = (gamma_5 D(-mu)^-1 gamma_5)^dag gamma_5 D(-mu)^-1 gamma_5
        let other = WilsonParams { twisted_mass: -params.twisted_mass, ..params };
        let mut inverse = WilsonQuark::new(&links, &QuarkParams::in_double(other, 1000), 1e-13).unwrap();
        let new = || fields(links.domain(), inverse.kind(), 1).unwrap();
        let [mut x, mut b] = [new(), new()];
        let turned: Vec<plain::Spinor> = spinors(&reals(&psi))
            .into_iter()
            .map(|s| std::array::from_fn(|k| s[k].map(|c| if k < 2 { c } else { -c })))
            .collect();
        for parity in [EVEN, ODD] {
            b[parity][0].read_host(parity, &reals(&turned)).unwrap();
        }
        inverse.solve(&mut x, &b).unwrap();
        let norm: f64 = x.iter().map(|x| Spinor::norm2(&x[0]).unwrap().value()).sum();
        relative("full action", norm, peer["full_action"], 1e-11);

        let mut inverse = WilsonQuark::new(&links, &QuarkParams::in_double(params, 1000), 1e-13).unwrap();
        let ours = pion(&mut inverse, Source::Point([0; 4])).unwrap();
        for (t, ours) in ours.into_iter().enumerate() {
            relative(&format!("charged pion at {t}"), ours, peer[&format!("charged_pion {t}")], 1e-11);
        }

        // S of theirs has phi / 2 kappa.
        let phi: Vec<f64> = reals(&psi).into_iter().map(|x| x / (2.0 * kappa)).collect();
        for (monomial, c_sw) in [("cloverdet", c_sw), ("det", 0.0)] {
            // It solves Q+ Q- = M^dag M of its second flavour.
            let operator = WilsonParams { c_sw, ..other };
            let mut term = two_flavours(links.domain(), quark(operator, Precision::Double), [1e-14; 2]);
            term.set_phi(&vec![0.0; 24 * volume(extents)]).unwrap();
            let log_det = term.value(&links).unwrap().value();
            if c_sw != 0.0 {
                let constant = 6.0 * volume(extents) as f64 * (4.0 * kappa * kappa).ln();
                relative("trlog", log_det - constant, peer["CLOVERTRLOG_action"], 1e-13);
            }
            term.set_phi(&phi).unwrap();
            let value = 4.0 * kappa * kappa * (term.value(&links).unwrap().value() - log_det);
            relative(&format!("{monomial}: S"), value, peer[&format!("{monomial}_action")], 1e-12);
            let Some(theirs) = theirs_of(&format!("{name}_{monomial}")) else { return };
            let ours = matrices(&force_of(&mut term, &links), Complex64::ONE);
            close_links(&format!("{monomial}: force"), &ours, &theirs, 1e-11);
        }
    }
}

/// A rational function of tmLQCD's.
struct Function {
    /// EVMaxInv
    greatest: f64,
    /// mu and rmu
    poles: Vec<(f64, f64)>,
}

/// Those of the monomials ndcloverrat and ndrat.
fn rationals(name: &str) -> Option<[Function; 2]> {
    let text = std::fs::read_to_string(data::find(&format!("tmlqcd/{name}_expected.txt"))?).unwrap();
    let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let of = |monomial: &str| {
        let lines =
            || text.lines().map(words).filter(|words| words[0].starts_with(&format!("{monomial}_rational")));
        let number = |words: &Vec<String>, n: usize| words[n].parse::<f64>().unwrap();
        let greatest = lines().find(|words| words[1] == "np").map(|words| number(&words, 6)).unwrap();
        let poles =
            lines().filter(|words| words[1] != "np").map(|words| (number(&words, 1), number(&words, 2)));
        Function { greatest, poles: poles.collect() }
    };
    Some(["ndcloverrat", "ndrat"].map(of))
}

/// Ours has its second flavour first, since its gamma_5 is minus ours.
fn swapped(psi: [&[plain::Spinor]; 2]) -> Vec<f64> {
    [reals(psi[1]), reals(psi[0])].concat()
}

#[test]
fn doublets_of_two_masses() {
    for (name, extents, kappa, c_sw, _) in ALL {
        let Some(path) = data::find(&format!("configs/{name}.openqcd")) else { return };
        let (Some(peer), Some(functions)) = (expected(name), rationals(name)) else { return };
        let (links, _) = io::read_links(&path, &Partition::whole(extents).unwrap(), &Solo).unwrap();
        let links = MatrixField::from_host(&domain(extents), &links).unwrap();
        let [mubar, epsbar] = [0.1105, 0.0935].map(|mass| mass / (2.0 * kappa));
        let wilson = WilsonParams { twisted_mass: mubar, ..params(kappa, c_sw, 0.0) };
        let operator = DoubletParams { wilson, epsbar };
        let rotation = plain::from_openqcd();
        let psi = [0.0, 1.0].map(|f| rotated(&rotation, &sincos_of_flavour(extents, f)));

        let mut m = DoubletOnAllSites::new(&links, &operator).unwrap();
        let kind = m.kind();
        let new = || fields(links.domain(), kind, 1).unwrap();
        let read = |reals: &[f64]| {
            let mut field = new();
            [EVEN, ODD].into_iter().for_each(|parity| field[parity][0].read_host(parity, reals).unwrap());
            field
        };
        let write = |field: &Fields| {
            let mut reals = vec![0.0; 2 * 24 * volume(extents)];
            [EVEN, ODD]
                .into_iter()
                .for_each(|parity| field[parity][0].write_host(parity, &mut reals).unwrap());
            reals
        };
        let mut image = new();
        m.apply(&mut image, &read(&swapped([&psi[0], &psi[1]])), Dagger::No).unwrap();
        let theirs = [0, 1].map(|f| data::find(&format!("tmlqcd/{name}_Dnd_sincos_f{f}.f64")));
        let [Some(first), Some(second)] = theirs else { return };
        let theirs = [first, second].map(|path| rotated(&rotation, &data::spinor_field(&path)));
        let theirs = swapped([&theirs[0], &theirs[1]]);
        let worst = write(&image).iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{name}: D psi of the doublet, worst real {worst:.1e}");
        assert!(worst < 1e-13, "{worst:e}");

        // (D^dag)^-1 = tau_1 gamma_5 D^-1 gamma_5 tau_1
        let quark = QuarkParams::in_double(operator, 1000);
        let mut inverse = FullInverse::<Doublet>::on(&links, &quark, 1, 1e-13).unwrap();
        let turned = psi.each_ref().map(|psi| plain::gamma5_field(psi));
        let mut x = new();
        inverse.solve(&mut x, &read(&swapped([&turned[1], &turned[0]]))).unwrap();
        let norm: f64 = x.iter().map(|x| Spinor::norm2(&x[0]).unwrap().value()).sum();
        relative("full action of the doublet", norm, peer["nd_full_action"], 1e-11);

        let mut quark = DoubletQuark::new(&links, &quark, 1e-13).unwrap();
        let point = Source::Point([0; 4]);
        for source in [0, 1] {
            let found = Propagator::from_flavour(&mut quark, point, source, Keep::Columns, &|| false);
            for (sink, s) in found.unwrap().iter().enumerate() {
                let pp = mesons([s; 2], Channel::Pion, &[[0; 3]], &|| false).unwrap();
                for (t, c) in pp[0].iter().enumerate() {
                    let key = format!("nd_pp {} {} {t}", 1 - sink, 1 - source);
                    relative(&key, c.re, peer[&key], 1e-11);
                }
            }
        }

        for ((monomial, c_sw), function) in [("ndcloverrat", c_sw), ("ndrat", 0.0)].into_iter().zip(functions)
        {
            let operator = DoubletParams { wilson: WilsonParams { c_sw, ..wilson }, epsbar };
            let mut quark =
                Quark::with_shifts(links.domain(), &QuarkParams::in_double(operator, 5000), 1).unwrap();
            quark.update(&links).unwrap();
            let log_det = -2.0 * quark.log_det().value();
            if c_sw != 0.0 {
                let constant = 6.0 * volume(extents) as f64 * (4.0 * kappa * kappa).ln();
                relative("trlog", log_det - constant, peer["CLOVERNDTRLOG_action"], 1e-13);
            }
            // x = scale Mhat^dag Mhat, between tau_1
            let scale = (2.0 * kappa * function.greatest).powi(2);
            let poles: Vec<f64> = function.poles.iter().map(|(mu, _)| mu * mu / scale).collect();
            let mut phi = Spinor::of(links.domain(), quark.kind(), Precision::Double, 1).unwrap();
            phi.read_host(ODD, &swapped([&psi[1], &psi[0]])).unwrap();
            let solved = quark.solve_shifted(from_ref(&phi), &poles, 1e-14).unwrap();
            let mut pairs = PairForce::new(links.domain(), quark.kind(), c_sw != 0.0).unwrap();
            let mut force = AlgebraField::new(links.domain()).unwrap();
            let mut sum = pairs.begin(&links, &mut force).unwrap();
            let mut value = phi.norm2().unwrap().value();
            for (x, (_, rmu)) in solved[0].1.iter().zip(&function.poles) {
                value += rmu / scale * phi.real_dot(x).unwrap().value();
                sum.add_square(&mut quark, x, rmu / scale).unwrap();
            }
            sum.add_log_det(&quark, 1.0).unwrap();
            sum.finish().unwrap();
            relative(&format!("{monomial}: S"), value, peer[&format!("{monomial}_action")], 1e-12);
            if name == "q444n1" {
                let mut term =
                    doublet::term(links.domain(), operator, (Precision::Double, 1), [1e-14; 2], 1e-12);
                term.set_phi(&swapped([&psi[1], &psi[0]])).unwrap();
                let exact = if c_sw == 0.0 { 911.062_674_992 } else { 957.940_512_473 };
                relative("the root", term.value(&links).unwrap().value() - log_det, exact, 1e-11);
            }
            let Some(theirs) = theirs_of(&format!("{name}_{monomial}")) else { return };
            close_links(&format!("{monomial}: force"), &matrices(&force, Complex64::ONE), &theirs, 1e-11);
        }
    }
}
