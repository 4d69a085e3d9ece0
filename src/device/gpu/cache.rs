//! Machine code and chosen shapes kept on disk, under a hash of everything that they were made from. Files are written
//! under another name and then renamed, so any number of ranks may share the folder. They are checked before use.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

/// 128 bits that stand for `key`.
pub(crate) fn digest(key: &impl Hash) -> [u64; 2] {
    [0u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, key).hash(&mut hasher);
        hasher.finish()
    })
}

/// The file of one kernel's code; `None` if nothing is kept.
pub(crate) struct Place(Option<PathBuf>);

impl Place {
    /// The file in `folder` for `key`; `name` is for human readers, `ending` is the file's extension.
    pub(crate) fn new(folder: Option<&Path>, name: &str, ending: &str, key: &impl Hash) -> Self {
        let folder = folder.filter(|folder| fs::create_dir_all(folder).is_ok());
        let [high, low] = digest(key);
        Self(folder.map(|folder| folder.join(format!("{name}_{high:016x}{low:016x}.{ending}"))))
    }

    /// The code, if the file exists and is intact. A file is a CRC32 and the code.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let bytes = fs::read(self.0.as_deref()?).ok()?;
        let (crc, code) = bytes.split_at_checked(4)?;
        (crc32fast::hash(code).to_le_bytes() == crc).then(|| code.to_vec())
    }

    /// Whether there is a file.
    pub(crate) fn exists(&self) -> bool {
        self.0.as_deref().is_some_and(Path::exists)
    }

    /// Keeps the code, if possible: without the file only time is lost.
    pub(crate) fn write(&self, code: &[u8]) {
        let Some(path) = &self.0 else { return };
        let aside = path.with_extension(format!("{}.tmp", std::process::id()));
        let bytes = [&crc32fast::hash(code).to_le_bytes()[..], code].concat();
        // What stands there, if not left by a process of this number, is somebody else's link.
        let _ = fs::remove_file(&aside);
        let written = fs::File::create_new(&aside).and_then(|mut file| file.write_all(&bytes));
        if written.is_ok() && fs::rename(&aside, path).is_err() {
            let _ = fs::remove_file(&aside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;
    use std::fs;

    #[test]
    fn what_is_kept_is_found_again_and_damage_is_noticed() {
        let folder = std::env::temp_dir().join(format!("hmc-cache-{}", std::process::id()));
        let place = |key: &str| Place::new(Some(&folder), "kernel", "bin", &key);
        assert_eq!(place("a").read(), None);
        place("a").write(b"code");
        assert_eq!(place("a").read().as_deref(), Some(&b"code"[..]));
        assert_eq!(place("b").read(), None);
        let file = place("a").0.unwrap();
        let mut bytes = fs::read(&file).unwrap();
        bytes[5] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(place("a").read(), None);
        Place::new(None, "kernel", "bin", &"a").write(b"code");
        fs::remove_dir_all(&folder).unwrap();
    }
}
