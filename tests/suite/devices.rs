//! Domains on the devices that this machine has: an emulated GPU, and the CPU with each lane count.

use hmc::comm::{Comm, Solo};
use hmc::device::{Cpu, Device, has_emulation, lane_counts};
use hmc::field::{Domain, Halo, Transports};
use hmc::lattice::{Extents, LaneGrid, Partition};
use std::sync::Arc;

/// A device, before it is opened.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    Emulated,
    Lanes(usize),
}

impl Choice {
    fn open(self) -> Device {
        Device::new(match self {
            Self::Emulated => Cpu::emulating().unwrap(),
            Self::Lanes(lanes) => Cpu::new(lanes).unwrap(),
        })
    }

    /// A rank's domain on it.
    pub fn domain(self, partition: Partition, comm: Arc<dyn Comm>) -> Arc<Domain> {
        self.domain_by(partition, comm, Halo::Staged.into())
    }

    /// The same with other transports.
    pub fn domain_by(self, partition: Partition, comm: Arc<dyn Comm>, transports: Transports) -> Arc<Domain> {
        Domain::new(partition, self.open(), comm, 2, transports).unwrap()
    }
}

/// The emulated GPU first, then the lane counts that fit, ascending.
pub fn choices(fits: impl Fn(usize) -> bool) -> Vec<Choice> {
    let emulated = has_emulation().then_some(Choice::Emulated);
    if emulated.is_none() {
        println!("skipped: an emulated GPU: this build has none");
    }
    let lanes = lane_counts().into_iter().filter(|lanes| fits(*lanes)).map(Choice::Lanes);
    emulated.into_iter().chain(lanes).collect()
}

/// A rank's whole lattice on each of them.
pub fn domains(extents: Extents) -> Vec<Arc<Domain>> {
    let whole = Partition::whole(extents).unwrap();
    let fits = |lanes: usize| LaneGrid::choose(extents, [false; 4], lanes).is_some();
    choices(fits).into_iter().map(|choice| choice.domain(whole, Arc::new(Solo))).collect()
}

/// The most lanes with which a rank's box keeps `reach` layers in cut directions.
pub fn most_lanes(partition: &Partition, reach: usize) -> usize {
    let (local, cut) = (partition.local(), std::array::from_fn(|mu| partition.is_cut(mu)));
    let fits = |lanes: &usize| {
        LaneGrid::choose(local, cut, *lanes).is_some_and(|grid| grid.is_thick(local, cut, reach))
    };
    lane_counts().into_iter().filter(fits).max().unwrap()
}

/// A rank's domain on the CPU.
pub fn on_lanes(lanes: usize, partition: Partition, comm: Arc<dyn Comm>, border: usize) -> Arc<Domain> {
    Domain::new(partition, Device::new(Cpu::new(lanes).unwrap()), comm, border, Halo::Staged).unwrap()
}

/// As [`on_lanes`], with the most lanes that fit.
pub fn on_most_lanes(partition: Partition, comm: Arc<dyn Comm>, border: usize) -> Arc<Domain> {
    on_most_lanes_by(partition, comm, border, Halo::Staged.into())
}

/// The same with other transports.
pub fn on_most_lanes_by(
    partition: Partition,
    comm: Arc<dyn Comm>,
    border: usize,
    transports: Transports,
) -> Arc<Domain> {
    let device = Device::new(Cpu::new(most_lanes(&partition, border)).unwrap());
    Domain::new(partition, device, comm, border, transports).unwrap()
}

/// One rank's domain with one lane.
pub fn on_one_lane(extents: Extents) -> Arc<Domain> {
    on_lanes(1, Partition::whole(extents).unwrap(), Arc::new(Solo), 2)
}

/// One rank's domain with the most lanes that fit.
pub fn domain(extents: Extents) -> Arc<Domain> {
    on_most_lanes(Partition::whole(extents).unwrap(), Arc::new(Solo), 2)
}
