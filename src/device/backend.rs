//! What both devices offer.

use super::kernels::{Constants, Kernel, KernelNumber, OnSites, OnTeams, Summing, WORDS};
use super::{Buffer, DeviceError, GpuOptions, Held, Ledger, Precision, Remote, cuda};
use crate::math::ExactSum;
use bytemuck::Pod;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

/// An address in a device's memory, which only devices look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer(pub(super) u64);

/// Kernels and the host agree on the words of a sum.
const _: fn(ExactSum) -> [i64; WORDS] = ExactSum::words;

/// Sums and maximum of a kernel over this rank's sites.
#[derive(Clone, Debug)]
pub struct Sums {
    /// The kernel's sums, in its order.
    pub sums: Vec<ExactSum>,
    /// The greatest of what it compared; 0 if nothing, NaN if any was.
    pub max: f64,
}

impl Sums {
    /// From the words of the kernels: `n` sums, then the bits of the maximum.
    pub(super) fn from_words(words: &[i64]) -> Self {
        let (max, sums) = words.split_last().expect("a maximum");
        let sums = sums
            .chunks_exact(WORDS)
            .map(|w| ExactSum::from_words(w.try_into().expect("a sum's words")))
            .collect();
        Self { sums, max: f64::from_bits(*max as u64) }
    }
}

/// What a lattice fixes when kernels are compiled for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Extents of a lane's box.
    pub outer: [usize; 4],
    /// Whether any direction is cut.
    pub cut: bool,
}

/// A kernel with its arguments.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Which.
    pub kernel: KernelNumber,
    /// In what it computes.
    pub precision: Precision,
    /// What of the arguments a GPU's compiler may know.
    pub constants: Constants,
    /// The number that [`Backend::specialise`] gave.
    pub variant: usize,
    /// The kernel's argument struct.
    pub(super) args: *const c_void,
    lives: PhantomData<&'a ()>,
}

/// How many there are of what a launch works on.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// Sites `0..n`.
    Sites(usize),
    /// Teams of threads.
    Teams(Teams),
}

/// Teams `0..count`.
#[derive(Clone, Copy, Debug)]
pub struct Teams {
    /// How many.
    pub count: usize,
    /// Threads of each.
    pub threads: usize,
    /// Bytes that the threads of each share.
    pub shared: usize,
}

/// A device. Work is done in the order in which it is asked for; only `download`, `sum` and
/// `synchronize` wait for it.
///
/// # Safety
/// What `allocate` gives is memory of so many bytes that nothing else uses until `free`. With `is_host` it is the host's,
/// and launches are done when they return.
pub unsafe trait Backend: Send + Sync {
    /// For the log: what this is.
    fn name(&self) -> String;
    /// Sites that a kernel works on at once.
    fn lanes(&self) -> usize;
    /// Whether its fields have the host's layout, and MPI takes them where they are.
    fn is_host(&self) -> bool;
    /// Bytes of memory that are free and that there are; `None` where the system does not say.
    fn memory(&self) -> Option<[u64; 2]>;
    /// Takes memory, its content undefined.
    ///
    /// # Errors
    /// No room.
    fn allocate(&self, bytes: usize) -> Result<Pointer, DeviceError>;
    /// Gives memory back.
    ///
    /// # Safety
    /// `pointer` came from `allocate(bytes)` and is used no more.
    unsafe fn free(&self, pointer: Pointer, bytes: usize);
    /// What was given out, and to whom.
    fn ledger(&self) -> &Ledger;
    /// Host to device.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// The memory at `to` is as long as `from`.
    unsafe fn upload(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError>;
    /// Device to host.
    ///
    /// # Errors
    /// The device is lost, or an earlier kernel failed.
    ///
    /// # Safety
    /// The memory at `from` is as long as `to`.
    unsafe fn download(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError>;
    /// Device to device.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// Both hold `bytes`.
    unsafe fn copy(&self, to: Pointer, from: Pointer, bytes: usize) -> Result<(), DeviceError>;
    /// All bytes zero.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// The memory holds `bytes`.
    unsafe fn zero(&self, at: Pointer, bytes: usize) -> Result<(), DeviceError>;
    /// Runs a kernel without sums.
    ///
    /// # Errors
    /// The kernel does not compile, or the device is lost.
    ///
    /// # Safety
    /// The arguments' pointers hold what the kernel touches, and teams are those of the kernel.
    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError>;
    /// Runs a kernel with sums on sites `0..n` and waits for them.
    ///
    /// # Errors
    /// As `launch`.
    ///
    /// # Safety
    /// As `launch`.
    unsafe fn sum(&self, call: Call<'_>, n: usize) -> Result<Sums, DeviceError>;
    /// Waits for all work.
    ///
    /// # Errors
    /// The device is lost, or an earlier kernel failed.
    fn synchronize(&self) -> Result<(), DeviceError>;
    /// Seconds that the device takes for the launches of `work`, by its own clock.
    ///
    /// # Errors
    /// The device is lost.
    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError>;
    /// Marks this point in the order of work.
    ///
    /// # Errors
    /// The device is lost.
    fn mark(&self) -> Result<(), DeviceError>;
    /// Waits for all work before the last mark; what came after it may go on.
    ///
    /// # Errors
    /// The device is lost, or an earlier kernel failed.
    fn wait_for_mark(&self) -> Result<(), DeviceError>;
    /// Device to host as soon as the last mark is reached, beside the work that came after it.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// The memory at `from` is as long as `to`, and no work after the mark writes it.
    unsafe fn stage_out(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError>;
    /// Host to device, beside the work asked for so far; later work waits for it.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// The memory at `to` is as long as `from`, and no work asked for so far touches it.
    unsafe fn stage_in(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError>;
    /// Makes host memory known to the device, so that staging is fast; nothing on a CPU.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Safety
    /// The memory stays where it is until `unpin`.
    unsafe fn pin(&self, memory: &mut [u8]) -> Result<(), DeviceError>;
    /// Takes `pin` back.
    ///
    /// # Safety
    /// The memory was pinned, and no staging is under way.
    unsafe fn unpin(&self, memory: &mut [u8]);
    /// The handle of memory from `allocate` by which another process may open it; `None` on a CPU.
    ///
    /// # Errors
    /// The driver refuses.
    fn export(&self, pointer: Pointer) -> Result<Option<Vec<u8>>, DeviceError>;
    /// Opens memory that another process exported.
    ///
    /// # Errors
    /// The GPUs do not reach each other.
    fn import(&self, handle: &[u8]) -> Result<Pointer, DeviceError>;
    /// Takes `import` back.
    ///
    /// # Safety
    /// The pointer came from `import`, all work on it is done, and it is used no more.
    unsafe fn close(&self, imported: Pointer);
    /// A number by which launches name this lattice.
    fn specialise(&self, variant: Variant) -> usize;
}

/// A shared handle of a device, for kernels of one lattice.
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
    variant: usize,
}

/// While this lives, memory that is taken belongs to its label; then to the label before.
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
    /// Lets memory that is taken from now on belong to `label`, by which [`Device::held`] tells it apart.
    pub fn label(&self, label: &str) -> Label {
        Label { device: self.clone(), before: self.backend.ledger().set_label(label.into()) }
    }

    /// The most memory that was held at once so far; on a GPU what was taken from the driver, without the kernels'.
    pub fn held(&self) -> Held {
        self.backend.ledger().most()
    }

    /// Wraps a backend.
    pub fn new(backend: impl Backend + 'static) -> Self {
        Self { backend: Arc::new(backend), variant: 0 }
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

    /// The same device with kernels compiled for a lattice.
    #[must_use]
    pub fn specialised(&self, variant: Variant) -> Self {
        Self { backend: Arc::clone(&self.backend), variant: self.backend.specialise(variant) }
    }

    fn call<'a, K: Kernel>(&self, form: K::Form, kernel: &'a K) -> Call<'a> {
        let (number, precision) = K::number(form);
        Call {
            kernel: number,
            precision,
            constants: kernel.constants(),
            variant: self.variant,
            args: std::ptr::from_ref(kernel).cast(),
            lives: PhantomData,
        }
    }

    /// The backend itself.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Sites that a kernel works on at once.
    pub fn lanes(&self) -> usize {
        self.backend.lanes()
    }

    /// Takes memory, all bytes zero.
    ///
    /// # Errors
    /// No room.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        Buffer::new(self.clone(), bytes)
    }

    /// A buffer that holds `data`.
    ///
    /// # Errors
    /// No room.
    pub fn buffer_of<T: Pod>(&self, data: &[T]) -> Result<Buffer, DeviceError> {
        let mut buffer = self.buffer(size_of_val(data).max(1))?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// Opens memory that another process exported ([`Backend::export`]).
    ///
    /// # Errors
    /// The GPUs do not reach each other.
    pub fn open(&self, handle: &[u8]) -> Result<Remote, DeviceError> {
        Remote::new(self.clone(), handle)
    }

    /// Runs a plain kernel on sites `0..n`.
    ///
    /// # Errors
    /// The kernel does not compile, or the device is lost.
    pub(crate) fn launch<K: OnSites>(&self, form: K::Form, kernel: &K, n: usize) -> Result<(), DeviceError> {
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the fields that made the arguments hold memory of the geometry in them.
        unsafe { self.backend.launch(self.call(form, kernel), Size::Sites(n)) }
    }

    /// Runs a kernel of teams.
    ///
    /// # Errors
    /// The kernel does not compile, or the device is lost.
    pub(crate) fn launch_teams<K: OnTeams>(
        &self,
        form: K::Form,
        kernel: &K,
        teams: Teams,
    ) -> Result<(), DeviceError> {
        if teams.count == 0 {
            return Ok(());
        }
        // SAFETY: as in `launch`; whoever knows the arguments knows the kernel's teams.
        unsafe { self.backend.launch(self.call(form, kernel), Size::Teams(teams)) }
    }

    /// Runs a kernel with sums on sites `0..n`.
    ///
    /// # Errors
    /// As [`Device::launch`].
    pub(crate) fn sum<K: Summing>(&self, form: K::Form, kernel: &K, n: usize) -> Result<Sums, DeviceError> {
        // SAFETY: as in `launch`.
        unsafe { self.backend.sum(self.call(form, kernel), n) }
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// The device is lost, or an earlier kernel failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.backend.synchronize()
    }

    /// Seconds that the device takes for the launches of `work`, by its own clock.
    ///
    /// # Errors
    /// The device is lost.
    pub fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        self.backend.elapsed(work)
    }
}
