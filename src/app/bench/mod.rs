//! `hmc bench`: the speed of operators and solvers on this device, compared with the limit by its memory bandwidth.
//!
//! - `operators`: the hopping term and the clover operator, in every storage
//! - `solvers`: time to solution
//! - `staggered`: the operator of improved staggered quarks, and its solvers
//! - `halo`: exchanges between ranks
//! - `domain_wall`: the operator of domain-wall quarks, its parts, and its solvers
//! - `scaling`: tables on several numbers of ranks
//! - `rows`: the rows of these tables, as lines and as JSON
//! - `trajectory`: whole trajectories of an input

mod domain_wall;
mod halo;
mod multigrid;
mod operators;
mod rows;
mod scaling;
mod solvers;
mod staggered;
mod trajectory;

pub use domain_wall::BenchWall;
pub use scaling::Scaling;
pub use trajectory::{BenchTrajectory, bench_trajectory};
pub(super) use trajectory::{TermRow, say_terms, term_rows};

use crate::app::chain::assemble;
use crate::app::chain::assemble::Layers;
use crate::app::machine::energy::Meter;
use crate::app::machine::start;
use crate::app::{AppError, Ranks};
use crate::device::Precision;
use crate::family::REACH;
use crate::field::{Domain, Halo, MatrixField, Purpose, RandomAddress};
use crate::input::{DeviceChoice, Parallel};
use crate::lattice::Extents;
use crate::solver::{Info, Method, MultigridParams, Settings, SolverError};
use rows::{Bench, Rows};
use std::path::PathBuf;
use std::sync::Arc;

/// A table.
pub struct BenchTable {
    /// Its word on the command line.
    pub word: &'static str,
    /// Whether it is made where none is asked for.
    pub is_usual: bool,
    /// Whether the usual table of several numbers of ranks has it.
    pub scales: bool,
    /// The lattices of all tables on which it is made, by their numbers in [`LATTICES`].
    on: &'static [usize],
    /// Whether it has hops over three sites.
    reaches_far: bool,
    make: fn(&mut Bench) -> Result<(), AppError>,
}

/// The lattices of all tables: each family's on two, domain walls on one of the size that they run on.
const LATTICES: [Extents; 5] = [[16; 4], [32; 4], [32, 32, 32, 8], [64, 64, 64, 16], [16, 16, 16, 32]];

const fn table(
    word: &'static str,
    on: &'static [usize],
    make: fn(&mut Bench) -> Result<(), AppError>,
) -> BenchTable {
    BenchTable { word, is_usual: false, scales: false, on, reaches_far: false, make }
}

/// All tables: the hopping term, the even-odd operator and its solvers of each family; multigrid by level; halos of all
/// families, sums and messages between ranks.
pub static BENCH_TABLES: [BenchTable; 9] = [
    BenchTable { reaches_far: true, ..table("halo", &[0], halo::table) },
    BenchTable { is_usual: true, scales: true, ..table("wilson", &[0, 1], operators::hops) },
    BenchTable { is_usual: true, scales: true, ..table("clover", &[0, 1], operators::clover) },
    BenchTable { is_usual: true, ..table("solver", &[0, 1], solvers::solvers) },
    table("multigrid", &[1], multigrid::table),
    BenchTable { scales: true, reaches_far: true, ..table("staggered", &[2, 3], staggered::operator) },
    BenchTable { reaches_far: true, ..table("staggered-solver", &[2, 3], staggered::table) },
    BenchTable { scales: true, ..table("domain-wall", &[4], domain_wall::operator) },
    table("domain-wall-solver", &[4], domain_wall::table),
];

/// A lattice, and the tables that are made on it.
pub type BenchLattice = (Extents, Vec<&'static BenchTable>);

/// All tables, each on its lattices.
pub fn bench_everything() -> Vec<BenchLattice> {
    let tables = |n: usize| BENCH_TABLES.iter().filter(|table| table.on.contains(&n)).collect();
    LATTICES.iter().enumerate().map(|(n, extents)| (*extents, tables(n))).collect()
}

/// What to measure.
#[derive(Clone)]
pub struct BenchArgs {
    /// What is measured.
    pub lattices: Vec<BenchLattice>,
    /// On several numbers of ranks; `None`: on all ranks.
    pub scaling: Option<Scaling>,
    /// One JSON document; the lines of the tables go to stderr.
    pub json: bool,
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
    /// Its multigrid.
    pub multigrid: MultigridParams,
    /// The staggered or domain-wall quark.
    pub mass: f64,
    /// The other parameters of the domain-wall quark.
    pub wall: BenchWall,
    /// The solvers' relative residual.
    pub residual: f64,
    /// The factor by which the residual falls between updates; `None`: as in runs.
    pub delta: Option<f64>,
    /// The shortest time of a sample in seconds. Of several samples the fastest counts.
    pub sample_seconds: f64,
}

impl BenchArgs {
    /// Settings of `method` with these precisions: of updates, of the iteration, of the preconditioner.
    fn settings(&self, method: Method, precisions: [Precision; 3]) -> Settings {
        let delta = self.delta.unwrap_or_else(|| method.usual_delta(precisions));
        Settings { method, precisions, delta, max_iterations: MAX_ITERATIONS }
    }
}

/// The number of samples, of which the best counts.
const SAMPLES: usize = 7;

/// The shortest time over which energy is counted, in seconds: the counters of GPUs are updated every 20 to 100 ms.
const ENERGY_SECONDS: f64 = 0.5;

const MAX_ITERATIONS: usize = 50_000;

/// Prints the tables. If one fails, the JSON document has the rows before it.
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
        self_test: false,
    };
    start::in_pool(&parallel, &**comm, || {
        let mut rows = Rows::new(args.json, comm.rank(), comm.size());
        let done = match &args.scaling {
            Some(scaling) => scaled(scaling, args, &parallel, comm, &mut rows),
            None => tables(args, &parallel, comm, &mut rows),
        };
        rows.end()?;
        done
    })
}

/// All tables on each of some numbers of ranks; the others wait.
fn scaled(
    scaling: &Scaling,
    args: &BenchArgs,
    parallel: &Parallel,
    comm: &Ranks,
    rows: &mut Rows,
) -> Result<(), AppError> {
    for count in scaling.counts(args, comm.size())? {
        if let Some(part) = comm.first(count) {
            let grid = scaling.grid(count);
            let on = |(extents, tables): &BenchLattice| {
                let lattice = grid.map_or(*extents, |grid| std::array::from_fn(|mu| grid[mu] * extents[mu]));
                (lattice, tables.clone())
            };
            let args = BenchArgs { lattices: args.lattices.iter().map(on).collect(), ..args.clone() };
            rows.scale(count, grid);
            tables(&args, &Parallel { grid, ..parallel.clone() }, &part, rows)?;
        }
        comm.barrier();
    }
    Ok(())
}

/// All tables on all lattices.
fn tables(args: &BenchArgs, parallel: &Parallel, comm: &Ranks, rows: &mut Rows) -> Result<(), AppError> {
    for (extents, tables) in &args.lattices {
        let layers = if tables.iter().any(|table| table.reaches_far) {
            Layers { border: 2, reach: REACH }
        } else {
            Layers::of_links(1)
        };
        let domain = &assemble::domain(parallel, *extents, layers, comm)?;
        let copy = copy_bandwidth(domain, args.sample_seconds)?;
        rows.lattice(domain, copy);
        let counts_energy = Meter::start(domain).joules(domain).is_some();
        let mut bench = Bench { domain, args, copy, counts_energy, rows };
        for table in tables {
            (table.make)(&mut bench)?;
        }
    }
    Ok(())
}

/// Seconds per call by the device's clock: the best of several samples of `least` seconds or more, on the slowest rank.
fn seconds(
    domain: &Domain,
    least: f64,
    mut work: impl FnMut() -> Result<(), AppError>,
) -> Result<f64, AppError> {
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
    let repeats = ((least / sample(3)?) as usize).clamp(1, 10_000);
    (0..SAMPLES).try_fold(f64::MAX, |best, _| Ok(best.min(sample(repeats)?)))
}

/// The cost of a solve.
struct Timed {
    info: Info,
    /// Seconds on the slowest rank.
    seconds: f64,
    /// Energy of all devices, if they count it.
    joules: Option<f64>,
    /// The same solve, synchronised with the device around the operator to show where the time goes.
    parts: Info,
}

/// How often work of so many seconds is done to count its energy.
fn energy_repeats(seconds: f64) -> usize {
    ((ENERGY_SECONDS / seconds).ceil() as usize).clamp(1, 1_000_000)
}

/// Times the second solve, since kernels are compiled in the first, and profiles one more. Where energy is counted, short
/// solves are repeated.
fn timed(
    domain: &Domain,
    counts_energy: bool,
    mut solve: impl FnMut() -> Result<Info, SolverError>,
) -> Result<Timed, SolverError> {
    let mut together = || {
        domain.comm().barrier();
        solve()
    };
    together()?;
    let meter = Meter::start(domain);
    let info = together()?;
    let seconds = domain.comm().max(info.seconds);
    let repeats = if counts_energy { energy_repeats(seconds) } else { 1 };
    (1..repeats).try_for_each(|_| together().map(drop))?;
    let joules = meter.joules(domain).map(|joules| joules / repeats as f64);
    domain.profile(true);
    let parts = together();
    domain.profile(false);
    Ok(Timed { seconds, joules, info, parts: parts? })
}

/// Bandwidth in GB/s of copying a buffer much larger than caches; reads and writes both count.
fn copy_bandwidth(domain: &Domain, least: f64) -> Result<f64, AppError> {
    let bytes = 1usize << if domain.device().nature().is_gpu { 31 } else { 29 };
    let (mut to, from) = (domain.device().buffer(bytes)?, domain.device().buffer(bytes)?);
    let time = seconds(domain, least, || Ok(to.copy_from(&from)?))?;
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
