//! Linear algebra on colour vectors: against plain sums in double, and on several fields as on single ones.

use super::*;
use crate::kernels::{combination, product};
use hmc::device::has_emulation;
use hmc::field::{EVEN, ODD, Purpose, Quotient, RandomAddress, ShiftSteps};
use std::panic::{AssertUnwindSafe, catch_unwind};

const EXTENTS: Extents = [4, 4, 6, 8];

fn close(what: &str, found: &[f64], expected: &[f64]) {
    let off = distance(found, expected);
    println!("{what:<16} {off:.1e}");
    // A product, a sum and a rounding of a random real.
    assert!(off < 3e-16, "{what}: off by {off:e}");
}

fn random(seed: u64) -> Vec<f64> {
    reals(&plain::restrict(EXTENTS, &plain::random_field(EXTENTS, seed), ODD))
}

fn sum_is(what: &str, found: impl Into<Complex64>, expected: impl Into<Complex64>) {
    let (found, expected) = (found.into(), expected.into());
    // Of some 10^3 to 10^4 products, each rounded.
    assert!((found - expected).norm() < 1e-14 * 1e4, "{what}: {found} instead of {expected}");
}

#[test]
fn double_against_plain_sums() {
    let [a, b, c, d] = [1, 2, 3, 4].map(random);
    let one = Complex64::from(1.0);
    for domain in domains(EXTENTS) {
        let make = |reals: &[f64]| upload(&domain, D, ODD, reals);
        let (x, y) = (make(&a), make(&b));
        let host = |x: &Spinor| download(x, ODD);
        sum_is("norm2", x.norm2().unwrap().value(), product(&a, &a));
        sum_is("real_dot", x.real_dot(&y).unwrap().value(), product(&a, &b).re);
        sum_is("dot", x.dot(&y).unwrap(), product(&a, &b));
        let norms = x.weighted_norms(0.3, &y).unwrap().value().unwrap();
        sum_is("weighted_norms", norms, product(&a, &a).re + 0.3 * product(&b, &b).re);
        let changed = |change: &dyn Fn(&mut Spinor)| {
            let mut x = make(&a);
            change(&mut x);
            host(&x)
        };
        let plus = |s: Complex64| combination((one, &a), (s, &b));
        close("axpy", &changed(&|x| x.axpy(0.3, &y).unwrap()), &plus(0.3.into()));
        let s = Complex64::new(0.3, -0.8);
        close("caxpy", &changed(&|x| x.caxpy(s, &y).unwrap()), &plus(s));
        close("xpay", &changed(&|x| x.xpay(&y, -1.7).unwrap()), &combination((one, &b), ((-1.7).into(), &a)));
        close(
            "scale",
            &changed(&|x| x.scale(-0.6).unwrap()),
            &combination(((-0.6).into(), &a), (one * 0.0, &b)),
        );
        close("add", &changed(&|x| x.add(&y).unwrap()), &plus(one));
        let (mut x, mut r) = (make(&a), make(&c));
        let rr = r.axpy_norm2(-0.4, &make(&d)).unwrap().value().unwrap();
        let residual = combination((one, &c), ((-0.4).into(), &d));
        close("axpy_norm2", &host(&r), &residual);
        sum_is("axpy_norm2", rr, product(&residual, &residual));
        let mut q = make(&d);
        assert_eq!(q.xpay_norm2(&make(&c), -0.4).unwrap().value().unwrap(), rr, "xpay_norm2");
        assert_same_bits(&host(&q), &host(&r), "xpay_norm2");
        let mut p = make(&b);
        x.cg_step_each(&[0.4.into()], &mut p, &r, &[0.7.into()]).unwrap();
        close("cg_step: x", &host(&x), &plus(0.4.into()));
        close("cg_step: p", &host(&p), &combination((one, &host(&r)), (0.7.into(), &b)));
        // More shifts than one launch takes, and for each up to as many steps: the same bits as single steps.
        let mut pairs: Vec<_> = (0..19).map(|n| (make(&random(20 + n)), make(&random(50 + n)))).collect();
        let residuals: Vec<_> = (80..83).map(|n| make(&random(n))).collect();
        let number = |n: usize, m: usize| [0.1 + n as f64 - 0.3 * m as f64, 1.0 - 0.2 * n as f64 + m as f64];
        let numbers: Vec<Vec<_>> =
            (0..pairs.len()).map(|n| (0..n % 4).map(|m| number(n, m)).collect()).collect();
        let mut steps: Vec<_> =
            pairs.iter_mut().zip(&numbers).map(|((x, p), steps)| ShiftSteps { x, p, steps }).collect();
        Spinor::shift_steps(&residuals, &mut steps).unwrap();
        for (n, ((x, p), numbers)) in pairs.iter().zip(&numbers).enumerate() {
            let (mut x_one, mut p_one) = (make(&random(20 + n as u64)), make(&random(50 + n as u64)));
            for ([a, b], r) in numbers.iter().zip(&residuals) {
                x_one.cg_step_each(&[(*a).into()], &mut p_one, r, &[(*b).into()]).unwrap();
            }
            assert_same_bits(&host(x), &host(&x_one), "x of many steps");
            assert_same_bits(&host(p), &host(&p_one), "p of many steps");
        }
    }
}

/// Real parts and imaginary ones are unit Gaussians, each site's its own, on any lanes.
#[test]
fn random_vectors_are_gaussian() {
    let address = RandomAddress { seed: 5, trajectory: 3, purpose: Purpose::Probe(2) };
    let all: Vec<Vec<f64>> = (domains(EXTENTS).iter())
        .map(|domain| {
            let mut x = colour(domain, D);
            x.set_random(EVEN, 1.0, address).unwrap();
            download(&x, EVEN)
        })
        .collect();
    all.iter().for_each(|x| assert_same_bits(x, &all[0], "random vectors"));
    let drawn: Vec<f64> = all[0].iter().copied().filter(|x| *x != 0.0).collect();
    let count = 6 * volume(EXTENTS) / 2;
    assert_eq!(drawn.len(), count);
    let moment = |k: i32| drawn.iter().map(|x| x.powi(k)).sum::<f64>() / count as f64;
    // Within five standard deviations of the means of x, x^2 and x^4, whose variances are 1, 2 and 96.
    for (k, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (4, 3.0, 96.0_f64)] {
        let off = (moment(k) - expected).abs();
        assert!(off < 5.0 * (variance / count as f64).sqrt(), "<x^{k}> = {}", moment(k));
    }
    let mut sorted = drawn;
    sorted.sort_by(f64::total_cmp);
    assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]), "a number came twice");
}

#[test]
fn several_fields_are_as_single_ones() {
    const FIELDS: usize = 7;
    let mut first: Option<Vec<f64>> = None;
    for domain in domains(EXTENTS) {
        let mut all_of_these = Vec::new();
        for precision in Precision::ALL {
            let make = |seed: u64| -> Vec<Spinor> {
                (0..FIELDS as u64).map(|n| upload(&domain, precision, ODD, &random(seed + n))).collect()
            };
            let solutions = |seed: u64| -> Vec<Spinor> {
                let precision = precision.of_solution();
                (0..FIELDS as u64).map(|n| upload(&domain, precision, ODD, &random(seed + n))).collect()
            };
            let (mut x, mut p, mut r, q) = (make(100), make(120), make(140), make(160));
            let mut y = solutions(100);
            let (mut xs, mut ys, mut ps, mut rs, qs) =
                (joined(&x), joined(&y), joined(&p), joined(&r), joined(&q));
            let numbers: Vec<f64> = (0..FIELDS).map(|n| 0.2 * n as f64 - 0.5).collect();
            let same = |what: &str, several: &Spinor, single: &[Spinor]| {
                for (n, single) in single.iter().enumerate() {
                    let found = download(&taken(several, n), ODD);
                    assert_same_bits(
                        &found,
                        &download(single, ODD),
                        &format!("{what} of {n} in {precision}"),
                    );
                }
            };
            let dots: Vec<f64> = x.iter().zip(&p).map(|(x, p)| x.real_dot(p).unwrap().value()).collect();
            assert_same_bits(&xs.dot_each(&ps).unwrap(), &dots, "dot_each");
            let squares = rs.axpy_norm2_each(&numbers, &qs).unwrap();
            let one = |((r, q), a): ((&mut Spinor, _), &f64)| r.axpy_norm2(*a, q).unwrap().value().unwrap();
            let single: Vec<f64> = r.iter_mut().zip(&q).zip(&numbers).map(one).collect();
            assert_same_bits(&squares, &single, "axpy_norm2_each");
            same("axpy_norm2_each", &rs, &r);
            let ratios: Vec<f64> = numbers.iter().map(|a| 1.0 - a).collect();
            let quotients = |numbers: &[f64]| numbers.iter().map(|a| Quotient::from(*a)).collect::<Vec<_>>();
            ys.cg_step_each(&quotients(&numbers), &mut ps, &rs, &quotients(&ratios)).unwrap();
            for ((y, (p, r)), (a, b)) in
                y.iter_mut().zip(p.iter_mut().zip(&r)).zip(numbers.iter().zip(&ratios))
            {
                y.cg_step_each(&[(*a).into()], p, r, &[(*b).into()]).unwrap();
            }
            same("cg_step_each: x", &ys, &y);
            same("cg_step_each: p", &ps, &p);
            xs.axpy_each(&numbers, &qs).unwrap();
            x.iter_mut().zip(&q).zip(&numbers).for_each(|((x, q), a)| x.axpy(*a, q).unwrap());
            same("axpy_each", &xs, &x);
            xs.xpay_each(&rs, &numbers).unwrap();
            x.iter_mut().zip(&r).zip(&numbers).for_each(|((x, r), a)| x.xpay(r, *a).unwrap());
            same("xpay_each", &xs, &x);
            xs.scale_each(&ratios).unwrap();
            x.iter_mut().zip(&ratios).for_each(|(x, a)| x.scale(*a).unwrap());
            same("scale_each", &xs, &x);
            rs.copy_each(&xs).unwrap();
            same("copy_each", &rs, &x);
            // The first few alone: the others stay.
            xs.set_active(3);
            rs.set_active(3);
            xs.axpy_each(&numbers[..3], &rs).unwrap();
            let copies: Vec<Vec<f64>> = x.iter().map(|x| download(x, ODD)).collect();
            for (n, x) in x[..3].iter_mut().enumerate() {
                r[n].copy_from(x).unwrap();
                x.axpy(numbers[n], &r[n]).unwrap();
            }
            same("axpy_each of three", &xs, &x[..3]);
            xs.set_active(FIELDS);
            same("the others", &xs, &x);
            assert_same_bits(&download(&x[3], ODD), &copies[3], "the others");
            all_of_these.extend([dots, squares].concat());
            x.iter().for_each(|x| all_of_these.extend(download(x, ODD)));
        }
        match &first {
            None => first = Some(all_of_these),
            Some(first) => assert_same_bits(&all_of_these, first, "lanes"),
        }
    }
}

/// A step of conjugate gradients whose numbers the device may not have made yet has the bits of one with numbers of the
/// host, and is not made if a number is not finite.
#[test]
fn numbers_of_the_device_are_those_of_the_host() {
    for domain in domains(EXTENTS) {
        for precision in Precision::ALL {
            let make = |seed: u64| upload(&domain, precision, ODD, &random(seed));
            let solution = || upload(&domain, precision.of_solution(), ODD, &random(5));
            let (image, q, rr) = (make(1), make(2), 0.7);
            for weight in [0.0, 0.3] {
                let [(mut x, mut p, mut r), (mut y, mut d, mut s)] =
                    [(); 2].map(|()| (solution(), make(3), make(4)));
                let curvature = image.weighted_norms(weight, &q).unwrap();
                let new = r.axpy_norm2(-(rr / &curvature), &q).unwrap();
                x.cg_step_each(&[rr / &curvature], &mut p, &r, &[&new / rr]).unwrap();
                let mut back = make(4);
                let again = back.xpay_norm2(&r, rr / &curvature).unwrap();
                let (a, b) = (rr / curvature.value().unwrap(), new.value().unwrap() / rr);
                assert_eq!(s.axpy_norm2(-a, &q).unwrap().value().unwrap(), new.value().unwrap());
                y.cg_step_each(&[a.into()], &mut d, &s, &[b.into()]).unwrap();
                let mut also = make(4);
                assert_eq!(also.xpay_norm2(&s, a).unwrap().value().unwrap(), again.value().unwrap());
                for (found, expected) in [(&x, &y), (&p, &d), (&r, &s), (&back, &also)] {
                    assert_same_bits(&download(found, ODD), &download(expected, ODD), "a step");
                }
            }
            let (mut x, mut p, mut r) = (solution(), make(3), make(4));
            let before = [&x, &p, &r].map(|field| download(field, ODD));
            let zero = colour(&domain, precision).deferred_norm2().unwrap();
            let new = r.axpy_norm2(-(rr / &zero), &q).unwrap();
            x.cg_step_each(&[rr / &zero], &mut p, &r, &[&new / rr]).unwrap();
            let mut s = make(4);
            assert!(s.xpay_norm2(&q, f64::NAN).unwrap().value().unwrap().is_nan());
            assert!(new.value().unwrap().is_nan());
            for (field, before) in [&x, &p, &r, &s].into_iter().zip(before.iter().chain([&before[2]])) {
                assert_same_bits(&download(field, ODD), before, "no step");
            }
        }
    }
}

/// A GPU keeps the latest sums only.
#[test]
fn a_forgotten_sum_is_not_mistaken_for_a_later_one() {
    if !has_emulation() {
        return println!("skipped: an emulated GPU: this build has none");
    }
    let domain = &domains(EXTENTS)[0];
    let (mut x, y) = (colour(domain, D), colour(domain, D));
    let first = y.deferred_norm2().unwrap();
    for _ in 0..63 {
        y.deferred_norm2().unwrap();
    }
    assert_eq!(first.value().unwrap(), 0.0);
    y.deferred_norm2().unwrap();
    let catch = |work: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(work)).is_err();
    assert!(catch(&mut || _ = first.value()), "read by the host");
    assert!(catch(&mut || _ = x.axpy_norm2(1.0 / &first, &y)), "read by a kernel");
}
