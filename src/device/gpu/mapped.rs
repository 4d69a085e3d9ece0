//! Sums that a GPU writes into host memory: polling it is faster than asking the driver.

use crate::device::DeviceError;
use crate::device::backend::Sums;
use crate::device::kernels::{MAX_SUMS, WORDS};
use std::sync::atomic::{AtomicI64, Ordering, fence};

/// Words of the widest sum and a maximum.
const SUM_WORDS: usize = MAX_SUMS * WORDS + 1;
/// Bytes of these words and of one more: the number of the sum, or of the blocks that have added to it.
pub(crate) const SUM_BYTES: usize = (SUM_WORDS + 1) * 8;

/// The words of a sum in host memory that the GPU writes, followed by the sum's number, which it writes last.
pub(crate) struct MappedSums {
    words: *mut i64,
    turn: AtomicI64,
}

impl MappedSums {
    /// Polls `words`.
    ///
    /// # Safety
    /// There are [`SUM_BYTES`] bytes, they live as long as this, and only kernels write them.
    pub(crate) unsafe fn new(words: *mut i64) -> Self {
        // SAFETY: the caller's promise.
        unsafe { words.add(SUM_WORDS).write_volatile(0) };
        Self { words, turn: AtomicI64::new(0) }
    }

    /// The number of the next sum.
    pub(crate) fn next(&self) -> i64 {
        self.turn.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits for sum number `turn`, which has `sums` sums. `is_done` reports whether the GPU has finished all work: a
    /// kernel that failed writes nothing.
    ///
    /// # Errors
    /// `silent` if the GPU has finished without writing; errors of `is_done`.
    ///
    /// # Safety
    /// The sum was launched, and no other since.
    pub(crate) unsafe fn wait(
        &self,
        turn: i64,
        sums: usize,
        is_done: impl Fn() -> Result<bool, DeviceError>,
        silent: impl Fn() -> DeviceError,
    ) -> Result<Sums, DeviceError> {
        // SAFETY: the words exist by `new`; by the caller's promise, nobody writes them once the turn is there.
        unsafe {
            let written = self.words.add(SUM_WORDS);
            let mut looks = 0u32;
            while written.read_volatile() != turn {
                std::hint::spin_loop();
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(1 << 16) && is_done()? && written.read_volatile() != turn {
                    return Err(silent());
                }
            }
            fence(Ordering::Acquire);
            Ok(Sums::from_words(std::slice::from_raw_parts(self.words, sums * WORDS + 1)))
        }
    }
}
