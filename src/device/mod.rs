//! Where kernels run: memory, launches and sums over sites, on a CPU or a GPU.
//!
//! - `kernels`: kernels as types, made from `kernels/args.h`
//! - `table`: the list of kernels
//! - `backend`: the interface of both devices
//! - `size`: how many sites or teams a launch has
//! - `handle`: a device as everybody uses it
//! - `cpu`: threads and SIMD lanes
//! - `team`: the threads of a CPU
//! - `cuda`: one GPU through the driver (feature `cuda`; without it `no_cuda`, which has none)
//! - `gpu`: what other drivers' GPUs would share with it
//! - `pool`: memory of a GPU that was given back is kept, divided and joined
//! - `kept`: sums that an emulated GPU keeps as a GPU does
//! - `shared_memory`: memory that other ranks open, of an emulated GPU
//! - `counting`: a device that only counts memory
//! - `record`: which kernels a device was asked for
//! - `ledger`: allocated memory by label
//! - `meeting`: where GPUs of several ranks add their sums
//! - `buffer`: device memory with an owner

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod backend;
mod buffer;
mod counting;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "no_cuda.rs"]
mod cuda;
#[cfg(feature = "cuda")]
mod gpu;
mod handle;
mod isa;
mod kept;
pub mod kernels;
mod ledger;
mod meeting;
mod pool;
mod record;
mod shared_memory;
mod size;
mod table;
mod team;

pub use backend::{
    Backend, Begun, Call, Compiler, Energy, KEPT_SUMS, Nature, Network, Parcel, Pointer, Post, Sharing,
    Stager, Sums, Ticket, Use,
};
pub use buffer::{Buffer, HostRoom, Remote, Staging, Stamp};
pub use counting::{Counting, PretendSums};
pub use cpu::{Cpu, host_memory, most_host_memory};
pub use cuda::{compile_all, gpu_address, gpu_count};
pub use handle::{Deferred, Device, Label};
pub use kernels::{Constants, KernelNumber};
pub use ledger::{Held, Ledger};
pub use meeting::Meeting;
pub use record::{Instance, Record};
pub use size::{Count, Size, Team, Variant};
pub use table::{
    KernelInfo, Lanes, Precision, Work, fastest_lanes, fits_processor, has_emulation, kernel_list,
    lane_counts,
};

use crate::lattice::MOST_SITES;
use std::path::PathBuf;

/// A product of sizes; `usize::MAX`, of which there is no memory, where it does not fit.
pub(crate) fn product(sizes: impl IntoIterator<Item = usize>) -> usize {
    sizes.into_iter().fold(1, usize::saturating_mul)
}

/// Folders for compiling a GPU's kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// Headers that replace those of this build, for work on kernels.
    pub headers: Option<PathBuf>,
    /// The folder of the compiler's libraries, unless the system finds them.
    pub compiler: Option<PathBuf>,
    /// The folder of compiled kernels; `None` keeps none.
    pub cache: Option<PathBuf>,
}

/// Why a device failed. Every call may find the device lost ([`DeviceError::Cuda`]), every allocation may find no
/// memory, and every launch may have to compile a kernel.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A GPU is asked for in a build without CUDA.
    #[error("this build has no CUDA: build with --features cuda")]
    NoCuda,
    /// There is no usable GPU.
    #[error("no GPU: {0}")]
    NoGpu(String),
    /// There is no usable compiler of kernels.
    #[error("no compiler for GPUs: {0}")]
    NoCompiler(String),
    /// A call of the CUDA driver failed; usually the device is lost.
    #[error("GPU: {call}: {reason}")]
    Cuda {
        /// The call.
        call: &'static str,
        /// The driver's message.
        reason: String,
    },
    /// A kernel did not compile at run time.
    #[error("the kernel {kernel} does not compile for this GPU: {log}")]
    Compile {
        /// Its name.
        kernel: String,
        /// The compiler's log.
        log: String,
    },
    /// Not enough memory.
    #[error("{device} is out of memory: {megabytes} MB more are needed")]
    OutOfMemory {
        /// The device.
        device: String,
        /// The size of the request, in MB.
        megabytes: usize,
    },
    /// A launch on more sites, or with more teams, than a kernel counts.
    #[error(
        "{kernel} would be launched {count} times at once, a kernel counts up to {MOST_SITES}: take more ranks"
    )]
    TooMany {
        /// The kernel.
        kernel: String,
        /// How many times.
        count: usize,
    },
    /// Memory of an emulated GPU is not shared with other ranks, or not opened.
    #[error("memory that ranks share: {0}")]
    Shared(std::io::Error),
    /// Nothing carries messages between the memories of devices.
    #[error("NCCL: {0}")]
    Network(String),
    /// A build without the GPU's kernels for the CPU, or a processor that cannot run them.
    #[error("this build has no emulated GPU for this processor")]
    NoEmulation,
    /// A lane count that this processor or build does not have.
    #[error("{asked} are not available here; there are {available:?}")]
    Lanes {
        /// The requested number.
        asked: Lanes,
        /// The available numbers.
        available: Vec<usize>,
    },
    /// The system does not start the threads of a CPU.
    #[error("{count} threads could not be started: {message}")]
    Threads {
        /// The requested number.
        count: usize,
        /// The system's reason.
        message: String,
    },
}
