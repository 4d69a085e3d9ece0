//! The least of many shifts by multigrid: the same solutions, action and force as of all shifts at once, in every mix of
//! precisions; what multigrid cannot, conjugate gradients do, and that is told.

use super::quark::{EXTENTS, Quark, relative, thermalised};
use crate::compare::distance;
use crate::devices::domain;
use crate::terms;
use hmc::action::{Action, Determinant, DeterminantParams, InnerPoles, Power, RationalPower, TermHeader};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{AlgebraField, Domain, HostLinks, Kind, MatrixField, Spinor};
use hmc::lattice::{Boundary, Extents};
use hmc::quark::QuarkParams;
use hmc::solver::{
    LightShifts, Method, MultiInfo, MultiShift, MultigridParams, Params, Past, Settings, SolverError,
};
use std::sync::Arc;

const D: Precision = Precision::Double;
const S: Precision = Precision::Single;
const H: Precision = Precision::Half;
/// All that an input accepts: of the common iteration, and of refinements and cycles.
const MIXES: [[Precision; 2]; 4] = [[D, S], [D, H], [S, S], [S, H]];
const SHIFTS: [f64; 5] = [0.3, 1e-4, 2e-2, 2e-3, 4.0];

/// At beta = 6.0 the critical kappa of this `c_sw` is 0.13525 (Luescher et al., hep-lat/9609035).
fn params(kappa: f64, schur: Schur) -> WilsonParams {
    WilsonParams { kappa, mu: 0.0, c_sw: 1.769, boundary: Boundary::ANTIPERIODIC, schur }
}

fn multigrid(block: Extents) -> MultigridParams {
    MultigridParams { block, coarse_block: None, vectors: 16, steps: 6 }
}

/// Solves for all of `SHIFTS`, the least `left` of them by multigrid.
fn solve(
    quark: &mut Quark,
    [iteration, last]: [Precision; 2],
    left: usize,
    goal: Params,
) -> Result<(MultiInfo, Vec<Spinor>), SolverError> {
    let delta = if last == H { 0.1 } else { 1e-3 };
    let mut all =
        MultiShift::new(&quark.domain, Kind::Dirac, [iteration, last], delta, SHIFTS.len()).unwrap();
    let make = || LightShifts::new(&quark.domain, last, left, 16, multigrid([4; 4])).unwrap();
    let mut light = (left > 0).then(make);
    let b = quark.random(0);
    let mut x: Vec<Spinor> = SHIFTS.iter().map(|_| quark.spinor()).collect();
    let info = all.solve_all_with(&mut quark.operators(), &mut x, &b, &SHIFTS, goal, light.as_mut())?;
    Ok((info, x))
}

#[test]
fn they_agree_with_all_shifts_at_once() {
    const GOAL: Params = Params { residual: 1e-10, max_iterations: 4000 };
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        let mut quark = Quark::new(&domain(EXTENTS), [thermalised(); 3], params(0.1345, schur));
        let (plain, expected) = solve(&mut quark, [D, D], 0, GOAL).unwrap();
        // More than there are is all of them.
        let lefts: &[usize] = if schur == Schur::Symmetric { &[2] } else { &[1, 9] };
        for mix in MIXES {
            for &left in lefts {
                let (info, x) = solve(&mut quark, mix, left, GOAL).unwrap();
                let together = info.total.iterations - info.refinements;
                println!(
                    "{schur:?} {mix:?}, {left} left: {together} iterations for all and {} for single ones, {} for all in double",
                    info.refinements, plain.total.iterations
                );
                assert_eq!((info.total.fallbacks, info.residuals.len()), (0, SHIFTS.len()), "{info:?}");
                assert!(
                    info.residuals.iter().all(|&found| found > 0.0 && found <= GOAL.residual),
                    "{info:?}"
                );
                assert!(together < plain.total.iterations && (left < 9 || together == 0), "{info:?}");
                // An iteration that ends early knows nothing of the least eigenvalue.
                assert!(info.lanczos.bounds().is_none() && plain.lanczos.bounds().is_some());
                // |x - y| <= |(M^dag M + s)^-1| (|r_x| + |r_y|), and that norm is below 1e4 here.
                for (x, expected) in x.iter().zip(&expected) {
                    assert!(relative(x, expected) < 1e-6, "{mix:?}, {left}: {:.1e}", relative(x, expected));
                }
            }
        }
    }
}

/// Where lower precisions have other links, or links that are no numbers, each shift falls back; where the iterations do not
/// suffice for either, the solve fails.
#[test]
fn failures_fall_back_and_are_counted() {
    let goal = Params { residual: 1e-10, max_iterations: 1000 };
    // Without a clover term, which links that are no numbers do not have.
    let params = WilsonParams { c_sw: 0.0, ..params(0.145, Schur::Asymmetric) };
    let links = thermalised();
    let broken = HostLinks { reals: vec![f64::NAN; links.reals.len()], ..links.clone() };
    for (what, lower) in [("other", &HostLinks::unit(EXTENTS)), ("broken", &broken)] {
        let mut quark = Quark::new(&domain(EXTENTS), [links, lower, lower], params);
        for mix in [[D, S], [D, H]] {
            let (info, _) = solve(&mut quark, mix, SHIFTS.len(), goal).unwrap();
            println!("{what} links, {mix:?}: {} fallbacks", info.total.fallbacks);
            assert!(info.total.fallbacks >= SHIFTS.len(), "{what} links, {mix:?}: {info:?}");
            assert!(info.residuals.iter().all(|&found| found <= goal.residual), "{what} links: {info:?}");
        }
    }
    let mut quark = Quark::new(&domain(EXTENTS), [links; 3], params);
    match solve(&mut quark, [D, S], SHIFTS.len(), Params { max_iterations: 4, ..goal }) {
        Err(SolverError::NotConverged { residual, wanted, .. }) => assert!(residual > wanted),
        other => panic!("{:?}", other.map(|(info, _)| info)),
    }
}

/// One flavour, its least shifts by this method.
fn term(
    domain: &Arc<Domain>,
    operator: WilsonParams,
    method: Method,
    range: [f64; 2],
    inner: Option<InnerPoles>,
) -> Determinant<Wilson> {
    let solver = Settings { method, precisions: [D, D, S], delta: 1e-3, max_iterations: 5000 };
    let params = DeterminantParams {
        header: TermHeader {
            name: "strange".into(),
            number: 0,
            action_residual: 1e-13,
            force_residual: 1e-12,
        },
        light: QuarkParams { operator, solver, link_reals: 18, guess: Past::NONE },
        heavy: None,
        power: Power::Rational(RationalPower {
            copies: 1,
            range,
            heavy_range: None,
            action_error: 1e-10,
            force_error: 1e-8,
            check_every: 1,
            inner,
        }),
    };
    Determinant::new(domain, params).unwrap()
}

/// Errors of solutions, of 1e-13 times the condition of a few 1e3.
#[test]
fn action_and_force_are_the_same() {
    let phi = terms::random_phi(EXTENTS, 23);
    let domain = domain(EXTENTS);
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        let inner = || Some(InnerPoles { name: "inner".into(), poles: 4 });
        let method = Method::LightShifts { shifts: 3, k_max: 16, params: multigrid([4; 4]) };
        let found = [Method::Cg, method].map(|method| {
            let mut term = term(&domain, params(0.1345, schur), method, [1e-4, 60.0], inner());
            let links = MatrixField::from_host(&domain, thermalised()).unwrap();
            term.refresh(&links, 1, 0).unwrap();
            term.set_phi(&phi).unwrap();
            let action = term.value(&links).unwrap().value();
            let forces = [None, Some(0), Some(1)].map(|part| {
                let mut force = AlgebraField::new(links.domain()).unwrap();
                term.add_part(part, &links, &mut force).unwrap();
                force.to_host().unwrap()
            });
            (action, forces)
        });
        let [(expected, plain), (action, forces)] = &found;
        let error = ((action - expected) / expected).abs();
        let apart: Vec<f64> = forces.iter().zip(plain).map(|(force, plain)| distance(force, plain)).collect();
        println!("{schur:?}: action apart {error:.1e}, forces {apart:?}");
        assert!(error < 1e-11 && apart.iter().all(|&apart| apart < 1e-9), "{error:e}, {apart:?}");
        // The inner part has no light shifts.
        assert!(apart[0] > 0.0 && apart[2] == 0.0, "{apart:?}");
    }
}

#[test]
fn molecular_dynamics_are_of_second_order_and_reversible() {
    let domain = domain([4; 4]);
    let method = Method::LightShifts { shifts: 2, k_max: 16, params: multigrid([2; 4]) };
    terms::check_dynamics("light shifts", |links, steps| {
        let operator = WilsonParams { c_sw: 1.76, ..params(0.13, Schur::Asymmetric) };
        let term: Box<dyn Action> = Box::new(term(&domain, operator, method, [1e-4, 60.0], None));
        terms::chain(links, vec![vec![term]], &domain, steps)
    });
}
