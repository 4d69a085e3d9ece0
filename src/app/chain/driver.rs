//! The driver of a chain: starts or resumes, runs trajectories, measures, saves, and stops on request.

use super::jobs;
use super::jobs::{Accepted, JOBS, JobLine};
use super::kept::keep_input;
use super::lock::Lock;
use super::opening::{Opened, Settled};
use super::options::RunOptions;
use super::report::Report;
use super::resume::{Found, MEASUREMENTS, columns, texts};
use super::stop::{Reason, Stop, job_end};
use super::{assemble, measure, memory, plan, streams};
use crate::app::machine::energy::{Meter, unread};
use crate::app::machine::job::Job;
use crate::app::output::json;
use crate::app::version::PROGRAM;
use crate::app::{AppError, Ranks};
use crate::comm::agree;
use crate::field::{Domain, MatrixField};
use crate::hmc::{Chain, Outcome};
use crate::input::{Fermion, Input};
use crate::io::{self, History, IoError, Journal, Meta, Table, Value, write_history_h5};
use crate::measure::{Measure, MeasureError, Noise};
use crate::operator::GaugeLoops;
use crate::solver::Choices;
use serde::Serialize;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// Goes on with a chain; collective.
    ///
    /// # Errors
    /// Why it cannot go on, or a file cannot be written.
    pub(in crate::app) fn new(input: Input, options: RunOptions, comm: &Ranks) -> Result<Self, AppError> {
        let Settled { opened, chain, choices, retuning, is_new } =
            Opened::new(input, options, comm)?.settle()?;
        let Opened { input, comm, folder, job, lock, stop, report, domain, mut found, point, repairs } =
            opened;
        let mut driver = Self {
            input,
            comm,
            domain,
            chain,
            folder,
            files: None,
            report,
            done: point.done,
            saved: point.has_checkpoint.then_some(point.done),
            sealed: None,
            input_is_kept: false,
            is_unused: found.is_unused,
            tuning: retuning.after,
            retuned: retuning.changes,
            earlier: retuning.earlier,
            choices,
            stop,
            stopped: None,
        };
        // Both exist if the last job wrote them and nothing happened to them since.
        driver.save(true, true)?;
        driver.export_missing()?;
        driver.keep_damaged(&found)?;
        driver.stopped = driver.repair(&repairs, &mut found)?;
        let opened = lock.map(|lock| driver.open(lock, &job, &found, &point.accepted, is_new));
        driver.files = agree(&*driver.comm, opened.transpose())?;
        Ok(driver)
    }

    /// Keeps copies of what is no record any more; collective.
    fn keep_damaged(&self, found: &Found) -> Result<(), AppError> {
        let damaged = || -> Result<Vec<String>, IoError> {
            let history = found.history.keep_damaged(&self.folder.join("history.csv"))?;
            let measurements = found.measurements.keep_damaged(&self.folder.join(MEASUREMENTS))?;
            Ok(history.into_iter().chain(measurements).collect())
        };
        let kept = agree(&*self.comm, if self.comm.rank() == 0 { damaged() } else { Ok(Vec::new()) })?;
        kept.iter().for_each(|warning| self.report.warn(warning));
        Ok(())
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
        let names = columns(&input.hmc);
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
        columns(&self.input.hmc)
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

/// Writes the records to disk, and opens the files for more.
fn open_records(folder: &Path, input: &Input, found: &Found) -> Result<(History, Journal), IoError> {
    let history = History::open(folder, &texts(&columns(&input.hmc)), &found.history)?;
    Ok((history, Journal::open(&folder.join(MEASUREMENTS), &found.measurements)?))
}
