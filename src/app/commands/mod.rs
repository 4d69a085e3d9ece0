//! The commands that are a file each.
//!
//! - `run`: starts or resumes a chain
//! - `check`: whether a run could start, for `--check`
//! - `draft`: inputs to start from
//! - `measure`: observables on configurations
//! - `files`: `info`, `convert`, `compare`
//! - `replay`: one trajectory from a state
//! - `kernels`: compiles every kernel for a GPU

mod check;
mod draft;
pub(super) mod files;
mod kernels;
mod measure;
mod replay;
mod run;

pub use draft::{Draft, Twig, branch, init, schema};
pub use files::{compare, convert, info};
pub use kernels::kernels;
pub use measure::measure_files;
pub use replay::{Out, places, replay, set_state, state_of};
pub use run::run;
