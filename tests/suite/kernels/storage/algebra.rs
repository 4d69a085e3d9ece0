//! Linear algebra on fields in half precision, and copies among all precisions.

use super::*;
use crate::kernels::{combination, product};

/// Four fields whose sites differ in size by factors up to 2^8, already rounded to half precision.
fn rounded_fields(domain: &Arc<Domain>, scale: f64) -> [Vec<f64>; 4] {
    [1, 2, 3, 4].map(|seed| {
        let mut field = reals(&plain::restrict(EXTENTS, &plain::random_field(EXTENTS, seed), ODD));
        let mut rng = Rng(seed + 100);
        for site in field.chunks_exact_mut(24) {
            let size = scale * (8.0 * rng.uniform()).exp2();
            site.iter_mut().for_each(|x| *x *= size);
        }
        download(&upload(domain, Precision::Half, &field))
    })
}

fn gamma5(x: &[f64]) -> Vec<f64> {
    x.iter().enumerate().map(|(k, x)| if k % 24 < 12 { *x } else { -x }).collect()
}

/// The greatest |found - expected| in units of half a step of its site.
fn half_steps(found: &[f64], expected: &[f64]) -> f64 {
    found
        .chunks_exact(24)
        .zip(expected.chunks_exact(24))
        .map(|(found, expected)| {
            let greatest = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            let error = found.iter().zip(expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            if error == 0.0 { 0.0 } else { error / (greatest * HALF_STEP) }
        })
        .fold(0.0, f64::max)
}

/// The integers of a rounded field stay when it is rounded once more; a site's float may change by an ulp in
/// each of two products and a quotient.
const ONCE_MORE: f64 = 3.0 * 1.2e-7;

/// One rounding to half a step, and before it a few roundings in single of terms that are at most a few times the
/// site's greatest: 10 times 2^-24 is 0.04 / 65534.
const ONE_ROUNDING: f64 = 1.05;

fn check_field(what: &str, found: &Spinor, expected: &[f64]) {
    let off = half_steps(&download(found), expected);
    println!("{what:<24} {off:.3} half steps");
    assert!(off < ONE_ROUNDING, "{what}: off by {off} half steps");
}

/// Sums are of what was computed, in single, not of what was stored. A site's part is off by 2^-22 at most, twice
/// the ulp of its float; those of the greatest 64 sites or more average to an eighth of it.
fn check_sum(what: &str, found: Complex64, expected: Complex64, size: f64) {
    let off = (found - expected).norm() / size;
    println!("{what:<24} {off:.1e} of the norms");
    assert!(off < 2_f64.powi(-25), "{what}: {found} instead of {expected}, {off:.1e} of the norms");
}

fn half_algebra(domain: &Arc<Domain>, scale: f64) {
    // Exact sums reach from 2^-140 to 2^70, so squares of other scales are not theirs.
    let check_sum = |what: &str, found: Complex64, expected: Complex64, size: f64| {
        if scale == 1.0 {
            check_sum(what, found, expected, size);
        }
    };
    let one = Complex64::from(1.0);
    let fields = rounded_fields(domain, scale);
    let [a, b, c, d] = &fields;
    let make = |reals: &[f64]| upload(domain, Precision::Half, reals);
    let (x, z, w) = (make(a), make(c), make(d));
    // Exact as numbers of single precision, as kernels take them.
    let (s, t) = (Complex64::new(0.75, -0.5), Complex64::new(-0.3125, 1.25));
    let real = Complex64::from(s.re);
    assert!(distance(&download(&x), a) < ONCE_MORE, "a rounded field is stored as it is");

    let size = |x: &[f64], y: &[f64]| norm(x) * norm(y);
    let mut y = make(b);
    check_sum("dot", x.dot(&y).unwrap(), product(a, b), size(a, b));
    check_sum("real_dot", x.real_dot(&y).unwrap().value().into(), product(a, b).re.into(), size(a, b));
    check_sum("norm2", x.norm2().unwrap().value().into(), product(a, a), size(a, a));
    let (xy, xx) = x.dot_norm2(&y).unwrap();
    check_sum("dot_norm2: dot", xy, product(a, b), size(a, b));
    check_sum("dot_norm2: norm2", xx.into(), product(a, a), size(a, a));

    y.axpy(s.re, &x).unwrap();
    check_field("axpy", &y, &combination((real, a), (one, b)));
    let mut y = make(b);
    y.xpay(&x, s.re).unwrap();
    check_field("xpay", &y, &combination((one, a), (real, b)));
    let mut y = make(b);
    y.caxpy(s, &x).unwrap();
    let ab = combination((s, a), (one, b));
    check_field("caxpy", &y, &ab);
    let mut y = make(b);
    let found = y.caxpy_norm2(s, &x).unwrap();
    check_field("caxpy_norm2", &y, &ab);
    check_sum("caxpy_norm2: norm2", found.into(), product(&ab, &ab), size(&ab, &ab));
    let mut y = make(b);
    let found = y.caxpy_dot(s, &x, &z).unwrap();
    check_field("caxpy_dot", &y, &ab);
    check_sum("caxpy_dot: dot", found, product(c, &ab), size(c, &ab));
    let mut y = make(b);
    y.scale(s.re).unwrap();
    check_field("scale", &y, &combination((real, b), (0.0.into(), a)));
    y.set_zero().unwrap();
    y.add_twist(s.re, &x).unwrap();
    check_field("add_twist to zero", &y, &combination((su3::I * s.re, &gamma5(a)), (0.0.into(), b)));
    let mut y = make(b);
    y.add_twist(s.re, &x).unwrap();
    check_field("add_twist", &y, &combination((su3::I * s.re, &gamma5(a)), (one, b)));

    // y += s x, x -= s z
    let (mut y, mut r) = (make(b), make(a));
    y.mr_step(s, &mut r, &z).unwrap();
    check_field("mr_step: x", &y, &ab);
    check_field("mr_step: r", &r, &combination((one, a), (-s, c)));
    // r -= s w
    let mut r = make(b);
    let found = r.axpy_norm2(-s.re, &w).unwrap().value().unwrap();
    let residual = combination((one, b), (-real, d));
    check_field("axpy_norm2", &r, &residual);
    check_sum("axpy_norm2: norm2", found.into(), product(&residual, &residual), size(&residual, &residual));
    // x += s z, z = y + t z; x is kept in single
    let (mut solution, mut direction) = (upload(domain, Precision::Half.of_solution(), a), make(c));
    solution.cg_step_each(&[s.re.into()], &mut direction, &make(b), &[t.re.into()]).unwrap();
    check_field("cg_step: x", &solution, &combination((one, a), (real, c)));
    check_field("cg_step: p", &direction, &combination((one, b), (t.re.into(), c)));
}

/// A step of BiCGstab, whose numbers follow from the fields.
fn half_bicgstab(domain: &Arc<Domain>) {
    let fields = rounded_fields(domain, 1.0);
    let [a, b, c, d] = &fields;
    let make = |reals: &[f64]| upload(domain, Precision::Half, reals);
    let (one, shadow, p, t) = (Complex64::from(1.0), make(a), make(c), make(d));
    let is = |what: &str, found: Complex64, expected: Complex64| {
        assert!((found - expected).norm() < 1e-6 * expected.norm(), "{what}: {found} instead of {expected}");
    };
    // r -= alpha v with v = p, and alpha near s
    let s = Complex64::new(0.75, -0.5);
    let rho = s * product(a, c);
    let mut r = make(b);
    let mut numbers = r.bicgstab_half(rho, &shadow, &p).unwrap();
    let alpha = numbers.alpha().unwrap();
    is("alpha", alpha, s);
    check_field("bicgstab_half", &r, &combination((one, b), (-alpha, c)));
    // x += alpha p + omega r, r -= omega t
    let (mut x, mut r) = (make(a), make(b));
    x.bicgstab_step(&mut numbers, &p, &mut r, &t, &shadow).unwrap();
    let omega = numbers.omega().unwrap();
    is("omega", omega, product(d, b) / product(d, d));
    let residual = combination((one, b), (-omega, d));
    check_field("bicgstab_step: x", &x, &combination((one, &combination((one, a), (alpha, c))), (omega, b)));
    check_field("bicgstab_step: r", &r, &residual);
    let (next, rr) = numbers.next().unwrap();
    check_sum("bicgstab_step: rho", next, product(a, &residual), norm(a) * norm(&residual));
    check_sum("bicgstab_step: norm2", rr.into(), product(&residual, &residual), norm(&residual).powi(2));
    // p = r + beta (p - omega v) with r = x
    let beta = numbers.beta().unwrap();
    assert_eq!(beta, next / rho * (alpha / omega));
    let mut direction = make(b);
    direction.bicgstab_direction(&numbers, &shadow, &p).unwrap();
    let expected = combination((one, a), (beta, &combination((one, b), (-omega, c))));
    check_field("bicgstab_direction", &direction, &expected);
    // What has no finite numbers is not done.
    let zero = Spinor::new(domain, Precision::Half).unwrap();
    let mut numbers = r.bicgstab_half(rho, &shadow, &zero).unwrap();
    check_field("no bicgstab_half", &r, &residual);
    let (before, mut x) = (download(&x), x);
    x.bicgstab_step(&mut numbers, &p, &mut r, &t, &shadow).unwrap();
    assert!(!numbers.alpha().unwrap().is_finite() && numbers.next().unwrap().1.is_nan());
    assert_same_bits(&download(&x), &before, "no bicgstab_step");
    check_field("no bicgstab_step", &r, &residual);
    let before = download(&direction);
    direction.bicgstab_direction(&numbers, &shadow, &p).unwrap();
    assert_same_bits(&download(&direction), &before, "no bicgstab_direction");
}

#[test]
fn half_precision_linear_algebra() {
    for domain in domains(EXTENTS) {
        for scale in [1.0, 1e-25, 1e25] {
            println!("lanes {}, scale {scale:e}", domain.lanes().count());
            half_algebra(&domain, scale);
        }
        half_bicgstab(&domain);
    }
}

/// Lengths of steps that the device makes of its sums are those of the host, to the bit.
#[test]
fn the_least_step_of_minimal_residuals_on_several_fields() {
    for domain in domains(EXTENTS) {
        for precision in Precision::ALL {
            let [a, b, c, d] = rounded_fields(&domain, 1.0);
            let zero = vec![0.0; a.len()];
            let join = |fields: [&Vec<f64>; 3]| {
                let mut all = Spinor::several(&domain, precision, 4).unwrap();
                all.set_active(3);
                for (n, field) in fields.into_iter().enumerate() {
                    all.copy_field(n, &upload(&domain, precision, field), 0).unwrap();
                }
                all
            };
            let (x, r, q) = ([&a, &b, &d], [&b, &c, &a], [&c, &d, &zero]);
            let (mut xs, mut rs) = (join(x), join(r));
            xs.least_mr_step_each(&mut rs, &join(q)).unwrap();
            for n in 0..3 {
                let [mut x, mut r, q] = [x, r, q].map(|fields| upload(&domain, precision, fields[n]));
                let (overlap, norm) = q.dot_norm2(&r).unwrap();
                let length = if norm > 0.0 { overlap / norm } else { 0.0.into() };
                x.mr_step(length, &mut r, &q).unwrap();
                let mut found = Spinor::new(&domain, precision).unwrap();
                for (all, one, what) in [(&xs, &x, "x"), (&rs, &r, "r")] {
                    all.field(n, &mut found).unwrap();
                    assert_same_bits(
                        &download(&found),
                        &download(one),
                        &format!("{what} of {n} in {precision}"),
                    );
                }
            }
        }
    }
}

#[test]
fn copies_among_precisions() {
    let mut expected: Option<Vec<Vec<f64>>> = None;
    for domain in domains(EXTENTS) {
        let half = &rounded_fields(&domain, 1.0)[0];
        let double = reals(&plain::restrict(EXTENTS, &plain::random_field(EXTENTS, 8), ODD));
        let single: Vec<f64> = double.iter().map(|&x| f64::from(x as f32)).collect();
        assert_same_bits(
            &download(&upload(&domain, Precision::Single, &double)),
            &single,
            "double to single",
        );
        let mut copies = Vec::new();
        for from in Precision::ALL {
            let x = upload(&domain, from, &double);
            for to in Precision::ALL {
                let what = format!("{from} to {to}");
                let mut y = Spinor::new(&domain, to).unwrap();
                y.copy_from(&x).unwrap();
                let (before, after) = (download(&x), download(&y));
                match to {
                    _ if to <= from => assert_same_bits(&after, &before, &what),
                    Precision::Half => assert!(half_steps(&after, &before) < 1.01, "{what}"),
                    _ => assert_same_bits(&after, &single, &what),
                }
                let mut two = Spinor::several(&domain, to, 2).unwrap();
                two.copy_field(1, &x, 0).unwrap();
                y.set_zero().unwrap();
                y.copy_field(0, &two, 1).unwrap();
                assert_same_bits(&download(&y), &after, &format!("{what}, the second of two"));
                two.field(0, &mut y).unwrap();
                assert!(download(&y).iter().all(|x| *x == 0.0), "{what}: the first of two stays");
                copies.push(after);
                // What half precision holds, every other holds as well.
                let x = upload(&domain, from, half);
                y.copy_from(&x).unwrap();
                assert!(distance(&download(&y), half) < ONCE_MORE, "half numbers, {what}");
                // y += x, in a higher precision or the same.
                if to <= from {
                    y.add(&x).unwrap();
                    let twice: Vec<f64> = half.iter().map(|x| 2.0 * x).collect();
                    let off = distance(&download(&y), &twice);
                    assert!(off < ONCE_MORE, "twice, {what}: {off:.1e}");
                }
            }
            let mut zero = Spinor::new(&domain, from).unwrap();
            let other = Spinor::new(&domain, from).unwrap();
            zero.scale(3.0).unwrap();
            zero.caxpy(Complex64::new(2.0, 1.0), &other).unwrap();
            zero.add_twist(0.5, &other).unwrap();
            zero.mr_step(
                Complex64::new(2.0, 1.0),
                &mut upload(&domain, from, &vec![0.0; double.len()]),
                &other,
            )
            .unwrap();
            assert!(download(&zero).iter().all(|x| *x == 0.0), "zero in {from} stays zero");
            assert!(zero.norm2().unwrap().value() == 0.0, "the norm of zero in {from}");
        }
        for (copy, expected) in copies.iter().zip(expected.get_or_insert_with(|| copies.clone())) {
            assert_same_bits(copy, expected, &format!("copies on {} lanes", domain.lanes().count()));
        }
    }
}
