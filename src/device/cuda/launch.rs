//! Launches: the code of a kernel for a lattice, its fastest shape, and its start.

use super::Cuda;
use super::nvrtc::Request;
use crate::device::DeviceError;
use crate::device::backend::Call;
use crate::device::gpu::cache::Place;
use crate::device::gpu::tuning::{Candidates, Shape};
use crate::device::kernels::{Constants, FACE_CHUNK, KernelNumber, RankRound, int};
use crate::device::size::{Count, Size, Variant};
use crate::device::table::all_kernels;
use cudarc::driver::sys;
use std::collections::HashMap;
/// Threads per block.
pub(super) const BLOCK: usize = FACE_CHUNK;
/// What is tried for a kernel with choices.
pub(super) const CANDIDATES: Candidates = Candidates {
    block: BLOCK,
    blocks: &[64, 128, 192, 256],
    registers: 65536,
    thread_registers: &[255, 128, 80, 64],
};
/// Number of timed launches per choice.
const TRIALS: usize = 20;

/// The places of a launch's sums: the struct of that name in `kernels/entry.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SumPlaces<'a> {
    pub words: u64,
    pub host: u64,
    pub rounded: u64,
    pub number: i64,
    pub ranks: RankRound<'a>,
}

#[derive(Clone, Copy)]
pub(super) struct Function {
    handle: sys::CUfunction,
    block: usize,
    /// Bytes of shared memory per block, besides what the kernel itself declares.
    shared: usize,
}

impl Function {
    /// The number of blocks that covers `size`.
    pub(super) fn blocks(self, size: Size) -> usize {
        match size {
            Size::Sites(n) => n.get().div_ceil(self.block),
            Size::Teams(count, _) => count.get(),
        }
    }
}

// SAFETY: the driver's handles may be used from any thread; the context is made current first.
unsafe impl Send for Function {}

/// Kernels in use, by number and the constants they are compiled for, for each precision.
pub(super) type Loaded = [HashMap<(KernelNumber, Constants), Function>; 3];

impl Cuda {
    /// The kernel of a call in its fastest shape, which is tried if it is not known.
    pub(super) fn function(
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
                    Size::Teams(_, team) => team.shared,
                };
                let most = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                call!(cuFuncSetAttribute(handle, most, int(shared)))?;
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
    pub(super) fn kept_shape(&self, request: &Request, size: Size) -> (Place, Option<Shape>) {
        let place = self.compiler.shape_place(request, &(&self.name, self.driver, size.count().get()));
        let kept = place.read().and_then(|bytes| Shape::from_bytes(&bytes));
        (place, kept.filter(|shape| CANDIDATES.shapes(size).contains(shape)))
    }

    /// Milliseconds of [`TRIALS`] launches. The kernel may be repeated, since its output does not alias its input;
    /// what a hop packs for its neighbours it packs again.
    fn time(&self, function: Function, call: Call<'_>, size: Size) -> Result<f32, DeviceError> {
        // SAFETY: the caller wants this launch anyway.
        let launch = || unsafe { self.start(function, call, size.count(), function.blocks(size), None) };
        launch()?;
        let mut done = Ok(());
        let time = self.between_events(&mut || done = (0..TRIALS).try_for_each(|_| launch()))?;
        done.map(|()| time)
    }

    /// Milliseconds between events before and after the launches of `work`.
    pub(super) fn between_events(&self, work: &mut dyn FnMut()) -> Result<f32, DeviceError> {
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
            (self.elapsed_time)(&mut milliseconds, start, end).result().map_err(|e| DeviceError::Cuda {
                call: "cuEventElapsedTime",
                reason: format!("{:?}", e.0),
            })?;
            call!(cuEventDestroy_v2(start))?;
            call!(cuEventDestroy_v2(end))?;
            Ok(milliseconds)
        }
    }

    /// Launches with the argument struct, the number of sites and, for sums, the memory that receives them.
    pub(super) unsafe fn start(
        &self,
        function: Function,
        call: Call<'_>,
        n: Count,
        blocks: usize,
        sums: Option<&SumPlaces<'_>>,
    ) -> Result<(), DeviceError> {
        let mut count = n.int();
        let places = sums.map_or(std::ptr::null(), std::ptr::from_ref);
        let mut parameters = [call.args.cast_mut(), (&raw mut count).cast(), places.cast_mut().cast()];
        let launch = sys::CUlaunchConfig {
            gridDimX: (int(blocks) + call.packing).cast_unsigned(),
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: int(function.block).cast_unsigned(),
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: int(function.shared).cast_unsigned(),
            hStream: self.stream,
            attrs: std::ptr::null_mut(),
            numAttrs: 0,
        };
        // SAFETY: the parameters are those of the kernel's entry in nvrtc.rs.
        unsafe {
            call!(cuLaunchKernelEx(&launch, function.handle, parameters.as_mut_ptr(), std::ptr::null_mut()))
        }
    }
}
