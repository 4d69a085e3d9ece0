//! Memory of a GPU that was given back, kept by size for whoever asks next: a driver's own calls wait for all work.

use super::DeviceError;
use super::ledger::Ledger;
use std::collections::HashMap;
use std::sync::Mutex;

/// Where a pool takes its memory from.
pub(super) trait Source {
    /// Takes memory.
    ///
    /// # Errors
    /// No room.
    fn take(&self, bytes: usize) -> Result<u64, DeviceError>;
    /// Gives it back.
    ///
    /// # Errors
    /// The device is lost.
    fn give(&self, at: u64) -> Result<(), DeviceError>;
}

/// The least that a driver gives.
const LEAST: usize = 16;
/// Small allocations share pages, and begin at multiples of this.
const SMALL_STEP: usize = 512;
/// A page; larger allocations take whole ones.
const PAGE: usize = 2 << 20;

/// What is kept, by size.
#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<usize, Vec<u64>>>);

impl Pool {
    /// Takes what is kept of this size, or new memory. Where there is no room for new memory, all that is kept goes back
    /// first: it may be of other sizes.
    ///
    /// # Errors
    /// No room, or the device is lost.
    pub fn take(&self, bytes: usize, source: &dyn Source, ledger: &Ledger) -> Result<u64, DeviceError> {
        let bytes = bytes.max(LEAST);
        let kept = || self.0.lock().expect("no panic holds it");
        if let Some(at) = kept().get_mut(&bytes).and_then(Vec::pop) {
            return Ok(at);
        }
        let at = match source.take(bytes) {
            Ok(at) => at,
            Err(_) => {
                let all = std::mem::take(&mut *kept());
                for at in all.into_values().flatten() {
                    source.give(at)?;
                    ledger.give(at);
                }
                source.take(bytes)?
            }
        };
        ledger.take(at, held(bytes) as u64);
        Ok(at)
    }

    /// Keeps what is given back.
    pub fn give(&self, at: u64, bytes: usize) {
        self.0.lock().expect("no panic holds it").entry(bytes.max(LEAST)).or_default().push(at);
    }
}

/// What an allocation of `bytes` takes of a GPU's memory.
pub(super) fn held(bytes: usize) -> usize {
    bytes.next_multiple_of(if bytes < PAGE / 2 { SMALL_STEP } else { PAGE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// A driver with room for so many bytes.
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
        assert_eq!(ledger.most().bytes, 2 * 1024);
        pool.give(a, 1000);
        pool.give(b, 1000);
        assert!(take(3000).is_ok(), "what is kept makes room");
        assert_eq!(ledger.most().bytes, 3072);
        assert!(take(1000).is_err());
    }

    #[test]
    fn large_allocations_take_whole_pages() {
        assert_eq!([16, 512, 513].map(held), [512, 512, 1024]);
        assert_eq!([PAGE, PAGE + 1].map(held), [PAGE, 2 * PAGE]);
    }
}
