//! The states of a chain on the disk: checkpoints, `checkpoint/ckpt_000123.h5`, and configurations, `cfg/cfg_000123.h5`.
//!
//! A checkpoint is a configuration with the state of the run. The newest two are kept, so that a damaged one costs the
//! trajectories since the one before, no more. Random numbers have addresses and no state, so a chain continues from a
//! configuration just as well.

use super::safe::free_name;
use super::safe::make_folder;
use super::{Header, IoError, MOST_TRAJECTORIES, Meta, hdf5_config, verified};
use crate::comm::{Comm, agree, from_first};
use crate::field::HostLinks;
use crate::lattice::Partition;
use std::fs;
use std::path::{Path, PathBuf};

/// How many checkpoints stay.
const KEPT: usize = 2;

/// A file that a chain can continue from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Configuration,
    Checkpoint,
}

impl Kind {
    /// Folder and start of the name.
    fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Configuration => ("cfg", "cfg_"),
            Self::Checkpoint => ("checkpoint", "ckpt_"),
        }
    }

    fn path(self, folder: &Path, trajectory: u64) -> PathBuf {
        folder.join(self.place().0).join(self.name(trajectory))
    }

    fn name(self, trajectory: u64) -> String {
        format!("{}{trajectory:06}.h5", self.place().1)
    }

    /// The trajectory of a name.
    fn trajectory(self, name: &str) -> Option<u64> {
        let number: u64 = name.strip_prefix(self.place().1)?.strip_suffix(".h5")?.parse().ok()?;
        (self.name(number) == name && number <= MOST_TRAJECTORIES).then_some(number)
    }

    /// The trajectories that have such a file, oldest first.
    fn list(self, folder: &Path) -> Result<Vec<u64>, IoError> {
        let folder = folder.join(self.place().0);
        let refused = || IoError::system(&folder, "list the folder");
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(refused())?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(refused())?.file_name();
            found.extend(name.to_str().and_then(|name| self.trajectory(name)));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// The state that a run continues from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// This rank's links.
    pub links: HostLinks,
    /// What the file says: `trajectory` and `input` are there.
    pub header: Header,
    /// Trajectories done.
    pub trajectory: u64,
    /// The file.
    pub path: PathBuf,
    /// Whether it is a checkpoint.
    pub is_checkpoint: bool,
    /// One line for every newer file that could not be read.
    pub warnings: Vec<String>,
}

/// Writes the checkpoint of `meta.trajectory` into `folder/checkpoint` and removes the old ones; collective. `state` is the
/// caller's text.
///
/// # Errors
/// There is no trajectory, or the folder or the file cannot be written. What was there is then still there.
pub fn save(
    folder: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    meta: &Meta,
    state: &str,
) -> Result<PathBuf, IoError> {
    let (number, first) = (number(folder, meta)?, comm.rank() == 0);
    let path = Kind::Checkpoint.path(folder, number);
    agree(comm, if first { make_folder(&folder.join("checkpoint")) } else { Ok(()) })?;
    hdf5_config::write(&path, links, partition, comm, meta, Some(state))?;
    agree(comm, if first { remove_old(folder, number) } else { Ok(()) })?;
    Ok(path)
}

/// Writes the configuration of `meta.trajectory` into `folder/cfg`; collective. One that is there with the same links
/// stays; a damaged one is moved aside, and the answer tells so.
///
/// # Errors
/// There is no trajectory, the file cannot be written, or one with other links is there.
pub fn save_configuration(
    folder: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    meta: &Meta,
) -> Result<Option<String>, IoError> {
    let (number, first) = (number(folder, meta)?, comm.rank() == 0);
    let path = Kind::Configuration.path(folder, number);
    let is_there = comm.max(f64::from(u8::from(first && fs::symlink_metadata(&path).is_ok()))) > 0.0;
    let mut warning = None;
    if is_there {
        match load(&path, number, partition, comm) {
            Ok((found, _)) => {
                let differ = comm.max(f64::from(u8::from(found != *links))) > 0.0;
                let what = "is there already, with other links than this chain's; move it away";
                return if differ { Err(IoError::malformed(&path, what)) } else { Ok(None) };
            }
            Err(error) => {
                // What the system could not read just now may be whole.
                let is_passing = f64::from(u8::from(error.is_passing()));
                if comm.max(is_passing) > 0.0 {
                    return Err(error);
                }
                let aside = free_name(&path);
                let moved = if first { fs::rename(&path, &aside) } else { Ok(()) };
                agree(comm, moved.map_err(IoError::system(&path, "move aside")))?;
                warning = Some(format!("{error}; moved aside as {}", aside.display()));
            }
        }
    }
    hdf5_config::write(&path, links, partition, comm, meta, None)?;
    Ok(warning)
}

/// The trajectory of a state of the chain in `folder`.
fn number(folder: &Path, meta: &Meta) -> Result<u64, IoError> {
    meta.trajectory
        .ok_or_else(|| IoError::malformed(folder, "a state of a chain needs the number of its trajectory"))
}

/// The checkpoints and configurations in `folder` with their trajectories, the newest first, checkpoints before
/// configurations. Not collective.
///
/// # Errors
/// A folder cannot be listed.
pub fn states(folder: &Path) -> Result<Vec<(u64, PathBuf)>, IoError> {
    Ok(list(folder)?.into_iter().map(|(n, kind)| (n, kind.path(folder, n))).collect())
}

fn list(folder: &Path) -> Result<Vec<(u64, Kind)>, IoError> {
    let mut found = Vec::new();
    for kind in [Kind::Checkpoint, Kind::Configuration] {
        found.extend(kind.list(folder)?.into_iter().map(|n| (n, kind)));
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

/// Reads the newest state in `folder` that is whole; `None` if there are no files; collective.
///
/// `judge` is asked about each file's header, on all ranks, before its links are read: an error of its ends the search.
///
/// # Errors
/// `judge`'s; or there are files, but none can be read.
pub fn load_newest<E: From<IoError>>(
    folder: &Path,
    partition: &Partition,
    comm: &dyn Comm,
    mut judge: impl FnMut(&Path, &Header) -> Result<(), E>,
) -> Result<Option<Loaded>, E> {
    let mut warnings = Vec::new();
    for (trajectory, kind) in agreed_list(folder, comm)? {
        let path = kind.path(folder, trajectory);
        match agree(comm, hdf5_config::header(&path)) {
            Ok(header) => judge(&path, &header)?,
            Err(error) => {
                warnings.push(error.to_string());
                continue;
            }
        }
        match load(&path, trajectory, partition, comm) {
            Ok((_, header)) if kind == Kind::Checkpoint && header.state.is_none() => {
                let what = "a configuration, not a checkpoint: it has no state";
                warnings.push(IoError::malformed(&path, what).to_string());
            }
            Ok((links, header)) => {
                let is_checkpoint = kind == Kind::Checkpoint;
                return Ok(Some(Loaded { links, header, trajectory, path, is_checkpoint, warnings }));
            }
            Err(error) => warnings.push(error.to_string()),
        }
    }
    if warnings.is_empty() {
        return Ok(None);
    }
    Err(IoError::NoState { folder: folder.into(), reasons: warnings }.into())
}

/// The links after trajectory `number`, from a checkpoint or a configuration that is whole; `None` if there is none;
/// collective.
///
/// # Errors
/// A folder cannot be listed.
pub fn load_state(
    folder: &Path,
    number: u64,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<Option<HostLinks>, IoError> {
    for (trajectory, kind) in agreed_list(folder, comm)? {
        if trajectory == number
            && let Ok((links, _)) = load(&kind.path(folder, number), number, partition, comm)
        {
            return Ok(Some(links));
        }
    }
    Ok(None)
}

/// The trajectories that have a configuration in `folder/cfg`, oldest first. Not collective.
pub(super) fn configurations(folder: &Path) -> Result<Vec<u64>, IoError> {
    Kind::Configuration.list(folder)
}

/// The configuration in `folder/cfg` after trajectory `number`; collective.
///
/// # Errors
/// It cannot be read, or is damaged.
pub fn load_configuration(
    folder: &Path,
    number: u64,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(HostLinks, Header), IoError> {
    load(&Kind::Configuration.path(folder, number), number, partition, comm)
}

/// Reads a file whose name says the trajectory `number`.
fn load(
    path: &Path,
    number: u64,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(HostLinks, Header), IoError> {
    let (links, header) = verified(hdf5_config::read(path, partition, comm)?, path, partition, comm)?;
    match header.trajectory {
        Some(n) if n == number => Ok((links, header)),
        other => {
            let found = other.map_or("unknown".to_owned(), |n| n.to_string());
            Err(IoError::malformed(path, format!("its trajectory is {found}, not that of its name")))
        }
    }
}

/// Rank 0's list, on all ranks: folders on a network may look different for a while.
fn agreed_list(folder: &Path, comm: &dyn Comm) -> Result<Vec<(u64, Kind)>, IoError> {
    let first = comm.rank() == 0;
    let own = agree(comm, if first { list(folder) } else { Ok(Vec::new()) })?;
    let bytes: Vec<u8> = own
        .iter()
        .flat_map(|&(n, kind)| (2 * n + u64::from(kind == Kind::Checkpoint)).to_le_bytes())
        .collect();
    let bytes = from_first(comm, bytes);
    let words = bytes.as_chunks().0;
    let decode = |word: u64| (word / 2, if word % 2 == 1 { Kind::Checkpoint } else { Kind::Configuration });
    Ok(words.iter().map(|bytes| decode(u64::from_le_bytes(*bytes))).collect())
}

/// Removes all but the newest two, and never the one just saved.
fn remove_old(folder: &Path, saved: u64) -> Result<(), IoError> {
    let found = Kind::Checkpoint.list(folder)?;
    for old in &found[..found.len().saturating_sub(KEPT)] {
        if *old != saved {
            let path = Kind::Checkpoint.path(folder, *old);
            fs::remove_file(&path).map_err(IoError::system(&path, "remove"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers() {
        let kind = Kind::Checkpoint;
        assert_eq!(kind.trajectory("ckpt_000123.h5"), Some(123));
        assert_eq!(kind.trajectory(&kind.name(12_345_678)), Some(12_345_678));
        let absurd = kind.name(1 << 63);
        for other in ["ckpt_123.h5", "ckpt_000123.h5.tmp", "cfg_000123.h5", "ckpt_+00123.h5", &absurd] {
            assert_eq!(kind.trajectory(other), None, "{other}");
        }
    }
}
