//! Rooted staggered quarks: the force is the derivative of the action, the heat bath belongs to it, trajectories are
//! reversible and of second order, and all bits are the same on any ranks and lanes.

use crate::devices::domain;
use crate::reference::gauge::Gauge;
use crate::terms;
use crate::terms::{chain, check_dynamics, check_force, check_refresh};
use hmc::action::{Action, TermHeader};
use hmc::device::Precision;
use hmc::family::{Rooted, RootedParams, RootedPseudofermion, RootedSolver, Smearing};
use hmc::field::AlgebraField;
use hmc::lattice::Boundary;
use hmc::math::{Factor, Rational};

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

/// Pseudofermions with the same functions are solved together, and one by one if their functions differ, if only in when the
/// spectrum is measured: heat bath, action and force have the same bits.
#[test]
fn pseudofermions_together_have_the_bits_of_one_by_one() {
    let extents = [4, 4, 4, 8];
    let links = Gauge::warm(extents, 0.5, 3);
    for (precisions, multi_shift) in [
        ([Precision::Double; 2], true),
        ([Precision::Double, Precision::Single], true),
        ([Precision::Double, Precision::Half], true),
        ([Precision::Single, Precision::Half], true),
        ([Precision::Single; 2], false),
    ] {
        let domain = domain(extents);
        let field = terms::fields(&links, &domain);
        let made = |apart: bool| {
            let mut params = params(HISQ, Precision::Double, multi_shift, TIGHT);
            (params.solver.precisions, params.solver.heat_bath_residual) = (precisions, 1e-11);
            // Ten of them: more than are solved together.
            let heavy = params.pseudofermions[1].clone();
            params.pseudofermions.splice(1..2, std::iter::repeat_n(heavy, 10));
            for (k, pseudofermion) in params.pseudofermions.iter_mut().enumerate() {
                pseudofermion.check_every = if apart { 1 + k as u64 } else { 1 };
            }
            let mut term = Rooted::new(&domain, params).unwrap();
            let drawn = term.refresh(&field, 5, 0).unwrap();
            let valued = term.value(&field).unwrap();
            let mut force = AlgebraField::new(&domain).unwrap();
            let iterations = term.add_force(&field, &mut force).unwrap();
            (drawn.value(), valued.value(), iterations, force.to_host().unwrap())
        };
        let [together, apart] = [false, true].map(made);
        println!("{precisions:?}: {} iterations, S {}", together.2, together.1);
        assert!(together == apart, "{precisions:?}: {:?} {:?}", together.1, apart.1);
    }
}
