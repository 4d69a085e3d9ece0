//! The sums of the latest launches on an emulated GPU, which keeps them as a GPU does.

use super::backend::{KEPT_SUMS, Pointer, Sums, Ticket};
use super::kernels::MAX_SUMS;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Kept sums.
pub(super) struct KeptSums {
    all: Mutex<Latest>,
    /// The bits of the rounded sums, at the places that launches are given.
    rounded: Box<[AtomicU64]>,
}

/// The latest sums, in their order.
#[derive(Default)]
struct Latest {
    /// The number of the first of them.
    first: usize,
    sums: VecDeque<Sums>,
}

impl Latest {
    fn get(&self, number: i64) -> Option<&Sums> {
        self.sums.get(usize::try_from(number).ok()?.checked_sub(self.first)?)
    }
}

impl Default for KeptSums {
    fn default() -> Self {
        let rounded = (0..KEPT_SUMS * MAX_SUMS).map(|_| AtomicU64::default()).collect();
        Self { all: Mutex::default(), rounded }
    }
}

impl KeptSums {
    fn all(&self) -> MutexGuard<'_, Latest> {
        self.all.lock().expect("no panic holds it")
    }

    /// Keeps sums, and forgets the oldest ones.
    pub(super) fn keep(&self, sums: Sums) -> Ticket {
        let mut all = self.all();
        if all.sums.len() == KEPT_SUMS {
            all.sums.pop_front();
            all.first += 1;
        }
        let number = all.first + all.sums.len();
        let place = &self.rounded[number % KEPT_SUMS * MAX_SUMS..];
        for (place, sum) in place.iter().zip(&sums.sums) {
            place.store(sum.value().to_bits(), Ordering::Relaxed);
        }
        let (number, rounded) = ((number as u64).cast_signed(), Pointer(place.as_ptr() as u64));
        let ticket = Ticket { number, count: sums.sums.len(), rounded };
        all.sums.push_back(sums);
        ticket
    }

    /// Whether they are still kept.
    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.all().get(ticket.number).is_some()
    }

    /// The sums of a launch.
    ///
    /// # Panics
    /// They are not kept any more.
    pub(super) fn sums(&self, ticket: Ticket) -> Sums {
        self.all().get(ticket.number).expect("a sum that the device has forgotten").clone()
    }
}
