//! Reasons to end a run before its last trajectory: a signal, or the wall time.

use super::{AppError, Ranks};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Signals that end a run properly. Batch systems send one of the first three before the end of a job.
const SIGNALS: [(i32, &str); 4] =
    [(SIGTERM, "SIGTERM"), (SIGUSR1, "SIGUSR1"), (SIGHUP, "SIGHUP"), (SIGINT, "SIGINT")];

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A signal of this name came.
    Signal(&'static str),
    /// `wall_time` is near.
    WallTime,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal(name) => write!(f, "{name} came"),
            Self::WallTime => f.write_str("wall_time is near"),
        }
    }
}

/// Watches for signals and the clock.
pub(super) struct Stop {
    comm: Ranks,
    /// The position of the received signal in [`SIGNALS`], from 1.
    signal: Arc<AtomicUsize>,
    started: Instant,
    limit: Option<Duration>,
}

impl Stop {
    /// Starts watching, for a job that started at `started` and may take `limit`.
    ///
    /// # Errors
    /// A signal handler cannot be installed.
    pub(super) fn new(comm: &Ranks, started: Instant, limit: Option<Duration>) -> Result<Self, AppError> {
        let signal = Arc::new(AtomicUsize::new(0));
        for (place, (number, name)) in (1..).zip(SIGNALS) {
            signal_hook::flag::register_usize(number, Arc::clone(&signal), place)
                .map_err(|e| AppError::Refused(format!("cannot watch for {name}: {e}")))?;
        }
        Ok(Self { comm: Arc::clone(comm), signal, started, limit })
    }

    /// The reason to end now, if any; `ahead` is the time that the next step may take. Collective: the same on all
    /// ranks.
    pub(super) fn reason(&self, ahead: Duration) -> Option<Reason> {
        let late = self.limit.is_some_and(|limit| self.started.elapsed() + ahead > limit);
        let signal = self.signal.load(Ordering::Relaxed);
        let own = if signal > 0 { 1.0 + signal as f64 } else { f64::from(u8::from(late)) };
        match self.comm.max(own) as usize {
            0 => None,
            1 => Some(Reason::WallTime),
            place => SIGNALS.get(place - 2).map(|(_, name)| Reason::Signal(name)),
        }
    }
}
