//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs, without a GPU.

use crate::app::AppError;
use crate::app::machine::start;
use crate::app::output::say;
use crate::device::compile_all;

/// Prints registers and spills of every kernel for each architecture.
///
/// # Errors
/// There is no compiler, or a kernel does not compile.
pub fn kernels(archs: &[String]) -> Result<(), AppError> {
    for arch in archs {
        let reports = compile_all(arch, &start::gpu_options())?;
        say(arch)?;
        reports.iter().try_for_each(say)?;
    }
    Ok(())
}
