//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs; needs none.

use super::AppError;
use super::report::say;
use crate::device::{Constants, DeviceError, KernelInfo, Precision, Shape, compile_kernel, kernel_list};
use rayon::prelude::*;

/// Prints registers and spills of every kernel for each architecture.
///
/// # Errors
/// No compiler, or a kernel that does not compile.
pub fn kernels(archs: &[String]) -> Result<(), AppError> {
    let mut jobs = Vec::new();
    for (kernel, precision) in kernel_list() {
        let all = std::iter::once(Constants::new(&[])).chain(kernel.usual());
        jobs.extend(all.map(|constants| (kernel, precision, constants)));
    }
    for arch in archs {
        let report = |(kernel, precision, constants): &(&KernelInfo, Precision, Constants)| {
            let shape = Shape { block: kernel.usual_threads(), resident: 1 };
            let compiled = compile_kernel(kernel, *constants, *precision, arch, None, shape, false)?;
            let values = kernel.constants.iter().zip(constants.values());
            let values: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
            let name = format!("{} {}", kernel.name, values.join(" "));
            Ok(format!("  {name:60} {precision:6}  {}", compiled.report))
        };
        let reports: Vec<String> = jobs.par_iter().map(report).collect::<Result<_, DeviceError>>()?;
        say(arch)?;
        reports.iter().try_for_each(say)?;
    }
    Ok(())
}
