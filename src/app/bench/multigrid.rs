//! Multigrid for the symmetric even-odd clover operator: set-up, and `M x = b` by level.

use super::rows::Bench;
use super::solvers::Problem;
use super::{MAX_ITERATIONS, timed};
use crate::app::AppError;
use crate::device::Precision;
use crate::field::{Dagger, Spinor};
use crate::lattice::shape;
use crate::solver::{Info, Matrix, Method, Operators, Params, Settings, System};

/// The greatest size of the Krylov space.
const K_MAX: usize = 24;

/// The method, if the aggregates fit.
pub(super) fn method(bench: &Bench) -> Option<Method> {
    let params = bench.args.multigrid;
    params.fits(bench.domain.partition()).then_some(Method::Multigrid { k_max: K_MAX, params })
}

/// The table.
pub(super) fn table(bench: &mut Bench) -> Result<(), AppError> {
    let Some(method) = method(bench) else {
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
        row(bench, &problem, settings)?;
    }
    Ok(())
}

fn row(bench: &mut Bench, problem: &Problem, settings: Settings) -> Result<(), AppError> {
    let domain = bench.domain;
    let mut all = problem.operators(&settings)?;
    let mut solver = settings.linear_solver(domain)?.expect("a solver of M x = b");
    let mut x = Spinor::new(domain, Precision::Double)?;
    let goal = Params { residual: problem.residual, max_iterations: MAX_ITERATIONS };
    let name = format!("  smoothing in {}", settings.precisions[2]);
    let mut setup_seconds = 0.0;
    let outcome = timed(domain, false, || {
        let [double, single, half] = &mut all;
        let mut operators = Operators { double, single: Some(single), half: Some(half) };
        x.set_zero()?;
        let mut system = System { operators: &mut operators, matrix: Matrix::Linear(Dagger::No) };
        let info = solver.solve(&mut system, &mut x, &problem.b, goal)?;
        setup_seconds += info.setup_seconds;
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
