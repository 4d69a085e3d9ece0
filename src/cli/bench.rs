//! The command line of `hmc bench`.

use clap::{Args, Subcommand, ValueEnum};
use hmc::app::{
    self, AppError, BENCH_TABLES, BenchArgs, BenchLattice, BenchTable, BenchTrajectory, BenchWall, Ranks,
    Scaling,
};
use hmc::family::Weights;
use hmc::field::Halo;
use hmc::input::DeviceChoice;
use hmc::solver::MultigridParams;
use std::path::PathBuf;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct BenchCli {
    #[command(subcommand)]
    of: Option<BenchOf>,
    /// Tables (wilson, clover, solver, multigrid, staggered, staggered-solver, domain-wall, domain-wall-solver, halo; the first three
    /// by default; 'all': all, without a lattice each on those of docs/performance.md; 'scaling': on 1, 2, 4 ... ranks, by
    /// default those of operators) and lattices, such as 16x16x16x32
    #[arg(value_parser = bench_item)]
    what: Vec<BenchItem>,
    /// CPU or GPU
    #[arg(long, value_enum, default_value = "auto")]
    device: DeviceName,
    /// Threads per rank
    #[arg(long)]
    threads: Option<usize>,
    /// SIMD lanes
    #[arg(long)]
    lanes: Option<usize>,
    /// Ranks in each direction, such as 1x1x1x2
    #[arg(long, value_parser = extents)]
    grid: Option<[usize; 4]>,
    /// Halos between GPUs, as the key of that name in [parallel]
    #[arg(long, value_enum, default_value = "auto")]
    transport: TransportName,
    /// Numbers of ranks for 'scaling', such as 1,2,8; speeds are relative to the first
    #[arg(long, value_delimiter = ',')]
    ranks: Vec<usize>,
    /// In 'scaling', lattices are those of one rank
    #[arg(long)]
    weak: bool,
    /// Links for the solvers (default: those of a short quenched chain at beta = 6)
    #[arg(long)]
    links: Option<PathBuf>,
    /// The solvers' Wilson quark
    #[arg(long, default_value_t = 0.1345)]
    kappa: f64,
    /// Its clover coefficient
    #[arg(long, default_value_t = 1.769)]
    c_sw: f64,
    /// Multigrid's aggregates
    #[arg(long, default_value = "4x4x4x4", value_parser = extents)]
    aggregate: [usize; 4],
    /// A third level: aggregates of so many of these, such as 2x2x2x2
    #[arg(long, value_parser = extents)]
    coarse_aggregate: Option<[usize; 4]>,
    /// Multigrid's vectors per aggregate and chirality, a multiple of 8
    #[arg(long, default_value_t = 24)]
    vectors: usize,
    /// The solvers' staggered or domain-wall quark
    #[arg(long, default_value_t = 0.01)]
    mass: f64,
    /// Slices of the domain-wall quark
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u8).range(4..=48))]
    slices: u8,
    /// Its weights: shamir, borici, mobius=B,C, optimal=LOW,HIGH or optimal-symmetric=LOW,HIGH
    #[arg(long, default_value = "shamir", value_parser = weights)]
    weights: Weights,
    /// The height of its wall
    #[arg(long, default_value_t = 1.8)]
    m5: f64,
    /// The solvers' relative residual
    #[arg(long, default_value_t = 1e-10)]
    residual: f64,
    /// Factor by which the residual falls between updates in mixed precision (default: 0.1 in half, 0.001 in
    /// single)
    #[arg(long)]
    delta: Option<f64>,
    /// The shortest time of a sample of an operator, of which the fastest of seven counts; 0: one application
    #[arg(long, default_value_t = 0.05, value_parser = sample_seconds)]
    sample_seconds: f64,
    /// One JSON document; the tables go to stderr
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum BenchOf {
    /// Whole trajectories of an input: seconds, iterations and forces by term. Nothing is written
    Trajectory {
        /// The input (TOML)
        input: PathBuf,
        /// The links to start from (default: as the input says)
        #[arg(long)]
        links: Option<PathBuf>,
        /// Their number; means are over all but the first
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
        trajectories: u64,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum TransportName {
    Auto,
    Staged,
    Peer,
    Nccl,
}

#[derive(Clone, Copy, ValueEnum)]
enum DeviceName {
    Auto,
    Cpu,
    Cuda,
    Emulated,
}

pub(super) fn extents(text: &str) -> Result<[usize; 4], String> {
    let numbers: Vec<usize> = text.split('x').filter_map(|n| n.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("expected four extents such as 16x16x16x32, found '{text}'"))
}

fn sample_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=60.0).contains(seconds));
    seconds.ok_or_else(|| format!("expected seconds from 0 to 60, found '{text}'"))
}

#[derive(Clone)]
enum BenchItem {
    All,
    Scaling,
    Table(&'static BenchTable),
    Lattice([usize; 4]),
}

fn bench_item(text: &str) -> Result<BenchItem, String> {
    let table = || BENCH_TABLES.iter().find(|table| table.word == text).map(BenchItem::Table);
    match text {
        "all" => Ok(BenchItem::All),
        "scaling" => Ok(BenchItem::Scaling),
        _ => table().or_else(|| extents(text).map(BenchItem::Lattice).ok()).ok_or_else(|| {
            let words: Vec<&str> = BENCH_TABLES.iter().map(|table| table.word).collect();
            let words = words.join(", ");
            format!("expected all, scaling, {words} or extents such as 16x16x16x16, found '{text}'")
        }),
    }
}

/// The weights of a domain-wall quark: a name, for some with two numbers.
fn weights(text: &str) -> Result<Weights, String> {
    let (name, numbers) = text.split_once('=').unwrap_or((text, ""));
    let pair = || {
        let (a, b) = numbers.split_once(',')?;
        Some([a.parse::<f64>().ok()?, b.parse::<f64>().ok()?])
    };
    let range = || pair().filter(|[low, high]| 0.0 < *low && low < high && high.is_finite());
    match name {
        "shamir" if numbers.is_empty() => Some(Weights::Shamir),
        "borici" if numbers.is_empty() => Some(Weights::Borici),
        "mobius" => pair()
            .filter(|[b, c]| 0.0 < *b && b.is_finite() && (0.0..=*b).contains(c))
            .map(|[b, c]| Weights::Mobius { b, c }),
        "optimal" => range().map(|spectrum| Weights::Optimal { spectrum, symmetric: false }),
        "optimal-symmetric" => range().map(|spectrum| Weights::Optimal { spectrum, symmetric: true }),
        _ => None,
    }
    .ok_or_else(|| {
        format!(
            "expected shamir, borici, mobius=B,C with 0 <= C <= B, optimal=LOW,HIGH or optimal-symmetric=LOW,HIGH \
             with 0 < LOW < HIGH, found '{text}'"
        )
    })
}

/// The tables and lattices of the command line.
fn bench_lattices(what: &[BenchItem], scales: bool) -> Vec<BenchLattice> {
    let (mut tables, mut extents) = (Vec::new(), Vec::new());
    let mut all = false;
    for item in what {
        match item {
            BenchItem::All => all = true,
            BenchItem::Scaling => {}
            BenchItem::Table(table) => tables.push(*table),
            BenchItem::Lattice(lattice) => extents.push(*lattice),
        }
    }
    match (all, extents.is_empty()) {
        (true, true) => return app::bench_everything(),
        (true, false) => tables = BENCH_TABLES.iter().collect(),
        (false, _) => {}
    }
    if tables.is_empty() {
        let is_usual = |table: &&BenchTable| if scales { table.scales } else { table.is_usual };
        tables = BENCH_TABLES.iter().filter(is_usual).collect();
    }
    if extents.is_empty() {
        extents = vec![[16; 4], [16, 16, 16, 32]];
    }
    extents.into_iter().map(|lattice| (lattice, tables.clone())).collect()
}

/// `hmc bench`
pub(super) fn bench(cli: BenchCli, ranks: &Ranks) -> Result<(), AppError> {
    let BenchCli {
        of,
        what,
        device,
        threads,
        lanes,
        grid,
        transport,
        ranks: counts,
        weak,
        links,
        kappa,
        c_sw,
        aggregate,
        coarse_aggregate,
        vectors,
        mass,
        slices,
        weights,
        m5,
        residual,
        delta,
        sample_seconds,
        json,
    } = cli;
    if let Some(BenchOf::Trajectory { input, links, trajectories, json }) = of {
        return app::bench_trajectory(&BenchTrajectory { input, links, trajectories, json }, ranks);
    }
    let device = match device {
        DeviceName::Auto => DeviceChoice::Auto,
        DeviceName::Cpu => DeviceChoice::Cpu,
        DeviceName::Cuda => DeviceChoice::Cuda,
        DeviceName::Emulated => DeviceChoice::Emulated,
    };
    let transport = match transport {
        TransportName::Auto => None,
        TransportName::Staged => Some(Halo::Staged),
        TransportName::Peer => Some(Halo::Peer),
        TransportName::Nccl => Some(Halo::Nccl),
    };
    let scales = what.iter().any(|item| matches!(item, BenchItem::Scaling)) || !counts.is_empty() || weak;
    let args = BenchArgs {
        lattices: bench_lattices(&what, scales),
        scaling: scales.then_some(Scaling { ranks: counts, weak }),
        json,
        device,
        threads,
        lanes,
        grid,
        transport,
        links,
        kappa,
        c_sw,
        multigrid: MultigridParams { block: aggregate, coarse_block: coarse_aggregate, vectors, steps: 6 },
        mass,
        wall: BenchWall { slices: slices.into(), weights, m5 },
        residual,
        delta,
        sample_seconds,
    };
    app::bench(&args, ranks)
}
