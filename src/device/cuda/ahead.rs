//! Kernels compiled ahead: those of a run before it starts, and every kernel, which needs no GPU.

use super::Cuda;
use super::launch::CANDIDATES;
use super::nvrtc::{Nvrtc, Request};
use crate::device::gpu::cache::Place;
use crate::device::gpu::tuning::Shape;
use crate::device::record::Instance;
use crate::device::table::all_kernels;
use crate::device::{Compiler, Constants, DeviceError, GpuOptions, KernelInfo, Precision, kernel_list};
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
    let compiler = Nvrtc::new(&GpuOptions { cache: None, ..options.clone() }, None)?;
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

/// What the file of a run says when its kernels are compiled.
const DONE: &[u8] = b"done";

impl Cuda {
    /// The file that says whether a run's kernels are compiled.
    fn run_place(&self, run: &str) -> Place {
        self.compiler.run_place(&(run, &self.name, self.driver))
    }
}

impl Compiler for Cuda {
    fn is_prepared(&self, run: &str) -> bool {
        !self.compiler.keeps() || self.run_place(run).read().as_deref() == Some(DONE)
    }

    fn prepare(&self, run: &str, instances: &[Instance]) -> usize {
        let place = self.run_place(run);
        place.write(b"begun");
        if !place.exists() {
            // What cannot be kept would be compiled twice.
            return 0;
        }
        let requests = |&Instance { kernel, precision, constants, variant, size }: &Instance| {
            let kernel = all_kernels().get(kernel, precision);
            let (arch, shape) = (self.arch.as_str(), CANDIDATES.plain(size));
            let compiled = |shape| CANDIDATES.compiled(shape, size);
            let request = Request { kernel, constants, precision, arch, variant: Some(variant), shape };
            let shapes = match self.kept_shape(&request, size).1 {
                _ if constants.is_empty() => vec![shape],
                Some(kept) => vec![compiled(kept)],
                None => {
                    let mut shapes: Vec<Shape> = CANDIDATES.shapes(size).into_iter().map(compiled).collect();
                    shapes.dedup();
                    shapes
                }
            };
            shapes.into_iter().map(move |shape| Request { shape, ..request })
        };
        let all = instances.iter().flat_map(requests);
        let missing: Vec<Request> = all.filter(|request| !self.compiler.place(request).exists()).collect();
        // One at a time, since the dear ones stand side by side. The launch of one that does not compile says so.
        missing.par_iter().with_max_len(1).for_each(|request| drop(self.compiler.compile(request)));
        place.write(DONE);
        missing.len()
    }
}
