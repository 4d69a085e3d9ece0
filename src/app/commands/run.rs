//! `hmc RUN.toml`.

use super::check;
use crate::app::RunOptions;
use crate::app::chain::driver::Driver;
use crate::app::chain::inputs;
use crate::app::machine::start;
use crate::app::{AppError, Ranks};
use crate::input;
use std::path::Path;

/// `hmc RUN.toml`: starts or resumes the chain of an input; with `check`, only prints the plan.
///
/// # Errors
/// Wrong input, a chain with other parameters, or any error during the run.
pub fn run(path: &Path, options: &RunOptions, comm: &Ranks) -> Result<(), AppError> {
    let ranks = options.ranks.unwrap_or(comm.size());
    let loaded = inputs::load(path, comm, |text, file| input::parse(text, file, ranks))?;
    let (mut input, options) = (loaded.input, *options);
    input.parallel.device = options.device.unwrap_or(input.parallel.device);
    if options.check {
        let work = || check::check(&input, loaded.warnings.len(), &options, comm);
        // Threads of ranks that are not there are not started.
        return if options.ranks.is_some() { work() } else { start::in_pool(&input.parallel, &**comm, work) };
    }
    let parallel = input.parallel.clone();
    start::in_pool(&parallel, &**comm, || Driver::new(input, options, comm)?.go())
}
