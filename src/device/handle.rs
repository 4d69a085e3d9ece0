//! A device as everybody uses it: its memory, and launches whose arguments are what their kernel wants.

use super::backend::{Backend, Begun, Call, Nature, Stager, Sums, Use};
use super::kernels::{Doubles, In, Kernel, OnSites, OnTeams, Summing};
use super::meeting::Meeting;
use super::record::{Instance, Record};
use super::size::{Count, Size, Team, Variant};
use super::table::all_kernels;
use super::{Buffer, DeviceError, GpuOptions, Held, HostRoom, Precision, Remote, cuda, product};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::sync::Arc;

/// Sums that the device may still be making.
pub struct Deferred {
    device: Device,
    begun: Begun,
}

impl Deferred {
    /// The sums, when they are made.
    ///
    /// # Errors
    /// The device is lost.
    pub fn wait(&self) -> Result<Sums, DeviceError> {
        match &self.begun {
            Begun::Done(sums) => Ok(sums.clone()),
            Begun::Later(ticket) => self.device.backend.finish_sum(*ticket),
        }
    }

    /// The rounded sums, one after the other, for a launch; `None` if they are known to the host.
    ///
    /// # Panics
    /// So many sums were asked for since that the device does not keep these.
    pub(crate) fn on_device(&self) -> Option<In<'_, Doubles>> {
        self.on_device_at(0)
    }

    /// The same from sum number `n` on.
    ///
    /// # Panics
    /// As [`Deferred::on_device`].
    pub(crate) fn on_device_at(&self, n: usize) -> Option<In<'_, Doubles>> {
        let Begun::Later(ticket) = self.begun else { return None };
        assert!(self.device.backend.keeps_sum(ticket), "a sum that the device has forgotten");
        // SAFETY: the memory lives as long as the device, and only its work writes it, in order.
        Some(unsafe { In::at(ticket.rounded.offset(n * size_of::<f64>()).address()) })
    }
}

/// A shared handle of a device, with the kernels of one lattice.
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
    variant: usize,
    record: Option<Arc<Record>>,
    /// Of what is recorded.
    lattice: Option<Variant>,
}

/// While this lives, allocations are counted under its label; afterwards under the label before.
#[must_use = "the label ends with this"]
pub struct Label {
    device: Device,
    before: Arc<str>,
}

impl Drop for Label {
    fn drop(&mut self) {
        self.device.backend.ledger().set_label(Arc::clone(&self.before));
    }
}

impl Device {
    /// Counts allocations from now on under `label`; [`Device::held`] lists bytes by label.
    pub fn label(&self, label: &str) -> Label {
        Label { device: self.clone(), before: self.backend.ledger().set_label(label.into()) }
    }

    /// The most memory that was held at once so far. On a GPU this is what the driver gave out, without the kernels'
    /// code.
    pub fn held(&self) -> Held {
        self.backend.ledger().most()
    }

    /// Wraps a backend.
    pub fn new(backend: impl Backend + 'static) -> Self {
        Self { backend: Arc::new(backend), variant: 0, record: None, lattice: None }
    }

    /// This device, which tells `record` the kernels that it is asked for on a lattice.
    #[must_use]
    pub fn recorded(self, record: &Arc<Record>) -> Self {
        Self { record: Some(Arc::clone(record)), ..self }
    }

    /// Whether both are handles of one device.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }

    /// GPU number `index` of the [`gpu_count`](super::gpu_count) that this process sees.
    ///
    /// # Errors
    /// There is no such GPU, it does not answer, or this build has no CUDA.
    pub fn gpu(index: usize, options: GpuOptions) -> Result<Self, DeviceError> {
        cuda::open(index, options)
    }

    /// This device with kernels compiled for a lattice.
    #[must_use]
    pub fn specialised(&self, variant: Variant) -> Self {
        let number = self.backend.specialise(variant);
        Self { variant: number, lattice: Some(variant), ..self.clone() }
    }

    fn call<'a, K: Kernel>(&self, form: K::Form, kernel: &'a K, size: Size) -> Call<'a> {
        let (number, precision) = K::number(form);
        let constants = kernel.constants();
        if let (Some(record), Some(variant)) = (&self.record, self.lattice) {
            record.add(Instance { kernel: number, precision, constants, variant, size });
        }
        Call {
            kernel: number,
            precision,
            constants,
            variant: self.variant,
            packing: kernel.packing(),
            args: std::ptr::from_ref(kernel).cast(),
            lives: PhantomData,
        }
    }

    /// The backend itself.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Its copies beside work.
    ///
    /// # Panics
    /// The host reads its memory itself.
    pub(super) fn stager(&self) -> &dyn Stager {
        self.backend.stager().expect("memory that is not the host's")
    }

    /// What it is.
    pub fn nature(&self) -> Nature {
        self.backend.nature()
    }

    /// Sites that kernels in `precision` work on at once.
    pub fn lanes(&self, precision: Precision) -> usize {
        self.nature().lanes.of(precision)
    }

    /// Allocates memory and sets all bytes to zero.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.buffer_for(Use::Private, bytes)
    }

    /// As [`Device::buffer`], for another use.
    pub fn buffer_for(&self, usage: Use, bytes: usize) -> Result<Buffer, DeviceError> {
        Buffer::new(self.clone(), bytes, self.backend.allocate(bytes, usage)?)
    }

    /// A buffer that holds `data`.
    pub fn buffer_of<T: Pod>(&self, data: &[T]) -> Result<Buffer, DeviceError> {
        let mut buffer = self.buffer(size_of_val(data).max(1))?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// A buffer with a table of `count` entries, which is made only where it is kept.
    ///
    /// # Panics
    /// It has another number of them.
    pub(crate) fn table<T: Pod>(
        &self,
        count: usize,
        make: impl FnOnce() -> Vec<T>,
    ) -> Result<Buffer, DeviceError> {
        let mut buffer = self.buffer(product([count, size_of::<T>()]).max(1))?;
        if self.nature().keeps {
            let table = make();
            assert_eq!(table.len(), count, "entries of a table");
            buffer.write(&table)?;
        }
        Ok(buffer)
    }

    /// Counts `bytes` of host memory, which the caller takes, as long as the answer lives.
    pub fn host_room(&self, bytes: usize) -> HostRoom {
        HostRoom::new(self.clone(), bytes)
    }

    /// Opens memory that another process exported ([`Buffer::export`]).
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory; a CPU.
    pub fn open(&self, handle: &[u8]) -> Result<Remote, DeviceError> {
        Remote::new(self.clone(), handle)
    }

    /// # Errors
    /// A launch of more than a kernel counts.
    fn counted<K: Kernel>(form: K::Form, n: usize) -> Result<Count, DeviceError> {
        Count::new(n).ok_or_else(|| {
            let (number, precision) = K::number(form);
            DeviceError::TooMany { kernel: all_kernels().get(number, precision).name.clone(), count: n }
        })
    }

    /// Runs a plain kernel on sites `0..n`.
    pub(crate) fn launch<K: OnSites>(&self, form: K::Form, kernel: &K, n: usize) -> Result<(), DeviceError> {
        self.launch_size(form, kernel, Size::Sites(Self::counted::<K>(form, n)?))
    }

    /// Runs a kernel that works in `n` teams.
    pub(crate) fn launch_teams<K: OnTeams>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
        team: Team,
    ) -> Result<(), DeviceError> {
        self.launch_size(form, kernel, Size::Teams(Self::counted::<K>(form, n)?, team))
    }

    fn launch_size<K: Kernel>(&self, form: K::Form, kernel: &K, size: Size) -> Result<(), DeviceError> {
        if size.count().get() == 0 {
            return Ok(());
        }
        // SAFETY: the fields that made the arguments hold memory of the geometry in them, and the code that builds them knows
        // the kernel's teams.
        unsafe { self.backend.launch(self.call(form, kernel, size), size) }
    }

    /// Runs a summing kernel on sites `0..n`.
    pub(crate) fn sum<K: Summing>(&self, form: K::Form, kernel: &K, n: usize) -> Result<Sums, DeviceError> {
        self.sum_later(form, kernel, n)?.wait()
    }

    /// As [`Device::sum`], without waiting if the device works asynchronously.
    pub(crate) fn sum_later<K: Summing>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
    ) -> Result<Deferred, DeviceError> {
        self.begin_sum(form, kernel, n, None)
    }

    /// As [`Device::sum_later`], over all ranks, which call it together.
    pub(crate) fn sum_of_ranks_later<K: Summing>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
        meeting: &Meeting,
    ) -> Result<Deferred, DeviceError> {
        self.begin_sum(form, kernel, n, Some(meeting))
    }

    fn begin_sum<K: Summing>(
        &self,
        form: K::Form,
        kernel: &K,
        n: usize,
        meeting: Option<&Meeting>,
    ) -> Result<Deferred, DeviceError> {
        let n = Self::counted::<K>(form, n)?;
        let call = self.call(form, kernel, Size::Sites(n));
        // SAFETY: as in `launch_size`; ranks do the same work in the same order.
        let begun = unsafe { self.backend.begin_sum(call, n, meeting.map(Meeting::next))? };
        Ok(self.deferred(begun))
    }

    /// Sums that are known.
    pub(crate) fn known(&self, sums: Sums) -> Deferred {
        self.deferred(Begun::Done(sums))
    }

    fn deferred(&self, begun: Begun) -> Deferred {
        Deferred { device: self.clone(), begun }
    }

    /// Waits for all work.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.backend.synchronize()
    }

    /// Seconds that the device takes for the launches of `work`, by its own clock.
    pub fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        self.backend.elapsed(work)
    }
}
