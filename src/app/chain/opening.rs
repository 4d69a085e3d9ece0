//! The start of a run in two steps, each of them collective: its folder is taken and it is known where the chain goes on
//! ([`Opened`]); devices are tested and every term has its method ([`Settled`]). Until then the chain's files are as they were.

use super::kept::Kept;
use super::lock::Lock;
use super::options::RunOptions;
use super::report::Report;
use super::resume::{Found, Point, Repairs, told};
use super::stop::{JOB_END, Stop, job_end};
use super::{assemble, choose, rehearsal, streams};
use crate::app::machine::crash::after_trajectory;
use crate::app::machine::job::{self, Job};
use crate::app::machine::self_test::test_devices;
use crate::app::machine::{placement, start};
use crate::app::{AppError, Ranks, check_wires};
use crate::comm::agree;
use crate::field::{Domain, MatrixField};
use crate::hmc::Chain;
use crate::input::Input;
use crate::io::Format;
use crate::solver::Choices;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The folder is taken, and it is known where the chain goes on.
pub(super) struct Opened {
    pub input: Input,
    pub comm: Ranks,
    pub folder: PathBuf,
    pub job: Job,
    /// `None` on all ranks but the first.
    pub lock: Option<Lock>,
    pub stop: Stop,
    pub report: Report,
    pub domain: Arc<Domain>,
    pub found: Found,
    pub point: Point,
    pub repairs: Repairs,
}

/// What this job changes of the chain's tuning.
pub(super) struct Retuning {
    /// The trajectory after which the present tuning came into force.
    pub after: u64,
    /// What has changed of it with this job.
    pub changes: Vec<String>,
    /// The text of the input that made the present links, if that was an earlier job's.
    pub earlier: Option<String>,
}

/// The chain, on devices that are tested, by methods that are chosen.
pub(super) struct Settled {
    /// With the input that names the methods; its point has no links any more.
    pub opened: Opened,
    pub chain: Chain,
    /// The methods of terms with "auto".
    pub choices: Choices,
    pub retuning: Retuning,
    /// Whether it begins with this job.
    pub is_new: bool,
}

impl Opened {
    /// Takes the folder of a chain, and looks where the chain goes on.
    ///
    /// # Errors
    /// Another job has the folder; it holds another chain, or one that cannot go on; memory runs out.
    pub(super) fn new(input: Input, options: RunOptions, comm: &Ranks) -> Result<Self, AppError> {
        let stop = Stop::new(comm, Instant::now(), input.run.wall_time)?;
        let folder = input.run.folder();
        let (root, job) = (comm.rank() == 0, Job::this());
        let lock = agree(&**comm, root.then(|| take_folder(&folder, &input, &job)).transpose())?;
        let mut found = Found::look(&folder, &input, &**comm)?;
        let kept = found.inputs.iter().filter_map(Kept::measure);
        let layers = assemble::layers(&input, kept.chain([&input.measure]));
        let report = Report::new(root, options.verbose, input.run.trajectories, input.run.thermalisation);
        let domain = assemble::domain(&input.parallel, input.lattice(), layers, comm)?;
        let mut point = found.point(&folder, &input, &options, domain.partition(), &**comm)?;
        let repairs = found.repairs(&mut point, &folder, &input.run, options.gaps, &**comm)?;
        if root {
            remove_unfinished(&folder);
        }
        after_trajectory(point.done);
        let comm = Arc::clone(comm);
        Ok(Self { input, comm, folder, job, lock, stop, report, domain, found, point, repairs })
    }

    /// Tells where the chain goes on, and on what.
    fn tell(&self) {
        let Self { input, comm, report, domain, point, .. } = self;
        let run = &input.run;
        let warnings = point.warnings.iter();
        warnings.chain(&start::crowded(&input.parallel, &**comm)).for_each(|told| report.warn(told));
        report.line(&start::describe(&run.chain_name(), domain));
        if comm.size() > 1 {
            placement::map(&input.parallel, comm).iter().for_each(|line| report.line(line));
        }
        report.line(&match point.done {
            0 => format!("starts: {} trajectories to go", run.trajectories),
            n => format!("resumes after {n} of {} trajectories", run.trajectories),
        });
        if let Some(end) = job_end() {
            report.line(&format!("ends a minute before the job does, at {} ({JOB_END})", job::utc(end)));
        }
        if point.dropped > 0 {
            report.line(&format!("the history has {} rows after that, which are made again", point.dropped));
        }
    }

    /// Compares the tuning of the `known` input with that of the chain, and tells what has changed.
    fn retune(&self, known: &Input) -> Retuning {
        let (found, done) = (&self.found, self.point.done);
        let changes = found.retuned(done, known);
        told(&changes, done).iter().for_each(|line| self.report.line(line));
        Retuning {
            after: if changes.is_empty() { found.tuning(done) } else { done },
            changes: changes.iter().map(ToString::to_string).collect(),
            earlier: found.in_force(done).and_then(|kept| Some(kept.input.as_ref()?.text.clone())),
        }
    }

    /// Puts the links on the devices, tests these, compiles the kernels, and chooses the methods of terms with "auto".
    ///
    /// # Errors
    /// A device is at fault, no method solves a term's systems, or memory runs out.
    pub(super) fn settle(mut self) -> Result<Settled, AppError> {
        let stored = self.point.links.take();
        let is_new = stored.is_none();
        let links = match stored {
            Some(links) => MatrixField::from_host(&self.domain, &links)?,
            None => assemble::first_links(&self.input, &self.domain, &*self.comm)?,
        };
        self.tell();
        let known = self.input.with_choices(&self.point.choices)?;
        self.found.choose(&self.point.choices);
        let retuning = self.retune(&known);
        let Self { input, comm, report, domain, .. } = &self;
        for (term, choice) in choices_of(input, &known) {
            report.line(&format!("solver of {term}, \"auto\": {choice}, as the chain has chosen"));
        }
        rehearsal::prepare(&known, domain, comm, |line| report.line(line))?;
        if input.parallel.self_test {
            let tested = test_devices(domain, &input.parallel, &**comm)?;
            tested.iter().for_each(|line| report.line(line));
        }
        check_wires(domain)?;
        let settled = choose::choose(&known, &links, &**comm, |table| report.line(table))?;
        let choices = choices_of(input, &settled);
        self.found.choose(&settled.choices());
        let chain = assemble::chain(&settled, links)?;
        Ok(Settled { opened: Self { input: settled, ..self }, chain, choices, retuning, is_new })
    }
}

/// What the terms that `input` leaves open have in the `settled` one.
fn choices_of(input: &Input, settled: &Input) -> Choices {
    let (open, all) = (input.open_choices(), settled.choices());
    all.into_iter().filter(|(name, _)| open.iter().any(|(term, _)| term == name)).collect()
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
fn places(folder: &Path) -> impl Iterator<Item = PathBuf> {
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
