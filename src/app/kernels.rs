//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs; needs none.

use super::AppError;
use crate::device::{compile_kernel, kernel_list};
use crate::operator::hop_choices;

/// Prints registers and spills of every kernel for each architecture.
///
/// # Errors
/// No compiler, or a kernel that does not compile.
pub fn kernels(archs: &[String]) -> Result<(), AppError> {
    for arch in archs {
        println!("{arch}");
        for (kernel, precision) in kernel_list() {
            let specialised = if kernel.name.starts_with("hop_") && kernel.args == "HopArgs" {
                hop_choices()
            } else {
                Vec::new()
            };
            for choices in std::iter::once(String::new()).chain(specialised) {
                let compiled = compile_kernel(kernel, &choices, *precision, arch, None, 128, false)?;
                let name = format!("{} {choices}", kernel.name);
                println!("  {name:60} {precision:6}  {}", compiled.report);
            }
        }
    }
    Ok(())
}
