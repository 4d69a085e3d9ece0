//! A device of one's own: one that makes mistakes, as a bad GPU, memory or wire does, to see what finds them and when.
//!
//! ```text
//! own_device field 1 5000 run.toml    on rank 1, after every 5000 launches, a bit of some field changes
//! own_device halo 0 100 run.toml      on rank 0 a bit of a message in every hundredth exchange
//! ```
//!
//! Without arguments it walks a small chain on a device that errs after every third launch, which is found before the first
//! trajectory. With `device = "emulated"` in the input the device is an emulated GPU, otherwise a CPU.
use hmc::app::{self, Ranks, RunOptions};
use hmc::comm::{Comm, Message};
use hmc::device::kernels::RankRound;
use hmc::device::{
    Backend, Begun, Call, Count, Cpu, Device, DeviceError, Ledger, Nature, Network, Pointer, Sharing, Size,
    Stager, Sums, Ticket, Use, Variant,
};
use hmc::input::DeviceChoice;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Messages that are shorter belong to no field.
const SHORTEST: usize = 512;
/// Memory of fewer bytes holds no field.
const LEAST: usize = 1 << 16;

/// What is falsified, on which rank, and how often.
#[derive(Clone, Copy)]
struct Drill {
    halos: bool,
    rank: usize,
    every: u64,
    emulated: bool,
}

/// What the arguments ask for.
static DRILL: OnceLock<Drill> = OnceLock::new();

impl Drill {
    fn read(place: &str, rank: &str, every: &str, input: &str) -> Option<Self> {
        let halos = ["field", "halo"].iter().position(|word| *word == place)? == 1;
        let every = every.parse().ok().filter(|every| *every > 0)?;
        let text = std::fs::read_to_string(input).unwrap_or_default();
        Some(Self { halos, rank: rank.parse().ok()?, every, emulated: text.contains("\"emulated\"") })
    }

    /// The device of a rank.
    fn open(rank: usize) -> Result<Device, DeviceError> {
        let Self { halos, rank: false_rank, every, emulated } = DRILL.get().expect("set by main");
        let cpu = if *emulated { Cpu::emulating()? } else { Cpu::new(1)? };
        if *halos || rank != *false_rank {
            return Ok(Device::new(cpu));
        }
        Ok(Device::new(FalseDevice { device: cpu, turn: Turn::new(*every), fields: Mutex::default() }))
    }
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

    fn is_due(&self) -> bool {
        (self.count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.every)
    }

    /// A number for this time: SplitMix64 of the count.
    fn number(&self) -> usize {
        let count = self.count.load(Ordering::Relaxed) / self.every;
        let z = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize
    }

    /// Changes a bit, each time another, in the significand of one of the numbers.
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
}

/// Ranks with a bad wire.
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

/// A CPU that errs.
struct FalseDevice {
    device: Cpu,
    turn: Turn,
    /// What is allocated.
    fields: Mutex<Vec<(Pointer, usize)>>,
}

impl FalseDevice {
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
            self.device.download(&mut content, field)?;
            self.turn.falsify(&mut content);
            self.device.upload(field, &content)
        }
    }
}

// SAFETY: all is done by the device behind it.
unsafe impl Backend for FalseDevice {
    fn name(&self) -> String {
        format!("{}, falsified", self.device.name())
    }

    fn nature(&self) -> Nature {
        self.device.nature()
    }

    fn memory(&self) -> Option<[u64; 2]> {
        self.device.memory()
    }

    fn ledger(&self) -> &Ledger {
        self.device.ledger()
    }

    fn allocate(&self, bytes: usize, usage: Use) -> Result<Pointer, DeviceError> {
        let field = self.device.allocate(bytes, usage)?;
        self.fields.lock().expect("no panic holds it").push((field, bytes));
        Ok(field)
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        self.fields.lock().expect("no panic holds it").retain(|(field, _)| *field != pointer);
        // SAFETY: as the caller's.
        unsafe { self.device.free(pointer, bytes) }
    }

    unsafe fn upload(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.device.upload(to, from) }
    }

    unsafe fn download(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.device.download(to, from) }
    }

    unsafe fn copy(&self, to: Pointer, from: Pointer, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.device.copy(to, from, bytes) }
    }

    unsafe fn zero(&self, at: Pointer, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.device.zero(at, bytes) }
    }

    fn specialise(&self, variant: Variant) -> usize {
        self.device.specialise(variant)
    }

    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.device.launch(call, size)? };
        self.launched()
    }

    unsafe fn begin_sum(
        &self,
        call: Call<'_>,
        n: Count,
        ranks: Option<RankRound<'_>>,
    ) -> Result<Begun, DeviceError> {
        // SAFETY: as the caller's.
        unsafe { self.device.begin_sum(call, n, ranks) }
    }

    fn finish_sum(&self, ticket: Ticket) -> Result<Sums, DeviceError> {
        self.device.finish_sum(ticket)
    }

    fn keeps_sum(&self, ticket: Ticket) -> bool {
        self.device.keeps_sum(ticket)
    }

    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        self.device.elapsed(work)
    }

    fn stager(&self) -> Option<&dyn Stager> {
        self.device.stager()
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        self.device.sharing()
    }

    fn network(&self) -> Option<&dyn Network> {
        self.device.network()
    }
}

/// Runs an input with what is falsified.
fn run(drill: Drill, input: &Path) -> u8 {
    let ranks = match app::start_ranks() {
        Ok(ranks) => ranks,
        Err(code) => return code,
    };
    let Drill { halos, rank, every, .. } = *DRILL.get_or_init(|| drill);
    if ranks.rank() == 0 {
        eprintln!("a drill: bits on rank {rank} are falsified");
    }
    let has_bad_wire = halos && rank == ranks.rank();
    let ranks: Ranks =
        if has_bad_wire { Arc::new(FalseRanks { ranks, turn: Turn::new(every) }) } else { ranks };
    let options = RunOptions { device: Some(DeviceChoice::Own(Drill::open)), ..RunOptions::default() };
    app::guard(&*ranks, || app::run(input, &options, &ranks))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [place, rank, every, input] = &arguments[..] {
        let Some(drill) = Drill::read(place, rank, every, input) else {
            eprintln!("own_device field|halo RANK EVERY RUN.toml");
            return ExitCode::from(2);
        };
        return ExitCode::from(run(drill, Path::new(input)));
    }
    let folder = std::env::temp_dir().join(format!("own_device-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for files");
    let input = folder.join("run.toml");
    let ensembles = folder.display();
    let text = format!(
        "[run]\nname = \"drill\"\nseed = 3\ntrajectories = 4\nensembles = \"{ensembles}\"\n\
         [lattice]\nextents = [8, 8, 8, 8]\n[gauge]\naction = \"wilson\"\nbeta = 5.7\n\
         [hmc]\n[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 10\nterms = [\"gauge\"]\n"
    );
    std::fs::write(&input, text).expect("a file of its own");
    let drill = Drill { halos: false, rank: 0, every: 3, emulated: false };
    let code = run(drill, &input);
    std::fs::remove_dir_all(&folder).expect("its own folder");
    assert_eq!(code, 1, "nobody found it");
    println!("a device that errs was found before the first trajectory");
    ExitCode::SUCCESS
}
