//! What a run holds of a device's memory: its chain is made and walks a trajectory, on any device. On one that counts and
//! does nothing else that takes seconds, whatever the lattice, and no rank has to be there.

use super::assemble::{self, Layers};
use super::{AppError, Ranks, measure, start};
use crate::comm::Echo;
use crate::device::{Counting, Device, Held, gpu_count};
use crate::field::{Domain, Halo, MatrixField};
use crate::input::{DeviceChoice, Input};
use crate::lattice::Partition;
use crate::measure::{Flow, Measure, MeasureError, Noise};
use crate::operator::GaugeLoops;
use std::cell::Cell;
use std::sync::Arc;

/// The domain of a run's rank on `device`.
///
/// # Errors
/// No grid fits; a box is too small for the device's lanes.
pub fn domain_on(input: &Input, device: Device, halo: Halo, comm: &Ranks) -> Result<Arc<Domain>, AppError> {
    let Layers { border, reach } = assemble::layers(input, [&input.measure]);
    let partition = start::partition(&input.parallel, input.extents, &**comm)?;
    start::require_lanes(&partition, device.lanes(), reach)?;
    Ok(Domain::new(partition, device, Arc::clone(comm), border, halo)?)
}

/// Makes the chain of an input, walks its first trajectory from `links`, measures, and writes a checkpoint as far as the
/// device has a part in it. Returns what the links' device has held at most.
///
/// # Errors
/// No room; a term or a solve failed.
pub fn held_by(input: &Input, links: MatrixField) -> Result<Held, AppError> {
    let domain = Arc::clone(links.domain());
    let mut chain = assemble::chain(input, links)?;
    let failed = |source| AppError::Trajectory { number: 1, source };
    if input.hmc.reversibility_every != 0 {
        chain.reversibility(0).map_err(failed)?;
    }
    chain.trajectory(0, true).map_err(failed)?;
    chain.links.unitarity(false)?;
    GaugeLoops::traces(&chain.links)?;
    let label = domain.device().label("links in the order of files");
    drop(chain.links.natural()?);
    drop(label);
    let _label = domain.device().label("measurement");
    for part in parts(&input.measure) {
        // The steps of a flow take no more than the first one.
        let steps = Cell::new(0);
        let stop = || steps.replace(steps.get() + 1) > 0 && !part.of_kind::<Flow>().is_empty();
        let noise = Noise { seed: input.run.seed, trajectory: 1 };
        match measure::observables(&chain.links, &part, &input.fermions, noise, &stop) {
            Ok(_) | Err(AppError::Measure(MeasureError::Stopped)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(domain.device().held())
}

/// Every measurement that is ever due, alone.
fn parts(all: &Measure) -> Vec<Measure> {
    if all.every == 0 {
        return Vec::new();
    }
    let alone = |one| Measure { observables: vec![one], every: all.every };
    all.observables.iter().cloned().map(alone).collect()
}

/// The device that a run's memory is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Cpu,
    Gpu,
}

impl Counted {
    /// That of an input: where it takes what there is, what is here.
    pub fn of(input: &Input) -> Self {
        match input.parallel.device {
            DeviceChoice::Cuda => Self::Gpu,
            DeviceChoice::Auto if gpu_count().is_ok() => Self::Gpu,
            DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Emulated => Self::Cpu,
        }
    }
}

/// What a rank of `ranks` will hold; none of them has to be there.
///
/// # Errors
/// A box is too small, or has more sites than a rank takes; a rational function that cannot be made.
pub(super) fn count(input: &Input, partition: &Partition, ranks: usize) -> Result<Held, AppError> {
    partition.check_sites(0)?;
    let reach = assemble::layers(input, [&input.measure]).reach;
    let (device, halo) = match (Counted::of(input), input.parallel.transport) {
        (Counted::Gpu, transport) => (Counting::gpu(), transport.unwrap_or(Halo::Peer)),
        (Counted::Cpu, _) if input.parallel.device == DeviceChoice::Emulated => {
            (Counting::cpu(1), Halo::Staged)
        }
        (Counted::Cpu, _) => (Counting::cpu(start::lanes(&input.parallel, partition, reach)), Halo::Staged),
    };
    let comm: Ranks = Arc::new(Echo { size: ranks });
    let domain = domain_on(input, Device::new(device), halo, &comm)?;
    let label = domain.device().label("links");
    // What they are is of no matter here.
    let links = MatrixField::new(&domain, 4)?;
    drop(label);
    held_by(input, links)
}
