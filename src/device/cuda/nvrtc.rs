//! Kernels compiled at run time for the GPU at hand, and kept on disk.
//!
//! There is one CUBIN per kernel. The cache's key is a hash of source, options, compiler and GPU.

use super::library::{Library, Version};
use crate::device::gpu::cache::{Place, digest};
use crate::device::gpu::tuning::Shape;
use crate::device::{Constants, DeviceError, GpuOptions, KernelInfo, Precision, Variant, Work};
use std::ffi::CString;
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};

/// The headers of `kernels/`, by name.
const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// A compiled kernel.
pub(super) struct Compiled {
    /// The machine code.
    pub cubin: Vec<u8>,
    /// Registers per thread and spilled bytes, as reported by the assembler; empty from the cache.
    pub report: String,
}

/// A kernel to be compiled.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    /// The kernel.
    pub kernel: &'a KernelInfo,
    /// Values of the arguments that the compiler may know; if empty, the kernel serves all values.
    pub constants: Constants,
    /// The precision.
    pub precision: Precision,
    /// The GPU's architecture, such as `sm_90`.
    pub arch: &'a str,
    /// The lattice for kernels that may know its extents; if `None`, they serve every lattice.
    pub variant: Option<Variant>,
    /// How threads are grouped; kernels of sites serve smaller blocks, too.
    pub shape: Shape,
}

/// The source of a kernel's GPU entry.
fn source(kernel: &KernelInfo, precision: Precision) -> String {
    let KernelInfo { family, name, args, expression, .. } = kernel;
    let real = precision.c_name();
    let bounds = match kernel.work {
        Work::Teams => "HMC_BLOCK, HMC_RESIDENT".into(),
        _ => format!("HMC_BLOCK, RESIDENT<{args}>"),
    };
    let head = format!(
        "#include \"entry.cuh\"\n#include \"{family}.cuh\"\nusing F = {real};\nextern \"C\" __global__ void __launch_bounds__({bounds}) {name}(const {args} a"
    );
    match kernel.work {
        Work::Sites => format!(
            "{head}, int n) {{\n    const int block = block_of<F>(a), i = block * blockDim.x + threadIdx.x;\n    if (block >= 0 && i < n) {expression}(a, i);\n    end(a);\n}}\n"
        ),
        Work::Teams => format!(
            "{head}, int) {{\n    extern __shared__ double shared[];\n    const int block = block_of<F>(a);\n    if (block >= 0) run_phases({expression}, a, block, (F*)shared);\n}}\n"
        ),
        Work::Sums(count) => format!(
            "{head}, int n, const SumPlaces to) {{\n    Accumulator sum;\n    sum.clear();\n    for (int i = blockIdx.x * HMC_BLOCK + threadIdx.x; i < n; i += gridDim.x * HMC_BLOCK) {expression}(a, i, sum);\n    add_to_global<{count}>(sum, to);\n}}\n"
        ),
    }
}

/// This build's headers; files in `folder` take precedence, for work on kernels.
fn headers(folder: Option<&Path>) -> Vec<(String, String)> {
    let text = |name: &str, own: &str| {
        let own = own.to_string();
        folder.map_or(own.clone(), |folder| fs::read_to_string(folder.join(name)).unwrap_or(own))
    };
    HEADERS.iter().map(|(name, own)| (name.to_string(), text(name, own))).collect()
}

/// The compiler, the headers, and the folder of what is compiled.
pub(super) struct Nvrtc {
    library: Library,
    cache: Option<PathBuf>,
    headers: Vec<(String, String)>,
    /// Of the headers and the compiler's version.
    digest: [u64; 2],
}

impl Nvrtc {
    /// Loads a compiler whose code the driver can load, if there is one.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(settings: &GpuOptions, driver: Option<Version>) -> Result<Self, DeviceError> {
        let library = Library::load(settings.compiler.as_deref(), driver)?;
        let headers = headers(settings.headers.as_deref());
        let digest = digest(&((library.version.major, library.version.minor), &headers));
        Ok(Self { library, cache: settings.cache.clone(), headers, digest })
    }

    /// The place of a kernel's code.
    pub(super) fn place(&self, request: &Request) -> Place {
        self.file(request, "cubin", &request.shape)
    }

    /// The place of the shape that was chosen for a kernel of these sizes on a GPU with this name and driver.
    pub(super) fn shape_place(&self, request: &Request, gpu: &impl Hash) -> Place {
        let any = Shape { block: 0, resident: 0 };
        self.file(&Request { shape: any, ..*request }, "shape", gpu)
    }

    fn file(&self, request: &Request, ending: &str, also: &impl Hash) -> Place {
        let Request { kernel, precision, .. } = *request;
        let key = (source(kernel, precision), options(request), self.digest, also);
        Place::new(self.cache.as_deref(), &format!("{}_{precision}", kernel.name), ending, &key)
    }

    /// The place of what is known of a run's kernels.
    pub(super) fn run_place(&self, run: &impl Hash) -> Place {
        Place::new(self.cache.as_deref(), "kernels", "run", &(self.digest, run))
    }

    /// Whether what is compiled is kept.
    pub(super) fn keeps(&self) -> bool {
        self.cache.is_some()
    }

    /// Compiles a kernel or finds it in the cache.
    ///
    /// # Errors
    /// The kernel does not compile.
    pub(super) fn compile(&self, request: &Request) -> Result<Compiled, DeviceError> {
        let place = self.place(request);
        if let Some(cubin) = place.read() {
            return Ok(Compiled { cubin, report: String::new() });
        }
        let Request { kernel, precision, .. } = *request;
        let compiled = self.compile_source(kernel, &source(kernel, precision), &options(request))?;
        place.write(&compiled.cubin);
        Ok(compiled)
    }

    fn compile_source(
        &self,
        kernel: &KernelInfo,
        text: &str,
        options: &[String],
    ) -> Result<Compiled, DeviceError> {
        let fail = |log: String| DeviceError::Compile { kernel: kernel.name.clone(), log };
        let c = |s: &str| CString::new(s).map_err(|e| fail(e.to_string()));
        let headers: Vec<_> =
            self.headers.iter().map(|(name, text)| Ok((c(name)?, c(text)?))).collect::<Result<_, _>>()?;
        let options: Vec<_> = options.iter().map(|option| c(option)).collect::<Result<_, _>>()?;
        let (cubin, log) = self.library.compile(&c(text)?, &headers, &options).map_err(fail)?;
        Ok(Compiled { cubin, report: report(&log) })
    }
}

/// The compiler's options for a kernel.
fn options(request: &Request) -> Vec<String> {
    let Request { kernel, constants, precision, arch, variant, shape } = *request;
    let mut options = vec![
        format!("--gpu-architecture={arch}"),
        "--std=c++17".into(),
        "--fmad=false".into(),
        "--ftz=false".into(),
        "--prec-div=true".into(),
        "--prec-sqrt=true".into(),
        "--ptxas-options=-v".into(),
        format!("-DHMC_BLOCK={}", shape.block),
        format!("-DHMC_RESIDENT={}", shape.resident),
        format!("-DHMC_GHOSTS={}", u8::from(variant.is_none_or(|v| v.cut))),
    ];
    options.extend(variant.map(|v| format!("-DHMC_WALLS={}", v.walls)));
    if let (Some(variant), true) = (variant, kernel.extents_are_constant) {
        options.extend(
            ["X", "Y", "Z", "T"].iter().zip(variant.outer).map(|(d, n)| format!("-DHMC_OUTER_{d}={n}")),
        );
    }
    if precision == Precision::Half {
        options.push("-DHMC_HALF".into());
    }
    let constants = kernel.constants.iter().zip(constants.values());
    options.extend(constants.map(|(name, value)| format!("-DHMC_{name}={value}")));
    options
}

/// `N registers, M bytes spilled` from the assembler's log.
fn report(log: &str) -> String {
    let number_before = |word: &str| {
        log.lines().find(|l| l.contains(word)).and_then(|l| {
            let words: Vec<&str> = l[..l.find(word)?].split_whitespace().collect();
            words.last()?.parse::<u32>().ok()
        })
    };
    let registers = number_before(" registers").unwrap_or(0);
    let spilled = number_before(" bytes spill stores").unwrap_or(0);
    format!("{registers} registers, {spilled} bytes spilled")
}
