//! Every kernel compiled ahead of a run, which needs no GPU.

use super::nvrtc::{Compiler, Request};
use crate::device::gpu::tuning::Shape;
use crate::device::{Constants, DeviceError, GpuOptions, KernelInfo, Precision, kernel_list};
use rayon::prelude::*;

/// Compiles every kernel for an architecture such as `sm_90`, on all threads: a line per kernel with its name, its
/// constants, its precision, registers and spilled bytes per thread.
///
/// # Errors
/// No compiler, or a kernel that does not compile.
pub fn compile_all(arch: &str, options: &GpuOptions) -> Result<Vec<String>, DeviceError> {
    let of = |(kernel, precision): (&'static KernelInfo, Precision)| {
        let all = std::iter::once(Constants::new(&[])).chain(kernel.usual());
        all.map(move |constants| (kernel, precision, constants))
    };
    let jobs: Vec<_> = kernel_list().into_iter().flat_map(of).collect();
    // What the compiler says of a kernel is not kept.
    let compiler = Compiler::new(&GpuOptions { cache: None, ..options.clone() })?;
    let report = |&(kernel, precision, constants): &(&KernelInfo, Precision, Constants)| {
        let shape = Shape { block: kernel.usual_threads(), resident: 1 };
        let request = Request { kernel, constants, precision, arch, variant: None, shape };
        let compiled = compiler.compile(&request)?;
        let values = kernel.constants.iter().zip(constants.values());
        let values: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
        let name = format!("{} {}", kernel.name, values.join(" "));
        Ok(format!("  {name:60} {precision:6}  {}", compiled.report))
    };
    jobs.par_iter().with_max_len(1).map(report).collect()
}
