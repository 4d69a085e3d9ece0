//! Time to solution of `M x = b` (BiCGstab, GCR-DD) and of the normal equations (CG), from zero, for the even-odd clover
//! operator in its symmetric form.

use super::{BenchArgs, probe};
use crate::action::{Action, GaugeAction};
use crate::app::AppError;
use crate::device::Precision;
use crate::field::{Domain, HostLinks, MatrixField, ODD, Spinor};
use crate::hmc::{Chain, Level, Scheme};
use crate::io;
use crate::lattice::volume;
use crate::operator::{Operator, Schur, Wilson, WilsonParams};
use crate::solver::{Info, Method, NormalSolver, Operators, Params, Settings, SolverError};
use std::sync::Arc;

/// Flops a site and application, as QUDA counts; and reals' flops of linear algebra are left out.
const CLOVER_FLOPS: f64 = 3792.0;
const BETA: f64 = 6.0;
const TRAJECTORIES: u64 = 12;
const MAX_ITERATIONS: usize = 5000;
use Precision::{Double as D, Half as H, Single as S};

/// The configuration asked for, or a few quenched trajectories from unit links.
fn links(domain: &Arc<Domain>, args: &BenchArgs) -> Result<MatrixField, AppError> {
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

/// The methods of the table: those of the rank's box as Schwarz block, and of fixed ones where they fit.
fn methods(domain: &Domain) -> Vec<(String, Settings)> {
    let of = |method, precisions, delta| Settings { method, precisions, delta, max_iterations: MAX_ITERATIONS };
    let mut all = vec![
        ("CG double".to_string(), of(Method::Cg, [D, D, D], 1e-3)),
        ("CG double-single".into(), of(Method::Cg, [D, S, S], 1e-3)),
        ("CG double-half".into(), of(Method::Cg, [D, H, H], 0.1)),
        ("BiCGstab double".into(), of(Method::BiCgStab, [D, D, D], 1e-3)),
        ("BiCGstab double-single".into(), of(Method::BiCgStab, [D, S, S], 1e-3)),
        ("BiCGstab double-half".into(), of(Method::BiCgStab, [D, H, H], 0.1)),
    ];
    let fits = domain.partition().local().iter().all(|n| n.is_multiple_of(8));
    let blocks = [(None, "rank"), (Some([8; 4]), "8^4")];
    for (block, name) in blocks.into_iter().take(if fits { 2 } else { 1 }) {
        let gcr = Method::GcrDd { k_max: 16, n_mr: 10, block };
        all.push((format!("GCR-DD double-single-half {name}"), of(gcr, [D, S, H], 0.1)));
        all.push((format!("GCR-DD double-half-half {name}"), of(gcr, [D, H, H], 0.1)));
        all.push((format!("GCR-DD single-half-half {name}"), of(gcr, [S, H, H], 0.1)));
    }
    all
}

pub(super) fn solvers(domain: &Arc<Domain>, args: &BenchArgs, say: &dyn Fn(&str)) -> Result<(), AppError> {
    let links = links(domain, args)?;
    let params = WilsonParams {
        kappa: args.kappa,
        mu: 0.0,
        c_sw: args.c_sw,
        boundary: [0.0, 0.0, 0.0, 1.0],
        schur: Schur::Symmetric,
    };
    let mut clover = Wilson::clover_term(domain, &params)?;
    if let Some(clover) = &mut clover {
        clover.update(&links)?;
    }
    let mut b = Spinor::new(domain, D)?;
    b.set_random(ODD, 1.0, probe(1))?;
    say(&format!(
        "  kappa {}, c_sw {}, residual {:e}; operator, linear algebra and communication are shares of a second run",
        args.kappa, args.c_sw, args.residual
    ));
    for (name, settings) in methods(domain) {
        let Method::GcrDd { block, .. } = settings.method else {
            table_row(domain, &params, None, &links, clover.as_ref(), &b, &name, settings, args.residual, say)?;
            continue;
        };
        table_row(domain, &params, block, &links, clover.as_ref(), &b, &name, settings, args.residual, say)?;
    }
    Ok(())
}
