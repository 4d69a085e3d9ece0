//! Device memory with an owner.

use super::args::Pointer;
use super::{Device, DeviceError};

/// Memory on a device, given back when dropped.
pub struct Buffer {
    device: Device,
    pointer: Pointer,
    bytes: usize,
}

impl Buffer {
    pub(super) fn new(device: Device, bytes: usize) -> Result<Self, DeviceError> {
        let pointer = device.backend().allocate(bytes)?;
        let buffer = Self { device, pointer, bytes };
        buffer.zero()?;
        Ok(buffer)
    }

    /// Where it is, for kernels.
    pub fn pointer(&self) -> Pointer {
        self.pointer
    }

    /// A place inside.
    pub fn at(&self, offset: usize) -> Pointer {
        debug_assert!(offset <= self.bytes);
        Pointer(self.pointer.0 + offset as u64)
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All bytes zero.
    ///
    /// # Errors
    /// The device is lost.
    pub fn zero(&self) -> Result<(), DeviceError> {
        // SAFETY: the buffer holds `bytes`.
        unsafe { self.device.backend().zero(self.pointer, self.bytes) }
    }

    /// Replaces the first `size_of_val(data)` bytes.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// More data than room.
    pub fn write<T: Copy>(&self, data: &[T]) -> Result<(), DeviceError> {
        assert!(size_of_val(data) <= self.bytes, "a write past a buffer's end");
        // SAFETY: T is plain data; the length was checked.
        unsafe {
            let bytes = std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data));
            self.device.backend().upload(self.pointer, bytes)
        }
    }

    /// Reads the first `size_of_val(data)` bytes.
    ///
    /// # Errors
    /// The device is lost, or an earlier kernel failed.
    ///
    /// # Panics
    /// More data than there is.
    pub fn read<T: Copy>(&self, data: &mut [T]) -> Result<(), DeviceError> {
        assert!(size_of_val(data) <= self.bytes, "a read past a buffer's end");
        // SAFETY: T is plain numbers of any bits; the length was checked.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(data.as_mut_ptr().cast::<u8>(), size_of_val(data));
            self.device.backend().download(bytes, self.pointer)
        }
    }

    /// Where the bytes are on the host; `None` on a device with memory of its own.
    pub fn host_pointer(&self) -> Option<*mut u8> {
        self.device.backend().is_host().then_some(self.pointer.0 as *mut u8)
    }

    /// Replaces the content by another buffer's of the same length.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn copy_from(&self, other: &Self) -> Result<(), DeviceError> {
        assert_eq!(self.bytes, other.bytes, "a copy between buffers of different length");
        // SAFETY: both hold `bytes`.
        unsafe { self.device.backend().copy(self.pointer, other.pointer, self.bytes) }
    }

    /// Replaces `bytes` bytes from `at` by those of another buffer from `from`.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// Past the end of either.
    pub fn copy_part(&self, at: usize, other: &Self, from: usize, bytes: usize) -> Result<(), DeviceError> {
        assert!(at + bytes <= self.bytes && from + bytes <= other.bytes, "a copy past a buffer's end");
        // SAFETY: both ranges were checked.
        unsafe { self.device.backend().copy(self.at(at), other.at(from), bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `allocate(bytes)`, and this is its only owner.
        unsafe { self.device.backend().free(self.pointer, self.bytes) }
    }
}

/// Memory of another process, opened; closed when dropped, and all work on it must be done by then.
pub struct Remote {
    device: Device,
    pointer: Pointer,
}

impl Remote {
    pub(super) fn new(device: Device, handle: &[u8]) -> Result<Self, DeviceError> {
        let pointer = device.backend().import(handle)?;
        Ok(Self { device, pointer })
    }

    /// Where it is, for kernels.
    pub fn pointer(&self) -> Pointer {
        self.pointer
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `import`, and this is its only owner, who has waited for the work.
        unsafe { self.device.backend().close(self.pointer) }
    }
}

/// Host memory from which and to which a device copies fast.
pub struct Staging {
    device: Device,
    bytes: Box<[u8]>,
}

impl Staging {
    /// `bytes` bytes, zero.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn new(device: &Device, bytes: usize) -> Result<Self, DeviceError> {
        let mut memory = vec![0; bytes].into_boxed_slice();
        // SAFETY: the box is not moved out of, and unpinned before it goes.
        unsafe { device.backend().pin(&mut memory)? };
        Ok(Self { device: device.clone(), bytes: memory })
    }
}

impl std::ops::Deref for Staging {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::ops::DerefMut for Staging {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: pinned by `new`; every staging call has returned.
        unsafe { self.device.backend().unpin(&mut self.bytes) }
    }
}
