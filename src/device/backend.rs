//! What both devices offer.

use super::kernels::{Constants, KernelNumber, RankRound, WORDS};
use super::record::Instance;
use super::size::{Count, Size, Variant};
use super::{DeviceError, Lanes, Ledger, Precision};
use crate::math::ExactSum;
use std::ffi::c_void;
use std::marker::PhantomData;

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
    /// The chunks of faces that it packs for the neighbours before its own sites: on a GPU, a block each.
    pub packing: i32,
    /// The kernel's argument struct.
    pub(super) args: *const c_void,
    pub(super) lives: PhantomData<&'a ()>,
}

/// Memory of a device that goes to a rank, or comes from it.
#[derive(Clone, Copy)]
pub struct Parcel<'a> {
    /// The other rank.
    pub peer: usize,
    pub(super) at: Pointer,
    pub(super) bytes: usize,
    pub(super) lives: PhantomData<&'a ()>,
}

impl Parcel<'_> {
    pub(super) fn new(peer: usize, at: Pointer, bytes: usize) -> Self {
        Self { peer, at, bytes, lives: PhantomData }
    }
}

/// Sends and receives messages of hosts: the other rank of each, and its bytes.
pub type Post<'a> = dyn Fn(&[(usize, &[u8])], &mut [(usize, &mut [u8])]) + 'a;

/// What a device is, for those who lay out fields and choose sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Sites that kernels work on at once.
    pub lanes: Lanes,
    /// Whether its kernels are a GPU's. A CPU's read memory the faster the more of it follows on, and are done when a launch
    /// returns.
    pub is_gpu: bool,
    /// Whether its memory is that of the host.
    pub is_in_host: bool,
    /// Whether it keeps what is written; one that only counts does not.
    pub keeps: bool,
}

impl Nature {
    /// Whether fields have the host's layout and the host may read them after a launch.
    pub(super) fn is_host(self) -> bool {
        self.keeps && !self.is_gpu
    }
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// This device's own.
    Private,
    /// Other processes may [open](Sharing::export) it.
    Exported,
    /// Content that is copied to and fro and hardly computed with: it takes none of the device's own memory where the host
    /// has another, and is reached more slowly.
    Aside,
}

/// A device. Work is done in the order in which it is asked for; only `download`, `finish_sum` and `synchronize`
/// wait for it. What not every device can is a part that it may offer: [`Stager`], [`Sharing`], [`Network`], [`Compiler`].
///
/// # Safety
/// What `allocate` gives is memory of so many bytes that nothing else uses until `free`. Of a CPU that keeps what is written,
/// it is the host's, and launches are done when they return. Parts do what they say.
pub unsafe trait Backend: Send + Sync {
    /// For the log: what this is.
    fn name(&self) -> String;
    /// What it is, for the program.
    fn nature(&self) -> Nature;
    /// Free and total bytes of memory; `None` if the system does not report them.
    fn memory(&self) -> Option<[u64; 2]>;
    /// The energy that it has taken up to now.
    fn energy(&self) -> Energy {
        Energy::Uncounted
    }
    /// The memory in use, by label.
    fn ledger(&self) -> &Ledger;
    /// Allocates memory; its content is undefined.
    fn allocate(&self, bytes: usize, usage: Use) -> Result<Pointer, DeviceError>;
    /// Frees memory.
    ///
    /// # Safety
    /// `pointer` came from `allocate` with so many bytes, and is not used any more.
    unsafe fn free(&self, pointer: Pointer, bytes: usize);
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
    /// The number by which launches refer to this lattice.
    fn specialise(&self, _: Variant) -> usize {
        0
    }
    /// Runs a kernel without sums.
    ///
    /// # Safety
    /// The arguments' pointers hold what the kernel touches, and the teams are those of the kernel.
    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError>;
    /// Runs a summing kernel on sites `0..n`, without waiting for the sums if the device works asynchronously. With
    /// `ranks`, which only a device with [`Sharing`] is given, the sums are those of all ranks.
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
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Seconds that the device takes for the launches of `work`, by its own clock.
    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError>;
    /// Marks this point in the order of work, for stager and network.
    fn mark(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Copies beside work; `None` where the host reads and writes the memory itself.
    fn stager(&self) -> Option<&dyn Stager> {
        None
    }
    /// Memory that processes share; `None` on a CPU.
    fn sharing(&self) -> Option<&dyn Sharing> {
        None
    }
    /// Messages between the memories of devices; `None` if nothing carries them.
    fn network(&self) -> Option<&dyn Network> {
        None
    }
    /// Kernels compiled before they are launched; `None` where they are part of the program.
    fn compiler(&self) -> Option<&dyn Compiler> {
        None
    }
}

/// Copies between host and device beside other work.
///
/// # Safety
/// As of [`Backend`], whose memory it copies.
pub unsafe trait Stager {
    /// Copies from device to host as soon as the last [mark](Backend::mark) is reached, while later work goes on.
    ///
    /// # Safety
    /// The memory at `from` is as long as `to`, and no work after the mark writes it.
    unsafe fn stage_out(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError>;
    /// Copies from host to device while earlier work goes on; later work waits for it.
    ///
    /// # Safety
    /// The memory at `to` is as long as `from`, and no work launched so far touches it.
    unsafe fn stage_in(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError>;
    /// Page-locks host memory, so that staging is fast.
    ///
    /// # Safety
    /// The memory stays where it is until `unpin`.
    unsafe fn pin(&self, _: &mut [u8]) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Undoes `pin`.
    ///
    /// # Safety
    /// The memory was pinned, and no staging is under way.
    unsafe fn unpin(&self, _: &mut [u8]) {}
}

/// Memory that several processes reach.
///
/// # Safety
/// As of [`Backend`]: what `import` gives is the memory that was exported, until `close`.
pub unsafe trait Sharing {
    /// A handle by which another process may open memory that was allocated for it. Handles of a device have equal lengths.
    ///
    /// # Panics
    /// On a GPU, memory for another use.
    fn export(&self, pointer: Pointer) -> Result<Vec<u8>, DeviceError>;
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
}

/// Messages between the memories of the ranks' devices.
///
/// # Safety
/// As of [`Backend`], whose memory it sends and fills.
pub unsafe trait Network {
    /// The name of a new network, by which the devices of all ranks find each other.
    ///
    /// # Errors
    /// Its library is missing.
    fn new_name(&self) -> Result<Vec<u8>, DeviceError>;
    /// Joins the network of that name in place of an earlier one; all ranks call it together.
    fn join(&self, name: &[u8], rank: usize, ranks: usize) -> Result<(), DeviceError>;
    /// Exchanges memory with devices of the network as soon as the last [mark](Backend::mark) is reached, while later work
    /// goes on. Those between two ranks arrive in their order. An emulated device hands them to `post`.
    ///
    /// # Safety
    /// A network was joined. Until [`await_received`](Self::await_received), no work after the mark writes what is sent or
    /// touches what is received.
    unsafe fn exchange(
        &self,
        sends: &[Parcel<'_>],
        receives: &[Parcel<'_>],
        post: &Post<'_>,
    ) -> Result<(), DeviceError>;
    /// Lets later work wait for what is exchanged.
    fn await_received(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Compiles kernels ahead.
pub trait Compiler {
    /// Whether [`Compiler::prepare`] has nothing to do for the run of this text: if it was done before, or if what is compiled
    /// is not kept.
    fn is_prepared(&self, run: &str) -> bool;
    /// Compiles the kernels of a run on all threads and keeps them on disk, before they are launched; returns how many
    /// were not there. One that does not compile is left to its launch.
    fn prepare(&self, run: &str, instances: &[Instance]) -> usize;
}
