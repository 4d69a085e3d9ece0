//! Twisted-mass doublets, against tmLQCD's numbers.

use super::program::{force_of, full_operator, matrices, rotated};
use crate::compare::{close_links, relative};
use crate::devices::domain;
use crate::reference::data;
use crate::reference::su3::M3;
use crate::reference::wilson::{self as plain, reals, sincos, spinors};
use crate::terms::{quark, two_flavours};
use hmc::action::Action;
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams, WilsonQuark};
use hmc::field::{EVEN, MatrixField, ODD, Spinor};
use hmc::io;
use hmc::lattice::{Boundary, Extents, Partition, volume};
use hmc::measure::{Source, pion};
use hmc::operator::CloverForm;
use hmc::quark::{Inverse, QuarkParams, fields};
use num_complex::Complex64;
use std::collections::HashMap;

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
            first if is_ours || !first.starts_with("monomial") => first.to_owned(),
            _ => continue,
        };
        found.insert(key, number);
    }
    Some(found)
}

/// `sum_a (d_a / 2) T_a` of each link.
fn force(name: &str) -> Option<Vec<[M3; 4]>> {
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

#[test]
fn doublets() {
    let all: [(&str, Extents, f64, f64, f64); 2] =
        [("q444n1", [4; 4], 0.138, 1.76, 0.03), ("q844n1", [4, 4, 4, 8], 0.13, 1.909_52, 0.06)];
    for (name, extents, kappa, c_sw, two_kappa_mu) in all {
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
            let Some(theirs) = force(&format!("{name}_{monomial}")) else { return };
            let ours = matrices(&force_of(&mut term, &links), Complex64::ONE);
            close_links(&format!("{monomial}: force"), &ours, &theirs, 1e-11);
        }
    }
}
