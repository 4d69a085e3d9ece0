//! Checkpoints: `checkpoint/ckpt_000123.h5`, a configuration with the state of the run.
//!
//! The newest two are kept, so that a damaged one costs the trajectories since the one before, no more.

use super::safe::make_folder;
use super::{Header, IoError, Meta, hdf5_config};
use crate::comm::{Comm, agree};
use crate::field::HostLinks;
use crate::lattice::Partition;
use std::fs;
use std::path::{Path, PathBuf};

/// How many checkpoints stay.
const KEPT: usize = 2;

/// The checkpoint that a run goes on from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// This rank's links.
    pub links: HostLinks,
    /// What the file says: `state`, `trajectory` and `input` are there.
    pub header: Header,
    /// The file.
    pub path: PathBuf,
    /// One line for every newer checkpoint that could not be read.
    pub warnings: Vec<String>,
}

/// Writes the checkpoint of `meta.trajectory` into `folder/checkpoint` and removes the old ones;
/// collective. `state` is the caller's text.
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
    let folder = folder.join("checkpoint");
    let unknown = || IoError::malformed(&folder, "a checkpoint needs the number of its trajectory");
    let trajectory = meta.trajectory.ok_or_else(unknown)?;
    let first = comm.rank() == 0;
    agree(comm, if first { make_folder(&folder) } else { Ok(()) })?;
    let path = folder.join(name(trajectory));
    hdf5_config::write(&path, links, partition, comm, meta, Some(state))?;
    agree(comm, if first { remove_old(&folder, trajectory) } else { Ok(()) })?;
    Ok(path)
}

/// Reads the newest checkpoint in `folder/checkpoint` that is whole; `None` where there are none;
/// collective.
///
/// # Errors
/// There are checkpoints, but none can be read; or the newest is of another lattice.
pub fn load_newest(folder: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Option<Loaded>, IoError> {
    let folder = folder.join("checkpoint");
    let mut warnings = Vec::new();
    for trajectory in agreed_list(&folder, comm)?.into_iter().rev() {
        let path = folder.join(name(trajectory));
        match load(&path, partition, comm) {
            Ok((links, header)) => return Ok(Some(Loaded { links, header, path, warnings })),
            Err(error) => {
                // Any checkpoint of the run would be refused the same way.
                let mut other_lattice = [i64::from(matches!(error, IoError::WrongLattice { .. }))];
                comm.sum(&mut other_lattice);
                if other_lattice[0] > 0 {
                    return Err(error);
                }
                warnings.push(error.to_string());
            }
        }
    }
    if warnings.is_empty() { Ok(None) } else { Err(IoError::NoCheckpoint { folder, reasons: warnings }) }
}

fn load(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<(HostLinks, Header), IoError> {
    let (links, header) = hdf5_config::read(path, partition, comm)?;
    if header.state.is_none() || header.trajectory.is_none() {
        return Err(IoError::malformed(
            path,
            "a configuration, not a checkpoint: it has no state or no trajectory",
        ));
    }
    Ok((links, header))
}

fn name(trajectory: u64) -> String {
    format!("ckpt_{trajectory:06}.h5")
}

/// The trajectory of a checkpoint's name.
fn trajectory(name: &str) -> Option<u64> {
    let number: u64 = name.strip_prefix("ckpt_")?.strip_suffix(".h5")?.parse().ok()?;
    (self::name(number) == name).then_some(number)
}

/// The trajectories that have a checkpoint, oldest first.
fn list(folder: &Path) -> Result<Vec<u64>, IoError> {
    let refused = || IoError::system(folder, "list the folder");
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(refused())?,
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(entry.map_err(refused())?.file_name().to_str().and_then(trajectory));
    }
    found.sort_unstable();
    Ok(found)
}

/// Rank 0's list, on all ranks: folders on a network may look different for a while.
fn agreed_list(folder: &Path, comm: &dyn Comm) -> Result<Vec<u64>, IoError> {
    let first = comm.rank() == 0;
    let own = agree(comm, if first { list(folder) } else { Ok(Vec::new()) })?;
    let bytes: Vec<u8> = own.iter().flat_map(|n| n.to_le_bytes()).collect();
    let all = comm.gather(&bytes);
    let words = all.first().map_or(&[][..], Vec::as_slice).as_chunks().0;
    Ok(words.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

/// Removes all but the newest two, and never the one just saved.
fn remove_old(folder: &Path, saved: u64) -> Result<(), IoError> {
    let found = list(folder)?;
    for old in &found[..found.len().saturating_sub(KEPT)] {
        if *old != saved {
            let path = folder.join(name(*old));
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
        assert_eq!(trajectory("ckpt_000123.h5"), Some(123));
        assert_eq!(trajectory(&name(12_345_678)), Some(12_345_678));
        for other in ["ckpt_123.h5", "ckpt_000123.h5.tmp", "cfg_000123.h5", "ckpt_+00123.h5"] {
            assert_eq!(trajectory(other), None, "{other}");
        }
    }
}
