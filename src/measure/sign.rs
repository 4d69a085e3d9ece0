//! The sign of a quark's determinant, by the eigenvalues of `Q(m) = gamma_5 D(m)` next to zero along a path of masses
//! (the idea: Mohler, Schaefer, arXiv:2003.13359).
//!
//! At a mass of 8 the hermitian part of D is positive for c_sw below 8/3, so the determinant is, too. It changes its sign
//! where an odd number of eigenvalues of Q goes through zero. As `d lambda / d m = psi^dag gamma_5 psi`, an eigenvalue
//! moves by at most as much as the mass. (With an exponential clover term C(m) the derivative is `gamma_5 C (1 - ln C)`,
//! which is not longer unless an eigenvalue of ln C is above 1.27.) So with `|lambda_1| <= |lambda_2| <= ..`
//!
//! - no eigenvalue goes through zero in a step below `|lambda_1|`;
//! - in a step below `(|lambda_2| - |lambda_1|) / 2` only the first may, and it is still the least after it: its sign tells.
//!
//! `1 / lambda` are the ends of the spectrum of `Q^-1 = D^-1 gamma_5`, which a few steps of Lanczos find, each with a
//! solve. Vectors are kept orthogonal. A residual `r` of `theta` is an upper bound of its distance to an eigenvalue of
//! `Q^-1`. Lanczos sees one of two that are equal, so links must have no symmetry that makes such pairs, as unit links
//! have. Of two that are close it may miss one; that shows if it is found after the next step.

use super::observable::{Context, QuarkChoice};
use super::{MeasureError, Noise, Stop, Wanted};
use crate::field::{EVEN, ODD, Spinor};
use crate::math::eigenpairs;
use crate::quark::{Fields, Inverse, fields};
use crate::solver::SolverError;
use num_complex::Complex64;
use serde::Serialize;
use std::sync::Arc;

/// Where paths begin.
const HEAVY: f64 = 8.0;
/// The most steps of Lanczos.
const MOST: usize = 100;
/// The relative residuals of the first and of the second eigenvalue of Q^-1.
const RESIDUALS: [f64; 2] = [0.02, 0.1];

/// A mass of a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Place {
    /// kappa
    kappa: f64,
    /// The eigenvalue of gamma_5 D, `D = 4 + m0 + ..`, that is next to zero.
    least: f64,
}

/// The sign at `kappa`, and the path that leads there.
pub(super) fn sign(
    quark: &QuarkChoice,
    kappa: f64,
    context: &mut Context,
) -> Result<(i32, Vec<Place>), MeasureError> {
    let (mut sign, mut path) = (1, Vec::new());
    let target = 0.5 / kappa - 4.0;
    let mut mass = HEAVY.max(target);
    // Before the last step: its length, both eigenvalues, and whether the first one alone may have gone through zero.
    let mut before = None::<(f64, [End; 2], bool)>;
    loop {
        let wanted = Wanted { mass: Some(mass), ..quark.wanted };
        let mut inverse = context.fermions.inverse(&QuarkChoice { wanted, ..quark.clone() })?;
        let [first, second] = ends(&mut *inverse, context.noise, context.stop)?;
        if let Some((step, [one, two], is_alone)) = before {
            if first.far < one.near - step || second.far < two.near - step {
                let kappa = 0.5 / (mass + 4.0);
                let message = format!("an eigenvalue of gamma_5 D was missed on the way to kappa = {kappa}");
                return Err(MeasureError::Refused(message));
            }
            if is_alone && one.value * first.value < 0.0 {
                sign = -sign;
            }
        }
        path.push(Place { kappa: 0.5 / (mass + 4.0), least: first.value });
        if mass <= target {
            return Ok((sign, path));
        }
        let [none, alone] = [0.9 * first.near, 0.45 * (second.near - first.far)];
        let step = none.max(alone);
        if step < 1e-8 {
            let message = format!("two eigenvalues of gamma_5 D near zero at kappa = {}", 0.5 / (mass + 4.0));
            return Err(MeasureError::Refused(message));
        }
        // Not beyond the target, and on it at the end.
        let next = if mass - step < target { target } else { mass - step };
        before = Some((mass - next, [first, second], alone > none));
        mass = next;
    }
}

/// An eigenvalue of Q, and the bounds of its distance to zero.
#[derive(Clone, Copy)]
struct End {
    value: f64,
    near: f64,
    far: f64,
}

/// The two eigenvalues of Q that are next to zero.
fn ends(quark: &mut dyn Inverse, noise: Noise, stop: Stop) -> Result<[End; 2], MeasureError> {
    let domain = Arc::clone(quark.domain());
    let new = || fields(&domain, quark.kind(), 1);
    let [mut source, mut solution, mut next] = [new()?, new()?, new()?];
    noise.draw(&mut next, &[0])?;
    let (mut basis, mut t): (Vec<Fields>, Vec<[f64; 2]>) = (Vec::new(), Vec::new());
    let mut error = f64::INFINITY;
    for steps in 1..=MOST {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        let norm = dot(&next, &next)?.re.sqrt();
        if !(norm.is_finite() && norm > 0.0) {
            return Err(SolverError::NotFinite { what: "a Lanczos vector", iterations: steps }.into());
        }
        both(|p| Ok(next[p][0].scale(1.0 / norm)?))?;
        basis.push(std::mem::replace(&mut next, fields(&domain, quark.kind(), 1)?));
        let v = &basis[steps - 1];
        // i gamma_5 v
        both(|p| {
            source[p][0].set_zero()?;
            Ok(source[p][0].add_twist(1.0, &v[p][0])?)
        })?;
        quark.solve(&mut solution, &source)?;
        both(|p| Ok(next[p][0].caxpy(Complex64::new(0.0, -1.0), &solution[p][0])?))?;
        let diagonal = dot(v, &next)?.re;
        // Twice is enough.
        for u in basis.iter().chain(&basis) {
            let along = dot(u, &next)?;
            both(|p| Ok(next[p][0].caxpy(-along, &u[p][0])?))?;
        }
        let beside = dot(&next, &next)?.re.sqrt();
        t.push([diagonal, beside]);
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => t[i][0],
            1 => t[i.min(j)][1],
            _ => 0.0,
        };
        let pairs = eigenpairs((0..steps).map(|i| (0..steps).map(|j| entry(i, j)).collect()).collect());
        let [Some(first), Some(second)] = [pairs.first(), pairs.get(1)] else { continue };
        let residuals = [first, second].map(|(_, s)| beside * s[steps - 1].abs());
        let [one, two] = [first, second].map(|(theta, _)| theta.abs());
        error = (residuals[0] / one).max(RESIDUALS[0] / RESIDUALS[1] * residuals[1] / two);
        if error <= RESIDUALS[0] {
            let end = |(theta, _): &(f64, _), residual: f64| End {
                value: theta.recip(),
                near: (theta.abs() + residual).recip(),
                far: (theta.abs() - residual).recip(),
            };
            return Ok([end(first, residuals[0]), end(second, residuals[1])]);
        }
    }
    Err(SolverError::Spectrum { iterations: MOST, error, wanted: RESIDUALS[0] }.into())
}

/// On both parities.
fn both(mut work: impl FnMut(usize) -> Result<(), MeasureError>) -> Result<(), MeasureError> {
    [EVEN, ODD].into_iter().try_for_each(&mut work)
}

/// The scalar product on all sites.
fn dot(x: &Fields, y: &Fields) -> Result<Complex64, MeasureError> {
    let of = |p: usize| -> Result<Complex64, MeasureError> { Ok(Spinor::dot(&x[p][0], &y[p][0])?) };
    Ok(of(EVEN)? + of(ODD)?)
}
