//! A GPU's freed memory, kept for later allocations: the driver's own calls wait for all work. What is larger than a page
//! is divided as later allocations need it, and joined again; small memory, and what other processes open, is kept by size.

use super::DeviceError;
use super::backend::Use;
use super::ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
/// More than any GPU has: what does not fit into a number is refused as this is.
const MOST: usize = 1 << 60;
/// The driver's pages.
const PAGE: usize = 2 << 20;
/// Allocations up to this size share pages; larger ones take whole pages. Measured on an H200.
const SMALL: usize = PAGE / 2;
/// Granularity of shared pages, and of parts.
const STEP: usize = 512;

/// Memory of one GPU.
#[derive(Default)]
pub(super) struct Pool(Mutex<State>);

#[derive(Default)]
struct State {
    /// Kept memory that is not divided, by size and use.
    kept: HashMap<(usize, bool), Vec<u64>>,
    /// Addresses that are exported.
    exported: HashSet<u64>,
    /// The driver's allocations that are divided: sizes by address.
    whole: BTreeMap<u64, usize>,
    free: Parts,
    /// Free bytes of each shared page.
    left: Vec<usize>,
}

/// Free parts of the driver's allocations.
#[derive(Default)]
struct Parts {
    by_address: BTreeMap<u64, usize>,
    by_size: BTreeSet<(usize, u64)>,
}

impl Parts {
    fn insert(&mut self, at: u64, bytes: usize) {
        if bytes > 0 {
            self.by_address.insert(at, bytes);
            self.by_size.insert((bytes, at));
        }
    }

    fn remove(&mut self, at: u64) -> usize {
        let bytes = self.by_address.remove(&at).expect("a free part");
        self.by_size.remove(&(bytes, at));
        bytes
    }

    /// Takes the first bytes of the smallest part that has as many.
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let &(_, at) = self.by_size.range((bytes, 0)..).next()?;
        let found = self.remove(at);
        self.insert(at + bytes as u64, found - bytes);
        Some(at)
    }

    /// Returns a part, joined with the free ones beside it within `whole`, from an address to another.
    fn give(&mut self, mut at: u64, mut bytes: usize, whole: std::ops::Range<u64>) {
        let end = at + bytes as u64;
        if end < whole.end && self.by_address.contains_key(&end) {
            bytes += self.remove(end);
        }
        let before =
            self.by_address.range(whole.start..at).next_back().map(|(&start, &length)| (start, length));
        if let Some((start, length)) = before.filter(|(start, length)| start + *length as u64 == at) {
            self.remove(start);
            (at, bytes) = (start, length + bytes);
        }
        self.insert(at, bytes);
    }
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

    /// Kept memory of this size, or part of it.
    fn find(&mut self, bytes: usize, exported: bool) -> Option<u64> {
        if is_divided(bytes, exported) {
            return self.free.take(bytes.next_multiple_of(STEP));
        }
        self.kept.get_mut(&(bytes, exported))?.pop()
    }

    /// Forgets what nobody uses, which the caller gives back to the driver.
    fn unused(&mut self) -> Vec<u64> {
        let mut all: Vec<u64> = std::mem::take(&mut self.kept).into_values().flatten().collect();
        all.iter().for_each(|at| _ = self.exported.remove(at));
        let free = &self.free.by_address;
        let idle: Vec<u64> =
            self.whole.iter().filter(|(at, bytes)| free.get(at) == Some(bytes)).map(|(at, _)| *at).collect();
        for at in idle {
            self.free.remove(at);
            self.whole.remove(&at);
            all.push(at);
        }
        all
    }
}

fn is_divided(bytes: usize, exported: bool) -> bool {
    bytes > SMALL && !exported
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic holds it")
    }

    /// Takes kept memory, or allocates. If memory runs out, everything that is kept and not divided is freed first.
    pub(super) fn take(
        &self,
        bytes: usize,
        of: Use,
        source: &dyn Source,
        ledger: &Ledger,
    ) -> Result<u64, DeviceError> {
        let (bytes, exported) = (bytes.clamp(LEAST, MOST), of == Use::Exported);
        let mut state = self.state();
        if let Some(at) = state.find(bytes, exported) {
            return Ok(at);
        }
        let divided = is_divided(bytes, exported);
        let asked = if divided { bytes.next_multiple_of(PAGE) } else { bytes };
        let at = match source.take(asked) {
            Ok(at) => at,
            Err(_) => {
                for at in state.unused() {
                    source.give(at)?;
                    ledger.give(at);
                }
                source.take(asked)?
            }
        };
        ledger.take(at, state.cost(asked) as u64);
        if divided {
            state.whole.insert(at, asked);
            let own = bytes.next_multiple_of(STEP);
            state.free.insert(at + own as u64, asked - own);
        }
        if exported {
            state.exported.insert(at);
        }
        Ok(at)
    }

    /// Keeps freed memory.
    pub(super) fn give(&self, at: u64, bytes: usize) {
        let (bytes, mut state) = (bytes.clamp(LEAST, MOST), self.state());
        let exported = state.exported.contains(&at);
        if !is_divided(bytes, exported) {
            state.kept.entry((bytes, exported)).or_default().push(at);
            return;
        }
        let (&start, &length) =
            state.whole.range(..=at).next_back().expect("the allocation that it is part of");
        state.free.give(at, bytes.next_multiple_of(STEP), start..start + length as u64);
    }

    /// Whether handles can be made of the memory at this address.
    pub(super) fn is_exported(&self, at: u64) -> bool {
        self.state().exported.contains(&at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// A driver with `room` bytes of memory, and addresses that are far from each other.
    struct Small {
        room: usize,
        next: Cell<u64>,
        given: RefCell<HashMap<u64, usize>>,
    }

    impl Small {
        fn new(room: usize) -> Self {
            Self { room, next: Cell::new(0), given: RefCell::default() }
        }
    }

    impl Source for Small {
        fn take(&self, bytes: usize) -> Result<u64, DeviceError> {
            let used: usize = self.given.borrow().values().sum();
            if used + bytes > self.room {
                return Err(DeviceError::OutOfMemory { device: "test".into(), megabytes: bytes >> 20 });
            }
            self.next.set(self.next.get() + (1 << 40));
            self.given.borrow_mut().insert(self.next.get(), bytes);
            Ok(self.next.get())
        }

        fn give(&self, at: u64) -> Result<(), DeviceError> {
            self.given.borrow_mut().remove(&at).map(drop).ok_or(DeviceError::NoEmulation)
        }
    }

    #[test]
    fn small_memory_is_kept_by_size_until_there_is_no_room() {
        let (pool, ledger) = (Pool::default(), Ledger::default());
        let driver = Small::new(3000);
        let take = |bytes| pool.take(bytes, Use::Private, &driver, &ledger);
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

    #[test]
    fn large_memory_is_divided_and_joined() {
        let (pool, ledger) = (Pool::default(), Ledger::default());
        let driver = Small::new(9 * PAGE);
        let take = |bytes| pool.take(bytes, Use::Private, &driver, &ledger);
        let all = take(8 * PAGE).unwrap();
        pool.give(all, 8 * PAGE);
        let parts: Vec<u64> = [3, 2, 3].map(|pages| take(pages * PAGE).unwrap()).into();
        assert_eq!(parts, [all, all + 3 * PAGE as u64, all + 5 * PAGE as u64]);
        assert_eq!(ledger.most().bytes, 8 * PAGE as u64, "no more than there was");
        // Not a part larger than what is free at one place.
        pool.give(parts[0], 3 * PAGE);
        pool.give(parts[2], 3 * PAGE);
        assert!(take(4 * PAGE).is_err());
        // The smallest part that is enough; joined with both neighbours when it is free.
        pool.give(parts[1], 2 * PAGE);
        assert_eq!(take(8 * PAGE).unwrap(), all);
        pool.give(all, 8 * PAGE);
        // What is whole again can be freed; what is not whole stays.
        let one = take(2 * PAGE).unwrap();
        assert!(take(9 * PAGE).is_err(), "a part of it is in use");
        pool.give(one, 2 * PAGE);
        assert!(take(9 * PAGE).is_ok());
    }

    #[test]
    fn what_is_exported_is_no_part() {
        let (pool, ledger) = (Pool::default(), Ledger::default());
        let driver = Small::new(100 * PAGE);
        let take = |bytes, of| pool.take(bytes, of, &driver, &ledger).unwrap();
        let all = take(8 * PAGE, Use::Private);
        pool.give(all, 8 * PAGE);
        let own = take(2 * PAGE, Use::Exported);
        assert!(own != all && pool.is_exported(own) && !pool.is_exported(all));
        pool.give(own, 2 * PAGE);
        assert_eq!(take(2 * PAGE, Use::Private), all);
        assert_eq!(take(2 * PAGE, Use::Exported), own);
        let small = take(100, Use::Exported);
        pool.give(small, 100);
        assert_ne!(take(100, Use::Private), small);
    }

    /// Every byte belongs to one owner at a time, and nothing is lost, whatever the order.
    #[test]
    fn parts_never_overlap() {
        let (pool, ledger) = (Pool::default(), Ledger::default());
        let driver = Small::new(1 << 40);
        let mut owned: BTreeMap<u64, usize> = BTreeMap::new();
        let mut state = 1u64;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        for _ in 0..20_000 {
            if owned.len() < 30 || random(2) == 0 && owned.len() < 60 {
                let bytes = SMALL + 1 + random(20 * PAGE);
                let at = pool.take(bytes, Use::Private, &driver, &ledger).unwrap();
                let before = owned.range(..=at).next_back();
                assert!(before.is_none_or(|(start, length)| start + *length as u64 <= at));
                assert!(owned.range(at..).next().is_none_or(|(next, _)| at + bytes as u64 <= *next));
                owned.insert(at, bytes);
            } else {
                let n = random(owned.len());
                let (&at, &bytes) = owned.iter().nth(n).unwrap();
                owned.remove(&at);
                pool.give(at, bytes);
            }
        }
        owned.into_iter().for_each(|(at, bytes)| pool.give(at, bytes));
        let idle = pool.state().unused();
        assert_eq!(idle.len(), driver.given.borrow().len(), "all is joined again");
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
