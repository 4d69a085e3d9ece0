//! Time to solution of `M x = b` (BiCGstab, GCR-DD) and of the normal equations (CG), starting from zero, for the
//! symmetric even-odd clover operator.

use super::operators::CLOVER_FLOPS;
use super::{BenchArgs, MAX_ITERATIONS, probe, timed};
use crate::action::{Action, GaugeAction};
use crate::app::AppError;
use crate::device::Precision;
use crate::family::{Schur, Wilson, WilsonParams};
use crate::field::{Dagger, Domain, HostLinks, Kind, MatrixField, ODD, Spinor};
use crate::hmc::{Chain, Level, Scheme};
use crate::io;
use crate::lattice::{Boundary, volume};
use crate::operator::{CloverTerm, GaugeLoops};
use crate::solver::{Matrix, Method, Operators, Params, Settings, System};
use std::sync::Arc;

const BETA: f64 = 6.0;
const TRAJECTORIES: u64 = 20;
use Precision::{Double as D, Half as H, Single as S};

/// The requested configuration, or one after a few quenched trajectories from unit links.
pub(super) fn links(domain: &Arc<Domain>, args: &BenchArgs) -> Result<MatrixField, AppError> {
    if let Some(path) = &args.links {
        let (host, _) = io::read_links(path, domain.partition(), domain.comm())?;
        return Ok(MatrixField::from_host(domain, &host)?);
    }
    let unit = MatrixField::from_host(domain, &HostLinks::unit(domain.partition().local()))?;
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(domain, BETA, [1.0, 0.0, 0.0])?);
    let level = Level { scheme: Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 }, steps: 8 };
    let mut chain = Chain::new(unit, &[level], vec![vec![gauge]], 1.0, 1)?;
    for number in 0..TRAJECTORIES {
        chain.trajectory(number, true).map_err(|source| AppError::Trajectory { number, source })?;
    }
    Ok(chain.links)
}

/// The methods of the table, with the rank's box as Schwarz block, and with fixed blocks if they fit.
fn methods(domain: &Domain, args: &BenchArgs) -> Vec<(String, Settings)> {
    let of = |method, precisions| args.settings(method, precisions);
    let mut all = vec![
        ("CG double".to_string(), of(Method::Cg, [D, D, D])),
        ("CG double-single".into(), of(Method::Cg, [D, S, S])),
        ("CG double-half".into(), of(Method::Cg, [D, H, H])),
        ("BiCGstab double".into(), of(Method::BiCgStab, [D, D, D])),
        ("BiCGstab double-single".into(), of(Method::BiCgStab, [D, S, S])),
        ("BiCGstab double-half".into(), of(Method::BiCgStab, [D, H, H])),
    ];
    let fits = domain.partition().local().iter().all(|n| n.is_multiple_of(8));
    let blocks = [(None, "rank"), (Some([8; 4]), "8^4")];
    for (block, name) in blocks.into_iter().take(if fits { 2 } else { 1 }) {
        let gcr = Method::GcrDd { k_max: 16, n_mr: 10, block };
        all.push((format!("GCR-DD double-single-half {name}"), of(gcr, [D, S, H])));
        all.push((format!("GCR-DD double-half-half {name}"), of(gcr, [D, H, H])));
        all.push((format!("GCR-DD single-half-half {name}"), of(gcr, [S, H, H])));
    }
    all
}

/// What the rows of the table share.
struct Problem<'a> {
    domain: &'a Arc<Domain>,
    params: WilsonParams,
    links: MatrixField,
    clover: Option<CloverTerm>,
    b: Spinor,
    residual: f64,
}

/// The table.
pub(super) fn solvers(domain: &Arc<Domain>, args: &BenchArgs, say: &dyn Fn(&str)) -> Result<(), AppError> {
    let links = links(domain, args)?;
    let params = WilsonParams {
        kappa: args.kappa,
        mu: 0.0,
        c_sw: args.c_sw,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Symmetric,
    };
    let mut clover = Wilson::clover_term(domain, &params)?;
    if let Some(clover) = &mut clover {
        clover.update(&links)?;
    }
    let mut b = Spinor::new(domain, D)?;
    b.set_random(ODD, 1.0, probe(1))?;
    let plaquette = GaugeLoops::traces(&links)?.plaquette();
    say(&format!(
        "  plaquette {plaquette:.4}, kappa {}, c_sw {}, residual {:e}",
        args.kappa, args.c_sw, args.residual
    ));
    say(
        "  method                              iterations  updates  applications   seconds  GFLOP/s a rank  operator  Schwarz  algebra  messages",
    );
    let problem = Problem { domain, params, links, clover, b, residual: args.residual };
    methods(domain, args).into_iter().try_for_each(|(name, settings)| row(&problem, &name, settings, say))
}

/// One method. Flops of linear algebra and of the preconditioner do not count.
fn row(problem: &Problem, name: &str, settings: Settings, say: &dyn Fn(&str)) -> Result<(), AppError> {
    let Problem { domain, params, links, clover, b, residual } = problem;
    let operator = |precision: Precision| -> Result<Wilson, AppError> {
        let mut operator = Wilson::new(domain, precision, 12, *params)?;
        operator.update(links, clover.as_ref())?;
        Ok(operator)
    };
    let mut all = [operator(D)?, operator(S)?, operator(H)?];
    let (mut normal, mut linear) = match settings.linear_solver(domain)? {
        Some(linear) => (None, Some(linear)),
        None => (Some(settings.solver(domain, Kind::Dirac)?), None),
    };
    let mut x = Spinor::new(domain, D)?;
    let goal = Params { residual: *residual, max_iterations: MAX_ITERATIONS };
    let solved = timed(domain, || {
        x.set_zero()?;
        let [double, single, half] = &mut all;
        let mut operators = Operators { double, single: Some(single), half: Some(half) };
        match (&mut normal, &mut linear) {
            (Some(solver), _) => solver.solve(&mut operators, &mut x, b, goal),
            (None, Some(solver)) => {
                let mut system = System { operators: &mut operators, matrix: Matrix::Linear(Dagger::No) };
                solver.solve(&mut system, &mut x, b, goal)
            }
            (None, None) => unreachable!("one of both was made"),
        }
    });
    match solved {
        Ok(solve) => {
            let sites = volume(domain.partition().local()) as f64 / 2.0;
            say(&format!(
                "  {name:36} {:9} {:8} {:13} {:9.4} {:15.0} {:8.0}% {:7.0}% {:7.0}% {:8.0}%",
                solve.info.iterations,
                solve.info.updates,
                solve.info.applications,
                solve.seconds,
                solve.speed(sites * CLOVER_FLOPS),
                solve.share(|parts| parts.operator_seconds),
                solve.share(|parts| parts.preconditioner_seconds),
                solve.share(|parts| parts.seconds - parts.operator_seconds - parts.preconditioner_seconds),
                solve.share(|parts| parts.communication_seconds),
            ));
        }
        Err(error) => say(&format!("  {name:36} {error}")),
    }
    Ok(())
}
