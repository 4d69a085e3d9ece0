//! What a chain's folder says of the chain, read beside a run or after it: `hmc status` and `hmc report`.
//!
//! - `series`: observables along the chain
//! - `history`: the history as CSV
//! - `mean`: means with their errors
//! - `derived`: what follows from means: t0, effective masses, the static potential
//! - `digest`: the numbers of a report
//! - `merged`: those over all streams of an ensemble
//! - `plot`: a plot as SVG
//! - `page`: the report as one HTML page
//! - `merged_page`: that over all streams
//! - `status`: a few lines on a chain

mod derived;
mod digest;
mod history;
mod mean;
mod merged;
mod merged_page;
mod page;
mod plot;
mod series;
mod status;

pub use status::status;

use crate::app::AppError;
use crate::app::chain::jobs;
use crate::app::chain::kept::{Kept, kept};
use crate::app::chain::resume::MEASUREMENTS;
use crate::app::chain::{lock, streams};
use crate::app::commands::files;
use crate::app::output::{json, say};
use crate::input::Input;
use crate::io::{self, Form, Format, History, Records, Table};
use digest::Digest;
use merged::{Member, Merged};
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
    jobs: Vec<jobs::Recorded>,
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
            let within = ensembles_in(folder);
            let there = match &within[..] {
                [] => String::new(),
                names => format!("; it holds the ensembles {}", names.join(", ")),
            };
            return Err(AppError::Refused(format!(
                "{}: no folder of an ensemble: it has no run.toml that this version can read{there}",
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
            jobs: jobs::recorded(folder),
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

/// The names of ensembles in a folder, a few.
fn ensembles_in(folder: &Path) -> Vec<String> {
    const MOST: usize = 10;
    let is_chain =
        |path: &Path| path.is_dir() && (streams::holds_chain(path) || !streams::streams(path).is_empty());
    let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut names: Vec<String> =
        entries.filter(|path| is_chain(path)).map(|path| streams::name_of(&path)).collect();
    names.sort();
    if names.len() > MOST {
        names.truncate(MOST);
        names.push("..".to_owned());
    }
    names
}

/// What is in the folder of an ensemble.
enum Opened {
    /// A chain.
    Chain(Box<Ensemble>),
    /// Several, in folders of their own; at least one.
    Streams(PathBuf, Vec<Member>),
}

impl Opened {
    /// Reads the folder. The second answer is why streams are left out.
    ///
    /// # Errors
    /// It is no ensemble's, or a file cannot be read, or its streams do not belong together.
    fn look(folder: &Path) -> Result<(Self, Vec<AppError>), AppError> {
        let streams = streams::streams(folder);
        if streams.is_empty() {
            return Ok((Self::Chain(Box::new(Ensemble::open(folder)?)), Vec::new()));
        }
        let (members, broken) = merged::open(streams)?;
        Ok((Self::Streams(folder.to_owned(), members), broken))
    }

    /// Reads all of the folder: numbers without a stream would be others.
    ///
    /// # Errors
    /// As of [`look`](Self::look), or a stream cannot be read.
    fn read(folder: &Path) -> Result<Self, AppError> {
        let (opened, broken) = Self::look(folder)?;
        if broken.is_empty() { Ok(opened) } else { Err(AppError::Several(broken)) }
    }

    /// Refuses means after a trajectory that no chain has.
    fn require(&self, folder: &Path, from: Option<u64>) -> Result<(), AppError> {
        let done = match self {
            Self::Chain(chain) => chain.done(),
            Self::Streams(_, members) => members.iter().map(|member| member.chain.done()).max().unwrap_or(0),
        };
        match from.filter(|from| *from > 0 && *from >= done) {
            Some(from) => Err(AppError::Refused(format!(
                "{}: there is no trajectory after {from}: {done} are done; give a smaller --from",
                folder.display()
            ))),
            None => Ok(()),
        }
    }

    /// Its numbers.
    fn json(&self, from: Option<u64>) -> String {
        match self {
            Self::Chain(chain) => json(&Digest::of(chain, from)),
            Self::Streams(folder, members) => json(&Merged::of(folder, members, from)),
        }
    }

    /// Its history as CSV.
    fn history(&self) -> String {
        match self {
            Self::Chain(chain) => history::csv(&[(None, &chain.history)]),
            Self::Streams(_, members) => {
                let all = members.iter().map(|member| (Some(member.name.as_str()), &member.chain.history));
                history::csv(&all.collect::<Vec<_>>())
            }
        }
    }

    /// Its page.
    fn page(&self, from: Option<u64>) -> String {
        match self {
            Self::Chain(chain) => page::page(chain, &Digest::of(chain, from)),
            Self::Streams(folder, members) => merged_page::page(members, &Merged::of(folder, members, from)),
        }
    }
}

/// The form of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// A page in this file; `None`: `report.html` in the folder.
    Page(Option<PathBuf>),
    /// The numbers as JSON.
    Json,
    /// The history as CSV.
    History,
}

/// `hmc report [--json | --history | --out FILE] [--from N] DIR`: of a chain, or of all streams of an ensemble.
///
/// # Errors
/// The folder is no ensemble's, or the page cannot be written.
pub fn report(folder: &Path, from: Option<u64>, form: &ReportForm) -> Result<(), AppError> {
    let opened = Opened::read(folder)?;
    opened.require(folder, from)?;
    let path = match form {
        ReportForm::Json => return say(opened.json(from)),
        ReportForm::History => return say(opened.history()),
        ReportForm::Page(Some(path)) => {
            files::require_new(path, false)?;
            path.clone()
        }
        ReportForm::Page(None) => folder.join("report.html"),
    };
    io::write_text(&path, &opened.page(from))?;
    say(path.display())
}

/// The page that `hmc report` writes, as HTML; means are over trajectories after `from`, by default after a proposed cut.
///
/// # Errors
/// The folder is no ensemble's, or a file cannot be read.
pub fn page(folder: &Path, from: Option<u64>) -> Result<String, AppError> {
    Ok(Opened::read(folder)?.page(from))
}
