//! Where the program runs: ranks, threads, devices, and whether they can be trusted.
//!
//! - `job`: where this job runs, and since when
//! - `launch`: how the process was started
//! - `start`: ranks, threads and devices
//! - `placement`: the cores and network cards beside the GPU of a rank
//! - `crash`: what a process says when a fault or a panic ends it
//! - `self_test`: a test of each rank's device
//! - `wires`: a check of what GPUs write into each other's memory
//! - `energy`: what the devices of all ranks take

pub(super) mod crash;
pub(super) mod energy;
pub(super) mod job;
mod launch;
pub(super) mod placement;
pub(super) mod self_test;
pub(super) mod start;
mod wires;

pub use crash::{report_crashes, report_crashes_of};
pub use start::{Ranks, guard, start_ranks};
pub use wires::check_wires;
