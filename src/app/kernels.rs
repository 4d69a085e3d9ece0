//! `hmc kernels --arch sm_90`: compiles every kernel for GPUs; needs none.

use super::AppError;
use super::report::say;
use crate::device::{DeviceError, KernelInfo, Precision, Shape, Work, compile_kernel, kernel_list};
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
    for arch in archs {
        let report = |(kernel, precision, choices): &(&KernelInfo, Precision, String)| {
            let block = if kernel.work == Work::Teams { USUAL_THREADS } else { 128 };
            let compiled =
                compile_kernel(kernel, choices, *precision, arch, None, Shape { block, resident: 1 }, false)?;
            let name = format!("{} {choices}", kernel.name);
            Ok(format!("  {name:60} {precision:6}  {}", compiled.report))
        };
        let reports: Vec<String> = jobs.par_iter().map(report).collect::<Result<_, DeviceError>>()?;
        say(arch)?;
        reports.iter().try_for_each(say)?;
    }
    Ok(())
}
