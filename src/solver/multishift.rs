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
//!
//! Several right-hand sides share the loads of the links: the operator acts on all at once whose residuals allow the same
//! precision. Each has its own iteration, with the bits that it has alone. The device makes the sums of all while the host
//! waits for the first.

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

/// Solves systems with shifts; memory exists only during a solve.
pub struct MultiShift {
    domain: Arc<Domain>,
    kind: Kind,
    /// Of the common iteration, and of refinements.
    precisions: [Precision; 2],
    delta: f64,
    together: usize,
}

/// The vectors of one right-hand side's iteration.
struct Krylov {
    /// The residuals since the steps of all shifts were made, the last of them the current one, and room for the next.
    residuals: Vec<Spinor>,
    /// One per shift.
    directions: Vec<Spinor>,
    /// The solutions, if the precision is lower than double.
    solutions: Vec<Spinor>,
}

/// Room for an operator, which acts on several right-hand sides at once.
struct Room {
    precision: Precision,
    /// The relative error of its products, as far as the iteration has a better operator.
    error: f64,
    middle: Spinor,
    /// p and q; none if they are the iteration's own.
    copies: Option<[Spinor; 2]>,
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
    /// Precisions of the common iteration and of refinements, in which the residual falls by `delta` between updates. If the
    /// iteration is in double, that of refinements is also the lowest of its operator. True residuals are computed for
    /// `together` solutions at once, which the operator in double must take.
    pub fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        precisions: [Precision; 2],
        delta: f64,
        together: usize,
    ) -> Self {
        Self { domain: Arc::clone(domain), kind, precisions, delta, together }
    }

    /// Solves `(M^dag M + s_i) x_i = b` for all shifts, from zero.
    ///
    /// # Errors
    /// A shift does not converge, or a number is infinite or NaN.
    ///
    /// # Panics
    /// A shift is negative; the numbers of solutions and shifts differ.
    pub fn solve_all(
        &self,
        operators: &mut Operators,
        x: &mut [Spinor],
        b: &Spinor,
        shifts: &[f64],
        params: Params,
    ) -> Result<MultiInfo, SolverError> {
        Ok(self.solve_several(operators, &mut [x], &[b], shifts, params)?.remove(0))
    }

    /// As [`MultiShift::solve_all`] for several right-hand sides `b_n`, each with solutions `x_n`; operators must take as many
    /// fields. The time is shared out equally.
    ///
    /// # Errors
    /// As [`MultiShift::solve_all`].
    ///
    /// # Panics
    /// As [`MultiShift::solve_all`]; also if the numbers of right-hand sides and solutions differ.
    pub fn solve_several(
        &self,
        operators: &mut Operators,
        x: &mut [&mut [Spinor]],
        b: &[&Spinor],
        shifts: &[f64],
        params: Params,
    ) -> Result<Vec<MultiInfo>, SolverError> {
        assert_eq!(x.len(), b.len(), "solutions for each right-hand side");
        assert!(x.iter().all(|x| x.len() == shifts.len()), "one solution per shift");
        assert!(shifts.iter().all(|&s| s >= 0.0), "shifts are not negative");
        let clock = Clock::new(&self.domain);
        let mut infos = self.iterated(operators, x, b, shifts, params)?;
        let mut all = Info::default();
        let residuals = self.true_residuals(operators, x, b, shifts, &mut all)?;
        let mut cg = None;
        for (n, info) in infos.iter_mut().enumerate() {
            for (i, solution) in x[n].iter_mut().enumerate() {
                info.total.applications += 2;
                let mut residual = residuals[n * shifts.len() + i];
                // False for NaN.
                let is_solved = residual <= params.residual;
                if !is_solved {
                    let cg = match &mut cg {
                        Some(cg) => cg,
                        None => cg.insert(Cg::new(&self.domain, self.kind, self.precisions[1], self.delta)?),
                    };
                    let refined = cg.solve_shifted(operators, shifts[i], solution, b[n], params)?;
                    info.refinements += refined.iterations;
                    info.total.add(&refined);
                    residual = refined.residual;
                }
                info.residuals.push(residual);
                info.total.residual = info.total.residual.max(residual);
            }
        }
        clock.stop(&mut all);
        let share = 1.0 / infos.len() as f64;
        for info in &mut infos {
            info.total.seconds = share * all.seconds;
            info.total.operator_seconds += share * all.operator_seconds;
            info.total.communication_seconds = share * all.communication_seconds;
        }
        Ok(infos)
    }

    /// The common iterations from zero.
    fn iterated(
        &self,
        operators: &mut Operators,
        x: &mut [&mut [Spinor]],
        b: &[&Spinor],
        shifts: &[f64],
        params: Params,
    ) -> Result<Vec<MultiInfo>, SolverError> {
        let precision = self.precisions[0];
        let is_double = precision == Precision::Double;
        let goal = Params { residual: params.residual.max(reach(precision)), ..params };
        let lower = if is_double { 0 } else { shifts.len() };
        let krylov = |_: &&Spinor| Krylov::new(self, [shifts.len(), lower]);
        let mut krylov: Vec<Krylov> = b.iter().map(krylov).collect::<Result<_, _>>()?;
        let mut rooms = self.rooms(b.len())?;
        let mut sides = Vec::with_capacity(b.len());
        for ((krylov, x), b) in krylov.iter_mut().zip(&mut *x).zip(b) {
            x.iter_mut().try_for_each(Spinor::set_zero)?;
            let Krylov { residuals, directions, solutions } = krylov;
            residuals[0].copy_from(b)?;
            let x = if is_double { &mut **x } else { solutions };
            sides.push(Side::new(residuals, directions, x, shifts, goal)?);
        }
        if let Some(least) = shifts.iter().copied().min_by(f64::total_cmp) {
            iterate(&mut rooms, operators, &mut sides, least, goal.max_iterations)?;
        }
        let ended: Vec<_> = sides.into_iter().map(|side| (side.info, side.failed)).collect();
        let mut infos = Vec::with_capacity(b.len());
        for (((mut info, failed), krylov), x) in ended.into_iter().zip(&krylov).zip(x) {
            match failed {
                Some(error) if is_double => return Err(error),
                // In this case each shift starts from zero.
                Some(_) => info.total.fallbacks += 1,
                None => {
                    let mut lower = krylov.solutions.iter().zip(&mut **x);
                    lower.try_for_each(|(lower, x)| x.copy_from(lower))?;
                }
            }
            infos.push(info);
        }
        Ok(infos)
    }

    /// Room for each precision that the operator may have, the lowest first.
    fn rooms(&self, sides: usize) -> Result<Vec<Room>, FieldError> {
        let [precision, refinement] = self.precisions;
        let relaxed = |low: &Precision| {
            *low == precision || *low > precision && *low <= refinement && precision == Precision::Double
        };
        let applied = [Precision::Half, Precision::Single, Precision::Double].into_iter().filter(relaxed);
        let room = |applied| -> Result<Room, FieldError> {
            let own = || Spinor::of(&self.domain, self.kind, applied, sides);
            let copies = (applied != precision || sides > 1).then(|| Ok::<_, FieldError>([own()?, own()?]));
            let error = if applied == precision { 0.0 } else { error(applied) };
            Ok(Room { precision: applied, error, middle: own()?, copies: copies.transpose()? })
        };
        applied.map(room).collect()
    }

    /// `|b_n - (M^dag M + s_i) x_ni| / |b_n|` in double, one right-hand side after the other; 0 where b is zero.
    fn true_residuals(
        &self,
        operators: &mut Operators,
        x: &[&mut [Spinor]],
        b: &[&Spinor],
        shifts: &[f64],
        info: &mut Info,
    ) -> Result<Vec<f64>, FieldError> {
        let norms = b.iter().map(|b| Ok(b.norm2()?.value())).collect::<Result<Vec<f64>, FieldError>>()?;
        let places = |n| (0..shifts.len()).map(move |i| (n, i));
        let all: Vec<(usize, usize)> = (0..b.len()).flat_map(places).collect();
        let several = || Spinor::of(&self.domain, self.kind, Precision::Double, self.together.min(all.len()));
        let [mut solutions, mut middle, mut products] = [several()?, several()?, several()?];
        let mut residual = Spinor::of(&self.domain, self.kind, Precision::Double, 1)?;
        let mut found = Vec::with_capacity(all.len());
        for some in all.chunks(self.together) {
            for vector in [&mut solutions, &mut middle, &mut products] {
                vector.set_active(some.len());
            }
            for (k, (n, i)) in some.iter().enumerate() {
                solutions.set_field(k, &x[*n][*i])?;
            }
            info.apply_normal(operators.double, &mut products, &mut middle, &solutions, 0.0)?;
            let shifts: Vec<f64> = some.iter().map(|(_, i)| shifts[*i]).collect();
            products.axpy_each(&shifts, &solutions)?;
            for (k, (n, _)) in some.iter().enumerate() {
                products.field(k, &mut residual)?;
                let rr = residual.xpay_norm2(b[*n], -1.0)?.value()?;
                found.push(if norms[*n] == 0.0 { 0.0 } else { (rr / norms[*n]).sqrt() });
            }
        }
        Ok(found)
    }
}

impl Krylov {
    /// Room for an iteration with so many shifts, and so many solutions in lower precision.
    fn new(solver: &MultiShift, [shifts, lower]: [usize; 2]) -> Result<Self, FieldError> {
        let precision = solver.precisions[0];
        let several = |precision, count| -> Result<Vec<Spinor>, FieldError> {
            (0..count).map(|_| Spinor::of(&solver.domain, solver.kind, precision, 1)).collect()
        };
        Ok(Self {
            residuals: several(precision, group(precision) + 1)?,
            directions: several(precision, shifts)?,
            solutions: several(precision.of_solution(), lower)?,
        })
    }
}

/// Iterations whose steps are made at once. In half precision every step is rounded.
const fn group(precision: Precision) -> usize {
    match precision {
        Precision::Half => 1,
        _ => SHIFT_GROUP,
    }
}

/// A step of the least shift.
struct Step {
    /// The precision of the operator.
    applied: Precision,
    /// `p^dag q`
    curvature: Sum,
    /// `|r|^2` after the step.
    new: Sum,
}

/// The iteration of one right-hand side.
struct Side<'a> {
    residuals: &'a mut [Spinor],
    directions: &'a mut [Spinor],
    x: &'a mut [Spinor],
    /// The position of the least shift.
    least: usize,
    active: Vec<Shift>,
    /// |r|^2, and where the iteration ends.
    rr: f64,
    target: f64,
    /// alpha and beta of the iteration before.
    before: Option<[f64; 2]>,
    /// Whether all operators so far were in double or single.
    seen: bool,
    /// The number of residuals from which late steps are to be made.
    late: usize,
    /// The step that the device is making.
    step: Option<Step>,
    /// A number that is infinite or NaN.
    failed: Option<SolverError>,
    info: MultiInfo,
}

impl<'a> Side<'a> {
    /// From `residuals[0] = b`.
    fn new(
        residuals: &'a mut [Spinor],
        directions: &'a mut [Spinor],
        x: &'a mut [Spinor],
        shifts: &[f64],
        goal: Params,
    ) -> Result<Self, FieldError> {
        let least = (0..shifts.len()).min_by(|&i, &j| shifts[i].total_cmp(&shifts[j])).unwrap_or_default();
        let own = |(index, shift): (usize, &f64)| Shift {
            index,
            shift: shift - shifts[least],
            zeta: 1.0,
            rho: 1.0,
            late: Vec::with_capacity(SHIFT_GROUP),
            converged: false,
        };
        let others = shifts.iter().enumerate().filter(|(index, _)| *index != least);
        for p in &mut directions[..shifts.len()] {
            p.copy_from(&residuals[0])?;
        }
        let rr = residuals[0].norm2()?.value();
        Ok(Self {
            residuals,
            directions,
            x,
            least,
            active: others.map(own).collect(),
            rr,
            target: goal.residual * goal.residual * rr,
            before: None,
            seen: true,
            late: 0,
            step: None,
            failed: None,
            info: MultiInfo::default(),
        })
    }

    /// Starts the step of the least shift, whose q is in the room for the next residual and becomes it.
    fn begin_step(&mut self, applied: Precision, curvature: Sum) -> Result<(), FieldError> {
        let Self { residuals, directions, x, least, rr, late, .. } = self;
        let [.., r, q] = &mut residuals[..*late + 2] else { unreachable!("two residuals at least") };
        let new = q.xpay_norm2(r, -(*rr / &curvature))?;
        x[*least].cg_step_each(&[*rr / &curvature], &mut directions[*least], q, &[&new / *rr])?;
        self.step = Some(Step { applied, curvature, new });
        Ok(())
    }

    /// Waits for the sums of a step, which the device does not make if one is not finite.
    fn end_step(&mut self, least: f64) -> Result<(), SolverError> {
        let Some(Step { applied, curvature, new }) = self.step.take() else { return Ok(()) };
        let MultiInfo { total: info, lanczos, .. } = &mut self.info;
        let alpha = self.rr / curvature.value()?;
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(SolverError::NotFinite { what: "a step", iterations: info.iterations });
        }
        let new = new.value()?;
        if !new.is_finite() {
            return Err(SolverError::NotFinite { what: "a residual", iterations: info.iterations });
        }
        let beta = new / self.rr;
        // beta_(n-1) alpha_n / alpha_(n-1)
        let memory = self.before.map_or(0.0, |[before, beta]| beta * alpha / before);
        self.seen &= applied <= Precision::Single;
        if self.seen {
            lanczos.add_step([alpha, beta], self.before, least, error(applied));
        }
        self.rr = new;
        info.iterations += 1;
        for own in self.active.iter_mut().filter(|own| !own.converged) {
            own.rho = 1.0 / (1.0 + own.shift * alpha + memory * (1.0 - own.rho));
            own.zeta *= own.rho;
            own.late.push([alpha * own.zeta, beta * own.rho]);
            own.converged = own.zeta * own.zeta * self.rr <= self.target;
        }
        self.before = Some([alpha, beta]);
        self.late += 1;
        if self.late == self.residuals.len() - 1 {
            self.make_late_steps()?;
        }
        Ok(())
    }

    /// Makes the late steps of all shifts from the residuals after each iteration, and drops those that have converged.
    fn make_late_steps(&mut self) -> Result<(), FieldError> {
        let Self { residuals, directions, x, active, late, .. } = self;
        let mut rest = x.iter_mut().zip(&mut **directions).enumerate();
        let mut steps = Vec::with_capacity(active.len());
        for own in &*active {
            let (_, (x, p)) = rest.find(|(index, _)| *index == own.index).expect("shifts in their order");
            steps.push(ShiftSteps { x, p, steps: &own.late });
        }
        Spinor::shift_steps(&residuals[1..=*late], &mut steps)?;
        active.iter_mut().for_each(|own| own.late.clear());
        active.retain(|own| !own.converged);
        residuals.swap(0, *late);
        *late = 0;
        Ok(())
    }
}

impl Room {
    /// Starts the steps of `sides`, with `q = (M^dag M + shift) p` and `p^dag q = |M p|^2 + shift |p|^2`.
    fn step(
        &mut self,
        operator: &mut dyn Operator,
        sides: &mut [&mut Side],
        shift: f64,
    ) -> Result<(), FieldError> {
        let Self { precision, middle, copies, .. } = self;
        let mut info = Info::default();
        let Some([from, to]) = copies else {
            let [side] = sides else { unreachable!("without room for copies there is one side") };
            let (p, q) = (&side.directions[side.least], &mut side.residuals[side.late + 1]);
            info.apply_normal(operator, q, middle, p, shift)?;
            let curvature = middle.weighted_norms(shift, p)?;
            side.info.total.add(&info);
            return side.begin_step(*precision, curvature);
        };
        for vector in [&mut *from, &mut *middle, &mut *to] {
            vector.set_active(sides.len());
        }
        for (n, side) in sides.iter().enumerate() {
            from.copy_field(n, &side.directions[side.least], 0)?;
        }
        info.apply_normal(operator, to, middle, from, shift)?;
        info.operator_seconds /= sides.len() as f64;
        for (n, side) in sides.iter_mut().enumerate() {
            let curvature = middle.weighted_norms_of(n, shift, from)?;
            side.residuals[side.late + 1].copy_field(0, to, n)?;
            side.info.total.add(&info);
            side.begin_step(*precision, curvature)?;
        }
        Ok(())
    }
}

/// Iterates until the residuals of each side are below its target, up to the maximum number of iterations, or until a number
/// of it is not finite. The true residuals show what remains.
fn iterate(
    rooms: &mut [Room],
    operators: &mut Operators,
    sides: &mut [Side],
    least: f64,
    max_iterations: usize,
) -> Result<(), SolverError> {
    loop {
        let runs = |side: &&mut Side| {
            side.failed.is_none() && side.rr > side.target && side.info.total.iterations < max_iterations
        };
        let mut rest: Vec<&mut Side> = sides.iter_mut().filter(runs).collect();
        if rest.is_empty() {
            break;
        }
        for room in &mut *rooms {
            let enough = |side: &&mut Side| room.error.powi(2) * side.rr <= side.target;
            let mut now: Vec<&mut Side>;
            (now, rest) = rest.into_iter().partition(enough);
            if !now.is_empty() {
                room.step(operators.at(room.precision), &mut now, least)?;
            }
        }
        for side in &mut *sides {
            match side.end_step(least) {
                Err(error @ SolverError::NotFinite { .. }) => side.failed = Some(error),
                ended => ended?,
            }
        }
    }
    let mut finished = sides.iter_mut().filter(|side| side.failed.is_none());
    Ok(finished.try_for_each(Side::make_late_steps)?)
}
