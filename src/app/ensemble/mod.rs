//! What a chain's folder says of the chain, read beside a run or after it: `hmc status` and `hmc report`.
//!
//! - `series`: observables along the chain
//! - `digest`: the numbers of a report
//! - `plot`: a plot as SVG
//! - `page`: the report as one HTML page
//! - `status`: a few lines on a chain

mod digest;
mod page;
mod plot;
mod series;
mod status;

pub use status::status;

use super::report::{json, say};
use super::resume::{Kept, MEASUREMENTS, kept};
use super::{AppError, files, job, lock};
use crate::input::Input;
use crate::io::{self, Form, Format, History, Records, Table};
use digest::Digest;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A chain's folder as it is now. Nothing in it is changed, and a run may be under way.
struct Ensemble {
    /// Inputs in force, oldest first.
    inputs: Vec<Kept>,
    /// The latest input.
    input: Input,
    history: Table,
    /// Whole lines of the measurements, by trajectory.
    measurements: Vec<(u64, Value)>,
    jobs: Vec<job::Recorded>,
    /// The job that works on it now.
    holder: Option<String>,
    /// Trajectories of checkpoints and configurations with their files, newest first.
    states: Vec<(u64, PathBuf)>,
}

impl Ensemble {
    /// Reads the folder.
    ///
    /// # Errors
    /// It is no ensemble's, or a file cannot be read.
    fn open(folder: &Path) -> Result<Self, AppError> {
        let inputs = kept(folder);
        let readable = inputs.iter().rev().find_map(|kept| kept.input.clone());
        let Some(input) = readable else {
            return Err(AppError::Refused(format!(
                "{}: no folder of an ensemble: it has no run.toml that this version can read",
                folder.display()
            )));
        };
        let there = folder.join("history.csv").exists();
        let history = if there { History::read(folder)? } else { Table { columns: Vec::new() } };
        let records = Records::read(&folder.join(MEASUREMENTS), Form::Json, "", &[])?;
        let parsed = |line: &str| {
            let value: Value = serde_json::from_str(line).ok()?;
            Some((value["trajectory"].as_u64()?, value))
        };
        Ok(Self {
            input,
            inputs,
            history,
            measurements: records.lines().filter_map(parsed).collect(),
            jobs: job::recorded(folder),
            holder: lock::holder(folder),
            states: io::states(folder)?,
        })
    }

    /// Trajectories in the history.
    fn done(&self) -> u64 {
        self.history.reals("trajectory").last().map_or(0, |number| *number as u64)
    }

    /// Bytes of all configurations and checkpoints.
    fn bytes(&self) -> u64 {
        let size = |path: &Path| path.metadata().map_or(0, |data| data.len());
        let exports = |number: u64, path: &Path| -> u64 {
            let folder = path.parent().filter(|folder| folder.ends_with("cfg")).and_then(Path::parent);
            let of = |folder| Format::ALL.into_iter().map(move |form| io::export_path(folder, form, number));
            folder.into_iter().flat_map(of).map(|path| size(&path)).sum()
        };
        self.states.iter().map(|(number, path)| size(path) + exports(*number, path)).sum()
    }
}

/// `hmc report [--json] [--from N] [--out FILE [--force]] DIR`
///
/// # Errors
/// The folder is no ensemble's, or the page cannot be written.
pub fn report(folder: &Path, from: Option<u64>, out: Option<&Path>, as_json: bool) -> Result<(), AppError> {
    if as_json {
        let ensemble = Ensemble::open(folder)?;
        return say(json(&Digest::of(&ensemble, from)));
    }
    let text = page(folder, from)?;
    let path = match out {
        Some(path) => {
            files::require_new(path, false)?;
            path.to_owned()
        }
        None => folder.join("report.html"),
    };
    io::write_text(&path, &text)?;
    say(path.display())
}

/// The page that `hmc report` writes, as HTML; means are over trajectories after `from`, by default after a proposed cut.
///
/// # Errors
/// The folder is no ensemble's, or a file cannot be read.
pub fn page(folder: &Path, from: Option<u64>) -> Result<String, AppError> {
    let ensemble = Ensemble::open(folder)?;
    Ok(page::page(&ensemble, &Digest::of(&ensemble, from)))
}
