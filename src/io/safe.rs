//! A file gets its name only when it is complete, checked and on the disk.

use super::IoError;
use crate::comm::{Comm, agree};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Writes a file beside its place: `NAME.tmp` in the same folder is handed to `write` on every rank,
/// put on the disk, and renamed to `path`.
///
/// `write` is to leave a complete file and to have read it back. If it fails on any rank, the
/// temporary file is removed and what stood at `path` stays as it was.
///
/// # Errors
/// What `write` says, or the system: no such folder, no permission, disk full. The same on all ranks.
pub fn write_aside<T>(
    path: &Path,
    comm: &dyn Comm,
    write: impl FnOnce(&Path) -> Result<T, IoError>,
) -> Result<T, IoError> {
    let temporary = beside(path);
    let first = comm.rank() == 0;
    // One rank tries the folder, so that a mistake in the path has one clear message.
    agree(comm, if first { touch(&temporary) } else { Ok(()) })?;
    let written = agree(comm, write(&temporary));
    let named = written.and_then(|value| {
        let put = if first { put_in_place(&temporary, path) } else { Ok(()) };
        agree(comm, put).map(|()| value)
    });
    if named.is_err() && first {
        // It may be gone already; the first error is the one worth telling.
        let _ = fs::remove_file(&temporary);
    }
    named
}

/// Writes a text file, which appears whole.
///
/// # Errors
/// What the system says.
pub fn write_text(path: &Path, text: &str) -> Result<(), IoError> {
    write_aside(path, &crate::comm::Solo, |temporary| {
        fs::write(temporary, text).map_err(IoError::system(temporary, "write"))
    })
}

/// Refuses to continue with the file at `path`, made by [`write_aside`], where `needed` bytes find no room.
///
/// HDF5 and MPI survive a full disk badly, so they are not to meet one: the free space is compared,
/// and where the file system can, the room is reserved for a moment, which asks for the quota as well.
#[cfg(feature = "hdf5")]
pub(super) fn require_room(path: &Path, needed: u64) -> Result<(), IoError> {
    let file = fs::OpenOptions::new().write(true).open(path).map_err(IoError::system(path, "open"))?;
    if let Some(free) = free_bytes_of(&file).filter(|free| *free < needed) {
        return Err(IoError::DiskFull { path: path.into(), needed, free });
    }
    reserve(&file, needed).map_err(IoError::system(path, "reserve room"))?;
    file.set_len(0).map_err(IoError::system(path, "write"))
}

/// The bytes that are free on the file system of a file or folder; `None` if it does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    free_bytes_of(&File::open(path).ok()?)
}

fn free_bytes_of(file: &File) -> Option<u64> {
    let mut room = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `room` has the size of the structure, and is initialised by being zeroed.
    let (code, room) = unsafe { (libc::fstatvfs(file.as_raw_fd(), room.as_mut_ptr()), room.assume_init()) };
    // File systems that know nothing about their room say zero blocks in all.
    (code == 0 && room.f_blocks > 0).then(|| room.f_bavail.saturating_mul(room.f_frsize))
}

/// Reserves `needed` bytes where the system offers it.
#[cfg(all(feature = "hdf5", target_os = "linux"))]
fn reserve(file: &File, needed: u64) -> std::io::Result<()> {
    // SAFETY: the descriptor is open for writing.
    let code = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, needed.cast_signed()) };
    let error = std::io::Error::last_os_error();
    match error.kind() {
        _ if code == 0 => Ok(()),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Err(error),
        kind @ std::io::ErrorKind::FileTooLarge => {
            Err(std::io::Error::new(kind, "larger than the limit on file sizes (ulimit -f)"))
        }
        _ => Ok(()),
    }
}

#[cfg(all(feature = "hdf5", not(target_os = "linux")))]
fn reserve(_: &File, _: u64) -> std::io::Result<()> {
    Ok(())
}

/// Makes a folder and its parents, and puts the new names on the disk.
pub(super) fn make_folder(folder: &Path) -> Result<(), IoError> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(IoError::system(folder, "make the folder"))?;
    sync_folder(folder)
}

/// `NAME.tmp` in the same folder.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".tmp");
    path.with_file_name(name)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn touch(path: &Path) -> Result<(), IoError> {
    File::create(path).map(drop).map_err(IoError::system(path, "write"))
}

fn put_in_place(temporary: &Path, path: &Path) -> Result<(), IoError> {
    let file = File::open(temporary).map_err(IoError::system(temporary, "open"))?;
    file.sync_all().map_err(IoError::system(temporary, "put on the disk"))?;
    fs::rename(temporary, path).map_err(IoError::system(path, "rename a file to"))?;
    sync_folder(path)
}

/// Puts the name of `path` on the disk: the folder that holds it.
fn sync_folder(path: &Path) -> Result<(), IoError> {
    let folder = folder_of(path);
    let opened = File::open(folder).map_err(IoError::system(folder, "open the folder"))?;
    opened.sync_all().map_err(IoError::system(folder, "put on the disk"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Solo;

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("hmc-safe-{}", std::process::id()));
        make_folder(&folder).unwrap();
        let path = folder.join("file");
        let put = |text: &str, path: &Path| fs::write(path, text).map_err(IoError::system(path, "write"));
        write_aside(&path, &Solo, |temporary| put("old", temporary)).unwrap();
        let failed = write_aside(&path, &Solo, |temporary| {
            put("new", temporary)?;
            Err::<(), _>(IoError::damaged(temporary, "made up"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let nowhere = write_aside(&folder.join("none/file"), &Solo, |temporary| put("new", temporary));
        assert!(nowhere.unwrap_err().to_string().contains("none/file.tmp"));
        #[cfg(feature = "hdf5")]
        assert!(matches!(require_room(&path, u64::MAX), Err(IoError::DiskFull { .. })));
        fs::remove_dir_all(folder).unwrap();
    }
}
