//! Kernels compiled at run time for the GPU at hand, and kept on disk.
//!
//! There is one CUBIN per kernel. The cache's key is a hash of source, options, compiler and GPU.

use crate::device::gpu::cache::{Place, digest};
use crate::device::gpu::tuning::Shape;
use crate::device::{Constants, DeviceError, GpuOptions, KernelInfo, Precision, Variant, Work};
use cudarc::nvrtc::{result, sys};
use std::ffi::{CStr, CString};
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
            "{head}, int n) {{\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    before_sites(a);\n    if (i < n) {expression}(a, i);\n    after_sites(a);\n}}\n"
        ),
        Work::Teams => format!(
            "{head}, int) {{\n    extern __shared__ double shared[];\n    run_phases({expression}, a, blockIdx.x, (F*)shared);\n    after_sites(a);\n}}\n"
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

/// Loads NVRTC, from `folder` if one is given.
fn ready(folder: Option<&Path>) -> Result<(), DeviceError> {
    if let Some(folder) = folder {
        let mut found: Vec<PathBuf> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc")))
            .collect();
        found.sort(); // the built-ins first: libnvrtc looks them up by bare name
        for path in found {
            // SAFETY: a shared library of CUDA's; its initialisers are harmless.
            let library = unsafe {
                libloading::os::unix::Library::open(
                    Some(&path),
                    libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_GLOBAL,
                )
            };
            if let Ok(library) = library {
                std::mem::forget(library);
            }
        }
    }
    // SAFETY: only looks the library up.
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    Err(DeviceError::NoGpu("libnvrtc is not found; set HMC_NVRTC to its folder".into()))
}

/// The compiler, the headers, and the folder of what is compiled.
pub(super) struct Compiler {
    cache: Option<PathBuf>,
    headers: Vec<(String, String)>,
    /// Of the headers and the compiler's version.
    digest: [u64; 2],
}

impl Compiler {
    /// Loads the compiler.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(settings: &GpuOptions) -> Result<Self, DeviceError> {
        ready(settings.compiler.as_deref())?;
        let headers = headers(settings.headers.as_deref());
        let mut version = (0, 0);
        // SAFETY: plain outputs.
        unsafe { sys::nvrtcVersion(&mut version.0, &mut version.1) };
        let digest = digest(&(version, &headers));
        Ok(Self { cache: settings.cache.clone(), headers, digest })
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
        let compiled = compile(kernel, &source(kernel, precision), &self.headers, &options(request))?;
        place.write(&compiled.cubin);
        Ok(compiled)
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

fn compile(
    kernel: &KernelInfo,
    text: &str,
    headers: &[(String, String)],
    options: &[String],
) -> Result<Compiled, DeviceError> {
    let fail = |log: String| DeviceError::Compile { kernel: kernel.name.clone(), log };
    let c = |s: &str| CString::new(s).map_err(|e| fail(e.to_string()));
    let names = headers.iter().map(|(name, _)| c(name)).collect::<Result<Vec<_>, _>>()?;
    let texts = headers.iter().map(|(_, text)| c(text)).collect::<Result<Vec<_>, _>>()?;
    let name_pointers: Vec<_> = names.iter().map(|s| s.as_ptr()).collect();
    let text_pointers: Vec<_> = texts.iter().map(|s| s.as_ptr()).collect();
    let (source, file) = (c(text)?, c("kernel.cu")?);
    // SAFETY: all strings outlive the program, which is destroyed first.
    unsafe {
        let mut program = std::ptr::null_mut();
        sys::nvrtcCreateProgram(
            &mut program,
            source.as_ptr(),
            file.as_ptr(),
            headers.len() as i32,
            text_pointers.as_ptr(),
            name_pointers.as_ptr(),
        )
        .result()
        .map_err(|e| fail(format!("{e:?}")))?;
        let done = result::compile_program(program, options);
        let log = result::get_program_log(program)
            .map(|log| CStr::from_ptr(log.as_ptr()).to_string_lossy().into_owned())
            .unwrap_or_default();
        let made = done.map_err(|_| fail(log.clone())).and_then(|()| {
            let mut size = 0;
            sys::nvrtcGetCUBINSize(program, &mut size).result().map_err(|e| fail(format!("{e:?}")))?;
            let mut cubin = vec![0u8; size];
            sys::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast())
                .result()
                .map_err(|e| fail(format!("{e:?}")))?;
            Ok(Compiled { cubin, report: report(&log) })
        });
        let _ = result::destroy_program(program);
        made
    }
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
