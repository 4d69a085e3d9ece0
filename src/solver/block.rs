//! Conjugate gradients for `(M^dag M + s) x_n = b_n` with several right-hand sides at once. Each has its own
//! coefficients; all share the loads of the links. Those that have converged leave the block. In mixed precision,
//! reliable updates as in [`Cg`](super::Cg) are done for all remaining ones at once.

use super::info::Clock;
use super::refine::Trust;
use super::{Info, Operators, Params, SolverError};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, Quotient, Spinor};
use crate::operator::Operator;
use std::sync::Arc;

/// Statistics of a solve.
#[derive(Clone, Debug, Default)]
pub struct BlockInfo {
    /// The total. Iterations and applications are those of the block, whatever its number of right-hand sides at the
    /// time.
    pub total: Info,
    /// Iterations of each right-hand side.
    pub iterations: Vec<usize>,
    /// Final true relative residual of each right-hand side.
    pub residuals: Vec<f64>,
}

/// Workspace of solves.
pub struct BlockCg {
    fields: usize,
    precision: Precision,
    delta: f64,
    outer: Vectors,
    /// The vectors in a lower precision than double.
    inner: Option<Vectors>,
}

/// The vectors of an iteration; the first few are active.
struct Vectors {
    x: Spinor,
    r: Spinor,
    q: Spinor,
    middle: Spinor,
    p: Spinor,
    /// Temporaries for exchanging two fields, and two solutions.
    spare: [Spinor; 2],
    spare_x: [Spinor; 2],
}

/// One right-hand side.
#[derive(Clone, Copy)]
struct Side {
    /// Its position in the caller's list.
    index: usize,
    /// |b|^2
    norm: f64,
    /// |r|^2 in the iteration.
    rr: f64,
    /// |r|^2 at the last recomputation.
    truth: f64,
    /// The iteration ends when |r|^2 falls to this.
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

    /// Moves finished right-hand sides behind the other active ones; returns the number still active.
    fn drop_done(&mut self, sides: &mut [Side], mut active: usize) -> Result<usize, FieldError> {
        let mut at = 0;
        while at < active {
            if sides[at].rr > sides[at].stop {
                at += 1;
                continue;
            }
            active -= 1;
            if at != active {
                self.swap(at, active)?;
                sides.swap(at, active);
            }
        }
        self.set_active(active.max(1));
        Ok(active)
    }

    fn set_active(&mut self, fields: usize) {
        for vector in [&mut self.x, &mut self.r, &mut self.q, &mut self.middle, &mut self.p] {
            vector.set_active(fields);
        }
    }
}

/// The state of a solve.
struct State {
    /// The right-hand sides that have not converged.
    sides: Vec<Side>,
    /// The right-hand sides to which the iteration's directions belong, in this order.
    known: Vec<usize>,
    trust: Trust,
    shift: f64,
    params: Params,
    info: BlockInfo,
}

impl State {
    fn new(b: &[Spinor], shift: f64, trust: Trust, params: Params) -> Result<Self, FieldError> {
        let mut sides = Vec::with_capacity(b.len());
        for (index, b) in b.iter().enumerate() {
            let norm = b.norm2()?.value();
            if norm != 0.0 {
                sides.push(Side { index, norm, rr: f64::INFINITY, truth: f64::INFINITY, stop: 0.0 });
            }
        }
        let (iterations, residuals) = (vec![0; b.len()], vec![0.0; b.len()]);
        let info = BlockInfo { total: Info::default(), iterations, residuals };
        Ok(Self { sides, known: Vec::new(), trust, shift, params, info })
    }

    fn target(&self, side: &Side) -> f64 {
        self.params.residual * self.params.residual * side.norm
    }

    fn not_finite(&self, what: &'static str) -> SolverError {
        SolverError::NotFinite { what, iterations: self.info.total.iterations }
    }

    /// Judges recomputed residuals; `before` are those of the previous update.
    fn judge(&mut self, before: &[f64]) -> Result<(), SolverError> {
        let lost = self.sides.iter().zip(before).any(|(side, before)| {
            before.is_finite() && side.rr > self.target(side).max(Trust::LEAST * before)
        });
        if lost && self.trust < Trust::Double {
            self.trust = self.trust.less(&mut self.info.total);
        }
        if self.sides.iter().any(|side| !side.rr.is_finite()) {
            return Err(self.not_finite("a residual"));
        }
        for side in &self.sides {
            self.info.residuals[side.index] = (side.rr / side.norm).sqrt();
        }
        self.info.total.residual = self.info.residuals.iter().fold(0.0, |m: f64, r| m.max(*r));
        Ok(())
    }
}

impl BlockCg {
    /// Workspace for up to `fields` right-hand sides of one kind, with iterations in `precision`; residuals fall by
    /// `delta` between updates.
    pub fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        delta: f64,
        fields: usize,
    ) -> Result<Self, FieldError> {
        let lower = precision != Precision::Double;
        Ok(Self {
            fields,
            precision,
            delta,
            outer: Vectors::new(domain, kind, Precision::Double, fields)?,
            inner: lower.then(|| Vectors::new(domain, kind, precision, fields)).transpose()?,
        })
    }

    /// Solves `(M^dag M + shift) x_n = b_n` from the guesses in `x`. The operators must take as many fields as there
    /// are right-hand sides.
    ///
    /// # Errors
    /// A right-hand side does not converge, or a number is infinite or NaN.
    ///
    /// # Panics
    /// The numbers of solutions and right-hand sides differ, or exceed the workspace.
    pub fn solve(
        &mut self,
        operators: &mut Operators,
        shift: f64,
        x: &mut [Spinor],
        b: &[Spinor],
        params: Params,
    ) -> Result<BlockInfo, SolverError> {
        assert_eq!(x.len(), b.len(), "one solution per right-hand side");
        assert!(b.len() <= self.fields, "workspace for {} right-hand sides", self.fields);
        let clock = Clock::new(operators.double.domain());
        let lower = self.inner.is_some() && operators.lower(self.precision).is_some();
        let trust = if lower { Trust::Reliable } else { Trust::Double };
        let mut state = State::new(b, shift, trust, params)?;
        for (n, x) in x.iter_mut().enumerate() {
            if state.sides.iter().all(|side| side.index != n) {
                x.set_zero()?;
            }
        }
        loop {
            let before: Vec<f64> = state.sides.iter().map(|side| side.truth).collect();
            residuals(operators.double, &mut self.outer, &mut state, x, b)?;
            state.judge(&before)?;
            self.retire(&mut state)?;
            if state.sides.is_empty() {
                clock.stop(&mut state.info.total);
                return Ok(state.info);
            }
            if state.info.total.iterations >= params.max_iterations {
                return Err(state.info.total.failed(params.residual));
            }
            match self.cycle(operators, &mut state) {
                Ok(work) => self.correct(x, &mut state, work)?,
                // The next precision may succeed where this one fails.
                Err(SolverError::NotFinite { .. }) if state.trust < Trust::Double => {
                    state.trust = state.trust.less(&mut state.info.total);
                    state.known.clear();
                    state.sides.iter_mut().for_each(|side| side.truth = f64::INFINITY);
                }
                Err(error) => return Err(error),
            }
            state.info.total.updates += 1;
        }
    }

    /// Removes converged right-hand sides; the residuals of the others move up.
    fn retire(&mut self, state: &mut State) -> Result<(), FieldError> {
        for at in (0..state.sides.len()).rev() {
            if state.sides[at].rr > state.target(&state.sides[at]) {
                continue;
            }
            let last = state.sides.len() - 1;
            if at != last {
                self.outer.swap(at, last)?;
                if let Some(inner) = &mut self.inner {
                    inner.swap(at, last)?;
                }
            }
            state.sides.swap_remove(at);
            if at < state.known.len() {
                state.known.swap_remove(at);
            }
        }
        Ok(())
    }

    /// Iterates from the residuals; returns the right-hand sides in their new order.
    fn cycle(&mut self, operators: &mut Operators, state: &mut State) -> Result<Vec<Side>, SolverError> {
        let (mut work, outer) = (state.sides.clone(), &mut self.outer);
        outer.set_active(work.len());
        if state.trust == Trust::Double {
            work.iter_mut().for_each(|side| side.stop = state.target(side));
            outer.x.set_zero()?;
            iterate(operators.double, outer, &mut work, true, state)?;
            return Ok(work);
        }
        let inner = self.inner.as_mut().expect("vectors in low precision");
        inner.set_active(work.len());
        for (at, side) in work.iter_mut().enumerate() {
            side.stop = state.target(side).max(side.rr * self.delta * self.delta);
            outer.r.field(at, &mut outer.spare[0])?;
            inner.spare[0].copy_from(&outer.spare[0])?;
            inner.r.set_field(at, &inner.spare[0])?;
        }
        inner.x.set_zero()?;
        let fresh = state.trust > Trust::Reliable
            || !state.known.iter().copied().eq(work.iter().map(|side| side.index));
        let lower = operators.lower(self.precision).expect("an operator in low precision");
        iterate(lower, inner, &mut work, fresh, state)?;
        Ok(work)
    }

    /// Adds the result of a cycle to the solutions.
    fn correct(&mut self, x: &mut [Spinor], state: &mut State, work: Vec<Side>) -> Result<(), FieldError> {
        let found = match &mut self.inner {
            Some(inner) if state.trust < Trust::Double => inner,
            _ => &mut self.outer,
        };
        found.set_active(work.len());
        for (at, side) in work.iter().enumerate() {
            found.x.field(at, &mut found.spare_x[0])?;
            x[side.index].add(&found.spare_x[0])?;
        }
        state.known = work.iter().map(|side| side.index).collect();
        // The residuals take the order of the directions.
        state.sides = work;
        Ok(())
    }
}

/// `r_n = b_n - (M^dag M + shift) x_n` in double precision, and the squares.
fn residuals(
    operator: &mut dyn Operator,
    outer: &mut Vectors,
    State { sides, shift, info, .. }: &mut State,
    x: &[Spinor],
    b: &[Spinor],
) -> Result<(), FieldError> {
    if sides.is_empty() {
        return Ok(());
    }
    outer.set_active(sides.len());
    for (at, side) in sides.iter().enumerate() {
        outer.x.set_field(at, &x[side.index])?;
        outer.r.set_field(at, &b[side.index])?;
    }
    info.total.apply_normal(operator, &mut outer.q, &mut outer.middle, &outer.x, *shift)?;
    outer.r.axpy_each(&vec![-1.0; sides.len()], &outer.q)?;
    let squares = outer.r.dot_each(&outer.r)?;
    sides.iter_mut().zip(squares).for_each(|(side, square)| (side.rr, side.truth) = (square, square));
    Ok(())
}

/// Iterates until every `|r_n|^2` is at its stop; on return all fields are back in `vectors`, in the order of `sides`.
/// If `fresh`, the first directions are the residuals; otherwise the last directions continue with the updated
/// residuals.
fn iterate(
    operator: &mut dyn Operator,
    vectors: &mut Vectors,
    sides: &mut [Side],
    fresh: bool,
    state: &mut State,
) -> Result<(), SolverError> {
    let (all, shift) = (sides.len(), state.shift);
    if fresh {
        vectors.p.copy_each(&vectors.r)?;
    } else {
        let overlaps = vectors.r.dot_each(&vectors.p)?;
        let back: Vec<f64> = overlaps.iter().zip(&*sides).map(|(overlap, side)| -overlap / side.rr).collect();
        vectors.p.axpy_each(&back, &vectors.r)?;
        vectors.p.xpay_each(&vectors.r, &vec![1.0; all])?;
    }
    let mut active = all;
    while state.info.total.iterations < state.params.max_iterations {
        active = vectors.drop_done(sides, active)?;
        if active == 0 {
            break;
        }
        let Vectors { x, r, q, middle, p, .. } = vectors;
        state.info.total.apply_normal(operator, q, middle, p, shift)?;
        let mut curvature = middle.dot_each(middle)?;
        if shift != 0.0 {
            let squares = p.dot_each(p)?;
            curvature.iter_mut().zip(squares).for_each(|(c, square)| *c += shift * square);
        }
        let steps: Vec<f64> = sides.iter().zip(&curvature).map(|(side, c)| side.rr / c).collect();
        if steps.iter().any(|step| !(step.is_finite() && *step > 0.0)) {
            return Err(state.not_finite("a step"));
        }
        let back: Vec<f64> = steps.iter().map(|step| -step).collect();
        let squares = r.axpy_norm2_each(&back, q)?;
        if squares.iter().any(|square| !square.is_finite()) {
            return Err(state.not_finite("a residual"));
        }
        let steps: Vec<Quotient> = steps.into_iter().map(Quotient::from).collect();
        let ratios: Vec<_> =
            sides.iter().zip(&squares).map(|(side, new)| Quotient::from(new / side.rr)).collect();
        x.cg_step_each(&steps, p, r, &ratios)?;
        for (side, square) in sides.iter_mut().zip(&squares) {
            side.rr = *square;
            state.info.iterations[side.index] += 1;
        }
        state.info.total.iterations += 1;
    }
    vectors.set_active(all);
    Ok(())
}
