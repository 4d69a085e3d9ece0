//! What both devices offer.

use super::kernels::{
    Constants, Doubles, In, Kernel, KernelNumber, OnSites, OnTeams, RankRound, Summing, WORDS,
};
use super::meeting::Meeting;
use super::record::{Instance, Record};
use super::table::all_kernels;
use super::{
    Buffer, DeviceError, GpuOptions, Held, HostRoom, Lanes, Ledger, Precision, Remote, cuda, product,
};
use crate::lattice::MOST_SITES;
use crate::math::ExactSum;
use bytemuck::Pod;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

/// An address in a device's memory. Only devices dereference it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer(pub(super) u64);

/// Kernels and the host agree on the words of a sum.
const _: fn(ExactSum) -> [i64; WORDS] = ExactSum::words;

/// A kernel's sums and maximum over this rank's sites.
#[derive(Clone, Debug)]
pub struct Sums {
    /// The kernel's sums, in its order.
    pub sums: Vec<ExactSum>,
    /// The greatest of the compared values; 0 if there were none, NaN if any was NaN.
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
        Self { sums, max: f64::from_bits(max.cast_unsigned()) }
    }

    /// The words from which [`Sums::from_words`] makes them.
    pub(super) fn words(&self) -> Vec<i64> {
        let sums = self.sums.iter().flat_map(|sum| sum.words());
        sums.chain([self.max.to_bits().cast_signed()]).collect()
    }
}

/// Sums that are under way on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    /// Counts the sums of a device.
    pub(super) number: i64,
    /// How many the kernel makes.
    pub(super) count: usize,
    /// Where they will be, rounded, for launches that follow.
    pub(super) rounded: Pointer,
}

/// What a device answers when it is asked for sums.
#[derive(Clone, Debug)]
pub enum Begun {
    /// They are made.
    Done(Sums),
    /// They will be made when what was launched before is done.
    Later(Ticket),
}

/// The number of sums, counted by launches, that a device keeps.
pub const KEPT_SUMS: usize = 64;

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

/// What is fixed when kernels are compiled for a lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Extents of a lane's box.
    pub outer: [usize; 4],
    /// Whether any direction is cut.
    pub cut: bool,
}

/// The energy that a device has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Energy {
    /// It has no counter.
    Uncounted,
    /// Its counter cannot be read; the reason.
    Unread(String),
    /// Millijoules since some time in the past.
    Counted {
        /// What counts: the same for all ranks that share a device, and no other device's.
        meter: String,
        /// The count, which is updated every 20 to 100 ms.
        millijoules: u64,
    },
}

/// A kernel with its arguments.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The kernel.
    pub kernel: KernelNumber,
    /// The precision in which it computes.
    pub precision: Precision,
    /// The values of those arguments that a GPU's compiler may know.
    pub constants: Constants,
    /// The number that [`Backend::specialise`] gave.
    pub variant: usize,
    /// Whether it waits for what others raise: it may begin while the launch before it runs, if that one lets it.
    pub waits: bool,
    /// The kernel's argument struct.
    pub(super) args: *const c_void,
    lives: PhantomData<&'a ()>,
}

/// Memory of a device that goes to a rank, or comes from it.
#[derive(Clone, Copy)]
pub struct Parcel<'a> {
    /// The other rank.
    pub peer: usize,
    pub(super) at: Pointer,
    pub(super) bytes: usize,
    lives: PhantomData<&'a ()>,
}

impl Parcel<'_> {
    pub(super) fn new(peer: usize, at: Pointer, bytes: usize) -> Self {
        Self { peer, at, bytes, lives: PhantomData }
    }
}

/// Sends and receives messages of hosts: the other rank of each, and its bytes.
pub type Post<'a> = dyn Fn(&[(usize, &[u8])], &mut [(usize, &mut [u8])]) + 'a;

/// Of devices without a network.
pub(super) fn no_network() -> DeviceError {
    DeviceError::Network("for GPUs alone".into())
}

/// A number of sites or teams that a launch may have: kernels count with 32 bits, also the threads that the last block, or the
/// last step of a sum, has beyond the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(i32);

impl Count {
    /// So many, unless they are more than a kernel counts.
    pub fn new(n: usize) -> Option<Self> {
        i32::try_from(n).ok().filter(|_| n <= MOST_SITES).map(Self)
    }

    /// As kernels take it.
    pub fn int(self) -> i32 {
        self.0
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0.unsigned_abs() as usize
    }
}

/// The number of sites or teams of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// Sites `0..n`.
    Sites(Count),
    /// So many teams of threads.
    Teams(Count, Team),
}

impl Size {
    /// The number of either.
    pub fn count(self) -> Count {
        let (Self::Sites(count) | Self::Teams(count, _)) = self;
        count
    }
}

/// Threads that share memory.
#[derive(Clone, Copy, Debug)]
pub struct Team {
    /// Their number.
    pub threads: usize,
    /// Bytes of shared memory.
    pub shared: usize,
}

/// A device. Work is done in the order in which it is asked for; only `download`, `finish_sum` and `synchronize`
/// wait for it.
///
/// # Safety
/// What `allocate` gives is memory of so many bytes that nothing else uses until `free`. With `is_host` it is the host's,
/// and launches are done when they return.
pub unsafe trait Backend: Send + Sync {
    /// For the log: what this is.
    fn name(&self) -> String;
    /// Sites that kernels work on at once.
    fn lanes(&self) -> Lanes;
    /// Whether fields have the host's layout, so that MPI can send them directly.
    fn is_host(&self) -> bool;
    /// Whether it reads memory the faster the more of it follows on, so that links are kept in the order of hops, too.
    fn reads_ahead(&self) -> bool {
        self.is_host()
    }
    /// Whether its memory is that of the host, whatever the layout.
    fn is_in_host(&self) -> bool {
        self.is_host()
    }
    /// Whether it keeps what is written; one that only counts does not.
    fn keeps(&self) -> bool {
        true
    }
    /// Free and total bytes of memory; `None` if the system does not report them.
    fn memory(&self) -> Option<[u64; 2]>;
    /// The energy that it has taken up to now.
    fn energy(&self) -> Energy {
        Energy::Uncounted
    }
    /// Allocates memory; its content is undefined.
    fn allocate(&self, bytes: usize) -> Result<Pointer, DeviceError>;
    /// As `allocate`, for memory that other processes may [open](Self::export).
    fn allocate_for_export(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.allocate(bytes)
    }
    /// As `allocate`, for memory that takes none of the device's own where the host has another: it is reached more
    /// slowly.
    fn allocate_aside(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.allocate(bytes)
    }
    /// Frees memory.
    ///
    /// # Safety
    /// `pointer` came from `allocate(bytes)` or one of its kind, and is not used any more.
    unsafe fn free(&self, pointer: Pointer, bytes: usize);
    /// The memory in use, by label.
    fn ledger(&self) -> &Ledger;
    /// Copies from host to device.
    ///
    /// # Safety
    /// The memory at `to` is as long as `from`.
    unsafe fn upload(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError>;
    /// Copies from device to host.
    ///
    /// # Safety
    /// The memory at `from` is as long as `to`.
    unsafe fn download(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError>;
    /// Copies within the device.
    ///
    /// # Safety
    /// Both hold `bytes`.
    unsafe fn copy(&self, to: Pointer, from: Pointer, bytes: usize) -> Result<(), DeviceError>;
    /// Sets all bytes to zero.
    ///
    /// # Safety
    /// The memory holds `bytes`.
    unsafe fn zero(&self, at: Pointer, bytes: usize) -> Result<(), DeviceError>;
    /// Runs a kernel without sums.
    ///
    /// # Safety
    /// The arguments' pointers hold what the kernel touches, and the teams are those of the kernel.
    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError>;
    /// Runs a summing kernel on sites `0..n`, without waiting for the sums if the device works asynchronously. With
    /// `ranks`, which only a device with [`export`](Self::export) is given, the sums are those of all ranks.
    ///
    /// # Safety
    /// As `launch`; all ranks launch the same sums of `ranks`.
    unsafe fn begin_sum(
        &self,
        call: Call<'_>,
        n: Count,
        ranks: Option<RankRound<'_>>,
    ) -> Result<Begun, DeviceError>;
    /// Waits for sums that were begun.
    fn finish_sum(&self, ticket: Ticket) -> Result<Sums, DeviceError> {
        unreachable!("sum {} was made at once", ticket.number)
    }
    /// Whether fewer than [`KEPT_SUMS`] sums were begun since.
    fn keeps_sum(&self, _: Ticket) -> bool {
        true
    }
    /// Waits for all work.
    fn synchronize(&self) -> Result<(), DeviceError>;
    /// Seconds that the device takes for the launches of `work`, by its own clock.
    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError>;
    /// Marks this point in the order of work.
    fn mark(&self) -> Result<(), DeviceError>;
    /// Copies from device to host as soon as the last mark is reached, while later work goes on.
    ///
    /// # Safety
    /// The memory at `from` is as long as `to`, and no work after the mark writes it.
    unsafe fn stage_out(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError>;
    /// Copies from host to device while earlier work goes on; later work waits for it.
    ///
    /// # Safety
    /// The memory at `to` is as long as `from`, and no work launched so far touches it.
    unsafe fn stage_in(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError>;
    /// Page-locks host memory, so that staging is fast; does nothing on a CPU.
    ///
    /// # Safety
    /// The memory stays where it is until `unpin`.
    unsafe fn pin(&self, memory: &mut [u8]) -> Result<(), DeviceError>;
    /// Undoes `pin`.
    ///
    /// # Safety
    /// The memory was pinned, and no staging is under way.
    unsafe fn unpin(&self, memory: &mut [u8]);
    /// A handle by which another process may open memory from `allocate_for_export`; `None` on a CPU. Handles of a device
    /// have equal lengths.
    ///
    /// # Panics
    /// On a GPU, memory from `allocate`.
    fn export(&self, pointer: Pointer) -> Result<Option<Vec<u8>>, DeviceError>;
    /// Opens memory that another process exported.
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory.
    fn import(&self, handle: &[u8]) -> Result<Pointer, DeviceError>;
    /// Undoes `import`.
    ///
    /// # Safety
    /// The pointer came from `import`, all work on it is done, and it is not used any more.
    unsafe fn close(&self, imported: Pointer);
    /// The name of a new network, by which the devices of all ranks find each other.
    ///
    /// # Errors
    /// Nothing carries messages between the memories of such devices.
    fn new_network(&self) -> Result<Vec<u8>, DeviceError> {
        Err(no_network())
    }
    /// Joins the network of that name in place of an earlier one; all ranks call it together.
    fn join(&self, _name: &[u8], _rank: usize, _ranks: usize) -> Result<(), DeviceError> {
        self.new_network().map(|_| ())
    }
    /// Exchanges memory with devices of the network as soon as the last mark is reached, while later work goes on. Those
    /// between two ranks arrive in their order. An emulated device hands them to `post`.
    ///
    /// # Safety
    /// A network was joined. Until [`await_received`](Self::await_received), no work after the mark writes what is sent or
    /// touches what is received.
    unsafe fn exchange(
        &self,
        _sends: &[Parcel<'_>],
        _receives: &[Parcel<'_>],
        _post: &Post<'_>,
    ) -> Result<(), DeviceError> {
        unreachable!("a network that nobody joined")
    }
    /// Lets later work wait for what is exchanged.
    fn await_received(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    /// The number by which launches refer to this lattice.
    fn specialise(&self, variant: Variant) -> usize;
    /// Whether [`Backend::prepare`] has nothing to do for the run of this text: on a CPU, if it was done before, or if what
    /// is compiled is not kept.
    fn is_prepared(&self, _run: &str) -> bool {
        true
    }
    /// Compiles the kernels of a run on all threads and keeps them on disk, before they are launched; returns how many
    /// were not there. One that does not compile is left to its launch.
    fn prepare(&self, _run: &str, _: &[Instance]) -> usize {
        0
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

    /// The device that stands before this one.
    #[must_use]
    pub fn behind<B: Backend + 'static>(self, front: impl FnOnce(Arc<dyn Backend>) -> B) -> Self {
        Self { backend: Arc::new(front(self.backend)), ..self }
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
            waits: kernel.waits(),
            args: std::ptr::from_ref(kernel).cast(),
            lives: PhantomData,
        }
    }

    /// The backend itself.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Sites that kernels in `precision` work on at once.
    pub fn lanes(&self, precision: Precision) -> usize {
        self.backend.lanes().of(precision)
    }

    /// Allocates memory and sets all bytes to zero.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        Buffer::new(self.clone(), bytes, self.backend.allocate(bytes)?)
    }

    /// As [`Device::buffer`], for memory that other processes may open ([`Buffer::export`]).
    pub fn buffer_for_export(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        Buffer::new(self.clone(), bytes, self.backend.allocate_for_export(bytes)?)
    }

    /// As [`Device::buffer`], for content that is copied to and fro and hardly computed with: a GPU's is in page-locked
    /// memory of the host.
    pub fn buffer_aside(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        Buffer::new(self.clone(), bytes, self.backend.allocate_aside(bytes)?)
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
        if self.backend.keeps() {
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

    /// Opens memory that another process exported ([`Backend::export`]).
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory.
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
