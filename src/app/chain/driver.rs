//! The driver of a chain: starts or resumes, runs trajectories, measures, saves, and stops on request.

use super::jobs;
use super::jobs::{Accepted, JOBS, JobLine};
use super::kept::{Kept, keep_input};
use super::lock::Lock;
use super::report::Report;
use super::resume::{Found, MEASUREMENTS, Point, columns, texts, told};
use super::stop::{JOB_END, Reason, Stop, job_end};
use super::{assemble, choose, measure, memory, plan, rehearsal, streams};
use crate::app::machine::crash::after_trajectory;
use crate::app::machine::energy::{Meter, unread};
use crate::app::machine::job::{self, Job};
use crate::app::machine::self_test::test_devices;
use crate::app::machine::{placement, start};
use crate::app::output::json;
use crate::app::version::PROGRAM;
use crate::app::{AppError, Ranks, check_wires};
use crate::comm::agree;
use crate::field::{Domain, MatrixField};
use crate::hmc::{Chain, Outcome};
use crate::input::{DeviceChoice, Fermion, Input};
use crate::io::{self, Format, History, IoError, Journal, Meta, Table, Value, write_history_h5};
use crate::measure::{Measure, MeasureError, Noise};
use crate::operator::GaugeLoops;
use crate::solver::Choices;
use serde::Serialize;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to do about missing records of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Recreate them at any cost.
    Repair,
    /// Continue without them.
    Leave,
}

/// Options of `hmc RUN.toml`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Print the plan and what prevents the run, then stop.
    pub check: bool,
    /// With `check`: the ranks to plan for.
    pub ranks: Option<usize>,
    /// With `ranks`: how many of them are on a node; `None`: all.
    pub node_ranks: Option<usize>,
    /// With `check`: the device to plan for; `None`: the input's.
    pub device: Option<DeviceChoice>,
    /// With `check`: bytes of a GPU, or of a node of CPUs; `None`: of what is here.
    pub device_memory: Option<u64>,
    /// With `check`: print what the memory is used for.
    pub memory: bool,
    /// Report levels and terms of every trajectory.
    pub verbose: bool,
    /// Resume a chain from a version whose bits differ.
    pub accept_version: bool,
    /// What to do about missing records; `None`: recreate them if they are few, else stop.
    pub gaps: Option<Gaps>,
}

/// Files that only rank 0 has open.
struct Files {
    history: History,
    measurements: Journal,
    lock: Lock,
}

/// A chain with its files.
pub(in crate::app) struct Driver {
    pub(super) input: Input,
    pub(super) comm: Ranks,
    pub(super) domain: Arc<Domain>,
    pub(super) chain: Chain,
    pub(super) folder: PathBuf,
    /// `None` on all ranks but the first.
    files: Option<Files>,
    pub(super) report: Report,
    pub(super) done: u64,
    /// The trajectory of the newest checkpoint on the disk.
    saved: Option<u64>,
    /// The checksum of the links of files after this trajectory, if the next one is to be verified.
    pub(super) sealed: Option<(u64, u64)>,
    input_is_kept: bool,
    /// Whether no trajectory was finished before this job.
    is_unused: bool,
    /// The trajectory after which the present tuning came into force.
    pub(super) tuning: u64,
    /// What has changed of the tuning with this job.
    retuned: Vec<String>,
    /// The text of the input that made the present links, if that was an earlier job's.
    earlier: Option<String>,
    /// The methods of terms with "auto".
    choices: Choices,
    pub(super) stop: Stop,
    /// The reason why the run ends before its first trajectory.
    stopped: Option<Reason>,
}

/// A trajectory that was walked, and what the history says of it.
pub(super) struct Walked {
    pub(super) outcome: Outcome,
    pub(super) plaquette: f64,
    pub(super) row: Vec<Value>,
}

/// The attribute `state` of a checkpoint. No generator's state is in it: random numbers have addresses.
#[derive(Serialize)]
struct ChainState {
    /// How many are done.
    trajectories: u64,
    /// Keys the random numbers of the chain.
    seed: u64,
}

impl Driver {
    pub(in crate::app) fn new(input: Input, options: RunOptions, comm: &Ranks) -> Result<Self, AppError> {
        let stop = Stop::new(comm, Instant::now(), input.run.wall_time)?;
        let folder = input.run.folder();
        let (root, job) = (comm.rank() == 0, Job::this());
        let lock = agree(&**comm, root.then(|| take_folder(&folder, &input, &job)).transpose())?;
        let mut found = Found::look(&folder, &input, &**comm)?;
        let kept = found.inputs.iter().filter_map(Kept::measure);
        let layers = assemble::layers(&input, kept.chain([&input.measure]));
        let report = Report::new(root, options.verbose, input.run.trajectories, input.run.thermalisation);
        let domain = assemble::domain(&input.parallel, input.extents, layers, comm)?;
        let mut point = found.point(&folder, &input, &options, domain.partition(), &**comm)?;
        let repairs = found.repairs(&mut point, &folder, &input.run, options.gaps, &**comm)?;
        if root {
            remove_unfinished(&folder);
        }
        let Point { links, done, has_checkpoint, choices, dropped, warnings, accepted } = point;
        let is_new = links.is_none();
        after_trajectory(done);
        let links = match links {
            Some(links) => MatrixField::from_host(&domain, &links)?,
            None => assemble::first_links(&input, &domain, &**comm)?,
        };
        let run = &input.run;
        warnings.iter().chain(&start::crowded(&input.parallel, &**comm)).for_each(|told| report.warn(told));
        report.line(&start::describe(&run.chain_name(), &domain));
        if comm.size() > 1 {
            placement::map(&input.parallel, comm).iter().for_each(|line| report.line(line));
        }
        report.line(&match done {
            0 => format!("starts: {} trajectories to go", run.trajectories),
            n => format!("resumes after {n} of {} trajectories", run.trajectories),
        });
        if let Some(end) = job_end() {
            report.line(&format!("ends a minute before the job does, at {} ({JOB_END})", job::utc(end)));
        }
        if dropped > 0 {
            report.line(&format!("the history has {dropped} rows after that, which are made again"));
        }
        let known = input.with_choices(&choices)?;
        found.choose(&choices);
        let changes = found.retuned(done, &known);
        told(&changes, done).iter().for_each(|line| report.line(line));
        let tuning = if changes.is_empty() { found.tuning(done) } else { done };
        let retuned = changes.iter().map(ToString::to_string).collect();
        let earlier = found.in_force(done).and_then(|kept| Some(kept.input.as_ref()?.text.clone()));
        for (term, choice) in choices_of(&input, &known) {
            report.line(&format!("solver of {term}, \"auto\": {choice}, as the chain has chosen"));
        }
        rehearsal::prepare(&known, &domain, comm, |line| report.line(line))?;
        if input.parallel.self_test {
            let tested = test_devices(&domain, &input.parallel, &**comm)?;
            tested.iter().for_each(|line| report.line(line));
        }
        check_wires(&domain)?;
        let settled = choose::choose(&known, &links, &**comm, |table| report.line(table))?;
        let (choices, input) = (choices_of(&input, &settled), settled);
        found.choose(&input.choices());
        let chain = assemble::chain(&input, links)?;
        let comm = Arc::clone(comm);
        let (files, saved, input_is_kept, stopped) = (None, has_checkpoint.then_some(done), false, None);
        let mut driver = Self {
            input,
            comm,
            domain,
            chain,
            folder,
            files,
            report,
            done,
            saved,
            sealed: None,
            input_is_kept,
            is_unused: found.is_unused,
            tuning,
            retuned,
            earlier,
            choices,
            stop,
            stopped,
        };
        // Both exist if the last job wrote them and nothing happened to them since.
        driver.save(true, true)?;
        driver.export_missing()?;
        let folder = &driver.folder;
        let damaged = || -> Result<Vec<String>, IoError> {
            let history = found.history.keep_damaged(&folder.join("history.csv"))?;
            let measurements = found.measurements.keep_damaged(&folder.join(MEASUREMENTS))?;
            Ok(history.into_iter().chain(measurements).collect())
        };
        let kept = agree(&*driver.comm, if root { damaged() } else { Ok(Vec::new()) })?;
        kept.iter().for_each(|warning| driver.report.warn(warning));
        driver.stopped = driver.repair(&repairs, &mut found)?;
        let opened = lock.map(|lock| driver.open(lock, &job, &found, &accepted, is_new));
        driver.files = agree(&*driver.comm, opened.transpose())?;
        Ok(driver)
    }

    /// On rank 0: opens the files of records, stores the input, and records this job.
    fn open(
        &mut self,
        lock: Lock,
        job: &Job,
        found: &Found,
        accepted: &[Accepted],
        is_new: bool,
    ) -> Result<Files, AppError> {
        let (folder, input) = (&self.folder, &self.input);
        found.lost.put_back(folder)?;
        jobs::mend(folder)?.iter().for_each(|warning| self.report.warn(warning));
        let names = columns(&input.hmc.terms);
        let new = found.history.lacks(&texts(&names)).join(", ");
        if !found.history.is_empty() && !new.is_empty() {
            self.report.line(&format!("history.csv has new columns, empty in the rows so far: {new}"));
        }
        let (history, measurements) = open_records(folder, input, found)?;
        if is_new {
            keep_input(folder, &input.text, 0, found.is_unused)?
                .iter()
                .for_each(|warning| self.report.warn(warning));
            // Of two streams that begin at once, one at least now sees the other.
            streams::judge(input, true)?.iter().for_each(|warning| self.report.warn(warning));
        }
        let device = self.domain.device().backend().name();
        let line = JobLine {
            job,
            after: self.done,
            program: PROGRAM,
            ranks: self.comm.size(),
            grid: self.domain.partition().grid,
            self_test: input.parallel.self_test,
            device: &device,
            accepted,
            retuned: &self.retuned,
        };
        jobs::record(folder, &line).map_err(|source| AppError::Folder {
            path: folder.join(JOBS),
            action: "append to",
            source,
        })?;
        self.report.remember(&History::read(folder)?);
        Ok(Files { history, measurements, lock })
    }

    /// Writes the records so far to disk; collective.
    pub(super) fn keep(&self, found: &Found) -> Result<(), AppError> {
        let first = self.comm.rank() == 0;
        let kept = if first { open_records(&self.folder, &self.input, found).map(drop) } else { Ok(()) };
        Ok(agree(&*self.comm, kept)?)
    }

    pub(in crate::app) fn go(mut self) -> Result<(), AppError> {
        let mut longest = Duration::ZERO;
        if let Some(reason) = self.stopped {
            return self
                .end(&format!("stops while records are made again: {reason}; those that are made are kept"));
        }
        while self.done < self.input.run.trajectories {
            if let Some(reason) = self.stop.reason(longest.mul_f64(1.2)) {
                let words = format!("stops after {} trajectories: {reason}; checkpoint written", self.done);
                return self.end(&words);
            }
            let start = Instant::now();
            self.one()?;
            longest = longest.max(start.elapsed());
            if let Some(reason) = self.measure_and_tell()? {
                let words = format!(
                    "stops in the measurement of trajectory {}: {reason}; checkpoint written, the measurement is made \
                     when the run resumes",
                    self.done
                );
                return self.end(&words);
            }
            self.report.took(start.elapsed());
        }
        let folder = self.folder.display();
        let words = format!("done: {} trajectories in {folder}", self.done);
        self.end(&words)
    }

    /// Runs one trajectory, with its row, configuration and checkpoint.
    fn one(&mut self) -> Result<(), AppError> {
        let number = self.done;
        let meter = Meter::start(&self.domain);
        let Walked { outcome, plaquette, row } = self.walk(number)?;
        self.report.spent(meter.joules(&self.domain));
        self.done += 1;
        self.earlier = None;
        self.record(&row)?;
        self.report.trajectory(self.done, &outcome, plaquette, &self.chain.reports());
        self.save(true, is_due(self.done, self.input.run.checkpoint_every))
    }

    /// Takes up another tuning of the same chain, which came into force after trajectory `tuning`; the links stay.
    pub(super) fn retune(&mut self, input: Input, tuning: u64) -> Result<(), AppError> {
        let mut links = MatrixField::new(&self.domain, 4)?;
        links.copy_from(&self.chain.links)?;
        self.chain = assemble::chain(&input, links)?;
        (self.input, self.tuning) = (input, tuning);
        Ok(())
    }

    /// The columns of its rows.
    pub(super) fn columns(&self) -> Vec<String> {
        columns(&self.input.hmc.terms)
    }

    /// Makes the measurements of `measure` on the current links, those after trajectory `number`. Returns a line of the
    /// measurements, or the reason why it stopped.
    pub(super) fn measured(
        &mut self,
        number: u64,
        measure: &Measure,
        fermions: &[Fermion],
    ) -> Result<Result<String, Reason>, AppError> {
        let noise = Noise { seed: self.input.run.seed, trajectory: number };
        // After a stop, only files remain to be closed.
        let reason = Cell::new(None);
        let stop = || {
            reason.set(self.stop.reason(Duration::from_secs(1)));
            reason.get().is_some()
        };
        let found = match measure::observables(&self.chain.links, measure, fermions, noise, &stop) {
            Err(AppError::Measure(MeasureError::Stopped)) => {
                return Ok(Err(reason.get().expect("it said stop")));
            }
            found => found?,
        };
        let observables = found.object();
        Ok(Ok(json(&measure::Line { file: None, trajectory: Some(number), observables })))
    }

    /// Measures if due; returns the reason if it stopped.
    fn measure_and_tell(&mut self) -> Result<Option<Reason>, AppError> {
        let (measure, fermions) = (self.input.measure.clone(), self.input.fermions.clone());
        if !measure.is_due(self.done) {
            return Ok(None);
        }
        // So that a measurement may use all the remaining time.
        if self.input.run.wall_time.is_some() || job_end().is_some() {
            self.checkpoint()?;
        }
        match self.measured(self.done, &measure, &fermions)? {
            Ok(line) => {
                self.on_files(|files| files.measurements.append(&line).map_err(Into::into)).map(|()| None)
            }
            Err(reason) => Ok(Some(reason)),
        }
    }

    /// Writes a row, after a check that this job still owns the folder. With the first row, the input becomes part of
    /// the chain and is stored.
    fn record(&mut self, row: &[Value]) -> Result<(), AppError> {
        self.on_files(|files| files.lock.check())?;
        if !self.input_is_kept {
            let (folder, text, before) = (self.folder.clone(), self.input.text.clone(), self.done - 1);
            let is_unused = self.is_unused;
            self.on_files(|_| Ok(keep_input(&folder, &text, before, is_unused)?))?;
            self.input_is_kept = true;
        }
        self.on_files(|files| Ok(files.history.append(row)?))
    }

    /// Does `work` on rank 0; it returns a warning, if any. Collective.
    fn on_files(
        &mut self,
        work: impl FnOnce(&mut Files) -> Result<Option<String>, AppError>,
    ) -> Result<(), AppError> {
        let worked = self.files.as_mut().map_or(Ok(None), work);
        let warning = agree(&*self.comm, worked)?;
        warning.iter().for_each(|warning| self.report.warn(warning));
        Ok(())
    }

    /// Writes a checkpoint, unless the newest one is of this trajectory.
    fn checkpoint(&mut self) -> Result<(), AppError> {
        self.save(false, true)
    }

    /// Writes the links as configuration, if due, and as checkpoint, if asked for and not there yet: both from one copy.
    fn save(&mut self, configuration: bool, checkpoint: bool) -> Result<(), AppError> {
        let configuration = configuration && self.done != 0 && is_due(self.done, self.input.run.save_every);
        let checkpoint = checkpoint && self.saved != Some(self.done);
        if !configuration && !checkpoint {
            return Ok(());
        }
        let (start, mut bytes) = (Instant::now(), 0);
        let plaquette = GaugeLoops::traces(&self.chain.links)?.plaquette();
        let host = self.chain.links.to_host()?;
        let _held = memory::while_written(&self.chain.links);
        let solvers = (!self.choices.is_empty()).then(|| json(&self.choices));
        let input = self.earlier.as_ref().unwrap_or(&self.input.text).clone();
        let logical_name = Some(self.input.run.logical_name(self.done));
        let meta = Meta { trajectory: Some(self.done), plaquette, input, solvers, logical_name };
        let (partition, comm) = (self.domain.partition(), &*self.comm);
        self.sealed = is_due(self.done + 1, self.input.hmc.verify_every)
            .then(|| (self.done, io::links_checksum(&host, partition, comm)));
        // What is there from an earlier job is looked at before the other file is written.
        if configuration {
            let warning = io::save_configuration(&self.folder, &host, partition, comm, &meta)?;
            warning.iter().for_each(|warning| self.report.warn(warning));
            for &format in &self.input.run.save_formats {
                let warning = io::export(&self.folder, format, &host, partition, comm, &meta)?;
                warning.iter().for_each(|warning| self.report.warn(warning));
            }
            bytes += plan::in_all_formats(&self.input);
        }
        if checkpoint {
            let state = json(&ChainState { trajectories: self.done, seed: self.input.run.seed });
            io::save(&self.folder, &host, partition, comm, &meta, &state)?;
            self.saved = Some(self.done);
            bytes += plan::configuration(&self.input);
        }
        self.report.files(bytes, start.elapsed());
        Ok(())
    }

    /// Ends the job properly.
    fn end(mut self, words: &str) -> Result<(), AppError> {
        self.checkpoint()?;
        self.report.memory(&self.domain.device().held());
        self.report.line(words);
        let close = || -> Result<Table, IoError> {
            write_history_h5(&self.folder)?;
            History::read(&self.folder)
        };
        let closed = agree(&*self.comm, self.files.as_ref().map(|_| close()).transpose())?;
        closed.iter().for_each(|history| self.report.summary(history));
        self.report.energy(unread(&self.domain));
        Ok(())
    }

    /// Prints a line of the log.
    pub(super) fn say(&self, text: &str) {
        self.report.line(text);
    }

    /// Prints a warning.
    pub(super) fn warn(&self, text: &str) {
        self.report.warn(text);
    }
}

/// Whether the `number`-th is one of those that come `every` so many; 0: none.
pub(super) fn is_due(number: u64, every: u64) -> bool {
    every != 0 && number.is_multiple_of(every)
}

/// What the terms that `input` leaves open have in the `settled` one.
fn choices_of(input: &Input, settled: &Input) -> Choices {
    let (open, all) = (input.open_choices(), settled.choices());
    all.into_iter().filter(|(name, _)| open.iter().any(|(term, _)| term == name)).collect()
}

/// Writes the records to disk, and opens the files for more.
fn open_records(folder: &Path, input: &Input, found: &Found) -> Result<(History, Journal), IoError> {
    let history = History::open(folder, &texts(&columns(&input.hmc.terms)), &found.history)?;
    Ok((history, Journal::open(&folder.join(MEASUREMENTS), &found.measurements)?))
}

/// Makes the ensemble's folders and takes the lock, if the chain may be there.
fn take_folder(folder: &Path, input: &Input, job: &Job) -> Result<Lock, AppError> {
    streams::judge(input, !streams::holds_chain(folder))?.iter().for_each(crate::app::output::warn);
    for path in [folder, &folder.join("cfg")] {
        let dangles = path.ancestors().any(|folder| folder.is_symlink() && !folder.exists());
        let why = |source| {
            if dangles { std::io::Error::other("it is a symbolic link to what is not there") } else { source }
        };
        let failed =
            |source| AppError::Folder { path: path.into(), action: "make the folder", source: why(source) };
        fs::create_dir_all(path).map_err(failed)?;
    }
    Lock::take(folder, job)
}

/// The folders into which a chain writes.
pub(in crate::app) fn places(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let exports = Format::ALL.iter().map(|format| format.ending());
    let within = ["cfg", "checkpoint"].into_iter().chain(exports).map(|place| folder.join(place));
    std::iter::once(folder.to_owned()).chain(within)
}

/// Removes the unfinished files of a run that was killed; not before it is sure that this run goes on.
fn remove_unfinished(folder: &Path) {
    for place in places(folder) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            if is_unfinished(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether a name is that of an unfinished file.
fn is_unfinished(name: &str) -> bool {
    let ending = name.strip_suffix(".tmp").and_then(|file| file.rsplit_once('.')).map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        ["csv", "jsonl", "toml"].contains(&ending) || Format::of_ending(ending).is_some()
    })
}
