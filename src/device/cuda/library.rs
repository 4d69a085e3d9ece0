//! NVRTC as a library that is loaded when the program runs, and which one fits the driver.
//!
//! A driver loads the code of its own major version of CUDA, whatever the minor one, and of those before it. So of the
//! libraries that are here, the newest that is no newer than the driver is taken.

use crate::device::DeviceError;
use crate::device::kernels::int;
use libloading::os::unix::{Library as Shared, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A version of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Version {
    /// Code runs on drivers of this number and later ones.
    pub major: i32,
    /// Within it, code runs on older drivers, too.
    pub minor: i32,
}

/// The oldest version of driver and NVRTC: its driver has every call that is made, and its NVRTC compiles the kernels.
pub(super) const OLDEST: Version = Version { major: 12, minor: 0 };
/// The newest major version whose NVRTC is looked for by name where there is no driver.
const NEWEST: i32 = 13;

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Version {
    /// From the number that the driver gives, 12040 for 12.4.
    pub(super) fn of_driver(number: i32) -> Self {
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }

    /// Refuses a driver that is too old.
    ///
    /// # Errors
    /// It is, and which one would do.
    pub(super) fn judge_driver(self) -> Result<(), DeviceError> {
        if self >= OLDEST {
            return Ok(());
        }
        let told = format!("the driver is of CUDA {self}; {OLDEST} or later is needed");
        Err(DeviceError::NoGpu(told))
    }

    /// Whether the code of this NVRTC can be loaded by the driver, if there is one.
    fn fits(self, driver: Option<Self>) -> bool {
        self >= OLDEST && driver.is_none_or(|driver| self.major <= driver.major)
    }
}

/// The names of NVRTC, the one to be taken first in front. After that of a toolkit, of whichever version, come those that are
/// too new for the driver: they are looked for only to be told of.
fn names(driver: Option<Version>) -> Vec<String> {
    let newest = driver.map_or(NEWEST, |driver| driver.major);
    let numbered = |major: i32| format!("libnvrtc.so.{major}");
    let fitting = (OLDEST.major..=newest).rev().map(numbered);
    fitting.chain(["libnvrtc.so".to_owned()]).chain((newest + 1..=NEWEST).map(numbered)).collect()
}

/// The error where none fits; `others` are the versions of those that are here.
fn none_fits(driver: Option<Version>, others: &[Version]) -> DeviceError {
    let Some(other) = others.iter().max() else {
        return DeviceError::NoCompiler("libnvrtc is not found; set HMC_NVRTC to its folder".into());
    };
    let wanted = match driver {
        Some(driver) if driver.major > OLDEST.major => {
            format!(
                "the driver is of CUDA {driver}, and loads code of CUDA {} to {}",
                OLDEST.major, driver.major
            )
        }
        Some(driver) => format!("the driver is of CUDA {driver}, and loads code of CUDA {}", driver.major),
        None => format!("{OLDEST} or later is needed"),
    };
    DeviceError::NoCompiler(format!(
        "libnvrtc is of CUDA {other}, but {wanted}; set HMC_NVRTC to the folder of one that fits"
    ))
}

type Program = *mut c_void;

/// What is called of the library.
pub(super) struct Library {
    /// Its version.
    pub version: Version,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    code_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    code: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
}

impl Library {
    /// Loads the library that fits the driver, if there is one: from `folder`, or else from the loader's path.
    ///
    /// # Errors
    /// None is found, or none fits.
    pub(super) fn load(folder: Option<&Path>, driver: Option<Version>) -> Result<Self, DeviceError> {
        let here =
            folder.into_iter().flat_map(|folder| names(driver).into_iter().map(|name| folder.join(name)));
        let paths = here.filter(|path| path.exists()).chain(names(driver).into_iter().map(PathBuf::from));
        if let Some(folder) = folder {
            load_parts(folder);
        }
        let mut others = Vec::new();
        for path in paths {
            match Self::open(&path) {
                Ok(library) if library.version.fits(driver) => return Ok(library),
                Ok(library) => others.push(library.version),
                Err(_) => {}
            }
        }
        Err(none_fits(driver, &others))
    }

    fn open(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: NVRTC by its name; its functions have these types in every version from 11.1.
        unsafe {
            let shared = Shared::open(Some(path), RTLD_NOW | RTLD_LOCAL)?;
            let version_of =
                *shared.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion")?;
            let mut version = Version { major: 0, minor: 0 };
            version_of(&raw mut version.major, &raw mut version.minor);
            let library = Self {
                version,
                error: *shared.get(b"nvrtcGetErrorString")?,
                create: *shared.get(b"nvrtcCreateProgram")?,
                compile: *shared.get(b"nvrtcCompileProgram")?,
                log_size: *shared.get(b"nvrtcGetProgramLogSize")?,
                log: *shared.get(b"nvrtcGetProgramLog")?,
                code_size: *shared.get(b"nvrtcGetCUBINSize")?,
                code: *shared.get(b"nvrtcGetCUBIN")?,
                destroy: *shared.get(b"nvrtcDestroyProgram")?,
            };
            // It stays loaded until the process ends.
            std::mem::forget(shared);
            Ok(library)
        }
    }

    /// The CUBIN of `source`, and what the compiler said.
    ///
    /// # Errors
    /// The source does not compile: what the compiler said.
    pub(super) fn compile(
        &self,
        source: &CStr,
        headers: &[(CString, CString)],
        options: &[CString],
    ) -> Result<(Vec<u8>, String), String> {
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<_> = headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: all strings outlive the program, which is destroyed first; buffers are as long as was said.
        unsafe {
            let mut program = std::ptr::null_mut();
            self.check((self.create)(
                &raw mut program,
                source.as_ptr(),
                c"kernel.cu".as_ptr(),
                int(headers.len()),
                texts.as_ptr(),
                names.as_ptr(),
            ))?;
            let done = self.check((self.compile)(program, int(options.len()), options.as_ptr()));
            let said = Self::text(program, self.log_size, self.log);
            let said = String::from_utf8_lossy(said.split(|byte| *byte == 0).next().unwrap_or_default())
                .into_owned();
            let code = match done {
                Ok(()) => Ok(Self::text(program, self.code_size, self.code)),
                Err(error) if said.is_empty() => Err(error),
                Err(_) => Err(said.clone()),
            };
            (self.destroy)(&raw mut program);
            match code {
                Ok(code) if code.is_empty() => Err("NVRTC made no code".into()),
                code => code.map(|code| (code, said)),
            }
        }
    }

    /// What a program gives by its size and its bytes; empty if it gives nothing.
    unsafe fn text(
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        bytes: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: a program of this library; the buffer is as long as it says.
        unsafe {
            if size(program, &raw mut length) != 0 {
                return Vec::new();
            }
            let mut text = vec![0u8; length];
            if bytes(program, text.as_mut_ptr().cast()) == 0 { text } else { Vec::new() }
        }
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a text of the library, which stays loaded.
        let reason = unsafe { CStr::from_ptr((self.error)(code)) };
        Err(reason.to_string_lossy().into_owned())
    }
}

/// Loads what NVRTC looks up by bare name, so that it is found in `folder`.
fn load_parts(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let part = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins.so"))
    };
    for path in entries.filter(part) {
        // SAFETY: a shared library of CUDA's; its initialisers are harmless.
        if let Ok(shared) = unsafe { Shared::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
            std::mem::forget(shared);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: i32, minor: i32) -> Version {
        Version { major, minor }
    }

    #[test]
    fn a_driver_is_judged_by_its_version() {
        assert_eq!(Version::of_driver(12040), version(12, 4));
        assert_eq!(Version::of_driver(13010), version(13, 1));
        for fine in [12000, 12040, 12090, 13000, 14020] {
            assert!(Version::of_driver(fine).judge_driver().is_ok(), "{fine}");
        }
        let refused = Version::of_driver(11080).judge_driver().unwrap_err().to_string();
        assert_eq!(refused, "no GPU: the driver is of CUDA 11.8; 12.0 or later is needed");
    }

    /// Calls that are looked up when they are made end the program where the driver lacks them. A call that is added here
    /// must be in the header of CUDA [`OLDEST`].
    #[test]
    fn the_oldest_driver_has_every_call() {
        const KNOWN: &str = "cuCtxGetStreamPriorityRange cuCtxSetCurrent cuDeviceGet cuDeviceGetAttribute cuDeviceGetName \
            cuDeviceGetPCIBusId cuDevicePrimaryCtxRetain cuDriverGetVersion cuEventCreate cuEventDestroy_v2 \
            cuEventRecord cuEventSynchronize cuFuncSetAttribute cuIpcCloseMemHandle cuIpcGetMemHandle \
            cuIpcOpenMemHandle_v2 cuLaunchKernelEx cuMemAlloc_v2 cuMemFreeHost cuMemFree_v2 cuMemGetInfo_v2 \
            cuMemHostAlloc cuMemHostGetDevicePointer_v2 cuMemHostRegister_v2 cuMemHostUnregister cuMemcpyAsync \
            cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2 cuMemsetD8Async cuModuleGetFunction cuModuleLoadData \
            cuStreamCreate cuStreamCreateWithPriority cuStreamQuery cuStreamSynchronize cuStreamWaitEvent";
        let known: Vec<&str> = KNOWN.split(' ').collect();
        let sources = [
            include_str!("mod.rs"),
            include_str!("launch.rs"),
            include_str!("ahead.rs"),
            include_str!("meter.rs"),
        ];
        let mut count = 0;
        for (place, part) in
            sources.iter().flat_map(|text| text.match_indices("cu").map(move |(at, _)| (at, text)))
        {
            let before = &part[..place];
            if !(before.ends_with("call!(") || before.ends_with("sys::")) {
                continue;
            }
            let end = part[place..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
            let name = &part[place..place + end];
            if part[place + end..].starts_with('(') && name != "culib" {
                assert!(known.contains(&name), "{name}: since which version of CUDA?");
                count += 1;
            }
        }
        assert!(count >= known.len(), "{count} calls were found");
    }

    #[test]
    fn code_runs_on_drivers_of_its_major_version_and_later_ones() {
        let on = |nvrtc: Version, driver: Version| nvrtc.fits(Some(driver));
        assert!(on(version(12, 9), version(12, 4)), "minor versions do not matter");
        assert!(on(version(12, 4), version(13, 0)) && on(version(13, 1), version(13, 0)));
        assert!(!on(version(13, 0), version(12, 9)), "a driver does not load code of later major versions");
        assert!(
            !on(version(11, 8), version(12, 4)) && !version(11, 8).fits(None) && version(13, 0).fits(None)
        );
    }

    #[test]
    fn the_newest_library_that_the_driver_takes_is_looked_for_first() {
        assert_eq!(names(Some(version(12, 4))), ["libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13"]);
        assert_eq!(names(Some(version(13, 0))), ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]);
        assert_eq!(names(Some(version(14, 0)))[0], "libnvrtc.so.14");
        assert_eq!(names(None), names(Some(version(13, 0))));
    }

    #[test]
    fn what_is_wrong_with_a_library_is_told_by_version() {
        let told = |driver, others: &[Version]| none_fits(driver, others).to_string();
        assert!(told(Some(version(12, 4)), &[]).contains("libnvrtc is not found"));
        assert_eq!(
            told(Some(version(12, 4)), &[version(13, 0)]),
            "no compiler for GPUs: libnvrtc is of CUDA 13.0, but the driver is of CUDA 12.4, and loads code of CUDA 12; set HMC_NVRTC to the \
             folder of one that fits"
        );
        assert!(told(Some(version(13, 0)), &[version(11, 8)]).contains("loads code of CUDA 12 to 13"));
        assert!(told(None, &[version(11, 8)]).contains("is of CUDA 11.8, but 12.0 or later is needed"));
    }
}
