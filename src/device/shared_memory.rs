//! Memory of this process that others of the node may open, as GPUs of a node open each other's: an emulated GPU's.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard};

/// Bytes of a handle.
const HANDLE: usize = 128;

/// The memory that this process shares, and what it has opened.
#[derive(Default)]
pub(super) struct SharedMemory(Mutex<HashMap<u64, Part>>);

/// A file that is nowhere but in memory.
struct Part {
    bytes: usize,
    /// `None`: it is another process's.
    file: Option<File>,
}

impl SharedMemory {
    fn parts(&self) -> MutexGuard<'_, HashMap<u64, Part>> {
        self.0.lock().expect("no panic holds it")
    }

    fn add(&self, bytes: usize, file: File, own: bool) -> Result<u64> {
        let address = map(&file, bytes)?;
        self.parts().insert(address, Part { bytes, file: own.then_some(file) });
        Ok(address)
    }

    /// The address of new memory; its content is zero.
    ///
    /// # Errors
    /// The system gives none.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64> {
        let file = anonymous()?;
        file.set_len(bytes as u64)?;
        self.add(bytes, file, true)
    }

    /// What another process of this node opens the memory by, always of the same length.
    ///
    /// # Errors
    /// No such memory was allocated here.
    pub(super) fn handle(&self, address: u64) -> Result<Vec<u8>> {
        let parts = self.parts();
        let own = parts.get(&address).and_then(|part| Some((part.bytes, part.file.as_ref()?)));
        let (bytes, file) = own.ok_or_else(|| Error::from(ErrorKind::NotFound))?;
        let (process, number, inode) = (std::process::id(), file.as_raw_fd(), file.metadata()?.ino());
        let mut text = format!("{} {process} {number} {inode} {bytes}", node()?).into_bytes();
        text.resize(HANDLE, b' ');
        Ok(text)
    }

    /// The address, in this process, of memory that another has shared.
    ///
    /// # Errors
    /// It is another node's, or gone.
    pub(super) fn open(&self, handle: &[u8]) -> Result<u64> {
        let parts: Vec<&str> = str::from_utf8(handle).map_err(Error::other)?.split_whitespace().collect();
        let [on, process, number, inode, bytes] = parts[..] else {
            return Err(ErrorKind::InvalidInput.into());
        };
        if on != node()? {
            return Err(Error::other("memory of another node"));
        }
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{process}/fd/{number}"))?;
        let bytes: usize = bytes.parse().map_err(Error::other)?;
        let found = file.metadata()?;
        if found.ino().to_string() != inode || found.len() != bytes as u64 {
            return Err(ErrorKind::NotFound.into());
        }
        self.add(bytes, file, false)
    }

    /// Gives memory back that was allocated or opened here; `false` if there is none at `address`.
    ///
    /// # Safety
    /// Nothing of this process uses it any more.
    pub(super) unsafe fn close(&self, address: u64) -> bool {
        let Some(part) = self.parts().remove(&address) else { return false };
        // SAFETY: mapped by `map` with this length; nothing uses it, by the caller's promise.
        unsafe { libc::munmap(address as *mut libc::c_void, part.bytes) };
        true
    }
}

/// A mapping of the whole file.
fn map(file: &File, bytes: usize) -> Result<u64> {
    let (access, share) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping, where the system chooses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, share, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(at as u64) }
}

/// A file without a name.
#[cfg(target_os = "linux")]
fn anonymous() -> Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name ends with a zero.
    let number = unsafe { libc::memfd_create(c"hmc".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor is new and nobody else's.
    if number < 0 { Err(Error::last_os_error()) } else { Ok(unsafe { File::from_raw_fd(number) }) }
}

#[cfg(not(target_os = "linux"))]
fn anonymous() -> Result<File> {
    Err(ErrorKind::Unsupported.into())
}

/// What no other running node has.
fn node() -> Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_other_reads() {
        let (one, other) = (SharedMemory::default(), SharedMemory::default());
        let own = one.allocate(4096).unwrap();
        let handle = one.handle(own).unwrap();
        let opened = other.open(&handle).unwrap();
        assert_ne!(own, opened);
        // SAFETY: both are mappings of 4096 bytes.
        let read = unsafe {
            (own as *mut u64).write_volatile(7);
            (opened as *const u64).read_volatile()
        };
        assert_eq!(read, 7);
        // SAFETY: nothing uses them.
        unsafe { assert!(other.close(opened) && one.close(own) && !one.close(own)) };
        assert!(other.open(&handle).is_err(), "it is gone");
    }

    #[test]
    fn memory_of_another_node_or_size_is_refused() {
        let shared = SharedMemory::default();
        let own = shared.allocate(64).unwrap();
        let handle = String::from_utf8(shared.handle(own).unwrap()).unwrap();
        assert_eq!(handle.len(), HANDLE);
        for wrong in
            [handle.replacen('-', "+", 1), handle.replace(" 64 ", " 65 "), "nothing".into(), String::new()]
        {
            assert!(shared.open(wrong.as_bytes()).is_err(), "{wrong}");
        }
        // SAFETY: nothing uses it.
        assert!(unsafe { shared.close(own) });
    }
}
