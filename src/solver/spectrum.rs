//! The least and the greatest eigenvalue of `M^dag M` by Lanczos, in double
//! (Lanczos 1950; Paige, J. Inst. Math. Appl. 18 (1976) 341: without reorthogonalisation the ends stay right).
//!
//! With `T` the tridiagonal matrix of k steps and (theta, s) one of its eigenpairs, an eigenvalue of `M^dag M` lies
//! within `beta_k |s_k|` of theta. Both ends come from the same steps, in number like those of a solve with
//! conjugate gradients, whose Krylov space this is.

use super::SolverError;
use crate::device::Precision;
use crate::field::{Dagger, Spinor};
use crate::operator::Operator;
use std::sync::Arc;

/// The ends of a spectrum as measured. Values of T lie inside the true spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least eigenvalue.
    pub least: f64,
    /// The greatest one.
    pub greatest: f64,
    /// Steps: applications of `M^dag M`.
    pub iterations: usize,
}

/// Steps between looks at T.
const LOOK: usize = 8;

/// The ends of the spectrum of `M^dag M`, each with `beta_k |s_k| <= tolerance theta`. `start` is a vector that
/// has something of all eigenvectors: a random one; it is overwritten. Of a null vector the ends are infinity and 0.
///
/// # Errors
/// No convergence in `max_iterations` steps; a number that is not finite.
pub fn bounds(
    operator: &mut dyn Operator,
    start: &mut Spinor,
    tolerance: f64,
    max_iterations: usize,
) -> Result<Bounds, SolverError> {
    lanczos(operator, start, true, tolerance, max_iterations)
}

/// The greatest eigenvalue of `M^dag M` alone, as [`bounds`] finds it; far fewer steps.
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
        // Of no eigenvector there is neither a least nor a greatest eigenvalue.
        return Ok(Bounds { least: f64::INFINITY, greatest: 0.0, iterations: 0 });
    }
    v.scale(1.0 / norm)?;
    let mut t = Tridiagonal::default();
    let mut error = f64::INFINITY;
    while t.diagonal.len() < max_iterations {
        let iterations = t.diagonal.len();
        operator.apply(&mut middle, v, Dagger::No)?;
        operator.apply(next, &middle, Dagger::Yes)?;
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
        // The space is exhausted: what T has is exact.
        let exhausted = beta <= 1e-13 * alpha;
        let steps = t.diagonal.len();
        if exhausted || steps.is_multiple_of(LOOK) || steps == max_iterations {
            let [(least, low), (greatest, high)] = t.ends();
            error = beta * (if both { low / least } else { 0.0 }).max(high / greatest);
            if exhausted || error <= tolerance {
                return Ok(Bounds { least, greatest, iterations: t.diagonal.len() });
            }
        }
        t.beside.push(beta);
        next.scale(1.0 / beta)?;
        // v_(k-1), v_k, v_(k+1) move up by one.
        let free = std::mem::replace(&mut before, v);
        v = std::mem::replace(&mut next, free);
    }
    Err(SolverError::Spectrum { iterations: t.diagonal.len(), error, wanted: tolerance })
}

/// A symmetric tridiagonal matrix.
#[derive(Default)]
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// One shorter, or as long where the next step is known.
    beside: Vec<f64>,
}

impl Tridiagonal {
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

    /// The least eigenvalue of `sign T`: bisection on the signs of the pivots of `sign T - x`.
    fn least(&self, sign: f64) -> f64 {
        let n = self.diagonal.len();
        let radius = |i: usize| self.beside(i) + if i + 1 < n { self.beside(i + 1) } else { 0.0 };
        // Between Gershgorin's discs and the least Rayleigh quotient of a unit vector.
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

    /// |s_k| of the unit eigenvector to the least eigenvalue of `sign T`, by inverse iteration from below it, where
    /// elimination has positive pivots.
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

    /// T with 2 on the diagonal and 1 beside it: 2 - 2 cos(pi j / (n+1)), components +-sin(pi j k / (n+1)).
    #[test]
    fn the_ends_of_a_known_matrix() {
        let n = 37;
        let t = Tridiagonal { diagonal: vec![2.0; n], beside: vec![1.0; n - 1] };
        let angle = std::f64::consts::PI / (n + 1) as f64;
        let last = (2.0 / (n + 1) as f64).sqrt() * angle.sin();
        let [(least, low), (greatest, high)] = t.ends();
        assert!((least - (2.0 - 2.0 * angle.cos())).abs() < 1e-14, "{least}");
        assert!((greatest - (2.0 + 2.0 * angle.cos())).abs() < 1e-14, "{greatest}");
        assert!((low - last).abs() < 1e-8 && (high - last).abs() < 1e-8, "{low} {high} {last}");
    }

    #[test]
    fn one_by_one() {
        let t = Tridiagonal { diagonal: vec![3.0], beside: Vec::new() };
        assert_eq!(t.ends(), [(3.0, 1.0), (3.0, 1.0)]);
    }
}
