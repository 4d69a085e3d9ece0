//! Files that grow by one line per trajectory: `history.csv` and `measurements.jsonl`.
//!
//! A line ends with the CRC-32 of all that stands before it, so that one that is missing, doubled, altered or cut is known
//! when a run resumes. An open file notices when it is removed or replaced under the run.

use super::safe::{append_to, fill, keep_copy, read_plain, write_aside};
use super::{IoError, MOST_TRAJECTORIES};
use crate::comm::Solo;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How a line says its trajectory and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Numbers between commas: the trajectory first, the checksum last; below a line of names.
    Csv,
    /// A JSON object with the fields `trajectory` and, last, `crc32`.
    Json,
}

/// What is read of a line of [`Form::Json`]; the other fields are the writer's own.
#[derive(Deserialize)]
struct Numbered {
    /// From 1.
    trajectory: u64,
}

/// The name of the checksum.
const CRC: &str = "crc32";
/// Bytes of a file of records, much more than any chain's.
pub(super) const LARGEST: u64 = 16_000_000_000;

impl Form {
    /// A line with its checksum.
    #[must_use]
    pub fn seal(self, line: &str) -> String {
        let crc = crc32fast::hash(line.as_bytes());
        match self {
            Self::Csv => format!("{line},{crc}"),
            Self::Json => format!("{},\"{CRC}\":{crc}}}", line.strip_suffix('}').unwrap_or(line)),
        }
    }

    /// A line without its checksum; `None` if that is not there, or is another.
    fn unseal(self, sealed: &str) -> Option<String> {
        let line = match self {
            Self::Csv => sealed.rsplit_once(',')?.0.to_owned(),
            Self::Json => format!("{}}}", sealed.rsplit_once(&format!(",\"{CRC}\":"))?.0),
        };
        (self.seal(&line) == sealed).then_some(line)
    }

    /// The trajectory of a whole line.
    fn trajectory(self, line: &str) -> Option<u64> {
        match self {
            Self::Csv => line.split(',').next()?.parse().ok(),
            Self::Json => Some(serde_json::from_str::<Numbered>(line).ok()?.trajectory),
        }
    }

    /// The line of names, as it stands in the file.
    fn header(self, names: &str) -> String {
        match self {
            Self::Csv => format!("{names},{CRC}\n"),
            Self::Json => String::new(),
        }
    }
}

/// What a file of records holds: its whole lines, without checksums, by trajectory; and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    form: Form,
    names: String,
    lines: BTreeMap<u64, String>,
    /// A few words on each line that was not as it should be, in the order of the file.
    pub faults: Vec<String>,
}

impl Records {
    /// No lines.
    #[must_use]
    pub fn none(form: Form) -> Self {
        Self { form, names: String::new(), lines: BTreeMap::new(), faults: Vec::new() }
    }

    /// Reads a file; one that is not there has no lines. The columns of a CSV file, without the checksum's, are `names`, or
    /// any of these and of `known`.
    ///
    /// A last line without its end is left out: the run was killed while it wrote it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn read(path: &Path, form: Form, names: &str, known: &[&str]) -> Result<Self, IoError> {
        let mut found = Self { names: names.to_owned(), ..Self::none(form) };
        let bytes = match read_plain(path, LARGEST) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
            bytes => bytes.map_err(IoError::system(path, "read"))?,
        };
        let complete = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&bytes[..complete]);
        let mut lines = (1..).zip(text.lines());
        // Files of the oldest versions have no checksums.
        let sealed = match form {
            Form::Csv => {
                let first = lines.next().map_or("", |(_, line)| line);
                let sealed = first.strip_suffix(CRC).and_then(|own| own.strip_suffix(','));
                let own = sealed.unwrap_or(first);
                if is_known(own, names, known) {
                    own.clone_into(&mut found.names);
                } else {
                    found.faults.push("line 1: not the names of this run's columns".to_owned());
                }
                sealed.is_some() || found.names != own
            }
            Form::Json => lines.clone().any(|(_, line)| line.contains(&format!(",\"{CRC}\":"))),
        };
        let (mut last, mut unsealed) = (0, 0);
        let fields = found.names.split(',').count();
        let mut contested = Vec::new();
        for (number, line) in lines {
            let possible = |number: &u64| (1..=MOST_TRAJECTORIES).contains(number);
            let whole = match form.unseal(line) {
                Some(line) => Some(line),
                None if !sealed => {
                    unsealed += 1;
                    Some(line.to_owned())
                }
                None => None,
            };
            let Some((trajectory, line)) =
                whole.and_then(|line| Some((form.trajectory(&line).filter(possible)?, line)))
            else {
                found.faults.push(format!("line {number}: altered, or not written by this program"));
                continue;
            };
            if form == Form::Csv && line.split(',').count() != fields {
                found.faults.push(format!("line {number}: not of {fields} columns"));
                continue;
            }
            if trajectory < last {
                found.faults.push(format!("line {number}: trajectory {trajectory} after {last}"));
            }
            last = last.max(trajectory);
            match found.lines.insert(trajectory, line.clone()) {
                None => {}
                Some(other) if other == line => {
                    found.faults.push(format!("line {number}: trajectory {trajectory} again"));
                }
                Some(_) => {
                    found
                        .faults
                        .push(format!("line {number}: trajectory {trajectory} again, with other numbers"));
                    contested.push(trajectory);
                }
            }
        }
        for trajectory in contested {
            found.lines.remove(&trajectory);
        }
        if unsealed > 0 {
            found
                .faults
                .push(format!("{unsealed} lines without checksums, as of older versions: kept as they are"));
        }
        Ok(found)
    }

    /// Whether there is any line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether the file was empty, or not there.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.lines.is_empty() && self.faults.is_empty()
    }

    /// Whether there is a line of this trajectory.
    #[must_use]
    pub fn has(&self, trajectory: u64) -> bool {
        self.lines.contains_key(&trajectory)
    }

    /// A number of a trajectory's line by its name.
    #[must_use]
    pub fn number(&self, trajectory: u64, name: &str) -> Option<f64> {
        let line = self.lines.get(&trajectory)?;
        match self.form {
            Form::Csv => {
                line.split(',').nth(self.names.split(',').position(|own| own == name)?)?.parse().ok()
            }
            Form::Json => serde_json::from_str::<serde_json::Value>(line).ok()?.get(name)?.as_f64(),
        }
    }

    /// The whole lines, without checksums, in order.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.values().map(String::as_str)
    }

    /// Those of `names` that are no columns yet.
    pub fn lacks<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| self.names.split(',').all(|own| own != *name)).collect()
    }

    /// Adds those of `names` that are no columns yet, with empty fields in the lines so far.
    pub fn widen(&mut self, names: &[&str]) {
        let more: String = self.lacks(names).iter().map(|name| format!(",{name}")).collect();
        let empty = ",".repeat(more.matches(',').count());
        self.names.push_str(&more);
        if self.names.starts_with(',') {
            self.names.remove(0);
        }
        self.lines.values_mut().for_each(|line| line.push_str(&empty));
    }

    /// A line with these values of the columns `names`, and empty fields in the others.
    pub fn line(&self, names: &[&str], values: &[String]) -> String {
        let field = |own| names.iter().position(|name| *name == own).map_or("", |n| values[n].as_str());
        self.names.split(',').map(field).collect::<Vec<_>>().join(",")
    }

    /// The form and the columns alone.
    pub(super) fn without_lines(self) -> Self {
        Self { lines: BTreeMap::new(), faults: Vec::new(), ..self }
    }

    /// Puts in a line.
    pub fn insert(&mut self, trajectory: u64, line: String) {
        self.lines.insert(trajectory, line);
    }

    /// Copies the file from which this was read, where a line of it is not in here as it was, to the first free of
    /// `NAME.damaged`, `NAME.damaged-2`, ...; the answer is a warning.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep_damaged(&self, path: &Path) -> Result<Option<String>, IoError> {
        if self.faults.is_empty() || !path.exists() {
            return Ok(None);
        }
        keep_copy(path).map(Some)
    }

    /// Drops the lines of trajectories after `last`; answers how many.
    pub fn keep_up_to(&mut self, last: u64) -> usize {
        self.lines.split_off(&last.saturating_add(1)).len()
    }
}

/// The columns that every version has written, in this order.
const FIRST: usize = 6;

/// Whether columns are those of this run, or any of `known`, each once, and the first ones in their order.
fn is_known(own: &str, names: &str, known: &[&str]) -> bool {
    let all: Vec<&str> = own.split(',').collect();
    let names: Vec<&str> = names.split(',').collect();
    let is_one = |name: &&str| names.contains(name) || known.contains(name);
    let once = |n: usize| !all[..n].contains(&all[n]);
    let begins = |first: &[&str]| all.starts_with(&first[..FIRST.min(first.len())]);
    all == names
        || ((begins(&names) || (!known.is_empty() && begins(known)))
            && all.iter().all(is_one)
            && (0..all.len()).all(once))
}

/// A file of records, open for more lines.
pub struct Journal {
    path: PathBuf,
    form: Form,
    file: File,
    /// Bytes up to the last whole line.
    length: usize,
}

impl Journal {
    /// Puts `records` into the file at `path`, which stays as it is where it holds just that, and opens it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(path: &Path, records: &Records) -> Result<Self, IoError> {
        let form = records.form;
        let lines: String = records.lines().map(|line| form.seal(line) + "\n").collect();
        let text = form.header(&records.names) + &lines;
        let is_there = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if !is_there || read_plain(path, LARGEST).ok().as_deref() != Some(text.as_bytes()) {
            put(path, text.as_bytes())?;
        }
        Ok(Self { path: path.into(), form, file: open(path)?, length: text.len() })
    }

    /// Appends a line with its checksum and puts it on the disk. The answer is a warning: what had happened to the file.
    ///
    /// # Errors
    /// The system refuses, or another file stands in the place of this one.
    pub fn append(&mut self, line: &str) -> Result<Option<String>, IoError> {
        let warning = self.mend()?;
        let line = self.form.seal(line) + "\n";
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line must not stand in front of the next one; reading drops it only at the end.
            let _ = self.file.set_len(self.length as u64);
            return Err(IoError::system(&self.path, "append to")(error));
        }
        self.length += line.len();
        self.file.sync_data().map_err(IoError::system(&self.path, "put on the disk"))?;
        Ok(warning)
    }

    /// Writes the file again if it was removed under the run: its content lives as long as it is open.
    fn mend(&mut self) -> Result<Option<String>, IoError> {
        let failed = |action| IoError::system(&self.path, action);
        let own = self.file.metadata().map_err(failed("look at"))?;
        let same = |found: &fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        let there = fs::metadata(&self.path);
        if there.as_ref().is_ok_and(same) && own.len() == self.length as u64 {
            return Ok(None);
        }
        let mut bytes = vec![0; self.length];
        let is_whole = self.file.read_exact_at(&mut bytes, 0).is_ok();
        let done = match there {
            Err(error) if is_whole && error.kind() == ErrorKind::NotFound => {
                put(&self.path, &bytes)?;
                "was removed under the run; it is written again"
            }
            // An editor that saves nothing new puts an equal file in its place.
            _ if is_whole && read_plain(&self.path, LARGEST).is_ok_and(|found| found == bytes) => {
                "was replaced by an equal file"
            }
            _ => {
                let what = "was altered or replaced under the run; put back what was there, or move it away";
                return Err(IoError::malformed(&self.path, what));
            }
        };
        self.file = open(&self.path)?;
        Ok(Some(format!("{}: {done}", self.path.display())))
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), IoError> {
    write_aside(path, &Solo, |temporary| fill(temporary, bytes))
}

fn open(path: &Path) -> Result<File, IoError> {
    append_to(path).map_err(IoError::system(path, "open"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_line_shows_every_altered_byte() {
        for (form, line) in [(Form::Csv, "7,0.25,1"), (Form::Json, "{\"trajectory\":7,\"plaquette\":0.25}")] {
            let sealed = form.seal(line);
            assert_eq!(form.unseal(&sealed).as_deref(), Some(line));
            assert_eq!(form.trajectory(&sealed), Some(7));
            for place in 0..sealed.len() {
                let mut bytes = sealed.clone().into_bytes();
                bytes[place] ^= 1;
                assert_eq!(form.unseal(&String::from_utf8(bytes).unwrap()), None, "byte {place} of {sealed}");
            }
        }
    }
}
