//! One GPU through the CUDA driver. The driver is loaded at run time, so the program also starts without it.
//!
//! All work is in one stream.
//!
//! - `library`: the compiler's library, and whether it fits the driver
//! - `nvrtc`: the compiler
//! - `ahead`: kernels compiled before they are launched
//! - `launch`: the code of a kernel, its fastest shape, and its start
//! - `meter`: the energy that a GPU has taken
//! - `nccl`: messages between the memories of GPUs

/// A call of the driver; the error names it.
macro_rules! call {
    ($function:ident ( $($argument:expr),* $(,)? )) => {
        sys::$function($($argument),*)
            .result()
            .map_err(|e| DeviceError::Cuda { call: stringify!($function), reason: format!("{:?}", e.0) })
    };
}

mod ahead;
mod launch;
mod library;
mod meter;
mod nccl;
mod nvrtc;

pub use ahead::compile_all;

use super::backend::{
    Backend, Begun, Call, Compiler, Nature, Network, Parcel, Pointer, Post, Sharing, Stager, Sums, Ticket,
    Use,
};
use super::gpu::mapped::{ALL_ROUNDED_BYTES, MAPPED_BYTES, MappedSums, Place, SUM_BYTES};
use super::kernels::{RankRound, int};
use super::ledger::Ledger;
use super::pool::{Pool, Source};
use super::size::{Count, Size, Variant};
use super::table::all_kernels;
use super::{Device, DeviceError, Energy, GpuOptions, Lanes, Work};
use cudarc::driver::{result, sys};
use launch::{BLOCK, Loaded, SumPlaces};
use library::Version;
use meter::Meter;
use nccl::Nccl;
use nvrtc::Nvrtc;
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
        Ok(n) => match usize::try_from(n) {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(DeviceError::NoGpu("the driver sees none".into())),
        },
        Err(e) => Err(DeviceError::NoGpu(format!("{:?}", e.0))),
    }
}

/// The GPU that rank `place` of a node takes, where ranks take GPUs in turn: its number, and its PCI address.
pub fn gpu_address(place: usize) -> Option<(usize, String)> {
    let number = place % gpu_count().ok()?;
    // SAFETY: the driver's call with a plain output.
    let address = unsafe {
        let mut device = 0;
        call!(cuDeviceGet(&mut device, int(number))).ok()?;
        address_of(device).ok()?
    };
    Some((number, address))
}

/// The PCI address of a device.
///
/// # Safety
/// The device is one of the driver's.
unsafe fn address_of(device: sys::CUdevice) -> Result<String, DeviceError> {
    let mut address = [0 as std::ffi::c_char; 32];
    // SAFETY: a plain output, which ends with a zero.
    unsafe {
        call!(cuDeviceGetPCIBusId(address.as_mut_ptr(), 32, device))?;
        Ok(std::ffi::CStr::from_ptr(address.as_ptr()).to_string_lossy().into_owned())
    }
}

/// Opens GPU number `index` of this process.
///
/// # Errors
/// There is no such GPU, or it does not answer.
pub(super) fn open(index: usize, options: GpuOptions) -> Result<Device, DeviceError> {
    Ok(Device::new(Cuda::new(index, &options)?))
}

/// `cuEventElapsedTime`: every driver has it. The call that took its name in CUDA 13 is not in drivers before 12.8.
type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// One GPU.
struct Cuda {
    name: String,
    arch: String,
    meter: Meter,
    context: sys::CUcontext,
    stream: sys::CUstream,
    copies: sys::CUstream,
    marked: sys::CUevent,
    copied: sys::CUevent,
    nccl: Mutex<Option<Nccl>>,
    processors: usize,
    /// Words of the widest sum, then the number of blocks that have added to it.
    words: u64,
    sums: MappedSums,
    compiler: Nvrtc,
    driver: i32,
    elapsed_time: ElapsedTime,
    loaded: Mutex<Vec<(Variant, Loaded)>>,
    pool: Pool,
    ledger: Ledger,
}

// SAFETY: the driver's handles may be used from any thread; the context is made current first.
unsafe impl Send for Cuda {}
// SAFETY: as above; the pinned words are used by one sum at a time, under the lock of `loaded`.
unsafe impl Sync for Cuda {}

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
        // SAFETY: the driver's calls with plain outputs; the context stays current on this thread.
        unsafe {
            let mut driver = 0;
            call!(cuDriverGetVersion(&mut driver))?;
            let version = Version::of_driver(driver);
            version.judge_driver()?;
            let compiler = Nvrtc::new(options, Some(version))?;
            let elapsed_time = *sys::culib()
                .get::<ElapsedTime>(b"cuEventElapsedTime")
                .map_err(|e| DeviceError::Cuda { call: "cuEventElapsedTime", reason: e.to_string() })?;
            let mut device = 0;
            call!(cuDeviceGet(&mut device, int(index)))?;
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
            let address = address_of(device)?;
            let mut stream = std::ptr::null_mut();
            call!(cuStreamCreate(&mut stream, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32))?;
            // Messages go first: a hop beside them fills the device, and their kernels would wait for its end.
            let (mut copies, mut greatest) = (std::ptr::null_mut(), 0);
            call!(cuCtxGetStreamPriorityRange(std::ptr::null_mut(), &mut greatest))?;
            call!(cuStreamCreateWithPriority(
                &mut copies,
                sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32,
                greatest
            ))?;
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
                meter: Meter::at(address),
                context,
                stream,
                copies,
                marked,
                copied,
                nccl: Mutex::default(),
                processors: usize::try_from(processors).expect("a number of processors"),
                words,
                sums: MappedSums::new(host_words.cast(), mapped_words, rounded),
                compiler,
                driver,
                elapsed_time,
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

    fn nature(&self) -> Nature {
        Nature { lanes: Lanes::equal(1), is_gpu: true, is_in_host: false, keeps: true }
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

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn allocate(&self, bytes: usize, usage: Use) -> Result<Pointer, DeviceError> {
        if usage != Use::Aside {
            return self.pool.take(bytes, usage, self, &self.ledger).map(Pointer);
        }
        self.current()?;
        let mut at = std::ptr::null_mut::<c_void>();
        // SAFETY: plain outputs. The GPU reaches it at the host's address.
        unsafe { call!(cuMemHostAlloc(&mut at, bytes.max(1), sys::CU_MEMHOSTALLOC_DEVICEMAP))? };
        self.ledger.take_aside(at as u64, bytes as u64);
        Ok(Pointer(at as u64))
    }

    unsafe fn free(&self, pointer: Pointer, bytes: usize) {
        if self.ledger.give_aside(pointer.0) {
            // SAFETY: from `cuMemHostAlloc`, unused by the caller's promise; the call waits for work under way. On a lost
            // device there is nothing left to do.
            let _ =
                unsafe { self.synchronize().and_then(|()| call!(cuMemFreeHost(pointer.0 as *mut c_void))) };
            return;
        }
        self.pool.give(pointer.0, bytes);
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
        unsafe { self.start(function, call, size.count(), function.blocks(size), None) }
    }

    unsafe fn begin_sum(
        &self,
        call: Call<'_>,
        n: Count,
        ranks: Option<RankRound<'_>>,
    ) -> Result<Begun, DeviceError> {
        self.current()?;
        let mut loaded = self.loaded.lock().expect("no panic holds it");
        let function = self.function(&mut loaded, call, Size::Sites(n))?;
        let kernel = all_kernels().get(call.kernel, call.precision);
        let Work::Sums(count) = kernel.work else { unreachable!("{} makes no sums", kernel.name) };
        let blocks = n.get().div_ceil(BLOCK).clamp(1, 8 * self.processors);
        let Place { ticket, mapped } = self.sums.next(count);
        let places = SumPlaces {
            words: self.words,
            host: mapped,
            rounded: ticket.rounded.0,
            number: ticket.number,
            ranks: ranks.unwrap_or(RankRound::ALONE),
        };
        // SAFETY: the words hold the widest sum; launches use them one after the other, each leaves them at 0, and the
        // lock keeps the order of numbers.
        unsafe { self.start(function, call, n, blocks, Some(&places))? };
        Ok(Begun::Later(ticket))
    }

    fn finish_sum(&self, ticket: Ticket) -> Result<Sums, DeviceError> {
        self.current()?;
        let silent = || DeviceError::Cuda { call: "a sum", reason: "the GPU did not answer".into() };
        // SAFETY: the ticket is of a launch.
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

    fn specialise(&self, variant: Variant) -> usize {
        let mut loaded = self.loaded.lock().expect("no panic holds it");
        loaded.iter().position(|(known, _)| *known == variant).unwrap_or_else(|| {
            loaded.push((variant, Loaded::default()));
            loaded.len() - 1
        })
    }

    fn stager(&self) -> Option<&dyn Stager> {
        Some(self)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn compiler(&self) -> Option<&dyn Compiler> {
        Some(self)
    }
}

// SAFETY: copies wait for the mark, and later work for them.
unsafe impl Stager for Cuda {
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
}

// SAFETY: memory by CUDA's handles of processes.
unsafe impl Sharing for Cuda {
    fn export(&self, pointer: Pointer) -> Result<Vec<u8>, DeviceError> {
        assert!(self.pool.is_exported(pointer.0), "memory that was not allocated for export");
        self.current()?;
        // SAFETY: the handle is plain bytes.
        unsafe {
            let mut handle: sys::CUipcMemHandle = std::mem::zeroed();
            call!(cuIpcGetMemHandle(&mut handle, pointer.0))?;
            Ok(std::slice::from_raw_parts((&raw const handle).cast::<u8>(), size_of_val(&handle)).to_vec())
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
}

// SAFETY: the stream of copies waits for the mark, and later work for `copied`.
unsafe impl Network for Cuda {
    fn new_name(&self) -> Result<Vec<u8>, DeviceError> {
        nccl::name()
    }

    fn join(&self, name: &[u8], rank: usize, ranks: usize) -> Result<(), DeviceError> {
        self.current()?;
        let joined = Nccl::join(name, rank, ranks)?;
        *self.nccl.lock().expect("no panic holds it") = Some(joined);
        Ok(())
    }

    unsafe fn exchange(
        &self,
        sends: &[Parcel<'_>],
        receives: &[Parcel<'_>],
        _: &Post<'_>,
    ) -> Result<(), DeviceError> {
        self.current()?;
        let nccl = self.nccl.lock().expect("no panic holds it");
        let nccl = nccl.as_ref().expect("a network that was joined");
        // SAFETY: by the caller's promise, the parcels are not touched between the mark and `copied`.
        unsafe {
            call!(cuStreamWaitEvent(self.copies, self.marked, 0))?;
            nccl.exchange(sends, receives, self.copies)?;
            call!(cuEventRecord(self.copied, self.copies))
        }
    }

    fn await_received(&self) -> Result<(), DeviceError> {
        self.current()?;
        // SAFETY: event and stream live as long as this.
        unsafe { call!(cuStreamWaitEvent(self.stream, self.copied, 0)) }
    }
}
