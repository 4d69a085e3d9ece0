//! Flexible generalised conjugate residuals with a preconditioner, for `M x = b` or `M^dag x = b`. With additive Schwarz this is
//! GCR-DD (Babich, Clark, Joo, Shi, Brower, Gottlieb, "Scaling lattice QCD beyond 100 GPUs", SC11, Algorithm 1).
//!
//! The Krylov space and the preconditioner have low precisions. Restarts are in double: there the solution is accumulated (the
//! implicit update) and the residual recomputed.
//!
//! Systems with one matrix can be solved together: each has its Krylov space, and all meet in the preconditioner.

use super::info::Clock;
use super::refine::{Ended, Outer, Refinement, Stage, Trust};
use super::{
    Info, LinearSolver, Matrix, Operators, Params, Preconditioner, Setup, SolverError, System, timed,
};
use crate::config::key::{Absent, Change, Key, integer};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Kind, Spinor};
use num_complex::Complex64;
use std::slice::{from_mut, from_ref};
use std::sync::Arc;

/// The greatest size of the Krylov space, in the tables of the methods that are GCR.
pub(super) const K_MAX: Key<usize> =
    Key::new("k_max", integer(2, 64), Absent::Is("16"), Change::Tuning, "directions before a restart")
        .settled_as("method");

/// Parameters of the solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrParams {
    /// The precision of the Krylov space.
    pub precision: Precision,
    /// The greatest size of the Krylov space.
    pub k_max: usize,
    /// A restart follows when the residual has fallen by this factor.
    pub delta: f64,
}

/// Workspace of solves.
pub struct Gcr {
    preconditioner: Box<dyn Preconditioner>,
    /// Of each system that may be solved together with others.
    all: Vec<Workspace>,
}

/// Workspace of one system.
struct Workspace {
    outer: Outer,
    space: Space,
}

/// The Krylov space: p, the orthogonalised z = M p, the residual, and the change of the solution.
struct Space {
    k_max: usize,
    delta: f64,
    p: Vec<Spinor>,
    z: Vec<Spinor>,
    residual: Spinor,
    change: Spinor,
    cycle: Steps,
}

/// The steps of a cycle.
#[derive(Default)]
struct Steps {
    alpha: Vec<Complex64>,
    beta: Vec<Vec<Complex64>>,
    /// The squares of the z.
    gamma2: Vec<f64>,
    /// The square of the residual, and its goal.
    now: f64,
    stop: f64,
    broke_down: bool,
}

/// A system that is being solved.
struct Going<'a> {
    number: usize,
    own: &'a mut Workspace,
    x: &'a mut Spinor,
    b: &'a Spinor,
    state: Refinement,
    /// By how many powers of ten the iterations have reduced the residual.
    digits: f64,
}

impl Gcr {
    /// Workspace for Krylov spaces of M or its adjoint, for `together` systems at once.
    pub fn new(
        domain: &Arc<Domain>,
        params: GcrParams,
        preconditioner: Box<dyn Preconditioner>,
        together: usize,
    ) -> Result<Self, FieldError> {
        let make = |_| Workspace::new(domain, params);
        Ok(Self { preconditioner, all: (0..together).map(make).collect::<Result<_, _>>()? })
    }

    /// Solves systems together, each as far as it goes; returns by how many powers of ten all their residuals have fallen, too.
    fn run(
        &mut self,
        system: &mut System,
        x: &mut [Spinor],
        b: &[Spinor],
        params: Params,
        info: &mut Info,
    ) -> Result<(Vec<Result<(), SolverError>>, f64), FieldError> {
        assert!(b.len() <= self.all.len(), "workspace for {} systems", self.all.len());
        let Self { preconditioner, all } = self;
        let clock = Clock::new(system.operators.double.domain());
        let mut going = Vec::with_capacity(b.len());
        for (number, ((own, x), b)) in all.iter_mut().zip(x).zip(b).enumerate() {
            let state = Refinement::begin((Trust::Reliable, false), &mut own.outer, system, x, b, params)?;
            going.push(Going { number, own, x, b, state, digits: 0.0 });
        }
        let (mut ends, mut digits): (Vec<_>, f64) = (b.iter().map(|_| Ok(())).collect(), 0.0);
        loop {
            let mut next = Vec::with_capacity(going.len());
            for mut one in going {
                match one.state.next() {
                    Ok(Some(stage)) => next.push((one, stage)),
                    end => {
                        ends[one.number] = end.map(|_| ());
                        info.add(&one.state.info);
                        digits += one.digits;
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            cycles(&mut **preconditioner, system, &mut next, info)?;
            going = next.into_iter().map(|(one, _)| one).collect();
        }
        clock.stop(info);
        Ok((ends, digits))
    }
}

/// A cycle of each system, and the true residual after it.
fn cycles(
    preconditioner: &mut dyn Preconditioner,
    system: &mut System,
    going: &mut [(Going, Stage)],
    common: &mut Info,
) -> Result<(), FieldError> {
    let cycles = going.iter_mut().map(|(one, stage)| {
        let Workspace { outer, space } = &mut *one.own;
        Cycle { space, residual: &outer.residual, stage: *stage, info: &mut one.state.info }
    });
    run(preconditioner, system, cycles.collect(), common)?;
    for (Going { own, x, b, state, digits, .. }, stage) in going {
        let claimed = own.space.cycle.now;
        x.add(&own.space.change)?;
        *digits += 0.5 * (stage.rr / claimed).log10();
        // A cycle also ends after k_max directions. It failed if it did not reach its claimed residual, or reduced
        // nothing.
        let allowed = if claimed.is_nan() { 0.0 } else { (4.0 * claimed).min(0.999 * stage.rr) };
        let ended = Ended { broke_down: false, allowed };
        state.judge(&ended, &mut own.outer, system, [x, b])?;
    }
    Ok(())
}

/// What a cycle between restarts works on.
struct Cycle<'a> {
    space: &'a mut Space,
    residual: &'a Spinor,
    stage: Stage,
    info: &'a mut Info,
}

impl Cycle<'_> {
    fn goes_on(&self) -> bool {
        let Steps { alpha, now, stop, broke_down, .. } = &self.space.cycle;
        alpha.len() < self.space.k_max
            && now > stop
            && !broke_down
            && self.info.iterations < self.stage.max_iterations
    }
}

/// Cycles of several systems: each `change` becomes the correction for its residual, whose square is `stage.rr`.
fn run(
    preconditioner: &mut dyn Preconditioner,
    system: &mut System,
    mut all: Vec<Cycle>,
    common: &mut Info,
) -> Result<(), FieldError> {
    let (dagger, domain) = (system.dagger(), Arc::clone(system.operators.double.domain()));
    all.iter_mut().try_for_each(|cycle| cycle.space.begin(cycle.residual, cycle.stage))?;
    let mut left: Vec<&mut Cycle> = all.iter_mut().collect();
    loop {
        left.retain(|cycle| cycle.goes_on());
        if left.is_empty() {
            break;
        }
        let (mut p, mut r) = (Vec::with_capacity(left.len()), Vec::with_capacity(left.len()));
        for Cycle { space: Space { p: all, residual, cycle, .. }, info, .. } in
            left.iter_mut().map(|cycle| &mut **cycle)
        {
            p.push(&mut all[cycle.alpha.len()]);
            r.push(&*residual);
            info.iterations += 1;
        }
        common.preconditioner_seconds +=
            timed(&domain, || preconditioner.apply(system.operators, &mut p, &r, dagger, common))?;
        for cycle in &mut left {
            cycle.space.step(system, cycle.info)?;
        }
    }
    all.iter_mut().try_for_each(|cycle| cycle.space.update())
}

impl Workspace {
    fn new(domain: &Arc<Domain>, params: GcrParams) -> Result<Self, FieldError> {
        let GcrParams { precision, k_max, delta } = params;
        let spinor = || Spinor::new(domain, precision);
        let several = || (0..k_max).map(|_| spinor()).collect::<Result<Vec<_>, _>>();
        let space = Space {
            k_max,
            delta,
            p: several()?,
            z: several()?,
            residual: spinor()?,
            change: spinor()?,
            cycle: Steps::default(),
        };
        Ok(Self { outer: Outer::new(domain, Kind::Dirac, Matrix::Linear(Dagger::No))?, space })
    }
}

impl LinearSolver for Gcr {
    fn solve(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        let mut info = Info::default();
        let (mut ends, digits) = self.run(system, from_mut(x), from_ref(b), params, &mut info)?;
        ends.pop().expect("one system")?;
        self.preconditioner.solved(info.iterations, digits);
        Ok(info)
    }

    fn solve_each(
        &mut self,
        system: &mut System,
        x: &mut [Spinor],
        b: &[Spinor],
        params: Params,
    ) -> Result<(Info, Vec<bool>), FieldError> {
        let (mut info, mut solved) = (Info::default(), Vec::with_capacity(b.len()));
        for (x, b) in x.chunks_mut(self.all.len()).zip(b.chunks(self.all.len())) {
            let mut own = Info::default();
            let (ends, digits) = self.run(system, x, b, params, &mut own)?;
            if ends.iter().all(Result::is_ok) {
                self.preconditioner.solved(own.iterations, digits);
            }
            for end in ends {
                solved.push(end.is_ok());
                if let Err(SolverError::Field(error)) = end {
                    return Err(error);
                }
            }
            info.add(&own);
        }
        Ok((info, solved))
    }
}

impl Setup for Gcr {
    fn keeps(&self) -> bool {
        self.preconditioner.keeps()
    }

    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        self.preconditioner.update(operators)
    }

    fn forget(&mut self) {
        self.preconditioner.forget();
    }
}

impl Space {
    fn begin(&mut self, residual: &Spinor, stage: Stage) -> Result<(), FieldError> {
        let stop = stage.stop.max(self.delta * self.delta * stage.rr);
        self.cycle = Steps { now: stage.rr, stop, ..Steps::default() };
        self.residual.copy_from(residual)
    }

    /// A step along the last direction.
    fn step(&mut self, system: &mut System, info: &mut Info) -> Result<(), FieldError> {
        let Steps { alpha, beta, gamma2, now, broke_down, .. } = &mut self.cycle;
        let k = alpha.len();
        let (past, rest) = self.z.split_at_mut(k);
        let z = &mut rest[0];
        system.apply(z.precision(), z, None, &self.p[k], info)?;
        // Modified Gram-Schmidt: each step's sum needs the vector from the step before.
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
        if !a.is_finite() {
            *broke_down = true;
            return Ok(());
        }
        *now = self.residual.caxpy_norm2(-a, z)?;
        beta.push(row);
        alpha.push(a);
        gamma2.push(norm);
        Ok(())
    }

    /// The implicit update: the change of the solution from the p, whose images are not orthogonal.
    fn update(&mut self) -> Result<(), FieldError> {
        let Steps { alpha, beta, .. } = &mut self.cycle;
        self.change.set_zero()?;
        for l in (0..alpha.len()).rev() {
            let known: Complex64 = (l + 1..alpha.len()).map(|i| beta[i][l] * alpha[i]).sum();
            alpha[l] -= known;
        }
        alpha.iter().zip(&self.p).try_for_each(|(chi, p)| self.change.caxpy(*chi, p))
    }
}
