//! What stands for `cuda` in a build without that feature: no GPU, and the reason.

use super::{Device, DeviceError, GpuOptions};

/// Number of GPUs that this process sees.
///
/// # Errors
/// Always: this build has no CUDA.
pub fn gpu_count() -> Result<usize, DeviceError> {
    Err(DeviceError::NoCuda)
}

/// The number and the PCI address of a GPU: there is none.
pub fn gpu_address(_: usize) -> Option<(usize, String)> {
    None
}

/// Opens a GPU.
///
/// # Errors
/// Always: this build has no CUDA.
pub(super) fn open(_: usize, _: GpuOptions) -> Result<Device, DeviceError> {
    Err(DeviceError::NoCuda)
}

/// Compiles every kernel for an architecture.
///
/// # Errors
/// Always: this build has no CUDA.
pub fn compile_all(_: &str, _: &GpuOptions) -> Result<Vec<String>, DeviceError> {
    Err(DeviceError::NoCuda)
}
