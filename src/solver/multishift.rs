//! Conjugate gradients for `(M^dag M + s_i) x_i = b`, all shifts from one Krylov space
//! (Jegerlehner, hep-lat/9612014).
//!
//! The iteration belongs to the least shift. The residual of each other shift stays parallel to it, `r_i = zeta_i r`.
//! Let `rho_i = zeta_i(n+1) / zeta_i(n)`, let d_i be the shifts relative to the least one, and alpha, beta the
//! coefficients of the iteration. Then
//!
//! ```text
//! 1 / rho_i = 1 + d_i alpha_n + (1 - rho_i(n-1)) alpha_n beta_(n-1) / alpha_(n-1),
//! x_i += alpha_n rho_i zeta_i p_i,   p_i <- r + beta_n rho_i p_i   (p_i divided by zeta_i).
//! ```
//!
//! In mixed precision there are two ways. If the iteration is in single, it goes as far as that reaches, and then every
//! shift is refined by conjugate gradients with reliable updates (Babich et al., arXiv:1109.2935), in the same or in a
//! lower precision. If it is in double and the refinements are not, the vectors stay in double, and the precision of the
//! operator falls with the residual: an error of M p matters less the smaller the residual is by then (van den Eshof,
//! Sleijpen, SIAM J. Matrix Anal. Appl. 26 (2004) 125). All true residuals are checked in double.
//!
//! Only the least shift's direction is needed at once. The steps of the other shifts are made several at a time, from the
//! residuals in between, which halves to quarters the memory that an iteration moves. No bit depends on it.

use super::info::Clock;
use super::{Cg, Info, Operators, Params, SolverError, Tridiagonal};
use crate::device::Precision;
use crate::device::kernels::SHIFT_GROUP;
use crate::field::{Domain, FieldError, Kind, ShiftSteps, Spinor, Sum};
use crate::operator::Operator;
use std::sync::Arc;

/// Statistics of a solve.
#[derive(Clone, Debug, Default)]
pub struct MultiInfo {
    /// The total: common iterations and refinements of single shifts; the greatest residual.
    pub total: Info,
    /// The number of iterations that refined single shifts.
    pub refinements: usize,
    /// Final true relative residual of each shift.
    pub residuals: Vec<f64>,
    /// What the common iteration saw of the spectrum of `M^dag M`, as long as its operator was in double or single.
    pub lanczos: Tridiagonal,
}

/// Iterations stop at this relative residual; below it, this precision makes little progress.
const fn reach(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 0.0,
        Precision::Single => 1e-6,
        Precision::Half => 1e-2,
    }
}

/// The relative error of `M^dag M p` in this precision, with room for the errors of all iterations to add up.
const fn error(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 0.0,
        Precision::Single => 1e-6,
        Precision::Half => 1e-3,
    }
}

/// Workspace of solves.
pub struct MultiShift {
    /// Refines single shifts.
    cg: Cg,
    krylov: Krylov,
    /// The solutions, if the precision is lower than double.
    solutions: Vec<Spinor>,
}

/// The iteration for all shifts.
struct Krylov {
    precision: Precision,
    /// The residuals since the steps of all shifts were made, the last of them the current one, and room for the next.
    residuals: Vec<Spinor>,
    middle: Spinor,
    /// One per shift.
    directions: Vec<Spinor>,
    /// Room for operators in lower precisions, the lowest first.
    lower: Vec<Lower>,
}

/// Room for an operator in a lower precision than the iteration's.
struct Lower {
    p: Spinor,
    middle: Spinor,
    q: Spinor,
}

/// A shift that has not converged.
struct Shift {
    /// Its position in the caller's list.
    index: usize,
    /// The shift relative to the least one.
    shift: f64,
    zeta: f64,
    rho: f64,
    /// The steps a and b that are still to be made.
    late: Vec<[f64; 2]>,
    converged: bool,
}

impl MultiShift {
    /// Workspace for up to `shifts` shifts: precisions of the common iteration and of refinements, in which the residual
    /// falls by `delta` between updates. If the iteration is in double, that of refinements is also the lowest of its
    /// operator.
    pub fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        [precision, refinement]: [Precision; 2],
        delta: f64,
        shifts: usize,
    ) -> Result<Self, FieldError> {
        let own = || Spinor::of(domain, kind, precision, 1);
        let solution = || Spinor::of(domain, kind, precision.of_solution(), 1);
        let lower = if precision == Precision::Double { 0 } else { shifts };
        let relaxed =
            |low: &Precision| *low > precision && *low <= refinement && precision == Precision::Double;
        let relaxed = [Precision::Half, Precision::Single].into_iter().filter(relaxed);
        let room = |precision| -> Result<Lower, FieldError> {
            let own = || Spinor::of(domain, kind, precision, 1);
            Ok(Lower { p: own()?, middle: own()?, q: own()? })
        };
        Ok(Self {
            cg: Cg::new(domain, kind, refinement, delta)?,
            krylov: Krylov {
                precision,
                residuals: (0..=group(precision)).map(|_| own()).collect::<Result<_, _>>()?,
                middle: own()?,
                directions: (0..shifts).map(|_| own()).collect::<Result<_, _>>()?,
                lower: relaxed.map(room).collect::<Result<_, _>>()?,
            },
            solutions: (0..lower).map(|_| solution()).collect::<Result<_, _>>()?,
        })
    }

    /// Solves `(M^dag M + s_i) x_i = b` for all shifts, from zero.
    ///
    /// # Errors
    /// A shift does not converge, or a number is infinite or NaN.
    ///
    /// # Panics
    /// A shift is negative; the numbers of solutions and shifts differ, or exceed the workspace.
    pub fn solve_all(
        &mut self,
        operators: &mut Operators,
        x: &mut [Spinor],
        b: &Spinor,
        shifts: &[f64],
        params: Params,
    ) -> Result<MultiInfo, SolverError> {
        assert_eq!(x.len(), shifts.len(), "one solution per shift");
        assert!(shifts.iter().all(|&s| s >= 0.0), "shifts are not negative");
        let clock = Clock::new(operators.double.domain());
        let mut info = MultiInfo::default();
        x.iter_mut().try_for_each(Spinor::set_zero)?;
        let krylov = &mut self.krylov;
        krylov.residuals[0].copy_from(b)?;
        if krylov.precision == Precision::Double {
            krylov.iterate(operators, x, shifts, params, &mut info)?;
        } else {
            let solutions = &mut self.solutions[..shifts.len()];
            solutions.iter_mut().try_for_each(Spinor::set_zero)?;
            let goal = Params { residual: params.residual.max(reach(krylov.precision)), ..params };
            match krylov.iterate(operators, solutions, shifts, goal, &mut info) {
                Ok(()) => x.iter_mut().zip(&*solutions).try_for_each(|(x, lower)| x.copy_from(lower))?,
                // In this case each shift starts from zero.
                Err(SolverError::NotFinite { .. }) => info.total.fallbacks += 1,
                Err(error) => return Err(error),
            }
        }
        for (solution, shift) in x.iter_mut().zip(shifts) {
            let refined = self.cg.solve_shifted(operators, *shift, solution, b, params)?;
            info.refinements += refined.iterations;
            info.residuals.push(refined.residual);
            info.total.add(&refined);
        }
        clock.stop(&mut info.total);
        Ok(info)
    }
}

/// Iterations whose steps are made at once. In half precision every step is rounded.
const fn group(precision: Precision) -> usize {
    match precision {
        Precision::Half => 1,
        _ => SHIFT_GROUP,
    }
}

impl Krylov {
    /// Iterates from `residuals[0] = b` until the iteration's residuals are below `params.residual |b|`, or up to the maximum
    /// number of iterations. The true residuals show what remains.
    fn iterate(
        &mut self,
        operators: &mut Operators,
        x: &mut [Spinor],
        shifts: &[f64],
        params: Params,
        MultiInfo { total: info, lanczos, .. }: &mut MultiInfo,
    ) -> Result<(), SolverError> {
        let Self { precision, residuals, middle, directions, lower } = self;
        let group = group(*precision);
        let Some(least) = (0..shifts.len()).min_by(|&i, &j| shifts[i].total_cmp(&shifts[j])) else {
            return Ok(());
        };
        let own = |(index, shift): (usize, &f64)| Shift {
            index,
            shift: shift - shifts[least],
            zeta: 1.0,
            rho: 1.0,
            late: Vec::with_capacity(group),
            converged: false,
        };
        let others = shifts.iter().enumerate().filter(|(index, _)| *index != least);
        let mut active: Vec<Shift> = others.map(own).collect();
        for p in &mut directions[..shifts.len()] {
            p.copy_from(&residuals[0])?;
        }
        let mut rr = residuals[0].norm2()?.value();
        let target = params.residual * params.residual * rr;
        let mut before: Option<[f64; 2]> = None;
        let mut seen = true;
        // The number of residuals from which late steps are to be made.
        let mut late = 0;
        while rr > target && info.iterations < params.max_iterations {
            let p = &mut directions[least];
            let [.., r, q] = &mut residuals[..late + 2] else { unreachable!("two residuals at least") };
            let enough = |low: &&mut Lower| error(low.p.precision()).powi(2) * rr <= target;
            let low = lower.iter_mut().find(enough);
            let applied = low.as_ref().map_or(*precision, |low| low.p.precision());
            let curvature = match low {
                None => product(operators.at(*precision), info, q, middle, p, shifts[least])?,
                Some(Lower { p: low, middle, q: product_low }) => {
                    low.copy_from(p)?;
                    let operator = operators.at(low.precision());
                    let curvature = product(operator, info, product_low, middle, low, shifts[least])?;
                    q.copy_from(product_low)?;
                    curvature
                }
            };
            // q becomes the next residual.
            let new = q.xpay_norm2(r, -(rr / &curvature))?;
            x[least].cg_step_each(&[rr / &curvature], p, q, &[&new / rr])?;
            // The host waits for the sums while the device makes the step, which it does not if a number is not finite.
            let alpha = rr / curvature.value()?;
            if !(alpha.is_finite() && alpha > 0.0) {
                return Err(SolverError::NotFinite { what: "a step", iterations: info.iterations });
            }
            let new = new.value()?;
            if !new.is_finite() {
                return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
            }
            let beta = new / rr;
            // beta_(n-1) alpha_n / alpha_(n-1)
            let memory = before.map_or(0.0, |[before, beta]| beta * alpha / before);
            seen &= applied <= Precision::Single;
            if seen {
                lanczos.add_step([alpha, beta], before, shifts[least], error(applied));
            }
            rr = new;
            info.iterations += 1;
            for own in active.iter_mut().filter(|own| !own.converged) {
                own.rho = 1.0 / (1.0 + own.shift * alpha + memory * (1.0 - own.rho));
                own.zeta *= own.rho;
                own.late.push([alpha * own.zeta, beta * own.rho]);
                own.converged = own.zeta * own.zeta * rr <= target;
            }
            before = Some([alpha, beta]);
            late += 1;
            if late == group {
                make_late_steps(&mut active, x, directions, &residuals[1..=late])?;
                residuals.swap(0, late);
                late = 0;
            }
        }
        make_late_steps(&mut active, x, directions, &residuals[1..=late])?;
        Ok(())
    }
}

/// `q = (M^dag M + shift) p`; returns `p^dag q = |M p|^2 + shift |p|^2`.
fn product(
    operator: &mut dyn Operator,
    info: &mut Info,
    q: &mut Spinor,
    middle: &mut Spinor,
    p: &Spinor,
    shift: f64,
) -> Result<Sum, FieldError> {
    info.apply_normal(operator, q, middle, p, shift)?;
    middle.weighted_norms(shift, p)
}

/// Makes the late steps of all shifts from the `residuals` after each iteration, and drops those that have converged.
fn make_late_steps(
    active: &mut Vec<Shift>,
    x: &mut [Spinor],
    directions: &mut [Spinor],
    residuals: &[Spinor],
) -> Result<(), FieldError> {
    let mut rest = x.iter_mut().zip(directions).enumerate();
    let mut steps = Vec::with_capacity(active.len());
    for own in &*active {
        let (_, (x, p)) = rest.find(|(index, _)| *index == own.index).expect("shifts in their order");
        steps.push(ShiftSteps { x, p, steps: &own.late });
    }
    Spinor::shift_steps(residuals, &mut steps)?;
    active.iter_mut().for_each(|own| own.late.clear());
    active.retain(|own| !own.converged);
    Ok(())
}
