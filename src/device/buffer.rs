//! Device memory with an owner.

use super::kernels::{In, Out};
use super::{Device, DeviceError, Parcel, Pointer};
use bytemuck::Pod;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl Pointer {
    /// The address `bytes` bytes further on.
    pub(super) fn offset(self, bytes: usize) -> Self {
        Self(self.0 + bytes as u64)
    }

    pub(super) fn address(self) -> NonZero<u64> {
        NonZero::new(self.0).expect("no device has memory at address 0")
    }
}

/// The number of a buffer's content: equal numbers, equal content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u64);

/// The number of the latest content of any buffer.
static CONTENTS: AtomicU64 = AtomicU64::new(0);

/// Device memory; freed when dropped.
pub struct Buffer {
    device: Device,
    pointer: Pointer,
    bytes: usize,
    stamp: AtomicU64,
}

impl Buffer {
    /// Memory that was allocated for it.
    pub(super) fn new(device: Device, bytes: usize, pointer: Pointer) -> Result<Self, DeviceError> {
        let mut buffer = Self { device, pointer, bytes, stamp: AtomicU64::new(0) };
        buffer.zero()?;
        Ok(buffer)
    }

    /// The number of its content.
    pub fn stamp(&self) -> Stamp {
        Stamp(self.stamp.load(Ordering::Relaxed))
    }

    /// The content is about to change: every way to write the memory begins with this.
    fn changes(&self) {
        self.stamp.store(CONTENTS.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The argument of a kernel that reads the buffer as memory of kind `K`.
    pub(crate) fn input<K>(&self) -> In<'_, K> {
        self.input_at(0)
    }

    /// As [`Buffer::input`], from byte `offset` on.
    ///
    /// # Panics
    /// `offset` is past the end.
    pub(crate) fn input_at<K>(&self, offset: usize) -> In<'_, K> {
        assert!(offset <= self.bytes, "an offset past a buffer's end");
        // SAFETY: the memory is the buffer's, which is borrowed.
        unsafe { In::at(self.pointer.offset(offset).address()) }
    }

    /// The argument of a kernel that writes the buffer as memory of kind `K`.
    pub(crate) fn output<K>(&mut self) -> Out<'_, K> {
        self.output_at(0)
    }

    /// As [`Buffer::output`], from byte `offset` on.
    ///
    /// # Panics
    /// `offset` is past the end.
    pub(crate) fn output_at<K>(&mut self, offset: usize) -> Out<'_, K> {
        self.changes();
        assert!(offset <= self.bytes, "an offset past a buffer's end");
        // SAFETY: the memory is the buffer's, which is borrowed exclusively.
        unsafe { Out::at(self.pointer.offset(offset).address()) }
    }

    /// As [`Buffer::output`], for a buffer with several owners. Work is done in order, so all owners see the new
    /// content.
    pub(crate) fn shared_output<K>(&self) -> Out<'_, K> {
        self.shared_output_at(0)
    }

    /// As [`Buffer::shared_output`], from byte `offset` on.
    ///
    /// # Panics
    /// `offset` is past the end.
    pub(crate) fn shared_output_at<K>(&self, offset: usize) -> Out<'_, K> {
        self.changes();
        assert!(offset <= self.bytes, "an offset past a buffer's end");
        // SAFETY: the memory is the buffer's, which is borrowed; no owner reads it on the host.
        unsafe { Out::at(self.pointer.offset(offset).address()) }
    }

    /// Arguments of kernels that write the buffer's parts of `bytes` bytes each.
    pub(crate) fn outputs<K: 'static>(&mut self, bytes: usize) -> impl Iterator<Item = Out<'_, K>> {
        self.changes();
        let pointer = self.pointer;
        // SAFETY: the memory is the buffer's, which is borrowed exclusively; parts do not overlap.
        (0..self.bytes / bytes).map(move |n| unsafe { Out::at(pointer.offset(n * bytes).address()) })
    }

    /// Its address.
    pub(super) fn pointer(&self) -> Pointer {
        self.pointer
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets all bytes to zero.
    pub fn zero(&mut self) -> Result<(), DeviceError> {
        self.zero_part(0, self.bytes)
    }

    /// Sets `bytes` bytes from byte `at` on to zero.
    ///
    /// # Panics
    /// A range past the end of the buffer.
    pub fn zero_part(&mut self, at: usize, bytes: usize) -> Result<(), DeviceError> {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes), "zeros past a buffer's end");
        self.changes();
        // SAFETY: the range was checked.
        unsafe { self.device.backend().zero(self.pointer.offset(at), bytes) }
    }

    /// Replaces the first `size_of_val(data)` bytes.
    ///
    /// # Panics
    /// `data` is longer than the buffer.
    pub fn write<T: Pod>(&mut self, data: &[T]) -> Result<(), DeviceError> {
        self.write_part(0, data)
    }

    /// Replaces `size_of_val(data)` bytes from byte `at` on.
    ///
    /// # Panics
    /// A range past the end of the buffer.
    pub(crate) fn write_part<T: Pod>(&mut self, at: usize, data: &[T]) -> Result<(), DeviceError> {
        let end = at.checked_add(size_of_val(data));
        assert!(end.is_some_and(|end| end <= self.bytes), "a write past a buffer's end");
        self.changes();
        // SAFETY: the range was checked.
        unsafe { self.device.backend().upload(self.pointer.offset(at), bytemuck::cast_slice(data)) }
    }

    /// Changes all reals on the host, `unit` by `unit`, some megabytes at a time. A device that keeps none has none to change.
    pub(crate) fn change(
        &mut self,
        unit: usize,
        mut change: impl FnMut(&mut [f64]),
    ) -> Result<(), DeviceError> {
        let (all, part) = (self.bytes / 8, (1 << 20) / unit * unit);
        let all = if self.device.nature().keeps { all } else { 0 };
        let mut reals = vec![0.0; part.min(all)];
        for first in (0..all).step_by(part) {
            let some = &mut reals[..part.min(all - first)];
            let from = self.pointer.offset(8 * first);
            // SAFETY: inside the buffer.
            unsafe { self.device.backend().download(bytemuck::cast_slice_mut(some), from)? };
            some.chunks_exact_mut(unit).for_each(&mut change);
            self.write_part(8 * first, some)?;
        }
        Ok(())
    }

    /// Reads the first `size_of_val(data)` bytes. Any bit pattern must be a valid `T`:
    ///
    /// ```compile_fail,E0277
    /// fn read(buffer: &hmc::device::Buffer) {
    ///     buffer.read(&mut [true]).unwrap();
    /// }
    /// ```
    ///
    /// # Panics
    /// `data` is longer than the buffer.
    pub fn read<T: Pod>(&self, data: &mut [T]) -> Result<(), DeviceError> {
        assert!(size_of_val(data) <= self.bytes, "a read past a buffer's end");
        // SAFETY: the length was checked.
        unsafe { self.device.backend().download(bytemuck::cast_slice_mut(data), self.pointer) }
    }

    /// The bytes, if they are in host memory; `None` on a device with memory of its own.
    pub fn host(&self) -> Option<&[u8]> {
        // SAFETY: a CPU's launches return when they are done, so nothing but this borrow uses the memory.
        let bytes = || unsafe { std::slice::from_raw_parts(self.pointer.0 as *const u8, self.bytes) };
        self.device.nature().is_host().then(bytes)
    }

    /// As [`Buffer::host`], for writing.
    pub fn host_mut(&mut self) -> Option<&mut [u8]> {
        self.changes();
        // SAFETY: as in `host`.
        let bytes = || unsafe { std::slice::from_raw_parts_mut(self.pointer.0 as *mut u8, self.bytes) };
        self.device.nature().is_host().then(bytes)
    }

    /// A handle by which another process may open the buffer; `None` on a CPU. What that process writes leaves the
    /// [stamp](Self::stamp) as it is.
    ///
    /// # Panics
    /// On a GPU, a buffer that was not made [for export](super::Use::Exported).
    pub fn export(&self) -> Result<Option<Vec<u8>>, DeviceError> {
        self.device.backend().sharing().map(|sharing| sharing.export(self.pointer)).transpose()
    }

    /// Bytes that go to a rank ([`Network::exchange`](super::Network::exchange)).
    ///
    /// # Panics
    /// The buffer is shorter.
    pub(crate) fn parcel_to(&self, peer: usize, bytes: Range<usize>) -> Parcel<'_> {
        assert!(bytes.end <= self.bytes, "a read past a buffer's end");
        Parcel::new(peer, self.pointer.offset(bytes.start), bytes.len())
    }

    /// Room for bytes that come from ranks.
    ///
    /// # Panics
    /// The buffer is shorter, or they overlap or are not in order.
    pub(crate) fn parcels_from(&mut self, parts: &[(usize, Range<usize>)]) -> Vec<Parcel<'_>> {
        self.changes();
        let mut begin = 0;
        let parcel = |(peer, bytes): &(usize, Range<usize>)| {
            assert!(begin <= bytes.start && bytes.end <= self.bytes, "writes past a buffer's end, or twice");
            begin = bytes.end;
            Parcel::new(*peer, self.pointer.offset(bytes.start), bytes.len())
        };
        parts.iter().map(parcel).collect()
    }

    /// Room for the first `bytes`, which come from a rank.
    ///
    /// # Panics
    /// The buffer is shorter.
    pub(crate) fn parcel_from(&mut self, peer: usize, bytes: usize) -> Parcel<'_> {
        self.parcels_from(&[(peer, 0..bytes)]).remove(0)
    }

    /// Copies to the host as soon as the last mark is reached ([`Backend::mark`](super::Backend::mark)), while later
    /// work goes on.
    ///
    /// # Panics
    /// `to` is longer than the buffer; the buffer is the host's.
    ///
    /// # Safety
    /// No work after the mark writes the buffer.
    pub(crate) unsafe fn stage_out(&self, to: &mut [u8]) -> Result<(), DeviceError> {
        assert!(to.len() <= self.bytes, "a read past a buffer's end");
        // SAFETY: the caller's promise; the length was checked.
        unsafe { self.device.stager().stage_out(to, self.pointer) }
    }

    /// Copies from the host while earlier work goes on; later work waits for it.
    ///
    /// # Panics
    /// `from` is longer than the buffer; the buffer is the host's.
    ///
    /// # Safety
    /// No work launched so far touches the buffer.
    pub(crate) unsafe fn stage_in(&mut self, from: &[u8]) -> Result<(), DeviceError> {
        assert!(from.len() <= self.bytes, "a write past a buffer's end");
        self.changes();
        // SAFETY: the caller's promise; the length was checked.
        unsafe { self.device.stager().stage_in(self.pointer, from) }
    }

    /// Copies the content of another buffer of the same length.
    ///
    /// # Panics
    /// The lengths or the devices differ.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), DeviceError> {
        self.shared_copy_from(other)
    }

    /// As [`Buffer::copy_from`], for memory that owners share: see [`Buffer::shared_output`].
    pub(crate) fn shared_copy_from(&self, other: &Self) -> Result<(), DeviceError> {
        assert_eq!(self.bytes, other.bytes, "a copy between buffers of different length");
        assert!(self.device.is(&other.device), "a copy between devices");
        self.stamp.store(other.stamp.load(Ordering::Relaxed), Ordering::Relaxed);
        // SAFETY: both hold `bytes`, on one device.
        unsafe { self.device.backend().copy(self.pointer, other.pointer, self.bytes) }
    }

    /// Copies `bytes` bytes of `other`, from byte `from` on, to byte `at`.
    ///
    /// # Panics
    /// A range past the end of either buffer.
    pub fn copy_part(
        &mut self,
        at: usize,
        other: &Self,
        from: usize,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let inside = |start: usize, all: usize| start.checked_add(bytes).is_some_and(|end| end <= all);
        assert!(inside(at, self.bytes) && inside(from, other.bytes), "a copy past a buffer's end");
        assert!(self.device.is(&other.device), "a copy between devices");
        self.changes();
        // SAFETY: both ranges were checked, and the device.
        unsafe { self.device.backend().copy(self.pointer.offset(at), other.pointer.offset(from), bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `allocate(bytes)`, and this is its only owner.
        unsafe { self.device.backend().free(self.pointer, self.bytes) }
    }
}

/// Memory of another process. It is closed when dropped; all work on it must be done by then.
pub struct Remote {
    device: Device,
    pointer: Pointer,
}

impl Remote {
    pub(super) fn new(device: Device, handle: &[u8]) -> Result<Self, DeviceError> {
        let no_gpu = || DeviceError::NoGpu("memory of other ranks is reached through MPI on a CPU".into());
        let pointer = device.backend().sharing().ok_or_else(no_gpu)?.import(handle)?;
        Ok(Self { device, pointer })
    }

    /// Its address here.
    pub(super) fn pointer(&self) -> Pointer {
        self.pointer
    }

    /// The argument of a kernel that writes it as memory of kind `K`.
    pub(crate) fn output<K>(&mut self) -> Out<'_, K> {
        self.shared_output()
    }

    /// As [`Remote::output`], for memory in which each owner has its own places.
    pub(crate) fn shared_output<K>(&self) -> Out<'_, K> {
        // SAFETY: the memory is open as long as this, which is borrowed; ranks take turns with it.
        unsafe { Out::at(self.pointer.address()) }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let sharing = self.device.backend().sharing().expect("it was opened");
        // SAFETY: the pointer came from `import`, and this is its only owner, who has waited for the work.
        unsafe { sharing.close(self.pointer) }
    }
}

/// Host memory that its owner has taken, counted with the device's own where that is the host's.
#[must_use = "it is counted as long as this lives"]
pub struct HostRoom {
    device: Device,
    label: Option<Arc<str>>,
    bytes: u64,
}

impl HostRoom {
    pub(super) fn new(device: Device, bytes: usize) -> Self {
        let (backend, bytes) = (device.backend(), bytes as u64);
        let label = backend.ledger().take_host(bytes, backend.nature().is_in_host);
        Self { device, label, bytes }
    }
}

impl Drop for HostRoom {
    fn drop(&mut self) {
        self.device.backend().ledger().give_host(self.bytes, self.label.as_deref());
    }
}

/// Page-locked host memory, for copies to and from a device beside its work. Of a device that keeps nothing it is empty.
pub struct Staging {
    device: Device,
    bytes: Box<[u8]>,
    counted: u64,
}

impl Staging {
    /// `bytes` bytes, zero; `None` where the host reads and writes the device's memory itself.
    pub fn new(device: &Device, bytes: usize) -> Result<Option<Self>, DeviceError> {
        let (backend, nature) = (device.backend(), device.nature());
        let Some(stager) = backend.stager() else { return Ok(None) };
        let mut memory = vec![0; if nature.keeps { bytes } else { 0 }].into_boxed_slice();
        // SAFETY: the box is not moved out of, and unpinned before it goes.
        unsafe { stager.pin(&mut memory)? };
        let counted = if nature.is_in_host { 0 } else { bytes as u64 };
        backend.ledger().lock(counted);
        Ok(Some(Self { device: device.clone(), bytes: memory, counted }))
    }

    /// The first `bytes` bytes, as far as they are kept.
    pub fn first(&mut self, bytes: usize) -> &mut [u8] {
        let kept = bytes.min(self.bytes.len());
        &mut self.bytes[..kept]
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
        self.device.backend().ledger().unlock(self.counted);
        // SAFETY: pinned by `new`; every staging call has returned.
        unsafe { self.device.stager().unpin(&mut self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Counting, Cpu};

    fn pair(device: &Device) -> [Buffer; 2] {
        [0, 1].map(|_| device.buffer(64).unwrap())
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        let device = Device::new(Cpu::new(1).unwrap());
        for bytes in [usize::MAX, usize::MAX - 63, 1 << 63] {
            assert!(matches!(device.buffer(bytes), Err(DeviceError::OutOfMemory { .. })), "{bytes}");
        }
    }

    #[test]
    #[should_panic(expected = "past a buffer's end")]
    fn the_end_of_a_part_does_not_wrap() {
        let [mut to, from] = pair(&Device::new(Cpu::new(1).unwrap()));
        to.copy_part(usize::MAX - 7, &from, 0, 8).unwrap();
    }

    #[test]
    #[should_panic(expected = "between devices")]
    fn nothing_is_copied_between_devices() {
        let [mut to, _] = pair(&Device::new(Cpu::new(1).unwrap()));
        let [from, _] = pair(&Device::new(Counting::cpu(1)));
        to.copy_from(&from).unwrap();
    }
}
