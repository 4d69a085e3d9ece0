//! Reasons to end a run before its last trajectory: a signal, the wall time, or the end of the batch job. A signal is answered
//! when it comes; a second SIGINT ends the job at once, which loses no more than a trajectory.

use crate::app::output::{complain, span, warn};
use crate::app::{AppError, Ranks};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Signals that end a run properly. Batch systems send one of the first three before the end of a job.
const SIGNALS: [(i32, &str); 4] =
    [(SIGTERM, "SIGTERM"), (SIGUSR1, "SIGUSR1"), (SIGHUP, "SIGHUP"), (SIGINT, "SIGINT")];

/// The exit code of a job that a second SIGINT ends, as of a program that does not watch for it.
const INTERRUPTED: i32 = 128 + SIGINT;
/// Less is not worth telling.
const SHORT: Duration = Duration::from_secs(2);

/// Where Slurm says when the job ends, in seconds since 1970.
pub(super) const JOB_END: &str = "SLURM_JOB_END_TIME";
/// So long before that a run ends, for its last files and the clocks of nodes.
const MARGIN: Duration = Duration::from_secs(60);

/// The last second of the year 9999: what a date of four digits can say.
const LAST_DATE: u64 = 253_402_300_799;

/// The end of this process's batch job, in seconds since 1970, if it is known: one that is in the past when it is first asked for
/// is of another job.
pub(super) fn job_end() -> Option<u64> {
    static END: OnceLock<Option<u64>> = OnceLock::new();
    *END.get_or_init(|| told_end()?.ok())
}

/// What the batch system says of the end of the job, or why that cannot be.
fn told_end() -> Option<Result<u64, String>> {
    let text = std::env::var(JOB_END).ok()?;
    let wrong =
        |what: &str| Some(Err(format!("{JOB_END} = {}: {what}; it is not heeded", text.escape_debug())));
    match text.parse::<u64>() {
        Ok(end) if end <= now().as_secs() => wrong("this is past, and so of another job"),
        Ok(end) if end <= LAST_DATE => Some(Ok(end)),
        _ => wrong("no time in seconds since 1970"),
    }
}

/// The time since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A signal of this name came.
    Signal(&'static str),
    /// `wall_time` is near.
    WallTime,
    /// The end of the batch job is near.
    JobEnd,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal(name) => write!(f, "{name} came"),
            Self::WallTime => f.write_str("wall_time is near"),
            Self::JobEnd => f.write_str("the end of the job is near"),
        }
    }
}

/// Watches for signals and the clock.
pub(super) struct Stop {
    comm: Ranks,
    /// The position of the received signal in [`SIGNALS`], from 1.
    signal: Arc<AtomicUsize>,
    started: Instant,
    /// Milliseconds after the start at which the present trajectory ends, as far as that is known.
    next: Arc<AtomicU64>,
    /// Of `wall_time`, and of the batch job.
    limits: [Option<Duration>; 2],
}

impl Stop {
    /// Starts watching, for a job that started at `started` and may take `limit`, or until its end if that is known.
    ///
    /// # Errors
    /// A signal handler cannot be installed.
    pub(super) fn new(comm: &Ranks, started: Instant, limit: Option<Duration>) -> Result<Self, AppError> {
        let (signal, next) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let refused =
            |name: &str, e: std::io::Error| AppError::Refused(format!("cannot watch for {name}: {e}"));
        let interrupted = Arc::new(AtomicBool::new(false));
        // In this order: the first SIGINT finds that there was none.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&interrupted))
            .and_then(|_| flag::register(SIGINT, interrupted))
            .map_err(|e| refused("SIGINT", e))?;
        for (place, (number, name)) in (1..).zip(SIGNALS) {
            flag::register_usize(number, Arc::clone(&signal), place).map_err(|e| refused(name, e))?;
        }
        if comm.rank() == 0 {
            let signals =
                Signals::new(SIGNALS.map(|(number, _)| number)).map_err(|e| refused("signals", e))?;
            let next = Arc::clone(&next);
            std::thread::spawn(move || answer(signals, started, &next));
        }
        if let (0, Some(Err(wrong))) = (comm.rank(), told_end()) {
            warn(wrong);
        }
        let until =
            |end| started.elapsed() + Duration::from_secs(end).saturating_sub(now()).saturating_sub(MARGIN);
        Ok(Self { comm: Arc::clone(comm), signal, started, next, limits: [limit, job_end().map(until)] })
    }

    /// The reason to end now, if any; `ahead` is the time that the next step may take. Collective: the same on all
    /// ranks.
    pub(super) fn reason(&self, ahead: Duration) -> Option<Reason> {
        let then = self.started.elapsed() + ahead;
        let known = if ahead > SHORT { then.as_millis() as u64 } else { 0 };
        self.next.store(known, Ordering::Relaxed);
        let late = self.limits.map(|limit| limit.is_some_and(|limit| then > limit));
        let own = match (self.signal.load(Ordering::Relaxed), late) {
            (0, [false, false]) => 0,
            (0, [true, _]) => 1,
            (0, [false, true]) => 2,
            (signal, _) => 2 + signal,
        };
        match self.comm.max(own as f64) as usize {
            0 => None,
            1 => Some(Reason::WallTime),
            2 => Some(Reason::JobEnd),
            place => SIGNALS.get(place - 3).map(|(_, name)| Reason::Signal(name)),
        }
    }
}

/// Says of every signal, when it comes, what follows from it.
fn answer(mut signals: Signals, started: Instant, next: &AtomicU64) {
    for number in signals.forever() {
        let name = SIGNALS.iter().find(|(own, _)| *own == number).map_or("a signal", |(_, name)| name);
        let left = Duration::from_millis(next.load(Ordering::Relaxed)).saturating_sub(started.elapsed());
        let left = match left {
            Duration::ZERO => String::new(),
            left => format!(", in {} at most", span(left.as_secs_f64())),
        };
        let again = if number == SIGINT { "; a second one ends it at once" } else { "" };
        complain(format_args!("{name}: the run ends after this trajectory{left}{again}"));
    }
}
