//! A run's kernels, before it starts: the run is rehearsed on a counting device, and what it asks for is compiled on all
//! threads.

use super::version::PROGRAM;
use super::{AppError, Ranks, assemble, memory, start};
use crate::comm::{Echo, agree};
use crate::device::{Counting, Device, Instance, PretendSums, Record};
use crate::field::{Domain, Halo, MatrixField, Purpose, RandomAddress};
use crate::input::{Input, Start};
use std::sync::Arc;
use std::time::Instant;

/// Compiles the kernels of a run on `domain`'s device, if it is a GPU; `say` gets a line before and after. One rank of a
/// node compiles, and the others find what it has kept.
///
/// # Errors
/// The rehearsal's memory runs out; some rank failed.
pub(super) fn prepare(
    input: &Input,
    domain: &Domain,
    comm: &Ranks,
    say: impl Fn(&str),
) -> Result<(), AppError> {
    let backend = domain.device().backend();
    let run = format!("{PROGRAM} {:?} {:?}\n{}", domain.partition(), domain.halo(), input.text);
    // All ranks must agree on whether to take turns.
    if comm.max(f64::from(u8::from(!backend.is_prepared(&run)))) == 0.0 {
        return Ok(());
    }
    let (place, _) = start::place_on_node(&**comm);
    let start = Instant::now();
    for turn in [true, false] {
        let compiled = if (place == 0) == turn {
            rehearse(input, domain.halo(), comm).map(|instances| {
                say(&format!("kernels: {} are needed", instances.len()));
                backend.prepare(&run, &instances)
            })
        } else {
            Ok(0)
        };
        let compiled = agree(&**comm, compiled)?;
        if compiled > 0 {
            let seconds = start.elapsed().as_secs_f64();
            say(&format!("kernels: {compiled} compiled in {seconds:.1} s, tried in the first trajectory"));
        }
    }
    Ok(())
}

/// The kernels of a run of this input on a rank of `comm` with a GPU.
///
/// # Errors
/// A box is too small, or a rational function does not exist.
pub fn rehearse(input: &Input, halo: Halo, comm: &Ranks) -> Result<Vec<Instance>, AppError> {
    let (counting, record) = (Counting::gpu(), Arc::<Record>::default());
    let sums = Arc::clone(counting.sums());
    let alone: Ranks = Arc::new(Echo { size: comm.size() });
    let domain = memory::domain_on(input, Device::new(counting).recorded(&record), halo, &alone)?;
    let mut links = MatrixField::new(&domain, 4)?;
    if input.run.start == Start::Hot {
        links.set_random(RandomAddress { seed: 0, trajectory: 0, purpose: Purpose::Start })?;
    }
    let mut chain = assemble::chain(input, links)?;
    // All but the iterations of solves, which end at once.
    memory::walk(&mut chain, input)?;
    // Then the solves: of numbers without meaning, so that some fail, each time others.
    for place in (0..PretendSums::PLACES).step_by(3) {
        sums.begin(place);
        chain.ask_all();
        memory::observe(&chain.links, input, |_| Ok(()))?;
    }
    Ok(record.instances())
}
