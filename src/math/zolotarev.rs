//! Zolotarev's functions: the best rational sign function, and with it x^(-1/2) and x^(1/2), in closed form.
//!
//! On lmin <= |x| <= lmax the odd rational function of order N closest to sign(x) is
//!
//!   S(x) = scale x prod_{l even} (x^2 + c_l) / prod_{l odd} (x^2 + c_l),   l = 1 .. N-1,
//!   c_l = lmin^2 sn^2(l K/N; k) / cn^2(l K/N; k),   k' = lmin / lmax,
//!
//! and it alternates N + 1 times between 1 - error and 1 + error, at x^2 = lmin^2 / dn^2(j K/N; k), j = 0 .. N.
//!
//! Zolotarev (1877); N. I. Akhiezer, Elements of the Theory of Elliptic Functions, chapter 9; for lattice QCD
//! T.-W. Chiu et al., hep-lat/0206007, and Chiu, hep-lat/0209153, whose weights are made of the same K and sn.

use super::elliptic::Elliptic;
use super::rational::{Rational, check_degree, check_range};
use super::rational_error::RationalError;
use super::target::Factor;

/// Zolotarev's sign function of one order and range.
#[derive(Clone, Debug, PartialEq)]
pub struct ZolotarevSign {
    /// The factor in front.
    pub scale: f64,
    /// c_l of even l, ascending: the numerator is x prod (x^2 + c_l).
    pub numerator: Vec<f64>,
    /// c_l of odd l, ascending: the denominator is prod (x^2 + c_l).
    pub denominator: Vec<f64>,
    /// max |S(x) - 1| on [lmin, lmax].
    pub error: f64,
}

impl ZolotarevSign {
    /// The function of `order` N >= 1 on lmin <= |x| <= lmax, `range` = [lmin, lmax].
    ///
    /// # Errors
    /// A range that is not 0 < lmin < lmax, an order that is 0 or beyond 128.
    pub fn new(order: usize, range: [f64; 2]) -> Result<Self, RationalError> {
        check_range(range)?;
        check_degree(order.div_ceil(2))?;
        let [lmin, lmax] = range;
        let elliptic = Elliptic::from_complement(lmin / lmax);
        let at = |l: usize| elliptic.jacobi(elliptic.quarter() * l as f64 / order as f64);
        let shift = |l: usize| {
            let [sn, cn, _] = at(l);
            (lmin * sn / cn).powi(2)
        };
        let mut sign = Self {
            scale: 1.0,
            numerator: (2..order).step_by(2).map(shift).collect(),
            denominator: (1..order).step_by(2).map(shift).collect(),
            error: 0.0,
        };
        let (first, second) = (sign.value(lmin), sign.value(lmin / at(1)[2]));
        sign.scale = 2.0 / (first + second);
        sign.error = ((first - second) / (first + second)).abs();
        Ok(sign)
    }

    /// S(x).
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        let (mut s, mut even) = (self.scale * x, self.numerator.iter());
        for odd in &self.denominator {
            s *= even.next().map_or(1.0, |c| x * x + c) / (x * x + odd);
        }
        s
    }
}

/// Which square root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SquareRoot {
    /// x^(1/2)
    Direct,
    /// x^(-1/2)
    Inverse,
}

/// The best x^(1/2) or x^(-1/2) of `degree` over `degree` on `range`, without iteration: S(sqrt x) / sqrt x of
/// order 2 degree + 1, or its reciprocal.
///
/// # Errors
/// As [`Rational::minimax`].
pub fn zolotarev(root: SquareRoot, range: [f64; 2], degree: usize) -> Result<Rational, RationalError> {
    check_range(range)?;
    check_degree(degree)?;
    let sign = ZolotarevSign::new(2 * degree + 1, range.map(f64::sqrt))?;
    let (constant, zeros, poles, power) = match root {
        SquareRoot::Inverse => (sign.scale, sign.numerator, sign.denominator, -1),
        SquareRoot::Direct => {
            // 1/S swings between 1/(1+e) and 1/(1-e): their middle goes to 1.
            let constant = (1.0 - sign.error.powi(2)) / sign.scale;
            (constant, sign.denominator, sign.numerator, 1)
        }
    };
    let residue = |i: usize| {
        let ratio = |j: usize| if j == i { 1.0 } else { (zeros[j] - poles[i]) / (poles[j] - poles[i]) };
        constant * (zeros[i] - poles[i]) * (0..degree).map(ratio).product::<f64>()
    };
    let residues = (0..degree).map(residue).collect();
    Rational::given(constant, residues, poles, &[Factor { shift: 0.0, power: (power, 2) }], range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elliptic_functions_as_tabulated() {
        // Abramowitz and Stegun, table 17.1: K at k^2 = 1/2; 16.13 to 16.15 join circular and hyperbolic functions.
        let half = Elliptic::new(0.5f64.sqrt());
        assert!((half.quarter() - 1.854_074_677_301_371_9).abs() < 4e-16);
        let [sn, cn, dn] = half.jacobi(0.5 * half.quarter());
        // sn(K/2) = (1 + k')^(-1/2), cn(K/2) = (k' / (1 + k'))^(1/2), dn(K/2) = k'^(1/2)
        let k = 0.5f64.sqrt();
        let exact = [(1.0 + k).sqrt().recip(), (k / (1.0 + k)).sqrt(), k.sqrt()];
        for (ours, exact) in [sn, cn, dn].into_iter().zip(exact) {
            // Five levels of a handful of roundings.
            assert!((ours - exact).abs() < 4e-15, "{ours} {exact}");
        }
        assert!((Elliptic::new(0.0).jacobi(0.7)[0] - 0.7f64.sin()).abs() < 2e-16);
        let steep = Elliptic::from_complement(1e-8);
        assert!((steep.jacobi(2.0)[0] - 2f64.tanh()).abs() < 1e-15);
        // K -> ln(4/k') + O(k'^2 ln)
        assert!((steep.quarter() - 4e8f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn elliptic_functions_keep_their_identities() {
        for complement in [0.9, 1e-2, 1e-5, 1e-9] {
            let elliptic = Elliptic::from_complement(complement);
            for n in 0..=50 {
                let [sn, cn, dn] = elliptic.jacobi(elliptic.quarter() * f64::from(n) / 50.0);
                let [s2, c2, d2] = [sn * sn, cn * cn, dn * dn];
                assert!((s2 + c2 - 1.0).abs() < 4e-15, "{complement} {n}");
                // dn^2 = cn^2 + k'^2 sn^2 has no cancellation near K
                let square = c2 + (complement * sn).powi(2);
                assert!((d2 / square - 1.0).abs() < 4e-15, "{complement} {n}");
                // sn 2u = 2 sn cn dn / (1 - k^2 sn^4), and 1 - k^2 sn^4 = dn^2 + k^2 sn^2 cn^2
                let [s, c, d] = elliptic.jacobi(0.5 * elliptic.quarter() * f64::from(n) / 50.0);
                let below = d * d + (1.0 - complement * complement) * (c * s).powi(2);
                // Each of up to seven levels may double the relative error of sn/cn.
                assert!((2.0 * s * c * d / below - sn).abs() <= 3e-14 * sn, "{complement} {n}");
            }
        }
    }

    #[test]
    fn sign_function_alternates() {
        for order in [1, 2, 3, 8, 13] {
            let range = [0.01, 1.5];
            let sign = ZolotarevSign::new(order, range).unwrap();
            let elliptic = Elliptic::from_complement(range[0] / range[1]);
            for j in 0..=order {
                let dn = elliptic.jacobi(elliptic.quarter() * j as f64 / order as f64)[2];
                let swing = (sign.value(range[0] / dn) - 1.0) * if j.is_multiple_of(2) { -1.0 } else { 1.0 };
                assert!(
                    (swing / sign.error - 1.0).abs() < 1e-10,
                    "order {order}, {j}: {swing} {}",
                    sign.error
                );
            }
            assert_eq!(sign.value(-0.3), -sign.value(0.3));
        }
    }

    #[test]
    fn both_square_roots_have_the_error_of_the_sign_function() {
        let range = [1e-4, 2.0];
        let error = ZolotarevSign::new(13, range.map(f64::sqrt)).unwrap().error;
        for root in [SquareRoot::Direct, SquareRoot::Inverse] {
            let r = zolotarev(root, range, 6).unwrap();
            assert!((r.error / error - 1.0).abs() < 1e-6, "{root:?} {} {error}", r.error);
        }
    }
}
