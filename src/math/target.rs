//! What a rational function is to come close to: f(x) = prod_i (x + a_i)^(p_i/q), its deviation from a given number
//! in many digits, and the elliptic coordinate natural to its range and cut.
//!
//! f is analytic except for a cut from -a, a the least shift, to minus infinity, or to the largest shift's branch
//! point where the exponents sum to 0. Range and cut are the plates of a condenser, and the elliptic coordinate
//! spaces its charge evenly: Braess, Nonlinear Approximation Theory, chapter V.

use super::elliptic::Elliptic;
use super::rational_error::RationalError;
use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use std::f64::consts::PI;

/// One factor (x + shift)^(power.0 / power.1) of f.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    /// a of (x + a).
    pub shift: f64,
    /// Numerator and denominator of the exponent.
    pub power: (i32, u32),
}

/// Binary, with rounding to nearest; a result has the larger precision of its operands.
pub(super) type Real = FBig<HalfEven, 2>;

/// The largest numerator and denominator of an exponent: f is never formed, r^q is.
const LARGEST_POWER: u32 = 256;

/// x in so many bits.
pub(super) fn real(x: f64, bits: usize) -> Real {
    Real::try_from(x).expect("finite").with_precision(bits).value()
}

pub(super) fn double(x: &Real) -> f64 {
    x.to_f64().value()
}

/// x^n, n small.
fn power(x: &Real, n: u32) -> Real {
    (1..n).fold(x.clone(), |y, _| y * x)
}

/// f, with the shifts distinct and ascending, all exponents over one denominator.
pub(super) struct Target {
    /// Shift and numerator of the exponent; never 0, at least one.
    pub(super) factors: Vec<(f64, i32)>,
    pub(super) denominator: u32,
    pub(super) range: [f64; 2],
}

impl Target {
    pub(super) fn new(given: &[Factor], range: [f64; 2]) -> Result<Self, RationalError> {
        let refuse = |why: &str| Err(RationalError::Power(why.to_owned()));
        let mut denominator = 1u32;
        for factor in given {
            let [p, q] = [factor.power.0.unsigned_abs(), factor.power.1];
            if q == 0 {
                return refuse("an exponent of a rational function has denominator 0");
            }
            if !(factor.shift.is_finite() && range[0] + factor.shift > 0.0) {
                return Err(RationalError::Factor { shift: factor.shift, lo: range[0] });
            }
            let common = gcd(p, q);
            let (p, q) = (p / common, q / common);
            if p > LARGEST_POWER || q > LARGEST_POWER {
                return refuse("the exponents of a rational function need small numerators and denominators");
            }
            denominator = denominator / gcd(denominator, q) * q;
            if denominator > LARGEST_POWER {
                return refuse("the exponents of a rational function need a small common denominator");
            }
        }
        let mut factors: Vec<(f64, i32)> = Vec::new();
        for &Factor { shift, power: (p, q) } in given {
            let p = (i64::from(p) * i64::from(denominator) / i64::from(q)) as i32;
            match factors.iter_mut().find(|(a, _)| *a == shift) {
                Some((_, sum)) => *sum += p,
                None => factors.push((shift, p)),
            }
        }
        factors.retain(|(_, p)| *p != 0);
        factors.sort_by(|a, b| a.0.total_cmp(&b.0));
        // What has been collected on the cut up to each branch point.
        let sums: Vec<i32> = (1..=factors.len()).map(|n| factors[..n].iter().map(|(_, p)| p).sum()).collect();
        if sums.iter().any(|sum| sum.unsigned_abs() >= denominator) || sums.is_empty() {
            return refuse(
                "the exponents of a rational function, summed from the smallest shift (or mass) up, must stay \
                 between -1 and 1, and one must be left",
            );
        }
        if sums.iter().any(|&sum| sum > 0) && sums.iter().any(|&sum| sum < 0) {
            return refuse(
                "the exponents of a rational function, summed from the smallest shift (or mass) up, must keep \
                 one sign",
            );
        }
        Ok(Self { factors, denominator, range })
    }

    pub(super) fn least_shift(&self) -> f64 {
        self.factors[0].0
    }

    /// r/f(x) - 1, from r^q prod (x + a_i)^(-p_i) - 1: no logarithm or root in many digits.
    pub(super) fn deviation(&self, r: &Real, x: &Real) -> f64 {
        let bits = r.precision();
        let (mut above, mut below) = (power(r, self.denominator), real(1.0, bits));
        for &(shift, p) in &self.factors {
            let factor = power(&(x + real(shift, bits)), p.unsigned_abs());
            if p < 0 { above *= factor } else { below *= factor }
        }
        let rest = double(&((above - &below) / below));
        (rest.ln_1p() / f64::from(self.denominator)).exp_m1()
    }

    /// The asymptotic rate: the error falls by exp(-rate) a degree, rate = 2 pi K(k') / K(k).
    pub(super) fn rate(&self) -> f64 {
        let elliptic = Coordinate::new(self).elliptic;
        if elliptic.complement() == 1.0 {
            return f64::INFINITY;
        }
        2.0 * PI * Elliptic::new(elliptic.complement()).quarter() / elliptic.quarter()
    }

    /// A first guess at the degree that reaches an error.
    pub(super) fn degree_for(&self, error: f64) -> usize {
        ((4.0 / error).ln() / self.rate()).ceil() as usize
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The elliptic coordinate of the range and of the cut: [0, 1] onto either, both monotonous.
///
/// The cut goes from -a to infinity, or, where the exponents sum to 0, to the largest shift's branch point, which
/// z / (z + width) then takes to infinity.
pub(super) struct Coordinate {
    elliptic: Elliptic,
    start: f64,
    shift: f64,
    width: Option<f64>,
    range: [f64; 2],
}

impl Coordinate {
    pub(super) fn new(target: &Target) -> Self {
        let shift = target.least_shift();
        let sum: i32 = target.factors.iter().map(|(_, p)| p).sum();
        let width = (sum == 0).then(|| target.factors[target.factors.len() - 1].0 - shift);
        let ends = target.range.map(|x| {
            let z = x + shift;
            width.map_or(z, |width| z / (z + width))
        });
        let elliptic = Elliptic::from_complement((ends[0] / ends[1]).sqrt());
        Self { elliptic, start: ends[0], shift, width, range: target.range }
    }

    /// z in the range.
    pub(super) fn z_on_range(&self, v: f64) -> f64 {
        let dn = self.elliptic.jacobi(v * self.elliptic.quarter())[2];
        let y = self.start / (dn * dn);
        self.width.map_or(y, |width| width * y / (1.0 - y))
    }

    /// x in the range.
    pub(super) fn on_range(&self, v: f64) -> f64 {
        (self.z_on_range(v) - self.shift).clamp(self.range[0], self.range[1])
    }

    /// z > 0 of the point -z on the cut.
    pub(super) fn on_cut(&self, u: f64) -> f64 {
        let [sn, cn, _] = self.elliptic.jacobi(u * self.elliptic.quarter());
        let y = self.start * (sn / cn).powi(2);
        self.width.map_or(y, |width| width * y / (1.0 + y))
    }
}
