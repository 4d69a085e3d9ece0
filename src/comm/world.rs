//! The ranks that `mpirun` started.
//!
//! MPI serves one thread at a time (MPI_THREAD_SERIALIZED), so every call holds a lock.

use super::{Comm, CommError, Message};
use mpi::collective::SystemOperation;
use mpi::request::WaitGuard;
use mpi::topology::{Color, SimpleCommunicator};
#[allow(clippy::wildcard_imports, reason = "the traits of the binding, as it documents")]
use mpi::traits::*;
use mpi::{Rank, Threading};
use std::sync::Arc;

/// All ranks of the job, or some. If MPI was started here, it is finalised when the last of these is dropped.
pub struct World {
    world: SimpleCommunicator,
    /// `None` if MPI was started by others.
    universe: Option<Arc<mpi::environment::Universe>>,
}

// SAFETY: the handle is a number or an address that MPI alone looks into. MPI is initialised with MPI_THREAD_SERIALIZED,
// so any thread may call it, and `alone` lets one do so at a time.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

/// Calls MPI while no other thread does.
fn alone<T>(call: impl FnOnce() -> T) -> T {
    static INSIDE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _inside = INSIDE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    call()
}

/// Messages under way, waited for when this is dropped.
struct UnderWay<T>(Option<T>);

impl<T> Drop for UnderWay<T> {
    fn drop(&mut self) {
        let messages = self.0.take();
        alone(|| drop(messages));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A communicator is freed here; the one of all ranks, which takes its place, needs no call.
        alone(|| {
            let own = std::mem::replace(&mut self.world, SimpleCommunicator::world());
            // Others may have finalised their MPI, and with it this communicator.
            if mpi::environment::is_finalized() {
                std::mem::forget(own);
            }
        });
    }
}

impl World {
    /// Starts MPI.
    ///
    /// # Errors
    /// MPI was started before, or serves one thread only.
    pub fn start() -> Result<Self, CommError> {
        let (universe, level) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or_else(|| CommError::Mpi("was started before".into()))?;
        if level < Threading::Serialized {
            return Err(CommError::Mpi(format!("offers {level:?} threading, SERIALIZED is needed")));
        }
        Ok(Self { world: universe.world(), universe: Some(Arc::new(universe)) })
    }

    /// The ranks of a communicator of a program that has started MPI, and finalises it later. It is duplicated, so that
    /// messages stay apart. Collective.
    ///
    /// # Errors
    /// MPI is not running, serves one thread only, or the communicator is none.
    ///
    /// # Safety
    /// `raw` is a communicator of this MPI library within one group, or `MPI_COMM_NULL`.
    pub unsafe fn beside(raw: mpi::ffi::MPI_Comm) -> Result<Self, CommError> {
        if !mpi::environment::is_initialized() || mpi::environment::is_finalized() {
            return Err(CommError::Mpi("is not running: the program starts it before".into()));
        }
        let level = mpi::environment::threading_support();
        if level < Threading::Serialized {
            return Err(CommError::Mpi(format!(
                "was started with {level:?} threading; MPI_THREAD_SERIALIZED is needed"
            )));
        }
        let mut own = raw;
        // SAFETY: a constant of the MPI library; then the caller's promise, and an output.
        let made = unsafe {
            raw != mpi::ffi::RSMPI_COMM_NULL && alone(|| mpi::ffi::MPI_Comm_dup(raw, &mut own)) == 0
        };
        if !made {
            return Err(CommError::Mpi("the communicator is MPI_COMM_NULL, or cannot be duplicated".into()));
        }
        // SAFETY: the duplicate is alive, and nobody else has it.
        let world = unsafe { SimpleCommunicator::from_raw(own) };
        Ok(Self { world, universe: None })
    }
}

/// MPI counts are `int`: longer messages go as blocks of this many bytes.
const BLOCK: usize = 1 << 30;

/// A rank as MPI counts them.
fn number(rank: usize) -> Rank {
    Rank::try_from(rank).expect("a rank of MPI")
}

impl Comm for World {
    fn rank(&self) -> usize {
        usize::try_from(alone(|| self.world.rank())).expect("ranks from 0")
    }

    fn size(&self) -> usize {
        usize::try_from(alone(|| self.world.size())).expect("a number of ranks")
    }

    fn exchange_while(
        &self,
        sends: &[Message<&[u8]>],
        receives: &mut [Message<&mut [u8]>],
        meanwhile: &mut dyn FnMut(),
    ) {
        mpi::request::scope(|scope| {
            let under_way = UnderWay(Some(alone(|| {
                let mut received = Vec::new();
                for receive in receives.iter_mut() {
                    let peer = self.world.process_at_rank(number(receive.peer));
                    for block in receive.bytes.chunks_mut(BLOCK) {
                        let request = peer.immediate_receive_into_with_tag(scope, block, receive.tag);
                        received.push(WaitGuard::from(request));
                    }
                }
                let mut sent = Vec::new();
                for send in sends {
                    let peer = self.world.process_at_rank(number(send.peer));
                    for block in send.bytes.chunks(BLOCK) {
                        sent.push(WaitGuard::from(peer.immediate_send_with_tag(scope, block, send.tag)));
                    }
                }
                (received, sent)
            })));
            meanwhile();
            drop(under_way);
        });
    }

    fn sum(&self, values: &mut [i64]) {
        let own = values.to_vec();
        alone(|| self.world.all_reduce_into(&own[..], values, SystemOperation::sum()));
    }

    fn max(&self, value: f64) -> f64 {
        // A NaN takes part as a flag of its own: MPI_MAX says nothing about it.
        let own = [if value.is_nan() { f64::NEG_INFINITY } else { value }, f64::from(value.is_nan())];
        let mut all = [0.0; 2];
        alone(|| self.world.all_reduce_into(&own[..], &mut all[..], SystemOperation::max()));
        if all[1] > 0.0 { f64::NAN } else { all[0] }
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let size = self.size();
        let mut lengths = vec![0_u64; size];
        alone(|| self.world.all_gather_into(&(bytes.len() as u64), &mut lengths[..]));
        let length = |n: u64| usize::try_from(n).expect("a length in memory");
        let lengths: Vec<usize> = lengths.into_iter().map(length).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|&n| Vec::with_capacity(n)).collect();
        // The binding counts what all ranks have together.
        let block = (BLOCK / size).min(longest).max(1);
        let (mut own, mut theirs) = (vec![0; block], vec![0; block * size]);
        for start in (0..longest).step_by(block) {
            let sent = &bytes[start.min(bytes.len())..bytes.len().min(start + block)];
            own[..sent.len()].copy_from_slice(sent);
            alone(|| self.world.all_gather_into(&own[..], &mut theirs[..]));
            for ((all, &length), block) in all.iter_mut().zip(&lengths).zip(theirs.chunks(block)) {
                all.extend(&block[..block.len().min(length - all.len())]);
            }
        }
        all
    }

    fn first(&self, count: usize) -> Option<Arc<dyn Comm>> {
        assert!(count <= self.size(), "{count} of {} ranks", self.size());
        let color = if self.rank() < count { Color::with_value(0) } else { Color::undefined() };
        let world = alone(|| self.world.split_by_color(color))?;
        Some(Arc::new(Self { world, universe: self.universe.clone() }))
    }

    fn barrier(&self) {
        alone(|| self.world.barrier());
    }

    fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }
}
