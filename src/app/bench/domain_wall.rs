//! Speed of the domain-wall operator and of its parts, and time to solution of conjugate gradients.

use super::operators::{HOP_FLOPS, spinors};
use super::rows::{Bench, Operation, Solve};
use super::{BenchArgs, probe, random_links, solvers};
use crate::app::AppError;
use crate::device::Precision;
use crate::family::Weights;
use crate::family::{DomainWall, DomainWallParams};
use crate::field::{Dagger, EVEN, ODD, Spinor};
use crate::lattice::{Boundary, volume};
use crate::operator::{GaugeLoops, Operator};
use crate::solver::{Method, Mixed, Params};

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
#[derive(Clone, Debug)]
pub struct BenchWall {
    /// N_s.
    pub slices: usize,
    /// omega and sigma.
    pub weights: Weights,
    /// The height of the wall.
    pub m5: f64,
}

fn params(args: &BenchArgs) -> Result<DomainWallParams, AppError> {
    let BenchWall { slices, ref weights, m5 } = args.wall;
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
        Weights::Listed(_) => "listed weights".into(),
        Weights::Optimal { spectrum: [low, high], symmetric } => {
            format!("{}optimal on [{low}, {high}]", if *symmetric { "symmetric " } else { "" })
        }
    };
    format!("domain walls: {slices} slices, {weights}, M5 {m5}, mass {}", args.mass)
}

/// What the rows of the operator's table share.
struct Parts<'a, 'b> {
    bench: &'a mut Bench<'b>,
    params: DomainWallParams,
}

impl Parts<'_, '_> {
    fn spinors(&self, precision: Precision, fields: usize) -> Result<Spinor, AppError> {
        spinors(self.bench.domain, self.params.kind(), precision, fields)
    }

    fn operation(
        &self,
        operator: &'static str,
        precision: Precision,
        reals: Option<usize>,
        [flops_per_site, bytes_per_site]: [f64; 2],
    ) -> Operation {
        let slices = Some(self.params.slices());
        Operation { operator, precision, reals, slices, right_hand_sides: 1, flops_per_site, bytes_per_site }
    }

    /// The hopping term on all slices, which share one load of the links.
    fn hop(&mut self, operator: &mut DomainWall, reals: usize, fields: usize) -> Result<(), AppError> {
        let precision = operator.precision();
        let (input, mut out) = (self.spinors(precision, fields)?, self.spinors(precision, fields)?);
        let shared = precision.stored(8 * reals, 0) as f64 / (self.params.slices() * fields) as f64;
        let bytes = shared + 2.0 * precision.stored(24, 1) as f64;
        let of = |parts: &Self, name, flops| Operation {
            right_hand_sides: fields,
            ..parts.operation(name, precision, Some(reals), [flops, bytes])
        };
        let hop = of(self, "D_w", HOP_FLOPS);
        self.bench.operator(hop, || Ok(operator.links().hop(&mut out, &input, EVEN, Dagger::No)?))?;
        let both = of(self, "M5 D_w", HOP_FLOPS + MATRIX_FLOPS);
        self.bench.operator(both, || Ok(operator.complete(&mut out, &input)?))?;
        Ok(())
    }

    /// T, without and with a multiple of a spinor added.
    fn matrix(&mut self, operator: &DomainWall) -> Result<(), AppError> {
        let precision = operator.precision();
        let (input, x) = (self.spinors(precision, 1)?, self.spinors(precision, 1)?);
        let mut out = self.spinors(precision, 1)?;
        let spinor = precision.stored(24, 1) as f64;
        for (name, shifted, flops, moved) in
            [("M5 T", None, MATRIX_FLOPS, 2.0), ("M5 1 + T", Some((1.0, &x)), MATRIX_FLOPS + ADD_FLOPS, 3.0)]
        {
            let operation = self.operation(name, precision, None, [flops, moved * spinor]);
            self.bench.operator(operation, || {
                Ok(operator.propagate(&mut out, &input, Dagger::No, 1.0, shifted)?)
            })?;
        }
        Ok(())
    }

    /// C C^dag, with the flops of the kernels and with those of QUDA.
    fn normal(&mut self, operator: &mut DomainWall, reals: usize) -> Result<(), AppError> {
        let precision = operator.precision();
        let (input, mut middle, mut out) =
            (self.spinors(precision, 1)?, self.spinors(precision, 1)?, self.spinors(precision, 1)?);
        // Four hops with their links, three of them with a matrix, and one more matrix. Each reads a spinor and writes
        // one; C and C^dag each add one.
        let links = 4.0 * precision.stored(8 * reals, 0) as f64 / self.params.slices() as f64;
        let bytes = links + 12.0 * precision.stored(24, 1) as f64;
        let operation = self.operation("C C^dag", precision, Some(reals), [2.0 * SCHUR_FLOPS, bytes]);
        let measured = self.bench.operator(operation, || {
            operator.apply(&mut middle, &input, Dagger::No)?;
            Ok(operator.apply(&mut out, &middle, Dagger::Yes)?)
        })?;
        if self.params.slices() == QUDA_SLICES {
            let operator = "C C^dag (QUDA)";
            self.bench.counted(Operation { operator, flops_per_site: QUDA_FLOPS, ..operation }, measured);
        }
        Ok(())
    }
}

/// The hopping term, T and C C^dag in every storage.
pub(super) fn operator(bench: &mut Bench) -> Result<(), AppError> {
    let Bench { domain, args, .. } = *bench;
    let links = random_links(domain)?;
    let params = params(args)?;
    bench.rows.line(&format!("  {}", title(args)));
    let make = |precision, reals, fields| -> Result<DomainWall, AppError> {
        let mut operator = DomainWall::several(domain, precision, reals, fields, &params)?;
        operator.update(&links)?;
        Ok(operator)
    };
    let mut parts = Parts { bench, params: params.clone() };
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
pub(super) fn table(bench: &mut Bench) -> Result<(), AppError> {
    let Bench { domain, args, .. } = *bench;
    let params = params(args)?;
    let links = solvers::links(domain, args)?;
    let spinor = || Spinor::of(domain, params.kind(), D, 1);
    let (mut b, mut x) = (spinor()?, spinor()?);
    b.set_random(ODD, 1.0, probe(1))?;
    let problem = format!(
        "{}, plaquette {:.4}, residual {:e}, links of {SOLVER_REALS} reals",
        title(args),
        GaugeLoops::traces(&links)?.plaquette(),
        args.residual
    );
    bench.problem(&problem);
    let operator = |precision| -> Result<DomainWall, AppError> {
        let mut operator = DomainWall::several(domain, precision, SOLVER_REALS, 1, &params)?;
        operator.update(&links)?;
        Ok(operator)
    };
    for (precisions, precision) in [("double", D), ("double-single", S), ("double-half", H)] {
        let mut all = Mixed::new(|lower| lower == precision, operator)?;
        let settings = args.settings(Method::CG, [D, precision, precision]);
        let mut solver = settings.solver(domain, params.kind(), 1)?;
        let goal = Params { residual: args.residual, max_iterations: settings.max_iterations };
        let solve = Solve {
            operator: "domain walls",
            problem: problem.clone(),
            method: "CG",
            precisions,
            reals: SOLVER_REALS,
            right_hand_sides: 1,
            shifts: 1,
            flops_per_site: SCHUR_FLOPS,
            sites: volume(domain.partition().local()) / 2 * params.slices(),
        };
        bench.solver(solve, || {
            x.set_zero()?;
            solver.normal().solve(&mut all.operators(), &mut x, &b, goal)
        });
    }
    Ok(())
}
