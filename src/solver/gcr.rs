//! GCR-DD: flexible generalised conjugate residuals for `M x = b` or `M^dag x = b`, preconditioned by additive Schwarz
//! (Babich, Clark, Joo, Shi, Brower, Gottlieb, "Scaling lattice QCD beyond 100 GPUs", SC11, Algorithm 1).
//!
//! Three precisions: the Krylov space and the preconditioner in their own, low ones; restarts, where the
//! solution is added up (the implicit update) and the residual computed anew, in the outer one. Where that is
//! single, it is itself corrected in double.

use super::schwarz::Schwarz;
use super::{Info, Operators, Params, SolverError, Trust, timed};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Spinor};
use crate::operator::Blocks;
use num_complex::Complex64;
use std::sync::Arc;
use std::time::Instant;

/// How GCR-DD runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrParams {
    /// Of restarts, the Krylov space, the preconditioner: none higher than the one before.
    pub precisions: [Precision; 3],
    /// The greatest size of the Krylov space.
    pub k_max: usize,
    /// A restart when the residual has fallen by this.
    pub delta: f64,
    /// Steps of minimal residuals of the preconditioner.
    pub n_mr: usize,
}

/// What single precision reaches below the residual from which it starts.
const SINGLE_REACH: f64 = 1e-5;

/// Workspace of solves.
pub struct Gcr {
    params: GcrParams,
    schwarz: Schwarz,
    residual: Spinor,
    product: Spinor,
    single: Option<[Spinor; 3]>,
    space: Space,
}

/// The Krylov space: p, z = M p made orthogonal, the residual, and the solution's change.
struct Space {
    p: Vec<Spinor>,
    z: Vec<Spinor>,
    residual: Spinor,
    change: Spinor,
}

/// What a cycle takes from its caller.
struct Cycle<'a, 'b, 'c> {
    operators: &'a mut Operators<'b>,
    dagger: bool,
    stop: f64,
    max_iterations: usize,
    info: &'c mut Info,
}

impl Gcr {
    /// Room for the Krylov space.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, params: GcrParams, blocks: &Blocks) -> Result<Self, FieldError> {
        let [outer, krylov, inner] = params.precisions;
        let spinor = |precision| Spinor::new(domain, precision);
        let several = || (0..params.k_max).map(|_| spinor(krylov)).collect::<Result<Vec<_>, _>>();
        let single = if outer == Precision::Double {
            None
        } else {
            Some([spinor(outer)?, spinor(outer)?, spinor(outer)?])
        };
        Ok(Self {
            params,
            schwarz: Schwarz::new(domain, inner, params.n_mr, blocks)?,
            residual: spinor(Precision::Double)?,
            product: spinor(Precision::Double)?,
            single,
            space: Space { p: several()?, z: several()?, residual: spinor(krylov)?, change: spinor(krylov)? },
        })
    }

    /// Solves from the guess in `x`.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    pub fn solve(
        &mut self,
        operators: &mut Operators,
        dagger: bool,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        let start = Instant::now();
        let domain = Arc::clone(operators.double.domain());
        let waited = domain.communication_seconds();
        let mut info = Info::default();
        let norm_b = b.norm2()?.value();
        if norm_b == 0.0 {
            x.set_zero()?;
            return Ok(info);
        }
        let target = params.residual * params.residual * norm_b;
        let mut trust = Trust::Reliable;
        // Residuals' squares: the last true one, and what the cycle since then believes to have reached.
        let mut last: Option<(f64, f64)> = None;
        loop {
            info.apply(operators.at(Precision::Double), &mut self.product, x, dagger)?;
            self.residual.copy_from(b)?;
            let rr = self.residual.axpy_norm2(-1.0, &self.product)?;
            info.residual = (rr / norm_b).sqrt();
            if !rr.is_finite() {
                return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
            }
            if rr <= target {
                info.seconds = start.elapsed().as_secs_f64();
                info.communication_seconds = domain.communication_seconds() - waited;
                return Ok(info);
            }
            if let Some((before, claimed)) = last {
                // A cycle ends after k_max directions too: it failed if it did not reach what it believes, or nothing.
                let reached = if claimed.is_nan() { 0.0 } else { (4.0 * claimed).min(0.999 * before) };
                trust = trust.after(before, rr, target.max(reached), &mut info);
            }
            if info.iterations >= params.max_iterations || trust == Trust::Double {
                return Err(info.failed(params.residual));
            }
            let mut cycle = Cycle {
                operators: &mut *operators,
                dagger,
                stop: target,
                max_iterations: params.max_iterations,
                info: &mut info,
            };
            let claimed = if let Some([change, r, product]) = &mut self.single {
                r.copy_from(&self.residual)?;
                change.set_zero()?;
                cycle.stop = target.max(rr * SINGLE_REACH * SINGLE_REACH);
                let mut now = rr;
                while now > cycle.stop && cycle.info.iterations < cycle.max_iterations {
                    let claimed = self.space.cycle(&mut self.schwarz, &self.params, r, now, &mut cycle)?;
                    change.add(&self.space.change)?;
                    cycle.info.apply(cycle.operators.at(Precision::Single), product, change, dagger)?;
                    r.copy_from(&self.residual)?;
                    let new = r.axpy_norm2(-1.0, product)?;
                    cycle.info.updates += 1;
                    let fell = new <= Trust::LEAST * now || new <= (4.0 * claimed).min(0.999 * now);
                    now = new;
                    if !fell {
                        break;
                    }
                }
                x.add(change)?;
                now
            } else {
                let claimed =
                    self.space.cycle(&mut self.schwarz, &self.params, &self.residual, rr, &mut cycle)?;
                x.add(&self.space.change)?;
                claimed
            };
            last = Some((rr, claimed));
            info.updates += 1;
        }
    }
}

impl Space {
    /// One cycle between restarts: `change` becomes the correction for the residual `r` of square `rr`. Returns the
    /// residual's square after it, as low precision has it.
    fn cycle(
        &mut self,
        schwarz: &mut Schwarz,
        params: &GcrParams,
        r: &Spinor,
        rr: f64,
        cycle: &mut Cycle,
    ) -> Result<f64, SolverError> {
        let [_, krylov, inner] = params.precisions;
        let stop = cycle.stop.max(params.delta * params.delta * rr);
        let mut beta: Vec<Vec<Complex64>> = Vec::new();
        let (mut alpha, mut gamma2): (Vec<Complex64>, Vec<f64>) = (Vec::new(), Vec::new());
        self.residual.copy_from(r)?;
        let mut now = rr;
        while alpha.len() < params.k_max && now > stop && cycle.info.iterations < cycle.max_iterations {
            let k = alpha.len();
            let domain = Arc::clone(self.residual.domain());
            let operator =
                cycle.operators.at(inner).schwarz().expect("the preconditioner's operator has blocks");
            let p = &mut self.p[k];
            cycle.info.preconditioner_seconds +=
                timed(&domain, || schwarz.apply(operator, p, &self.residual, cycle.dagger))?;
            let (past, rest) = self.z.split_at_mut(k);
            let z = &mut rest[0];
            cycle.info.apply(cycle.operators.at(krylov), z, &self.p[k], cycle.dagger)?;
            // Modified Gram and Schmidt; a step's sum needs the vector that the step before made.
            let mut row = Vec::with_capacity(k);
            let mut overlap = match past.first() {
                Some(first) => first.dot(z)?,
                None => Complex64::default(),
            };
            for i in 0..k {
                let b = overlap / gamma2[i];
                overlap = match past.get(i + 1) {
                    Some(next) => z.caxpy_dot(-b, &past[i], next)?,
                    None => {
                        z.caxpy(-b, &past[i])?;
                        Complex64::default()
                    }
                };
                row.push(b);
            }
            let (overlap, norm) = z.dot_norm2(&self.residual)?;
            let a = overlap / norm;
            cycle.info.iterations += 1;
            if !a.is_finite() {
                break;
            }
            now = self.residual.caxpy_norm2(-a, z)?;
            beta.push(row);
            alpha.push(a);
            gamma2.push(norm);
        }
        // The implicit update: the solution's change from the p, whose images are not orthogonal.
        self.change.set_zero()?;
        for l in (0..alpha.len()).rev() {
            let known: Complex64 = (l + 1..alpha.len()).map(|i| beta[i][l] * alpha[i]).sum();
            alpha[l] -= known;
        }
        for (chi, p) in alpha.iter().zip(&self.p) {
            self.change.caxpy(*chi, p)?;
        }
        Ok(now)
    }
}
