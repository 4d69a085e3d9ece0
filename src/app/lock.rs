//! The lock of an ensemble's folder: two jobs on one chain would corrupt it.
//!
//! The file `lock` is held by `flock` and names its holder. Some file systems have no locks, and some users remove the
//! file. So a run checks at every trajectory, before it writes anything, that the file still names it.

use super::AppError;
use super::job::Job;
use super::report::{json, warn};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// This job owns the folder as long as this lives.
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    text: String,
}

impl Lock {
    /// Takes the folder for `job`.
    ///
    /// # Errors
    /// Another job has the lock, or the file cannot be written.
    pub(super) fn take(folder: &Path, job: &Job) -> Result<Self, AppError> {
        let path = folder.join("lock");
        let failed = |e: Error| AppError::Folder { path: path.clone(), action: "take the lock", source: e };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        // SAFETY: an open file.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = Error::last_os_error();
            if error.kind() == ErrorKind::WouldBlock {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(taken(folder, &holder));
            }
            warn(format_args!(
                "{}: this file system has no locks ({error}; Lustre has them with the mount option 'flock'): nothing keeps \
                 a second job out of this folder, but the older of two stops at its next trajectory",
                folder.display()
            ));
        }
        let text = format!("{}\n", json(job));
        let put = |file: &mut File| {
            file.set_len(0)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()
        };
        put(&mut file).map_err(failed)?;
        Ok(Self { path, file, text })
    }

    /// Checks that this job still owns the folder. Restores a lock that was removed, and returns a warning then.
    ///
    /// # Errors
    /// Another job has taken the folder in the meantime.
    pub(super) fn check(&mut self) -> Result<Option<String>, AppError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        match std::fs::read_to_string(&self.path) {
            Ok(text) if text == self.text => return Ok(None),
            Ok(text) => return Err(taken(folder, &text)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => {
                return Err(AppError::Folder { path: self.path.clone(), action: "read the lock", source });
            }
        }
        // Only one of two jobs can create the file.
        let failed = |source: Error| match source.kind() {
            ErrorKind::AlreadyExists => taken(folder, ""),
            _ => AppError::Folder { path: self.path.clone(), action: "take the lock again", source },
        };
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).open(&self.path).map_err(failed)?;
        // SAFETY: an open file. That there are no locks was reported at the start.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        file.write_all(self.text.as_bytes()).map_err(failed)?;
        let warning = format!("{}: was removed under the run; taken again", self.path.display());
        self.file = file;
        Ok(Some(warning))
    }
}

impl Drop for Lock {
    /// Clears the name, unless it is another job's.
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = self.file.set_len(0);
        }
    }
}

/// The job that works in the folder now, if any. Changes nothing.
pub(super) fn holder(folder: &Path) -> Option<String> {
    let mut file = File::open(folder.join("lock")).ok()?;
    // SAFETY: an open file; the lock taken here is released when the file is closed.
    let busy = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) } != 0
        && Error::last_os_error().kind() == ErrorKind::WouldBlock;
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    busy.then(|| {
        Job::parse(&text)
            .map_or_else(|| "a process that does not say its name".to_owned(), |job| job.to_string())
    })
}

/// The error for a folder that another job uses; `holder` names that job.
fn taken(folder: &Path, holder: &str) -> AppError {
    let who = Job::parse(holder).map_or_else(String::new, |job| format!(": {job}"));
    AppError::Refused(format!("{}: another job works on this chain{who}", folder.display()))
}
