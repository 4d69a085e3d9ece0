//! The memory of a run: makes its chain and runs a trajectory, on any device. On a counting device this takes seconds for
//! any lattice, without the other ranks.

use super::assemble::{self, Layers};
use super::measure;
use crate::app::machine::start;
use crate::app::{AppError, Ranks};
use crate::comm::Echo;
use crate::device::{Counting, Device, Held, HostRoom, gpu_count};
use crate::field::{Domain, Halo, LINK_REALS, MatrixField, Transports};
use crate::hmc::Chain;
use crate::input::{DeviceChoice, Input};
use crate::io;
use crate::lattice::{Partition, volume};
use crate::measure::{Flow, Measure, MeasureError, Noise};
use crate::operator::GaugeLoops;
use std::cell::Cell;
use std::sync::Arc;

/// The domain of a run's rank on `device`.
///
/// # Errors
/// No grid fits; a box is too small for the device's lanes.
pub fn domain_on(
    input: &Input,
    device: Device,
    transports: impl Into<Transports>,
    comm: &Ranks,
) -> Result<Arc<Domain>, AppError> {
    let Layers { border, reach } = assemble::layers(input, [&input.measure]);
    let partition = start::partition(&input.parallel, input.lattice(), &**comm)?;
    start::require_lanes(&partition, &device, reach)?;
    Ok(Domain::new(partition, device, Arc::clone(comm), border, transports.into())?)
}

/// Makes the chain of an input, runs its first trajectory from `links`, measures, and takes the memory of a checkpoint.
/// Returns the maximum memory that was held.
///
/// # Errors
/// A term or a solve failed, or memory runs out.
pub fn held_by(input: &Input, links: MatrixField) -> Result<Held, AppError> {
    let domain = Arc::clone(links.domain());
    walk(&mut assemble::chain(input, links)?, input)?;
    Ok(domain.device().held())
}

/// The first trajectory, a measurement, and the memory of a checkpoint.
///
/// # Errors
/// A term or a solve failed, or memory runs out.
pub(super) fn walk(chain: &mut Chain, input: &Input) -> Result<(), AppError> {
    let device = chain.links.domain().device().clone();
    let failed = |source| AppError::Trajectory { number: 1, source };
    if input.hmc.reversibility_every != 0 {
        chain.reversibility(0).map_err(failed)?;
    }
    // A trajectory is verified beside the links before it and after it, and those of the second walk are compared.
    let copies = if input.hmc.verify_every == 0 { 0 } else { 2 };
    let copies: Vec<HostRoom> = (0..copies).map(|_| on_host(&chain.links)).collect::<Result<_, _>>()?;
    chain.trajectory(0, true).map_err(failed)?;
    drop(on_host(&chain.links)?);
    drop(copies);
    chain.links.unitarity(false)?;
    GaugeLoops::traces(&chain.links)?;
    drop(while_written(&chain.links));
    let _label = device.label("measurement");
    observe(&chain.links, input, Err)
}

const FILES: &str = "links in the order of files";

/// Takes the memory of a copy of links on the host, which is counted as long as the answer lives.
///
/// # Errors
/// Memory runs out.
fn on_host(links: &MatrixField) -> Result<HostRoom, AppError> {
    let device = links.domain().device();
    let _label = device.label(FILES);
    let natural = links.natural()?;
    Ok(device.host_room(natural.bytes()))
}

/// Counts what a rank holds on the host while its links are written and read back, as long as the answer lives.
pub(super) fn while_written(links: &MatrixField) -> HostRoom {
    let (device, partition) = (links.domain().device(), links.domain().partition());
    let _label = device.label(FILES);
    let written = volume(partition.local()) * 4 * LINK_REALS * size_of::<f64>();
    device.host_room(written + io::bytes_to_read(partition))
}

/// Makes each measurement of a run. `failed` decides about errors.
///
/// # Errors
/// Those of `failed`.
pub(super) fn observe(
    links: &MatrixField,
    input: &Input,
    failed: impl Fn(AppError) -> Result<(), AppError>,
) -> Result<(), AppError> {
    for part in parts(&input.measure) {
        // Further steps of a flow need no more memory than the first.
        let steps = Cell::new(0);
        let stop = || steps.replace(steps.get() + 1) > 0 && !part.of_kind::<Flow>().is_empty();
        let noise = Noise { seed: input.run.seed, trajectory: 1 };
        match measure::observables(links, &part, &input.fermions, noise, &stop) {
            Ok(_) | Err(AppError::Measure(MeasureError::Stopped)) => {}
            Err(error) => failed(error)?,
        }
    }
    Ok(())
}

/// Each measurement of a run, separately.
fn parts(all: &Measure) -> Vec<Measure> {
    if all.every == 0 {
        return Vec::new();
    }
    let alone = |one| Measure { observables: vec![one], every: all.every };
    all.observables.iter().cloned().map(alone).collect()
}

/// The device that a run's memory is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum Counted {
    Cpu,
    Gpu,
}

impl Counted {
    /// The device of an input; with "auto", the device of this machine.
    pub(in crate::app) fn of(input: &Input) -> Self {
        match input.parallel.device {
            DeviceChoice::Cuda => Self::Gpu,
            DeviceChoice::Auto if gpu_count().is_ok() => Self::Gpu,
            _ => Self::Cpu,
        }
    }
}

/// The memory of the first of some ranks, which need not exist; `node_of` has the node of each. Where a term still has to
/// choose its method, the most that any takes; where halos between nodes may go by NCCL, they do.
///
/// # Errors
/// A box is too small or has too many sites for a rank; a rational function does not exist.
pub(in crate::app) fn count(
    input: &Input,
    partition: &Partition,
    node_of: &[usize],
) -> Result<Held, AppError> {
    partition.check_sites(0)?;
    let reach = assemble::layers(input, [&input.measure]).reach;
    let (device, transports): (_, Transports) = match (Counted::of(input), input.parallel.transport) {
        (Counted::Gpu, Some(halo @ (Halo::Staged | Halo::Peer))) => (Counting::gpu(), halo.into()),
        (Counted::Gpu, _) => (Counting::gpu(), Transports::within(node_of, Halo::Nccl)),
        (Counted::Cpu, _) if input.parallel.device == DeviceChoice::Emulated => {
            (Counting::cpu(1), Halo::Staged.into())
        }
        (Counted::Cpu, _) => {
            (Counting::cpu(start::lanes(&input.parallel, partition, reach)), Halo::Staged.into())
        }
    };
    let comm: Ranks = Arc::new(Echo { size: node_of.len() });
    let domain = domain_on(input, Device::new(device), transports, &comm)?;
    // The device remembers the greatest of all that may be chosen.
    for choices in input.all_choices() {
        let label = domain.device().label("links");
        // Their values do not matter here.
        let links = MatrixField::new(&domain, 4)?;
        drop(label);
        held_by(&input.with_choices(&choices)?, links)?;
    }
    Ok(domain.device().held())
}
