//! Sums that a GPU writes into host memory: polling it is faster than asking the driver. The latest ones are kept.

use crate::device::DeviceError;
use crate::device::backend::{KEPT_SUMS, Pointer, Sums, Ticket};
use crate::device::kernels::{MAX_SUMS, WORDS};
use std::sync::atomic::{AtomicI64, Ordering, fence};

/// Words of the widest sum and a maximum.
const SUM_WORDS: usize = MAX_SUMS * WORDS + 1;
/// Bytes of these words and of one more: the number of blocks that have added to them.
pub(crate) const SUM_BYTES: usize = (SUM_WORDS + 1) * 8;
/// Halves of a sum's words in host memory.
const HALVES: usize = 2 * SUM_WORDS;
/// Bytes of the sums that are kept in host memory.
pub(crate) const MAPPED_BYTES: usize = KEPT_SUMS * HALVES * 8;
/// The low half of a word.
const LOW: u64 = 0xffff_ffff;
/// Bytes of a kernel's rounded sums.
const ROUNDED_BYTES: usize = MAX_SUMS * 8;
/// Bytes of the rounded sums that are kept in the GPU's memory.
pub(crate) const ALL_ROUNDED_BYTES: usize = KEPT_SUMS * ROUNDED_BYTES;

/// The places of kept sums. In host memory each has the halves of a sum's words, low before high, with the low half of the sum's
/// number above each: whoever sees the number has the half.
pub(crate) struct MappedSums {
    halves: *mut u64,
    /// The GPU's address of these.
    mapped: u64,
    /// The GPU's address of the rounded sums.
    rounded: u64,
    latest: AtomicI64,
}

/// Where the GPU writes the sums of a launch.
pub(crate) struct Place {
    pub(crate) ticket: Ticket,
    pub(crate) mapped: u64,
}

impl MappedSums {
    /// Polls `halves`, which the GPU finds at `mapped`.
    ///
    /// # Safety
    /// There are [`MAPPED_BYTES`] bytes, and [`ALL_ROUNDED_BYTES`] at `rounded`; they live as long as this, and only
    /// kernels write them.
    pub(crate) unsafe fn new(halves: *mut u64, mapped: u64, rounded: u64) -> Self {
        for half in 0..KEPT_SUMS * HALVES {
            // SAFETY: the caller's promise.
            unsafe { halves.add(half).write_volatile(0) };
        }
        Self { halves, mapped, rounded, latest: AtomicI64::new(0) }
    }

    /// The place of the next launch, which makes `count` sums.
    pub(crate) fn next(&self, count: usize) -> Place {
        let number = self.latest.fetch_add(1, Ordering::Relaxed) + 1;
        let place = Self::place(number) as u64;
        let rounded = Pointer(self.rounded + place * ROUNDED_BYTES as u64);
        Place { ticket: Ticket { number, count, rounded }, mapped: self.mapped + place * 8 * HALVES as u64 }
    }

    fn place(number: i64) -> usize {
        usize::try_from(number).expect("sums are counted from 1") % KEPT_SUMS
    }

    /// Whether no later launch has taken the place.
    pub(crate) fn keeps(&self, ticket: Ticket) -> bool {
        self.latest.load(Ordering::Relaxed) - ticket.number < (KEPT_SUMS as u64).cast_signed()
    }

    /// Waits for sums. `is_done` reports whether the GPU has finished all work: a kernel that failed writes nothing.
    ///
    /// # Errors
    /// `silent` if the GPU has finished without writing; errors of `is_done`.
    ///
    /// # Panics
    /// The sums are not kept any more.
    ///
    /// # Safety
    /// They were launched.
    pub(crate) unsafe fn wait(
        &self,
        ticket: Ticket,
        is_done: impl Fn() -> Result<bool, DeviceError>,
        silent: impl Fn() -> DeviceError,
    ) -> Result<Sums, DeviceError> {
        let first = Self::place(ticket.number) * HALVES;
        // SAFETY: they exist by `new`; nobody writes them once their number is there, while they are kept.
        let half = |k: usize| match unsafe { self.halves.add(first + k).read_volatile() } {
            half if half >> 32 == ticket.number.cast_unsigned() & LOW => Some(half & LOW),
            _ => None,
        };
        let mut words = [0; SUM_WORDS];
        let words = &mut words[..=ticket.count * WORDS];
        let (mut looks, mut ended) = (0u32, false);
        for (k, word) in words.iter_mut().enumerate() {
            *word = loop {
                if let [Some(low), Some(high)] = [half(2 * k), half(2 * k + 1)] {
                    break (high << 32 | low).cast_signed();
                }
                assert!(self.keeps(ticket), "a sum that the GPU has forgotten");
                if ended {
                    return Err(silent());
                }
                std::hint::spin_loop();
                looks = looks.wrapping_add(1);
                ended = looks.is_multiple_of(1 << 16) && is_done()?;
            };
        }
        fence(Ordering::Acquire);
        assert!(self.keeps(ticket), "a sum that the GPU has forgotten");
        Ok(Sums::from_words(words))
    }
}
