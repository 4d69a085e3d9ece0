//! A run's kernels, before it starts: the run is rehearsed on a counting device, and what it asks for is compiled on all
//! threads.

use super::{assemble, memory};
use crate::app::machine::placement;
use crate::app::machine::self_test::rehearse_self_test;
use crate::app::version::PROGRAM;
use crate::app::{AppError, Ranks};
use crate::comm::{Echo, agree};
use crate::device::{Counting, Device, Instance, PretendSums, Record};
use crate::field::{Domain, MatrixField, Purpose, RandomAddress, Transports};
use crate::input::{Input, Start};
use crate::measure::Wanted;
use crate::quark::fields;
use std::sync::Arc;
use std::time::Instant;

/// Compiles the kernels of a run on `domain`'s device, if it is a GPU; `say` gets a line before and after. One rank of a
/// node compiles, and the others, whose boxes are alike, find what it has kept.
///
/// # Errors
/// The ranks lost each other.
pub(super) fn prepare(
    input: &Input,
    domain: &Domain,
    comm: &Ranks,
    say: impl Fn(&str),
) -> Result<(), AppError> {
    let compiler = domain.device().backend().compiler();
    let (grid, transports, chosen) = (domain.partition().grid, domain.transports(), input.choices());
    let run = format!("{PROGRAM} {grid:?} {transports} {chosen:?}\n{}", input.text);
    let (place, _) = placement::place_on_node(&**comm);
    if let Some(compiler) = compiler.filter(|compiler| place == 0 && !compiler.is_prepared(&run)) {
        let start = Instant::now();
        match rehearse(input, transports.clone(), comm) {
            Ok(instances) => {
                say(&format!("kernels: {} are needed", instances.len()));
                let compiled = compiler.prepare(&run, &instances);
                let seconds = start.elapsed().as_secs_f64();
                say(&format!(
                    "kernels: {compiled} compiled in {seconds:.1} s, in all block sizes to be tried"
                ));
            }
            // Whether it keeps the run from starting is not for the rehearsal to say.
            Err(error) => {
                say(&format!("kernels: compiled as they are needed, since the rehearsal says: {error}"));
            }
        }
    }
    agree(&**comm, Ok::<(), AppError>(()))
}

/// Solves for fewer systems than measurements solve at once: which of them converge first, and leave the others, depends on
/// numbers.
fn solve_fewer(links: &MatrixField, input: &Input, sums: &PretendSums) -> Result<(), AppError> {
    let has_quarks = input.measure.observables.iter().any(|observable| observable.list().is_some());
    if input.measure.every == 0 || !has_quarks {
        return Ok(());
    }
    let wanted = Wanted { mass: Some(0.1), twisted_mass: None, naik_epsilon: 0.0, residual: 1e-8 };
    for fermion in &input.fermions {
        let Ok(mut quark) = fermion.inverse(links, wanted) else { continue };
        for count in 1..=quark.together() {
            let new = || fields(links.domain(), quark.kind(), count * quark.flavours());
            let (mut x, b) = (new()?, new()?);
            sums.begin(0);
            // Whether it converges does not matter here.
            let _ = quark.solve(&mut x, &b);
        }
    }
    Ok(())
}

/// The kernels of a run of this input on a rank of `comm` with a GPU; where a term still has to choose its method, those
/// of all candidates.
///
/// # Errors
/// A box is too small, or a rational function does not exist.
pub fn rehearse(
    input: &Input,
    transports: impl Into<Transports>,
    comm: &Ranks,
) -> Result<Vec<Instance>, AppError> {
    let transports = transports.into();
    let record = Arc::<Record>::default();
    let alone: Ranks = Arc::new(Echo { size: comm.size() });
    for choices in input.all_choices() {
        let input = &input.with_choices(&choices)?;
        let counting = Counting::gpu();
        let sums = Arc::clone(counting.sums());
        let device = Device::new(counting).recorded(&record);
        let domain = memory::domain_on(input, device, transports.clone(), &alone)?;
        if input.parallel.self_test {
            rehearse_self_test(domain.device())?;
        }
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
            // On a large lattice a measurement's tables of sites take seconds.
            if place.is_multiple_of(12) {
                memory::observe(&chain.links, input, |_| Ok(()))?;
            }
        }
        solve_fewer(&chain.links, input, &sums)?;
    }
    Ok(record.instances())
}
