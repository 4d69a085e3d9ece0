//! The program, on top of the other modules.
//!
//! - `error`: errors of the program, with exit codes
//! - `launch`: how the process was started
//! - `crash`: what a process says when a fault or a panic ends it
//! - `library`: configurations, quarks and measurements for other programs
//! - `start`: ranks, threads and devices
//! - `placement`: the cores and network cards beside the GPU of a rank
//! - `assemble`: domain, chain and measurements from a checked input
//! - `plan`: the part of `--check` that depends only on the input
//! - `memory`: the device memory of a run
//! - `choose`: trials of methods for terms with "auto"
//! - `draft`: inputs to start from
//! - `dry`: a chain that writes nothing
//! - `inputs`: inputs, read by rank 0 for all ranks
//! - `rehearsal`: the kernels of a run, compiled before it starts
//! - `drill`: bits that are falsified on request, to see what finds them
//! - `self_test`: a test of each rank's device
//! - `wires`: a check of what GPUs write into each other's memory
//! - `run`: the driver of a chain
//! - `walk`: its trajectories, their rows and their verification
//! - `resume`: where a chain continues, and which records are missing
//! - `kept`: the inputs of a chain in its folder
//! - `streams`: chains that share the folder of an ensemble
//! - `repair`: recreates missing records
//! - `lock`: the lock of an ensemble's folder
//! - `job`: where this job runs, and the jobs of a chain
//! - `stop`: signals and wall time
//! - `version`: chains from other versions of the program
//! - `check`: whether a run could start, for `--check`
//! - `replay`: one trajectory from a state
//! - `report`: the output of a run
//! - `energy`: what the devices of all ranks take
//! - `measure`: observables as JSON
//! - `ensemble`: `status` and `report`: what a chain's folder says of the chain
//! - `files`: `info`, `convert`, `compare`
//! - `qcdml`: metadata for ILDG's catalogues
//! - `bench`: benchmarks
//! - `tune`: steps and schemes for an input
//! - `kernels`: compiles every kernel for a GPU

mod assemble;
mod bench;
mod check;
mod choose;
mod crash;
mod draft;
mod drill;
mod dry;
mod energy;
mod ensemble;
mod error;
mod files;
mod inputs;
mod job;
mod kept;
mod kernels;
mod launch;
mod library;
mod lock;
mod measure;
mod memory;
mod placement;
mod plan;
mod qcdml;
mod rehearsal;
mod repair;
mod replay;
mod report;
mod resume;
mod run;
mod self_test;
mod start;
mod stop;
mod streams;
mod tune;
mod version;
mod walk;
mod wires;

pub use bench::{
    BenchArgs, BenchLattice, BenchTable, BenchTrajectory, BenchWall, Scaling, bench, bench_everything,
    bench_trajectory,
};
pub use crash::{report_crashes, report_crashes_of};
pub use draft::{Draft, Twig, branch, init, schema};
pub use ensemble::{ReportForm, page, report as report_ensemble, status};
pub use error::AppError;
pub use files::{compare, convert, info};
pub use kernels::kernels;
pub use library::{LentQuark, Links, Session};
pub use measure::measure_files;
pub use memory::{domain_on, held_by};
pub use qcdml::{Qcdml, qcdml};
pub use rehearsal::rehearse;
pub use replay::{Out, places, replay, set_state, state_of};
pub use report::say_text;
pub use run::{Gaps, RunOptions, run};
pub use start::{Ranks, guard, start_ranks};
pub use tune::{Tune, tune};
pub use wires::check_wires;
