//! Conjugate gradients for `(M^dag M + s) x = b`, s >= 0 (Hestenes, Stiefel 1952), with reliable updates: the iteration
//! runs in its own precision, and whenever its residual has fallen by a factor, the solution is added
//! up and the residual computed anew in double (Sleijpen, van der Vorst, Computing 56 (1996) 141;
//! Clark et al., arXiv:0911.3191).

use super::{Info, Params, SolverError, Trust};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::operator::Operator;
use std::sync::Arc;
use std::time::Instant;

/// Workspace of solves.
pub struct Cg {
    delta: f64,
    residual: Spinor,
    product: Spinor,
    middle: Spinor,
    direction: Spinor,
    inner: Option<Inner>,
}

/// The iteration's own vectors where it runs in a lower precision.
struct Inner {
    x: Spinor,
    residual: Spinor,
    product: Spinor,
    middle: Spinor,
    direction: Spinor,
}

/// The state of an iteration, each once.
struct Vectors<'a> {
    x: &'a mut Spinor,
    r: &'a mut Spinor,
    q: &'a mut Spinor,
    middle: &'a mut Spinor,
    p: &'a mut Spinor,
    /// Of `M^dag M + shift`.
    shift: f64,
}

impl Cg {
    /// Room for iterations on fields of one kind in `precision`, whose residual falls by `delta` between updates.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        delta: f64,
    ) -> Result<Self, FieldError> {
        let double = || Spinor::of(domain, kind, Precision::Double, 1);
        let own = || Spinor::of(domain, kind, precision, 1);
        let inner = (precision != Precision::Double)
            .then(|| {
                Ok::<_, FieldError>(Inner {
                    x: Spinor::of(domain, kind, precision.of_solution(), 1)?,
                    residual: own()?,
                    product: own()?,
                    middle: own()?,
                    direction: own()?,
                })
            })
            .transpose()?;
        let [residual, product, middle, direction] = [double()?, double()?, double()?, double()?];
        Ok(Self { delta, residual, product, middle, direction, inner })
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
        let waited = operator.domain().communication_seconds();
        let mut info = Info::default();
        let norm_b = b.norm2()?.value();
        if norm_b == 0.0 {
            x.set_zero()?;
            return Ok(info);
        }
        let target = params.residual * params.residual * norm_b;
        let mut rr = self.true_residual(operator, x, b, shift, &mut info)?;
        let (mut fresh, mut trust) = (true, Trust::Reliable);
        loop {
            info.residual = (rr / norm_b).sqrt();
            if !rr.is_finite() {
                return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
            }
            if rr <= target {
                info.seconds = start.elapsed().as_secs_f64();
                info.communication_seconds = operator.domain().communication_seconds() - waited;
                return Ok(info);
            }
            if info.iterations >= params.max_iterations {
                return Err(info.failed(params.residual));
            }
            let before = rr;
            match (&mut self.inner, sloppy.as_deref_mut()) {
                (Some(inner), Some(sloppy)) if trust < Trust::Double => {
                    inner.residual.copy_from(&self.residual)?;
                    inner.x.set_zero()?;
                    let stop = target.max(rr * self.delta * self.delta);
                    let vectors = Vectors {
                        x: &mut inner.x,
                        r: &mut inner.residual,
                        q: &mut inner.product,
                        middle: &mut inner.middle,
                        p: &mut inner.direction,
                        shift,
                    };
                    match iterate(sloppy, vectors, rr, stop, params.max_iterations, fresh, &mut info) {
                        Ok(()) => {
                            x.add(&inner.x)?;
                            rr = self.true_residual(operator, x, b, shift, &mut info)?;
                            trust = trust.after(before, rr, target, &mut info);
                        }
                        // What this precision cannot, the next one may.
                        Err(SolverError::NotFinite { .. }) => trust = trust.less(&mut info),
                        Err(error) => return Err(error),
                    }
                    // The direction goes on, unless the iteration lost its way.
                    fresh = trust > Trust::Reliable || rr > before;
                }
                _ => {
                    let vectors = Vectors {
                        x: &mut *x,
                        r: &mut self.residual,
                        q: &mut self.product,
                        middle: &mut self.middle,
                        p: &mut self.direction,
                        shift,
                    };
                    iterate(operator, vectors, rr, target, params.max_iterations, true, &mut info)?;
                    rr = self.true_residual(operator, x, b, shift, &mut info)?;
                }
            }
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
        info: &mut Info,
    ) -> Result<f64, FieldError> {
        info.apply(operator, &mut self.middle, x, false)?;
        info.apply_adjoint_plus(operator, &mut self.product, &self.middle, shift, x)?;
        self.residual.copy_from(b)?;
        self.residual.axpy_norm2(-1.0, &self.product)
    }
}

/// `|M p|^2 + shift |p|^2`, `M p` given.
pub(super) fn curvature(image: &Spinor, shift: f64, p: &Spinor) -> Result<f64, FieldError> {
    if shift == 0.0 {
        return Ok(image.norm2()?.value());
    }
    let (image, p) = image.two_norms(p)?;
    Ok(image + shift * p)
}

/// Iterates until `|r|^2 <= stop`. With `fresh` the first direction is the residual; else the last
/// direction goes on with the ratio of residuals that the update left.
fn iterate(
    operator: &mut dyn Operator,
    Vectors { x, r, q, middle, p, shift }: Vectors,
    mut rr: f64,
    stop: f64,
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
        info.apply(operator, middle, p, false)?;
        info.apply_adjoint_plus(operator, q, middle, shift, p)?;
        let curvature = curvature(middle, shift, p)?;
        let alpha = rr / curvature;
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(SolverError::NotFinite { what: "a step", iterations: info.iterations });
        }
        let new = r.axpy_norm2(-alpha, q)?;
        if !new.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        x.cg_step_each(&[alpha], p, r, &[new / rr])?;
        rr = new;
        info.iterations += 1;
    }
    Ok(())
}
