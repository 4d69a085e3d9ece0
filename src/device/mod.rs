//! Where kernels run: memory, launches and sums over sites, on a CPU or a GPU.
//!
//! - `kernels`: kernels as types, made from `kernels/args.h`
//! - `usual`: the constants with which GPUs compile them most often
//! - `table`: which kernels there are
//! - `backend`: what both devices offer
//! - `cpu`: threads and SIMD lanes
//! - `cuda`: one GPU through the driver
//! - `nvrtc`: kernels compiled for the GPU that is found, with a cache on disk
//! - `buffer`: device memory with an owner

mod backend;
mod buffer;
mod cpu;
mod cuda;
pub mod kernels;
mod nvrtc;
mod table;
mod usual;

pub use backend::{Backend, Call, Device, Pointer, Size, Sums, Teams, Variant};
pub use buffer::{Buffer, Remote, Staging};
pub use cpu::Cpu;
pub use cuda::{Cuda, gpu_count};
pub use kernels::{Constants, KernelNumber};
pub use nvrtc::{Compiled, Shape, compile_kernel};
pub use table::{KernelInfo, Precision, Work, best_lanes, has_emulation, kernel_list, lane_counts};

/// Why a device failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is no GPU to be used.
    #[error("no GPU: {0}")]
    NoGpu(String),
    /// A call of the CUDA driver failed.
    #[error("GPU: {call}: {reason}")]
    Cuda {
        /// The call.
        call: &'static str,
        /// The driver's word.
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
    #[error("{device} has no room for {megabytes} MB more")]
    OutOfMemory {
        /// The device.
        device: String,
        /// What was asked for.
        megabytes: usize,
    },
    /// A build without the GPU's source, or a processor that cannot run it.
    #[error("this build has no emulated GPU for this processor")]
    NoEmulation,
    /// A lane count that this processor or build does not have.
    #[error("{asked} SIMD lanes are not to be had here; there are {available:?}")]
    Lanes {
        /// What was asked for.
        asked: usize,
        /// What there is.
        available: Vec<usize>,
    },
}
