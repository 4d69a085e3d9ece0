//! Halos and sums in the memory of other ranks, on emulated GPUs: what comes is what comes through the hosts; and what does
//! not, is noticed.

use crate::ranks;
use hmc::app::check_wires;
use hmc::comm::{Comm, Message};
use hmc::device::{Cpu, Device, has_emulation};
use hmc::field::{Domain, Halo, Transports};
use hmc::lattice::{Extents, Partition, volume};
use std::sync::Arc;

/// Ranks of which the last gets a wrong bit in each message.
struct Garbled(Arc<dyn Comm>);

impl Comm for Garbled {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    ) {
        self.0.exchange_while(sends, receives, meanwhile);
        if self.rank() + 1 == self.size() {
            for byte in receives.iter_mut().filter_map(|message| message.bytes.last_mut()) {
                *byte ^= 1;
            }
        }
    }

    fn sum(&self, values: &mut [i64]) {
        self.0.sum(values);
    }

    fn max(&self, value: f64) -> f64 {
        self.0.max(value)
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.0.gather(bytes)
    }

    fn first(&self, count: usize) -> Option<Arc<dyn Comm>> {
        Some(Arc::new(Self(self.0.first(count)?)))
    }

    fn barrier(&self) {
        self.0.barrier();
    }

    fn abort(&self, code: i32) -> ! {
        self.0.abort(code)
    }
}

/// What the check says on each rank.
fn checked(grid: Extents, border: usize, transports: &Transports, garbled: bool) -> Vec<Option<String>> {
    let extents = grid.map(|ranks| 4 * ranks);
    ranks::run(volume(grid), |comm| {
        let comm: Arc<dyn Comm> = if garbled { Arc::new(Garbled(comm)) } else { comm };
        let partition = Partition::new(extents, grid, comm.size(), comm.rank()).unwrap();
        let device = Device::new(Cpu::emulating().unwrap());
        let domain = Domain::new(partition, device, comm, border, transports.clone()).unwrap();
        check_wires(&domain).err().map(|error| error.to_string())
    })
}

/// All peers; and groups, so that some halos come in memory and some in messages, from either side.
fn all_transports(ranks: usize) -> Vec<Transports> {
    let nodes: Vec<usize> = (0..ranks).map(|rank| rank / 2).collect();
    let within = |between| Transports::within(&nodes, between);
    vec![Halo::Peer.into(), within(Halo::Staged), within(Halo::Nccl), Halo::Nccl.into(), Halo::Staged.into()]
}

#[test]
fn memory_of_others_brings_what_hosts_bring() {
    if !has_emulation() {
        return println!("skipped: an emulated GPU: this build has none");
    }
    for grid in [[2, 1, 1, 1], [1, 3, 1, 1], [1, 1, 4, 1], [1, 1, 1, 2], [2, 1, 1, 2], [1, 2, 3, 1]] {
        for transports in all_transports(volume(grid)) {
            for border in 1..=2 {
                let said = checked(grid, border, &transports, false);
                assert!(said.iter().all(Option::is_none), "{grid:?}, {transports}, {border}: {said:?}");
            }
        }
    }
}

#[test]
fn a_wrong_bit_between_ranks_is_noticed_on_all() {
    if !has_emulation() {
        return println!("skipped: an emulated GPU: this build has none");
    }
    for grid in [[2, 1, 1, 1], [1, 1, 1, 3]] {
        let said = checked(grid, 1, &Halo::Peer.into(), true);
        let told = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| text.contains("hosts; with transport = \"staged\" all pass"))
        };
        assert!(said.iter().all(told), "{grid:?}: {said:?}");
    }
}
