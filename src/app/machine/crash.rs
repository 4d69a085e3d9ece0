//! What a process says when a fault or a panic ends it: the signal, the rank, the trajectory, and the frames.
//!
//! A handler of signals gets no arguments of ours, so what it tells is in globals. The program alone asks for this
//! ([`report_crashes`]); the library leaves signals and panics to the program that calls it.

use super::job::host;
use crate::app::output::complain;
use crate::app::version::PROGRAM;
use crate::comm::Comm;
use libc::{c_int, c_void, siginfo_t};
use std::fmt::{self, Display, Formatter, Write};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Signals by which a process ends itself.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGABRT, "SIGABRT"),
];
const ADVICE: &str = "what to do, and what to report: docs/troubleshooting.md, 'A crash'";
/// A launcher passes a text on in pieces of 4096 bytes, between which it puts others: so many frames fit into one.
const FRAMES: usize = 32;
/// Bytes of the longest text: frames name the paths of libraries.
const LONGEST: usize = 1 << 16;
/// Bytes of a handler's stack: to find frames takes 4000, the registers that the system keeps there 3000 with AVX-512.
const STACK: usize = 1 << 16;
/// Seconds after which a process ends that cannot say anything.
const PATIENCE: u32 = 10;

/// What the handler needs, made while all is well.
struct Prepared {
    host: String,
    /// The actions before ours, in the order of [`SIGNALS`]: the standard library tells of a stack overflow.
    before: [libc::sigaction; 5],
    draft: Option<Draft>,
}

/// A file without a name in which the text is composed, to be written in one piece.
struct Draft {
    file: c_int,
    /// Where it is mapped.
    text: usize,
}

static PREPARED: OnceLock<Prepared> = OnceLock::new();
static RANK: AtomicUsize = AtomicUsize::new(0);
/// How many ranks there are; 0: they are not connected yet.
static RANKS: AtomicUsize = AtomicUsize::new(0);
/// 2 n in trajectory n, 2 n + 1 after it; 0 before the first one.
static PLACE: AtomicU64 = AtomicU64::new(0);

/// From now on, trajectory `number` is under way, counted from 1.
pub(in crate::app) fn in_trajectory(number: u64) {
    PLACE.store(2 * number, Ordering::Relaxed);
}

/// From now on, `done` trajectories are done, and none is under way.
pub(in crate::app) fn after_trajectory(done: u64) {
    PLACE.store(2 * done + 1, Ordering::Relaxed);
}

/// Which rank this is, where it runs, and where the chain stands.
struct Here<'a>(&'a str);

impl Display for Here<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match RANKS.load(Ordering::Relaxed) {
            0 => write!(f, "before ranks are connected, on {}", self.0)?,
            ranks => write!(f, "rank {} of {ranks} on {}", RANK.load(Ordering::Relaxed), self.0)?,
        }
        match PLACE.load(Ordering::Relaxed) {
            0 | 1 => f.write_str(", before the first trajectory of a chain"),
            place if place.is_multiple_of(2) => write!(f, ", in trajectory {}", place / 2),
            place => write!(f, ", after trajectory {}", place / 2),
        }
    }
}

/// From now on, signals of faults and panics say where this process was. For programs whose `main` is their own; to be called
/// before there are other threads, and before MPI starts, which keeps handlers that it finds.
pub fn report_crashes() {
    let prepared = PREPARED.get_or_init(|| {
        // What finds frames is loaded by the first call.
        frames(&mut [null_mut(); 1]);
        Prepared { host: host(), before: SIGNALS.map(|(signal, _)| action(signal)), draft: Draft::new() }
    });
    own_stack();
    handle_signals();
    std::panic::set_hook(Box::new(|info| {
        // A panic of a thread becomes one of those that wait for it.
        static FIRST: AtomicBool = AtomicBool::new(true);
        if FIRST.swap(false, Ordering::Relaxed) {
            let here = Here(&prepared.host);
            complain(format_args!("error: internal fault, please report it: {info}\n{here}; {ADVICE}"));
        }
    }));
}

/// The ranks are connected, by an MPI library that may have put handlers of its own in the place of ours.
pub fn report_crashes_of(comm: &dyn Comm) {
    RANK.store(comm.rank(), Ordering::Relaxed);
    RANKS.store(comm.size(), Ordering::Relaxed);
    handle_signals();
}

/// Gives this thread a stack for handlers on which [`report`] has room, whatever happened to its own. The standard library
/// gives its threads one that barely suffices.
pub(super) fn own_stack() {
    if PREPARED.get().is_none() {
        return;
    }
    // SAFETY: zero is a value of the struct. The calls read and write it, and map memory that is nobody's and stays for ever.
    // Its first page stays closed, so that what exceeds it is a fault, which ends the process.
    unsafe {
        let mut stack: libc::stack_t = MaybeUninit::zeroed().assume_init();
        if libc::sigaltstack(null(), &mut stack) != 0 || stack.ss_size >= STACK {
            return;
        }
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(STACK);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let memory = libc::mmap(null_mut(), page + STACK, libc::PROT_NONE, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return;
        }
        let usable = memory.byte_add(page);
        if libc::mprotect(usable, STACK, libc::PROT_READ | libc::PROT_WRITE) == 0 {
            libc::sigaltstack(&libc::stack_t { ss_sp: usable, ss_flags: 0, ss_size: STACK }, null_mut());
        }
    }
}

/// The present action of a signal.
fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: zero is a value of the struct, and the call writes it.
    unsafe {
        let mut action = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, null(), &mut action);
        action
    }
}

/// Makes [`report`] the action of all signals, if it was prepared.
fn handle_signals() {
    if PREPARED.get().is_none() {
        return;
    }
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = report;
    // SAFETY: zero is a value of the struct; the handler has the type that SA_SIGINFO asks for. While it works the signals are
    // blocked, so another fault ends the process.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        SIGNALS.iter().for_each(|(signal, _)| {
            libc::sigaddset(&mut action.sa_mask, *signal);
        });
        SIGNALS.iter().for_each(|(signal, _)| {
            libc::sigaction(*signal, &action, null_mut());
        });
    }
}

/// The handler: says what happened, and ends the process by the same signal. It allocates nothing and takes no lock.
extern "C" fn report(signal: c_int, info: *mut siginfo_t, _registers: *mut c_void) {
    static FIRST: AtomicBool = AtomicBool::new(true);
    let first = FIRST.swap(false, Ordering::SeqCst);
    let Some(prepared) = PREPARED.get() else { return };
    if !first {
        // Another thread is here already, and ends the process.
        loop {
            // SAFETY: a plain call.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: plain calls that are allowed in a handler, so that the process ends whatever hangs from here on. The system
    // gives `info`.
    let info = unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(PATIENCE);
        &*info
    };
    // Where there is no draft, the text goes out piece by piece.
    let mut out = Out(prepared.draft.as_ref().map_or(libc::STDERR_FILENO, |draft| draft.file));
    let _ = tell(&mut out, signal, info, prepared);
    prepared.draft.iter().for_each(Draft::print);
    let is_fault = info.si_code > 0;
    for ((number, _), before) in SIGNALS.iter().zip(&prepared.before) {
        // SAFETY: plain calls that are allowed in a handler, with an action that was in force before.
        unsafe {
            if is_fault && *number == signal {
                // The instruction is done again when this returns, so this one sees the fault too.
                libc::sigaction(signal, before, null_mut());
            } else {
                libc::signal(*number, libc::SIG_DFL);
            }
        }
    }
    if !is_fault {
        // SAFETY: a plain call. The signal is blocked until this returns.
        unsafe { libc::raise(signal) };
    }
}

/// The text of the handler.
fn tell(out: &mut Out, signal: c_int, info: &siginfo_t, prepared: &Prepared) -> fmt::Result {
    let name = SIGNALS.iter().find(|(number, _)| *number == signal).map_or("a signal", |(_, name)| name);
    let own = std::process::id();
    write!(out, "{PROGRAM} has crashed: {name}")?;
    // SAFETY: a fault has an address, a signal that a process sent has that process.
    let (address, sender) = unsafe { (info.si_addr(), info.si_pid()) };
    match info.si_code {
        1.. => writeln!(out, " at address {address:p}")?,
        _ if u32::try_from(sender) == Ok(own) => writeln!(out, " of its own")?,
        _ => writeln!(out, " from process {sender}")?,
    }
    writeln!(out, "{}, process {own}", Here(&prepared.host))?;
    let mut found = [null_mut(); FRAMES];
    let count = frames(&mut found);
    if count > 0 {
        writeln!(out, "frames, innermost first (addr2line -Cfpie FILE OFFSET names them):")?;
        print_frames(&found[..count], out);
    }
    writeln!(out, "{ADVICE}")
}

/// A file that is open.
struct Out(c_int);

impl Out {
    fn put(&self, mut left: &[u8]) -> fmt::Result {
        while !left.is_empty() {
            // SAFETY: the bytes are borrowed for the call.
            let written = unsafe { libc::write(self.0, left.as_ptr().cast(), left.len()) };
            let written = usize::try_from(written).ok().filter(|written| *written > 0).ok_or(fmt::Error)?;
            left = left.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes())
    }
}

impl Draft {
    /// `None` if the system gives none.
    fn new() -> Option<Self> {
        // SAFETY: a file of this function's own, which stays open, and a mapping of it that stays too.
        unsafe {
            let file = libc::memfd_create(c"crash".as_ptr(), libc::MFD_CLOEXEC);
            let text = libc::mmap(null_mut(), LONGEST, libc::PROT_READ, libc::MAP_SHARED, file, 0);
            (file >= 0 && text != libc::MAP_FAILED).then_some(Self { file, text: text as usize })
        }
    }

    /// Writes what was composed.
    fn print(&self) {
        // SAFETY: a plain query; then a text in the mapping, all of it within the file, so it has content.
        unsafe {
            let length = usize::try_from(libc::lseek(self.file, 0, libc::SEEK_CUR)).unwrap_or(0).min(LONGEST);
            let _ = Out(libc::STDERR_FILENO).put(std::slice::from_raw_parts(self.text as *const u8, length));
        }
    }
}

/// The addresses of the frames of this thread; their number.
#[cfg(target_env = "gnu")]
fn frames(found: &mut [*mut c_void]) -> usize {
    // SAFETY: an output and its length. Only the first call allocates, before any signal comes.
    unsafe { libc::backtrace(found.as_mut_ptr(), c_int::try_from(found.len()).unwrap_or(0)) }
        .try_into()
        .unwrap_or(0)
}

/// Writes a line for each frame: file and offset.
#[cfg(target_env = "gnu")]
fn print_frames(found: &[*mut c_void], out: &mut Out) {
    // SAFETY: addresses and their number; the call allocates nothing.
    unsafe { libc::backtrace_symbols_fd(found.as_ptr(), c_int::try_from(found.len()).unwrap_or(0), out.0) };
}

/// Other libraries of C tell none.
#[cfg(not(target_env = "gnu"))]
fn frames(_found: &mut [*mut c_void]) -> usize {
    0
}

#[cfg(not(target_env = "gnu"))]
fn print_frames(_found: &[*mut c_void], _out: &mut Out) {}
