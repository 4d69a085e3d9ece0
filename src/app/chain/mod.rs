//! A chain in its folder, from the input to the last trajectory.
//!
//! Before it starts:
//! - `inputs`: inputs, read by rank 0 for all ranks
//! - `plan`: the part of `--check` that depends only on the input
//! - `assemble`: domain, chain and measurements from a checked input
//! - `memory`: the device memory of a run
//! - `rehearsal`: the kernels of a run, compiled before it starts
//! - `choose`: trials of methods for terms with "auto"
//! - `dry`: a chain that writes nothing
//!
//! What its folder holds:
//! - `lock`: the lock of the folder
//! - `jobs`: the jobs of the chain
//! - `kept`: its inputs
//! - `streams`: chains that share the folder of an ensemble
//! - `resume`: where it continues, and which records are missing
//! - `repair`: recreates missing records
//!
//! Its work:
//! - `options`: what a user says beside the input
//! - `opening`: the start of a run in steps
//! - `driver`: writes, measures, saves, and stops on request
//! - `walk`: its trajectories, their rows and their verification
//! - `measure`: measurements on the links of one configuration
//! - `stop`: signals and wall time
//! - `report`: the log

pub(super) mod assemble;
mod choose;
pub(super) mod driver;
pub(super) mod dry;
pub(super) mod inputs;
pub(super) mod jobs;
pub(super) mod kept;
pub(super) mod lock;
pub(super) mod measure;
pub(super) mod memory;
mod opening;
mod options;
pub(super) mod plan;
mod rehearsal;
mod repair;
mod report;
pub(super) mod resume;
mod stop;
pub(super) mod streams;
mod walk;

pub use memory::{domain_on, held_by};
pub use options::{Gaps, RunOptions};
pub use rehearsal::rehearse;
