//! A GPU's freed memory, kept by size for later allocations: the driver's own calls wait for all work.

use super::DeviceError;
use super::ledger::Ledger;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Where a pool takes its memory from.
pub(super) trait Source {
    /// Allocates memory.
    fn take(&self, bytes: usize) -> Result<u64, DeviceError>;
    /// Frees memory.
    fn give(&self, at: u64) -> Result<(), DeviceError>;
}

/// The smallest allocation of a driver.
const LEAST: usize = 16;
/// The driver's pages.
const PAGE: usize = 2 << 20;
/// Allocations up to this size share pages; larger ones take whole pages. Measured on an H200.
const SMALL: usize = PAGE / 2;
/// Granularity of shared pages.
const STEP: usize = 512;

/// Memory of one GPU.
#[derive(Default)]
pub(super) struct Pool(Mutex<State>);

#[derive(Default)]
struct State {
    /// Kept memory, by size.
    kept: HashMap<usize, Vec<u64>>,
    /// Free bytes of each shared page.
    left: Vec<usize>,
}

impl State {
    /// Bytes that a new allocation costs: whole pages, or nothing if it fits into a shared one.
    fn cost(&mut self, bytes: usize) -> usize {
        if bytes > SMALL {
            return bytes.next_multiple_of(PAGE);
        }
        let own = bytes.next_multiple_of(STEP);
        if let Some(left) = self.left.iter_mut().find(|left| **left >= own) {
            *left -= own;
            return 0;
        }
        self.left.push(PAGE - own);
        PAGE
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic holds it")
    }

    /// Takes kept memory of this size, or allocates. If memory runs out, everything kept is freed first, since it may
    /// be of other sizes.
    pub(super) fn take(
        &self,
        bytes: usize,
        source: &dyn Source,
        ledger: &Ledger,
    ) -> Result<u64, DeviceError> {
        let bytes = bytes.max(LEAST);
        if let Some(at) = self.state().kept.get_mut(&bytes).and_then(Vec::pop) {
            return Ok(at);
        }
        let at = match source.take(bytes) {
            Ok(at) => at,
            Err(_) => {
                let all = std::mem::take(&mut *self.state()).kept;
                for at in all.into_values().flatten() {
                    source.give(at)?;
                    ledger.give(at);
                }
                source.take(bytes)?
            }
        };
        ledger.take(at, self.state().cost(bytes) as u64);
        Ok(at)
    }

    /// Keeps freed memory.
    pub(super) fn give(&self, at: u64, bytes: usize) {
        self.state().kept.entry(bytes.max(LEAST)).or_default().push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// A driver with `room` bytes of memory.
    struct Small {
        room: usize,
        next: Cell<u64>,
        given: RefCell<HashMap<u64, usize>>,
    }

    impl Source for Small {
        fn take(&self, bytes: usize) -> Result<u64, DeviceError> {
            let used: usize = self.given.borrow().values().sum();
            if used + bytes > self.room {
                return Err(DeviceError::OutOfMemory { device: "test".into(), megabytes: bytes >> 20 });
            }
            self.next.set(self.next.get() + 1);
            self.given.borrow_mut().insert(self.next.get(), bytes);
            Ok(self.next.get())
        }

        fn give(&self, at: u64) -> Result<(), DeviceError> {
            self.given.borrow_mut().remove(&at).map(drop).ok_or(DeviceError::NoEmulation)
        }
    }

    #[test]
    fn memory_is_kept_by_size_until_there_is_no_room() {
        let (pool, ledger) = (Pool::default(), Ledger::default());
        let driver = Small { room: 3000, next: Cell::new(0), given: RefCell::default() };
        let take = |bytes| pool.take(bytes, &driver, &ledger);
        let (a, b) = (take(1000).unwrap(), take(1000).unwrap());
        pool.give(a, 1000);
        assert_eq!(take(1000).unwrap(), a, "the same size again");
        assert_eq!(ledger.most().bytes, PAGE as u64, "both in one page");
        pool.give(a, 1000);
        pool.give(b, 1000);
        assert!(take(3000).is_ok(), "kept memory is freed");
        assert_eq!(ledger.most().bytes, PAGE as u64);
        assert!(take(1000).is_err());
    }

    /// Measured on an H200.
    #[test]
    fn small_allocations_share_pages_and_large_ones_take_whole_pages() {
        let cost = |bytes: usize, count: usize| {
            let mut state = State::default();
            (0..count).map(|_| state.cost(bytes)).sum::<usize>()
        };
        assert_eq!(cost(512, 4096), PAGE);
        assert_eq!(cost(513, 4096), 2 * PAGE);
        assert_eq!(cost(600_000, 64), 22 * PAGE);
        assert_eq!(cost(1_000_000, 64), 32 * PAGE);
        assert_eq!(cost(SMALL, 64), 32 * PAGE);
        assert_eq!(cost(SMALL + 1, 64), 64 * PAGE);
        assert_eq!(cost(PAGE + 1, 64), 128 * PAGE);
        assert_eq!(cost(100_000_001, 8), 8 * 48 * PAGE);
    }
}
