//! Means of a Markov chain with errors that know its autocorrelation: the Gamma method of U. Wolff, hep-lat/0306017.
//!
//! With deviations d_i = a_i - mean, i = 1 .. N,
//!
//! ```text
//! Gamma(t) = sum_i d_i d_(i+t) / (N - t)                         eq. (31)
//! tau(W)   = 1/2 + sum_(t = 1 .. W) Gamma(t) / Gamma(0)          eq. (41)
//! error^2  = 2 tau(W) Gamma(0) / N
//! ```
//!
//! W is the first window with exp(-W/T) < T / sqrt(W N), where T = S / ln((2 tau + 1) / (2 tau - 1)), eqs. (51), (52); with
//! S = 1.5. The bias of subtracting the mean is corrected by eq. (49).

/// T is this many times the decay time that tau(W) would have if Gamma fell as one exponential.
const S: f64 = 1.5;

/// A mean of a series, in the units of the series; times in units of its step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainMean {
    /// The mean.
    pub mean: f64,
    /// Its error; 0 of a constant series, NaN of a single value.
    pub error: f64,
    /// The error of the error, eq. (42).
    pub error_of_error: f64,
    /// The integrated autocorrelation time; 1/2 without autocorrelation.
    pub tau: f64,
    /// Its error, eq. (42).
    pub tau_error: f64,
    /// The window of the sum.
    pub window: usize,
    /// The number of values.
    pub count: usize,
}

impl ChainMean {
    /// The mean of `series`; NaN of an empty one.
    #[must_use]
    pub fn of(series: &[f64]) -> Self {
        let count = series.len();
        let n = count as f64;
        let mean = series.iter().sum::<f64>() / n;
        let deviations: Vec<f64> = series.iter().map(|x| x - mean).collect();
        let gamma = |t: usize| {
            let products = deviations.iter().zip(&deviations[t..]).map(|(a, b)| a * b);
            products.sum::<f64>() / (count - t) as f64
        };
        let variance = if count > 1 { gamma(0) } else { f64::NAN };
        // Rounding of equal values is no variance.
        if variance.is_nan() || variance <= (1e-14 * mean).powi(2) {
            let error = if count > 1 { 0.0 } else { f64::NAN };
            return Self { mean, error, error_of_error: error, tau: 0.5, tau_error: 0.0, window: 0, count };
        }
        let (mut tau, mut window) = (0.5, 0);
        while window + 1 < count / 2 {
            window += 1;
            tau += gamma(window) / variance;
            let time =
                if tau > 0.5 { S / ((2.0 * tau + 1.0) / (2.0 * tau - 1.0)).ln() } else { f64::MIN_POSITIVE };
            let w = window as f64;
            if (-w / time).exp() < time / (w * n).sqrt() {
                break;
            }
        }
        let w = window as f64;
        let tau_error = tau * 2.0 * ((w + 0.5 - tau).abs() / n).sqrt();
        // Eq. (49) adds 2 tau Gamma(0) / N to each Gamma; the 1 is that of Gamma(0) alone.
        let tau = tau * (1.0 + (2.0 * w + 1.0) / n) / (1.0 + 1.0 / n);
        let error = (2.0 * tau * variance * (1.0 + 1.0 / n) / n).sqrt();
        Self { mean, error, error_of_error: error * ((w + 0.5) / n).sqrt(), tau, tau_error, window, count }
    }
}

/// So many values at the start of a series are best left out of its mean: those that make the estimated error of the rest least,
/// half of the series at most (K. P. White, Simulation 69 (1997) 323: the marginal standard error rule).
#[must_use]
pub fn thermalisation(series: &[f64]) -> usize {
    // From the end, so that sums grow by one value each.
    let (mut sum, mut squares) = (0.0, 0.0);
    let shift = series.last().copied().unwrap_or_default();
    let mut best = (f64::INFINITY, 0);
    for (cut, x) in series.iter().enumerate().rev() {
        let x = x - shift;
        (sum, squares) = (sum + x, squares + x * x);
        let n = (series.len() - cut) as f64;
        let rule = (squares - sum * sum / n) / (n * n);
        if 2 * cut <= series.len() && rule <= best.0 {
            best = (rule, cut);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An autoregressive series around 3 from the numbers of Knuth's generator.
    fn series(count: usize, rho: f64) -> Vec<f64> {
        let (mut x, mut a) = (1u64, 0.0);
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            a = rho * a + ((x >> 11) as f64 / (1u64 << 53) as f64 - 0.5);
            a + 3.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// What pyerrors 2.17.0 finds with `gamma_method(S=1.5)`: value, dvalue, ddvalue, tau_int, its error, the window.
    #[test]
    fn errors_and_times_are_those_of_pyerrors() {
        let cases = [
            (
                1000,
                0.8,
                "3.0369468238283264 0.03746873441459318 0.004812946079836837 3.355037181049621 0.7484295154834931",
                16,
            ),
            (
                5000,
                0.95,
                "3.0756478547052732 0.059428619043513535 0.0069049815553089856 13.508006666563595 2.7430291767401584",
                67,
            ),
            (
                200,
                0.3,
                "2.986354467273436 0.025798123741372563 0.0038697185612058846 0.8534513298985318 0.22264923659393915",
                4,
            ),
        ];
        for (count, rho, expected, window) in cases {
            let found = ChainMean::of(&series(count, rho));
            let numbers = [found.mean, found.error, found.error_of_error, found.tau, found.tau_error];
            for (a, b) in
                numbers.into_iter().zip(expected.split(' ').map(|text| text.parse::<f64>().unwrap()))
            {
                // Sums of up to 5000 products in another order.
                assert!((a - b).abs() < 1e-11 * b.abs(), "{found:?} for {expected}");
            }
            assert_eq!((found.window, found.count), (window, count));
        }
    }

    #[test]
    fn series_without_fluctuations_have_no_error() {
        let constant = ChainMean::of(&[0.1; 50]);
        assert_eq!((constant.error, constant.tau), (0.0, 0.5));
        assert!(ChainMean::of(&[0.1]).error.is_nan() && ChainMean::of(&[]).mean.is_nan());
    }

    #[test]
    fn a_start_far_away_is_left_out() {
        let mut values = series(400, 0.5);
        for (n, x) in values.iter_mut().take(60).enumerate() {
            *x += 20.0 * (-(n as f64) / 10.0).exp();
        }
        let cut = thermalisation(&values);
        assert!((20..80).contains(&cut), "{cut}");
        assert!(thermalisation(&series(400, 0.5)) < 200);
        assert_eq!((thermalisation(&[]), thermalisation(&[1.0])), (0, 0));
    }
}
