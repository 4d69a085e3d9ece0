//! `hmc bench`: the speed of operators and solvers on this device, compared with the limit by its memory bandwidth.
//!
//! - `operators`: the hopping term and the clover operator, in every storage
//! - `solvers`: time to solution
//! - `staggered`: the operator of improved staggered quarks, and its solvers
//! - `domain_wall`: the operator of domain-wall quarks, its parts, and its solvers
//! - `trajectory`: whole trajectories of an input

mod domain_wall;
mod operators;
mod solvers;
mod staggered;
mod trajectory;

pub use domain_wall::BenchWall;
pub use trajectory::{BenchTrajectory, bench_trajectory};
pub(super) use trajectory::{TermRow, say_terms, term_rows};

use super::assemble::Layers;
use super::report;
use super::{AppError, Ranks, assemble, start};
use crate::device::Precision;
use crate::family::REACH;
use crate::field::{Domain, Halo, MatrixField, Purpose, RandomAddress};
use crate::input::{DeviceChoice, Parallel};
use crate::lattice::{Extents, shape};
use crate::solver::usual_delta;
use crate::solver::{Info, Method, Settings, SolverError};
use std::path::PathBuf;
use std::sync::Arc;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchTable {
    /// The Wilson hopping term.
    Wilson,
    /// The even-odd clover operator.
    Clover,
    /// Solvers of the clover operator.
    Solver,
    /// The operator of improved staggered quarks.
    Staggered,
    /// Solvers of the staggered operator.
    StaggeredSolver,
    /// The operator of domain-wall quarks, and its parts.
    DomainWall,
    /// Solvers of the domain-wall operator.
    DomainWallSolver,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchArgs {
    /// Tables.
    pub tables: Vec<BenchTable>,
    /// Lattices.
    pub extents: Vec<Extents>,
    /// CPU or GPU.
    pub device: DeviceChoice,
    /// Threads per rank; `None`: the node's cores divided by its ranks.
    pub threads: Option<usize>,
    /// SIMD lanes; `None`: the best.
    pub lanes: Option<usize>,
    /// Ranks in each direction; `None`: minimal surface.
    pub grid: Option<Extents>,
    /// The transport of halos.
    pub transport: Option<Halo>,
    /// The links for the solvers' tables; `None`: from a short quenched chain.
    pub links: Option<PathBuf>,
    /// The Wilson quark of the solvers' table.
    pub kappa: f64,
    /// Its clover coefficient.
    pub c_sw: f64,
    /// The staggered or domain-wall quark.
    pub mass: f64,
    /// The other parameters of the domain-wall quark.
    pub wall: BenchWall,
    /// The solvers' relative residual.
    pub residual: f64,
    /// The factor by which the residual falls between updates; `None`: as in runs.
    pub delta: Option<f64>,
}

impl BenchArgs {
    /// Settings of `method` with these precisions: of updates, of the iteration, of the preconditioner.
    fn settings(&self, method: Method, precisions: [Precision; 3]) -> Settings {
        let in_half = precisions[1] == Precision::Half || matches!(method, Method::GcrDd { .. });
        let delta = self.delta.unwrap_or(usual_delta(in_half));
        Settings { method, precisions, delta, max_iterations: MAX_ITERATIONS }
    }
}

/// The number of samples, of which the best counts, and the minimum duration of one.
const SAMPLES: usize = 7;
const SAMPLE_SECONDS: f64 = 0.05;

const MAX_ITERATIONS: usize = 50_000;

/// Prints the tables.
///
/// # Errors
/// The device does not exist or is out of memory.
pub fn bench(args: &BenchArgs, comm: &Ranks) -> Result<(), AppError> {
    let parallel = Parallel {
        grid: args.grid,
        device: args.device,
        threads: args.threads,
        lanes: args.lanes,
        transport: args.transport,
    };
    let staggered = [BenchTable::Staggered, BenchTable::StaggeredSolver];
    let layers = if args.tables.iter().any(|table| staggered.contains(table)) {
        Layers { border: 2, reach: REACH }
    } else {
        Layers::of_links(1)
    };
    start::in_pool(start::threads(&parallel, &**comm), || {
        for (n, &extents) in args.extents.iter().enumerate() {
            let domain = assemble::domain(&parallel, extents, layers, comm)?;
            let say = |line: &str| {
                if comm.rank() == 0 {
                    drop(report::say(line));
                }
            };
            if n == 0 {
                say(&format!("{}, halos {:?}", domain.device().backend().name(), domain.halo()));
            }
            let copy = copy_bandwidth(&domain)?;
            say(&format!(
                "{} on {} ranks as {}: copy {copy:.0} GB/s per rank (read and written)",
                shape(extents),
                comm.size(),
                shape(domain.partition().grid)
            ));
            for table in &args.tables {
                match table {
                    BenchTable::Wilson => operators::hops(&domain, copy, &say)?,
                    BenchTable::Clover => operators::clover(&domain, copy, &say)?,
                    BenchTable::Solver => solvers::solvers(&domain, args, &say)?,
                    BenchTable::Staggered => staggered::operator(&domain, copy, &say)?,
                    BenchTable::StaggeredSolver => staggered::table(&domain, args, &say)?,
                    BenchTable::DomainWall => domain_wall::operator(&domain, args, copy, &say)?,
                    BenchTable::DomainWallSolver => domain_wall::table(&domain, args, &say)?,
                }
            }
        }
        Ok(())
    })
}

/// Seconds per call by the device's clock: the best of several samples, on the slowest rank.
fn seconds(domain: &Domain, mut work: impl FnMut() -> Result<(), AppError>) -> Result<f64, AppError> {
    let mut sample = |repeats: usize| -> Result<f64, AppError> {
        domain.device().synchronize()?;
        domain.comm().barrier();
        let mut done = Ok(());
        let time = domain.device().elapsed(&mut || {
            for _ in 0..repeats {
                if done.is_ok() {
                    done = work();
                }
            }
        })?;
        done?;
        Ok(domain.comm().max(time / repeats as f64))
    };
    sample(1)?;
    let repeats = ((SAMPLE_SECONDS / sample(3)?) as usize).clamp(1, 10_000);
    (0..SAMPLES).try_fold(f64::MAX, |best, _| Ok(best.min(sample(repeats)?)))
}

/// The cost of a solve.
struct Timed {
    info: Info,
    /// Seconds on the slowest rank.
    seconds: f64,
    /// The same solve, synchronised with the device around the operator to show where the time goes.
    parts: Info,
}

impl Timed {
    /// GFLOP/s of this rank, for `flops` flops per application.
    fn speed(&self, flops: f64) -> f64 {
        self.info.applications as f64 * flops / self.info.seconds / 1e9
    }

    /// The percentage of the time.
    fn share(&self, part: impl Fn(&Info) -> f64) -> f64 {
        100.0 * part(&self.parts) / self.parts.seconds
    }
}

/// Times the second solve, since kernels are compiled in the first, and profiles a third.
fn timed(
    domain: &Domain,
    mut solve: impl FnMut() -> Result<Info, SolverError>,
) -> Result<Timed, SolverError> {
    let mut together = || {
        domain.comm().barrier();
        solve()
    };
    together()?;
    let info = together()?;
    domain.profile(true);
    let parts = together();
    domain.profile(false);
    Ok(Timed { seconds: domain.comm().max(info.seconds), info, parts: parts? })
}

/// Bandwidth in GB/s of copying a buffer much larger than caches; reads and writes both count.
fn copy_bandwidth(domain: &Domain) -> Result<f64, AppError> {
    let bytes = 1usize << if domain.device().backend().is_host() { 29 } else { 31 };
    let (mut to, from) = (domain.device().buffer(bytes)?, domain.device().buffer(bytes)?);
    let time = seconds(domain, || Ok(to.copy_from(&from)?))?;
    Ok(2.0 * bytes as f64 / time / 1e9)
}

fn random_links(domain: &Arc<Domain>) -> Result<MatrixField, AppError> {
    let mut links = MatrixField::new(domain, 4)?;
    links.set_random(RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Start })?;
    Ok(links)
}

/// The random numbers of the benchmarks' spinors.
fn probe(number: u8) -> RandomAddress {
    RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Probe(number) }
}
