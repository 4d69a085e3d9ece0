//! Sums of doubles that do not depend on their order, to the last bit.
//!
//! Each addend is split into five pieces on fixed binary grids, 2^20, 2^-20, ... 2^-140, and each
//! grid is summed in an `i64`: integer sums commute. An addend of magnitude 2^70 or more, an
//! infinity or a NaN is counted instead of added. `kernels/sum.cuh` does the splitting on sites.

use std::ops::{Add, AddAssign, Sub};

/// Number of grids.
pub(super) const BINS: usize = 5;
/// The words of a sum as ranks and kernels exchange it: the bins, then the count of what did not fit.
pub(super) const WORDS: usize = BINS + 1;

/// A sum of doubles, exact to 2^-140 for up to 2^24 addends between normalisations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactSum {
    bins: [i64; BINS],
    misfits: i64,
}

/// 1.5 * 2^(52 + e_k): adding it rounds to the grid 2^(e_k), e_k = 20 - 40 k.
const fn magic(k: usize) -> f64 {
    f64::from_bits(((1023 + 72 - 40 * k as i64) as u64) << 52 | 1 << 51)
}

impl ExactSum {
    /// How many words a sum is.
    pub const WORDS: usize = WORDS;

    /// From the words of a kernel.
    pub fn from_words(words: [i64; WORDS]) -> Self {
        let bins = std::array::from_fn(|k| words[k]);
        Self { bins, misfits: words[BINS] }.normalised()
    }

    /// The words to be summed over ranks.
    pub fn words(self) -> [i64; WORDS] {
        let s = self.normalised();
        std::array::from_fn(|k| if k < BINS { s.bins[k] } else { s.misfits })
    }

    /// Adds one double.
    pub fn push(&mut self, mut x: f64) {
        if x.abs() >= 2f64.powi(70) || x.is_nan() {
            self.misfits += 1;
            return;
        }
        for k in 0..BINS {
            let t = x + magic(k);
            self.bins[k] += (t.to_bits() as i64).wrapping_sub(magic(k).to_bits() as i64);
            x -= t - magic(k);
        }
    }

    /// Carries between bins so that all but the first lie in [0, 2^40).
    fn normalised(mut self) -> Self {
        for k in (1..BINS).rev() {
            self.bins[k - 1] += self.bins[k] >> 40;
            self.bins[k] &= (1 << 40) - 1;
        }
        self
    }

    /// The sum, rounded once a bin; NaN if an addend did not fit.
    pub fn value(self) -> f64 {
        if self.misfits != 0 {
            return f64::NAN;
        }
        let s = self.normalised();
        let (sign, s) = if s.bins[0] < 0 { (-1.0, (Self::default() - s).normalised()) } else { (1.0, s) };
        sign * (0..BINS).rev().fold(0.0, |sum, k| sum + s.bins[k] as f64 * 2f64.powi(20 - 40 * k as i32))
    }
}

impl Add for ExactSum {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.normalised(), other.normalised());
        let bins = std::array::from_fn(|k| a.bins[k] + b.bins[k]);
        Self { bins, misfits: a.misfits + b.misfits }.normalised()
    }
}

impl AddAssign for ExactSum {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ExactSum {
    type Output = Self;
    /// The difference, exact as well: what dH is made of.
    #[expect(clippy::suspicious_arithmetic_impl, reason = "what does not fit counts on both sides")]
    fn sub(self, other: Self) -> Self {
        let (a, b) = (self.normalised(), other.normalised());
        let bins = std::array::from_fn(|k| a.bins[k] - b.bins[k]);
        Self { bins, misfits: a.misfits + b.misfits }.normalised()
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sum = Self::default();
        values.into_iter().for_each(|x| sum.push(x));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter() {
        let values: Vec<f64> =
            (0..1000).map(|i| (f64::from(i) * 0.7).sin() * 10f64.powi(i % 13 - 6)).collect();
        let forward: ExactSum = values.iter().copied().collect();
        let backward: ExactSum = values.iter().rev().copied().collect();
        assert_eq!(forward.normalised(), backward.normalised());
        let split =
            values[..371].iter().copied().collect::<ExactSum>() + values[371..].iter().copied().collect();
        assert_eq!(split.normalised(), forward.normalised());
        let plain: f64 = values.iter().sum();
        assert!((forward.value() - plain).abs() < 1e-9 * plain.abs().max(1.0));
    }

    #[test]
    fn differences_are_exact() {
        let big: ExactSum = [1e15, 1.0, 2f64.powi(-100)].into_iter().collect();
        let less: ExactSum = [1e15, 1.0].into_iter().collect();
        assert_eq!((big - less).value(), 2f64.powi(-100));
        assert_eq!((less - big).value(), -(2f64.powi(-100)));
    }

    #[test]
    fn what_does_not_fit_is_not_lost() {
        for bad in [f64::NAN, f64::INFINITY, 1e22] {
            assert!([1.0, bad].into_iter().collect::<ExactSum>().value().is_nan());
        }
    }
}
