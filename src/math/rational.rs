//! Rational functions as partial fractions, r(x) = constant + sum_i residue_i / (x + pole_i), close to products of
//! fractional powers: what applies (M^dag M)^(p/q) with one multi-shift solver.
//!
//! `Rational::minimax` makes the function of degree (n, n) with the least max |r(x)/f(x) - 1| on a range, for
//! f(x) = prod_i (x + a_i)^(p_i/q_i); its error alternates 2n + 2 times. Remez (1934); for lattice QCD
//! M. A. Clark and A. D. Kennedy, hep-lat/0309084. The coefficients are rounded to double, and `error` is measured
//! after that. A positive power loses digits there, about as many as its terms, which have both signs, cancel
//! at the lower end.

use super::rational_error::{MAX_DEGREE, RationalError};
use super::remez;
use super::target::{Coordinate, Factor, Real, Target, real};

/// No smaller error is asked of coefficients in double.
pub const MIN_ERROR: f64 = 1e-14;
/// Bits in which a function of double coefficients is measured: 20 digits beyond double.
const MEASURE_BITS: usize = 128;
/// Points of the scan between two neighbouring extrema.
const SCAN: usize = 16;

/// r(x) = constant + sum_i residue_i / (x + pole_i), pole_i > 0, with |r(x)/f(x) - 1| <= error on the range.
#[derive(Clone, Debug, PartialEq)]
pub struct Rational {
    /// r at infinity.
    pub constant: f64,
    /// One a pole, of any sign.
    pub residues: Vec<f64>,
    /// Ascending, positive.
    pub poles: Vec<f64>,
    /// [lo, hi].
    pub range: [f64; 2],
    /// The largest |r(x)/f(x) - 1| on the range, of these coefficients, rounded up by what `value` rounds.
    pub error: f64,
}

impl Rational {
    /// Two functions with this sum: with the `least` smallest poles, and with the constant and all other poles. Range and
    /// error are those of the sum.
    #[must_use]
    pub fn split(&self, least: usize) -> [Self; 2] {
        let (poles, residues) = (self.poles.split_at(least), self.residues.split_at(least));
        let part = |constant, residues: &[f64], poles: &[f64]| Self {
            constant,
            residues: residues.to_vec(),
            poles: poles.to_vec(),
            ..*self
        };
        [part(0.0, residues.0, poles.0), part(self.constant, residues.1, poles.1)]
    }

    /// The best function of `degree` over `degree` for f = prod (x + shift)^power on `range`.
    ///
    /// The exponents, summed from the smallest shift up, must stay between -1 and 1 and keep one sign: then
    /// poles and zeros interlace on the negative axis. x^(-1/2), x^(1/4), (x+a)^(1/2) (x+b)^(1/4) (x+c)^(-3/4) with
    /// a < b < c are of this kind. A factor of exponent 0 does nothing.
    ///
    /// ```
    /// use hmc::math::{Factor, Rational};
    /// let root = Rational::minimax(&[Factor { shift: 0.0, power: (-1, 2) }], [1e-3, 1.0], 8)?;
    /// assert!(root.error < 1e-6);
    /// assert!((root.value(0.25) - 2.0).abs() < 2.0 * root.error);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Arguments out of range, an error below double precision, no convergence, a pole that is not positive.
    pub fn minimax(factors: &[Factor], range: [f64; 2], degree: usize) -> Result<Self, RationalError> {
        check_range(range)?;
        check_degree(degree)?;
        let (best, unrounded) = Self::best(&Target::new(factors, range)?, degree)?;
        if unrounded < remez::NOTHING {
            let [lo, hi] = range;
            return Err(RationalError::DegreeTooLarge { degree, lo, hi, error: unrounded });
        }
        Ok(best)
    }

    /// The least degree that reaches `error`.
    ///
    /// # Errors
    /// As [`Self::minimax`], and an error that is not between [`MIN_ERROR`] and 1, or that rounding forbids.
    pub fn to_error(factors: &[Factor], range: [f64; 2], error: f64) -> Result<Self, RationalError> {
        check_range(range)?;
        let unreachable = |reason| RationalError::Unreachable { target: error, reason };
        if !(MIN_ERROR..1.0).contains(&error) {
            return Err(unreachable(format!("it must be between {MIN_ERROR:.0e} and 1")));
        }
        let target = Target::new(factors, range)?;
        let mut degree = target.degree_for(error).clamp(1, MAX_DEGREE);
        let (mut best, mut unrounded) = Self::best(&target, degree)?;
        while best.error > error {
            if unrounded < 0.1 * error {
                return Err(unreachable(format!("rounding to double leaves {:.1e}", best.error)));
            }
            if degree == MAX_DEGREE {
                return Err(unreachable(format!("degree {degree} has {:.1e}", best.error)));
            }
            degree += 1;
            (best, unrounded) = Self::best(&target, degree)?;
        }
        while degree > 1 {
            degree -= 1;
            let (less, _) = Self::best(&target, degree)?;
            if less.error > error {
                break;
            }
            best = less;
        }
        Ok(best)
    }

    /// The function of given coefficients, with its measured error. The poles are brought in ascending order.
    ///
    /// |r/f - 1| is computed, in 38 digits, at 16 points for each extremum that the best function of this degree has,
    /// even in the elliptic coordinate of range and cut, and each hump among them is followed to its top. So `error`
    /// holds, to 1e-9 of itself, where |r/f - 1| has no hump narrower than two of those steps. The humps of a best
    /// function are about 16 wide, so those of one like it are seen; nothing is promised for wild coefficients, like
    /// two poles side by side with large residues of opposite sign.
    ///
    /// # Errors
    /// Numbers of residues and poles that differ, coefficients that are not finite, arguments as of [`Self::minimax`], a pole that is not positive.
    pub fn given(
        constant: f64,
        residues: Vec<f64>,
        poles: Vec<f64>,
        factors: &[Factor],
        range: [f64; 2],
    ) -> Result<Self, RationalError> {
        check_range(range)?;
        check_degree(poles.len())?;
        let finite = residues.iter().chain(&poles).chain([&constant]).all(|x| x.is_finite());
        if residues.len() != poles.len() || !finite {
            return Err(RationalError::Coefficients { residues: residues.len(), poles: poles.len() });
        }
        let target = Target::new(factors, range)?;
        let mut terms: Vec<(f64, f64)> = poles.into_iter().zip(residues).collect();
        terms.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (poles, residues) = terms.into_iter().unzip();
        Self::with_error(constant, residues, poles, &target)
    }

    /// Whether [`Self::minimax`] takes these factors on this range.
    ///
    /// # Errors
    /// Why not.
    pub fn check(factors: &[Factor], range: [f64; 2]) -> Result<(), RationalError> {
        check_range(range)?;
        Target::new(factors, range).map(|_| ())
    }

    /// r(x), rounded once: summed in pairs of doubles, since terms of both signs may cancel.
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        let (mut sum, mut low) = (self.constant, 0.0);
        for (&residue, &pole) in self.residues.iter().zip(&self.poles) {
            let (d, e) = two_sum(x, pole);
            let q = residue / d;
            let rest = ((-q).mul_add(d, residue) - q * e) / d;
            let (s, t) = two_sum(sum, q);
            (sum, low) = (s, low + t + rest);
        }
        sum + low
    }

    /// The function x -> r(x + by).
    #[must_use]
    pub fn shifted(mut self, by: f64) -> Self {
        self.poles.iter_mut().for_each(|pole| *pole += by);
        self.range = self.range.map(|end| end - by);
        self
    }

    /// The degree of numerator and denominator.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.poles.len()
    }

    /// The best function, and its error before the coefficients were rounded.
    fn best(target: &Target, degree: usize) -> Result<(Self, f64), RationalError> {
        let solution = remez::solve(target, degree)?;
        let (constant, residues, poles) = solution.partial_fractions(target);
        Ok((Self::with_error(constant, residues, poles, target)?, solution.error))
    }

    fn with_error(
        constant: f64,
        residues: Vec<f64>,
        poles: Vec<f64>,
        target: &Target,
    ) -> Result<Self, RationalError> {
        if let Some(&pole) = poles.iter().find(|&&pole| pole.is_nan() || pole <= 0.0) {
            return Err(RationalError::Pole { degree: poles.len(), pole });
        }
        let mut r = Self { constant, residues, poles, range: target.range, error: 0.0 };
        // `value` rounds once, by at most half a unit in the last place; the scan's own rest is far below.
        r.error = r.largest_deviation(target) * (1.0 + 1e-9) + f64::EPSILON;
        Ok(r)
    }

    /// The largest |r/f - 1|: a scan with `SCAN` points between expected extrema, then each hump by golden section.
    fn largest_deviation(&self, target: &Target) -> f64 {
        let coefficients = Coefficients::new(self);
        let coordinate = Coordinate::new(target);
        let last = SCAN * (2 * self.degree() + 1);
        let at = |v: f64| coefficients.deviation(target, coordinate.on_range(v)).abs();
        let scan: Vec<f64> = (0..=last).map(|n| at(n as f64 / last as f64)).collect();
        let mut worst = scan[0].max(scan[last]);
        for n in (1..last).filter(|&n| scan[n] >= scan[n - 1] && scan[n] >= scan[n + 1]) {
            let (mut a, mut b) = ((n - 1) as f64 / last as f64, (n + 1) as f64 / last as f64);
            let golden = 0.5 * (5f64.sqrt() - 1.0);
            let (mut c, mut d) = (b - golden * (b - a), a + golden * (b - a));
            let (mut at_c, mut at_d) = (at(c), at(d));
            // 20 steps narrow the hump to 1e-5 of its width: its top is missed by 1e-10 of its height.
            for _ in 0..20 {
                if at_c > at_d {
                    (b, d, at_d) = (d, c, at_c);
                    c = b - golden * (b - a);
                    at_c = at(c);
                } else {
                    (a, c, at_c) = (c, d, at_d);
                    d = a + golden * (b - a);
                    at_d = at(d);
                }
            }
            worst = worst.max(scan[n]).max(at_c).max(at_d);
        }
        worst
    }
}

/// The coefficients of a function, in the precision that measures it.
struct Coefficients {
    constant: Real,
    terms: Vec<[Real; 2]>,
}

impl Coefficients {
    fn new(r: &Rational) -> Self {
        let wide = |x: f64| real(x, MEASURE_BITS);
        let terms = r.residues.iter().zip(&r.poles).map(|(&residue, &pole)| [wide(residue), wide(pole)]);
        Self { constant: wide(r.constant), terms: terms.collect() }
    }

    /// r(x)/f(x) - 1; infinite where r is not positive.
    fn deviation(&self, target: &Target, x: f64) -> f64 {
        let x = real(x, MEASURE_BITS);
        let r =
            self.terms.iter().fold(self.constant.clone(), |sum, [residue, pole]| sum + residue / (&x + pole));
        if r <= Real::ZERO { f64::INFINITY } else { target.deviation(&r, &x) }
    }
}

/// a + b = s + e exactly.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

pub(super) fn check_range([lo, hi]: [f64; 2]) -> Result<(), RationalError> {
    if lo > 0.0 && lo < hi && hi.is_finite() && lo / hi > 0.0 {
        Ok(())
    } else {
        Err(RationalError::Range { lo, hi })
    }
}

pub(super) fn check_degree(degree: usize) -> Result<(), RationalError> {
    if (1..=MAX_DEGREE).contains(&degree) { Ok(()) } else { Err(RationalError::Degree { degree }) }
}

#[cfg(test)]
mod tests {
    use super::super::zolotarev::{SquareRoot, zolotarev};
    use super::*;

    /// (x + shift)^(p/q) and so on.
    fn factors<const N: usize>(list: [(f64, i32, u32); N]) -> [Factor; N] {
        list.map(|(shift, p, q)| Factor { shift, power: (p, q) })
    }

    fn exact(factors: &[Factor], x: f64) -> f64 {
        let factor = |f: &Factor| (x + f.shift).powf(f64::from(f.power.0) / f64::from(f.power.1));
        factors.iter().map(factor).product()
    }

    /// 4001 points of the range, even in ln x.
    fn points([lo, hi]: [f64; 2]) -> impl Iterator<Item = f64> {
        (0..=4000).map(move |n| (lo * (hi / lo).powf(f64::from(n) / 4000.0)).clamp(lo, hi))
    }

    /// The largest |value/f - 1| seen in double; f itself is rounded to about 1e-15.
    fn seen(r: &Rational, factors: &[Factor]) -> f64 {
        points(r.range).map(|x| (r.value(x) / exact(factors, x) - 1.0).abs()).fold(0.0, f64::max)
    }

    /// Functions as dynamics needs them: single powers, MILC's products, a chain of ratios.
    fn samples() -> Vec<(Vec<Factor>, [f64; 2])> {
        let milc = [(4e-4, -2, 4), (0.01, -1, 4), (0.16, 3, 4)];
        vec![
            (factors([(0.0, -1, 4)]).to_vec(), [1e-7, 1.0]),
            (factors([(0.0, 1, 4)]).to_vec(), [1e-4, 64.0]),
            (factors([(0.0, -7, 8)]).to_vec(), [1e-3, 5.0]),
            (factors([(1e-3, 1, 4), (2.0, -1, 4)]).to_vec(), [1e-6, 1e3]),
            (factors(milc).to_vec(), [1e-15, 90.0]),
            (factors(milc.map(|(a, p, q)| (a, -p, 2 * q))).to_vec(), [1e-15, 90.0]),
            (factors([(4e-4, -2, 4), (0.01, -1, 4), (1.0, 0, 4)]).to_vec(), [1e-15, 90.0]),
            (
                factors([(1e-3, 1, 4), (1e-2, -1, 4), (1e-2, 1, 4), (0.1, -1, 4), (1.0, 1, 3)]).to_vec(),
                [1e-4, 30.0],
            ),
        ]
    }

    #[test]
    fn exchange_finds_zolotarevs_functions() {
        let range = [1e-6, 1.5];
        for (root, p) in [(SquareRoot::Inverse, -1), (SquareRoot::Direct, 1)] {
            for degree in [1, 2, 5, 12] {
                let closed = zolotarev(root, range, degree).unwrap();
                let found = Rational::minimax(&factors([(0.0, p, 2)]), range, degree).unwrap();
                // Of the closed form each pole has about 1e-13 (cn near K), and their errors add up in r.
                assert!((closed.error - found.error).abs() < 1e-12, "{} {}", closed.error, found.error);
                for (a, b) in closed.poles.iter().zip(&found.poles) {
                    assert!((a / b - 1.0).abs() < 1e-12, "{root:?} degree {degree}: pole {a} {b}");
                }
                for (a, b) in closed.residues.iter().zip(&found.residues) {
                    assert!((a / b - 1.0).abs() < 1e-11, "{root:?} degree {degree}: residue {a} {b}");
                }
            }
        }
    }

    #[test]
    fn error_alternates() {
        for (factors, range) in samples() {
            let target = Target::new(&factors, range).unwrap();
            let degree = 7;
            let solution = remez::solve(&target, degree).unwrap();
            let r = Rational::minimax(&factors, range, degree).unwrap();
            let coefficients = Coefficients::new(&r);
            assert_eq!(solution.extrema.len(), 2 * degree + 2);
            let swings: Vec<f64> =
                solution.extrema.iter().map(|&x| coefficients.deviation(&target, x)).collect();
            for pair in swings.windows(2) {
                // Rounded coefficients move an extremum by some 1e-15, more where terms cancel.
                assert!((pair[0] + pair[1]).abs() < 1e-5 * r.error + 1e-13, "{factors:?}: {swings:?}");
            }
            assert!((r.error - solution.error).abs() < 1e-5 * r.error + 1e-13, "{factors:?}");
        }
    }

    #[test]
    fn error_holds_and_falls_with_the_degree() {
        for (factors, range) in samples() {
            let mut last = 1.0;
            for degree in [1, 2, 5, 9] {
                let r = Rational::minimax(&factors, range, degree).unwrap();
                assert!(r.error < 0.9 * last, "{factors:?} degree {degree}: {} {last}", r.error);
                last = r.error;
                let seen = seen(&r, &factors);
                // The points miss the top of a hump by (1/2) (pi/100)^2 at worst; f is rounded to 2e-15.
                assert!(seen <= r.error + 2e-15, "{factors:?} degree {degree}: {seen:e} {:e}", r.error);
                assert!(
                    seen >= 0.99 * r.error - 1e-14,
                    "{factors:?} degree {degree}: {seen:e} {:e}",
                    r.error
                );
                assert_eq!(r.degree(), degree);
                assert!(r.poles[0] > 0.0 && r.poles.is_sorted());
            }
        }
    }

    #[test]
    fn a_wrong_coefficient_shows() {
        let factors = factors([(0.0, -1, 4)]);
        let target = Target::new(&factors, [1e-7, 1.0]).unwrap();
        let (good, _) = Rational::best(&target, 9).unwrap();
        for i in 0..9 {
            let mut bad = good.clone();
            bad.residues[i] *= 1.01;
            let bad = Rational::with_error(bad.constant, bad.residues, bad.poles, &target).unwrap();
            assert!(bad.error > 1.5 * good.error, "residue {i}: {} {}", bad.error, good.error);
            assert!(seen(&bad, &factors) <= bad.error + 2e-15);
        }
    }

    #[test]
    fn given_coefficients_are_sorted_and_measured() {
        let factors = factors([(0.0, -2, 8)]);
        let range = [1e-4, 1.0];
        let best = Rational::minimax(&factors, range, 5).unwrap();
        let reversed = |list: &[f64]| list.iter().rev().copied().collect::<Vec<_>>();
        let given = |residues, poles| Rational::given(best.constant, residues, poles, &factors, range);
        assert_eq!(given(reversed(&best.residues), reversed(&best.poles)), Ok(best.clone()));
        let worse = given(best.residues.iter().map(|x| 1.01 * x).collect(), best.poles.clone()).unwrap();
        assert!(worse.error > 5e-3 && worse.error < 0.02, "{}", worse.error);
        let missing = given(best.residues[1..].to_vec(), best.poles.clone());
        assert_eq!(missing, Err(RationalError::Coefficients { residues: 4, poles: 5 }));
        let infinite = given(vec![f64::INFINITY; 5], best.poles.clone());
        assert_eq!(infinite, Err(RationalError::Coefficients { residues: 5, poles: 5 }));
        let negative = given(best.residues.clone(), reversed(&best.poles).iter().map(|x| -x).collect());
        assert!(matches!(negative, Err(RationalError::Pole { .. })), "{negative:?}");
        // An exponent counts in lowest terms.
        assert_eq!(Rational::check(&[Factor { shift: 0.0, power: (-64, 256) }], range), Ok(()));
    }

    #[test]
    fn inverse_powers_are_inverse() {
        for (factors, range) in samples() {
            let inverse: Vec<Factor> =
                factors.iter().map(|f| Factor { power: (-f.power.0, f.power.1), ..*f }).collect();
            let r = Rational::minimax(&factors, range, 9).unwrap();
            let s = Rational::minimax(&inverse, range, 9).unwrap();
            let bound = (1.0 + r.error) * (1.0 + s.error) - 1.0 + 4e-16;
            assert!(points(range).all(|x| (r.value(x) * s.value(x) - 1.0).abs() <= bound), "{factors:?}");
        }
    }

    #[test]
    fn least_degree_for_an_error() {
        for (factors, range) in samples() {
            for error in [0.1, 1e-6] {
                let r = Rational::to_error(&factors, range, error).unwrap();
                assert!(r.error <= error);
                if r.degree() > 1 {
                    let less = Rational::minimax(&factors, range, r.degree() - 1).unwrap();
                    assert!(less.error > error, "{factors:?} {error}: degree {} will do", r.degree() - 1);
                }
            }
        }
        // x^(3/4) over ten decades cancels 7 digits at its lower end.
        let steep = Rational::to_error(&factors([(0.0, 3, 4)]), [1e-10, 1.0], 1e-12);
        assert!(matches!(steep, Err(RationalError::Unreachable { .. })), "{steep:?}");
    }

    #[test]
    fn large_degrees_on_long_ranges() {
        let r = Rational::minimax(&factors([(0.0, -1, 2)]), [1e-9, 1.0], 24).unwrap();
        assert!(r.error < 1e-8);
        assert!(seen(&r, &factors([(0.0, -1, 2)])) <= r.error + 2e-15);
        let r = Rational::minimax(&factors([(0.0, -1, 8)]), [1e-9, 1.0], 40).unwrap();
        assert!(r.error < 1e-13, "{}", r.error);
    }

    #[test]
    fn mistakes_are_told() {
        let root = factors([(0.0, -1, 2)]);
        let minimax =
            |factors: &[Factor], range, degree| Rational::minimax(factors, range, degree).unwrap_err();
        for degree in [0, MAX_DEGREE + 1] {
            assert_eq!(minimax(&root, [0.1, 1.0], degree), RationalError::Degree { degree });
        }
        for (degree, range) in [(20, [0.5, 1.0]), (9, [0.5, 1.0]), (1, [1.0, 1.0 + 1e-15])] {
            let error = minimax(&root, range, degree);
            assert!(matches!(error, RationalError::DegreeTooLarge { .. }), "{degree} {range:?}: {error}");
        }
        for range in [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [f64::NAN, 1.0], [0.1, f64::INFINITY]] {
            assert!(matches!(minimax(&root, range, 4), RationalError::Range { .. }), "{range:?}");
        }
        assert!(matches!(minimax(&factors([(-0.1, 1, 2)]), [0.1, 1.0], 4), RationalError::Factor { .. }));
        let bad_powers = [
            vec![(0.0, 1, 0)],
            vec![(0.0, 1, 1)],
            vec![(0.0, 3, 2)],
            vec![(0.0, 1, 2), (0.0, -2, 4)],
            vec![(0.0, 1, 4), (1.0, -1, 2)],
            vec![(0.0, 1, 1_000_003)],
            vec![(0.0, 1, 97), (1.0, 1, 89)],
            vec![],
        ];
        for powers in bad_powers {
            let factors: Vec<Factor> =
                powers.iter().map(|&(shift, p, q)| Factor { shift, power: (p, q) }).collect();
            assert!(matches!(minimax(&factors, [0.1, 1.0], 4), RationalError::Power(_)), "{powers:?}");
        }
        // The poles of (x - 1)^(-1/2) are left of 1, and the least ones close to it.
        assert!(matches!(minimax(&factors([(-1.0, -1, 2)]), [1.001, 2.0], 4), RationalError::Pole { .. }));
        for error in [1e-15, 1.0, 0.0, f64::NAN] {
            let result = Rational::to_error(&root, [0.1, 1.0], error);
            assert!(matches!(result, Err(RationalError::Unreachable { .. })), "{error}");
        }
    }
}
