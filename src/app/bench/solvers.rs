//! Time to solution of `M x = b` (BiCGstab, GCR-DD) and of the normal equations (CG), starting from zero, for the
//! symmetric even-odd clover operator.

use super::operators::CLOVER_FLOPS;
use super::rows::{Bench, Solve};
use super::{BenchArgs, MAX_ITERATIONS, probe};
use crate::action::{Action, GaugeAction};
use crate::app::AppError;
use crate::device::Precision;
use crate::family::{Schur, Wilson, WilsonParams};
use crate::field::{Dagger, Domain, HostLinks, Kind, MatrixField, ODD, Spinor};
use crate::hmc::{Chain, Level, Scheme};
use crate::io;
use crate::lattice::{Boundary, volume};
use crate::operator::{CloverForm, CloverTerm, GaugeLoops};
use crate::solver::{GcrDd, GcrMultigrid, Matrix, Method, Mixed, Params, Settings, System};
use std::sync::Arc;

const BETA: f64 = 6.0;
const TRAJECTORIES: u64 = 20;
use Precision::{Double as D, Half as H, Single as S};

/// The requested configuration, or one after a few quenched trajectories from unit links.
pub(super) fn links(domain: &Arc<Domain>, args: &BenchArgs) -> Result<MatrixField, AppError> {
    if let Some(path) = &args.links {
        let (host, header) = io::read_links(path, domain.partition(), domain.comm())?;
        if header.time != domain.partition().time {
            let path = path.display();
            return Err(AppError::Refused(format!(
                "{path}: time is {}; tables are of periodic time",
                header.time
            )));
        }
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

/// The methods of the table by name and precisions, with the rank's box as Schwarz block, and with fixed blocks if they
/// fit.
fn methods(bench: &Bench) -> Vec<(&'static str, &'static str, Settings)> {
    let Bench { domain, args, .. } = *bench;
    let of = |method, precisions| args.settings(method, precisions);
    let mut all = Vec::new();
    for (name, method) in [("CG", Method::CG), ("BiCGstab", Method::BICGSTAB)] {
        all.push((name, "double", of(method, [D, D, D])));
        all.push((name, "double-single", of(method, [D, S, S])));
        all.push((name, "double-half", of(method, [D, H, H])));
    }
    let fits = domain.partition().local().iter().all(|n| n.is_multiple_of(8));
    let blocks = [("GCR-DD rank", None), ("GCR-DD 8^4", Some([8; 4]))];
    for (name, block) in blocks.into_iter().take(if fits { 2 } else { 1 }) {
        let gcr = Method::GcrDd(GcrDd { k_max: 16, n_mr: 10, block });
        all.push((name, "double-single-half", of(gcr, [D, S, H])));
        all.push((name, "double-half-half", of(gcr, [D, H, H])));
    }
    if let Some(multigrid) = multigrid(bench) {
        all.push(("multigrid", "double-single-half", of(multigrid, [D, S, H])));
    }
    all
}

/// The greatest size of the Krylov space.
const K_MAX: usize = 24;

/// Multigrid, if the aggregates fit.
pub(super) fn multigrid(bench: &Bench) -> Option<Method> {
    let params = bench.args.multigrid;
    params.fits(bench.domain.partition()).then_some(Method::Multigrid(GcrMultigrid { k_max: K_MAX, params }))
}

/// What the rows of the table share.
pub(super) struct Problem {
    domain: Arc<Domain>,
    params: WilsonParams,
    links: MatrixField,
    clover: Option<CloverTerm>,
    pub(super) b: Spinor,
    pub(super) residual: f64,
    /// All this in words.
    pub(super) words: String,
}

/// Reals per link.
const REALS: usize = 12;

impl Problem {
    pub(super) fn new(bench: &Bench) -> Result<Self, AppError> {
        let Bench { domain, args, .. } = *bench;
        let links = links(domain, args)?;
        let params = WilsonParams {
            kappa: args.kappa,
            mu: 0.0,
            twisted_mass: 0.0,
            c_sw: args.c_sw,
            boundary: Boundary::ANTIPERIODIC,
            schur: Schur::Symmetric,
            clover: CloverForm::Linear,
        };
        let mut clover = Wilson::clover_term(domain, &params)?;
        if let Some(clover) = &mut clover {
            clover.update(&links)?;
        }
        let mut b = Spinor::new(domain, D)?;
        b.set_random(ODD, 1.0, probe(1))?;
        let plaquette = GaugeLoops::traces(&links)?.plaquette();
        let words = format!(
            "plaquette {plaquette:.4}, kappa {}, c_sw {}, residual {:e}",
            args.kappa, args.c_sw, args.residual
        );
        Ok(Self { domain: Arc::clone(domain), params, links, clover, b, residual: args.residual, words })
    }

    /// The operator in all precisions, as a method needs it.
    pub(super) fn operators(&self, settings: &Settings) -> Result<Mixed<Wilson>, AppError> {
        let operator = |precision: Precision| -> Result<Wilson, AppError> {
            let whole = settings.whole() == Some(precision);
            let make = if whole { Wilson::on_all_sites } else { Wilson::new };
            let mut operator = make(&self.domain, precision, REALS, self.params)?;
            operator.update(&self.links, self.clover.as_ref())?;
            Ok(operator)
        };
        Mixed::new(|_| true, operator)
    }
}

/// The table.
pub(super) fn solvers(bench: &mut Bench) -> Result<(), AppError> {
    let problem = Problem::new(bench)?;
    bench.problem(&problem.words);
    methods(bench)
        .into_iter()
        .try_for_each(|(method, precisions, settings)| row(bench, &problem, method, precisions, settings))
}

/// One method.
fn row(
    bench: &mut Bench,
    problem: &Problem,
    method: &'static str,
    precisions: &'static str,
    settings: Settings,
) -> Result<(), AppError> {
    let Problem { domain, b, residual, words, .. } = problem;
    let mut all = problem.operators(&settings)?;
    let (mut normal, mut linear) = match settings.linear_solver(domain, 1)? {
        Some(linear) => (None, Some(linear)),
        None => (Some(settings.solver(domain, Kind::Dirac, 1)?), None),
    };
    let mut x = Spinor::new(domain, D)?;
    let goal = Params { residual: *residual, max_iterations: MAX_ITERATIONS };
    let solve = Solve {
        operator: "symmetric even-odd clover",
        problem: words.clone(),
        method,
        precisions,
        reals: REALS,
        right_hand_sides: 1,
        shifts: 1,
        flops_per_site: CLOVER_FLOPS,
        sites: volume(domain.partition().local()) / 2,
    };
    bench.solver(solve, || {
        x.set_zero()?;
        let mut operators = all.operators();
        match (&mut normal, &mut linear) {
            (Some(solver), _) => solver.normal().solve(&mut operators, &mut x, b, goal),
            (None, Some(solver)) => {
                let mut system = System { operators: &mut operators, matrix: Matrix::Linear(Dagger::No) };
                solver.solve(&mut system, &mut x, b, goal)
            }
            (None, None) => unreachable!("one of both was made"),
        }
    });
    Ok(())
}
