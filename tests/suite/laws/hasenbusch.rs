//! Ratios of determinants: forces, heat bath, dynamics, and that the product of a chain of ratios is the determinant
//! of the light quark.

use crate::devices::{domain, on_one_lane};
use crate::reference::gauge::{Gauge, random_momenta, shifted};
use crate::terms;
use crate::terms::{check_dynamics, check_force, check_refresh, fields, quark, random_phi};
use hmc::action::{Action, Determinant, DeterminantParams, Power, TermHeader};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::Domain;
use hmc::lattice::Boundary;
use hmc::operator::CloverForm;
use std::sync::Arc;

fn operator(kappa: f64, mu: f64, c_sw: f64, schur: Schur) -> WilsonParams {
    WilsonParams {
        kappa,
        mu,
        twisted_mass: 0.0,
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
        schur,
    }
}

fn ratio(
    domain: &Arc<Domain>,
    light: WilsonParams,
    heavy: WilsonParams,
    precision: Precision,
) -> Determinant<Wilson> {
    let params = DeterminantParams {
        header: TermHeader { name: "ratio".into(), number: 0, action_residual: 1e-14, force_residual: 1e-14 },
        light: quark(light, precision),
        heavy: Some(quark(heavy, precision)),
        power: Power::Inverse,
    };
    Determinant::new(domain, params).unwrap()
}

fn last(domain: &Arc<Domain>, operator: WilsonParams) -> Determinant<Wilson> {
    let params = DeterminantParams {
        header: TermHeader { name: "last".into(), number: 1, action_residual: 1e-14, force_residual: 1e-14 },
        light: quark(operator, Precision::Double),
        heavy: None,
        power: Power::Inverse,
    };
    Determinant::new(domain, params).unwrap()
}

const FORMS: [(f64, Schur); 4] =
    [(0.0, Schur::Asymmetric), (0.0, Schur::Symmetric), (1.0, Schur::Asymmetric), (1.0, Schur::Symmetric)];

/// Light and heavy (kappa, mu) of a ratio.
const RATIOS: [(&str, [(f64, f64); 2]); 4] = [
    ("mass", [(0.115, 0.0), (0.105, 0.0)]),
    ("twisted mass", [(0.115, 0.0), (0.115, 0.4)]),
    ("two twisted masses", [(0.115, 0.1), (0.115, 0.5)]),
    ("mass and twisted mass", [(0.115, 0.1), (0.11, 0.3)]),
];

/// Errors are below 1e-10, of the differences.
fn forces(precision: Precision, forms: &[(f64, Schur)]) {
    let extents = [4; 4];
    let links = Gauge::warm(extents, 0.8, 5);
    let domain = domain(extents);
    for &(c_sw, schur) in forms {
        for (name, [light, heavy]) in RATIOS {
            let of = |(kappa, mu)| operator(kappa, mu, c_sw, schur);
            let mut term = ratio(&domain, of(light), of(heavy), precision);
            term.set_phi(&random_phi(extents, 23)).unwrap();
            let what = format!("{name} c_sw {c_sw} {schur:?} {precision:?}");
            check_force(&what, &links, &mut term, &domain, 5e-3, 1e-9);
        }
    }
}

#[test]
fn forces_of_ratios() {
    forces(Precision::Double, &FORMS);
}

#[test]
fn forces_of_ratios_in_double_and_single() {
    forces(Precision::Single, &FORMS[3..]);
}

/// The quarks may differ in everything but the Schur complement.
#[test]
fn force_of_a_ratio_of_unlike_quarks() {
    let extents = [4, 2, 6, 4];
    let links = Gauge::warm(extents, 0.8, 5);
    let domain = domain(extents);
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        for (light, heavy) in [(1.0, 0.0), (0.0, 0.6), (1.0, 0.6)] {
            let mut term = ratio(
                &domain,
                operator(0.115, 0.0, light, schur),
                operator(0.1, 0.2, heavy, schur),
                Precision::Double,
            );
            term.set_phi(&random_phi(extents, 23)).unwrap();
            let what = format!("c_sw {light} over {heavy} {schur:?}");
            check_force(&what, &links, &mut term, &domain, 5e-3, 1e-9);
        }
    }
}

#[test]
fn force_of_a_last_determinant() {
    let extents = [4; 4];
    let links = Gauge::warm(extents, 0.8, 5);
    let domain = domain(extents);
    for (c_sw, schur) in FORMS {
        let mut term = last(&domain, operator(0.115, 0.4, c_sw, schur));
        term.set_phi(&random_phi(extents, 23)).unwrap();
        check_force(&format!("mu 0.4 c_sw {c_sw} {schur:?}"), &links, &mut term, &domain, 5e-3, 1e-9);
    }
}

/// Solves to 1e-14, amplified by the root of a condition number below 100.
#[test]
fn heat_baths() {
    let extents = [4; 4];
    let domain = domain(extents);
    let links = fields(&Gauge::warm(extents, 0.8, 5), &domain);
    for (c_sw, schur) in FORMS {
        let of = |(kappa, mu)| operator(kappa, mu, c_sw, schur);
        for (name, [light, heavy]) in RATIOS {
            for precision in [Precision::Double, Precision::Single] {
                let mut term = ratio(&domain, of(light), of(heavy), precision);
                let what = format!("{name} c_sw {c_sw} {schur:?} {precision:?}");
                check_refresh(&what, &links, &mut term, 1e-12);
            }
        }
        let mut term = last(&domain, of((0.115, 0.4)));
        check_refresh(&format!("last c_sw {c_sw} {schur:?}"), &links, &mut term, 1e-12);
    }
}

/// A light quark by two ratios, in twisted mass and in mass, and the last determinant.
#[test]
fn a_chain_of_ratios_is_of_second_order_and_reversible() {
    let domain = domain([4; 4]);
    check_dynamics("chain of ratios", |links, steps| {
        let of = |kappa, mu| WilsonParams {
            boundary: Boundary::ANTIPERIODIC,
            ..operator(kappa, mu, 1.76, Schur::Symmetric)
        };
        let terms: Vec<Vec<Box<dyn Action>>> = vec![
            vec![Box::new(ratio(&domain, of(0.138, 0.0), of(0.138, 0.2), Precision::Double))],
            vec![
                Box::new(ratio(&domain, of(0.138, 0.2), of(0.125, 0.2), Precision::Double)),
                Box::new(last(&domain, of(0.125, 0.2))),
            ],
        ];
        terms::chain(links, terms, &domain, steps)
    });
}

/// Values of S are those of the dense reference,
///   `S = |W^-dag V^dag phi|^2 - 2 log det A_W + 2 log det A_V`, last `|W^-dag phi|^2 - 2 log det A_W`,
/// whose weights `|det W / det V|^2 (det A_W / det A_V)^2`, ... multiply to `|det M|^2` of the light quark, as from one
/// gauge field to another near by.
#[test]
fn a_chain_of_ratios_is_the_determinant_of_the_light_quark() {
    let extents = [2; 4];
    let domain = on_one_lane(extents);
    let links = Gauge::warm(extents, 0.7, 9);
    let near = shifted(&links, 0.05, &random_momenta(extents, 77));
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        let chain = [(0.12, 0.0), (0.12, 0.3), (0.1, 0.1)].map(|(kappa, mu)| operator(kappa, mu, 1.0, schur));
        let mut ratios = [0, 1].map(|n| ratio(&domain, chain[n], chain[n + 1], Precision::Double));
        let mut last = last(&domain, chain[2]);
        let mut log_weight = |links: &Gauge| {
            let field = fields(links, &domain);
            let w = chain.map(|operator| terms::reference_operator(links, &operator));
            let log_det = chain.map(|operator| terms::reference_log_det(links, &operator));
            let agree = |what: &str, found: f64, expected: f64| {
                let error = ((found - expected) / expected).abs();
                println!("{what} {schur:?}: S {found:.12e}, error {error:.1e}");
                assert!(error < 1e-12, "{what} {schur:?}: {found} is not {expected}");
            };
            for seed in 31..34 {
                let phi = random_phi(extents, seed);
                let odd = terms::odd_part(extents, &phi);
                let part = |light: usize, source: &[_]| {
                    terms::norm2(&terms::solve(terms::adjoint(&w[light]), source)) - 2.0 * log_det[light]
                };
                for n in [0, 1] {
                    ratios[n].set_phi(&phi).unwrap();
                    let found = ratios[n].value(&field).unwrap().value();
                    let source = terms::apply(&terms::adjoint(&w[n + 1]), &odd);
                    agree(&format!("ratio {n}"), found, part(n, &source) + 2.0 * log_det[n + 1]);
                }
                last.set_phi(&phi).unwrap();
                agree("last", last.value(&field).unwrap().value(), part(2, &odd));
            }
            let weight = |n: usize| 2.0 * terms::log_abs_det(w[n].clone()) + 2.0 * log_det[n];
            (weight(0) - weight(1)) + (weight(1) - weight(2)) + weight(2)
        };
        let found = log_weight(&near) - log_weight(&links);
        let [near, links] = [&near, &links].map(|links| terms::reference_log_abs_det(links, &chain[0]));
        let expected = 2.0 * (near - links);
        let error = (found - expected).abs();
        println!("{schur:?}: {found:.12} against {expected:.12}, error {error:.1e}");
        assert!(expected.abs() > 1e-2 && error < 1e-10, "{schur:?}: {found} is not {expected}");
    }
}
