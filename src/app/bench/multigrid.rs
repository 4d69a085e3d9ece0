//! Multigrid for the symmetric even-odd clover operator: set-up, and `M x = b` by level.

use super::rows::Bench;
use super::solvers::Problem;
use super::{MAX_ITERATIONS, timed};
use crate::app::AppError;
use crate::device::Precision;
use crate::field::{Dagger, Spinor};
use crate::lattice::Extents;
use crate::solver::{Info, Matrix, Method, Multigrid, MultigridParams, Operators, Params, Settings, System};

/// Vectors of P.
pub(super) const VECTORS: usize = 24;
/// The greatest size of the Krylov space.
const K_MAX: usize = 24;
/// Minimal-residual steps.
pub(super) const STEPS: usize = 6;

/// The method with the aggregates that fit, if any.
pub(super) fn method(bench: &Bench) -> Option<Method> {
    let (lattice, local) = (bench.domain.partition().global, bench.domain.partition().local());
    let block: Extents = [4; 4];
    let fits = Multigrid::fits(lattice, block) && local.iter().all(|n| n.is_multiple_of(4));
    let params = MultigridParams { block, vectors: VECTORS, steps: STEPS };
    fits.then_some(Method::Multigrid { k_max: K_MAX, params })
}

/// The table.
pub(super) fn table(bench: &mut Bench) -> Result<(), AppError> {
    let Some(method) = method(bench) else {
        bench.rows.line("  multigrid: aggregates of 4x4x4x4 do not fit");
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
            let Info { iterations, coarse_iterations, .. } = timed.info;
            let parts = timed.parts;
            bench.rows.line(&format!(
                "{name:24} set-up {setup_seconds:.3} s; {iterations} iterations, {coarse_iterations} coarse ones, {:.4} s; \
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
