//! The inputs of a chain in its folder: `run.toml`, and `run_NNNNNN.toml` from each change of its text on. The chain's links
//! hold the same texts under their checksums, so that one that is lost or altered is known and written again.

use super::jobs;
use crate::input::{self, Input};
use crate::io::{self, IoError};
use crate::measure::Measure;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of an input in the folder, as of one that is given.
const LARGEST_INPUT: u64 = 16 << 20;

/// A stored input, and the trajectory after which it came into force.
pub(in crate::app) struct Kept {
    /// 0 for `run.toml`.
    pub after: u64,
    /// `None` if this version cannot read it.
    pub input: Option<Input>,
}

impl Kept {
    /// From its text. One that cannot be read any more asks for nothing.
    pub(super) fn read((after, text): (u64, String)) -> Self {
        Self { after, input: input::parse_stored(&text, "").ok().map(|loaded| loaded.input) }
    }

    /// What it measures.
    pub(super) fn measure(&self) -> Option<&Measure> {
        self.input.as_ref().map(|input| &input.measure)
    }
}

/// The inputs of a chain that its folder lacks, or has otherwise, as the chain's files say them under their checksums.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::app) struct Lost {
    /// Their texts, by the trajectory after which they came into force.
    texts: BTreeMap<u64, String>,
    /// A few words on each.
    pub told: Vec<String>,
}

impl Lost {
    /// Writes the inputs that the folder lacks or has otherwise; what was there is moved aside. Rank 0 alone.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn put_back(&self, folder: &Path) -> Result<(), IoError> {
        for (after, text) in &self.texts {
            let path = folder.join(input_name(*after));
            if fs::symlink_metadata(&path).is_ok() {
                set_aside(&path)?;
            }
            io::write_text(&path, text)?;
        }
        Ok(())
    }
}

/// The name of the input that came into force after a trajectory.
fn input_name(after: u64) -> String {
    if after == 0 { "run.toml".to_owned() } else { format!("run_{after:06}.toml") }
}

/// `run.toml` and every `run_NNNNNN.toml` of a folder, oldest first.
fn kept_inputs(folder: &Path) -> Vec<(u64, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| match name {
        "run.toml" => Some(0),
        _ => name.strip_prefix("run_")?.strip_suffix(".toml")?.parse().ok(),
    };
    let found = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number = number(&name).filter(|number| input_name(*number) == name)?;
        let text = io::read_plain(&entry.path(), LARGEST_INPUT).ok()?;
        Some((number, String::from_utf8(text).ok()?))
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    found
}

/// The inputs in force, oldest first, as the links of the chain's files say which input made them; and those that the folder does
/// not hold so. Of the inputs between two of the folder's, the files at both ends are asked, and all if these are not of one.
pub(super) fn true_inputs(folder: &Path, states: &[(u64, PathBuf)]) -> (Vec<(u64, String)>, Lost) {
    let kept: BTreeMap<u64, String> = kept_inputs(folder).into_iter().collect();
    let text_of = |number: u64| {
        let mut files = states.iter().filter(|(n, _)| *n == number);
        let text = files.find_map(|(_, path)| io::header(path).ok()?.input);
        text.filter(|text| !text.is_empty())
    };
    let numbers: BTreeSet<u64> = states.iter().map(|(n, _)| *n).filter(|n| *n > 0).collect();
    let starts: Vec<u64> = [0].into_iter().chain(kept.keys().copied().filter(|n| *n > 0)).collect();
    let jobs: Vec<u64> = jobs::recorded(folder).iter().filter_map(|job| job.after).collect();
    let (mut inputs, mut lost) = (kept.clone(), Lost::default());
    for (place, &start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied();
        let made: Vec<u64> = numbers.range(start + 1..=end.unwrap_or(u64::MAX)).copied().collect();
        // The last one may have been written by the job that began after it.
        let next = end.and_then(|end| kept.get(&end));
        let text = |number: &u64| text_of(*number).filter(|text| Some(*number) != end || Some(text) != next);
        let ends = [made.iter().find_map(text), made.iter().rev().find_map(text)];
        if ends.iter().all(|end| end.as_ref().is_none_or(|end| kept.get(&start) == Some(end))) {
            continue;
        }
        let mut last: Option<(u64, String)> = None;
        for &number in &made {
            let Some(text) = text(&number) else { continue };
            let (before, is_same) = match &last {
                None => (start, kept.get(&start) == Some(&text)),
                Some((before, earlier)) => (*before, *earlier == text),
            };
            if !is_same {
                // A job begins with a file of its first links, but that may be gone since.
                let began = jobs.iter().copied().filter(|after| (before..number).contains(after)).max();
                let after = if last.is_none() { start } else { began.unwrap_or(before) };
                let wrong =
                    if kept.contains_key(&after) { "not the input that made" } else { "lost, and made" };
                let path = folder.join(input_name(after));
                lost.told.push(format!(
                    "{}: {wrong} trajectory {number}; written again from the file of its links",
                    path.display()
                ));
                inputs.insert(after, text.clone());
                lost.texts.insert(after, text.clone());
            }
            last = Some((number, text));
        }
    }
    (inputs.into_iter().collect(), lost)
}

/// Moves an input aside that is not, or not any more, of the chain.
fn set_aside(path: &Path) -> Result<(), IoError> {
    let mut name = path.to_path_buf().into_os_string();
    name.push(".superseded");
    fs::rename(path, name).map_err(|source| IoError::System {
        path: path.into(),
        action: "move aside",
        source,
    })
}

/// The inputs in force in a folder, oldest first.
pub(in crate::app) fn kept(folder: &Path) -> Vec<Kept> {
    kept_inputs(folder).into_iter().map(Kept::read).collect()
}

/// Stores the input of a job that continues after `done` trajectories: as `run.toml` for a new chain, as
/// `run_NNNNNN.toml` if the text differs from that of the previous job. In an unused folder, of a chain without a trajectory,
/// that of an earlier job goes. Returns a warning, if any.
///
/// # Errors
/// The file cannot be written.
pub(super) fn keep_input(
    folder: &Path,
    text: &str,
    done: u64,
    is_unused: bool,
) -> Result<Option<String>, IoError> {
    if is_unused && !jobs::recorded(folder).is_empty() {
        io::write_text(&folder.join("run.toml"), text)?;
        return Ok(None);
    }
    let kept = kept_inputs(folder);
    let (before, after): (Vec<_>, Vec<_>) = kept.into_iter().partition(|(n, _)| *n <= done);
    let path = |n: u64| folder.join(input_name(n));
    let mut aside: Vec<u64> = after.into_iter().map(|(n, _)| n).collect();
    let is_kept = before.last().is_some_and(|(_, last)| last == text);
    aside.extend(before.last().filter(|(n, _)| *n == done && !is_kept).map(|(n, _)| *n));
    // They produced nothing, or nothing that the chain continues from.
    aside.iter().try_for_each(|n| set_aside(&path(*n)))?;
    if !is_kept {
        io::write_text(&path(done), text)?;
    }
    let names: Vec<String> = aside.iter().map(|n| path(*n).display().to_string()).collect();
    let told = || format!("{}: not of this chain any more; moved aside as *.superseded", names.join(", "));
    Ok((!aside.is_empty()).then(told))
}
