//! Conjugate gradients for `(M^dag M + s) x_n = b_n`, several right-hand sides at once: each has its own coefficients,
//! and all share the links' loads. One that has converged leaves; the others go on. In mixed precision with reliable
//! updates as in [`Cg`](super::Cg), for all that are left at once.

use super::{Info, Params, SolverError, Trust};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::operator::Operator;
use std::sync::Arc;
use std::time::Instant;

/// What a solve did.
#[derive(Clone, Debug, Default)]
pub struct BlockInfo {
    /// All of it. Iterations and applications are those of the block, however many right-hand sides it had then.
    pub total: Info,
    /// Iterations that each right-hand side took part in.
    pub iterations: Vec<usize>,
    /// True relative residual of each at the end.
    pub residuals: Vec<f64>,
}

/// Workspace of solves.
pub struct BlockCg {
    domain: Arc<Domain>,
    kind: Kind,
    precision: Precision,
    delta: f64,
}

/// The vectors of an iteration, of which the first few are active.
struct Vectors {
    x: Spinor,
    r: Spinor,
    q: Spinor,
    middle: Spinor,
    p: Spinor,
    /// Room to exchange two fields, and two solutions.
    spare: [Spinor; 2],
    spare_x: [Spinor; 2],
}

/// One right-hand side.
#[derive(Clone, Copy)]
struct Side {
    /// Where it stands in the caller's list.
    index: usize,
    /// |b|^2
    norm: f64,
    /// |r|^2 of the iteration.
    rr: f64,
    /// The same computed anew, last time.
    truth: f64,
    /// The iteration ends for it here.
    stop: f64,
}

impl Vectors {
    fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        fields: usize,
    ) -> Result<Self, FieldError> {
        let several = || Spinor::of(domain, kind, precision, fields);
        let spare = || Spinor::of(domain, kind, precision, 1);
        let spare_x = || Spinor::of(domain, kind, precision.of_solution(), 1);
        Ok(Self {
            x: Spinor::of(domain, kind, precision.of_solution(), fields)?,
            r: several()?,
            q: several()?,
            middle: several()?,
            p: several()?,
            spare: [spare()?, spare()?],
            spare_x: [spare_x()?, spare_x()?],
        })
    }

    /// Exchanges the places of two fields.
    fn swap(&mut self, i: usize, j: usize) -> Result<(), FieldError> {
        let vectors = [(&mut self.r, 0), (&mut self.p, 0), (&mut self.x, 1)];
        let spares = [&mut self.spare, &mut self.spare_x];
        for (vector, spare) in vectors {
            let [one, other] = &mut *spares[spare];
            vector.field(i, one)?;
            vector.field(j, other)?;
            vector.set_field(i, other)?;
            vector.set_field(j, one)?;
        }
        Ok(())
    }

    fn set_active(&mut self, fields: usize) {
        for vector in [&mut self.x, &mut self.r, &mut self.q, &mut self.middle, &mut self.p] {
            vector.set_active(fields);
        }
    }
}

impl BlockCg {
    /// For iterations on fields of one kind in `precision`, whose residuals fall by `delta` between updates.
    pub fn new(domain: &Arc<Domain>, kind: Kind, precision: Precision, delta: f64) -> Self {
        Self { domain: Arc::clone(domain), kind, precision, delta }
    }

    /// Solves from the guesses in `x`. `sloppy` is the operator in the iteration's precision, `None` where that is
    /// double. Both take as many fields as there are right-hand sides.
    ///
    /// # Errors
    /// No convergence of one of them, or a number that is not finite.
    ///
    /// # Panics
    /// There are not as many solutions as right-hand sides.
    pub fn solve(
        &mut self,
        operator: &mut dyn Operator,
        mut sloppy: Option<&mut dyn Operator>,
        x: &mut [Spinor],
        b: &[Spinor],
        shift: f64,
        params: Params,
    ) -> Result<BlockInfo, SolverError> {
        assert_eq!(x.len(), b.len(), "a solution for each right-hand side");
        let start = Instant::now();
        let waited = operator.domain().communication_seconds();
        let count = b.len();
        let mut info =
            BlockInfo { total: Info::default(), iterations: vec![0; count], residuals: vec![0.0; count] };
        let mut outer = Vectors::new(&self.domain, self.kind, Precision::Double, count)?;
        let mut inner = match sloppy {
            Some(_) => Some(Vectors::new(&self.domain, self.kind, self.precision, count)?),
            None => None,
        };
        let mut sides = Vec::with_capacity(count);
        for (index, b) in b.iter().enumerate() {
            let norm = b.norm2()?.value();
            if norm == 0.0 {
                x[index].set_zero()?;
            } else {
                sides.push(Side { index, norm, rr: f64::INFINITY, truth: f64::INFINITY, stop: 0.0 });
            }
        }
        // The directions of the iteration belong to these right-hand sides, in this order.
        let (mut trust, mut known) = (Trust::Reliable, Vec::new());
        loop {
            let before: Vec<f64> = sides.iter().map(|side| side.truth).collect();
            residuals(operator, &mut outer, &mut sides, x, b, shift, &mut info.total)?;
            let target = |side: &Side| params.residual * params.residual * side.norm;
            let lost = sides.iter().zip(&before).any(|(side, before)| {
                before.is_finite() && side.rr > target(side).max(Trust::LEAST * before)
            });
            if lost && inner.is_some() && trust < Trust::Double {
                trust = trust.less(&mut info.total);
            }
            for side in &sides {
                if !side.rr.is_finite() {
                    let iterations = info.total.iterations;
                    return Err(SolverError::NotFinite { what: "a residual", iterations });
                }
                info.residuals[side.index] = (side.rr / side.norm).sqrt();
            }
            info.total.residual = info.residuals.iter().fold(0.0, |m: f64, r| m.max(*r));
            // What has converged leaves; residuals of the others close the ranks.
            for at in
                (0..sides.len()).rev().filter(|&at| sides[at].rr <= target(&sides[at])).collect::<Vec<_>>()
            {
                let last = sides.len() - 1;
                if at != last {
                    outer.swap(at, last)?;
                    if let Some(inner) = &mut inner {
                        inner.swap(at, last)?;
                    }
                }
                sides.swap_remove(at);
                if at < known.len() {
                    known.swap_remove(at);
                }
            }
            if sides.is_empty() {
                info.total.seconds = start.elapsed().as_secs_f64();
                info.total.communication_seconds = operator.domain().communication_seconds() - waited;
                return Ok(info);
            }
            if info.total.iterations >= params.max_iterations {
                return Err(info.total.failed(params.residual));
            }
            outer.set_active(sides.len());
            let order: Vec<usize> = sides.iter().map(|side| side.index).collect();
            let mut work = sides.clone();
            let sloppy = sloppy.as_deref_mut().filter(|_| trust < Trust::Double);
            let done = match (&mut inner, sloppy) {
                (Some(inner), Some(sloppy)) => {
                    inner.set_active(sides.len());
                    for (at, side) in work.iter_mut().enumerate() {
                        side.stop = target(side).max(side.rr * self.delta * self.delta);
                        outer.r.field(at, &mut outer.spare[0])?;
                        inner.spare[0].copy_from(&outer.spare[0])?;
                        inner.r.set_field(at, &inner.spare[0])?;
                    }
                    inner.x.set_zero()?;
                    let fresh = trust > Trust::Reliable || known != order;
                    iterate(sloppy, inner, &mut work, shift, params.max_iterations, fresh, &mut info)
                }
                _ => {
                    work.iter_mut().for_each(|side| side.stop = target(side));
                    outer.x.set_zero()?;
                    iterate(operator, &mut outer, &mut work, shift, params.max_iterations, true, &mut info)
                }
            };
            match done {
                Ok(()) => {
                    let found = match &mut inner {
                        Some(inner) if trust < Trust::Double => inner,
                        _ => &mut outer,
                    };
                    found.set_active(work.len());
                    for (at, side) in work.iter().enumerate() {
                        found.x.field(at, &mut found.spare_x[0])?;
                        x[side.index].add(&found.spare_x[0])?;
                    }
                    known = work.iter().map(|side| side.index).collect();
                    // Residuals come in the order in which the directions stand.
                    sides = work;
                }
                // What this precision cannot, the next one may.
                Err(SolverError::NotFinite { .. }) if trust < Trust::Double && inner.is_some() => {
                    trust = trust.less(&mut info.total);
                    known.clear();
                    sides.iter_mut().for_each(|side| side.truth = f64::INFINITY);
                }
                Err(error) => return Err(error),
            }
            info.total.updates += 1;
        }
    }
}

/// `r_n = b_n - (M^dag M + shift) x_n` in double, and the squares.
fn residuals(
    operator: &mut dyn Operator,
    outer: &mut Vectors,
    sides: &mut [Side],
    x: &[Spinor],
    b: &[Spinor],
    shift: f64,
    info: &mut Info,
) -> Result<(), FieldError> {
    if sides.is_empty() {
        return Ok(());
    }
    outer.set_active(sides.len());
    for (at, side) in sides.iter().enumerate() {
        outer.x.set_field(at, &x[side.index])?;
        outer.r.set_field(at, &b[side.index])?;
    }
    info.apply(operator, &mut outer.middle, &outer.x, false)?;
    info.apply_adjoint_plus(operator, &mut outer.q, &outer.middle, shift, &outer.x)?;
    outer.r.axpy_each(&vec![-1.0; sides.len()], &outer.q)?;
    let squares = outer.r.dot_each(&outer.r)?;
    sides.iter_mut().zip(squares).for_each(|(side, square)| (side.rr, side.truth) = (square, square));
    Ok(())
}

/// Iterates until each `|r_n|^2` is at its stop; on return all are in `vectors` again, in the order of `sides`. With
/// `fresh` the first directions are the residuals; else the last ones go on with the residuals that the update left.
fn iterate(
    operator: &mut dyn Operator,
    vectors: &mut Vectors,
    sides: &mut [Side],
    shift: f64,
    max_iterations: usize,
    fresh: bool,
    info: &mut BlockInfo,
) -> Result<(), SolverError> {
    let all = sides.len();
    if fresh {
        vectors.p.copy_each(&vectors.r)?;
    } else {
        let overlaps = vectors.r.dot_each(&vectors.p)?;
        let back: Vec<f64> = overlaps.iter().zip(&*sides).map(|(overlap, side)| -overlap / side.rr).collect();
        vectors.p.axpy_each(&back, &vectors.r)?;
        vectors.p.xpay_each(&vectors.r, &vec![1.0; all])?;
    }
    let mut active = all;
    while info.total.iterations < max_iterations {
        // Those that are done go behind the others.
        let mut at = 0;
        while at < active {
            if sides[at].rr > sides[at].stop {
                at += 1;
                continue;
            }
            active -= 1;
            if at != active {
                vectors.swap(at, active)?;
                sides.swap(at, active);
            }
        }
        vectors.set_active(active.max(1));
        if active == 0 {
            break;
        }
        let Vectors { x, r, q, middle, p, .. } = vectors;
        info.total.apply(operator, middle, p, false)?;
        info.total.apply_adjoint_plus(operator, q, middle, shift, p)?;
        let mut curvature = middle.dot_each(middle)?;
        if shift != 0.0 {
            let squares = p.dot_each(p)?;
            curvature.iter_mut().zip(squares).for_each(|(c, square)| *c += shift * square);
        }
        let steps: Vec<f64> = sides.iter().zip(&curvature).map(|(side, c)| side.rr / c).collect();
        if steps.iter().any(|step| !(step.is_finite() && *step > 0.0)) {
            return Err(SolverError::NotFinite { what: "a step", iterations: info.total.iterations });
        }
        let back: Vec<f64> = steps.iter().map(|step| -step).collect();
        let squares = r.axpy_norm2_each(&back, q)?;
        if squares.iter().any(|square| !square.is_finite()) {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.total.iterations });
        }
        let ratios: Vec<f64> = sides.iter().zip(&squares).map(|(side, new)| new / side.rr).collect();
        x.cg_step_each(&steps, p, r, &ratios)?;
        for (side, square) in sides.iter_mut().zip(&squares) {
            side.rr = *square;
            info.iterations[side.index] += 1;
        }
        info.total.iterations += 1;
    }
    vectors.set_active(all);
    Ok(())
}
