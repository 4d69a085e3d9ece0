//! The command line.
//!
//! - `bench`: that of `hmc bench`
//! - `pages`: completions of shells, and the manual page
//! - `words`: words that are no command

mod bench;
mod pages;
mod words;

pub(super) use words::parse;

use bench::{BenchCli, bench, extents};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hmc::app::{self, AppError, Draft, Gaps, Out, Qcdml, Ranks, ReportForm, RunOptions, Tune, Twig};
use hmc::input::DeviceChoice;
use hmc::io::Told;
use hmc::lattice::TimeBoundary;
use std::path::PathBuf;

const AFTER: &str = "\
Exit codes: 0 done, also after SIGTERM, SIGINT, SIGUSR1, SIGHUP or the wall time; 2 wrong input or a run that is refused;
130 after a second SIGINT; 1 anything else.

Environment: HMC_CACHE names the folder of compiled GPU kernels and of tuned block sizes, HMC_NVRTC a libnvrtc.so to use;
SLURM_JOB_END_TIME, which Slurm sets, is when a run must have ended.

First steps: hmc init quickstart --write run.toml; hmc --check run.toml; hmc run.toml; hmc report ensembles/quickstart
The documentation is in docs/ of the source, from docs/tutorial.md on.";

/// Hybrid Monte Carlo for lattice QCD
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, arg_required_else_help = true, max_term_width = 120, after_help = AFTER)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Option<RunArgs>,
}

#[derive(clap::Args)]
struct RunArgs {
    /// The run's input (TOML)
    input: PathBuf,
    /// Print partition, memory, files and what prevents the run, then stop
    #[arg(long)]
    check: bool,
    /// With --check: plan for this many ranks, which need not exist
    #[arg(long, requires = "check", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// With --check and --ranks: so many ranks are on a node; halos between nodes take other memory. By default all
    #[arg(long, requires = "ranks", value_parser = clap::value_parser!(u32).range(1..))]
    node_ranks: Option<u32>,
    /// With --check: plan for this device in place of the input's; it need not be here
    #[arg(long, requires = "check", value_enum)]
    device: Option<DeviceName>,
    /// With --check: the memory of a GPU, or of a node of CPUs, such as 80GB (10^9 bytes) or 80GiB. By default that of what is here
    #[arg(long, requires = "check", value_name = "SIZE", value_parser = bytes)]
    device_memory: Option<u64>,
    /// With --check: print what the memory is used for
    #[arg(long, requires = "check")]
    memory: bool,
    /// Report levels and solves of every trajectory
    #[arg(long)]
    verbose: bool,
    /// Resume a chain from another version of the program even if bits have changed since
    #[arg(long)]
    accept_version: bool,
    /// If the history or the measurements have gaps: recreate them at any cost, or leave them
    #[arg(long, value_enum)]
    gaps: Option<GapsName>,
}

#[derive(Clone, Copy, ValueEnum)]
enum DeviceName {
    Cpu,
    Cuda,
}

#[derive(Clone, Copy, ValueEnum)]
enum GapsName {
    Repair,
    Leave,
}

impl RunArgs {
    fn options(&self) -> RunOptions {
        RunOptions {
            check: self.check,
            ranks: self.ranks.map(|n| n as usize),
            node_ranks: self.node_ranks.map(|n| n as usize),
            device: self.device.map(|device| match device {
                DeviceName::Cpu => DeviceChoice::Cpu,
                DeviceName::Cuda => DeviceChoice::Cuda,
            }),
            device_memory: self.device_memory,
            memory: self.memory,
            verbose: self.verbose,
            accept_version: self.accept_version,
            gaps: self.gaps.map(|gaps| match gaps {
                GapsName::Repair => Gaps::Repair,
                GapsName::Leave => Gaps::Leave,
            }),
        }
    }
}

#[derive(Args)]
struct DraftArgs {
    /// Change a key: KEY=VALUE, such as run.name=test or hmc.level.0.steps=8; or a table, such as 'parallel={threads=1}'
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write the input to this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Overwrite that file if it exists
    #[arg(long, requires = "write")]
    force: bool,
}

impl From<DraftArgs> for Draft {
    fn from(DraftArgs { set, write, force }: DraftArgs) -> Self {
        Self { set, write, force }
    }
}

#[derive(Subcommand)]
enum Command {
    /// Start a chain, or resume it (the same as `hmc RUN.toml`)
    Run(RunArgs),
    /// Print an input to start from, or a list of them
    Init {
        #[command(flatten)]
        draft: DraftArgs,
        /// Print the JSON schema of inputs, for editors
        #[arg(long, exclusive = true)]
        schema: bool,
        /// One of the list
        name: Option<String>,
    },
    /// Print the input of another chain that starts from a configuration, by the input that is stored in it
    Branch {
        #[command(flatten)]
        draft: DraftArgs,
        /// The name of the new chain's ensemble (default: the stored one; then --stream is wanted)
        #[arg(long)]
        name: Option<String>,
        /// Its name among the streams of the ensemble
        #[arg(long)]
        stream: Option<String>,
        /// Its seed (default: the next one that neither the stored input nor another stream has)
        #[arg(long)]
        seed: Option<u64>,
        /// A configuration or checkpoint of a chain
        configuration: PathBuf,
    },
    /// Describe a configuration
    Info {
        /// One JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        tell: Tell,
        /// A configuration in any format
        file: PathBuf,
    },
    /// Say in five lines where a chain stands, or in one each where streams of an ensemble do; they may be running
    Status {
        /// One JSON object: the numbers of a report
        #[arg(long)]
        json: bool,
        /// The folder of the ensemble
        folder: PathBuf,
    },
    /// Write a report on a chain, or on all streams of an ensemble, as one HTML page: histories, means with errors, autocorrelation
    /// times, advice
    Report {
        /// Print its numbers as one JSON object instead
        #[arg(long)]
        json: bool,
        /// Print the history as CSV instead; of streams all rows, after their names
        #[arg(long, conflicts_with_all = ["json", "from", "out"])]
        history: bool,
        /// Take means after this trajectory (default: a proposed one)
        #[arg(long)]
        from: Option<u64>,
        /// The page (default: report.html in the folder)
        #[arg(long)]
        out: Option<PathBuf>,
        /// The folder of the ensemble
        folder: PathBuf,
    },
    /// Measure observables on configurations
    Measure {
        /// What to measure (TOML): an input of `hmc measure` or of a run
        #[arg(long)]
        input: PathBuf,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
        /// Configurations in any format
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Convert a configuration; the extension of OUT selects the format: .h5 .milc .nersc .ildg .openqcd
    Convert {
        /// Overwrite OUT if it exists
        #[arg(long)]
        force: bool,
        /// With .ildg: the logical file name, lfn://GRID/PATH (default: a local one, lfn://hmc/OUT)
        #[arg(long, value_name = "LFN")]
        lfn: Option<String>,
        #[command(flatten)]
        tell: Tell,
        /// Take the sign of an antiperiodic boundary in time out of the links
        #[arg(long)]
        remove_boundary_sign: bool,
        /// A configuration in any format
        from: PathBuf,
        /// The file to write
        #[arg(value_name = "OUT")]
        to: PathBuf,
    },
    /// Write ILDG's metadata (QCDml 2.0) of an ensemble, and of those of its configurations that are ILDG files
    Qcdml {
        /// The ensemble's name in the catalogue, mc://GRID/PATH
        #[arg(long)]
        uri: String,
        /// The collaboration
        #[arg(long)]
        collaboration: String,
        /// The project
        #[arg(long)]
        project: String,
        /// Who made the configurations
        #[arg(long, value_name = "NAME")]
        participant: String,
        /// Where that person works, and where the machine stands
        #[arg(long)]
        institution: String,
        /// The address of the licence
        #[arg(long, value_name = "URI")]
        license: String,
        /// The machine (default: the host of the job)
        #[arg(long)]
        machine: Option<String>,
        /// Tells chains of one ensemble apart (default: the stream, else 1)
        #[arg(long)]
        series: Option<String>,
        /// Where to write (default: qcdml in the folder)
        #[arg(long)]
        out: Option<PathBuf>,
        /// Overwrite what is there
        #[arg(long)]
        force: bool,
        /// The folder of the ensemble
        folder: PathBuf,
    },
    /// Compare the links of two configurations: exit code 0 if equal to the bit, 1 if not
    Compare {
        #[command(flatten)]
        tell: Tell,
        /// A configuration
        a: PathBuf,
        /// Another one
        b: PathBuf,
    },
    /// Run one trajectory from a state of links, momenta and pseudofermions, without random numbers and Metropolis step
    Replay {
        /// One JSON object
        #[arg(long)]
        json: bool,
        /// Write the state after the trajectory
        #[arg(long)]
        out: Option<PathBuf>,
        /// Overwrite that file if it exists
        #[arg(long, requires = "out")]
        force: bool,
        /// The state (HDF5)
        state: PathBuf,
    },
    /// Propose steps, schemes, Hasenbusch masses and levels of terms for a run's input, from trajectories of it. Nothing of
    /// the run is written
    Tune {
        /// The input (TOML)
        input: PathBuf,
        /// Thermalised links to start from (default: as the input says)
        #[arg(long)]
        links: Option<PathBuf>,
        /// Trajectories of each trial; the variance of dH is known to sqrt(2 / N) of it
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1000))]
        trajectories: u64,
        /// The acceptance wanted
        #[arg(long, default_value_t = 0.85, value_parser = fraction)]
        acceptance: f64,
        /// Vary the Hasenbusch masses too
        #[arg(long)]
        masses: bool,
        /// Move terms of quarks to other levels too
        #[arg(long)]
        levels: bool,
        /// Write the input as proposed to this file
        #[arg(long)]
        write: Option<PathBuf>,
        /// Overwrite that file if it exists
        #[arg(long, requires = "write")]
        force: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure speeds on this machine
    Bench(Box<BenchCli>),
    /// Compile every kernel for GPUs and print registers and spills
    Kernels {
        /// GPU architectures
        #[arg(long, default_value = "sm_90")]
        arch: Vec<String>,
    },
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or that of a command, for `man -l -`
    Man {
        /// The command
        command: Option<String>,
    },
}

fn fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|x: &f64| 0.0 < *x && *x < 1.0);
    fraction.ok_or_else(|| format!("expected a number between 0 and 1, found '{text}'"))
}

/// A size in bytes: a number and its unit.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 6] = [
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("MiB", (1_u64 << 20) as f64),
        ("GiB", (1_u64 << 30) as f64),
        ("TiB", (1_u64 << 40) as f64),
    ];
    let of_unit =
        |(unit, size): (&str, f64)| Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * size);
    let found = UNITS.into_iter().find_map(of_unit).filter(|bytes| (1.0..1e18).contains(bytes));
    let expected = || format!("expected a size such as 80GB, 79.6GiB or 1.5TB, found '{text}'");
    found.map(|bytes| bytes as u64).ok_or_else(expected)
}

/// What a file may not say itself.
#[derive(Args, Debug)]
struct Tell {
    /// Extents x to t of links without a header, in ILDG's order, such as 8x8x8x16
    #[arg(long, value_name = "EXTENTS", value_parser = extents)]
    extents: Option<[usize; 4]>,
    /// How time ends between fixed walls: 'schroedinger PHI1 PHI2 PHI1' PHI2'' or 'open-schroedinger PHI1' PHI2''
    #[arg(long, value_name = "TEXT", default_value = "periodic", hide_default_value = true)]
    time_boundary: TimeBoundary,
}

impl Tell {
    fn told(self, has_boundary_sign: bool) -> Told {
        Told { extents: self.extents, time: self.time_boundary, has_boundary_sign }
    }
}

/// Work on files, which the first rank does for all.
fn once(ranks: &Ranks, work: impl FnOnce() -> Result<(), AppError>) -> Result<(), AppError> {
    if ranks.rank() == 0 { work() } else { Ok(()) }
}

/// Does what the command line asks for.
pub(super) fn perform(cli: Cli, ranks: &Ranks) -> Result<(), AppError> {
    match (cli.command, cli.run) {
        (Some(Command::Run(args)), _) | (None, Some(args)) => app::run(&args.input, &args.options(), ranks),
        (Some(Command::Info { json, tell, file }), _) => app::info(&file, json, &tell.told(false), ranks),
        (Some(Command::Init { schema: true, .. }), _) => once(ranks, app::schema),
        (Some(Command::Init { draft, name, .. }), _) => {
            once(ranks, || app::init(name.as_deref(), &draft.into()))
        }
        (Some(Command::Branch { draft, name, stream, seed, configuration }), _) => {
            once(ranks, || app::branch(&configuration, &Twig { name, stream, seed }, &draft.into()))
        }
        (Some(Command::Status { json, folder }), _) => once(ranks, || app::status(&folder, json)),
        (Some(Command::Report { json, history, from, out, folder }), _) => {
            let form = match (json, history) {
                (true, _) => ReportForm::Json,
                (_, true) => ReportForm::History,
                _ => ReportForm::Page(out),
            };
            once(ranks, || app::report_ensemble(&folder, from, &form))
        }
        (Some(Command::Measure { input, json, files }), _) => app::measure_files(&input, &files, json, ranks),
        (Some(Command::Convert { force, lfn, tell, remove_boundary_sign, from, to }), _) => {
            app::convert(&from, &to, force, lfn, &tell.told(remove_boundary_sign), ranks)
        }
        (
            Some(Command::Qcdml {
                uri,
                collaboration,
                project,
                participant,
                institution,
                license,
                machine,
                series,
                out,
                force,
                folder,
            }),
            _,
        ) => {
            let told = Qcdml {
                folder,
                uri,
                collaboration,
                project,
                participant,
                institution,
                license,
                machine,
                series,
                out,
                force,
            };
            once(ranks, || app::qcdml(&told))
        }
        (Some(Command::Replay { json, out, force, state }), _) => {
            app::replay(&state, out.map(|path| Out { path, force }).as_ref(), json, ranks)
        }
        (Some(Command::Compare { tell, a, b }), _) => app::compare(&a, &b, &tell.told(false), ranks),
        (
            Some(Command::Tune {
                input,
                links,
                trajectories,
                acceptance,
                masses,
                levels,
                write,
                force,
                json,
            }),
            _,
        ) => {
            let told = Tune { input, links, trajectories, acceptance, masses, levels, write, force, json };
            app::tune(&told, ranks)
        }
        (Some(Command::Bench(cli)), _) => bench(*cli, ranks),
        (Some(Command::Kernels { arch }), _) => app::kernels(&arch),
        (Some(Command::Completions { shell }), _) => once(ranks, || pages::completions(shell)),
        (Some(Command::Man { command }), _) => once(ranks, || pages::manual(command.as_deref())),
        (None, None) => Ok(()),
    }
}
