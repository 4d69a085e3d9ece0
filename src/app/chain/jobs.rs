//! The jobs of a chain: `jobs.jsonl`, one line for each.

use crate::app::machine::job::Job;
use crate::app::output::json;
use crate::io::{self, IoError};
use crate::lattice::Extents;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The file with one line per job of a chain.
pub(in crate::app) const JOBS: &str = "jobs.jsonl";
/// Bytes of it, much more than any chain's.
const LARGEST: u64 = 64_000_000;

/// A line of `jobs.jsonl`.
#[derive(Debug, Serialize)]
pub(super) struct JobLine<'a> {
    /// Fields of the line itself.
    #[serde(flatten)]
    pub job: &'a Job,
    /// Trajectories done when it started.
    pub after: u64,
    /// Name and version.
    pub program: &'a str,
    /// How many ranks.
    pub ranks: usize,
    /// Ranks in each direction, x to t.
    pub grid: Extents,
    /// Whether it began with a self-test of all devices.
    pub self_test: bool,
    /// The device of the first rank.
    pub device: &'a str,
    /// What options let pass.
    pub accepted: &'a [Accepted],
    /// The tuning that changed with it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub retuned: &'a [String],
}

/// What is read of a line of `jobs.jsonl`, of whichever version of the program.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(in crate::app) struct Recorded {
    /// The node of the first rank.
    pub host: Option<String>,
    /// When it started, in UTC.
    pub since: Option<String>,
    /// Trajectories done then.
    pub after: Option<u64>,
    /// Name and version.
    pub program: Option<String>,
    /// The device of the first rank.
    pub device: Option<String>,
    /// How many ranks.
    pub ranks: Option<usize>,
    /// Ranks in each direction.
    pub grid: Option<Extents>,
    /// Whether it began with a self-test of all devices.
    #[serde(default)]
    pub self_test: bool,
    /// What options let pass.
    #[serde(default)]
    pub accepted: Vec<Accepted>,
}

impl std::fmt::Display for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
        write!(f, "since {} on {}", text(&self.since), text(&self.host))?;
        if let Some(ranks) = self.ranks {
            write!(f, ", {ranks} rank{}", if ranks == 1 { "" } else { "s" })?;
        }
        write!(f, ", {}, {}", text(&self.device), text(&self.program))?;
        self.after.map_or(Ok(()), |after| write!(f, ", after trajectory {after}"))
    }
}

/// What an option let pass: in JSON a text, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Accepted {
    /// `version PROGRAM`: files of a version whose bits differ.
    Version(String),
    /// `gaps N N ..`: trajectories without a row or a line.
    Gaps(Vec<u64>),
    /// What another version of this program let pass.
    Other(String),
}

impl std::fmt::Display for Accepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(program) => write!(f, "version {program}"),
            Self::Gaps(numbers) => {
                f.write_str("gaps")?;
                numbers.iter().try_for_each(|number| write!(f, " {number}"))
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<Accepted> for String {
    fn from(accepted: Accepted) -> Self {
        accepted.to_string()
    }
}

impl From<String> for Accepted {
    fn from(text: String) -> Self {
        if let Some(program) = text.strip_prefix("version ") {
            Self::Version(program.to_owned())
        } else if let Some(numbers) = text.strip_prefix("gaps ") {
            Self::Gaps(numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect())
        } else {
            Self::Other(text)
        }
    }
}

/// Appends a line to the jobs of a chain. A last line without its end is that of a job that was killed, and stays by itself.
///
/// # Errors
/// The file cannot be written.
pub(super) fn record(folder: &Path, line: &JobLine) -> std::io::Result<()> {
    let torn = bytes_of(folder).last().is_some_and(|last| *last != b'\n');
    let mut file = io::append_to(&folder.join(JOBS))?;
    file.write_all(format!("{}{}\n", if torn { "\n" } else { "" }, json(line)).as_bytes())?;
    file.sync_data()
}

/// The bytes of the jobs so far; none if they cannot be read.
fn bytes_of(folder: &Path) -> Vec<u8> {
    io::read_plain(&folder.join(JOBS), LARGEST).unwrap_or_default()
}

/// The records of a chain's jobs so far; unreadable ones are skipped.
pub(in crate::app) fn recorded(folder: &Path) -> Vec<Recorded> {
    let bytes = bytes_of(folder);
    String::from_utf8_lossy(&bytes).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Takes lines that cannot be read out of the jobs of a chain, of which a copy stays. The answer is warnings.
///
/// # Errors
/// A file cannot be written.
pub(super) fn mend(folder: &Path) -> Result<Vec<String>, IoError> {
    let path = folder.join(JOBS);
    let bytes = match io::read_plain(&path, LARGEST) {
        // What a symbolic link leads to is not copied; the next line is refused.
        _ if path.is_symlink() => return Ok(Vec::new()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Ok(vec![format!("{}: {error}; earlier jobs are not known", path.display())]),
        Ok(bytes) => bytes,
    };
    let text = String::from_utf8_lossy(&bytes);
    let (whole, wrong): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| serde_json::from_str::<Recorded>(line).is_ok());
    if wrong.is_empty() {
        return Ok(Vec::new());
    }
    let kept = io::keep_copy(&path)?;
    io::write_text(&path, &whole.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    let count = wrong.len();
    let what = if count == 1 {
        "a line is no job's, and is".to_owned()
    } else {
        format!("{count} lines are no jobs', and are")
    };
    Ok(vec![format!("{}: {what} taken out", path.display()), kept])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_line_is_one_object_of_which_later_jobs_read_what_was_accepted() {
        let job = Job { host: "node7".into(), pid: 12, since: "2026-01-31T12:34:56Z".into(), batch: None };
        let accepted = [Accepted::Version("hmc 0.0.3".into()), Accepted::Gaps(vec![3, 4])];
        let line = JobLine {
            job: &job,
            after: 10,
            program: "hmc 0.1.0",
            ranks: 2,
            grid: [1, 1, 1, 2],
            self_test: true,
            device: "CPU",
            accepted: &accepted,
            retuned: &[],
        };
        let text = r#"{"host":"node7","pid":12,"since":"2026-01-31T12:34:56Z","after":10,"program":"hmc 0.1.0","ranks":2,"#
            .to_owned()
            + r#""grid":[1,1,1,2],"self_test":true,"device":"CPU","accepted":["version hmc 0.0.3","gaps 3 4"]}"#;
        assert_eq!(json(&line), text);
        let folder = std::env::temp_dir().join(format!("hmc-jobs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        record(&folder, &line).unwrap();
        // Of an older version, of a newer one, and half a line.
        let mut file = fs::OpenOptions::new().append(true).open(folder.join(JOBS)).unwrap();
        file.write_all(b"{\"host\":\"a\"}\n{\"new\":0,\"accepted\":[\"more\",\"gaps 9 x\"]}\n{\"acc")
            .unwrap();
        let read = recorded(&folder);
        // A line after half a line stays by itself, and what is no line of a job is taken out.
        record(&folder, &line).unwrap();
        assert_eq!(recorded(&folder).len(), read.len() + 1);
        let told = mend(&folder).unwrap();
        assert!(told[0].ends_with("a line is no job's, and is taken out"), "{told:?}");
        assert!(folder.join("jobs.jsonl.damaged").exists());
        assert_eq!((recorded(&folder).len(), mend(&folder).unwrap()), (read.len() + 1, vec![]));
        fs::remove_dir_all(&folder).unwrap();
        let unknown = |host: Option<&str>, accepted| Recorded {
            host: host.map(String::from),
            accepted,
            ..Recorded::default()
        };
        let own = Recorded {
            since: Some("2026-01-31T12:34:56Z".into()),
            after: Some(10),
            program: Some("hmc 0.1.0".into()),
            device: Some("CPU".into()),
            ranks: Some(2),
            grid: Some([1, 1, 1, 2]),
            self_test: true,
            ..unknown(Some("node7"), accepted.to_vec())
        };
        assert_eq!(
            own.to_string(),
            "since 2026-01-31T12:34:56Z on node7, 2 ranks, CPU, hmc 0.1.0, after trajectory 10"
        );
        let newer = vec![Accepted::Other("more".into()), Accepted::Gaps(vec![9])];
        assert_eq!(read, [own, unknown(Some("a"), vec![]), unknown(None, newer)]);
    }
}
