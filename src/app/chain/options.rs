//! What a user says to a run beside its input.

use crate::input::DeviceChoice;

/// What to do about missing records of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Recreate them at any cost.
    Repair,
    /// Continue without them.
    Leave,
}

/// Options of `hmc RUN.toml`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Print the plan and what prevents the run, then stop.
    pub check: bool,
    /// With `check`: the ranks to plan for.
    pub ranks: Option<usize>,
    /// With `ranks`: how many of them are on a node; `None`: all.
    pub node_ranks: Option<usize>,
    /// The device, or with `check` that to plan for; `None`: the input's.
    pub device: Option<DeviceChoice>,
    /// With `check`: bytes of a GPU, or of a node of CPUs; `None`: of what is here.
    pub device_memory: Option<u64>,
    /// With `check`: print what the memory is used for.
    pub memory: bool,
    /// Report levels and terms of every trajectory.
    pub verbose: bool,
    /// Resume a chain from a version whose bits differ.
    pub accept_version: bool,
    /// What to do about missing records; `None`: recreate them if they are few, else stop.
    pub gaps: Option<Gaps>,
}
