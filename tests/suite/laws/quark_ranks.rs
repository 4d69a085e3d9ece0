//! Ratios of determinants and one flavour have the same bits on any ranks and lanes: refresh, value, force, and the
//! measured spectrum.

use crate::devices::{domain, on_most_lanes, on_one_lane};
use crate::ranks;
use crate::reference::gauge::Gauge;
use crate::terms::quark;
use hmc::action::{Action, Determinant, DeterminantParams, Power, RationalPower, TermHeader};
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::{AlgebraField, Domain, HostLinks, MatrixField};
use hmc::lattice::{Boundary, Extents, Partition};
use std::sync::Arc;

const EXTENTS: Extents = [8, 4, 4, 8];

fn operator(kappa: f64, mu: f64, schur: Schur) -> WilsonParams {
    WilsonParams { kappa, mu, c_sw: 1.0, boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]), schur }
}

/// The terms, in all precisions and both forms; the last one's operator falls from double to half.
fn terms_of(domain: &Arc<Domain>) -> Vec<Box<dyn Action>> {
    let ratio = DeterminantParams {
        header: TermHeader { name: "ratio".into(), number: 0, action_residual: 1e-11, force_residual: 1e-8 },
        light: quark(operator(0.12, 0.0, Schur::Symmetric), Precision::Single),
        heavy: Some(quark(operator(0.11, 0.2, Schur::Symmetric), Precision::Double)),
        power: Power::Inverse,
    };
    let one = |schur, precision, copies| DeterminantParams {
        header: TermHeader {
            name: "strange".into(),
            number: 1,
            action_residual: 1e-10,
            force_residual: 1e-7,
        },
        light: quark(operator(0.12, 0.0, schur), precision),
        heavy: None,
        power: Power::Rational(RationalPower {
            copies,
            range: [0.01, 60.0],
            heavy_range: None,
            action_error: 1e-9,
            force_error: 1e-5,
            check_every: 1,
            inner: None,
        }),
    };
    let mut relaxed = one(Schur::Symmetric, Precision::Double, 1);
    relaxed.light.solver.precisions[2] = Precision::Half;
    vec![
        Box::new(Determinant::new(domain, ratio).unwrap()),
        Box::new(Determinant::new(domain, one(Schur::Asymmetric, Precision::Single, 2)).unwrap()),
        Box::new(Determinant::new(domain, one(Schur::Symmetric, Precision::Double, 1)).unwrap()),
        Box::new(Determinant::new(domain, relaxed).unwrap()),
    ]
}

/// What of the terms must not depend on the machine, force last.
type Results = Vec<(f64, f64, Option<String>, Vec<f64>)>;

/// A report's line without `, 0.12 s (operator 60%, ..)`: all else is the same everywhere.
fn without_times(line: &str) -> String {
    let (before, rest) = line.split_once(" s (").expect("the seconds of the solves");
    let (solves, _seconds) = before.rsplit_once(", ").expect("a number of seconds");
    let (_shares, after) = rest.split_once(')').expect("the end of the shares");
    format!("{solves}{after}")
}

fn results(domain: &Arc<Domain>, links: &HostLinks) -> Results {
    let links = MatrixField::from_host(domain, links).unwrap();
    let of = |mut term: Box<dyn Action>| {
        let drawn = term.refresh(&links, 3, 1).unwrap().value();
        let value = term.value(&links).unwrap().value();
        let mut force = AlgebraField::new(domain).unwrap();
        term.add_force(&links, &mut force).unwrap();
        (drawn, value, term.report().map(|report| without_times(&report.text)), force.to_host().unwrap())
    };
    terms_of(domain).into_iter().map(of).collect()
}

#[test]
fn ranks_and_lanes_have_the_same_bits() {
    let links = Gauge::warm(EXTENTS, 0.7, 19).to_host();
    let whole = Partition::whole(EXTENTS).unwrap();
    let expected = results(&on_one_lane(EXTENTS), &links);
    assert!(expected.iter().all(|(drawn, value, _, _)| ((drawn - value) / drawn).abs() < 1e-7));
    let check = |what: &str, found: &Results, partition: &Partition| {
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1), "{what}: S");
            assert_eq!(found.2, expected.2, "{what}: the report");
            assert!(found.3 == ranks::part(&expected.3, partition, 32), "{what}: force");
        }
    };
    let lanes = domain(EXTENTS);
    println!("{} lanes", lanes.lanes().count());
    check("lanes", &results(&lanes, &links), &whole);
    for grid in [[1, 1, 1, 2], [2, 2, 1, 1]] {
        let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
            results(&on_most_lanes(partition, comm, 1), &ranks::links(&links, &partition))
        });
        for (partition, found) in &found {
            check(&format!("grid {grid:?}, box at {:?}", partition.offset()), found, partition);
        }
    }
}
