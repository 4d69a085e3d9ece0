//! A chain of an input that writes nothing, for `hmc bench trajectory` and `hmc tune`.

use super::{assemble, choose, inputs, rehearsal};
use crate::app::{AppError, Ranks, check_wires};
use crate::hmc::Chain;
use crate::input::{self, Input};
use std::path::Path;

/// Reads an input; its chain starts from `links` instead of at the run's start, if they are given.
///
/// # Errors
/// Wrong input.
pub(in crate::app) fn load(path: &Path, links: Option<&Path>, comm: &Ranks) -> Result<Input, AppError> {
    let mut input = inputs::load(path, comm, |text, file| input::parse(text, file, comm.size()))?.input;
    if let Some(path) = links {
        input.run.start = input::Start::File(path.into());
    }
    Ok(input)
}

/// The chain of an input, with its kernels compiled. Terms with `method = "auto"` choose it on the chain's first links.
///
/// # Errors
/// No device, a file that cannot be read, or memory runs out.
pub(in crate::app) fn chain(input: &Input, comm: &Ranks) -> Result<Chain, AppError> {
    let layers = assemble::layers(input, []);
    let domain = assemble::domain(&input.parallel, input.lattice(), layers, comm)?;
    rehearsal::prepare(input, &domain, comm, |line| eprintln!("{line}"))?;
    check_wires(&domain)?;
    let links = assemble::first_links(input, &domain, &**comm)?;
    let first = comm.rank() == 0;
    let tell = |line: &str| {
        if first {
            eprintln!("{line}");
        }
    };
    let input = choose::choose(input, &links, &**comm, tell)?;
    assemble::chain(&input, links)
}
