//! Weights of domain-wall quarks in the fifth dimension, and the sign function that they make.
//!
//! D_{ss'} = (omega_s D_w + 1) delta_{ss'} + (sigma_s D_w - 1) L_{ss'}. Where omega_s - sigma_s = k for all s, the
//! four-dimensional operator is an overlap operator of the kernel H = gamma_5 D_w (1 + k/2 D_w)^-1, whose sign is
//! replaced by
//!
//!   S(x) = (1 - prod_s T_s) / (1 + prod_s T_s), T_s = (1 - w_s x) / (1 + w_s x), w_s = (omega_s + sigma_s) / 2.
//!
//! Let k' = lambda_min / lambda_max, K the quarter period of modulus k, q = exp(-pi K(k') / K) its nome, N = N_s. The
//! best S on lambda_min <= x <= lambda_max is Zolotarev's: with x = lambda_min / dn(u; k) it is
//! (1 - d) / dn(K_1 N u / K; k_1), where k_1 has the nome q^N, and d is the modulus of nome q^{2N}. It equals 1 at
//! x = 1/omega_s: u = [2 floor(s/2) - (-1)^s f] K/N, where dn(f K_1; k_1) = 1 - d.
//!
//! T.-W. Chiu, hep-lat/0209153; weights with omega_s = omega_{N+1-s}: Chiu, arXiv:1503.01750; k_1 of q^N: N. I. Akhiezer,
//! Elements of the Theory of Elliptic Functions, chapter 9; other k: Brower, Neff, Orginos, arXiv:1206.5214.

use super::elliptic::Elliptic;
use std::f64::consts::PI;

/// omega_s and sigma_s, s = 1 .. N_s.
#[derive(Clone, Debug, PartialEq)]
pub struct WallWeights {
    /// omega_s, before D_w on the diagonal.
    pub omega: Vec<f64>,
    /// sigma_s, before D_w L.
    pub sigma: Vec<f64>,
}

impl WallWeights {
    /// Shamir's quarks: omega = 1, sigma = 0.
    #[must_use]
    pub fn shamir(n_s: usize) -> Self {
        Self::mobius(n_s, 1.0, 0.0)
    }

    /// Borici's quarks: omega = sigma = 1.
    #[must_use]
    pub fn borici(n_s: usize) -> Self {
        Self::mobius(n_s, 1.0, 1.0)
    }

    /// Moebius quarks: omega = b, sigma = c.
    #[must_use]
    pub fn mobius(n_s: usize, b: f64, c: f64) -> Self {
        Self { omega: vec![b; n_s], sigma: vec![c; n_s] }
    }

    /// Optimal quarks: the sigma = omega of the least `sign_error` for eigenvalues of gamma_5 D_w in `range` =
    /// [lambda_min, lambda_max]. omega_s falls with s.
    ///
    /// # Panics
    /// `n_s` = 0, a range that is not 0 < lambda_min < lambda_max.
    #[must_use]
    pub fn optimal(n_s: usize, range: [f64; 2]) -> Self {
        let f = unit_point(complement_of_nome(nome(range).powi(n_s as i32)));
        let at = |s: usize| if s % 2 == 1 { (s - 1) as f64 + f } else { s as f64 - f };
        Self::on_kernel((1..=n_s).map(|s| weight(at(s) / n_s as f64, range)).collect())
    }

    /// The best sigma = omega with omega_s = omega_{N+1-s}, for even N.
    ///
    /// S = (1 - p^2) / (1 + p^2) with p = prod_{s <= N/2} T_s, and |p| is least by Zolotarev's third problem: its roots are
    /// at u = (2s - 1) K/N. This is Zolotarev's S divided by 1 + d, so that `sign_error` = 2d / (1 + d), about
    /// twice that of [`Self::optimal`]. For odd N one factor has no partner and this argument does not hold.
    ///
    /// # Panics
    /// `n_s` odd or 0, a range that is not 0 < lambda_min < lambda_max.
    #[must_use]
    pub fn symmetric_optimal(n_s: usize, range: [f64; 2]) -> Self {
        assert!(n_s.is_multiple_of(2), "symmetric optimal weights need an even n_s, not {n_s}");
        let at = |s: usize| (2 * s.min(n_s + 1 - s) - 1) as f64;
        Self::on_kernel((1..=n_s).map(|s| weight(at(s) / n_s as f64, range)).collect())
    }

    /// k = 0.
    fn on_kernel(omega: Vec<f64>) -> Self {
        assert!(!omega.is_empty(), "domain-wall weights need n_s >= 1");
        Self { sigma: omega.clone(), omega }
    }

    /// N_s.
    #[must_use]
    pub fn n_s(&self) -> usize {
        self.omega.len()
    }

    /// omega_s = omega_{N+1-s} and sigma_s = sigma_{N+1-s}. If they are also [proportional](Self::are_proportional), the
    /// operator is R5 hermitian.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        [&self.omega, &self.sigma].into_iter().all(|w| w.iter().eq(w.iter().rev()))
    }

    /// sigma_s = a omega_s with one a, to rounding, as in all that are made here.
    #[must_use]
    pub fn are_proportional(&self) -> bool {
        let ratio = |s: usize| self.sigma[s] / self.omega[s];
        (0..self.n_s()).all(|s| (ratio(s) - ratio(0)).abs() <= 4.0 * f64::EPSILON * ratio(0).abs())
    }

    /// k = omega_s - sigma_s, to rounding, if it is the same for all s: without it there is no kernel.
    #[must_use]
    pub fn kernel_difference(&self) -> Option<f64> {
        let at = |s: usize| self.omega[s] - self.sigma[s];
        let same =
            |s: usize| (at(s) - at(0)).abs() <= 4.0 * f64::EPSILON * (self.omega[s].abs() + at(0).abs());
        (0..self.n_s()).all(same).then(|| at(0))
    }

    /// w_s = (omega_s + sigma_s) / 2: T_s vanishes at 1/w_s.
    fn factors(&self) -> impl Iterator<Item = f64> {
        self.omega.iter().zip(&self.sigma).map(|(omega, sigma)| 0.5 * (omega + sigma))
    }

    /// S(x) for the eigenvalue x of the kernel.
    #[must_use]
    pub fn sign(&self, x: f64) -> f64 {
        (1.0 - self.deviation(x.abs())).copysign(x)
    }

    /// 1 - S(x) = 2P / (1 + P), P = prod_s T_s, for x > 0: to full relative precision.
    fn deviation(&self, x: f64) -> f64 {
        let product: f64 = self.factors().map(|w| (1.0 - w * x) / (1.0 + w * x)).product();
        2.0 * product / (1.0 + product)
    }

    /// max |1 - |S(x)|| on lambda_min <= |x| <= lambda_max, to full relative precision; the w_s must be positive.
    ///
    /// T_s = -tanh((ln x + ln w_s) / 2), and ln |tanh| is concave on either side of its root: between two
    /// neighbouring roots of 1 - S there is one extremum, which golden sections cannot miss.
    ///
    /// # Panics
    /// A range that is not 0 < lambda_min < lambda_max.
    #[must_use]
    pub fn sign_error(&self, range: [f64; 2]) -> f64 {
        check(range);
        let ends = range.map(f64::ln);
        let roots = self.factors().map(|w| -w.ln()).filter(|root| (ends[0]..ends[1]).contains(root));
        let mut cuts: Vec<f64> = roots.chain(ends).collect();
        cuts.sort_by(f64::total_cmp);
        let error = |log: f64| self.deviation(log.exp()).abs();
        cuts.windows(2).map(|cut| greatest(error, [cut[0], cut[1]])).fold(0.0, f64::max)
    }

    /// d, the least `sign_error` that `n_s` weights can have on `range`; [`Self::optimal`] has it.
    ///
    /// # Panics
    /// A range that is not 0 < lambda_min < lambda_max.
    #[must_use]
    pub fn zolotarev_bound(n_s: usize, range: [f64; 2]) -> f64 {
        modulus_of_nome(nome(range).powi(2 * n_s as i32))
    }
}

fn check([lo, hi]: [f64; 2]) {
    assert!(
        0.0 < lo && lo < hi && hi.is_finite(),
        "the range [{lo:e}, {hi:e}] must have 0 < lambda_min < lambda_max"
    );
}

/// q = exp(-pi K(k') / K(k)).
fn nome(range: [f64; 2]) -> f64 {
    check(range);
    let complement = range[0] / range[1];
    (-PI * Elliptic::new(complement).quarter() / Elliptic::from_complement(complement).quarter()).exp()
}

/// prod_{n >= 1} f(q^{2n-1}, q^{2n})^4 for f = 1 + O(q).
fn nome_product(q: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
    let odd = std::iter::successors(Some(q), |odd| Some(odd * q * q));
    odd.take_while(|odd| *odd > 0.1 * f64::EPSILON).map(|odd| f(odd, odd * q).powi(4)).product()
}

/// k of the nome q, 4 q^(1/2) prod [(1 + q^{2n}) / (1 + q^{2n-1})]^4 (Jacobi).
fn modulus_of_nome(q: f64) -> f64 {
    4.0 * q.sqrt() * nome_product(q, |odd, even| (1.0 + even) / (1.0 + odd))
}

/// k' of the nome q, prod [(1 - q^{2n-1}) / (1 + q^{2n-1})]^4 (Jacobi).
fn complement_of_nome(q: f64) -> f64 {
    nome_product(q, |odd, _| (1.0 - odd) / (1.0 + odd))
}

/// f of dn(f K_1; k_1) = 2 k_1' / (1 + k_1') = 1 - d, that is sn^2 / cn^2 = (1 + 3 k_1') / (k_1'^2 (3 + k_1')).
fn unit_point(complement: f64) -> f64 {
    let elliptic = Elliptic::from_complement(complement);
    let goal = ((1.0 + 3.0 * complement) / (3.0 + complement)).sqrt() / complement;
    let [mut below, mut above] = [0.0, 1.0];
    loop {
        let f = 0.5 * (below + above);
        if f <= below || f >= above {
            return f;
        }
        let [sn, cn, _] = elliptic.jacobi(f * elliptic.quarter());
        *(if sn < goal * cn { &mut below } else { &mut above }) = f;
    }
}

/// dn(u; k) / lambda_min, u as a `part` of K.
fn weight(part: f64, range: [f64; 2]) -> f64 {
    check(range);
    let elliptic = Elliptic::from_complement(range[0] / range[1]);
    elliptic.jacobi(part * elliptic.quarter())[2] / range[0]
}

/// The greatest f on an interval with one maximum, by golden sections; the ends count.
fn greatest(f: impl Fn(f64) -> f64, [mut a, mut b]: [f64; 2]) -> f64 {
    // Where f is flat, two values tell points apart only to the root of their rounding.
    const STEPS: usize = 45;
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let mut best = f(a).max(f(b));
    let [mut c, mut d] = [b - golden * (b - a), a + golden * (b - a)];
    let [mut at_c, mut at_d] = [f(c), f(d)];
    for _ in 0..STEPS {
        best = best.max(at_c).max(at_d);
        if at_c > at_d {
            (b, d, at_d) = (d, c, at_c);
            c = b - golden * (b - a);
            at_c = f(c);
        } else {
            (a, c, at_c) = (c, d, at_d);
            d = a + golden * (b - a);
            at_d = f(d);
        }
    }
    best
}
