//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs; needs none.

use super::AppError;
use crate::device::{compile_kernel, kernel_list};

/// Prints registers and spills of every kernel for each architecture.
///
/// # Errors
/// No compiler, or a kernel that does not compile.
pub fn kernels(archs: &[String]) -> Result<(), AppError> {
    for arch in archs {
        println!("{arch}");
        for (kernel, precision) in kernel_list() {
            let compiled = compile_kernel(kernel, *precision, arch, None, 128, false)?;
            println!("  {:32} {:6}  {}", kernel.name, precision.c_name(), compiled.report);
        }
    }
    Ok(())
}
