//! Files that last as long as their value.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder, removed with what is in it.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder: in memory where the system has files there, for readers put what they write on the disk.
    pub(super) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("hmc-fuzz-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A file with these bytes.
    pub(super) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Panics unless an error is one line that names the file.
pub(super) fn names(error: impl std::fmt::Display, path: &Path) {
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "does not name {}: {text}", path.display());
    assert!(!text.chars().any(char::is_control), "more than a line: {text:?}");
}
