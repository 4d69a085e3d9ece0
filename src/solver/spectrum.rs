//! The least and the greatest eigenvalue of `M^dag M` by Lanczos, in double precision (Lanczos 1950). Without
//! reorthogonalisation the ends remain correct (Paige, J. Inst. Math. Appl. 18 (1976) 341).
//!
//! Let `T` be the tridiagonal matrix of k steps and (theta, s) an eigenpair of it. Then an eigenvalue of `M^dag M` lies
//! within `beta_k |s_k|` of theta. Both ends come from the same steps. Their number is like that of a solve with
//! conjugate gradients, since the Krylov space is the same: the coefficients of a solve give its T for nothing (Golub,
//! Van Loan, Matrix Computations, 10.2.5).

use super::SolverError;
use crate::device::Precision;
use crate::field::Spinor;
use crate::operator::Operator;
use std::sync::Arc;

/// The measured ends of a spectrum. The true spectrum extends at least this far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least eigenvalue.
    pub least: f64,
    /// The greatest eigenvalue.
    pub greatest: f64,
    /// An eigenvalue lies within this distance of each.
    pub errors: [f64; 2],
    /// Steps: applications of `M^dag M`.
    pub iterations: usize,
}

/// Steps between evaluations of T.
const LOOK: usize = 8;

/// The ends of the spectrum of `M^dag M`, each with `beta_k |s_k| <= tolerance theta`. `start` must have components
/// along all eigenvectors, as a random vector does; it is overwritten. For a zero vector the ends are infinity and 0.
///
/// # Errors
/// No convergence in `max_iterations` steps; a number is infinite or NaN.
pub fn bounds(
    operator: &mut dyn Operator,
    start: &mut Spinor,
    tolerance: f64,
    max_iterations: usize,
) -> Result<Bounds, SolverError> {
    lanczos(operator, start, true, tolerance, max_iterations)
}

/// Only the greatest eigenvalue of `M^dag M`, as in [`bounds`], in far fewer steps.
///
/// # Errors
/// As [`bounds`].
pub fn greatest(
    operator: &mut dyn Operator,
    start: &mut Spinor,
    tolerance: f64,
    max_iterations: usize,
) -> Result<f64, SolverError> {
    Ok(lanczos(operator, start, false, tolerance, max_iterations)?.greatest)
}

fn lanczos(
    operator: &mut dyn Operator,
    start: &mut Spinor,
    both: bool,
    tolerance: f64,
    max_iterations: usize,
) -> Result<Bounds, SolverError> {
    let (domain, kind) = (Arc::clone(operator.domain()), operator.kind());
    let spinor = || Spinor::of(&domain, kind, Precision::Double, 1);
    let (mut v, mut before, mut middle, mut next) = (start, &mut spinor()?, spinor()?, &mut spinor()?);
    let norm = v.norm2()?.value().sqrt();
    if norm == 0.0 {
        // A zero vector has no component along any eigenvector.
        return Ok(Bounds { least: f64::INFINITY, greatest: 0.0, errors: [0.0; 2], iterations: 0 });
    }
    v.scale(1.0 / norm)?;
    let mut t = Tridiagonal::default();
    let mut error = f64::INFINITY;
    while t.diagonal.len() < max_iterations {
        let iterations = t.diagonal.len();
        operator.apply_normal(next, &mut middle, v, 0.0)?;
        let alpha = middle.norm2()?.value();
        if let Some(&beta) = t.beside.last() {
            next.axpy(-beta, before)?;
        }
        next.axpy(-alpha, v)?;
        let beta = next.norm2()?.value().sqrt();
        if !(alpha.is_finite() && beta.is_finite()) {
            return Err(SolverError::NotFinite { what: "a Lanczos vector", iterations });
        }
        t.diagonal.push(alpha);
        t.beside.push(beta);
        // The Krylov space is exhausted: T is exact.
        let exhausted = beta <= 1e-13 * alpha;
        let steps = t.diagonal.len();
        if exhausted || steps.is_multiple_of(LOOK) || steps == max_iterations {
            let bounds = t.bounds().expect("a step");
            let [low, high] = bounds.errors;
            error = (if both { low / bounds.least } else { 0.0 }).max(high / bounds.greatest);
            if exhausted || error <= tolerance {
                return Ok(bounds);
            }
        }
        next.scale(1.0 / beta)?;
        // Shift v_(k-1), v_k, v_(k+1) by one.
        let free = std::mem::replace(&mut before, v);
        v = std::mem::replace(&mut next, free);
    }
    Err(SolverError::Spectrum { iterations: t.diagonal.len(), error, wanted: tolerance })
}

/// T: a symmetric tridiagonal matrix.
#[derive(Clone, Debug, Default)]
pub struct Tridiagonal {
    diagonal: Vec<f64>,
    /// The off-diagonal. Its last element leads to the next step.
    beside: Vec<f64>,
    /// The absolute error of the operator.
    error: f64,
}

impl Tridiagonal {
    /// Adds a step of conjugate gradients with coefficients `[alpha, beta]`, and those of the step `before`. The matrix of
    /// the system is `M^dag M + shift`, applied with the relative error `error`.
    pub(super) fn add_step(
        &mut self,
        [alpha, beta]: [f64; 2],
        before: Option<[f64; 2]>,
        shift: f64,
        error: f64,
    ) {
        let memory = before.map_or(0.0, |[alpha, beta]| beta / alpha);
        self.diagonal.push(1.0 / alpha + memory - shift);
        self.beside.push(beta.sqrt() / alpha);
        self.error = self.error.max(error / alpha);
    }

    /// The ends of the spectrum as far as these steps see them; `None` before the first step.
    pub fn bounds(&self) -> Option<Bounds> {
        let next = self.beside.last()?;
        let [(least, low), (greatest, high)] = self.ends();
        let errors = [low, high].map(|last| next * last + self.error);
        Some(Bounds { least, greatest, errors, iterations: self.diagonal.len() })
    }

    /// Eigenvalue and |last component| of its eigenvector, at the lower and at the upper end.
    fn ends(&self) -> [(f64, f64); 2] {
        [1.0, -1.0].map(|sign| {
            let theta = self.least(sign);
            (sign * theta, self.last_component(sign, theta))
        })
    }

    fn beside(&self, i: usize) -> f64 {
        if i == 0 { 0.0 } else { self.beside[i - 1] }
    }

    /// The least eigenvalue of `sign T`, by bisection on the signs of the pivots of `sign T - x`.
    fn least(&self, sign: f64) -> f64 {
        let n = self.diagonal.len();
        let radius = |i: usize| self.beside(i) + if i + 1 < n { self.beside(i + 1) } else { 0.0 };
        // Between Gershgorin's bound and the least Rayleigh quotient of a unit vector.
        let mut low = (0..n).map(|i| sign * self.diagonal[i] - radius(i)).fold(f64::INFINITY, f64::min);
        let mut high = (0..n).map(|i| sign * self.diagonal[i]).fold(f64::INFINITY, f64::min);
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                return low;
            }
            let mut pivot = f64::INFINITY;
            let below = (0..n).any(|i| {
                pivot = sign * self.diagonal[i] - middle - self.beside(i).powi(2) / pivot;
                pivot <= 0.0
            });
            if below { high = middle } else { low = middle }
        }
    }

    /// |s_k| of the normalised eigenvector for the least eigenvalue of `sign T`. Inverse iteration starts below the
    /// eigenvalue, where elimination has positive pivots.
    fn last_component(&self, sign: f64, theta: f64) -> f64 {
        let n = self.diagonal.len();
        let size = self.diagonal.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        let shift = theta - 1e-14 * size;
        let mut pivots = Vec::with_capacity(n);
        for i in 0..n {
            let above = pivots.last().map_or(0.0, |pivot| self.beside(i).powi(2) / pivot);
            pivots.push((sign * self.diagonal[i] - shift - above).max(f64::MIN_POSITIVE));
        }
        let mut s = vec![1.0; n];
        for _ in 0..4 {
            for i in 1..n {
                s[i] -= sign * self.beside(i) / pivots[i - 1] * s[i - 1];
            }
            s[n - 1] /= pivots[n - 1];
            for i in (0..n - 1).rev() {
                s[i] = (s[i] - sign * self.beside(i + 1) * s[i + 1]) / pivots[i];
            }
            let norm = s.iter().map(|c| c * c).sum::<f64>().sqrt();
            s.iter_mut().for_each(|c| *c /= norm);
        }
        s[n - 1].abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T with 2 on the diagonal and 1 off it: 2 - 2 cos(pi j / (n+1)), components +-sin(pi j k / (n+1)).
    #[test]
    fn the_ends_of_a_known_matrix() {
        let n = 37;
        let t = Tridiagonal { diagonal: vec![2.0; n], beside: vec![1.0; n], error: 0.0 };
        let angle = std::f64::consts::PI / (n + 1) as f64;
        let last = (2.0 / (n + 1) as f64).sqrt() * angle.sin();
        let [(least, low), (greatest, high)] = t.ends();
        assert!((least - (2.0 - 2.0 * angle.cos())).abs() < 1e-14, "{least}");
        assert!((greatest - (2.0 + 2.0 * angle.cos())).abs() < 1e-14, "{greatest}");
        assert!((low - last).abs() < 1e-8 && (high - last).abs() < 1e-8, "{low} {high} {last}");
    }

    #[test]
    fn one_by_one() {
        let t = Tridiagonal { diagonal: vec![3.0], beside: vec![1.0], error: 0.0 };
        assert_eq!(t.ends(), [(3.0, 1.0), (3.0, 1.0)]);
    }
}
