//! The program around the floors below.
//!
//! - `error`: what ends the program, and with which exit code
//! - `start`: ranks, threads and devices
//! - `assemble`: a checked input as domain, chain and measurements
//! - `terms`: a checked input's terms of the Hamiltonian
//! - `plan`: what `--check` prints
//! - `run`: the driver of a chain
//! - `report`: lines and progress of a run
//! - `measure`: observables as JSON
//! - `files`: `info`, `convert`, `compare`
//! - `bench`: speeds
//! - `kernels`: compiles every kernel for a GPU

mod assemble;
mod bench;
mod error;
mod files;
mod kernels;
mod measure;
mod plan;
mod report;
mod run;
mod start;
mod terms;

pub use bench::{BenchArgs, BenchTable, bench};
pub use error::AppError;
pub use files::{compare, convert, info};
pub use kernels::kernels;
pub use measure::measure_files;
pub use run::run;
pub use start::{Ranks, guard, start_ranks};
