//! The lock of an ensemble's folder: two jobs on one chain would corrupt it.
//!
//! The file `lock` is held by `flock` and names its holder. Some file systems have no locks, or locks that other nodes do
//! not see; there, a file that names a job is the lock: the job empties it when it ends, and a job that was killed has to
//! be told apart by a person. Some users remove the file. So a run checks at every trajectory, before it writes anything,
//! that the file still names it.

use crate::app::AppError;
use crate::app::machine::job::{self, Job};
use crate::app::output::{json, warn};
use crate::io;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// This job owns the folder as long as this lives.
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    text: String,
}

/// Symbolic links are not followed, and pipes not waited for: whoever may write into the folder can make them.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Opens a lock to look at it.
fn read(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FLAGS).open(path)
}

/// The text of an open lock; more than any job writes is cut.
fn text_of(file: &File) -> String {
    let mut bytes = Vec::new();
    let _ = file.take(1 << 16).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a file system does to keep a second job out.
#[derive(Debug, PartialEq, Eq)]
enum Held {
    /// The file is locked, by this process.
    Here,
    /// Another process has it.
    Elsewhere,
    /// Nothing: why.
    Nowhere(String),
}

impl Held {
    /// Locks a file, for one process alone or against such a one.
    fn of(file: &File, path: &Path, how: libc::c_int) -> Self {
        // SAFETY: an open file; a lock is released when it is closed.
        if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            let option = path.canonicalize().ok().and_then(|path| node_alone(&mounts, &path));
            return option.map_or(Self::Here, |option| {
                Self::Nowhere(format!("it is mounted with '{option}', so that other nodes do not see them"))
            });
        }
        let error = Error::last_os_error();
        if error.kind() == ErrorKind::WouldBlock { Self::Elsewhere } else { Self::Nowhere(error.to_string()) }
    }
}

/// The mount option by which locks of the file system of `path` hold within this node alone.
fn node_alone(mounts: &str, path: &Path) -> Option<String> {
    const OPTIONS: [&str; 4] = ["localflock", "nolock", "local_lock=flock", "local_lock=all"];
    let fields = |line: &'_ str| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        // Of names with blanks, and the like, the kernel writes the code.
        let point = point.replace("\\040", " ");
        path.starts_with(&point).then(|| (point.len(), kind.to_owned(), options.to_owned()))
    };
    // Of two on the same point, the later is above.
    let (_, kind, options) = mounts.lines().filter_map(fields).max_by_key(|(length, ..)| *length)?;
    let of_many_nodes = kind == "lustre" || kind.starts_with("nfs");
    options.split(',').find(|option| of_many_nodes && OPTIONS.contains(option)).map(str::to_owned)
}

impl Lock {
    /// Takes the folder for `job`.
    ///
    /// # Errors
    /// Another job has the lock, or may have it where there are no locks, or the file cannot be written.
    pub(super) fn take(folder: &Path, job: &Job) -> Result<Self, AppError> {
        let path = folder.join("lock");
        let failed = |e: Error| AppError::Folder { path: path.clone(), action: "take the lock", source: e };
        let made = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(FLAGS)
            .open(&path);
        let file = made.map_err(io::unfollowed).map_err(failed)?;
        let held = Held::of(&file, &path, libc::LOCK_EX);
        let holder = if held == Held::Here { String::new() } else { text_of(&file) };
        match held {
            Held::Here => {}
            Held::Elsewhere => return Err(taken(folder, &holder)),
            Held::Nowhere(why) => warn(without_locks(folder, &path, &why, &holder)?),
        }
        let text = format!("{}\n", json(job));
        let mut lock = Self { path: path.clone(), file, text };
        lock.write().map_err(failed)?;
        Ok(lock)
    }

    fn write(&mut self) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt;
        self.file.set_len(0)?;
        self.file.write_all_at(self.text.as_bytes(), 0)?;
        self.file.sync_data()
    }

    /// Checks that this job still owns the folder. Restores a lock that was removed, and returns a warning then.
    ///
    /// # Errors
    /// Another job has taken the folder in the meantime.
    pub(super) fn check(&mut self) -> Result<Option<String>, AppError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        match read(&self.path).map(|file| text_of(&file)) {
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
        if read(&self.path).is_ok_and(|file| text_of(&file) == self.text) {
            let _ = self.file.set_len(0);
        }
    }
}

/// Whether a run could take the folder now. Changes nothing; the answer is a warning.
///
/// # Errors
/// Another job has the lock, or may have it where there are no locks.
pub(in crate::app) fn judge(folder: &Path) -> Result<Option<String>, AppError> {
    let path = folder.join("lock");
    let Ok(file) = read(&path) else { return Ok(None) };
    let held = Held::of(&file, &path, libc::LOCK_SH);
    let holder = text_of(&file);
    match held {
        Held::Here => Ok(None),
        Held::Elsewhere => Err(taken(folder, &holder)),
        Held::Nowhere(why) => without_locks(folder, &path, &why, &holder).map(Some),
    }
}

/// The job that works in the folder now, if any. Changes nothing.
pub(in crate::app) fn holder(folder: &Path) -> Option<String> {
    let path = folder.join("lock");
    let file = read(&path).ok()?;
    let held = Held::of(&file, &path, libc::LOCK_SH);
    let text = text_of(&file);
    match held {
        Held::Here => None,
        Held::Elsewhere => Some(name_of(&text)),
        Held::Nowhere(_) if text.trim().is_empty() => None,
        Held::Nowhere(why) => {
            Some(format!("{}, unless it was killed: this file system has no locks ({why})", name_of(&text)))
        }
    }
}

/// The job that the text of a lock names.
fn name_of(text: &str) -> String {
    Job::parse(text).map_or_else(|| "a process that does not say its name".to_owned(), |job| job.to_string())
}

/// Judges the text of a lock where nothing else keeps a second job out; the answer is a warning.
///
/// # Errors
/// It names a job that may still be there.
fn without_locks(folder: &Path, path: &Path, why: &str, text: &str) -> Result<String, AppError> {
    let folder = folder.display();
    let none =
        format!("this file system has no locks ({why}; Lustre has them with the mount option 'flock')");
    if text.trim().is_empty() {
        return Ok(format!(
            "{folder}: {none}: a job that is killed leaves its name in the file 'lock', and no other starts until that is removed"
        ));
    }
    match Job::parse(text) {
        // What this node says of its own processes is known; of other nodes nothing is.
        Some(job) if job.host == job::host() && !job.is_running_here() => {
            Ok(format!("{folder}: {none}; {job} was killed, and its lock is taken over"))
        }
        _ => Err(AppError::Refused(format!(
            "{folder}: {none}, and its file 'lock' names {}, which has not said that it ended; if that job is gone, killed or \
             with its node, remove {} and start again",
            name_of(text),
            path.display()
        ))),
    }
}

/// The error for a folder that another job uses; `holder` names that job.
fn taken(folder: &Path, holder: &str) -> AppError {
    let who = Job::parse(holder).map_or_else(String::new, |job| format!(": {job}"));
    AppError::Refused(format!("{}: another job works on this chain{who}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_one_node_are_known_by_the_mount() {
        let mounts = "/dev/sda / ext4 rw 0 0\n\
            a@tcp:/work /work lustre rw,flock 0 0\n\
            a@tcp:/scratch /scratch lustre rw,localflock,lazystatfs 0 0\n\
            b:/home /home nfs4 rw,local_lock=none 0 0\n\
            b:/old /home/o\\040d nfs rw,nolock 0 0\n\
            x /scratch/own ext4 rw,nolock 0 0\n";
        let of = |path: &str| node_alone(mounts, Path::new(path));
        assert_eq!(of("/scratch/chain/lock").as_deref(), Some("localflock"));
        assert_eq!(of("/home/o d/lock").as_deref(), Some("nolock"));
        for fine in ["/lock", "/work/chain/lock", "/home/me/lock", "/scratch/own/lock", "/scratched/lock"] {
            assert_eq!(of(fine), None, "{fine}");
        }
    }

    #[test]
    fn without_locks_a_named_job_is_never_robbed_in_silence() {
        let (folder, path) = (Path::new("e"), Path::new("e/lock"));
        let judge = |text: &str| without_locks(folder, path, "ENOSYS", text);
        let named = |host: &str, pid: u32| {
            json(&Job {
                host: host.to_owned(),
                pid,
                since: "2026-01-31T12:34:56Z".into(),
                batch: Some("4711".into()),
            })
        };
        assert!(judge("").is_ok() && judge("\n").is_ok());
        // No process has this number.
        assert!(judge(&named(&job::host(), u32::MAX)).is_ok());
        for text in
            [named(&job::host(), std::process::id()), named("elsewhere", u32::MAX), "{\"half".to_owned()]
        {
            let told = judge(&text).unwrap_err().to_string();
            assert!(
                told.contains("no locks (ENOSYS") && told.contains("remove e/lock and start again"),
                "{told}"
            );
            assert!(!text.contains("host") || told.contains("job 4711"), "{told}");
        }
    }
}
