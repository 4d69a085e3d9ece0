//! One GPU through the CUDA driver. The driver is loaded at run time, so the program also starts without it.
//!
//! All work is in one stream.
//!
//! - `nvrtc`: the compiler
//! - `ahead`: kernels compiled before they are launched
//! - `meter`: the energy that a GPU has taken

mod ahead;
mod meter;
mod nvrtc;

pub use ahead::compile_all;

use super::backend::{Backend, Begun, Call, Pointer, Size, Sums, Ticket, Variant};
use super::gpu::cache::Place;
use super::gpu::mapped::{ALL_ROUNDED_BYTES, MAPPED_BYTES, MappedSums, Place as SumPlace, SUM_BYTES};
use super::gpu::tuning::{Candidates, Shape};
use super::kernels::{Constants, FACE_CHUNK, KernelNumber};
use super::ledger::Ledger;
use super::pool::{Pool, Source, Use};
use super::record::Instance;
use super::table::all_kernels;
use super::{Device, DeviceError, Energy, GpuOptions, Lanes, Round, Work};
use cudarc::driver::{result, sys};
use meter::Meter;
use nvrtc::{Compiler, Request};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;

/// Number of GPUs that this process sees.
///
/// # Errors
/// There is no GPU; the error states why.
pub fn gpu_count() -> Result<usize, DeviceError> {
    // SAFETY: only looks the library up. Nothing else of cudarc may be called if it is missing.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::NoGpu("libcuda is not on this machine".into()));
    }
    result::init().map_err(|e| DeviceError::NoGpu(format!("cuInit: {:?}", e.0)))?;
    match result::device::get_count() {
        Ok(n) if n > 0 => Ok(n as usize),
        Ok(_) => Err(DeviceError::NoGpu("the driver sees none".into())),
        Err(e) => Err(DeviceError::NoGpu(format!("{:?}", e.0))),
    }
}

/// Opens GPU number `index` of this process.
///
/// # Errors
/// There is no such GPU, or it does not answer.
pub(super) fn open(index: usize, options: GpuOptions) -> Result<Device, DeviceError> {
    Ok(Device::new(Cuda::new(index, &options)?))
}

/// Threads per block.
const BLOCK: usize = FACE_CHUNK;
/// What is tried for a kernel with choices.
const CANDIDATES: Candidates = Candidates {
    block: BLOCK,
    blocks: &[64, 128, 192, 256],
    registers: 65536,
    thread_registers: &[255, 128, 80, 64],
};
/// Number of timed launches per choice.
const TRIALS: usize = 20;

/// The places of a launch's sums: the struct of that name in `kernels/entry.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SumPlaces {
    words: u64,
    host: u64,
    rounded: u64,
    number: i64,
    ranks: Round,
}

/// One GPU.
struct Cuda {
    name: String,
    arch: String,
    /// Whether a launch can begin while the one before it runs (`griddepcontrol` in `kernels/entry.cuh`).
    overlaps: bool,
    meter: Meter,
    context: sys::CUcontext,
    stream: sys::CUstream,
    copies: sys::CUstream,
    marked: sys::CUevent,
    copied: sys::CUevent,
    processors: usize,
    /// Words of the widest sum, then the number of blocks that have added to it.
    words: u64,
    sums: MappedSums,
    compiler: Compiler,
    driver: i32,
    loaded: Mutex<Vec<(Variant, Loaded)>>,
    pool: Pool,
    ledger: Ledger,
}

/// Kernels in use, by number and the constants they are compiled for, for each precision.
type Loaded = [HashMap<(KernelNumber, Constants), Function>; 3];

#[derive(Clone, Copy)]
struct Function {
    handle: sys::CUfunction,
    block: usize,
    /// Bytes of shared memory per block, besides what the kernel itself declares.
    shared: usize,
}

impl Function {
    /// The number of blocks that covers `size`.
    fn blocks(self, size: Size) -> usize {
        match size {
            Size::Sites(n) => n.div_ceil(self.block),
            Size::Teams(teams) => teams.count,
        }
    }
}

/// The kernel's argument for its number of sites or teams.
fn count(size: Size) -> usize {
    match size {
        Size::Sites(n) => n,
        Size::Teams(teams) => teams.count,
    }
}

// SAFETY: the driver's handles may be used from any thread; the context is made current first.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Send for Cuda {}
// SAFETY: as above; the pinned words are used by one sum at a time, under the lock of `loaded`.
unsafe impl Sync for Cuda {}

/// A call of the driver; the error names it.
macro_rules! call {
    ($function:ident ( $($argument:expr),* $(,)? )) => {
        sys::$function($($argument),*)
            .result()
            .map_err(|e| DeviceError::Cuda { call: stringify!($function), reason: format!("{:?}", e.0) })
    };
}

/// Whether all work of a stream is done.
///
/// # Safety
/// The stream exists.
unsafe fn stream_is_done(stream: sys::CUstream) -> Result<bool, DeviceError> {
    // SAFETY: the caller's promise.
    match unsafe { sys::cuStreamQuery(stream) } {
        sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(false),
        code => code
            .result()
            .map(|()| true)
            .map_err(|e| DeviceError::Cuda { call: "cuStreamQuery", reason: format!("{:?}", e.0) }),
    }
}

impl Cuda {
    fn new(index: usize, options: &GpuOptions) -> Result<Self, DeviceError> {
        let count = gpu_count()?;
        if index >= count {
            return Err(DeviceError::NoGpu(format!("number {index} of {count}")));
        }
        let compiler = Compiler::new(options)?;
        // SAFETY: the driver's calls with plain outputs; the context stays current on this thread.
        unsafe {
            let mut driver = 0;
            call!(cuDriverGetVersion(&mut driver))?;
            let mut device = 0;
            call!(cuDeviceGet(&mut device, index as i32))?;
            let mut context = std::ptr::null_mut();
            call!(cuDevicePrimaryCtxRetain(&mut context, device))?;
            call!(cuCtxSetCurrent(context))?;
            let attribute = |which| {
                let mut value = 0;
                call!(cuDeviceGetAttribute(&mut value, which, device)).map(|()| value)
            };
            let major =
                attribute(sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor =
                attribute(sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let processors =
                attribute(sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let mut name = [0 as std::ffi::c_char; 128];
            call!(cuDeviceGetName(name.as_mut_ptr(), 128, device))?;
            let name = std::ffi::CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
            let mut address = [0 as std::ffi::c_char; 32];
            call!(cuDeviceGetPCIBusId(address.as_mut_ptr(), 32, device))?;
            let address = std::ffi::CStr::from_ptr(address.as_ptr()).to_string_lossy().into_owned();
            let mut stream = std::ptr::null_mut();
            call!(cuStreamCreate(&mut stream, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32))?;
            let mut copies = std::ptr::null_mut();
            call!(cuStreamCreate(&mut copies, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32))?;
            let event = || {
                let mut event = std::ptr::null_mut();
                call!(cuEventCreate(&mut event, sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32))
                    .map(|()| event)
            };
            let (marked, copied) = (event()?, event()?);
            let mut words = 0;
            call!(cuMemAlloc_v2(&mut words, SUM_BYTES))?;
            call!(cuMemsetD8Async(words, 0, SUM_BYTES, stream))?;
            let mut host_words = std::ptr::null_mut::<c_void>();
            call!(cuMemHostAlloc(&mut host_words, MAPPED_BYTES, sys::CU_MEMHOSTALLOC_DEVICEMAP))?;
            let mut mapped_words = 0;
            call!(cuMemHostGetDevicePointer_v2(&mut mapped_words, host_words, 0))?;
            let mut rounded = 0;
            call!(cuMemAlloc_v2(&mut rounded, ALL_ROUNDED_BYTES))?;
            Ok(Self {
                name,
                arch: format!("sm_{major}{minor}"),
                overlaps: major >= 9,
                meter: Meter::at(address),
                context,
                stream,
                copies,
                marked,
                copied,
                processors: processors as usize,
                words,
                sums: MappedSums::new(host_words.cast(), mapped_words, rounded),
                compiler,
                driver,
                loaded: Mutex::default(),
                pool: Pool::default(),
                ledger: Ledger::default(),
            })
        }
    }

    fn current(&self) -> Result<(), DeviceError> {
        // SAFETY: the context lives as long as this.
        unsafe { call!(cuCtxSetCurrent(self.context)) }
    }

    fn function(
        &self,
        loaded: &mut [(Variant, Loaded)],
        call: Call<'_>,
        size: Size,
    ) -> Result<Function, DeviceError> {
        let Some((variant, loaded)) = loaded.get_mut(call.variant) else {
            unreachable!("a launch without a lattice")
        };
        let Call { precision, constants, .. } = call;
        let instance = (call.kernel, constants);
        if let Some(&function) = loaded[precision as usize].get(&instance) {
            return Ok(function);
        }
        let kernel = all_kernels().get(call.kernel, precision);
        let request = Request {
            kernel,
            constants,
            precision,
            arch: self.arch.as_str(),
            variant: Some(*variant),
            shape: CANDIDATES.plain(size),
        };
        let load = |shape: Shape| {
            let compiled = self.compiler.compile(&Request { shape, ..request })?;
            let entry = std::ffi::CString::new(kernel.name.as_str()).unwrap_or_default();
            // SAFETY: a CUBIN that the compiler made for this GPU; modules stay loaded until the process ends.
            unsafe {
                let mut module = std::ptr::null_mut();
                call!(cuModuleLoadData(&mut module, compiled.cubin.as_ptr().cast()))?;
                let mut handle = std::ptr::null_mut();
                call!(cuModuleGetFunction(&mut handle, module, entry.as_ptr()))?;
                let shared = match size {
                    Size::Sites(_) => 0,
                    Size::Teams(teams) => teams.shared,
                };
                let most = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                call!(cuFuncSetAttribute(handle, most, shared as i32))?;
                Ok(Function { handle, block: shape.block, shared })
            }
        };
        let function = if constants.is_empty() {
            load(CANDIDATES.plain(size))?
        } else {
            let mut latest: Option<(Shape, Function)> = None;
            let mut with = |shape: Shape| {
                let compiled = CANDIDATES.compiled(shape, size);
                let function = match latest {
                    Some((same, function)) if same == compiled => function,
                    _ => load(compiled)?,
                };
                latest = Some((compiled, function));
                Ok(Function { block: shape.block, ..function })
            };
            let kept = self.kept_shape(&request, size);
            match kept.1 {
                Some(shape) => with(shape)?,
                None => {
                    let time = |function: &Function| self.time(*function, call, size);
                    let (shape, function) = CANDIDATES.fastest(size, with, time)?;
                    kept.0.write(&shape.bytes());
                    function
                }
            }
        };
        loaded[precision as usize].insert(instance, function);
        Ok(function)
    }

    /// The file of the chosen shape, and the shape if one is kept that is a candidate.
    fn kept_shape(&self, request: &Request, size: Size) -> (Place, Option<Shape>) {
        let place = self.compiler.shape_place(request, &(&self.name, self.driver, count(size)));
        let kept = place.read().and_then(|bytes| Shape::from_bytes(&bytes));
        (place, kept.filter(|shape| CANDIDATES.shapes(size).contains(shape)))
    }

    /// Milliseconds of [`TRIALS`] launches. The kernel may be repeated, since its output does not alias its input.
    fn time(&self, function: Function, call: Call<'_>, size: Size) -> Result<f32, DeviceError> {
        // SAFETY: the caller wants this launch anyway.
        let launch = || unsafe { self.start(function, call, count(size), function.blocks(size), None) };
        launch()?;
        let mut done = Ok(());
        let time = self.between_events(&mut || done = (0..TRIALS).try_for_each(|_| launch()))?;
        done.map(|()| time)
    }

    /// Milliseconds between events before and after the launches of `work`.
    fn between_events(&self, work: &mut dyn FnMut()) -> Result<f32, DeviceError> {
        // SAFETY: events with plain outputs.
        unsafe {
            let (mut start, mut end) = (std::ptr::null_mut(), std::ptr::null_mut());
            call!(cuEventCreate(&mut start, 0))?;
            call!(cuEventCreate(&mut end, 0))?;
            call!(cuEventRecord(start, self.stream))?;
            work();
            call!(cuEventRecord(end, self.stream))?;
            call!(cuEventSynchronize(end))?;
            let mut milliseconds = 0.0;
            call!(cuEventElapsedTime_v2(&mut milliseconds, start, end))?;
            call!(cuEventDestroy_v2(start))?;
            call!(cuEventDestroy_v2(end))?;
            Ok(milliseconds)
        }
    }

    /// Launches with the argument struct, the number of sites and, for sums, the memory that receives them.
    unsafe fn start(
        &self,
        function: Function,
        call: Call<'_>,
        n: usize,
        blocks: usize,
        sums: Option<&SumPlaces>,
    ) -> Result<(), DeviceError> {
        let (mut count, mut places) = (n as i32, sums.copied().unwrap_or_default());
        let mut parameters = [call.args.cast_mut(), (&raw mut count).cast(), (&raw mut places).cast()];
        let mut beside = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let launch = sys::CUlaunchConfig {
            gridDimX: blocks as u32,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: function.block as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: function.shared as u32,
            hStream: self.stream,
            attrs: &raw mut beside,
            numAttrs: u32::from(call.waits && self.overlaps),
        };
        // SAFETY: the parameters are those of the kernel's entry in nvrtc.rs.
        unsafe {
            call!(cuLaunchKernelEx(&launch, function.handle, parameters.as_mut_ptr(), std::ptr::null_mut()))
        }
    }
}

impl Source for Cuda {
    fn take(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.current()?;
        let mut pointer = 0;
        // SAFETY: plain output.
        unsafe { call!(cuMemAlloc_v2(&mut pointer, bytes)) }
            .map_err(|_| DeviceError::OutOfMemory { device: self.name.clone(), megabytes: bytes >> 20 })?;
        Ok(pointer)
    }

    fn give(&self, at: u64) -> Result<(), DeviceError> {
        // SAFETY: nobody uses kept memory.
        unsafe { call!(cuMemFree_v2(at)) }
    }
}

// SAFETY: memory is the driver's, and used again only by work of the same stream, which is done in order.
unsafe impl Backend for Cuda {
    fn name(&self) -> String {
        format!("{} ({})", self.name, self.arch)
    }

    fn lanes(&self) -> Lanes {
        Lanes::equal(1)
    }

    fn is_host(&self) -> bool {
        false
    }

    fn memory(&self) -> Option<[u64; 2]> {
        self.current().ok()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: plain outputs.
        unsafe { call!(cuMemGetInfo_v2(&mut free, &mut total)).ok()? };
        Some([free as u64, total as u64])
    }

    fn energy(&self) -> Energy {
        self.meter.read()
    }

    fn allocate(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.pool.take(bytes, Use::Private, self, &self.ledger).map(Pointer)
    }

    fn allocate_for_export(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.pool.take(bytes, Use::Exported, self, &self.ledger).map(Pointer)
    }

    fn allocate_aside(&self, bytes: usize) -> Result<Pointer, DeviceError> {
        self.current()?;
        let mut at = std::ptr::null_mut::<c_void>();
        // SAFETY: plain outputs. The GPU reaches it at the host's address.
        unsafe { call!(cuMemHostAlloc(&mut at, bytes.max(1), sys::CU_MEMHOSTALLOC_DEVICEMAP))? };
        self.ledger.take_aside(at as u64, bytes as u64);
        Ok(Pointer(at as u64))
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        if self.ledger.give_aside(pointer.0) {
            // SAFETY: from `allocate_aside`, unused by the caller's promise; the call waits for work under way. On a lost
            // device there is nothing left to do.
            let _ =
                unsafe { self.synchronize().and_then(|()| call!(cuMemFreeHost(pointer.0 as *mut c_void))) };
            return;
        }
        self.pool.give(pointer.0, bytes);
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    unsafe fn upload(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, `to` is as long; pageable memory is copied before the call returns.
        unsafe { call!(cuMemcpyHtoDAsync_v2(to.0, from.as_ptr().cast(), from.len(), self.stream))? };
        self.synchronize()
    }

    unsafe fn download(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, `from` is as long.
        unsafe { call!(cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from.0, to.len(), self.stream))? };
        self.synchronize()
    }

    unsafe fn copy(&self, to: Pointer, from: Pointer, bytes: usize) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, both hold `bytes`; the driver sees which memory is the host's.
        unsafe { call!(cuMemcpyAsync(to.0, from.0, bytes, self.stream)) }
    }

    unsafe fn zero(&self, at: Pointer, bytes: usize) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, the memory holds `bytes`.
        unsafe { call!(cuMemsetD8Async(at.0, 0, bytes, self.stream)) }
    }

    unsafe fn launch(&self, call: Call<'_>, size: Size) -> Result<(), DeviceError> {
        self.current()?;
        let function = self.function(&mut self.loaded.lock().expect("no panic holds it"), call, size)?;
        // SAFETY: a kernel without sums; its pointers are valid by the caller's promise.
        unsafe { self.start(function, call, count(size), function.blocks(size), None) }
    }

    unsafe fn begin_sum(&self, call: Call<'_>, n: usize, ranks: Option<Round>) -> Result<Begun, DeviceError> {
        self.current()?;
        let mut loaded = self.loaded.lock().expect("no panic holds it");
        let function = self.function(&mut loaded, call, Size::Sites(n))?;
        let kernel = all_kernels().get(call.kernel, call.precision);
        let Work::Sums(count) = kernel.work else { unreachable!("{} makes no sums", kernel.name) };
        let blocks = n.div_ceil(BLOCK).clamp(1, 8 * self.processors);
        let SumPlace { ticket, mapped } = self.sums.next(count);
        let places = SumPlaces {
            words: self.words,
            host: mapped,
            rounded: ticket.rounded.0,
            number: ticket.number,
            ranks: ranks.unwrap_or_default(),
        };
        // SAFETY: the words hold the widest sum; launches use them one after the other, each leaves them at 0, and the
        // lock keeps the order of numbers.
        unsafe { self.start(function, call, n, blocks, Some(&places))? };
        Ok(Begun::Later(ticket))
    }

    fn finish_sum(&self, ticket: Ticket) -> Result<Sums, DeviceError> {
        self.current()?;
        let silent = || DeviceError::Cuda { call: "a sum", reason: "the GPU did not answer".into() };
        // SAFETY: the ticket is of a launch; the GPU writes its number last.
        unsafe { self.sums.wait(ticket, || stream_is_done(self.stream), silent) }
    }

    fn keeps_sum(&self, ticket: Ticket) -> bool {
        self.sums.keeps(ticket)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: the stream lives as long as this.
        unsafe { call!(cuStreamSynchronize(self.stream)) }
    }

    fn elapsed(&self, work: &mut dyn FnMut()) -> Result<f64, DeviceError> {
        self.current()?;
        Ok(f64::from(self.between_events(work)?) * 1e-3)
    }

    fn mark(&self) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: event and stream live as long as this.
        unsafe { call!(cuEventRecord(self.marked, self.stream)) }
    }

    unsafe fn stage_out(&self, to: &mut [u8], from: Pointer) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, `from` is as long and not written after the mark.
        unsafe {
            call!(cuStreamWaitEvent(self.copies, self.marked, 0))?;
            call!(cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from.0, to.len(), self.copies))?;
            call!(cuStreamSynchronize(self.copies))
        }
    }

    unsafe fn stage_in(&self, to: Pointer, from: &[u8]) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, `to` is as long and touched only by later work, which waits.
        unsafe {
            call!(cuMemcpyHtoDAsync_v2(to.0, from.as_ptr().cast(), from.len(), self.copies))?;
            call!(cuEventRecord(self.copied, self.copies))?;
            call!(cuStreamWaitEvent(self.stream, self.copied, 0))?;
            call!(cuStreamSynchronize(self.copies))
        }
    }

    unsafe fn pin(&self, memory: &mut [u8]) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: by the caller's promise, the memory stays where it is.
        unsafe { call!(cuMemHostRegister_v2(memory.as_mut_ptr().cast(), memory.len(), 0)) }
    }

    unsafe fn unpin(&self, memory: &mut [u8]) {
        // SAFETY: by the caller's promise, it was pinned; on a lost device there is nothing left to do.
        let _ = unsafe { call!(cuMemHostUnregister(memory.as_mut_ptr().cast())) };
    }

    fn export(&self, pointer: Pointer) -> Result<Option<Vec<u8>>, DeviceError> {
        assert!(self.pool.is_exported(pointer.0), "memory that was not allocated for export");
        self.current()?;
        // SAFETY: the handle is plain bytes.
        unsafe {
            let mut handle: sys::CUipcMemHandle = std::mem::zeroed();
            call!(cuIpcGetMemHandle(&mut handle, pointer.0))?;
            Ok(Some(
                std::slice::from_raw_parts((&raw const handle).cast::<u8>(), size_of_val(&handle)).to_vec(),
            ))
        }
    }

    fn import(&self, handle: &[u8]) -> Result<Pointer, DeviceError> {
        self.current()?;
        // SAFETY: the bytes are a handle that `export` made on another rank.
        unsafe {
            let mut raw: sys::CUipcMemHandle = std::mem::zeroed();
            assert_eq!(handle.len(), size_of_val(&raw), "a handle of CUDA IPC");
            std::ptr::copy_nonoverlapping(handle.as_ptr(), (&raw mut raw).cast(), handle.len());
            let mut pointer = 0;
            call!(cuIpcOpenMemHandle_v2(&mut pointer, raw, 1))?;
            Ok(Pointer(pointer))
        }
    }

    unsafe fn close(&self, imported: Pointer) {
        if self.current().is_ok() {
            // SAFETY: by the caller's promise, it was opened; on a lost device there is nothing left to do.
            let _ = unsafe { call!(cuIpcCloseMemHandle(imported.0)) };
        }
    }

    fn specialise(&self, variant: Variant) -> usize {
        let mut loaded = self.loaded.lock().expect("no panic holds it");
        loaded.iter().position(|(known, _)| *known == variant).unwrap_or_else(|| {
            loaded.push((variant, Loaded::default()));
            loaded.len() - 1
        })
    }

    fn is_prepared(&self, run: &str) -> bool {
        self.is_compiled_ahead(run)
    }

    fn prepare(&self, run: &str, instances: &[Instance]) -> usize {
        self.compile_ahead(run, instances)
    }
}
