//! The devices that this machine has for one rank: an emulated GPU, and the CPU with each lane count.

use hmc::comm::Solo;
use hmc::device::{Cpu, Device, has_emulation, lane_counts};
use hmc::field::{Domain, Halo};
use hmc::lattice::{Extents, LaneGrid, Partition};
use std::sync::Arc;

/// A device, before it is opened.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    Emulated,
    Lanes(usize),
}

impl Choice {
    pub fn open(self) -> Device {
        Device::new(match self {
            Self::Emulated => Cpu::emulating().unwrap(),
            Self::Lanes(lanes) => Cpu::new(lanes).unwrap(),
        })
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
    let domain = |choice: Choice| Domain::new(whole, choice.open(), Arc::new(Solo), 2, Halo::Staged).unwrap();
    choices(fits).into_iter().map(domain).collect()
}
