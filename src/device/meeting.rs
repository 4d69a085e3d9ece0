//! Where GPUs of several ranks exchange words: each writes its own into the others' memory, and waits for theirs in the
//! kernel that needs them (`kernels/ranks.cuh`), as sums over the lattice do. No host takes part.

use super::kernels::{MAX_SUMS, RankRound, WORDS, int};
use super::{Buffer, Device, DeviceError, Remote, Use};
use std::sync::atomic::{AtomicU32, Ordering};

impl RankRound<'_> {
    /// Of what is one rank's alone.
    pub(crate) const ALONE: Self = Self { of_ranks: None, rank: 0, ranks: 1, round: 0 };
}

/// The memory into which the other ranks write, and theirs, opened.
pub struct Meeting {
    device: Device,
    #[expect(dead_code, reason = "other ranks write it")]
    own: Buffer,
    others: Vec<Option<Remote>>,
    /// The addresses of both, by rank.
    addresses: Buffer,
    rounds: AtomicU32,
}

impl Meeting {
    /// This rank's memory for the sums of `ranks` ranks.
    pub fn memory_for_sums(device: &Device, ranks: usize) -> Result<Buffer, DeviceError> {
        Self::memory(device, 2 * ranks, 2 * (MAX_SUMS * WORDS + 1))
    }

    /// This rank's memory for `turns` rounds that follow each other, of so many half words.
    pub fn memory(device: &Device, turns: usize, halves: usize) -> Result<Buffer, DeviceError> {
        device.buffer_for(Use::Exported, turns * halves * size_of::<u64>())
    }

    /// `own` is this rank's [`Meeting::memory`]; `others` are those of all ranks, in their order, without this one.
    pub fn new(device: &Device, own: Buffer, others: Vec<Option<Remote>>) -> Result<Self, DeviceError> {
        let address = |other: &Option<Remote>| other.as_ref().map_or(own.pointer(), Remote::pointer).0;
        let all: Vec<u64> = others.iter().map(address).collect();
        let addresses = device.buffer_of(&all)?;
        Ok(Self { device: device.clone(), own, others, addresses, rounds: AtomicU32::new(0) })
    }

    /// The round that was asked for last.
    pub(crate) fn last(&self) -> RankRound<'_> {
        self.round(self.rounds.load(Ordering::Relaxed))
    }

    /// The next round.
    pub(crate) fn next(&self) -> RankRound<'_> {
        self.round(self.rounds.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    fn round(&self, number: u32) -> RankRound<'_> {
        let rank = self.others.iter().position(Option::is_none).expect("this rank");
        RankRound {
            of_ranks: Some(self.addresses.input()),
            rank: int(rank),
            ranks: int(self.others.len()),
            round: number.cast_signed(),
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        // Others' memory is closed when all work on it is done; on a lost device there is nothing left to do.
        let _ = self.device.synchronize();
    }
}
