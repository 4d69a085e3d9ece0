//! Multigrid for the symmetric even-odd clover operator: set-up, and `M x = b` by level, for one and several right-hand sides.

use super::rows::Bench;
use super::solvers::{Problem, multigrid};
use super::{MAX_ITERATIONS, probe, timed};
use crate::app::AppError;
use crate::device::Precision;
use crate::field::{Dagger, ODD, Spinor};
use crate::lattice::shape;
use crate::solver::{Info, Matrix, Multigrid, Params, Settings, SolverError, System};

/// The table.
pub(super) fn table(bench: &mut Bench) -> Result<(), AppError> {
    let Some(method) = multigrid(bench) else {
        let largest = shape(bench.args.multigrid.coarsest());
        bench.rows.line(&format!("  multigrid: aggregates of {largest} do not fit"));
        return Ok(());
    };
    let problem = Problem::new(bench)?;
    bench.rows.line(&format!("  {}", problem.words));
    let mixes =
        [Precision::Half, Precision::Single].map(|inner| [Precision::Double, Precision::Single, inner]);
    for precisions in mixes {
        let settings = bench.args.settings(method, precisions);
        for together in [1, Multigrid::TOGETHER] {
            row(bench, &problem, settings, together)?;
        }
    }
    Ok(())
}

fn row(bench: &mut Bench, problem: &Problem, settings: Settings, together: usize) -> Result<(), AppError> {
    let domain = bench.domain;
    let mut all = problem.operators(&settings)?;
    let mut solver = settings.linear_solver(domain, together)?.expect("a solver of M x = b");
    let several = || (0..together).map(|_| Spinor::new(domain, Precision::Double)).collect();
    let [x, b]: [Result<Vec<Spinor>, _>; 2] = [several(), several()];
    let (mut x, mut b) = (x?, b?);
    for (n, b) in b.iter_mut().enumerate() {
        b.set_random(ODD, 1.0, probe(1 + n as u8))?;
    }
    let goal = Params { residual: problem.residual, max_iterations: MAX_ITERATIONS };
    let name = match together {
        1 => format!("  smoothing in {}", settings.precisions[2]),
        count => format!("  {count} right-hand sides"),
    };
    let mut setup_seconds = 0.0;
    let outcome = timed(domain, false, || {
        let mut operators = all.operators();
        x.iter_mut().try_for_each(Spinor::set_zero)?;
        let mut system = System { operators: &mut operators, matrix: Matrix::Linear(Dagger::No) };
        let (info, solved) = solver.solve_each(&mut system, &mut x, &b, goal)?;
        setup_seconds += info.setup_seconds;
        if solved.contains(&false) {
            return Err(SolverError::NotConverged {
                iterations: info.iterations,
                residual: info.residual,
                wanted: goal.residual,
            });
        }
        Ok(info)
    });
    match outcome {
        Ok(timed) => {
            let Info { iterations, coarse_iterations, coarsest_iterations, .. } = timed.info;
            let third = match coarsest_iterations {
                0 => String::new(),
                count => format!(", {count} on the third level"),
            };
            let parts = timed.parts;
            bench.rows.line(&format!(
                "{name:24} set-up {setup_seconds:.3} s; {iterations} iterations, {coarse_iterations} coarse ones{third}, {:.4} s; \
                 one by one {:.4} s: coarse {:.4}, smoother and transfers {:.4}, operator {:.4}",
                timed.seconds,
                parts.seconds,
                parts.coarse_seconds,
                parts.preconditioner_seconds - parts.coarse_seconds,
                parts.operator_seconds,
            ));
        }
        Err(error) => bench.rows.line(&format!("{name:24} {error}")),
    }
    Ok(())
}
