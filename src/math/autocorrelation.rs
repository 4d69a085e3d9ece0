//! Means of a Markov chain with errors that know its autocorrelation: the Gamma method of U. Wolff, hep-lat/0306017.
//!
//! Of R replicas of N_r values each, N in all, with deviations d_(r,i) = a_(r,i) - mean from the mean of all values,
//!
//! ```text
//! Gamma(t) = sum_r sum_i d_(r,i) d_(r,i+t) / sum_r max(N_r - t, 0)      eq. (31)
//! tau(W)   = 1/2 + sum_(t = 1 .. W) Gamma(t) / Gamma(0)                  eq. (41)
//! error^2  = 2 tau(W) Gamma(0) / N
//! chi^2    = sum_r N_r (mean_r - mean)^2 / (2 tau(W) Gamma(0))
//! ```
//!
//! W is the first window with exp(-W/T) < T / sqrt(W N), where T = S / ln((2 tau + 1) / (2 tau - 1)), eqs. (51), (52); with
//! S = 1.5. The bias of subtracting the mean is corrected by eq. (49). Q is the probability that chi^2 of R - 1 degrees of
//! freedom is greater than the one found: a small one says that the replicas do not sample one distribution.
//!
//! The paper sums to lags within the shortest replica. Here the longest gives them, so that a chain that has just begun does not
//! cut off the sum of the others.

/// T is this many times the decay time that tau(W) would have if Gamma fell as one exponential.
const S: f64 = 1.5;

/// A mean of a series or of replicas of it, in the units of the series; times in units of its step.
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
    /// The goodness of fit of one mean to all replicas; NaN of one replica, and without fluctuations.
    pub q: f64,
}

impl ChainMean {
    /// The mean of `series`; NaN of an empty one.
    #[must_use]
    pub fn of(series: &[f64]) -> Self {
        Self::of_replicas(&[series])
    }

    /// The mean of all values of independent chains with equal physics; empty ones count as none.
    #[must_use]
    pub fn of_replicas(replicas: &[&[f64]]) -> Self {
        let replicas: Vec<&[f64]> = replicas.iter().copied().filter(|one| !one.is_empty()).collect();
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let count: usize = replicas.iter().map(|one| one.len()).sum();
        let longest = replicas.iter().map(|one| one.len()).max().unwrap_or(0);
        let n = count as f64;
        let mean = replicas.iter().map(|one| sum(one)).sum::<f64>() / n;
        let deviations: Vec<Vec<f64>> =
            replicas.iter().map(|one| one.iter().map(|x| x - mean).collect()).collect();
        let gamma = |t: usize| {
            let long = || deviations.iter().filter(|one| one.len() > t);
            let products = long().map(|d| d.iter().zip(&d[t..]).map(|(a, b)| a * b).sum::<f64>());
            products.sum::<f64>() / long().map(|d| d.len() - t).sum::<usize>() as f64
        };
        let variance = if count > 1 { gamma(0) } else { f64::NAN };
        // Rounding of equal values is no variance.
        if variance.is_nan() || variance <= (1e-14 * mean).powi(2) {
            let error = if count > 1 { 0.0 } else { f64::NAN };
            let (tau, tau_error, q) = (0.5, 0.0, f64::NAN);
            return Self { mean, error, error_of_error: error, tau, tau_error, window: 0, count, q };
        }
        let (mut tau, mut window) = (0.5, 0);
        while window + 1 < longest / 2 {
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
        let square = 2.0 * tau * variance * (1.0 + 1.0 / n);
        let error = (square / n).sqrt();
        let pull = |d: &Vec<f64>| sum(d).powi(2) / d.len() as f64;
        let q = match replicas.len() {
            1 => f64::NAN,
            many => chi_square_tail(many - 1, deviations.iter().map(pull).sum::<f64>() / square),
        };
        let error_of_error = error * ((w + 0.5) / n).sqrt();
        Self { mean, error, error_of_error, tau, tau_error, window, count, q }
    }
}

/// The probability that chi^2 of so many degrees of freedom, 1 at least, exceeds `chi_square`: the incomplete gamma function
/// Q(a, x), a = degrees / 2, x = chi^2 / 2, by the recursion Q(a + 1, x) = Q(a, x) + x^a exp(-x) / Gamma(a + 1) from
/// Q(1/2, x) = erfc(sqrt(x)) and Q(1, x) = exp(-x).
fn chi_square_tail(degrees: usize, chi_square: f64) -> f64 {
    let x = 0.5 * chi_square;
    let mut a = if degrees.is_multiple_of(2) { 1.0 } else { 0.5 };
    let mut tail = if a == 1.0 { (-x).exp() } else { erfc(x.sqrt()) };
    // x^a exp(-x) / Gamma(a + 1)
    let mut term =
        if a == 1.0 { x * (-x).exp() } else { 2.0 * (x / std::f64::consts::PI).sqrt() * (-x).exp() };
    while 2.0 * a < degrees as f64 {
        tail += term;
        a += 1.0;
        term *= x / a;
    }
    tail
}

/// The complementary error function of x >= 0: the series of erf below 2 (Abramowitz, Stegun, 7.1.6), the continued fraction
/// above (7.1.14).
fn erfc(x: f64) -> f64 {
    let factor = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.0 {
        let (mut term, mut sum, mut n) = (2.0 * x * factor, 0.0, 0.0);
        while term > 1e-17 * sum {
            sum += term;
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
        }
        return 1.0 - sum;
    }
    let fraction = (1..=100).rev().fold(x, |rest, n| x + 0.5 * f64::from(n) / rest);
    factor / fraction
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

    /// Consecutive parts of a series as replicas, the last of them moved by a shift: what pyerrors 2.17.0 finds for their
    /// deviations from the common mean with `gamma_method(S=1.5)`, as above; and scipy's `gammaincc` for its error.
    #[test]
    fn means_over_replicas_are_those_of_pyerrors() {
        let cases: [(&[usize], f64, f64, &str, usize); 4] = [
            (
                &[600, 400],
                0.8,
                0.0,
                "3.0369468238283264 0.037092627581158645 0.004764634282337918 3.2880202793380295 0.7352750452624949 0.37041193356730717",
                16,
            ),
            (
                &[2000, 1500, 30],
                0.9,
                0.0,
                "3.041011631217076 0.03849509216857054 0.003967652653026926 7.007659797347783 1.2788672195315265 0.19236252973049447",
                37,
            ),
            (
                &[700, 700, 700, 700],
                0.95,
                0.0,
                "3.086401101885923 0.076216488870186 0.01073041240805285 12.272985810501925 2.950305745776697 0.04703717221945241",
                55,
            ),
            (
                &[500, 500, 300],
                0.3,
                0.1,
                "3.0402567029214964 0.012729086292468956 0.0009668435096541291 1.1208335656334796 0.15550300036214357 0.00014458035293559113",
                7,
            ),
        ];
        for (lengths, rho, shift, expected, window) in cases {
            let mut rest = series(lengths.iter().sum(), rho);
            let mut replicas: Vec<Vec<f64>> = lengths.iter().map(|n| rest.drain(..n).collect()).collect();
            replicas.last_mut().unwrap().iter_mut().for_each(|x| *x += shift);
            let found = ChainMean::of_replicas(&replicas.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let numbers =
                [found.mean, found.error, found.error_of_error, found.tau, found.tau_error, found.q];
            for (a, b) in
                numbers.into_iter().zip(expected.split(' ').map(|text| text.parse::<f64>().unwrap()))
            {
                // As above.
                assert!((a - b).abs() < 1e-11 * b.abs(), "{found:?} for {expected}");
            }
            assert_eq!((found.window, found.count), (window, lengths.iter().sum()));
        }
    }

    #[test]
    fn one_replica_is_the_series_and_empty_ones_are_none() {
        let values = series(300, 0.7);
        let (alone, among) = (ChainMean::of(&values), ChainMean::of_replicas(&[&[], &values, &[]]));
        assert_eq!(format!("{alone:?}"), format!("{among:?}"));
        assert!(alone.q.is_nan() && ChainMean::of_replicas(&[]).mean.is_nan());
    }

    /// scipy's `gammaincc(k / 2, chi^2 / 2)`.
    #[test]
    fn tails_of_chi_square_are_those_of_scipy() {
        for (degrees, chi_square, expected) in [
            (1, 0.3, 0.583_882_420_770_365),
            (1, 9.0, 0.002_699_796_063_260_188),
            (2, 1.7, 0.427_414_931_948_726_8),
            (3, 4.2, 0.240_661_885_209_614_6),
            (6, 20.0, 0.002_769_395_715_511_577),
            (7, 0.5, 0.999_446_481_390_425),
        ] {
            let found = chi_square_tail(degrees, chi_square);
            assert!((found - expected).abs() < 1e-13 * expected, "{found:e} {expected:e}");
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
