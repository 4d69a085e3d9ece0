//! The program around the floors below.
//!
//! - `error`: what ends the program, and with which exit code
//! - `launch`: how the process was started
//! - `start`: ranks, threads and devices
//! - `assemble`: a checked input as domain, chain and measurements
//! - `plan`: what `--check` prints of an input alone
//! - `memory`: what a run holds of a device's memory
//! - `run`: the driver of a chain
//! - `resume`: where a chain goes on, and what its records lack
//! - `repair`: makes missing records again
//! - `lock`: the lock of an ensemble's folder
//! - `job`: where this job runs, and the jobs of a chain
//! - `stop`: signals and wall time
//! - `version`: chains of other versions of the program
//! - `check`: whether a run would go, for `--check`
//! - `replay`: one trajectory from a state
//! - `report`: what a run says
//! - `measure`: observables as JSON
//! - `files`: `info`, `convert`, `compare`
//! - `bench`: speeds
//! - `kernels`: compiles every kernel for a GPU

mod assemble;
mod bench;
mod check;
mod error;
mod files;
mod job;
mod kernels;
mod launch;
mod lock;
mod measure;
mod memory;
mod plan;
mod repair;
mod replay;
mod report;
mod resume;
mod run;
mod start;
mod stop;
mod version;

pub use bench::{BenchArgs, BenchTable, BenchWall, bench};
pub use error::AppError;
pub use files::{compare, convert, info};
pub use kernels::kernels;
pub use measure::measure_files;
pub use memory::{domain_on, held_by};
pub use replay::{Out, places, replay, set_state, state_of};
pub use run::{Gaps, RunOptions, run};
pub use start::{Ranks, guard, start_ranks};
