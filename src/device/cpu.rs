//! Kernels on this rank's cores: threads over ranges of outer sites, SIMD lanes within.

use super::backend::{
    Backend, Begun, Call, Nature, Network, Parcel, Pointer, Post, Sharing, Stager, Sums, Ticket, Use,
};
use super::kept::KeptSums;
use super::kernels::{Double, FACE_CHUNK, Kernel, Out, RankRound, SumOverRanks, WORDS, int};
use super::ledger::Ledger;
use super::shared_memory::SharedMemory;
use super::size::{Count, Size};
use super::table::{Kernels, Lanes, emulated_kernels, host_kernels, lane_counts};
use super::team::Team;
use super::{DeviceError, Work};
use crate::math::ExactSum;
use std::alloc::Layout;
use std::ffi::c_void;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

/// Kernels run by as many threads as the rayon pool has in which it was made.
pub struct Cpu {
    isa: &'static str,
    lanes: Lanes,
    kernels: Kernels,
    emulated: Option<Emulated>,
    team: Team,
    ledger: Ledger,
}

/// What a GPU has and a CPU has not.
#[derive(Default)]
struct Emulated {
    /// The sums of the latest launches.
    sums: KeptSums,
    /// Memory that other ranks write, and theirs.
    shared: SharedMemory,
}

/// Enough for a cache line and for every vector. Large fields use huge pages.
const ALIGNMENT: usize = 4096;
const HUGE: usize = 1 << 21;
/// A launch on fewer outer sites than this stays on one thread.
const FEW_SITES: usize = 64;
/// A launch on fewer teams than this stays on one thread.
const FEW_TEAMS: usize = 4;
const PAGE: usize = 4096;
/// Shorter copies stay on one thread.
const FEW_PAGES: usize = 16;

impl Cpu {
    /// Kernels with `lanes` lanes.
    ///
    /// # Errors
    /// This processor or this build does not have this number of lanes.
    pub fn new(lanes: impl Into<Lanes>) -> Result<Self, DeviceError> {
        let lanes = lanes.into();
        let (isa, kernels) = host_kernels(lanes)
            .ok_or_else(|| DeviceError::Lanes { asked: lanes, available: lane_counts() })?;
        Self::with(isa, lanes, kernels, None)
    }

    /// Runs a GPU's kernels on a GPU's layout of fields, slowly: the results of a GPU without one.
    ///
    /// # Errors
    /// This build has no emulation for this processor.
    pub fn emulating() -> Result<Self, DeviceError> {
        let (isa, kernels) = emulated_kernels().ok_or(DeviceError::NoEmulation)?;
        Self::with(isa, Lanes::equal(1), kernels, Some(Emulated::default()))
    }

    fn with(
        isa: &'static str,
        lanes: Lanes,
        kernels: Kernels,
        emulated: Option<Emulated>,
    ) -> Result<Self, DeviceError> {
        let count = rayon::current_num_threads();
        let team = Team::new(count).map_err(|e| DeviceError::Threads { count, message: e.to_string() })?;
        Ok(Self { isa, lanes, kernels, emulated, team, ledger: Ledger::default() })
    }

    /// Calls `work` once on each thread that launches use.
    pub fn on_each_thread(&self, work: impl Fn() + Sync) {
        self.team.run(|_| work());
    }

    /// Splits `n` pieces among the threads, always in the same way, so that a piece stays in the caches and in the
    /// memory of its core. Fewer than `few` stay on this thread.
    fn share(&self, n: usize, few: usize, work: impl Fn(Range<usize>) + Sync) {
        let parts = self.team.count();
        if parts == 1 || n < few {
            return work(0..n);
        }
        self.team.run(|k| work(n * k / parts..n * (k + 1) / parts));
    }

    /// The sums of all ranks, of which `own` are this one's.
    fn over_ranks(&self, own: &Sums, round: RankRound<'_>) -> Sums {
        let mut words = own.words();
        let greatest = words.len() - 1;
        let at = NonZero::new(words.as_mut_ptr() as u64).expect("there are words");
        // SAFETY: the words are those of this function alone, and outlive the call.
        let args = SumOverRanks { words: unsafe { Out::at(at) }, round, greatest: int(greatest) };
        let (number, precision) = SumOverRanks::number(Double);
        let run = self.kernels.get(number, precision).run;
        // SAFETY: the table's function with the arguments it was built for: one call for each word.
        unsafe { run((&raw const args).cast(), 0, int(words.len()), std::ptr::null_mut()) };
        Sums::from_words(&words)
    }

    /// Splits a range of bytes among the threads: calls `work` with starts and lengths.
    fn share_bytes(&self, bytes: usize, work: impl Fn(usize, usize) + Sync) {
        self.share(bytes.div_ceil(PAGE), FEW_PAGES, |pages| {
            let (start, end) = (pages.start * PAGE, bytes.min(pages.end * PAGE));
            work(start, end - start);
        });
    }
}

/// Size of an allocation of `bytes`: whole cache lines.
pub(super) fn held(bytes: usize) -> usize {
    bytes.max(64).checked_next_multiple_of(64).unwrap_or(usize::MAX)
}

/// `None` for more than there can be.
fn layout(bytes: usize) -> Option<Layout> {
    let alignment = if bytes >= HUGE { HUGE } else { ALIGNMENT };
    Layout::from_size_align(held(bytes), alignment).ok()
}

/// # Safety
/// The memory at `to` is as long as `from`.
unsafe fn write(to: Pointer, from: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.0 as *mut u8, from.len()) };
}

/// # Safety
/// The memory at `from` is as long as `to`.
unsafe fn read(to: &mut [u8], from: Pointer) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from.0 as *const u8, to.as_mut_ptr(), to.len()) };
}

/// A number of kilobytes in one of the system's files, in bytes; `None` if the system does not report it.
fn reported(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?)
}

/// Free and total bytes of this node's memory.
pub fn host_memory() -> Option<[u64; 2]> {
    const FILE: &str = "/proc/meminfo";
    Some([reported(FILE, "MemAvailable:")?, reported(FILE, "MemTotal:")?])
}

/// The most bytes of the node's memory that this process has had so far, with all that is in them.
pub fn most_host_memory() -> Option<u64> {
    reported("/proc/self/status", "VmHWM:")
}

/// A cache line of the memory that the threads of a team share.
#[derive(Clone)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "kernels know it by its address")] [u8; 64]);

// SAFETY: memory is the system allocator's, and launches return when all threads are done.
unsafe impl Backend for Cpu {
    fn name(&self) -> String {
        let threads = self.team.count();
        let threads = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
        if self.emulated.is_some() {
            return format!("emulated GPU, {threads}");
        }
        format!("CPU, {threads}, {} ({})", self.lanes, self.isa)
    }

    fn nature(&self) -> Nature {
        Nature { lanes: self.lanes, is_gpu: self.emulated.is_some(), is_in_host: true, keeps: true }
    }

    fn memory(&self) -> Option<[u64; 2]> {
        host_memory()
    }

    fn allocate(&self, bytes: usize, usage: Use) -> Result<Pointer, DeviceError> {
        if let (Some(emulated), Use::Exported) = (&self.emulated, usage) {
            let address = emulated.shared.allocate(held(bytes)).map_err(DeviceError::Shared)?;
            self.ledger.take(address, held(bytes) as u64);
            return Ok(Pointer(address));
        }
        let no_room = || DeviceError::OutOfMemory { device: "this node".into(), megabytes: bytes >> 20 };
        let layout = layout(bytes).ok_or_else(no_room)?;
        // SAFETY: the size is not zero.
        let pointer = unsafe { std::alloc::alloc(layout) };
        if pointer.is_null() {
            return Err(no_room());
        }
        if bytes >= HUGE {
            // SAFETY: the range was just allocated; the call is only advice.
            unsafe { libc::madvise(pointer.cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        self.ledger.take(pointer as u64, layout.size() as u64);
        Ok(Pointer(pointer as u64))
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        self.ledger.give(pointer.0);
        // SAFETY: the caller's promise.
        if self.emulated.as_ref().is_some_and(|emulated| unsafe { emulated.shared.close(pointer.0) }) {
            return;
        }
        let layout = layout(bytes).expect("what was allocated");
        // SAFETY: by the caller's promise, the pointer came from `allocate(bytes)`.
        unsafe { std::alloc::dealloc(pointer.0 as *mut u8, layout) }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    unsafe fn upload(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { write(to, from) };
        Ok(())
    }

    unsafe fn download(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { read(to, from) };
        Ok(())
    }

    unsafe fn copy(&self, to: Pointer, from: Pointer, bytes: usize) -> Result<(), DeviceError> {
        self.share_bytes(bytes, |start, length| {
            let (from, to) = ((from.0 + start as u64) as *const u8, (to.0 + start as u64) as *mut u8);
            // SAFETY: by the caller's promise, both hold `bytes`; blocks do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
        });
        Ok(())
    }

    unsafe fn zero(&self, at: Pointer, bytes: usize) -> Result<(), DeviceError> {
        self.share_bytes(bytes, |start, length| {
            // SAFETY: inside the memory; blocks do not overlap.
            unsafe { std::ptr::write_bytes((at.0 + start as u64) as *mut u8, 0, length) };
        });
        Ok(())
    }

    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError> {
        let (run, pointer) = (self.kernels.get(call.kernel, call.precision).run, call.args as usize);
        let (count, few, shared) = match size {
            Size::Sites(n) => (n.get(), FEW_SITES, 0),
            Size::Teams(n, team) => (n.get(), FEW_TEAMS, team.shared),
        };
        // Threads of an emulated GPU do whole blocks: each raises the flag of what it has packed.
        let block = if self.emulated.is_some() && matches!(size, Size::Sites(_)) { FACE_CHUNK } else { 1 };
        self.share(count.div_ceil(block), few.div_ceil(block), |part| {
            let mut shared = vec![Line([0; 64]); shared.div_ceil(64)];
            let (begin, end) = (int(part.start * block), int(count.min(part.end * block)));
            // SAFETY: the table's function with the arguments it was built for; each site or team writes only its own
            // data.
            unsafe { run(pointer as *const c_void, begin, end, shared.as_mut_ptr().cast()) };
        });
        Ok(())
    }

    unsafe fn begin_sum(
        &self,
        call: Call<'_>,
        n: Count,
        ranks: Option<RankRound<'_>>,
    ) -> Result<Begun, DeviceError> {
        let kernel = self.kernels.get(call.kernel, call.precision);
        let Work::Sums(count) = kernel.work else { unreachable!("{} makes no sums", kernel.name) };
        let (run, pointer) = (kernel.run, call.args as usize);
        let all = Mutex::new(Sums { sums: vec![ExactSum::default(); count], max: 0.0 });
        self.share(n.get(), FEW_SITES, |part| {
            let mut words = vec![0i64; count * WORDS + 1];
            // SAFETY: as in `launch`; there are as many words as the kernel fills.
            unsafe { run(pointer as *const c_void, int(part.start), int(part.end), words.as_mut_ptr()) };
            let part = Sums::from_words(&words);
            // Sums are exact and maxima too: the order of the threads does not matter.
            let mut all = all.lock().expect("no thread panicked");
            all.sums.iter_mut().zip(&part.sums).for_each(|(sum, part)| *sum += *part);
            if part.max.is_nan() || part.max > all.max {
                all.max = part.max;
            }
        });
        let sums = all.into_inner().expect("no thread panicked");
        let Some(emulated) = &self.emulated else { return Ok(Begun::Done(sums)) };
        Ok(Begun::Later(emulated.sums.keep(match ranks {
            Some(round) => self.over_ranks(&sums, round),
            None => sums,
        })))
    }

    fn finish_sum(&self, ticket: Ticket) -> Result<Sums, DeviceError> {
        let emulated = self.emulated.as_ref().expect("sums are made at once, but for an emulated GPU's");
        Ok(emulated.sums.sums(ticket))
    }

    fn keeps_sum(&self, ticket: Ticket) -> bool {
        self.emulated.as_ref().is_none_or(|emulated| emulated.sums.has(ticket))
    }

    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        let start = Instant::now();
        work();
        Ok(start.elapsed().as_secs_f64())
    }

    fn stager(&self) -> Option<&dyn Stager> {
        self.emulated.as_ref().map(|emulated| emulated as _)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        self.emulated.as_ref().map(|emulated| emulated as _)
    }

    fn network(&self) -> Option<&dyn Network> {
        self.emulated.as_ref().map(|emulated| emulated as _)
    }
}

// SAFETY: plain copies; nothing is under way when they are asked for.
unsafe impl Stager for Emulated {
    unsafe fn stage_out(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { read(to, from) };
        Ok(())
    }

    unsafe fn stage_in(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { write(to, from) };
        Ok(())
    }
}

// SAFETY: that of `SharedMemory`.
unsafe impl Sharing for Emulated {
    fn export(&self, pointer: Pointer) -> Result<Vec<u8>, DeviceError> {
        self.shared.handle(pointer.0).map_err(DeviceError::Shared)
    }

    fn import(&self, handle: &[u8]) -> Result<Pointer, DeviceError> {
        self.shared.open(handle).map(Pointer).map_err(DeviceError::Shared)
    }

    unsafe fn close(&self, imported: Pointer) {
        // SAFETY: the caller's promise.
        unsafe { self.shared.close(imported.0) };
    }
}

// SAFETY: messages are received when `exchange` returns.
unsafe impl Network for Emulated {
    fn new_name(&self) -> Result<Vec<u8>, DeviceError> {
        Ok(Vec::new())
    }

    fn join(&self, _: &[u8], _: usize, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn exchange(
        &self,
        sends: &[Parcel<'_>],
        receives: &[Parcel<'_>],
        post: &Post<'_>,
    ) -> Result<(), DeviceError> {
        // SAFETY: the memory of buffers that the parcels borrow, as long as they say.
        let sent = |p: &Parcel<'_>| unsafe { std::slice::from_raw_parts(p.at.0 as *const u8, p.bytes) };
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|p| (p.peer, sent(p))).collect();
        // SAFETY: as above, and nothing else touches it now.
        let received = |p: &Parcel<'_>| unsafe { std::slice::from_raw_parts_mut(p.at.0 as *mut u8, p.bytes) };
        let mut receives: Vec<(usize, &mut [u8])> = receives.iter().map(|p| (p.peer, received(p))).collect();
        post(&sends, &mut receives);
        Ok(())
    }
}
