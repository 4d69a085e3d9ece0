//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs, without a GPU.

use super::report::say;
use super::{AppError, start};
use crate::device::{
    Constants, DeviceError, GpuOptions, KernelInfo, Precision, Request, Shape, compile_kernel, kernel_list,
};
use rayon::prelude::*;

/// Prints registers and spills of every kernel for each architecture.
///
/// # Errors
/// There is no compiler, or a kernel does not compile.
pub fn kernels(archs: &[String]) -> Result<(), AppError> {
    let mut jobs = Vec::new();
    for (kernel, precision) in kernel_list() {
        let all = std::iter::once(Constants::new(&[])).chain(kernel.usual());
        jobs.extend(all.map(|constants| (kernel, precision, constants)));
    }
    // The cache does not keep the compiler's report.
    let options = GpuOptions { cache: None, ..start::gpu_options() };
    for arch in archs {
        let report = |(kernel, precision, constants): &(&KernelInfo, Precision, Constants)| {
            let shape = Shape { block: kernel.usual_threads(), resident: 1 };
            let (constants, precision) = (*constants, *precision);
            let request = Request { kernel, constants, precision, arch, variant: None, shape };
            let compiled = compile_kernel(request, &options)?;
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
