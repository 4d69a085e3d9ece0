//! Stabilised biconjugate gradients for `M x = b` or `M^dag x = b` (van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992)
//! 631), with reliable updates: shadow residual and direction are kept when `refine` recomputes the residual.

use super::cg::ConjugateGradients;
use super::refine::{Cycle, Ended, Outer, Stage, Trust, refine};
use super::row::{Made, Own, Row};
use super::{Info, LinearSolver, Matrix, Params, Setup, SolverError, System};
use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Kind, Spinor};
use crate::operator::Operator;
use num_complex::Complex64;
use std::sync::Arc;

/// The method "bicgstab".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StabilizedBiCg;

impl Own for StabilizedBiCg {
    const ROW: Row = Row { word: "bicgstab", is_linear: true, together: 1, ..ConjugateGradients::ROW };
    const DEFAULT: Self = Self;

    fn linear(self, precisions: [Precision; 3], delta: f64, domain: &Arc<Domain>, _: usize) -> Option<Made> {
        let [_, precision, _] = precisions;
        Some(BiCgStab::new(domain, precision, delta).map(|solver| Box::new(solver) as Box<dyn LinearSolver>))
    }
}

/// Workspace of solves.
pub struct BiCgStab {
    outer: Outer,
    gradients: Gradients,
}

/// The iteration.
struct Gradients {
    precision: Precision,
    delta: f64,
    own: Vectors,
    /// Vectors of the fallback to double precision, allocated on first use.
    double: Option<Vectors>,
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
    /// Workspace for iterations in `precision`; the residual falls by `delta` between updates.
    pub fn new(domain: &Arc<Domain>, precision: Precision, delta: f64) -> Result<Self, FieldError> {
        Ok(Self {
            outer: Outer::new(domain, Kind::Dirac, Matrix::Linear(Dagger::No))?,
            gradients: Gradients { precision, delta, own: Vectors::new(domain, precision)?, double: None },
        })
    }
}

impl Setup for BiCgStab {}

impl LinearSolver for BiCgStab {
    fn solve(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        refine(&mut self.gradients, &mut self.outer, system, x, b, params)
    }
}

impl Cycle for Gradients {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn run(
        &mut self,
        system: &mut System,
        x: &mut Spinor,
        outer: &mut Outer,
        stage: Stage,
        info: &mut Info,
    ) -> Result<Ended, SolverError> {
        let (dagger, operators) = (system.dagger(), &mut *system.operators);
        let (operator, vectors): (&mut dyn Operator, _) = if stage.trust < Trust::Double {
            (operators.lower(self.precision).expect("an operator in low precision"), &mut self.own)
        } else if self.precision == Precision::Double {
            (&mut *operators.double, &mut self.own)
        } else {
            let vectors = match self.double.take() {
                Some(vectors) => vectors,
                None => Vectors::new(operators.double.domain(), Precision::Double)?,
            };
            (&mut *operators.double, self.double.insert(vectors))
        };
        vectors.r.copy_from(&outer.residual)?;
        vectors.x.set_zero()?;
        let going_on = iterate(operator, dagger, vectors, stage.until(self.delta), info)?;
        x.add(&vectors.x)?;
        Ok(Ended { broke_down: !going_on, allowed: 0.0 })
    }
}

/// Iterations without a fall of the least `|r|` by a factor of the square root of two after which the method counts as
/// stagnated. Where it converges at all, the residual halves in tens of iterations.
const PATIENCE: usize = 1000;

/// Iterates until `|r|^2 <= stop`, or returns `false` at a breakdown; the caller then restarts. Unless `fresh`, shadow
/// residual and direction continue from before the update.
fn iterate(
    operator: &mut dyn Operator,
    dagger: Dagger,
    Vectors { x, r, shadow, p, v, t, rho }: &mut Vectors,
    Stage { mut rr, stop, max_iterations, fresh, .. }: Stage,
    info: &mut Info,
) -> Result<bool, SolverError> {
    if fresh {
        shadow.copy_from(r)?;
        p.copy_from(r)?;
        *rho = Complex64::new(rr, 0.0);
    }
    let (mut least, mut since) = (rr, 0);
    while rr > stop && info.iterations < max_iterations {
        info.iterations += 1;
        info.apply(operator, v, p, dagger)?;
        let mut numbers = r.bicgstab_half(*rho, shadow, v)?;
        info.apply(operator, t, r, dagger)?;
        x.bicgstab_step(&mut numbers, p, r, t, shadow)?;
        p.bicgstab_direction(&numbers, r, v)?;
        // The host waits for the sums while the device makes the direction. What has numbers that are not finite is not
        // done.
        let alpha = numbers.alpha()?;
        if !alpha.is_finite() {
            return Ok(false);
        }
        if !numbers.omega()?.is_finite() {
            x.caxpy(alpha, p)?;
            return Ok(false);
        }
        let (next, new) = numbers.next()?;
        if !new.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        if !numbers.beta()?.is_finite() {
            return Ok(false);
        }
        *rho = next;
        rr = new;
        since += 1;
        if rr < 0.5 * least {
            (least, since) = (rr, 0);
        } else if since == PATIENCE {
            return Err(SolverError::Stagnated { iterations: info.iterations });
        }
    }
    Ok(true)
}
