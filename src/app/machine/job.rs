//! This job: where it runs and since when, as recorded in the lock and in `jobs.jsonl`.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a job runs, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::app) struct Job {
    /// The node of the first rank.
    pub host: String,
    /// The process of the first rank.
    pub pid: u32,
    /// When it started, in UTC.
    pub since: String,
    /// Its number in the batch system, if that tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
}

impl Job {
    /// This process.
    pub(in crate::app) fn this() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let batch = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|number| !number.is_empty()));
        Self { host: host(), pid: std::process::id(), since: utc(now), batch }
    }

    /// Whether its process is on this node.
    pub(in crate::app) fn is_running_here(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// From JSON; `None` if it is something else.
    pub(in crate::app) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {} since {}", self.pid, self.host, self.since)?;
        self.batch.as_ref().map_or(Ok(()), |number| write!(f, ", job {number}"))
    }
}

/// The name of this node.
pub(in crate::app) fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Seconds since 1970 as `2026-01-31T12:34:56Z`, in the Gregorian calendar.
pub(in crate::app) fn utc(seconds: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::output::json;

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
        assert_eq!(Job::parse(&json(&job)), Some(job));
        assert_eq!(Job::parse("{}"), None);
    }
}
