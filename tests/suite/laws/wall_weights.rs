//! The weights of domain-wall quarks: Zolotarev's bound reached and never passed, equal ripples, closed forms.
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]

use crate::compare::relative;
use crate::reference::su3::Rng;
use hmc::math::{Elliptic, WallWeights, ZolotarevSign};

/// Hard to easy: the third is that of gamma_5 D_w with M5 = 1.3 in large ensembles, the last nearly a point.
const RANGES: [[f64; 2]; 5] = [[1e-5, 8.0], [0.001, 1.0], [0.05, 6.2], [0.4, 7.0], [0.95, 1.05]];
const LENGTHS: [usize; 9] = [4, 5, 6, 8, 12, 15, 16, 32, 48];

/// 1 - w x is off by u / |1 - w x|, u = 2^-53, where neighbouring roots and extrema differ by more than a hundredth, and
/// 48 factors add up: 5e-13 at most. Bounds below it are found all the same: 1 - S is a product.
const RELATIVE: f64 = 1e-11;

/// Every N_s and range of which the bound is a normal number.
fn cases() -> impl Iterator<Item = (usize, [f64; 2], f64)> {
    let all = LENGTHS.into_iter().flat_map(|n_s| RANGES.map(|range| (n_s, range)));
    all.map(|(n_s, range)| (n_s, range, WallWeights::zolotarev_bound(n_s, range)))
        .filter(|(_, _, d)| *d > 1e-280)
}

#[test]
fn optimal_weights_have_the_least_error() {
    for (n_s, range, bound) in cases() {
        let weights = WallWeights::optimal(n_s, range);
        relative(&format!("error of {n_s} weights on {range:?}"), weights.sign_error(range), bound, RELATIVE);
        assert_eq!((weights.n_s(), weights.kernel_difference()), (n_s, Some(0.0)));
        let [low, high] = range;
        let ordered = weights.omega.windows(2).all(|pair| pair[0] > pair[1]);
        assert!(
            ordered && weights.omega[0] < 1.0 / low && weights.omega[n_s - 1] > 1.0 / high,
            "{weights:?}"
        );
    }
}

/// The sign function by its poles and zeros, which the weights know nothing of.
#[test]
fn optimal_weights_make_zolotarevs_function() {
    for (n_s, range, bound) in cases() {
        let (weights, zolotarev) =
            (WallWeights::optimal(n_s, range), ZolotarevSign::new(n_s, range).unwrap());
        // Its error is the difference of two values near 1, each off by some ten roundings.
        assert!((zolotarev.error - bound).abs() < 1e-14, "{n_s} {range:?}: {} {bound}", zolotarev.error);
        for n in 0..=200 {
            let x = range[0] * 0.1 * (100.0 * range[1] / range[0]).powf(f64::from(n) / 200.0);
            let (found, expected) = (weights.sign(x), zolotarev.value(x));
            // At the foot of the step S is as steep as 1/lambda_min, in both.
            assert!((found - expected).abs() < 2e-13, "{n_s} {range:?} at {x}: {found} {expected}");
            assert_eq!(weights.sign(-x), -found);
        }
    }
}

/// hep-lat/0209153, equations (18) to (25): lambda and M by theta functions and sn, an incomplete integral for the phase.
#[test]
fn optimal_weights_by_the_published_formula() {
    // Theta(u), the fourth theta function of nome q.
    let theta = |u: f64, elliptic: &Elliptic, nome: f64| {
        let angle = std::f64::consts::PI * u / elliptic.quarter();
        1.0 + 2.0
            * (1..30).map(|n| (-1f64).powi(n) * nome.powi(n * n) * (f64::from(n) * angle).cos()).sum::<f64>()
    };
    // int_0^x dt / sqrt((1-t^2)(1-k^2 t^2)) by Simpson's rule in t = sin.
    let integral = |x: f64, k2: f64| {
        let (end, steps) = (x.asin(), 2000);
        let value = |i: usize| 1.0 / (1.0 - k2 * (end * i as f64 / steps as f64).sin().powi(2)).sqrt();
        let weight = |i: usize| if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
        (0..=steps).map(|i| weight(i) * value(i)).sum::<f64>() * end / (3 * steps) as f64
    };
    for (n_s, range) in
        [(4, [0.05, 6.2]), (7, [0.05, 6.2]), (10, [0.05, 6.2]), (16, [0.02, 6.4]), (12, [0.5, 6.0])]
    {
        let elliptic = Elliptic::from_complement(range[0] / range[1]);
        let k = elliptic.quarter();
        let nome = (-std::f64::consts::PI * Elliptic::new(range[0] / range[1]).quarter() / k).exp();
        let part = |l: usize| k * l as f64 / n_s as f64;
        let lambda: f64 = (1..=n_s)
            .map(|l| (theta(part(2 * l), &elliptic, nome) / theta(part(2 * l - 1), &elliptic, nome)).powi(2))
            .product();
        let sn2 = |l: usize| elliptic.jacobi(part(l))[0].powi(2);
        let m: f64 = (1..=n_s / 2).map(|l| sn2(2 * l - 1) / sn2(2 * l)).product();
        let phase = integral(((1.0 + 3.0 * lambda) / (1.0 + lambda).powi(3)).sqrt(), 1.0 - lambda * lambda);
        let weights = WallWeights::optimal(n_s, range);
        for s in 1..=n_s {
            let sign = if s % 2 == 1 { 1.0 } else { -1.0 };
            let v = sign * m * phase + part(2 * (s / 2));
            let omega = (1.0 - (1.0 - (range[0] / range[1]).powi(2)) * elliptic.jacobi(v)[0].powi(2)).sqrt()
                / range[0];
            relative(&format!("omega_{s} of {n_s} on {range:?}"), weights.omega[s - 1], omega, 1e-10);
        }
    }
}

#[test]
fn ripples_are_equal() {
    for (n_s, range, bound) in cases() {
        let weights = WallWeights::optimal(n_s, range);
        let mut cuts: Vec<f64> = weights.omega.iter().map(|omega| 1.0 / omega).collect();
        cuts.insert(0, range[0]);
        cuts.push(range[1]);
        for (number, cut) in cuts.windows(2).enumerate() {
            let what = format!("ripple {number} of {n_s} weights on {range:?}");
            relative(&what, weights.sign_error([cut[0], cut[1]]), bound, RELATIVE);
        }
        // Its sides in turn, where 1 - S is seen in double precision.
        if bound > 1e-10 {
            let middle = |s: usize| (cuts[s] * cuts[s + 1]).sqrt();
            for s in 0..=n_s {
                assert_eq!(weights.sign(middle(s)) > 1.0, s % 2 == 1, "ripple {s} of {n_s} on {range:?}");
            }
        }
    }
}

/// The weights, or one of them, moved by relative steps of up to `size`.
fn moved(weights: &WallWeights, size: f64, symmetric: bool, rng: &mut Rng) -> WallWeights {
    let (n_s, mut omega) = (weights.n_s(), weights.omega.clone());
    let all = rng.uniform() < 0.5;
    let only = (rng.uniform() * n_s as f64) as usize;
    for (_, omega) in omega.iter_mut().enumerate().filter(|(s, _)| all || *s == only) {
        *omega *= 1.0 + size * (2.0 * rng.uniform() - 1.0);
    }
    if symmetric {
        (0..n_s / 2).for_each(|s| omega[n_s - 1 - s] = omega[s]);
    }
    WallWeights { sigma: omega.clone(), omega }
}

#[test]
fn no_other_weights_do_better() {
    let mut rng = Rng(77);
    for (n_s, range, bound) in cases() {
        let (optimal, least) = (WallWeights::optimal(n_s, range), bound * (1.0 - RELATIVE));
        for size in [0.5, 0.03, 1e-3, 1e-5, 1e-7] {
            for _ in 0..20 {
                let error = moved(&optimal, size, false, &mut rng).sign_error(range);
                assert!(
                    error >= least,
                    "{n_s} weights on {range:?} moved by {size}: {error:e} below {bound:e}"
                );
            }
        }
    }
}

/// Among weights with omega_s = omega_{N+1-s}; the bound 2d/(1+d) is Zolotarev's function scaled to stay below 1.
#[test]
fn symmetric_weights_have_the_least_error_among_their_kind() {
    let mut rng = Rng(78);
    for (n_s, range, d) in cases().filter(|(n_s, ..)| n_s.is_multiple_of(2)) {
        let (weights, bound) = (WallWeights::symmetric_optimal(n_s, range), 2.0 * d / (1.0 + d));
        assert!(weights.is_symmetric() && !WallWeights::optimal(n_s, range).is_symmetric());
        relative(
            &format!("{n_s} symmetric weights on {range:?}"),
            weights.sign_error(range),
            bound,
            RELATIVE,
        );
        for size in [0.5, 0.03, 1e-3, 1e-5, 1e-7] {
            for _ in 0..20 {
                let other = moved(&weights, size, true, &mut rng);
                assert!(other.is_symmetric());
                let error = other.sign_error(range);
                assert!(
                    error >= bound * (1.0 - RELATIVE),
                    "{n_s} on {range:?} moved by {size}: {error:e}, {bound:e}"
                );
            }
        }
        // All roots of 1 - S are double: S never passes 1.
        assert!(
            (0..400)
                .all(|n| weights.sign(range[0] * (range[1] / range[0]).powf(f64::from(n) / 400.0)) <= 1.0)
        );
    }
}

/// Equal weights: S(x) = tanh(N artanh(w x)), and for w x > 1, N even, tanh(N arcoth(w x)).
#[test]
fn equal_weights_are_polar() {
    for (weights, w, k) in [
        (WallWeights::shamir(8), 0.5, 1.0),
        (WallWeights::borici(16), 1.0, 0.0),
        (WallWeights::mobius(12, 1.5, 0.5), 1.0, 1.0),
        (WallWeights::mobius(10, 1.75, 0.75), 1.25, 1.0),
    ] {
        let n = weights.n_s() as f64;
        assert!(weights.is_symmetric());
        assert_eq!(weights.kernel_difference(), Some(k));
        // artanh(y) = arcoth(1/y)
        let exact = |x: f64| (n * (w * x).min(1.0 / (w * x)).atanh()).tanh();
        for i in 1..200 {
            let x = 0.013 * f64::from(i);
            assert!((weights.sign(x) - exact(x)).abs() < 1e-14 && weights.sign(-x) == -weights.sign(x));
        }
        // T falls up to 1/w and its modulus rises after it: the error is that of an end.
        for range in [[0.1 / w, 3.0 / w], [0.3 / w, 20.0 / w], [0.05 / w, 0.4 / w]] {
            let at = |x: f64| 2.0 / ((2.0 * n * (w * x).min(1.0 / (w * x)).atanh()).exp() + 1.0);
            relative(
                &format!("{w} on {range:?}"),
                weights.sign_error(range),
                at(range[0]).max(at(range[1])),
                1e-12,
            );
        }
    }
}

/// k' = 1/sqrt(2) has K = K' and q = e^-pi, and d is the modulus of nome e^{-2 pi N}: singular moduli k_4 and k_16, which
/// are known in radicals (Borwein and Borwein, Pi and the AGM, section 4.6).
#[test]
fn bound_at_singular_moduli() {
    let range = [0.5f64.sqrt(), 1.0];
    relative("k_4", WallWeights::zolotarev_bound(1, range), (2f64.sqrt() - 1.0).powi(2), 1e-15);
    // k_16 = (sqrt 2 + 1)^2 (2^(1/4) - 1)^4
    let k_16 = (2f64.sqrt() + 1.0).powi(2) * (2f64.powf(0.25) - 1.0).powi(4);
    relative("k_16", WallWeights::zolotarev_bound(2, range), k_16, 1e-14);
}
