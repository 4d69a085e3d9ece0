//! A device that only counts memory, so that the needs of a run are known without the machine it will run on.
//!
//! Launches do nothing, sums are 0, and reads leave their target unchanged. A solve ends at once, because its
//! right-hand side is 0. Allocations are those of the device that is counted for.

use super::backend::{Backend, Call, Pointer, Size, Sums, Variant};
use super::ledger::Ledger;
use super::pool::{Pool, Source};
use super::table::all_kernels;
use super::{DeviceError, Lanes, Work, cpu};
use crate::math::ExactSum;
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

    fn new(memory: Memory, lanes: Lanes) -> Self {
        let next = Addresses(AtomicU64::new(1 << 21));
        Self { memory, lanes, next, ledger: Ledger::default() }
    }
}

// SAFETY: addresses are never used twice, nor for memory: it is not the host's, and nothing is read or written.
unsafe impl Backend for Counting {
    fn name(&self) -> String {
        let whose = if matches!(self.memory, Memory::Host) { "CPU" } else { "GPU" };
        format!("counted memory of a {whose}")
    }

    fn lanes(&self) -> Lanes {
        self.lanes
    }

    fn is_host(&self) -> bool {
        false
    }

    fn memory(&self) -> Option<[u64; 2]> {
        None
    }

    fn allocate(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        match &self.memory {
            Memory::Host => {
                let at = self.next.take(bytes)?;
                self.ledger.take(at, cpu::held(bytes) as u64);
                Ok(Pointer(at))
            }
            Memory::Gpu(pool) => pool.take(bytes, &self.next, &self.ledger).map(Pointer),
        }
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        match &self.memory {
            Memory::Host => self.ledger.give(pointer.0),
            Memory::Gpu(pool) => pool.give(pointer.0, bytes),
        }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
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

    unsafe fn sum(&self, call: Call<'_>, _: usize) -> Result<Sums, DeviceError> {
        let kernel = all_kernels().get(call.kernel, call.precision);
        let Work::Sums(count) = kernel.work else { unreachable!("{} makes no sums", kernel.name) };
        Ok(Sums { sums: vec![ExactSum::default(); count], max: 0.0 })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        work();
        Ok(0.0)
    }

    fn mark(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn wait_for_mark(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn stage_out(&self, _: &mut [u8], _: Pointer) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn stage_in(&self, _: Pointer, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn pin(&self, _: &mut [u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn unpin(&self, _: &mut [u8]) {}

    fn export(&self, _: Pointer) -> Result<Option<Vec<u8>>, DeviceError> {
        Ok(Some(vec![0]))
    }

    fn import(&self, _: &[u8]) -> Result<Pointer, DeviceError> {
        self.next.take(1).map(Pointer)
    }

    unsafe fn close(&self, _: Pointer) {}

    fn specialise(&self, _: Variant) -> usize {
        0
    }
}
