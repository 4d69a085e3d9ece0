//! The ends of spectra: a Lanczos iteration, and what a solve sees of them.

use super::rhmc::{FORMS, operator, random, wilson};
use crate::devices::{domain, on_one_lane};
use crate::reference::gauge::Gauge;
use crate::terms;
use crate::terms::{fields, quark};
use hmc::device::Precision;
use hmc::family::Schur;
use hmc::field::Kind;
use hmc::quark::Quark;
use hmc::solver::{Cg, Operators, Params, Solver, bounds};

/// All eigenvalues of the dense reference on 2^4; on 4^4 a long run of Lanczos, and inverse iteration.
#[test]
fn the_ends_of_the_spectrum() {
    let links = Gauge::warm([2; 4], 0.8, 5);
    let small = on_one_lane([2; 4]);
    for (c_sw, schur) in FORMS {
        let params = operator(0.13, c_sw, schur);
        let w = terms::reference_operator(&links, &params);
        let mut all: Vec<f64> = terms::eigen(terms::product(&terms::adjoint(&w), &w))
            .into_iter()
            .map(|(value, _)| value)
            .collect();
        all.sort_by(f64::total_cmp);
        let mut quark = Quark::new(&small, &quark(params, Precision::Double)).unwrap();
        quark.update(&fields(&links, &small)).unwrap();
        let ends = [all[0], all[all.len() - 1]];
        for (tolerance, within) in [(1e-2, 1e-3), (1e-7, 1e-12)] {
            let found = quark.bounds(&mut random(&small, 1), tolerance).unwrap();
            let errors = [found.least / ends[0] - 1.0, 1.0 - found.greatest / ends[1]];
            println!(
                "c_sw {c_sw} {schur:?}, to {tolerance:e}: {found:?}, errors {:.1e} {:.1e}",
                errors[0], errors[1]
            );
            // From inside, but for rounding.
            assert!(errors.iter().all(|e| (-1e-12..within).contains(e)), "{errors:?}");
        }
        // What solves see: the coefficients of an iteration for shifts, in every mix of precisions.
        for precision in [
            [Precision::Double; 3],
            [Precision::Double, Precision::Single, Precision::Single],
            [Precision::Double, Precision::Double, Precision::Half],
        ] {
            let mut params = terms::quark(params, Precision::Double);
            params.solver.precisions = precision;
            let mut quark = Quark::with_shifts(&small, &params, 1).unwrap();
            quark.update(&fields(&links, &small)).unwrap();
            for residual in [1e-4, 1e-12] {
                let b = [random(&small, 1)];
                let (info, _) = quark.solve_shifted(&b, &[0.3, 0.01, 2.0], residual).unwrap().remove(0);
                let found = info.lanczos.bounds().expect("iterations");
                println!(
                    "c_sw {c_sw} {schur:?}, a solve in {precision:?} to {residual:e}: {found:?} of {ends:?}"
                );
                for (k, end) in [found.least, found.greatest].into_iter().enumerate() {
                    // An eigenvalue is near: of the ends, these are the nearest.
                    let off = all.iter().map(|value| (value - end).abs()).fold(f64::INFINITY, f64::min);
                    assert!(
                        off <= found.errors[k] + 1e-12 * ends[1],
                        "{off:e} instead of {:e}",
                        found.errors[k]
                    );
                    let inside = if k == 0 { end / ends[0] - 1.0 } else { 1.0 - end / ends[1] };
                    let rounding = found.errors[k] / end;
                    assert!(inside > -1e-12 - rounding, "{inside:e} is outside");
                    assert!(residual > 1e-5 || inside < 0.05, "{precision:?}: {inside:e} from the end");
                }
            }
        }
    }
    let domain = domain([4; 4]);
    let links = Gauge::warm([4; 4], 0.2, 5);
    let [mut double, ..] = wilson(&domain, &links, Schur::Asymmetric);
    let mut run =
        |number, tolerance| bounds(&mut double, &mut random(&domain, number), tolerance, 2000).unwrap();
    let (rough, long, other) = (run(2, 1e-2), run(2, 1e-7), run(4, 1e-7));
    // Inverse iteration: the Rayleigh quotient of (M^dag M)^-k b falls to the least eigenvalue, slowly.
    let mut cg = Cg::new(&domain, Kind::Dirac, Precision::Double, 1e-3).unwrap();
    let (mut v, mut x, mut least) = (random(&domain, 3), random(&domain, 3), 0.0);
    for _ in 0..40 {
        v.scale(1.0 / v.norm2().unwrap().value().sqrt()).unwrap();
        x.set_zero().unwrap();
        let params = Params { residual: 1e-8, max_iterations: 2000 };
        cg.solve(&mut Operators::new(&mut double, None), &mut x, &v, params).unwrap();
        least = v.real_dot(&x).unwrap().value() / x.norm2().unwrap().value();
        v.copy_from(&x).unwrap();
    }
    println!("4^4: {rough:?}, {long:?}, {other:?}, inverse iteration {least:.8e}");
    for (found, within) in [(rough, 1e-3), (other, 1e-11)] {
        let errors = [found.least / long.least - 1.0, found.greatest / long.greatest - 1.0];
        assert!(errors.iter().all(|e| e.abs() < within), "{errors:?}");
    }
    assert!((-1e-8..2e-2).contains(&(least / long.least - 1.0)), "{least:e} and {long:?}");
}
