//! The program, on top of the other modules. Each room uses those above it.
//!
//! - `error`: errors of the program, with exit codes
//! - `version`: this program's name in files, and chains from other versions
//! - `output`: results, warnings, and how numbers are shown
//! - `machine`: ranks, threads, devices and their tests
//! - `chain`: a chain in its folder
//! - `commands`: the commands that are a file each
//! - `ensemble`: `status` and `report`: what a chain's folder says of the chain
//! - `qcdml`: metadata for ILDG's catalogues
//! - `bench`: benchmarks
//! - `tune`: steps and schemes for an input
//! - `library`: configurations, quarks and measurements for other programs

mod bench;
mod chain;
mod commands;
mod ensemble;
mod error;
mod library;
mod machine;
mod output;
mod qcdml;
mod tune;
mod version;

pub use bench::{
    BENCH_TABLES, BenchArgs, BenchLattice, BenchTable, BenchTrajectory, BenchWall, Scaling, bench,
    bench_everything, bench_trajectory,
};
pub use chain::{Gaps, RunOptions, domain_on, held_by, rehearse};
pub use commands::{
    Draft, Out, Twig, branch, compare, convert, info, init, kernels, measure_files, places, replay, run,
    schema, set_state, state_of,
};
pub use ensemble::{ReportForm, page, report as report_ensemble, status};
pub use error::AppError;
pub use library::{LentQuark, Links, Session};
pub use machine::{Ranks, check_wires, guard, report_crashes, report_crashes_of, start_ranks};
pub use output::say_text;
pub use qcdml::{Qcdml, qcdml};
pub use tune::{Tune, tune};
