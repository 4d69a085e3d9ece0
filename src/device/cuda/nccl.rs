//! Messages between the memories of GPUs by NCCL, which is loaded when ranks ask for it (NCCL 2.7 or later).

use super::DeviceError;
use crate::device::backend::Parcel;
use crate::device::kernels::int;
use cudarc::driver::sys::CUstream;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The names of the library: that of programs that run, that of programs that are built.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];
/// `ncclUint8`
const BYTES: c_int = 1;

/// `ncclUniqueId`: by it the ranks of a communicator find each other.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

/// What is called of the library.
struct Calls {
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    init: unsafe extern "C" fn(*mut *mut c_void, c_int, UniqueId, c_int) -> c_int,
    abort: unsafe extern "C" fn(*mut c_void) -> c_int,
    start: unsafe extern "C" fn() -> c_int,
    end: unsafe extern "C" fn() -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, *mut c_void, CUstream) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, *mut c_void, CUstream) -> c_int,
}

impl Calls {
    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: the library of that name; its functions have these types in every version 2.
        unsafe {
            let library = Library::new(NAMES[0]).or_else(|_| Library::new(NAMES[1]))?;
            let calls = Self {
                error: *library.get(b"ncclGetErrorString")?,
                unique_id: *library.get(b"ncclGetUniqueId")?,
                init: *library.get(b"ncclCommInitRank")?,
                abort: *library.get(b"ncclCommAbort")?,
                start: *library.get(b"ncclGroupStart")?,
                end: *library.get(b"ncclGroupEnd")?,
                send: *library.get(b"ncclSend")?,
                receive: *library.get(b"ncclRecv")?,
            };
            // It stays loaded until the process ends.
            std::mem::forget(library);
            Ok(calls)
        }
    }

    fn get() -> Result<&'static Self, DeviceError> {
        static CALLS: OnceLock<Result<Calls, String>> = OnceLock::new();
        let calls = CALLS.get_or_init(|| Self::load().map_err(|error| error.to_string()));
        calls.as_ref().map_err(|reason| DeviceError::Network(reason.clone()))
    }

    fn check(&self, call: &str, code: c_int) -> Result<(), DeviceError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a text of the library, which stays loaded.
        let reason = unsafe { CStr::from_ptr((self.error)(code)) };
        Err(DeviceError::Network(format!("{call}: {}", reason.to_string_lossy())))
    }
}

/// The name of a new network.
pub(super) fn name() -> Result<Vec<u8>, DeviceError> {
    let calls = Calls::get()?;
    let mut id = UniqueId([0; 128]);
    // SAFETY: plain output.
    calls.check("ncclGetUniqueId", unsafe { (calls.unique_id)(&raw mut id) })?;
    Ok(id.0.to_vec())
}

/// A communicator of all ranks.
pub(super) struct Nccl {
    calls: &'static Calls,
    comm: *mut c_void,
}

// SAFETY: the communicator may be used from any thread, by one at a time: it is behind a lock.
unsafe impl Send for Nccl {}

impl Nccl {
    /// Joins the network as `rank` of `ranks`, for the GPU whose context is current.
    pub(super) fn join(name: &[u8], rank: usize, ranks: usize) -> Result<Self, DeviceError> {
        let calls = Calls::get()?;
        let wrong = || DeviceError::Network("no name of a network".into());
        let id = UniqueId(name.try_into().map_err(|_| wrong())?);
        let mut comm = std::ptr::null_mut();
        // SAFETY: a name that `name` gave; plain output.
        calls.check("ncclCommInitRank", unsafe { (calls.init)(&raw mut comm, int(ranks), id, int(rank)) })?;
        Ok(Self { calls, comm })
    }

    /// Enters all messages into a stream.
    ///
    /// # Safety
    /// The parcels are memory of the communicator's GPU, and what is done to them is in the order of the stream.
    pub(super) unsafe fn exchange(
        &self,
        sends: &[Parcel<'_>],
        receives: &[Parcel<'_>],
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        let Self { calls, comm } = *self;
        // SAFETY: the caller's promise.
        unsafe {
            calls.check("ncclGroupStart", (calls.start)())?;
            for parcel in sends {
                let from = parcel.at.0 as *const c_void;
                let code = (calls.send)(from, parcel.bytes, BYTES, int(parcel.peer), comm, stream);
                calls.check("ncclSend", code)?;
            }
            for parcel in receives {
                let to = parcel.at.0 as *mut c_void;
                let code = (calls.receive)(to, parcel.bytes, BYTES, int(parcel.peer), comm, stream);
                calls.check("ncclRecv", code)?;
            }
            calls.check("ncclGroupEnd", (calls.end)())
        }
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // SAFETY: the communicator is not used any more. Other ranks may have ended, so nobody is waited for.
        unsafe { (self.calls.abort)(self.comm) };
    }
}
