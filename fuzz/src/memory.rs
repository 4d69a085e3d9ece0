//! The memory that a thread asks for. What C libraries take is not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes held by this thread, and the most of them since [`peak`] began.
    static HELD: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

/// The system's allocator, with a count.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn count(bytes: isize) {
    // At the very end of a thread the count is gone.
    let _ = HELD.try_with(|held| {
        let [now, most] = held.get();
        held.set([now + bytes, most.max(now + bytes)]);
    });
}

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller has promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller has promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What `work` gives, and the most bytes that this thread held in it above those from before.
pub(super) fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let start = HELD.with(|held| {
        let [now, _] = held.get();
        held.set([now, now]);
        now
    });
    let value = work();
    let most = HELD.with(|held| held.get()[1]);
    (value, (most - start).cast_unsigned())
}

/// What `work` gives.
///
/// # Panics
/// It held more than `each` bytes per byte of `read`, and a mebibyte.
pub(super) fn bounded<T>(read: usize, each: usize, work: impl FnOnce() -> T) -> T {
    let (value, most) = peak(work);
    assert!(most <= (1 << 20) + each * read, "{most} bytes of memory for a file of {read} bytes");
    value
}
