//! Speed of the domain-wall operator and of its parts, and time to solution of conjugate gradients.

use super::operators::{HOP_FLOPS, row, spinors};
use super::{BenchArgs, probe, random_links, seconds, solvers, timed};
use crate::app::AppError;
use crate::device::Precision;
use crate::family::Weights;
use crate::family::{DomainWall, DomainWallParams};
use crate::field::{Dagger, Domain, EVEN, ODD, Spinor};
use crate::lattice::{Boundary, volume};
use crate::operator::{GaugeLoops, Operator};
use crate::solver::{Method, Operators, Params};
use std::sync::Arc;

/// Flops per site and slice for a matrix on slices, as in its kernel: four multiply-adds and three products per real.
const MATRIX_FLOPS: f64 = 24.0 * 11.0;
/// Flops of adding a multiple of a spinor, per site and slice.
const ADD_FLOPS: f64 = 48.0;
/// Flops of C or its adjoint, per odd site and slice.
const SCHUR_FLOPS: f64 = 2.0 * (HOP_FLOPS + MATRIX_FLOPS) + ADD_FLOPS;
/// Flops of C C^dag with this number of slices, as counted by QUDA; used for the speed in its units.
const QUDA_SLICES: usize = 16;
const QUDA_FLOPS: f64 = 15372.0;
/// Number of right-hand sides that share links, besides the slices.
const FIELDS: [usize; 2] = [2, 4];
/// Reals per link in the solvers.
const SOLVER_REALS: usize = 12;
use Precision::{Double as D, Half as H, Single as S};

/// The quark of the tables.
#[derive(Clone, Copy, Debug)]
pub struct BenchWall {
    /// N_s.
    pub slices: usize,
    /// omega and sigma.
    pub weights: Weights,
    /// The height of the wall.
    pub m5: f64,
}

fn params(args: &BenchArgs) -> Result<DomainWallParams, AppError> {
    let BenchWall { slices, weights, m5 } = args.wall;
    if slices % 2 == 1 && matches!(weights, Weights::Optimal { symmetric: true, .. }) {
        let told = format!("symmetric optimal weights need an even number of slices, not {slices}");
        return Err(AppError::Refused(told));
    }
    let weights = weights.on(slices);
    Ok(DomainWallParams { weights, m5, mass: [args.mass; 2], boundary: Boundary::ANTIPERIODIC })
}

/// A quark in words.
fn title(args: &BenchArgs) -> String {
    let BenchWall { slices, weights, m5 } = &args.wall;
    let weights = match weights {
        Weights::Shamir => "Shamir".to_string(),
        Weights::Borici => "Borici".into(),
        Weights::Mobius { b, c } => format!("Moebius b = {b}, c = {c}"),
        Weights::Optimal { spectrum: [low, high], symmetric } => {
            format!("{}optimal on [{low}, {high}]", if *symmetric { "symmetric " } else { "" })
        }
    };
    format!("domain walls: {slices} slices, {weights}, M5 {m5}, mass {}", args.mass)
}

/// What the rows of the operator's table share.
struct Parts<'a> {
    domain: &'a Arc<Domain>,
    params: DomainWallParams,
    /// Sites of one parity, times slices.
    sites: f64,
    copy: f64,
    say: &'a dyn Fn(&str),
}

impl Parts<'_> {
    fn slices(&self) -> f64 {
        self.params.slices() as f64
    }

    fn spinors(&self, precision: Precision, fields: usize) -> Result<Spinor, AppError> {
        spinors(self.domain, self.params.kind(), precision, fields)
    }

    /// A row with the speed, from flops and bytes per site and slice.
    fn row(&self, what: &str, fields: usize, flops: f64, bytes: f64, time: f64) {
        (self.say)(&row(what, self.sites * fields as f64, flops, bytes, time, self.copy));
    }

    /// The hopping term on all slices, which share one load of the links.
    fn hop(&self, operator: &mut DomainWall, reals: usize, fields: usize) -> Result<(), AppError> {
        let precision = operator.precision();
        let (input, mut out) = (self.spinors(precision, fields)?, self.spinors(precision, fields)?);
        let time = seconds(self.domain, || Ok(operator.links().hop(&mut out, &input, EVEN, Dagger::No)?))?;
        let shared = precision.stored(8 * reals, 0) as f64 / (self.slices() * fields as f64);
        let bytes = shared + 2.0 * precision.stored(24, 1) as f64;
        let several = if fields == 1 { String::new() } else { format!(", n = {fields}") };
        self.row(&format!("D_w {precision:6} {reals:2} reals{several}"), fields, HOP_FLOPS, bytes, time);
        let time = seconds(self.domain, || Ok(operator.complete(&mut out, &input)?))?;
        let flops = HOP_FLOPS + MATRIX_FLOPS;
        self.row(&format!("M5 D_w {precision:6} {reals:2} reals{several}"), fields, flops, bytes, time);
        Ok(())
    }

    /// T, without and with a multiple of a spinor added.
    fn matrix(&self, operator: &DomainWall) -> Result<(), AppError> {
        let precision = operator.precision();
        let (input, x) = (self.spinors(precision, 1)?, self.spinors(precision, 1)?);
        let mut out = self.spinors(precision, 1)?;
        let spinor = precision.stored(24, 1) as f64;
        for (name, shifted) in [("T", None), ("1 + T", Some((1.0, &x)))] {
            let time = seconds(self.domain, || {
                Ok(operator.propagate(&mut out, &input, Dagger::No, 1.0, shifted)?)
            })?;
            let (flops, moved) =
                if shifted.is_some() { (MATRIX_FLOPS + ADD_FLOPS, 3.0) } else { (MATRIX_FLOPS, 2.0) };
            self.row(&format!("M5 {precision:6} {name}"), 1, flops, moved * spinor, time);
        }
        Ok(())
    }

    /// C C^dag, with the flops of the kernels and with those of QUDA.
    fn normal(&self, operator: &mut DomainWall, reals: usize) -> Result<(), AppError> {
        let precision = operator.precision();
        let (input, mut middle, mut out) =
            (self.spinors(precision, 1)?, self.spinors(precision, 1)?, self.spinors(precision, 1)?);
        let time = seconds(self.domain, || {
            operator.apply(&mut middle, &input, Dagger::No)?;
            Ok(operator.apply(&mut out, &middle, Dagger::Yes)?)
        })?;
        // Four hops with their links, three of them with a matrix, and one more matrix. Each reads a spinor and writes
        // one; C and C^dag each add one.
        let links = 4.0 * precision.stored(8 * reals, 0) as f64 / self.slices();
        let bytes = links + 12.0 * precision.stored(24, 1) as f64;
        let what = format!("C C^dag {precision:6} {reals:2} reals");
        self.row(&what, 1, 2.0 * SCHUR_FLOPS, bytes, time);
        if self.params.slices() == QUDA_SLICES {
            self.row(&format!("{what} (QUDA)"), 1, QUDA_FLOPS, bytes, time);
        }
        Ok(())
    }
}

/// The hopping term, T and C C^dag in every storage.
pub(super) fn operator(
    domain: &Arc<Domain>,
    args: &BenchArgs,
    copy: f64,
    say: &dyn Fn(&str),
) -> Result<(), AppError> {
    let links = random_links(domain)?;
    let params = params(args)?;
    let sites = volume(domain.partition().local()) as f64 / 2.0 * params.slices() as f64;
    let parts = Parts { domain, params, sites, copy, say };
    say(&format!("  {}", title(args)));
    let make = |precision, reals, fields| -> Result<DomainWall, AppError> {
        let mut operator = DomainWall::several(domain, precision, reals, fields, &parts.params)?;
        operator.update(&links)?;
        Ok(operator)
    };
    for precision in Precision::ALL {
        for reals in [18, 12, 8] {
            parts.hop(&mut make(precision, reals, 1)?, reals, 1)?;
        }
    }
    for precision in [S, H] {
        for fields in FIELDS {
            parts.hop(&mut make(precision, 12, fields)?, 12, fields)?;
        }
    }
    for precision in Precision::ALL {
        parts.matrix(&make(precision, 12, 1)?)?;
    }
    for precision in Precision::ALL {
        for reals in [18, 12, 8] {
            parts.normal(&mut make(precision, reals, 1)?, reals)?;
        }
    }
    Ok(())
}

/// The solvers' table: `C C^dag x = b` from zero.
pub(super) fn table(domain: &Arc<Domain>, args: &BenchArgs, say: &dyn Fn(&str)) -> Result<(), AppError> {
    let params = params(args)?;
    let links = solvers::links(domain, args)?;
    let spinor = || Spinor::of(domain, params.kind(), D, 1);
    let (mut b, mut x) = (spinor()?, spinor()?);
    b.set_random(ODD, 1.0, probe(1))?;
    let of_quda = params.slices() == QUDA_SLICES;
    say(&format!(
        "  {}, plaquette {:.4}, residual {:e}, links of {SOLVER_REALS} reals",
        title(args),
        GaugeLoops::traces(&links)?.plaquette(),
        args.residual
    ));
    say(&format!(
        "  method            iterations  updates  fallbacks  applications   seconds  us/iteration  GFLOP/s a rank{}  over double  operator  algebra  messages",
        if of_quda { "  (QUDA's)" } else { "" }
    ));
    let operator = |precision| -> Result<DomainWall, AppError> {
        let mut operator = DomainWall::several(domain, precision, SOLVER_REALS, 1, &params)?;
        operator.update(&links)?;
        Ok(operator)
    };
    let sites = volume(domain.partition().local()) as f64 / 2.0 * params.slices() as f64;
    let mut in_double = f64::NAN;
    for (name, precision) in [("CG double", D), ("CG double-single", S), ("CG double-half", H)] {
        let mut double = operator(D)?;
        let mut lower = if precision == D { None } else { Some(operator(precision)?) };
        let settings = args.settings(Method::Cg, [D, precision, precision]);
        let mut solver = settings.solver(domain, params.kind())?;
        let goal = Params { residual: args.residual, max_iterations: settings.max_iterations };
        let solved = timed(domain, || {
            let lower = lower.as_mut().map(|operator| operator as &mut dyn Operator);
            x.set_zero()?;
            solver.solve(&mut Operators::new(&mut double, lower), &mut x, &b, goal)
        });
        match solved {
            Ok(solve) => {
                let info = &solve.info;
                if precision == D {
                    in_double = solve.seconds;
                }
                let quda = if of_quda {
                    format!(" {:9.0}", solve.speed(sites * QUDA_FLOPS / 2.0))
                } else {
                    String::new()
                };
                say(&format!(
                    "  {name:18} {:9} {:8} {:10} {:13} {:9.4} {:13.1} {:15.0}{quda} {:12.2} {:8.0}% {:7.0}% {:8.0}%",
                    info.iterations,
                    info.updates,
                    info.fallbacks,
                    info.applications,
                    solve.seconds,
                    1e6 * solve.seconds / info.iterations as f64,
                    solve.speed(sites * SCHUR_FLOPS),
                    in_double / solve.seconds,
                    solve.share(|parts| parts.operator_seconds),
                    solve.share(|parts| parts.seconds - parts.operator_seconds),
                    solve.share(|parts| parts.communication_seconds),
                ));
            }
            Err(error) => say(&format!("  {name:18} {error}")),
        }
    }
    Ok(())
}
