//! Conjugate gradients for `(M^dag M + s) x = b`, s >= 0 (Hestenes, Stiefel 1952), with reliable updates: the iteration
//! runs in its own precision, and whenever its residual has fallen by a factor, the solution is added
//! up and the residual computed anew in double (Sleijpen, van der Vorst, Computing 56 (1996) 141;
//! Clark et al., arXiv:0911.3191). Every solve ends with the true residual, checked.

use super::SolverError;
use crate::device::Precision;
use crate::field::{Domain, FieldError, Spinor};
use crate::operator::Operator;
use std::sync::Arc;
use std::time::Instant;

/// What a solve must reach.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// `|b - M^dag M x| / |b|`
    pub residual: f64,
    /// More are an error.
    pub max_iterations: usize,
}

/// What a solve did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    /// Iterations: applications of `M^dag M`, without those of the updates.
    pub iterations: usize,
    /// Times the residual was computed anew.
    pub updates: usize,
    /// True relative residual at the end.
    pub residual: f64,
    /// Wall time.
    pub seconds: f64,
}

/// The residual of the iteration falls by this factor between reliable updates in single.
const UPDATE_FACTOR: f64 = 1e-3;

/// Workspace of solves.
pub struct Cg {
    residual: Spinor,
    product: Spinor,
    middle: Spinor,
    inner: Option<Inner>,
    direction: Spinor,
}

/// The iteration's own vectors where it runs in single.
struct Inner {
    x: Spinor,
    residual: Spinor,
    product: Spinor,
    middle: Spinor,
}

impl Cg {
    /// Room for iterations in `precision`.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        let double = || Spinor::new(domain, Precision::Double);
        let own = || Spinor::new(domain, precision);
        let inner = match precision {
            Precision::Double => None,
            Precision::Single => Some(Inner { x: own()?, residual: own()?, product: own()?, middle: own()? }),
        };
        Ok(Self { residual: double()?, product: double()?, middle: double()?, inner, direction: own()? })
    }

    /// Solves `M^dag M x = b` from the guess in `x`. `sloppy` is the operator in the iteration's precision;
    /// `None` where that is double.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    pub fn solve(
        &mut self,
        operator: &mut dyn Operator,
        sloppy: Option<&mut dyn Operator>,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        self.solve_shifted(operator, sloppy, x, b, 0.0, params)
    }

    /// Solves `(M^dag M + shift) x = b`, as [`Cg::solve`] does without a shift.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    pub fn solve_shifted(
        &mut self,
        operator: &mut dyn Operator,
        mut sloppy: Option<&mut dyn Operator>,
        x: &mut Spinor,
        b: &Spinor,
        shift: f64,
        params: Params,
    ) -> Result<Info, SolverError> {
        let start = Instant::now();
        let norm_b = b.norm2()?.value();
        let mut info = Info::default();
        if norm_b == 0.0 {
            x.set_zero()?;
            return Ok(info);
        }
        let target = params.residual * params.residual * norm_b;
        let mut rr = self.true_residual(operator, x, b, shift)?;
        let mut fresh = true;
        loop {
            info.residual = (rr / norm_b).sqrt();
            if !rr.is_finite() {
                return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
            }
            if rr <= target {
                info.seconds = start.elapsed().as_secs_f64();
                return Ok(info);
            }
            if info.iterations >= params.max_iterations {
                return Err(SolverError::NotConverged {
                    iterations: info.iterations,
                    residual: info.residual,
                    wanted: params.residual,
                });
            }
            rr = match (&mut self.inner, sloppy.as_deref_mut()) {
                (Some(inner), Some(sloppy)) => {
                    inner.residual.copy_from(&self.residual)?;
                    inner.x.set_zero()?;
                    let stop = target.max(rr * UPDATE_FACTOR * UPDATE_FACTOR);
                    let vectors = (&mut inner.x, &mut inner.residual, &mut inner.product, &mut inner.middle);
                    iterate(
                        sloppy,
                        vectors,
                        &mut self.direction,
                        rr,
                        stop,
                        shift,
                        params.max_iterations,
                        fresh,
                        &mut info,
                    )?;
                    x.add(&inner.x)?;
                    let renewed = self.true_residual(operator, x, b, shift)?;
                    // The direction goes on, unless the iteration lost its way.
                    fresh = renewed > rr;
                    renewed
                }
                _ => {
                    let vectors = (&mut *x, &mut self.residual, &mut self.product, &mut self.middle);
                    iterate(
                        operator,
                        vectors,
                        &mut self.direction,
                        rr,
                        target,
                        shift,
                        params.max_iterations,
                        true,
                        &mut info,
                    )?;
                    self.true_residual(operator, x, b, shift)?
                }
            };
            info.updates += 1;
        }
    }

    /// `residual = b - (M^dag M + shift) x`; returns its square.
    fn true_residual(
        &mut self,
        operator: &mut dyn Operator,
        x: &Spinor,
        b: &Spinor,
        shift: f64,
    ) -> Result<f64, FieldError> {
        operator.apply(&mut self.middle, x, false)?;
        operator.apply(&mut self.product, &self.middle, true)?;
        self.residual.copy_from(b)?;
        self.residual.axpy(-1.0, &self.product)?;
        if shift != 0.0 {
            self.residual.axpy(-shift, x)?;
        }
        Ok(self.residual.norm2()?.value())
    }
}

/// Iterates until `|r|^2 <= stop`. With `fresh` the first direction is the residual; else the last
/// direction goes on with the ratio of residuals that the update left.
#[expect(clippy::too_many_arguments, reason = "the state of the iteration, each once")]
fn iterate(
    operator: &mut dyn Operator,
    (x, r, q, middle): (&mut Spinor, &mut Spinor, &mut Spinor, &mut Spinor),
    p: &mut Spinor,
    mut rr: f64,
    stop: f64,
    shift: f64,
    max_iterations: usize,
    fresh: bool,
    info: &mut Info,
) -> Result<(), SolverError> {
    if fresh {
        p.copy_from(r)?;
    } else {
        // Keep p conjugate: take its part along r out, then add r (QUDA's restart after an update).
        let overlap = r.real_dot(p)?.value();
        p.axpy(-overlap / rr, r)?;
        p.xpay(r, 1.0)?;
    }
    while rr > stop && info.iterations < max_iterations {
        operator.apply(middle, p, false)?;
        operator.apply(q, middle, true)?;
        let mut curvature = middle.norm2()?.value();
        if shift != 0.0 {
            q.axpy(shift, p)?;
            curvature += shift * p.norm2()?.value();
        }
        let alpha = rr / curvature;
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(SolverError::NotFinite { what: "a step", iterations: info.iterations });
        }
        let new = x.cg_step(alpha, p, r, q)?;
        if !new.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        p.xpay(r, new / rr)?;
        rr = new;
        info.iterations += 1;
    }
    Ok(())
}
