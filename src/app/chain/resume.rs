//! Where a chain continues, which records are missing, and whether this run may use the folder at all.
//!
//! A chain continues from the newest intact checkpoint or configuration. Every trajectory up to there must have its row
//! of the history, and its line of measurements if the input in force required one. Missing, duplicate or altered
//! records are reported, and recreated by rerunning trajectories from the state before.

use super::choose;
use super::jobs;
use super::jobs::{Accepted, JOBS, Recorded};
use super::kept::{Kept, Lost, true_inputs};
use crate::app::output::span;
use crate::app::{AppError, Gaps, RunOptions, version};
use crate::comm::{Comm, agree, from_first};
use crate::config::Change;
use crate::field::HostLinks;
use crate::input::{self, Difference, Hmc, Input, Run};
use crate::io::{self, Form, Header, History, IoError, Records, Table};
use crate::lattice::Partition;
use crate::solver::Choices;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The number of trajectories that may be rerun without an option.
const FREE_WALKS: u64 = 20;

/// So many of the newest files are compared with each other and with the records.
const COMPARED: usize = 64;
/// Plaquettes of one configuration differ by less.
const SAME_PLAQUETTE: f64 = 1e-10;

/// The file of measurements.
pub(in crate::app) const MEASUREMENTS: &str = "measurements.jsonl";

/// Columns of the history: those of a trajectory, four per level, five per term or part of a force.
pub(super) fn columns(Hmc { terms, smd, .. }: &Hmc) -> Vec<String> {
    let mut names: Vec<String> =
        ["trajectory", "delta_h", "accepted", "plaquette", "unitarity", "seconds"].map(String::from).to_vec();
    names.extend(["tuning", "reversibility", "reversibility_dh", "verified"].map(String::from));
    for level in 0..terms.len() {
        names.extend(["force", "force_max", "iterations", "seconds"].map(|name| format!("{name}_{level}")));
    }
    for term in terms.iter().flatten() {
        let of_term = ["dS", "force", "force_max", "iterations", "seconds"];
        names.extend(of_term.map(|name| format!("{name}_of_{term}")));
    }
    names.extend(smd.iter().map(|_| "accepted_cycles".to_owned()));
    names
}

/// The content of the folder's files, read by rank 0. Except for the records, it is the same on all ranks.
pub(in crate::app) struct Found {
    /// Inputs in force, oldest first.
    pub inputs: Vec<Kept>,
    /// Rows of the history; empty on other ranks.
    pub history: Records,
    /// Lines of the measurements; empty on other ranks.
    pub measurements: Records,
    /// Trajectories of checkpoints and configurations.
    states: BTreeSet<u64>,
    /// Gaps that earlier jobs were told to leave.
    left: BTreeSet<u64>,
    /// Whether no trajectory was finished here.
    pub is_unused: bool,
    /// Inputs that the folder lacks, or has otherwise; on rank 0.
    pub lost: Lost,
}

/// A sequence of trajectories to rerun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) struct Walk {
    /// It starts from the links after this trajectory.
    pub from: u64,
    /// It ends with the links after this one.
    pub to: u64,
}

/// Records to recreate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::app) struct Repairs {
    /// Trajectories without a row.
    pub rows: BTreeSet<u64>,
    /// Trajectories without their line of measurements.
    pub lines: BTreeSet<u64>,
    /// The trajectories to rerun for both.
    pub walks: Vec<Walk>,
}

/// Where a chain continues.
pub(in crate::app) struct Point {
    /// This rank's links; `None`: those of the start.
    pub links: Option<HostLinks>,
    /// Number of finished trajectories.
    pub done: u64,
    /// Whether its checkpoint exists.
    pub has_checkpoint: bool,
    /// The method of every term so far.
    pub choices: Choices,
    /// Later rows of the history, which will be made again.
    pub dropped: usize,
    /// Warnings to report.
    pub warnings: Vec<String>,
    /// What options have permitted, for the record.
    pub accepted: Vec<Accepted>,
}

impl Point {
    /// The point after `done` trajectories; `accepted` is what options have permitted.
    pub(in crate::app) fn new(
        links: Option<HostLinks>,
        done: u64,
        accepted: impl IntoIterator<Item = Accepted>,
    ) -> Self {
        let accepted: Vec<Accepted> = accepted.into_iter().collect();
        let told = |what: &Accepted| format!("goes on after {what}, as asked for: the bits may differ");
        Self {
            links,
            done,
            has_checkpoint: false,
            choices: Choices::new(),
            dropped: 0,
            warnings: accepted.iter().map(told).collect(),
            accepted,
        }
    }
}

impl Found {
    /// Reads the folder; collective.
    ///
    /// # Errors
    /// Files cannot be read, or there are records of a chain but no state to continue from.
    pub(in crate::app) fn look(folder: &Path, input: &Input, comm: &dyn Comm) -> Result<Self, AppError> {
        let first = comm.rank() == 0;
        let read = || -> Result<_, AppError> {
            let states = io::states(folder)?;
            let (inputs, lost) = true_inputs(folder, &states);
            let earlier =
                inputs.iter().filter_map(|(_, text)| Some(input::parse_stored(text, "").ok()?.input));
            let known: Vec<String> = earlier.flat_map(|input| columns(&input.hmc)).collect();
            let names = columns(&input.hmc);
            let history = History::records(folder, &texts(&names), &texts(&known))?;
            let measurements = Records::read(&folder.join(MEASUREMENTS), Form::Json, "", &[])?;
            require_own(&states, &history, &measurements)?;
            let states: BTreeSet<u64> = states.into_iter().map(|(n, _)| n).collect();
            if states.is_empty() && [&history, &measurements].iter().any(|r| !r.is_untouched()) {
                return Err(AppError::Refused(format!(
                    "{} holds a chain's history or measurements, but neither a checkpoint nor a configuration to go on \
                     from; put one back, give the run another name, or move the folder away",
                    folder.display()
                )));
            }
            let left = jobs::recorded(folder).into_iter().flat_map(left).collect();
            Ok((history, measurements, states, left, inputs, lost))
        };
        let empty = || {
            Ok((
                Records::none(Form::Csv),
                Records::none(Form::Json),
                BTreeSet::new(),
                BTreeSet::new(),
                vec![],
                Lost::default(),
            ))
        };
        let (history, measurements, states, left, inputs, lost) =
            agree(comm, if first { read() } else { empty() })?;
        let inputs = of_first::<Vec<(u64, String)>>(comm, &inputs).into_iter().map(Kept::read).collect();
        let (states, left) = of_first(comm, &(states, left));
        let touched = comm.max(f64::from(u8::from(!(history.is_untouched() && measurements.is_untouched()))));
        let is_unused = touched == 0.0 && states.iter().all(|n| *n == 0);
        Ok(Self { inputs, history, measurements, states, left, is_unused, lost })
    }

    /// Where the chain in `folder` continues; collective.
    ///
    /// # Errors
    /// It is a different chain, or none of its files can be read.
    pub(super) fn point(
        &self,
        folder: &Path,
        input: &Input,
        options: &RunOptions,
        partition: &Partition,
        comm: &dyn Comm,
    ) -> Result<Point, AppError> {
        if let Some(told) = self.replaced(folder, input, comm)? {
            let mut point = Point::new(None, 0, None);
            point.warnings.push(told);
            return Ok(point);
        }
        let mut accepted = BTreeSet::new();
        let judge = |path: &Path, header: &Header| {
            accepted.extend(judge(folder, path, header, input, options)?);
            Ok::<_, AppError>(())
        };
        let loaded = match io::load_newest(folder, partition, comm, judge) {
            // Nothing is lost if no trajectory was finished.
            Err(AppError::Io(IoError::NoState { reasons, .. })) if self.is_unused => {
                let mut point = Point::new(None, 0, None);
                point.warnings.extend(reasons);
                return Ok(point);
            }
            loaded => loaded?,
        };
        let Some(loaded) = loaded else { return Ok(Point::new(None, 0, None)) };
        let mut point = Point::new(Some(loaded.links), loaded.trajectory, accepted);
        point.warnings.extend(loaded.warnings);
        point.has_checkpoint = loaded.is_checkpoint;
        point.choices = stored_input(&loaded.path, &loaded.header)?.choices();
        Ok(point)
    }

    /// Of a folder in which no trajectory was done with another physics than that of `input`: that the chain starts again.
    /// Collective.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub(in crate::app) fn replaced(
        &self,
        folder: &Path,
        input: &Input,
        comm: &dyn Comm,
    ) -> Result<Option<String>, AppError> {
        let look = || -> Result<Option<String>, AppError> {
            let Some((path, header)) = newest_header(folder)? else { return Ok(None) };
            let Ok(stored) = stored_input(&path, &header) else { return Ok(None) };
            let changes: Vec<String> = fixed(&stored, input)?.iter().map(ToString::to_string).collect();
            let told = || {
                format!(
                    "{}: no trajectory was done there: the chain starts again with this input ({})",
                    folder.display(),
                    changes.join("; ")
                )
            };
            Ok((!changes.is_empty()).then(told))
        };
        let found = agree(comm, if self.is_unused && comm.rank() == 0 { look() } else { Ok(None) })?;
        Ok(of_first(comm, &found))
    }

    /// Lets measurements of earlier inputs be solved by the methods of the chain.
    pub(in crate::app) fn choose(&mut self, choices: &Choices) {
        for kept in &mut self.inputs {
            let settled = kept.input.as_ref().and_then(|input| input.with_choices(choices).ok());
            kept.input = settled.or(kept.input.take());
        }
    }

    /// The input in force when trajectory `number` was made.
    pub(super) fn in_force(&self, number: u64) -> Option<&Kept> {
        self.inputs.iter().rev().find(|kept| kept.after < number)
    }

    /// Whether trajectory `number` was made by an input with another tuning than `input`: the keys that differ.
    pub(in crate::app) fn retuned(&self, number: u64, input: &Input) -> Vec<Difference> {
        let kept = self.in_force(number).and_then(|kept| kept.input.as_ref());
        kept.map_or_else(Vec::new, |kept| input::compare(kept, input))
    }

    /// The trajectory after which the tuning of trajectory `number` came into force; 0: it is that of the beginning.
    pub(super) fn tuning(&self, number: u64) -> u64 {
        let known = self.inputs.iter().filter(|kept| kept.after < number);
        let known: Vec<_> = known.filter_map(|kept| Some((kept.after, kept.input.as_ref()?))).collect();
        let changed = known.windows(2).rev().find(|pair| !input::compare(pair[0].1, pair[1].1).is_empty());
        changed.map_or(0, |pair| pair[1].0)
    }

    /// The records missing up to trajectory `done`, and how to recreate them if `gaps` permits it; collective. Records
    /// after `done` are dropped, since they will be made again. Adds warnings, and what options have permitted, to
    /// `point`.
    ///
    /// # Errors
    /// Many trajectories would have to be rerun, and no option permits it.
    pub(in crate::app) fn repairs(
        &mut self,
        point: &mut Point,
        folder: &Path,
        run: &Run,
        gaps: Option<Gaps>,
        comm: &dyn Comm,
    ) -> Result<Repairs, AppError> {
        let done = point.done;
        point.warnings.extend(self.lost.told.iter().cloned());
        for (name, records) in [("history.csv", &mut self.history), (MEASUREMENTS, &mut self.measurements)] {
            point.warnings.extend(records.faults.iter().map(|fault| format!("{name}: {fault}")));
        }
        let [dropped, lines] =
            [&mut self.history, &mut self.measurements].map(|records| records.keep_up_to(done));
        let usual = FREE_WALKS.max(run.checkpoint_every.min(run.save_every));
        let lost = if dropped.max(lines) as u64 > usual && gaps != Some(Gaps::Repair) {
            Err(AppError::Refused(format!(
                "{}: the history has {dropped} rows, and the measurements {lines} lines, after the newest checkpoint or \
                 configuration, that of trajectory {done}; \
                 put back a newer one, or walk these trajectories again: --gaps repair",
                folder.display()
            )))
        } else {
            Ok(())
        };
        agree(comm, lost)?;
        point.dropped = dropped;
        let missing = |records: &Records, wanted: &dyn Fn(u64) -> bool| -> BTreeSet<u64> {
            let all = 1..=if comm.rank() == 0 { done } else { 0 };
            all.filter(|n| wanted(*n) && !records.has(*n) && !self.left.contains(n)).collect()
        };
        let rows = missing(&self.history, &|_| true);
        let without: Vec<String> =
            self.left.iter().filter(|n| **n <= done && !self.history.has(**n)).map(u64::to_string).collect();
        if comm.rank() == 0 && !without.is_empty() {
            point.warnings.push(format!(
                "history.csv has no rows of {} trajectories ({}): an earlier job was told to leave them out, as {JOBS} says",
                without.len(),
                without.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ")
            ));
        }
        let measured = |n: u64| self.in_force(n).and_then(Kept::measure).is_some_and(|m| m.is_due(n));
        let lines = missing(&self.measurements, &measured);
        let (rows, lines) = of_first(comm, &(rows, lines));
        let states = self.states.range(..=done).copied().collect();
        let walks = walks(&rows, &lines, &states);
        let repairs = Repairs { rows, lines, walks };
        if repairs.walks.is_empty() {
            return Ok(repairs);
        }
        let what = repairs.to_string();
        if gaps == Some(Gaps::Leave) {
            point.warnings.push(format!("{what}: left so, as asked for"));
            point.accepted.push(Accepted::Gaps(repairs.all().copied().collect()));
            return Ok(Repairs::default());
        }
        let cost: u64 = repairs.walks.iter().map(|walk| walk.to - walk.from).sum();
        let seconds = seconds(folder);
        let time =
            if seconds > 0.0 { format!(", about {}", span(seconds * cost as f64)) } else { String::new() };
        let measured = repairs.lines.len() as u64;
        if cost.max(measured) > FREE_WALKS && gaps.is_none() {
            return Err(AppError::Refused(format!(
                "{what}; to make that again takes {cost} trajectories{time} and {measured} measurements: --gaps repair does \
                 so, --gaps leave goes on without"
            )));
        }
        let again = if cost > 0 {
            let many = if cost == 1 { "trajectory is" } else { "trajectories are" };
            format!(", for which {cost} {many} walked again{time}")
        } else {
            String::new()
        };
        point.warnings.push(format!("{what}: made again from checkpoints and configurations{again}"));
        Ok(repairs)
    }
}

impl Repairs {
    /// All trajectories that lack a record.
    fn all(&self) -> impl Iterator<Item = &u64> {
        self.rows.union(&self.lines)
    }
}

impl std::fmt::Display for Repairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [("history.csv", "row", &self.rows), (MEASUREMENTS, "line", &self.lines)];
        let told = parts.iter().filter(|(.., missing)| !missing.is_empty()).map(|(name, what, missing)| {
            let some: Vec<String> = missing.iter().take(5).map(u64::to_string).collect();
            let more =
                if missing.len() > 5 { format!(" and {} more", missing.len() - 5) } else { String::new() };
            format!("{name} lacks the {what} of trajectory {}{more}", some.join(", "))
        });
        f.write_str(&told.collect::<Vec<_>>().join("; "))
    }
}

/// The names as they are given to records.
pub(super) fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Lines that report a change of tuning after trajectory `done`; none without one.
pub(in crate::app) fn told(changes: &[Difference], done: u64) -> Vec<String> {
    if changes.is_empty() {
        return Vec::new();
    }
    let (kept, other): (Vec<_>, Vec<_>) =
        changes.iter().partition(|change| change.was.is_some() && change.is.is_some());
    let mut lines = vec![format!("other tuning from trajectory {} on:", done + 1)];
    lines.extend(kept.iter().map(|change| format!("  {change}")));
    if !other.is_empty() {
        lines.push(format!("  and {} keys of tables that are new or gone", other.len()));
    }
    lines
}

/// What rank 0 has, on all ranks; JSON on its way. Collective.
fn of_first<T: Serialize + DeserializeOwned>(comm: &dyn Comm, own: &T) -> T {
    let bytes = from_first(comm, serde_json::to_vec(own).expect("numbers and texts are JSON"));
    serde_json::from_slice(&bytes).expect("it is what rank 0 made of the same type")
}

/// How to come by missing rows and lines: from the newest state before each, or on from the walk before it, and to the next state,
/// whose links show whether these are the trajectories that were walked.
fn walks(rows: &BTreeSet<u64>, lines: &BTreeSet<u64>, states: &BTreeSet<u64>) -> Vec<Walk> {
    let mut walks: Vec<Walk> = Vec::new();
    for &number in rows.union(lines) {
        // A line of measurements needs only the links, which may be on disk; a row needs its trajectory.
        let latest = if rows.contains(&number) { number - 1 } else { number };
        let from = states.range(..=latest).next_back().copied().unwrap_or(0);
        match walks.last_mut() {
            Some(walk) if walk.to >= from => walk.to = number,
            _ => walks.push(Walk { from, to: number }),
        }
    }
    for walk in walks.iter_mut().filter(|walk| walk.from < walk.to) {
        walk.to = states.range(walk.to..).next().copied().unwrap_or(walk.to);
    }
    walks
}

/// The trajectories whose records a job was told to leave out.
fn left(job: Recorded) -> Vec<u64> {
    let numbers = |accepted| match accepted {
        Accepted::Gaps(numbers) => numbers,
        Accepted::Version(_) | Accepted::Other(_) => Vec::new(),
    };
    job.accepted.into_iter().flat_map(numbers).collect()
}

/// The input in the `header` of a chain's file, with the methods that the chain has chosen.
///
/// # Errors
/// There is none that this program understands.
pub(in crate::app) fn stored_input(file: &Path, header: &Header) -> Result<Input, AppError> {
    let text = header.input.as_deref().unwrap_or_default();
    let stored = input::parse_stored(text, &format!("{} (the input in it)", file.display()))?.input;
    Ok(stored.with_choices(&choose::stored(file, header)?)?)
}

/// The keys that differ and are fixed in a chain, where "auto" in `new` is what the chain of `stored` has had so far.
///
/// # Errors
/// This program does not know what that chain has chosen.
pub(super) fn fixed(stored: &Input, new: &Input) -> Result<Vec<Difference>, AppError> {
    let mut changes = input::compare(stored, &new.with_choices(&stored.choices())?);
    changes.retain(|difference| difference.change == Change::Fixed);
    Ok(changes)
}

/// Whether a chain whose file has this header may continue with `input`, where "auto" is what the chain has had so far.
/// Returns what `options` have permitted.
///
/// # Errors
/// A different chain, or one of a different version of the program.
pub(in crate::app) fn judge(
    folder: &Path,
    file: &Path,
    header: &Header,
    input: &Input,
    options: &RunOptions,
) -> Result<Option<Accepted>, AppError> {
    let fixed = fixed(&stored_input(file, header)?, input)?;
    if !fixed.is_empty() {
        let told: String = fixed.iter().map(|difference| format!("\n  {difference}")).collect();
        let longer = fixed.iter().any(|difference| difference.key == "run.thermalisation");
        let instead = if longer { "; for means after more trajectories, hmc report --from N" } else { "" };
        return Err(AppError::Refused(format!(
            "{} holds a chain of other physics; give the run another name, or take back:{told}\nhmc branch CFG --name NAME \
             --set KEY=VALUE begins another chain from the links of this one{instead}",
            folder.display()
        )));
    }
    let writer = header.program.as_deref().unwrap_or("an unknown program");
    let reason = match version::changes_since(writer) {
        Ok(changes) if changes.is_empty() => return Ok(None),
        Ok(changes) => format!("since then these change bits (CHANGELOG.md):\n  {}", changes.join("\n  ")),
        Err(reason) => reason,
    };
    if options.accept_version {
        return Ok(Some(Accepted::Version(writer.to_owned())));
    }
    Err(AppError::Refused(format!(
        "{}: written by {writer}; {reason}\ngo on with {writer}, or, with other bits than an uninterrupted chain, by \
         --accept-version, which {JOBS} records",
        file.display()
    )))
}

/// Refuses files of other chains that were put into the folder, as a copy of the wrong stream: configurations of another seed or
/// other physics than the newest one, or of another trajectory than their names say, and records with another plaquette than the
/// configuration of their trajectory. Not collective.
///
/// # Errors
/// There is one.
fn require_own(states: &[(u64, PathBuf)], history: &Records, measurements: &Records) -> Result<(), AppError> {
    let refused = |what: String| Err(AppError::Refused(what));
    let mut newest: Option<(&PathBuf, Input)> = None;
    for (number, path) in states.iter().filter(|(n, _)| *n > 0).take(COMPARED) {
        // A file that cannot be read is passed over when the chain looks for its state.
        let Ok(header) = io::header(path) else { continue };
        if let Some(found) = header.trajectory.filter(|found| found != number) {
            return refused(format!(
                "{}: is of trajectory {found}; give it its name, or remove it",
                path.display()
            ));
        }
        if let Ok(stored) = stored_input(path, &header) {
            match &newest {
                None => newest = Some((path, stored)),
                Some((other, own)) => {
                    if let Some(difference) = fixed(&stored, own)?.first() {
                        return refused(format!(
                            "{} and {} are of two chains ({difference}); remove the one that is not of this chain",
                            path.display(),
                            other.display()
                        ));
                    }
                }
            }
        }
        let Some(plaquette) = header.plaquette else { continue };
        for (name, records) in [("history.csv", history), (MEASUREMENTS, measurements)] {
            let found = records.number(*number, "plaquette");
            if let Some(found) = found.filter(|found| (found - plaquette).abs() > SAME_PLAQUETTE) {
                return refused(format!(
                    "{name}: the plaquette of trajectory {number} is {found}, but {} has {plaquette}: they are not of one chain; put \
                     the chain's own {name} back, or remove it: it is made again",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}

/// The mean time per trajectory from the history's rows; 0 without rows.
pub(in crate::app) fn seconds(folder: &Path) -> f64 {
    History::read(folder).map_or(0.0, |table| seconds_of(&table))
}

/// The mean time of the last trajectories; 0 without any.
pub(in crate::app) fn seconds_of(history: &Table) -> f64 {
    let mut seconds = history.reals("seconds");
    // A row may say anything, with the right checksum.
    seconds.retain(|seconds| (0.0..1e9).contains(seconds));
    let last = &seconds[seconds.len().saturating_sub(20)..];
    if last.is_empty() { 0.0 } else { last.iter().sum::<f64>() / last.len() as f64 }
}

/// The newest file of the chain in `folder` whose header can be read; not collective.
///
/// # Errors
/// There are files, but none of them can be read.
pub(in crate::app) fn newest_header(folder: &Path) -> Result<Option<(PathBuf, Header)>, AppError> {
    let states = io::states(folder)?;
    let Some((_, newest)) = states.first() else { return Ok(None) };
    let whole = states.iter().find_map(|(_, path)| Some((path.clone(), io::header(path).ok()?)));
    match (whole, io::header(newest)) {
        // If no trajectory was finished, the run starts again.
        (None, Err(error)) if states.iter().any(|(n, _)| *n > 0) => Err(error.into()),
        (whole, _) => Ok(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[u64]) -> BTreeSet<u64> {
        numbers.iter().copied().collect()
    }

    #[test]
    fn walks_start_at_the_newest_state_before() {
        let found = |rows: &[u64], lines: &[u64], states: &[u64]| {
            let walks = walks(&set(rows), &set(lines), &set(states));
            walks.iter().map(|walk| (walk.from, walk.to)).collect::<Vec<_>>()
        };
        let all: Vec<u64> = (0..=9).collect();
        assert_eq!(found(&[], &[], &all), []);
        assert_eq!(found(&[4], &[], &all), [(3, 4)]);
        assert_eq!(found(&[], &[4], &all), [(4, 4)]);
        assert_eq!(found(&[4, 5], &[7], &all), [(3, 5), (7, 7)]);
        // Configurations are rare, so one walk serves neighbouring gaps.
        assert_eq!(found(&[4, 6], &[8], &[0, 5, 9]), [(0, 5), (5, 9)]);
        assert_eq!(found(&[2], &[], &[9]), [(0, 9)]);
        assert_eq!(found(&[2], &[], &[]), [(0, 2)]);
    }
}
