//! Configurations of a chain in other formats, each in a folder of its name beside `cfg/`: `ildg/cfg_000123.ildg`.
//!
//! The configuration in `cfg/` is the one that counts: an export that is not its links is moved aside and made again.

use super::checkpoint::configurations;
use super::safe::free_name;
use super::safe::make_folder;
use super::{Format, IoError, Meta, header, reads_back, write_links};
use crate::comm::{Comm, agree, from_first};
use crate::field::HostLinks;
use crate::lattice::Partition;
use std::fs;
use std::path::{Path, PathBuf};

/// The file of the configuration after `trajectory` in a format.
#[must_use]
pub fn export_path(folder: &Path, format: Format, trajectory: u64) -> PathBuf {
    let ending = format.ending();
    folder.join(ending).join(format!("cfg_{trajectory:06}.{ending}"))
}

/// Writes the configuration of `meta.trajectory` in `format`; collective. One that is there with the same links stays;
/// another is moved aside, and the answer tells so.
///
/// # Errors
/// There is no trajectory, or the folder or the file cannot be written.
pub fn export(
    folder: &Path,
    format: Format,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    meta: &Meta,
) -> Result<Option<String>, IoError> {
    let number = meta.trajectory.ok_or_else(|| {
        IoError::malformed(folder, "the configuration of a chain needs the number of its trajectory")
    })?;
    let (path, first) = (export_path(folder, format, number), comm.rank() == 0);
    agree(comm, if first { make_folder(&folder.join(format.ending())) } else { Ok(()) })?;
    let is_there = comm.max(f64::from(u8::from(first && fs::symlink_metadata(&path).is_ok()))) > 0.0;
    let mut warning = None;
    if is_there {
        let why = match super::read_links(&path, partition, comm) {
            Ok((found, header)) => {
                let differs = !reads_back(header.precision, &found, links) || header.format != format;
                if comm.max(f64::from(u8::from(differs))) == 0.0 {
                    return Ok(None);
                }
                format!("{}: is not the configuration of the chain", path.display())
            }
            Err(error) => {
                // What the system could not read just now may be whole.
                let is_passing = f64::from(u8::from(error.is_passing()));
                if comm.max(is_passing) > 0.0 {
                    return Err(error);
                }
                error.to_string()
            }
        };
        let aside = free_name(&path);
        let moved = if first { fs::rename(&path, &aside) } else { Ok(()) };
        agree(comm, moved.map_err(IoError::system(&path, "move aside")))?;
        warning = Some(format!("{why}; moved aside as {}, and made again", aside.display()));
    }
    write_links(&path, format, links, partition, comm, meta)?;
    Ok(warning)
}

/// The configurations in `folder/cfg` up to trajectory `last` that have no whole file in `format`, by its header and size;
/// collective.
///
/// # Errors
/// The folder cannot be listed.
pub fn missing_exports(
    folder: &Path,
    format: Format,
    last: u64,
    comm: &dyn Comm,
) -> Result<Vec<u64>, IoError> {
    let first = comm.rank() == 0;
    let is_missing = |&number: &u64| {
        let is_whole = |header: super::Header| header.format == format;
        number <= last && !header(&export_path(folder, format, number)).is_ok_and(is_whole)
    };
    let own = agree(comm, if first { configurations(folder) } else { Ok(Vec::new()) })?;
    let own: Vec<u8> = own.into_iter().filter(is_missing).flat_map(u64::to_le_bytes).collect();
    Ok(from_first(comm, own).as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}
