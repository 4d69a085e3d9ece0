//! Speed of the operator of improved staggered quarks, and time to solution of its solvers on HISQ links.

use super::operators::spinors;
use super::rows::{Bench, Operation, Solve};
use super::{BenchArgs, MAX_ITERATIONS, probe, random_links, solvers};
use crate::action::ActionError;
use crate::app::AppError;
use crate::device::Precision;
use crate::family::{Smearing, Staggered, StaggeredLinks};
use crate::field::{Domain, EVEN, Kind, MatrixField, Spinor};
use crate::lattice::{Boundary, volume};
use crate::math::{Factor, Rational};
use crate::operator::GaugeLoops;
use crate::solver::{BlockCg, Cg, Info, Method, Mixed, MultiShift, Params, SolverError, greatest};
use std::sync::Arc;

/// Flops per site and field, as counted by MILC and QUDA.
const FLOPS: f64 = 1146.0;
/// Numbers of right-hand sides that share links.
const FIELDS: [usize; 5] = [1, 2, 4, 8, 16];
/// Reals per long link in the solvers.
const LONG_REALS: usize = 14;
/// Mass of the strange quark in units of the light quark's.
const STRANGE: f64 = 25.0;
const POLES: usize = 10;
/// Numbers of right-hand sides that are solved at once.
const RIGHT_HAND_SIDES: [usize; 3] = [2, 4, 8];
use Precision::{Double as D, Half as H, Single as S};

/// D in every storage, then with several right-hand sides.
pub(super) fn operator(bench: &mut Bench) -> Result<(), AppError> {
    let domain = bench.domain;
    let links = random_links(domain)?;
    let mut one = |precision: Precision, reals: usize, fields: usize| -> Result<(), AppError> {
        let mut operator = Staggered::new(domain, precision, reals, fields, Boundary::ANTIPERIODIC)?;
        operator.update(&links, &links, -1.0 / 24.0)?;
        let all = spinors(domain, Kind::Colour, precision, fields)?;
        let mut out = Spinor::of(domain, Kind::Colour, precision, fields)?;
        let shared = precision.stored(8 * (18 + reals), 0) as f64 / fields as f64;
        let operation = Operation {
            operator: "staggered D",
            precision,
            reals: Some(reals),
            slices: None,
            right_hand_sides: fields,
            flops_per_site: FLOPS,
            bytes_per_site: shared + 2.0 * precision.stored(6, 1) as f64,
        };
        bench.operator(operation, || Ok(operator.hop(&mut out, &all, EVEN, 1.0, None)?)).map(drop)
    };
    for precision in Precision::ALL {
        for reals in [18, 14, 9] {
            one(precision, reals, 1)?;
        }
    }
    for (precision, reals) in [(D, 14), (S, 18), (S, 14), (H, 18), (H, 14)] {
        for fields in &FIELDS[1..] {
            one(precision, reals, *fields)?;
        }
    }
    Ok(())
}

/// What the rows of the solvers' table share.
struct Problem<'a> {
    domain: &'a Arc<Domain>,
    args: &'a BenchArgs,
    fat: MatrixField,
    smeared: StaggeredLinks,
    wanted: Params,
    /// All this in words.
    words: String,
}

impl Problem<'_> {
    fn operator(&self, precision: Precision, fields: usize) -> Result<Staggered, AppError> {
        let mut operator =
            Staggered::new(self.domain, precision, LONG_REALS, fields, Boundary::ANTIPERIODIC)?;
        operator.update(&self.fat, self.smeared.long(), self.smeared.naik(0.0))?;
        Ok(operator)
    }

    fn vectors(&self, count: usize) -> Result<Vec<Spinor>, AppError> {
        Ok((0..count).map(|_| Spinor::colour(self.domain, D)).collect::<Result<_, _>>()?)
    }

    fn sources(&self, count: usize) -> Result<Vec<Spinor>, AppError> {
        let mut all = self.vectors(count)?;
        all.iter_mut().zip(1..).try_for_each(|(b, number)| b.set_random(EVEN, 1.0, probe(number)))?;
        Ok(all)
    }

    /// The factor by which the residual falls between updates.
    fn delta(&self, precision: Precision) -> f64 {
        self.args.settings(Method::CG, [D, precision, precision]).delta
    }

    /// One row, for solves of `fields` systems at once.
    fn row(
        &self,
        bench: &mut Bench,
        name: [&'static str; 2],
        [fields, shifts]: [usize; 2],
        work: impl FnMut() -> Result<Info, SolverError>,
    ) {
        let [method, precisions] = name;
        let solve = Solve {
            operator: "HISQ",
            problem: self.words.clone(),
            method,
            precisions,
            reals: LONG_REALS,
            right_hand_sides: fields,
            shifts,
            flops_per_site: FLOPS,
            sites: volume(self.domain.partition().local()) / 2 * fields,
        };
        bench.solver(solve, work);
    }

    /// All shifts at once: in double, with an operator of falling precision, and in single with refinement; then one at a
    /// time.
    fn shifts(&self, bench: &mut Bench, shifts: &[f64]) -> Result<(), AppError> {
        let b = self.sources(1)?.remove(0);
        let mut x = self.vectors(shifts.len())?;
        let mut all = Mixed::new(|_| true, |precision| self.operator(precision, 1))?;
        for (name, precisions) in [
            ("double", [D, D]),
            ("double-double-single", [D, S]),
            ("double-double-half", [D, H]),
            ("double-single", [S, S]),
        ] {
            let delta = self.delta(precisions[1]);
            let solver = MultiShift::new(self.domain, Kind::Colour, precisions, delta, 1);
            self.row(bench, ["multi-shift CG", name], [1, shifts.len()], || {
                Ok(solver.solve_all(&mut all.operators(), &mut x, &b, shifts, self.wanted)?.total)
            });
        }
        let mut cg = Cg::new(self.domain, Kind::Colour, S, self.delta(S))?;
        self.row(bench, ["CG each shift", "double-single"], [1, shifts.len()], || {
            let mut total = Info::default();
            for (x, &shift) in x.iter_mut().zip(shifts) {
                x.set_zero()?;
                total.add(&cg.solve_shifted(&mut all.operators(), shift, x, &b, self.wanted)?);
            }
            Ok(total)
        });
        Ok(())
    }

    /// One right-hand side; then several at once.
    fn right_hand_sides(&self, bench: &mut Bench, shift: f64) -> Result<(), AppError> {
        let b = self.sources(RIGHT_HAND_SIDES[RIGHT_HAND_SIDES.len() - 1])?;
        let mut x = self.vectors(b.len())?;
        for (name, precision) in [("double", D), ("double-single", S), ("double-half", H)] {
            let mut all = Mixed::new(|lower| lower == precision, |precision| self.operator(precision, 1))?;
            let mut cg = Cg::new(self.domain, Kind::Colour, precision, self.delta(precision))?;
            self.row(bench, ["CG", name], [1, 1], || {
                x[0].set_zero()?;
                cg.solve_shifted(&mut all.operators(), shift, &mut x[0], &b[0], self.wanted)
            });
        }
        for (name, precision) in [("double-single", S), ("double-half", H)] {
            for count in RIGHT_HAND_SIDES {
                let mut all = Mixed::new(|lower| lower == precision, |at| self.operator(at, count))?;
                let mut block =
                    BlockCg::new(self.domain, Kind::Colour, precision, self.delta(precision), count)?;
                self.row(bench, ["block CG", name], [count, 1], || {
                    x.iter_mut().try_for_each(Spinor::set_zero)?;
                    let (x, b) = (&mut x[..count], &b[..count]);
                    Ok(block.solve(&mut all.operators(), shift, x, b, self.wanted)?.total)
                });
            }
        }
        Ok(())
    }
}

/// The solvers' table: the shifts are the poles of light^(-2/4) strange^(-1/4).
pub(super) fn table(bench: &mut Bench) -> Result<(), AppError> {
    let Bench { domain, args, .. } = *bench;
    let links = solvers::links(domain, args)?;
    let mut smeared = StaggeredLinks::new(domain, Smearing::Hisq { special: false })?;
    smeared.update(&links)?;
    let mut fat = MatrixField::new(domain, 4)?;
    smeared.fat(0.0, &mut fat)?;
    let wanted = Params { residual: args.residual, max_iterations: MAX_ITERATIONS };
    let mut problem = Problem { domain, args, fat, smeared, wanted, words: String::new() };
    let mut start = problem.sources(1)?.remove(0);
    let top = greatest(&mut problem.operator(D, 1)?, &mut start, 0.01, MAX_ITERATIONS)
        .map_err(ActionError::from)?;
    let top = 1.05 * top;
    let (light, strange) = (4.0 * args.mass.powi(2), 4.0 * (STRANGE * args.mass).powi(2));
    let factors = [Factor { shift: 0.0, power: (-2, 4) }, Factor { shift: strange - light, power: (-1, 4) }];
    let function =
        Rational::minimax(&factors, [light, top + light], POLES).map_err(ActionError::from)?.shifted(light);
    problem.words = format!(
        "HISQ, plaquette {:.4}, mass {}, {POLES} poles (error {:.0e}, -D^2 up to {top:.1}), residual {:e}, long links of \
         {LONG_REALS} reals",
        GaugeLoops::traces(&links)?.plaquette(),
        args.mass,
        function.error,
        args.residual
    );
    bench.problem(&problem.words);
    problem.shifts(bench, &function.poles)?;
    problem.right_hand_sides(bench, light)
}
