//! Ranks: messages between neighbours, sums of integers, agreement on errors.
//!
//! - `solo`: one rank, without MPI
//! - `echo`: ranks that need not be there
//! - `world`: the ranks that `mpirun` started (feature `mpi`)
//!
//! Sums over ranks are sums of integers, so their order does not matter.

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod echo;
mod solo;
#[cfg(feature = "mpi")]
mod world;

use std::sync::Arc;

pub use echo::Echo;
pub use solo::Solo;
#[cfg(feature = "mpi")]
pub use world::World;

/// Why ranks could not talk.
#[derive(Debug, thiserror::Error)]
pub enum CommError {
    /// MPI did not start, or lacks what is needed.
    #[error("MPI: {0}")]
    Mpi(String),
    /// Another rank failed; its message has been shown there.
    #[error("rank {rank}: {message}")]
    Elsewhere {
        /// The lowest rank that failed.
        rank: usize,
        /// Its message.
        message: String,
    },
}

/// A message to or from a rank; `tag` tells messages of one pair of ranks apart.
pub struct Message<B> {
    /// The other rank.
    pub peer: usize,
    /// Equal on both sides.
    pub tag: i32,
    /// The bytes sent, or the room for those received.
    pub bytes: B,
}

/// What the floors above need of the ranks. Every method but `rank`, `size` and `abort` is collective.
pub trait Comm: Send + Sync {
    /// This rank, from 0.
    fn rank(&self) -> usize;
    /// Number of ranks.
    fn size(&self) -> usize;
    /// Sends and receives at once, then waits for all. A rank may send to itself.
    fn exchange(&self, sends: &[Message<&[u8]>], receives: &mut [Message<&mut [u8]>]) {
        self.exchange_while(sends, receives, &mut || {});
    }
    /// Starts the messages, runs `meanwhile`, then waits for them.
    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    );
    /// Replaces each integer by its sum over ranks (wrapping).
    fn sum(&self, values: &mut [i64]);
    /// The greatest of `value` over ranks; NaN if any is NaN.
    fn max(&self, value: f64) -> f64;
    /// Every rank's bytes, in order of rank.
    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;
    /// The first `count` ranks as all that there are; `None` on the others.
    ///
    /// # Panics
    /// There are fewer.
    fn first(&self, count: usize) -> Option<Arc<dyn Comm>>;
    /// Waits for all ranks.
    fn barrier(&self);
    /// Ends every rank with exit code `code`, at once.
    fn abort(&self, code: i32) -> !;
}

/// The bytes of rank 0, on all ranks; what the others have does not count. Collective.
pub fn from_first(comm: &dyn Comm, own: Vec<u8>) -> Vec<u8> {
    if comm.size() == 1 {
        return own;
    }
    let own = if comm.rank() == 0 { own } else { Vec::new() };
    comm.gather(&own).swap_remove(0)
}

/// Makes one rank's failure every rank's: all return the value, or all an error.
///
/// # Errors
/// This rank's own error, or [`CommError::Elsewhere`] turned into `E` where another rank failed.
pub fn agree<T, E: From<CommError> + std::fmt::Display>(
    comm: &dyn Comm,
    result: Result<T, E>,
) -> Result<T, E> {
    if comm.size() == 1 {
        return result;
    }
    let mut failures = [i64::from(result.is_err())];
    comm.sum(&mut failures);
    if failures[0] == 0 {
        return result;
    }
    let message = result.as_ref().err().map(|e| format!("!{e}")).unwrap_or_default();
    let all = comm.gather(message.as_bytes());
    result?; // this rank's own failure comes first
    let (rank, text) = all
        .iter()
        .enumerate()
        .find(|(_, m)| !m.is_empty())
        .map_or((0, String::new()), |(r, m)| (r, String::from_utf8_lossy(&m[1..]).into_owned()));
    Err(CommError::Elsewhere { rank, message: text }.into())
}
