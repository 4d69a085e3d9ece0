//! This job: where it runs and since when, as recorded in the lock and in `jobs.jsonl`.

use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file with one line per job of a chain.
pub const JOBS: &str = "jobs.jsonl";

/// Where a job runs, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The node of the first rank.
    pub host: String,
    /// The process of the first rank.
    pub pid: u32,
    /// When it started, in UTC.
    pub since: String,
}

impl Job {
    /// This process.
    pub fn this() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { host: host(), pid: std::process::id(), since: utc(now) }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({ "host": self.host, "pid": self.pid, "since": self.since })
    }

    /// From JSON; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let text = |name: &str| Some(value[name].as_str()?.to_owned());
        Some(Self {
            host: text("host")?,
            pid: u32::try_from(value["pid"].as_u64()?).ok()?,
            since: text("since")?,
        })
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {} since {}", self.pid, self.host, self.since)
    }
}

/// The name of this node.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Seconds since 1970 as `2026-01-31T12:34:56Z`, in the Gregorian calendar.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400, seconds % 86400);
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (month, day) = (month + 1, day + 1);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Appends an object to the jobs of a chain.
///
/// # Errors
/// The file cannot be written.
pub fn record(folder: &Path, object: &Value) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join(JOBS))?;
    file.write_all(format!("{object}\n").as_bytes())?;
    file.sync_data()
}

/// The records of a chain's jobs so far; unreadable lines are skipped.
pub fn recorded(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(JOBS)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_job_reads_back() {
        let job = Job::this();
        assert_eq!(Job::parse(&job.json().to_string()), Some(job));
        assert_eq!(Job::parse("{}"), None);
    }
}
