//! Conjugate gradients for `(M^dag M + s) x = b`, s >= 0 (Hestenes, Stiefel 1952), with reliable updates: the iteration
//! has its own precision, and its direction is kept when `refine` recomputes the residual.

use super::mixes::PLAIN;
use super::refine::{Cycle, Ended, Outer, Stage, Trust, refine};
use super::row::{Own, Row, usual_delta};
use super::{Info, Matrix, Operators, Params, Setup, Solver, SolverError, System};
use crate::device::Precision::{self, Half};
use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::operator::Operator;
use std::sync::Arc;

/// The method "cg".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConjugateGradients;

impl Own for ConjugateGradients {
    const ROW: Row = Row {
        word: "cg",
        about: "",
        keys: &[],
        mixes: &PLAIN,
        tries: &[PLAIN[0], PLAIN[2]],
        is_linear: false,
        together: usize::MAX,
        whole: false,
        has_set_up: false,
        delta: |[.., lowest]| usual_delta(lowest == Half),
    };
    const DEFAULT: Self = Self;
}

/// Workspace of solves.
///
/// ```
/// use hmc::field::{Kind, ODD, Purpose, RandomAddress};
/// use hmc::prelude::*;
/// use hmc::solver::{Cg, Operators, Params};
/// let domain = Domain::local([4; 4])?;
/// let schur = Schur::Symmetric;
/// let params = WilsonParams { kappa: 0.12, mu: 0.0, twisted_mass: 0.0, c_sw: 0.0, clover: CloverForm::Linear, boundary: Boundary::ANTIPERIODIC, schur };
/// let mut w = Wilson::new(&domain, Precision::Double, 18, params)?;
/// w.update(&MatrixField::hot(&domain, 1)?, None)?;
/// let spinor = || Spinor::new(&domain, Precision::Double);
/// let (mut b, mut x, mut wx, mut wwx) = (spinor()?, spinor()?, spinor()?, spinor()?);
/// b.set_random(ODD, 1.0, RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Probe(0) })?;
/// let mut cg = Cg::new(&domain, Kind::Dirac, Precision::Double, 1e-3)?;
/// let params = Params { residual: 1e-9, max_iterations: 1000 };
/// cg.solve(&mut Operators::new(&mut w, None), &mut x, &b, params)?;
/// w.apply(&mut wx, &x, Dagger::No)?;
/// w.apply(&mut wwx, &wx, Dagger::Yes)?;
/// wwx.axpy(-1.0, &b)?;
/// assert!(wwx.norm2()?.value().sqrt() < 1.01e-9 * b.norm2()?.value().sqrt());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cg {
    outer: Outer,
    gradients: Gradients,
}

/// The iteration.
struct Gradients {
    precision: Precision,
    delta: f64,
    /// The direction in double precision.
    direction: Spinor,
    /// The vectors of iterations in a lower precision.
    inner: Option<Inner>,
}

/// The vectors of iterations in a lower precision than double.
struct Inner {
    x: Spinor,
    residual: Spinor,
    product: Spinor,
    middle: Spinor,
    direction: Spinor,
}

/// The vectors of an iteration.
struct Vectors<'a> {
    x: &'a mut Spinor,
    r: &'a mut Spinor,
    q: &'a mut Spinor,
    middle: &'a mut Spinor,
    p: &'a mut Spinor,
    /// The shift of `M^dag M + shift`.
    shift: f64,
}

impl Cg {
    /// Workspace for iterations on fields of one kind in `precision`; the residual falls by `delta` between updates.
    pub fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        delta: f64,
    ) -> Result<Self, FieldError> {
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
        let direction = Spinor::of(domain, kind, Precision::Double, 1)?;
        Ok(Self {
            outer: Outer::new(domain, kind, Matrix::Normal { shift: 0.0 })?,
            gradients: Gradients { precision, delta, direction, inner },
        })
    }

    /// Solves `(M^dag M + shift) x = b` from the guess in `x`.
    pub fn solve_shifted(
        &mut self,
        operators: &mut Operators,
        shift: f64,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        let mut system = System { operators, matrix: Matrix::Normal { shift } };
        refine(&mut self.gradients, &mut self.outer, &mut system, x, b, params)
    }
}

impl Setup for Cg {}

impl Solver for Cg {
    fn solve(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        self.solve_shifted(operators, 0.0, x, b, params)
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
        let Matrix::Normal { shift } = system.matrix else {
            panic!("conjugate gradients on {:?}", system.matrix)
        };
        let (operators, Outer { residual, product, middle }) = (&mut *system.operators, outer);
        if stage.trust == Trust::Double {
            let middle = middle.as_mut().expect("workspace for the normal equations");
            let vectors = Vectors { x, r: residual, q: product, middle, p: &mut self.direction, shift };
            iterate(operators.double, vectors, Stage { fresh: true, ..stage }, info)?;
            // No iteration is more trustworthy than this one.
            return Ok(Ended { broke_down: false, allowed: f64::INFINITY });
        }
        let lower = operators.lower(self.precision).expect("an operator in low precision");
        let inner = self.inner.as_mut().expect("vectors in low precision");
        inner.residual.copy_from(residual)?;
        inner.x.set_zero()?;
        let vectors = Vectors {
            x: &mut inner.x,
            r: &mut inner.residual,
            q: &mut inner.product,
            middle: &mut inner.middle,
            p: &mut inner.direction,
            shift,
        };
        iterate(lower, vectors, stage.until(self.delta), info)?;
        x.add(&inner.x)?;
        Ok(Ended { broke_down: false, allowed: 0.0 })
    }
}

/// Iterates until `|r|^2 <= stop`. If `fresh`, the first direction is the residual; otherwise the last direction
/// continues, with the ratio of residuals after the update.
fn iterate(
    operator: &mut dyn Operator,
    Vectors { x, r, q, middle, p, shift }: Vectors,
    Stage { mut rr, stop, max_iterations, fresh, .. }: Stage,
    info: &mut Info,
) -> Result<(), SolverError> {
    if fresh {
        p.copy_from(r)?;
    } else {
        // Keep p conjugate: remove its component along r, then add r (QUDA's restart after an update).
        let overlap = r.real_dot(p)?.value();
        p.axpy(-overlap / rr, r)?;
        p.xpay(r, 1.0)?;
    }
    while rr > stop && info.iterations < max_iterations {
        info.apply_normal(operator, q, middle, p, shift)?;
        // |M p|^2 + shift |p|^2
        let curvature = middle.weighted_norms(shift, p)?;
        let alpha = rr / &curvature;
        let new = r.axpy_norm2(-alpha, q)?;
        x.cg_step_each(&[alpha], p, r, &[&new / rr])?;
        // The host waits for the sums while the device makes the step, which it does not if a number is not finite.
        let alpha = alpha.value()?;
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(SolverError::NotFinite { what: "a step", iterations: info.iterations });
        }
        let new = new.value()?;
        if !new.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        rr = new;
        info.iterations += 1;
    }
    Ok(())
}
