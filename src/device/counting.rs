//! A device that only counts memory, so that the needs of a run are known without the machine it will run on.
//!
//! Launches do nothing, sums are 0, and reads leave their target unchanged. A solve ends at once, because its
//! right-hand side is 0. Allocations are those of the device that is counted for.
//!
//! For a rehearsal, which asks for the kernels of a run, sums can pretend to be those of iterations.

use super::backend::{
    Backend, Begun, Call, Nature, Network, Parcel, Pointer, Post, Sharing, Stager, Sums, Use,
};
use super::kernels::RankRound;
use super::ledger::Ledger;
use super::pool::{Pool, Source};
use super::size::{Count, Size};
use super::table::all_kernels;
use super::{DeviceError, Lanes, Work, cpu};
use crate::math::ExactSum;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whose memory is counted.
enum Memory {
    /// A CPU's: freed memory returns to the system.
    Host,
    /// A GPU's: freed memory is kept in a pool.
    Gpu(Pool),
}

/// Counts as another device would allocate.
pub struct Counting {
    memory: Memory,
    lanes: Lanes,
    next: Addresses,
    ledger: Ledger,
    sums: Arc<PretendSums>,
}

/// Sums that are 0 until they begin to pretend: then 1, now and then a little less, as if a residual had fallen, and next
/// to nothing, so that iterations run, correct themselves, and converge in a few steps.
#[derive(Debug, Default)]
pub struct PretendSums(AtomicU64);

impl PretendSums {
    /// In turn, each so many times: a prime number in all, so that no iteration meets the same ones for ever. One that has
    /// converged begins anew at 1, mostly. The least that an exact sum can hold is 2^-140.
    const VALUES: [(f64, u64); 11] = [
        (1.0, 6),
        (1e-9, 4),
        (1e-39, 2),
        (1.0, 7),
        (1e-9, 3),
        (1e-39, 3),
        (1.0, 5),
        (0.0, 1),
        (1.0, 7),
        (1e-39, 2),
        (0.0, 1),
    ];
    /// The number of places to begin at.
    pub const PLACES: u64 = {
        let (mut sum, mut n) = (0, 0);
        while n < Self::VALUES.len() {
            sum += Self::VALUES[n].1;
            n += 1;
        }
        sum
    };

    /// After so many come so many zeros, with which every iteration ends: some would go on for thousands of steps.
    const MANY: u64 = 8 * Self::PLACES;
    const END: u64 = 7;

    /// From now on sums pretend, in turn from this place on.
    pub fn begin(&self, place: u64) {
        self.0.store(1 + place, Ordering::Relaxed);
    }

    fn next(&self) -> f64 {
        if self.0.load(Ordering::Relaxed) == 0 {
            return 0.0;
        }
        let turn = (self.0.fetch_add(1, Ordering::Relaxed) - 1) % (Self::MANY + Self::END);
        if turn >= Self::MANY {
            return 0.0;
        }
        let mut all = Self::VALUES.iter().flat_map(|&(value, times)| (0..times).map(move |_| value));
        all.nth((turn % Self::PLACES) as usize).expect("a place")
    }
}

/// Addresses that are never used.
struct Addresses(AtomicU64);

impl Source for Addresses {
    fn take(&self, bytes: usize) -> Result<u64, DeviceError> {
        // An empty allocation still needs an address of its own.
        let bytes = bytes.max(1);
        Ok(self.0.fetch_add(bytes as u64, Ordering::Relaxed))
    }

    fn give(&self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl Counting {
    /// Counts for a CPU whose kernels work on `lanes` sites at once.
    pub fn cpu(lanes: impl Into<Lanes>) -> Self {
        Self::new(Memory::Host, lanes.into())
    }

    /// Counts for a GPU.
    pub fn gpu() -> Self {
        Self::new(Memory::Gpu(Pool::default()), Lanes::equal(1))
    }

    /// The sums that it will answer.
    pub fn sums(&self) -> &Arc<PretendSums> {
        &self.sums
    }

    fn new(memory: Memory, lanes: Lanes) -> Self {
        let next = Addresses(AtomicU64::new(1 << 21));
        Self { memory, lanes, next, ledger: Ledger::default(), sums: Arc::default() }
    }
}

// SAFETY: addresses are never used twice, nor for memory: it is not the host's, and nothing is read or written.
unsafe impl Backend for Counting {
    fn name(&self) -> String {
        let whose = if self.nature().is_gpu { "GPU" } else { "CPU" };
        format!("counted memory of a {whose}")
    }

    fn nature(&self) -> Nature {
        let is_gpu = matches!(self.memory, Memory::Gpu(_));
        Nature { lanes: self.lanes, is_gpu, is_in_host: !is_gpu, keeps: false }
    }

    fn memory(&self) -> Option<[u64; 2]> {
        None
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn allocate(&self, bytes: usize, usage: Use) -> Result<Pointer, DeviceError> {
        let at = match (&self.memory, usage) {
            (Memory::Host, _) => {
                let at = self.next.take(bytes)?;
                self.ledger.take(at, cpu::held(bytes) as u64);
                at
            }
            (Memory::Gpu(_), Use::Aside) => {
                let at = self.next.take(bytes)?;
                self.ledger.take_aside(at, bytes as u64);
                at
            }
            (Memory::Gpu(pool), usage) => pool.take(bytes, usage, &self.next, &self.ledger)?,
        };
        Ok(Pointer(at))
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        if self.ledger.give_aside(pointer.0) {
            return;
        }
        match &self.memory {
            Memory::Host => self.ledger.give(pointer.0),
            Memory::Gpu(pool) => pool.give(pointer.0, bytes),
        }
    }

    unsafe fn upload(&self, _: Pointer, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn download(&self, _: &mut [u8], _: Pointer) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn copy(&self, _: Pointer, _: Pointer, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn zero(&self, _: Pointer, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn launch(&self, _: Call<'_>, _: Size) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn begin_sum(
        &self,
        call: Call<'_>,
        _: Count,
        _: Option<RankRound<'_>>,
    ) -> Result<Begun, DeviceError> {
        let kernel = all_kernels().get(call.kernel, call.precision);
        let Work::Sums(count) = kernel.work else { unreachable!("{} makes no sums", kernel.name) };
        let mut sum = ExactSum::default();
        // Of linear algebra: others count what must not be.
        if kernel.family == "blas" {
            sum.push(self.sums.next());
        }
        Ok(Begun::Done(Sums { sums: vec![sum; count], max: 0.0 }))
    }

    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        work();
        Ok(0.0)
    }

    fn stager(&self) -> Option<&dyn Stager> {
        Some(self)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }
}

// SAFETY: nothing is read or written.
unsafe impl Stager for Counting {
    unsafe fn stage_out(&self, _: &mut [u8], _: Pointer) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn stage_in(&self, _: Pointer, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }
}

// SAFETY: as above.
unsafe impl Sharing for Counting {
    fn export(&self, _: Pointer) -> Result<Vec<u8>, DeviceError> {
        Ok(vec![0])
    }

    fn import(&self, _: &[u8]) -> Result<Pointer, DeviceError> {
        self.next.take(1).map(Pointer)
    }

    unsafe fn close(&self, _: Pointer) {}
}

// SAFETY: as above.
unsafe impl Network for Counting {
    fn new_name(&self) -> Result<Vec<u8>, DeviceError> {
        Ok(Vec::new())
    }

    fn join(&self, _: &[u8], _: usize, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn exchange(&self, _: &[Parcel<'_>], _: &[Parcel<'_>], _: &Post<'_>) -> Result<(), DeviceError> {
        Ok(())
    }
}
