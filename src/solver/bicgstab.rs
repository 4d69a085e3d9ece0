//! Stabilised biconjugate gradients for `M x = b` or `M^dag x = b` (van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992)
//! 631), with reliable updates as in `cg`.

use super::{Info, Params, SolverError, Trust};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Spinor};
use crate::operator::Operator;
use num_complex::Complex64;
use std::sync::Arc;
use std::time::Instant;

/// Workspace of solves.
pub struct BiCgStab {
    delta: f64,
    residual: Spinor,
    product: Spinor,
    double: Option<Vectors>,
    own: Vectors,
}

/// The iteration's vectors.
struct Vectors {
    x: Spinor,
    r: Spinor,
    shadow: Spinor,
    p: Spinor,
    v: Spinor,
    t: Spinor,
    rho: Complex64,
}

impl Vectors {
    fn new(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        let own = || Spinor::new(domain, precision);
        Ok(Self {
            x: own()?,
            r: own()?,
            shadow: own()?,
            p: own()?,
            v: own()?,
            t: own()?,
            rho: Complex64::default(),
        })
    }
}

impl BiCgStab {
    /// Room for iterations in `precision`, whose residual falls by `delta` between updates.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, precision: Precision, delta: f64) -> Result<Self, FieldError> {
        Ok(Self {
            delta,
            residual: Spinor::new(domain, Precision::Double)?,
            product: Spinor::new(domain, Precision::Double)?,
            double: None,
            own: Vectors::new(domain, precision)?,
        })
    }

    /// Solves from the guess in `x`. `sloppy` is the operator in the iteration's precision; `None` where
    /// that is double.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    pub fn solve(
        &mut self,
        operator: &mut dyn Operator,
        mut sloppy: Option<&mut dyn Operator>,
        dagger: bool,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        let start = Instant::now();
        let waited = operator.domain().communication_seconds();
        let domain = Arc::clone(operator.domain());
        let mut info = Info::default();
        let norm_b = b.norm2()?.value();
        if norm_b == 0.0 {
            x.set_zero()?;
            return Ok(info);
        }
        let target = params.residual * params.residual * norm_b;
        let mut trust = if sloppy.is_some() { Trust::Reliable } else { Trust::Double };
        let mut fresh = true;
        let mut rr = self.true_residual(operator, dagger, x, b, &mut info)?;
        loop {
            info.residual = (rr / norm_b).sqrt();
            if !rr.is_finite() {
                return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
            }
            if rr <= target {
                info.seconds = start.elapsed().as_secs_f64();
                info.communication_seconds = domain.communication_seconds() - waited;
                return Ok(info);
            }
            if info.iterations >= params.max_iterations {
                return Err(info.failed(params.residual));
            }
            let (before, trusted) = (rr, trust);
            let (iterated, vectors): (&mut dyn Operator, _) = match sloppy.as_deref_mut() {
                Some(sloppy) if trust < Trust::Double => (sloppy, &mut self.own),
                None => (&mut *operator, &mut self.own),
                _ => {
                    // The fallback's own vectors, made when they are needed first.
                    if self.double.is_none() {
                        self.double = Some(Vectors::new(&domain, Precision::Double)?);
                    }
                    (&mut *operator, self.double.as_mut().expect("just made"))
                }
            };
            vectors.r.copy_from(&self.residual)?;
            vectors.x.set_zero()?;
            let stop = target.max(rr * self.delta * self.delta);
            let done = iterate(iterated, dagger, vectors, rr, stop, params.max_iterations, fresh, &mut info);
            let broke_down = matches!(done, Ok(false));
            match done {
                Ok(_) => {
                    x.add(&vectors.x)?;
                    rr = self.true_residual(operator, dagger, x, b, &mut info)?;
                    trust = trust.after(before, rr, target, &mut info);
                }
                // What this precision cannot, the next one may.
                Err(SolverError::NotFinite { .. }) if trust < Trust::Double => trust = trust.less(&mut info),
                Err(error) => return Err(error),
            }
            // Shadow residual and direction go on, unless the iteration lost its way or its precision.
            fresh = broke_down || trust == Trust::DefectCorrection || trust != trusted || rr > before;
            info.updates += 1;
        }
    }

    /// `residual = b - M x`; returns its square.
    fn true_residual(
        &mut self,
        operator: &mut dyn Operator,
        dagger: bool,
        x: &Spinor,
        b: &Spinor,
        info: &mut Info,
    ) -> Result<f64, FieldError> {
        info.apply(operator, &mut self.product, x, dagger)?;
        self.residual.copy_from(b)?;
        self.residual.axpy_norm2(-1.0, &self.product)
    }
}

/// Iterates until `|r|^2 <= stop`, or answers `false` at a breakdown, after which the caller starts anew. Without
/// `fresh`, shadow residual and direction are those of before the update.
#[expect(clippy::too_many_arguments, reason = "the state of the iteration, each once")]
fn iterate(
    operator: &mut dyn Operator,
    dagger: bool,
    Vectors { x, r, shadow, p, v, t, rho }: &mut Vectors,
    mut rr: f64,
    stop: f64,
    max_iterations: usize,
    fresh: bool,
    info: &mut Info,
) -> Result<bool, SolverError> {
    if fresh {
        shadow.copy_from(r)?;
        p.copy_from(r)?;
        *rho = Complex64::new(rr, 0.0);
    }
    while rr > stop && info.iterations < max_iterations {
        info.iterations += 1;
        info.apply(operator, v, p, dagger)?;
        let alpha = *rho / shadow.dot(v)?;
        if !alpha.is_finite() {
            return Ok(false);
        }
        r.caxpy(-alpha, v)?;
        info.apply(operator, t, r, dagger)?;
        let (overlap, tt) = t.dot_norm2(r)?;
        let omega = overlap / tt;
        if !omega.is_finite() {
            x.caxpy(alpha, p)?;
            return Ok(false);
        }
        let (new_rho, new) = x.bicgstab_step((alpha, p), omega, r, t, shadow)?;
        if !new.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        let beta = new_rho / *rho * (alpha / omega);
        *rho = new_rho;
        rr = new;
        if !beta.is_finite() {
            return Ok(false);
        }
        p.bicgstab_direction(r, beta, omega, v)?;
    }
    Ok(true)
}
