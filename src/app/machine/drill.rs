//! A drill: bits that this program falsifies itself, as a bad GPU, memory or wire does, so that users see on their own machine
//! what finds them and after how long.
//!
//! `HMC_DRILL="field 1 5000"`: on rank 1, after every 5000 launches a bit of some field changes. `"halo 0 100"`: on rank
//! 0 a bit of a message in every hundredth exchange. A run says so.

use crate::app::output::warn;
use crate::app::{AppError, Ranks};
use crate::comm::{Comm, Message};
use crate::device::kernels::RankRound;
use crate::device::{
    Backend, Begun, Call, Count, Device, DeviceError, Energy, Instance, Lanes, Ledger, Parcel, Pointer, Post,
    Size, Sums, Ticket, Variant,
};
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const DRILL: &str = "HMC_DRILL";
/// Messages that are shorter belong to no field.
const SHORTEST: usize = 512;

/// Memory of fewer bytes holds no field.
const LEAST: usize = 1 << 16;

/// What is falsified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Field,
    Halo,
}

/// How often, and on which rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drill {
    place: Place,
    rank: usize,
    every: u64,
}

impl Drill {
    /// The drill that the environment asks for.
    fn asked() -> Result<Option<Self>, AppError> {
        let Ok(text) = env::var(DRILL) else { return Ok(None) };
        let drill = Self::read(&text).ok_or_else(|| {
            AppError::Refused(format!(
                "{DRILL}: expected \"field RANK EVERY\" or \"halo RANK EVERY\", not \"{text}\""
            ))
        })?;
        Ok(Some(drill))
    }

    fn read(text: &str) -> Option<Self> {
        let [place, rank, every] = text.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
        let place = match place {
            "field" => Place::Field,
            "halo" => Place::Halo,
            _ => return None,
        };
        let every = every.parse().ok().filter(|every| *every > 0)?;
        Some(Self { place, rank: rank.parse().ok()?, every })
    }
}

/// The ranks, one of which gets false halos if a drill asks for it. Collective.
///
/// # Errors
/// The drill is not understood.
pub(super) fn ranks(ranks: Ranks) -> Result<Ranks, AppError> {
    let Some(drill) = Drill::asked()? else { return Ok(ranks) };
    if ranks.rank() == 0 {
        warn(format_args!("a drill, {DRILL}: bits on rank {} are falsified", drill.rank));
    }
    let is_here = drill.place == Place::Halo && drill.rank == ranks.rank();
    Ok(if is_here { Arc::new(FalseRanks { ranks, turn: Turn::new(drill.every) }) } else { ranks })
}

/// The device of rank `rank`, which falsifies its fields if a drill asks for it.
///
/// # Errors
/// The drill is not understood.
pub(super) fn device(device: Device, rank: usize) -> Result<Device, AppError> {
    let drill = Drill::asked()?.filter(|drill| drill.place == Place::Field && drill.rank == rank);
    Ok(match drill {
        Some(drill) => device.behind(|backend| FalseDevice {
            backend,
            turn: Turn::new(drill.every),
            fields: Mutex::new(Vec::new()),
        }),
        None => device,
    })
}

/// Counts.
struct Turn {
    every: u64,
    count: AtomicU64,
}

impl Turn {
    fn new(every: u64) -> Self {
        Self { every, count: AtomicU64::new(0) }
    }

    /// A number for this time: SplitMix64 of the count.
    fn number(&self) -> usize {
        let count = self.count.load(Ordering::Relaxed) / self.every;
        let z = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize
    }

    /// Changes a bit, each time another, in the significand of one of the numbers, or of two in single precision.
    fn falsify(&self, bytes: &mut [u8]) {
        let (number, all) = (self.number(), bytes.len() / 8);
        // No pointer or index looks like that.
        let is_number = |word: &[u8]| {
            let size = f64::from_le_bytes(word.try_into().expect("eight bytes")).abs();
            (1e-9..1e9).contains(&size)
        };
        let mut places = (0..all).map(|n| (number % all + n) % all * 8);
        if let Some(at) = places.find(|at| is_number(&bytes[*at..at + 8])) {
            bytes[at + 5] ^= 1 << (number % 8);
        }
    }

    fn is_due(&self) -> bool {
        (self.count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.every)
    }
}

struct FalseRanks {
    ranks: Ranks,
    turn: Turn,
}

impl Comm for FalseRanks {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    ) {
        self.ranks.exchange_while(sends, receives, meanwhile);
        let message = receives.iter_mut().find(|message| message.bytes.len() >= SHORTEST);
        if let Some(message) = message.filter(|_| self.turn.is_due()) {
            self.turn.falsify(message.bytes);
        }
    }

    fn sum(&self, values: &mut [i64]) {
        self.ranks.sum(values);
    }

    fn max(&self, value: f64) -> f64 {
        self.ranks.max(value)
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.ranks.gather(bytes)
    }

    fn first(&self, count: usize) -> Option<Arc<dyn Comm>> {
        self.ranks.first(count)
    }

    fn barrier(&self) {
        self.ranks.barrier();
    }

    fn abort(&self, code: i32) -> ! {
        self.ranks.abort(code)
    }
}

struct FalseDevice {
    backend: Arc<dyn Backend>,
    turn: Turn,
    /// What is allocated.
    fields: Mutex<Vec<(Pointer, usize)>>,
}

impl FalseDevice {
    fn keep(&self, field: Result<Pointer, DeviceError>, bytes: usize) -> Result<Pointer, DeviceError> {
        let field = field?;
        self.fields.lock().expect("no panic holds it").push((field, bytes));
        Ok(field)
    }

    /// After a launch.
    fn launched(&self) -> Result<(), DeviceError> {
        if !self.turn.is_due() {
            return Ok(());
        }
        let fields = self.fields.lock().expect("no panic holds it");
        let large: Vec<_> = fields.iter().filter(|(_, bytes)| *bytes >= LEAST).collect();
        if large.is_empty() {
            return Ok(());
        }
        let (field, bytes) = *large[self.turn.number() % large.len()];
        let mut content = vec![0; bytes];
        // SAFETY: the field is allocated with so many bytes; the lock keeps it.
        unsafe {
            self.backend.download(&mut content, field)?;
            self.turn.falsify(&mut content);
            self.backend.upload(field, &content)
        }
    }
}

// SAFETY: all is done by the device behind it.
unsafe impl Backend for FalseDevice {
    fn name(&self) -> String {
        format!("{}, falsified", self.backend.name())
    }

    fn lanes(&self) -> Lanes {
        self.backend.lanes()
    }

    fn is_host(&self) -> bool {
        self.backend.is_host()
    }

    fn reads_ahead(&self) -> bool {
        self.backend.reads_ahead()
    }

    fn is_in_host(&self) -> bool {
        self.backend.is_in_host()
    }

    fn keeps(&self) -> bool {
        self.backend.keeps()
    }

    fn memory(&self) -> Option<[u64; 2]> {
        self.backend.memory()
    }

    fn energy(&self) -> Energy {
        self.backend.energy()
    }

    fn allocate(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.keep(self.backend.allocate(bytes), bytes)
    }

    fn allocate_for_export(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.keep(self.backend.allocate_for_export(bytes), bytes)
    }

    fn allocate_aside(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.keep(self.backend.allocate_aside(bytes), bytes)
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        self.fields.lock().expect("no panic holds it").retain(|(field, _)| *field != pointer);
        // SAFETY: as the caller's.
        unsafe { self.backend.free(pointer, bytes) }
    }

    fn ledger(&self) -> &Ledger {
        self.backend.ledger()
    }

    unsafe fn upload(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.upload(to, from) }
    }

    unsafe fn download(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.download(to, from) }
    }

    unsafe fn copy(&self, to: Pointer, from: Pointer, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.copy(to, from, bytes) }
    }

    unsafe fn zero(&self, at: Pointer, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.zero(at, bytes) }
    }

    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.launch(call, size)? };
        self.launched()
    }

    unsafe fn begin_sum(
        &self,
        call: Call<'_>,
        n: Count,
        ranks: Option<RankRound<'_>>,
    ) -> Result<Begun, DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.begin_sum(call, n, ranks) }
    }

    fn finish_sum(&self, ticket: Ticket) -> Result<Sums, DeviceError> {
        self.backend.finish_sum(ticket)
    }

    fn keeps_sum(&self, ticket: Ticket) -> bool {
        self.backend.keeps_sum(ticket)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.backend.synchronize()
    }

    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        self.backend.elapsed(work)
    }

    fn mark(&self) -> Result<(), DeviceError> {
        self.backend.mark()
    }

    unsafe fn stage_out(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.stage_out(to, from) }
    }

    unsafe fn stage_in(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.stage_in(to, from) }
    }

    unsafe fn pin(&self, memory: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.pin(memory) }
    }

    unsafe fn unpin(&self, memory: &mut [u8]) {
        // SAFETY: as the caller's.
        unsafe { self.backend.unpin(memory) }
    }

    fn export(&self, pointer: Pointer) -> Result<Option<Vec<u8>>, DeviceError> {
        self.backend.export(pointer)
    }

    fn import(&self, handle: &[u8]) -> Result<Pointer, DeviceError> {
        self.backend.import(handle)
    }

    unsafe fn close(&self, imported: Pointer) {
        // SAFETY: as the caller's.
        unsafe { self.backend.close(imported) }
    }

    fn new_network(&self) -> Result<Vec<u8>, DeviceError> {
        self.backend.new_network()
    }

    fn join(&self, name: &[u8], rank: usize, ranks: usize) -> Result<(), DeviceError> {
        self.backend.join(name, rank, ranks)
    }

    unsafe fn exchange(
        &self,
        sends: &[Parcel<'_>],
        receives: &[Parcel<'_>],
        post: &Post<'_>,
    ) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.backend.exchange(sends, receives, post) }
    }

    fn await_received(&self) -> Result<(), DeviceError> {
        self.backend.await_received()
    }

    fn specialise(&self, variant: Variant) -> usize {
        self.backend.specialise(variant)
    }

    fn is_prepared(&self, run: &str) -> bool {
        self.backend.is_prepared(run)
    }

    fn prepare(&self, run: &str, instances: &[Instance]) -> usize {
        self.backend.prepare(run, instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drills_are_read() {
        assert_eq!(Drill::read("field 1 500"), Some(Drill { place: Place::Field, rank: 1, every: 500 }));
        assert_eq!(Drill::read("halo 0 1"), Some(Drill { place: Place::Halo, rank: 0, every: 1 }));
        for text in ["", "field", "field 1 0", "file 1 1", "field -1 1", "halo 0 1 1"] {
            assert_eq!(Drill::read(text), None, "{text}");
        }
    }

    #[test]
    fn one_bit_at_a_time() {
        let turn = Turn::new(3);
        let mut bytes: Vec<u8> = (1..101).flat_map(|n| f64::from(n).to_le_bytes()).collect();
        let mut places = Vec::new();
        for _ in 0..30 {
            if turn.is_due() {
                let before = bytes.clone();
                turn.falsify(&mut bytes);
                let changed = |n: &usize| bytes[*n] != before[*n];
                let at: Vec<usize> = (0..bytes.len()).filter(changed).collect();
                assert_eq!((at.len(), (bytes[at[0]] ^ before[at[0]]).count_ones()), (1, 1));
                places.push(at[0]);
            }
        }
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 7, "{places:?}");
    }
}
