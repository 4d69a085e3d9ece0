//! M, its adjoint and its inverse of every family, against the plain reference.

use super::calls::{Links, Quark, Session, done};
use crate::compare::distance;
use crate::reference::domain_wall::Wall;
use crate::reference::gauge::Gauge;
use crate::reference::staggered::{self, Staggered};
use crate::reference::wilson::{self, Dirac, Parameters};
use hmc::capi::{
    hmc_quark, hmc_quark_apply, hmc_quark_propagate, hmc_quark_propagator, hmc_quark_shape, hmc_quark_solve,
    hmc_solved,
};
use hmc::lattice::{Extents, site, volume};
use std::ffi::c_int;

const EXTENTS: Extents = [4, 4, 4, 4];
const PHASES: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

type Solve = unsafe extern "C" fn(*mut hmc_quark, *const f64, *mut f64, usize, *mut hmc_solved) -> c_int;

fn apply(quark: &Quark, x: &[f64], dagger: bool) -> Vec<f64> {
    // In place.
    let mut out = x.to_vec();
    let at = out.as_mut_ptr();
    // SAFETY: as many reals.
    done(unsafe { hmc_quark_apply(quark.0, c_int::from(dagger), at, at, out.len()) });
    out
}

fn solve(solve: Solve, quark: &Quark, b: &[f64]) -> (Vec<f64>, hmc_solved) {
    let mut x = vec![0.0; b.len()];
    let mut solved = hmc_solved { residual: 1.0, seconds: -1.0, iterations: 0, fallbacks: 9 };
    // SAFETY: as many reals, and room for one.
    done(unsafe { solve(quark.0, b.as_ptr(), x.as_mut_ptr(), b.len(), &mut solved) });
    assert!(
        solved.residual < 1e-11 && solved.seconds > 0.0 && solved.iterations > 0 && solved.fallbacks == 0
    );
    (x, solved)
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `expected` is M x. y is any other field.
fn check(name: &str, quark: &Quark, x: &[f64], expected: &[f64], y: &[f64]) {
    let mx = apply(quark, x, false);
    let error = distance(&mx, expected);
    assert!(error < 1e-14, "{name}: M x: {error:.1e}");
    let (one, other) = (product(y, &mx), product(&apply(quark, y, true), x));
    assert!((one - other).abs() < 1e-13 * product(y, y), "{name}: (y, M x) {one}, (M^dag y, x) {other}");
    // Two right-hand sides.
    let b = [x, y].concat();
    let (found, _) = solve(hmc_quark_solve, quark, &b);
    for (found, b) in found.chunks(x.len()).zip([x, y]) {
        let error = distance(&apply(quark, found, false), b);
        assert!(error < 1e-9, "{name}: |b - M x| / |b| = {error:.1e}");
    }
}

fn toml(fermion: &str, quark: &str) -> String {
    format!("[fermion.q]\n{fermion}\n[quark]\nfermion = \"q\"\nresidual = 1e-12\n{quark}")
}

fn shape(quark: &Quark) -> [usize; 2] {
    let mut shape = [0; 2];
    let [components, slices] = &mut shape;
    // SAFETY: room for two numbers.
    done(unsafe { hmc_quark_shape(quark.0, components, slices) });
    shape
}

#[test]
fn operators_are_those_of_the_reference() {
    let session = Session::new();
    let gauge = Gauge::warm(EXTENTS, 0.3, 5);
    let links = Links::new(&session, EXTENTS, &gauge.to_host().reals);
    let spinor = |seed| wilson::random_field(EXTENTS, seed);
    for (name, keys, c_sw) in [
        ("Wilson", "action = \"wilson\"\nkappa = 0.11", 0.0),
        ("clover", "action = \"wilson-clover\"\nkappa = 0.11\nc_sw = 1.3", 1.3),
    ] {
        let quark = Quark::new(&links, &toml(keys, ""));
        assert_eq!(shape(&quark), [12, 1]);
        let (x, y) = (spinor(1), spinor(2));
        let expected = Dirac::new(&gauge, Parameters::from_kappa(0.11, c_sw)).apply(&x);
        check(name, &quark, &wilson::reals(&x), &wilson::reals(&expected), &wilson::reals(&y));
    }
    for (name, keys, operator) in [
        ("asqtad", "action = \"asqtad\"\nu0 = 0.9", Staggered::asqtad(&gauge, 0.9, PHASES)),
        ("HISQ", "action = \"hisq\"", Staggered::hisq(&gauge, 0.0, PHASES)),
    ] {
        let quark = Quark::new(&links, &toml(keys, "mass = 0.2"));
        assert_eq!(shape(&quark), [3, 1]);
        let [x, y] = [1, 2].map(|seed| staggered::random_field(EXTENTS, seed));
        let expected = staggered::axpy(&operator.apply(&x), 2.0 * 0.2, &x);
        check(name, &quark, &staggered::reals(&x), &staggered::reals(&expected), &staggered::reals(&y));
    }
}

/// D_5 with weights of every slice, and the quark from wall to wall.
#[test]
fn domain_walls_have_slices() {
    let (session, gauge) = (Session::new(), Gauge::warm(EXTENTS, 0.3, 6));
    let links = Links::new(&session, EXTENTS, &gauge.to_host().reals);
    let keys = "action = \"domain-wall\"\nn_s = 4\nm5 = 1.4\nmass = 0.1\nweights = \"listed\"\n\
                omega = [1.1, 1.3, 0.9, 1.2]\nsigma = [0.3, 0.5, 0.1, 0.4]";
    let (omega, sigma) = ([1.1, 1.3, 0.9, 1.2], [0.3, 0.5, 0.1, 0.4]);
    let wall = Wall::new(&gauge, [&omega, &sigma], 1.4, [0.1; 2], PHASES);
    let quark = Quark::new(&links, &toml(keys, ""));
    assert_eq!(shape(&quark), [12, 4]);
    let field = |seed: u64| (0..4).map(|s| wilson::random_field(EXTENTS, seed + s)).collect::<Vec<_>>();
    let reals =
        |field: &[Vec<wilson::Spinor>]| -> Vec<f64> { field.iter().flat_map(|s| wilson::reals(s)).collect() };
    let x = field(1);
    let check_of = |x: &[Vec<wilson::Spinor>], expected: &[Vec<wilson::Spinor>]| {
        check("domain walls", &quark, &reals(x), &reals(expected), &reals(&field(11)));
    };
    check_of(&x, &wall.apply(&x));

    // From wall to wall: D_5 psi = D_- (P_+ b on the first slice, P_- b on the last), q = P_- psi_1 + P_+ psi_4.
    let b = wilson::random_field(EXTENTS, 21);
    let zero = wilson::zero_field(EXTENTS);
    let chiral = |upper: &[wilson::Spinor], lower: &[wilson::Spinor]| -> Vec<wilson::Spinor> {
        upper.iter().zip(lower).map(|(u, l)| [u[0], u[1], l[2], l[3]]).collect()
    };
    let walls = vec![chiral(&b, &zero), zero.clone(), zero.clone(), chiral(&zero, &b)];
    let kernel = wall.kernel(&walls);
    let source: Vec<_> = (0..4).map(|s| wilson::axpy(&walls[s], -sigma[s], &kernel[s])).collect();
    let (psi, _) = solve(hmc_quark_solve, &quark, &reals(&source));
    let psi: Vec<_> = psi.chunks(psi.len() / 4).map(wilson::spinors).collect();
    let expected = chiral(&psi[3], &psi[0]);
    let (found, _) = solve(hmc_quark_propagate, &quark, &wilson::reals(&b));
    let error = wilson::distance(&wilson::spinors(&found), &expected);
    assert!(error < 1e-8, "from wall to wall: {error:.1e}");
}

/// A propagator's columns are solutions for the components of its point.
#[test]
fn propagators_are_solutions() {
    let (session, gauge) = (Session::new(), Gauge::warm(EXTENTS, 0.3, 7));
    let links = Links::new(&session, EXTENTS, &gauge.to_host().reals);
    let quark = Quark::new(&links, &toml("action = \"hisq\"", "mass = 0.2"));
    let (source, of_one) = ([1, 2, 3, 2], 6 * volume(EXTENTS));
    let mut found = vec![0.0; 3 * of_one];
    let no_statistics = std::ptr::null_mut();
    // SAFETY: four numbers, and room for so many reals.
    done(unsafe {
        hmc_quark_propagator(quark.0, source.as_ptr(), found.as_mut_ptr(), found.len(), no_statistics)
    });
    for (component, column) in found.chunks(of_one).enumerate() {
        let mut b = vec![0.0; of_one];
        b[6 * site(EXTENTS, source) + 2 * component] = 1.0;
        assert!(distance(&apply(&quark, column, false), &b) < 1e-9);
    }
}
