//! What other programs take from hmc, with fields in their own memory: configurations, quarks, measurements. `src/capi`
//! gives it to C.
//!
//! - `links`: a configuration, its files, what is measured on it
//! - `quark`: M and its inverse on a configuration

mod links;
mod quark;

pub use links::Links;
pub use quark::LentQuark;

use crate::app::machine::start;
use crate::app::{AppError, Ranks};
use crate::comm::Solo;
use crate::config::Loaded;
use crate::input::{self, Parallel};
use crate::lattice::{Extents, Partition};
use std::sync::{Arc, Mutex, MutexGuard};

/// Ranks, threads and device of a program that calls the library.
pub struct Session {
    parallel: Parallel,
    comm: Ranks,
    pool: rayon::ThreadPool,
    warnings: Mutex<Vec<String>>,
    turn: Mutex<()>,
}

impl Session {
    /// This process alone. `machine` is a text with `[parallel]`, or empty.
    ///
    /// # Errors
    /// Mistakes in the text; the system does not start the threads.
    pub fn alone(machine: &str) -> Result<Arc<Self>, AppError> {
        Self::on(machine, Arc::new(Solo))
    }

    /// These ranks. Collective, as all that follows.
    ///
    /// # Errors
    /// As [`Session::alone`].
    pub fn on(machine: &str, comm: Ranks) -> Result<Arc<Self>, AppError> {
        let Loaded { input: parallel, warnings } = input::parse_parallel(machine, "machine")?;
        let pool = start::pool(&parallel, &*comm)?;
        let warnings = Mutex::new(warnings.iter().map(ToString::to_string).collect());
        Ok(Arc::new(Self { parallel, comm, pool, warnings, turn: Mutex::default() }))
    }

    /// Waits until no other thread works with this session.
    ///
    /// # Errors
    /// A panic has ended the work of another call.
    pub fn turn(&self) -> Result<MutexGuard<'_, ()>, AppError> {
        let broken = |_| AppError::Refused("an earlier call ended by an internal fault: close this".into());
        self.turn.lock().map_err(broken)
    }

    /// What was odd in texts and files since the last call.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }

    /// The part of a lattice that this rank has.
    ///
    /// # Errors
    /// The ranks cannot divide it.
    pub fn partition(&self, extents: Extents) -> Result<Partition, AppError> {
        start::partition(&self.parallel, extents, &*self.comm)
    }

    fn remember(&self, more: impl IntoIterator<Item = String>) {
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.extend(more);
        }
    }

    /// The input of a text, whose warnings are remembered.
    fn checked<T>(&self, Loaded { input, warnings }: Loaded<T>) -> T {
        self.remember(warnings.iter().map(ToString::to_string));
        input
    }
}

/// Refuses a number of reals that is not that of a field.
fn require_reals(what: &str, found: usize, expected: usize) -> Result<(), AppError> {
    if found == expected {
        return Ok(());
    }
    Err(AppError::Refused(format!("{what}: {found} reals, {expected} expected")))
}
