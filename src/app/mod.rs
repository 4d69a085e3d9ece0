//! The program around the floors below.
//!
//! - `error`: what ends the program, and with which exit code
//! - `launch`: how the process was started
//! - `start`: ranks, threads and devices
//! - `assemble`: a checked input as domain, chain and measurements
//! - `terms`: a checked input's terms of the Hamiltonian
//! - `rooted`: the term of staggered quarks
//! - `plan`: what `--check` prints
//! - `run`: the driver of a chain
//! - `replay`: one trajectory from a state
//! - `report`: lines and progress of a run
//! - `measure`: observables as JSON
//! - `files`: `info`, `convert`, `compare`
//! - `bench`: speeds
//! - `kernels`: compiles every kernel for a GPU

mod assemble;
mod bench;
mod domain_wall;
mod error;
mod files;
mod kernels;
mod launch;
mod measure;
mod plan;
mod replay;
mod report;
mod rooted;
mod run;
mod start;
mod terms;

pub use bench::{BenchArgs, BenchTable, BenchWall, bench};
pub use error::AppError;
pub use files::{compare, convert, info};
pub use kernels::kernels;
pub use measure::measure_files;
pub use replay::{places, replay, set_state, state_of};
pub use run::run;
pub use start::{Ranks, guard, start_ranks};
