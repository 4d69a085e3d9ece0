//! A file gets its name only when it is complete, checked and on the disk.

use super::IoError;
use crate::comm::{Comm, agree};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
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
    write_aside(path, &crate::comm::Solo, |temporary| fill(temporary, text.as_bytes()))
}

/// Writes the bytes of a file that [`write_aside`] has made.
pub(super) fn fill(temporary: &Path, bytes: &[u8]) -> Result<(), IoError> {
    let written = reopen(temporary).and_then(|mut file| file.write_all(bytes));
    written.map_err(IoError::system(temporary, "write"))
}

/// Opens a file that [`write_aside`] has made, and not what somebody has put in its place since.
pub(super) fn reopen(temporary: &Path) -> std::io::Result<File> {
    fs::OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(temporary).map_err(unfollowed)
}

/// Opens a file of a chain's folder for more of it, and makes it if it is not there. Symbolic links are not followed: whoever may
/// write into the folder could have this job write elsewhere.
///
/// # Errors
/// What the system says; the file is a symbolic link.
pub fn append_to(path: &Path) -> std::io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    fs::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .custom_flags(flags)
        .open(path)
        .map_err(unfollowed)
}

/// The system's error for a symbolic link, in words.
pub fn unfollowed(error: std::io::Error) -> std::io::Error {
    if error.raw_os_error() == Some(libc::ELOOP) {
        std::io::Error::new(error.kind(), "it is a symbolic link, which is not followed here; remove it")
    } else {
        error
    }
}

/// Reads a file that somebody else may have put there: a plain one of `limit` bytes at most. A pipe would be waited for, and a
/// device might not end.
///
/// # Errors
/// What the system says; it is something else, or larger.
pub fn read_plain(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    let refused = |what: String| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    if !found.is_file() {
        return refused("it is no plain file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return refused(format!("it is larger than {} MB", limit / 1_000_000));
    }
    Ok(bytes)
}

/// Copies a file to the first free of `NAME.damaged`, `NAME.damaged-2`, ...; the answer is a warning.
///
/// # Errors
/// The system refuses.
pub fn keep_copy(path: &Path) -> Result<String, IoError> {
    let copy = free_name(path);
    fs::copy(path, &copy).map_err(IoError::system(&copy, "write"))?;
    Ok(format!("{}: as it was, it is kept as {}", path.display(), copy.display()))
}

/// The first of `NAME.damaged`, `NAME.damaged-2`, ... that is free.
pub(super) fn free_name(path: &Path) -> PathBuf {
    let named = |ending: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let others = (2..).map(|n: u64| named(format!(".damaged-{n}")));
    let mut all = std::iter::once(named(".damaged".to_owned())).chain(others);
    all.find(|name| fs::symlink_metadata(name).is_err()).expect("names do not end")
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

/// Makes the file anew: what stands there, of a killed job or a symbolic link of somebody else's, is removed.
fn touch(path: &Path) -> Result<(), IoError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(IoError::system(path, "remove")(error));
        }
        _ => {}
    }
    File::create_new(path).map(drop).map_err(IoError::system(path, "write"))
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
