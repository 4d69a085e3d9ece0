//! Rooted staggered quarks: the force is the derivative of the action, the heat bath belongs to it, trajectories are
//! reversible and of second order, and all bits are the same on any ranks and lanes.

use crate::devices::{domain, most_lanes, on_lanes, on_one_lane};
use crate::ranks;
use crate::reference::gauge::Gauge;
use crate::terms;
use crate::terms::{chain, check_dynamics, check_force, check_refresh};
use hmc::action::{Action, TermHeader};
use hmc::device::Precision;
use hmc::family::{Rooted, RootedParams, RootedPseudofermion, RootedSolver, Smearing};
use hmc::field::{AlgebraField, Domain, HostLinks, MatrixField};
use hmc::lattice::{Boundary, Extents, Partition};
use hmc::math::{Factor, Rational};
use std::sync::Arc;

pub(super) const HISQ: Smearing = Smearing::Hisq { special: false };

/// The functions of a weight prod det(M^dag M at mass)^power, to the errors of action and force.
fn pseudofermion(factors: &[(f64, (i32, u32))], naik_epsilon: f64, errors: [f64; 2]) -> RootedPseudofermion {
    let least = factors.iter().map(|(m, _)| 4.0 * m * m).fold(f64::INFINITY, f64::min);
    let function = |sign: i32, parts: u32, error| {
        let factor = |&(m, (p, q)): &(f64, (i32, u32))| Factor {
            shift: 4.0 * m * m - least,
            power: (sign * p, parts * q),
        };
        let factors: Vec<Factor> = factors.iter().map(factor).collect();
        Rational::to_error(&factors, [least, 60.0 + least], error).unwrap().shifted(least)
    };
    RootedPseudofermion {
        naik_epsilon,
        heat_bath: function(1, 2, errors[0]),
        action: function(-1, 2, errors[0]),
        force: function(-1, 1, errors[1]),
        check_every: 1,
        inner: None,
    }
}

/// Light over Hasenbusch's mass with the strange quark, three heavy ones at once, and, of HISQ, charm.
pub(super) fn params(
    smearing: Smearing,
    precision: Precision,
    multi_shift: bool,
    errors: [f64; 2],
) -> RootedParams {
    let mut pseudofermions = vec![
        pseudofermion(&[(0.1, (2, 4)), (0.2, (1, 4)), (0.5, (-3, 4))], 0.0, errors),
        pseudofermion(&[(0.5, (3, 4))], 0.0, errors),
    ];
    if smearing == HISQ {
        pseudofermions.push(pseudofermion(&[(0.8, (1, 4))], -0.2, errors));
    }
    let residual = 1e-13;
    RootedParams {
        header: TermHeader {
            name: "ks".into(),
            number: 0,
            action_residual: residual,
            force_residual: residual,
        },
        smearing,
        boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
        solver: RootedSolver {
            precisions: [precision; 2],
            delta: 1e-3,
            multi_shift,
            long_reals: 14,
            heat_bath_residual: residual,
            max_iterations: 5000,
        },
        pseudofermions,
    }
}

pub(super) const TIGHT: [f64; 2] = [1e-13, 1e-12];

#[test]
fn force_is_the_derivative() {
    for (what, smearing, precision, multi_shift) in [
        ("asqtad", Smearing::Asqtad { u0: 0.87 }, Precision::Double, true),
        ("HISQ", HISQ, Precision::Single, true),
        ("HISQ, one pole after the other", HISQ, Precision::Half, false),
        ("HISQ in SU(3)", Smearing::Hisq { special: true }, Precision::Double, true),
    ] {
        for extents in [[4; 4], [2, 6, 4, 8]] {
            let domain = domain(extents);
            let links = Gauge::warm(extents, 0.5, 3);
            let mut term = Rooted::new(&domain, params(smearing, precision, multi_shift, TIGHT)).unwrap();
            check_refresh(what, &terms::fields(&links, &domain), &mut term, 1e-10);
            // The error of the functions, and the differences' rounding.
            check_force(what, &links, &mut term, &domain, 2e-3, 1e-9);
            if what != "HISQ" {
                break;
            }
        }
    }
}

#[test]
fn trajectories_are_reversible_and_of_second_order() {
    for (what, smearing) in [("asqtad", Smearing::Asqtad { u0: 0.87 }), ("HISQ", HISQ)] {
        check_dynamics(what, |links, steps| {
            let domain = domain([4; 4]);
            let errors = [1e-11, 1e-11];
            let term = Rooted::new(&domain, params(smearing, Precision::Single, true, errors)).unwrap();
            chain(links, vec![vec![Box::new(term) as Box<dyn Action>]], &domain, steps)
        });
    }
}

const EXTENTS: Extents = [8, 4, 4, 8];

/// S at the refresh, S, and the force.
fn results(domain: &Arc<Domain>, links: &HostLinks) -> Vec<(f64, f64, Vec<f64>)> {
    let links = MatrixField::from_host(domain, links).unwrap();
    let of = |smearing, precisions| {
        let mut params = params(smearing, Precision::Single, true, [1e-9, 1e-7]);
        params.solver.precisions = precisions;
        let mut term = Rooted::new(domain, params).unwrap();
        let drawn = term.refresh(&links, 3, 1).unwrap().value();
        let value = term.value(&links).unwrap().value();
        let mut force = AlgebraField::new(domain).unwrap();
        term.add_force(&links, &mut force).unwrap();
        (drawn, value, force.to_host().unwrap())
    };
    let falling = [Precision::Double, Precision::Half];
    vec![of(Smearing::Asqtad { u0: 0.87 }, [Precision::Single; 2]), of(HISQ, falling)]
}

#[test]
fn ranks_and_lanes_have_the_same_bits() {
    let links = Gauge::warm(EXTENTS, 0.6, 19).to_host();
    let whole = Partition::whole(EXTENTS).unwrap();
    let expected = results(&on_one_lane(EXTENTS), &links);
    let check = |what: &str, found: &[(f64, f64, Vec<f64>)], partition: &Partition| {
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1), "{what}: S");
            assert!(found.2 == ranks::part(&expected.2, partition, 32), "{what}: force");
        }
    };
    let lanes = domain(EXTENTS);
    println!("{} lanes", lanes.lanes().count());
    check("lanes", &results(&lanes, &links), &whole);
    for grid in [[1, 1, 1, 2], [2, 1, 1, 2]] {
        let found = ranks::on_grid(EXTENTS, grid, |partition, comm| {
            let domain = on_lanes(most_lanes(&partition, 4), partition, comm, 2);
            results(&domain, &ranks::links(&links, &partition))
        });
        for (partition, found) in &found {
            check(&format!("grid {grid:?}, box at {:?}", partition.offset()), found, partition);
        }
    }
}
