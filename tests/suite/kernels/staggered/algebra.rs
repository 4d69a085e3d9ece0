//! Linear algebra on colour vectors: against plain sums in double, and on several fields as on single ones.

use super::*;
use crate::kernels::{combination, product};
use hmc::field::{EVEN, ODD, Purpose, RandomAddress, ShiftSteps};

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
        let (xx, yy) = x.two_norms(&y).unwrap();
        sum_is("two_norms", Complex64::new(xx, yy), Complex64::new(product(&a, &a).re, product(&b, &b).re));
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
        let rr = r.axpy_norm2(-0.4, &make(&d)).unwrap();
        let residual = combination((one, &c), ((-0.4).into(), &d));
        close("axpy_norm2", &host(&r), &residual);
        sum_is("axpy_norm2", rr, product(&residual, &residual));
        let mut q = make(&d);
        assert_eq!(q.xpay_norm2(&make(&c), -0.4).unwrap(), rr, "xpay_norm2");
        assert_same_bits(&host(&q), &host(&r), "xpay_norm2");
        let mut p = make(&b);
        x.cg_step_each(&[0.4], &mut p, &r, &[0.7]).unwrap();
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
                x_one.cg_step_each(&[*a], &mut p_one, r, &[*b]).unwrap();
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
            let single: Vec<f64> =
                r.iter_mut().zip(&q).zip(&numbers).map(|((r, q), a)| r.axpy_norm2(*a, q).unwrap()).collect();
            assert_same_bits(&squares, &single, "axpy_norm2_each");
            same("axpy_norm2_each", &rs, &r);
            let ratios: Vec<f64> = numbers.iter().map(|a| 1.0 - a).collect();
            ys.cg_step_each(&numbers, &mut ps, &rs, &ratios).unwrap();
            for ((y, (p, r)), (a, b)) in
                y.iter_mut().zip(p.iter_mut().zip(&r)).zip(numbers.iter().zip(&ratios))
            {
                y.cg_step_each(&[*a], p, r, &[*b]).unwrap();
            }
            same("cg_step_each: x", &ys, &y);
            same("cg_step_each: p", &ps, &p);
            xs.axpy_each(&numbers, &qs).unwrap();
            x.iter_mut().zip(&q).zip(&numbers).for_each(|((x, q), a)| x.axpy(*a, q).unwrap());
            same("axpy_each", &xs, &x);
            xs.xpay_each(&rs, &numbers).unwrap();
            x.iter_mut().zip(&r).zip(&numbers).for_each(|((x, r), a)| x.xpay(r, *a).unwrap());
            same("xpay_each", &xs, &x);
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
