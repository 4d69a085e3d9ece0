//! Pointers of the caller. All are checked for null and alignment; that they point to as much as is said is the caller's
//! promise. Memory for results is never read, and no reference to it exists.

use super::fault::Failure;
use std::ffi::{CStr, CString, c_char};

/// Refuses a pointer that cannot be one.
fn require<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::refused(format!("{what}: a null pointer")));
    }
    if pointer.is_aligned() { Ok(()) } else { Err(Failure::refused(format!("{what}: not aligned"))) }
}

/// What a pointer of the caller points to.
///
/// # Safety
/// If it is not null, it points to a `T` that nobody writes during `'a`.
pub(super) unsafe fn borrowed<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    require(pointer, what)?;
    // SAFETY: it is not null and is aligned; the rest is the caller's promise.
    Ok(unsafe { &*pointer })
}

/// As [`borrowed`], to change.
///
/// # Safety
/// If it is not null, it points to a `T` that nobody else uses during `'a`.
pub(super) unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    require(pointer, what)?;
    // SAFETY: it is not null and is aligned; the rest is the caller's promise.
    Ok(unsafe { &mut *pointer })
}

/// `count` values of the caller.
///
/// # Safety
/// If it is not null, it points to so many values, which nobody writes during `'a`.
pub(super) unsafe fn values<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    require(pointer, what)?;
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::refused(format!("{what}: {count} values do not fit into memory")));
    }
    // SAFETY: it is not null, is aligned and of a possible length; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// A text of the caller.
///
/// # Safety
/// If it is not null, it points to bytes that end in zero and that nobody writes during `'a`.
pub(super) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    require(pointer, what)?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|_| Failure::refused(format!("{what}: not UTF-8 text")))
}

/// Room for results in the caller's memory.
pub(super) struct Room<T> {
    at: *mut T,
    count: usize,
}

impl<T: Copy> Room<T> {
    /// Room for `count` values.
    ///
    /// # Safety
    /// If it is not null, so many values may be written there until this is dropped.
    pub(super) unsafe fn new(at: *mut T, count: usize, what: &str) -> Result<Self, Failure> {
        require(at, what)?;
        Ok(Self { at, count })
    }

    /// Refuses room for more or fewer than `count`.
    pub(super) fn require(&self, count: usize) -> Result<(), Failure> {
        if count == self.count {
            return Ok(());
        }
        Err(Failure::refused(format!("{} values, {count} expected", self.count)))
    }

    /// Writes them.
    ///
    /// # Errors
    /// There are more or fewer than there is room for.
    pub(super) fn write(self, values: &[T]) -> Result<(), Failure> {
        self.require(values.len())?;
        // SAFETY: the promise of `new`. `values` may be in the same place.
        unsafe { std::ptr::copy(values.as_ptr(), self.at, self.count) };
        Ok(())
    }
}

impl<T> Room<*mut T> {
    /// Hands something to the caller, who frees it by [`taken`].
    pub(super) fn give(self, value: T) {
        // SAFETY: the promise of `new`, and room for one.
        unsafe { self.at.write(Box::into_raw(Box::new(value))) };
    }
}

/// What was given to the caller, to be dropped; nothing if it is null.
///
/// # Safety
/// It is null, or was given by [`Room::give`] and not taken since.
pub(super) unsafe fn taken<T>(pointer: *mut T) -> Option<Box<T>> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { Box::from_raw(pointer) })
}

/// Hands a text to the caller, who frees it by [`free_text`].
pub(super) fn give_text(room: Room<*mut c_char>, text: &str) -> Result<(), Failure> {
    let text = CString::new(text).map_err(|_| Failure::refused("a zero byte in a text"))?;
    room.write(&[text.into_raw()])
}

/// Frees a text of [`give_text`].
///
/// # Safety
/// It is null, or of [`give_text`] and not freed since.
pub(super) unsafe fn free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { CString::from_raw(text) });
    }
}
