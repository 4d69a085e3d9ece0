//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs; needs none.

use super::report::say;
use super::{AppError, start};
use crate::device::{
    DeviceError, GpuOptions, KernelInfo, Precision, Request, Shape, Work, compile_kernel, kernel_list,
};
use crate::family::{USUAL_THREADS, slice_choices, slice_hop_choices, staggered_choices};
use crate::operator::hop_choices;
use rayon::prelude::*;

/// Prints registers and spills of every kernel for each architecture.
///
/// # Errors
/// No compiler, or a kernel that does not compile.
pub fn kernels(archs: &[String]) -> Result<(), AppError> {
    let mut jobs = Vec::new();
    for (kernel, precision) in kernel_list() {
        let specialised = match kernel.args.as_str() {
            "HopArgs" => hop_choices(),
            "StaggeredArgs" => [1, 2, 4, 16].map(staggered_choices).into(),
            "WallArgs" if kernel.work == Work::Teams => slice_choices(),
            "WallHopArgs" => slice_hop_choices(),
            _ => Vec::new(),
        };
        let all = std::iter::once(String::new()).chain(specialised);
        jobs.extend(all.map(|choices| (kernel, *precision, choices)));
    }
    // What the compiler says of a kernel is not kept.
    let options = GpuOptions { cache: None, ..start::gpu_options() };
    for arch in archs {
        let report = |(kernel, precision, choices): &(&KernelInfo, Precision, String)| {
            let block = if kernel.work == Work::Teams { USUAL_THREADS } else { 128 };
            let (precision, shape) = (*precision, Shape { block, resident: 1 });
            let request = Request { kernel, choices, precision, arch, variant: None, shape };
            let compiled = compile_kernel(request, &options)?;
            let name = format!("{} {choices}", kernel.name);
            Ok(format!("  {name:60} {precision:6}  {}", compiled.report))
        };
        let reports: Vec<String> = jobs.par_iter().map(report).collect::<Result<_, DeviceError>>()?;
        say(arch)?;
        reports.iter().try_for_each(say)?;
    }
    Ok(())
}
