//! Flexible generalised conjugate residuals with a preconditioner, for `M x = b`, `M^dag x = b` or
//! `(M^dag M + shift) x = b`. With additive Schwarz this is GCR-DD (Babich, Clark, Joo, Shi, Brower, Gottlieb, "Scaling
//! lattice QCD beyond 100 GPUs", SC11, Algorithm 1).
//!
//! There are three precisions. The Krylov space and the preconditioner have low ones. Restarts have the outer one:
//! there the solution is accumulated (the implicit update) and the residual recomputed. If the outer precision is
//! single, its result is in turn corrected in double.
//!
//! A system that differs little from the last one may begin with the directions of that one. Each costs a product with the new
//! matrix and no preconditioner.

use super::refine::{Cycle, Ended, Outer, Stage, Trust, refine};
use super::{
    Info, LinearSolver, Matrix, Operators, Params, Preconditioner, Setup, SolverError, System, timed,
};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Kind, Spinor};
use num_complex::Complex64;
use std::sync::Arc;

/// Parameters of the solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrParams {
    /// The precisions of restarts and of the Krylov space; the second is not higher than the first.
    pub precisions: [Precision; 2],
    /// The greatest size of the Krylov space.
    pub k_max: usize,
    /// A restart follows when the residual has fallen by this factor.
    pub delta: f64,
}

/// The reduction of the residual that single precision reaches.
const SINGLE_REACH: f64 = 1e-5;

/// Workspace of solves.
pub struct Gcr {
    outer: Outer,
    restarts: Restarts,
}

/// The iteration.
struct Restarts {
    preconditioner: Box<dyn Preconditioner>,
    space: Space,
    /// By how many powers of ten the iterations of a solve have reduced the residual.
    digits: f64,
    /// Change, residual and product, if restarts are in single precision.
    single: Option<[Spinor; 3]>,
}

/// The Krylov space: p, the orthogonalised z = M p, the residual, and the change of the solution.
struct Space {
    k_max: usize,
    delta: f64,
    p: Vec<Spinor>,
    z: Vec<Spinor>,
    residual: Spinor,
    change: Spinor,
    /// `M p`, for the normal equations.
    middle: Option<Spinor>,
    /// The number of directions of the last cycle, and that of those with which the next one begins.
    made: usize,
    given: usize,
}

impl Gcr {
    /// Workspace for a Krylov space of M or its adjoint.
    pub fn new(
        domain: &Arc<Domain>,
        params: GcrParams,
        preconditioner: Box<dyn Preconditioner>,
    ) -> Result<Self, FieldError> {
        Self::make(domain, params, preconditioner, Matrix::Linear(Dagger::No))
    }

    /// Workspace for a Krylov space of `M^dag M + shift`, whose inverse the preconditioner approximates.
    ///
    /// # Panics
    /// Restarts are not in double precision.
    pub(super) fn normal(
        domain: &Arc<Domain>,
        params: GcrParams,
        preconditioner: Box<dyn Preconditioner>,
    ) -> Result<Self, FieldError> {
        assert_eq!(params.precisions[0], Precision::Double, "the precision of restarts");
        Self::make(domain, params, preconditioner, Matrix::Normal { shift: 0.0 })
    }

    fn make(
        domain: &Arc<Domain>,
        params: GcrParams,
        preconditioner: Box<dyn Preconditioner>,
        matrix: Matrix,
    ) -> Result<Self, FieldError> {
        let GcrParams { precisions: [outer, krylov], k_max, delta } = params;
        let spinor = |precision| Spinor::new(domain, precision);
        let several = || (0..k_max).map(|_| spinor(krylov)).collect::<Result<Vec<_>, _>>();
        let single = if outer == Precision::Double {
            None
        } else {
            Some([spinor(outer)?, spinor(outer)?, spinor(outer)?])
        };
        let space = Space {
            k_max,
            delta,
            p: several()?,
            z: several()?,
            residual: spinor(krylov)?,
            change: spinor(krylov)?,
            middle: matches!(matrix, Matrix::Normal { .. }).then(|| spinor(krylov)).transpose()?,
            made: 0,
            given: 0,
        };
        Ok(Self {
            outer: Outer::new(domain, Kind::Dirac, matrix)?,
            restarts: Restarts { preconditioner, space, digits: 0.0, single },
        })
    }
}

impl Gcr {
    /// As the other solves, first with the directions of the last cycle before. The preconditioner does not learn of it.
    pub(super) fn solve_like_the_last(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        self.restarts.space.given = self.restarts.space.made;
        refine(&mut self.restarts, &mut self.outer, system, x, b, params)
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
        self.restarts.digits = 0.0;
        self.restarts.space.given = 0;
        let info = refine(&mut self.restarts, &mut self.outer, system, x, b, params)?;
        self.restarts.preconditioner.solved(info.iterations, self.restarts.digits);
        Ok(info)
    }
}

impl Setup for Gcr {
    fn keeps(&self) -> bool {
        self.restarts.preconditioner.keeps()
    }

    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        self.restarts.preconditioner.update(operators)
    }

    fn forget(&mut self) {
        self.restarts.preconditioner.forget();
    }
}

impl Cycle for Restarts {
    fn precision(&self) -> Precision {
        self.space.residual.precision()
    }

    /// If it fails, another method takes over.
    fn has_double(&self) -> bool {
        false
    }

    fn run(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        outer: &mut Outer,
        stage: Stage,
        info: &mut Info,
    ) -> Result<Ended, SolverError> {
        let claimed = if self.single.is_some() {
            self.run_in_single(system, x, &outer.residual, stage, info)?
        } else {
            let claimed =
                self.space.cycle(&mut *self.preconditioner, system, &outer.residual, stage, info)?;
            x.add(&self.space.change)?;
            claimed
        };
        self.digits += 0.5 * (stage.rr / claimed).log10();
        // A cycle also ends after k_max directions. It failed if it did not reach its claimed residual, or reduced
        // nothing.
        let allowed = if claimed.is_nan() { 0.0 } else { (4.0 * claimed).min(0.999 * stage.rr) };
        Ok(Ended { broke_down: false, allowed })
    }
}

impl Restarts {
    /// Restarts in single precision as far as they reach. Returns the square of the residual in single precision.
    fn run_in_single(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        residual: &Spinor,
        stage: Stage,
        info: &mut Info,
    ) -> Result<f64, SolverError> {
        let [change, r, product] = self.single.as_mut().expect("fields in single");
        let dagger = system.dagger();
        r.copy_from(residual)?;
        change.set_zero()?;
        let stop = stage.stop.max(stage.rr * SINGLE_REACH * SINGLE_REACH);
        let mut now = stage.rr;
        while now > stop && info.iterations < stage.max_iterations {
            let own = Stage { rr: now, stop, ..stage };
            let claimed = self.space.cycle(&mut *self.preconditioner, system, r, own, info)?;
            change.add(&self.space.change)?;
            info.apply(system.operators.at(Precision::Single), product, change, dagger)?;
            r.copy_from(residual)?;
            let new = r.axpy_norm2(-1.0, product)?.value()?;
            info.updates += 1;
            let fell = new <= Trust::LEAST * now || new <= (4.0 * claimed).min(0.999 * now);
            now = new;
            if !fell {
                break;
            }
        }
        x.add(change)?;
        Ok(now)
    }
}

impl Space {
    /// One cycle between restarts: `change` becomes the correction for the residual `r`, whose square is `stage.rr`.
    /// Returns the square of the new residual in low precision.
    fn cycle(
        &mut self,
        preconditioner: &mut dyn Preconditioner,
        system: &mut System,
        r: &Spinor,
        stage: Stage,
        info: &mut Info,
    ) -> Result<f64, SolverError> {
        let dagger = system.dagger();
        let stop = stage.stop.max(self.delta * self.delta * stage.rr);
        let given = std::mem::take(&mut self.given);
        let mut beta: Vec<Vec<Complex64>> = Vec::new();
        let (mut alpha, mut gamma2): (Vec<Complex64>, Vec<f64>) = (Vec::new(), Vec::new());
        self.residual.copy_from(r)?;
        let mut now = stage.rr;
        while alpha.len() < self.k_max && now > stop && info.iterations < stage.max_iterations {
            let k = alpha.len();
            if k >= given {
                let domain = Arc::clone(self.residual.domain());
                let (p, r) = (&mut self.p[k], &self.residual);
                let seconds = timed(&domain, || preconditioner.apply(system.operators, p, r, dagger, info))?;
                info.preconditioner_seconds += seconds;
                info.iterations += 1;
            }
            let (past, rest) = self.z.split_at_mut(k);
            let z = &mut rest[0];
            system.apply(z.precision(), z, self.middle.as_mut(), &self.p[k], info)?;
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
                break;
            }
            now = self.residual.caxpy_norm2(-a, z)?;
            beta.push(row);
            alpha.push(a);
            gamma2.push(norm);
        }
        self.made = alpha.len();
        self.update(&mut alpha, &beta)?;
        Ok(now)
    }

    /// The implicit update: the change of the solution from the p, whose images are not orthogonal.
    fn update(&mut self, alpha: &mut [Complex64], beta: &[Vec<Complex64>]) -> Result<(), FieldError> {
        self.change.set_zero()?;
        for l in (0..alpha.len()).rev() {
            let known: Complex64 = (l + 1..alpha.len()).map(|i| beta[i][l] * alpha[i]).sum();
            alpha[l] -= known;
        }
        alpha.iter().zip(&self.p).try_for_each(|(chi, p)| self.change.caxpy(*chi, p))
    }
}
