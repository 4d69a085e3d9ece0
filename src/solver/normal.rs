//! `M^dag M x = b` by the method that a term of the Hamiltonian names: conjugate gradients at once, or
//! `M^dag y = b` and `M x = y` by BiCGstab or GCR-DD. The true residual of the normal equations is the judge of all; where a
//! method fails, conjugate gradients in double take over.

use super::gcr::GcrParams;
use super::{BiCgStab, Cg, Gcr, Info, Operators, Params, SolverError};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::lattice::Extents;
use crate::operator::Blocks;
use std::sync::Arc;
use std::time::Instant;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Conjugate gradients on the normal equations.
    Cg,
    /// Two solves by BiCGstab.
    BiCgStab,
    /// Two solves by GCR-DD.
    GcrDd {
        /// The greatest size of the Krylov space.
        k_max: usize,
        /// Steps of minimal residuals of the preconditioner.
        n_mr: usize,
        /// Extents of a Schwarz block; `None`: the rank's box.
        block: Option<Extents>,
    },
}

/// How a term's systems are solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// Of updates (double, or single for GCR-DD), of the iteration, of the preconditioner.
    pub precisions: [Precision; 3],
    /// The residual falls by this between updates.
    pub delta: f64,
    /// More are an error.
    pub max_iterations: usize,
}

impl Settings {
    /// Conjugate gradients that iterate in `precision`.
    pub fn cg(precision: Precision, max_iterations: usize) -> Self {
        Self {
            method: Method::Cg,
            precisions: [Precision::Double, precision, precision],
            delta: usual_delta(precision == Precision::Half),
            max_iterations,
        }
    }
}

/// By how much the residual falls between updates, where nobody says it.
pub fn usual_delta(in_half: bool) -> f64 {
    if in_half { 0.1 } else { 1e-3 }
}

enum Workspace {
    Cg(Cg),
    BiCgStab(BiCgStab),
    GcrDd(Gcr),
}

/// Workspace of solves.
pub struct NormalSolver {
    settings: Settings,
    workspace: Workspace,
    /// The residual, a product, y and the change of x; not for CG.
    spinors: Vec<Spinor>,
    /// Made when a method has failed.
    rescue: Option<Cg>,
}

/// Corrections of x before a method has failed.
const CORRECTIONS: usize = 5;

impl NormalSolver {
    /// Room for solves with fields of a kind.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// The method is not CG, and the fields are no Dirac spinors.
    pub fn new(domain: &Arc<Domain>, kind: Kind, settings: Settings) -> Result<Self, FieldError> {
        assert!(
            settings.method == Method::Cg || kind == Kind::Dirac,
            "fields of the kind {kind:?} are solved by conjugate gradients"
        );
        let Settings { method, precisions, delta, .. } = settings;
        let workspace = match method {
            Method::Cg => Workspace::Cg(Cg::new(domain, kind, precisions[1], delta)?),
            Method::BiCgStab => Workspace::BiCgStab(BiCgStab::new(domain, precisions[1], delta)?),
            Method::GcrDd { k_max, n_mr, block } => {
                let blocks = Blocks::new(domain.partition().local(), block);
                let params = GcrParams { precisions, k_max, delta, n_mr };
                Workspace::GcrDd(Gcr::new(domain, params, &blocks)?)
            }
        };
        let count = if method == Method::Cg { 0 } else { 4 };
        let spinors = (0..count).map(|_| Spinor::new(domain, Precision::Double)).collect::<Result<_, _>>()?;
        Ok(Self { settings, workspace, spinors, rescue: None })
    }

    /// The workspace of CG.
    ///
    /// # Panics
    /// The method is another.
    pub fn cg(&mut self) -> &mut Cg {
        let Workspace::Cg(cg) = &mut self.workspace else { panic!("the method is not CG") };
        cg
    }

    /// Solves `M x = b`, or `M^dag x = b`, from the guess in `x`; not by CG.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    ///
    /// # Panics
    /// The method is CG.
    pub fn solve_one(
        &mut self,
        operators: &mut Operators,
        dagger: bool,
        x: &mut Spinor,
        b: &Spinor,
        params: Params,
    ) -> Result<Info, SolverError> {
        solve_one(&mut self.workspace, self.settings.precisions[1], operators, dagger, x, b, params)
    }

    /// Solves `M^dag M x = b` to `|b - M^dag M x| <= residual |b|` from the guess in `x`.
    ///
    /// # Errors
    /// No convergence, or a number that is not finite.
    pub fn solve(
        &mut self,
        operators: &mut Operators,
        x: &mut Spinor,
        b: &Spinor,
        residual: f64,
    ) -> Result<Info, SolverError> {
        let params = Params { residual, max_iterations: self.settings.max_iterations };
        if let Workspace::Cg(cg) = &mut self.workspace {
            let (double, sloppy) = operators.pair(self.settings.precisions[1]);
            return cg.solve(double, sloppy, x, b, params);
        }
        let start = Instant::now();
        let [r, product, y, change] = &mut self.spinors[..] else { unreachable!("four spinors") };
        let mut info = Info::default();
        let norm_b = b.norm2()?.value().sqrt();
        if norm_b == 0.0 {
            x.set_zero()?;
            return Ok(info);
        }
        let mut before = f64::INFINITY;
        for correction in 0.. {
            info.apply(operators.at(Precision::Double), y, x, false)?;
            info.apply(operators.at(Precision::Double), product, y, true)?;
            r.copy_from(b)?;
            let norm_r = r.axpy_norm2(-1.0, product)?.sqrt();
            info.residual = norm_r / norm_b;
            if info.residual <= residual {
                break;
            }
            let left = params.max_iterations.saturating_sub(info.iterations);
            // Also where a correction made it worse, or the residual is no number.
            let better = info.residual < before;
            before = info.residual;
            if correction == CORRECTIONS || left == 0 || !better {
                return rescue(&mut self.rescue, operators, x, b, params, info, start);
            }
            let wanted =
                |residual: f64| Params { residual: residual.clamp(1e-14, 0.1), max_iterations: left };
            let reduction = SHARE * residual * norm_b / norm_r;
            y.set_zero()?;
            let (workspace, precision) = (&mut self.workspace, self.settings.precisions[1]);
            let first = solve_one(workspace, precision, operators, true, y, r, wanted(reduction));
            if !settled(first, &mut info)? {
                return rescue(&mut self.rescue, operators, x, b, params, info, start);
            }
            // |M^dag (y - M change)| counts: M^dag is at least |r| / |y|, and seldom above four times that.
            let norm_y = y.norm2()?.value().sqrt();
            change.set_zero()?;
            let reduction = SHARE * reduction.min(reduction * norm_r / norm_y);
            let second = solve_one(workspace, precision, operators, false, change, y, wanted(reduction));
            if !settled(second, &mut info)? {
                return rescue(&mut self.rescue, operators, x, b, params, info, start);
            }
            x.axpy(1.0, change)?;
        }
        info.seconds = start.elapsed().as_secs_f64();
        Ok(info)
    }
}

/// Each of the two solves may leave this share of the residual.
const SHARE: f64 = 0.4;

/// Counts what one of the two solves did. One that missed its target may have done enough: the true residual of both
/// tells. `false`: it met a number that is not finite, and its solution is none.
fn settled(solve: Result<Info, SolverError>, info: &mut Info) -> Result<bool, FieldError> {
    match solve {
        Ok(done) => info.add(&done),
        Err(SolverError::Field(error)) => return Err(error),
        Err(error @ SolverError::NotConverged { .. }) => info.iterations += error.iterations(),
        Err(error) => {
            info.iterations += error.iterations();
            return Ok(false);
        }
    }
    Ok(true)
}

/// Conjugate gradients in double, where another method has failed: counted as a fallback. From x where that is better
/// than nothing.
fn rescue(
    cg: &mut Option<Cg>,
    operators: &mut Operators,
    x: &mut Spinor,
    b: &Spinor,
    params: Params,
    mut info: Info,
    start: Instant,
) -> Result<Info, SolverError> {
    let double = operators.at(Precision::Double);
    let cg = match cg {
        Some(cg) => cg,
        None => cg.insert(Cg::new(double.domain(), double.kind(), Precision::Double, 1e-3)?),
    };
    if !matches!(info.residual.partial_cmp(&1.0), Some(std::cmp::Ordering::Less)) {
        x.set_zero()?;
    }
    let rescued = cg.solve(double, None, x, b, params)?;
    info.add(&rescued);
    info.fallbacks += 1;
    info.residual = rescued.residual;
    info.seconds = start.elapsed().as_secs_f64();
    Ok(info)
}

fn solve_one(
    workspace: &mut Workspace,
    precision: Precision,
    operators: &mut Operators,
    dagger: bool,
    x: &mut Spinor,
    b: &Spinor,
    params: Params,
) -> Result<Info, SolverError> {
    match workspace {
        Workspace::Cg(_) => unreachable!("CG solves the normal equations"),
        Workspace::BiCgStab(solver) => {
            let (double, sloppy) = operators.pair(precision);
            solver.solve(double, sloppy, dagger, x, b, params)
        }
        Workspace::GcrDd(solver) => solver.solve(operators, dagger, x, b, params),
    }
}
