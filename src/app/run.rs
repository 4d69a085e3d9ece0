//! The driver of a chain: starts or resumes, walks, measures, saves, stops when told.

use super::report::{Report, say};
use super::{AppError, Ranks, assemble, measure, plan, start};
use crate::comm::{Comm, agree};
use crate::config::{self, Input};
use crate::field::{Domain, MatrixField};
use crate::hmc::{Chain, Outcome};
use crate::io::{self, Format, History, IoError, Meta, Value};
use crate::measure::Noise;
use crate::operator::GaugeLoops;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs `work` in a pool of `threads` threads.
pub(super) fn with_threads<T: Send>(
    threads: usize,
    work: impl FnOnce() -> Result<T, AppError> + Send,
) -> Result<T, AppError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|e| AppError::Refused(format!("{threads} threads: {e}")))?.install(work)
}

/// `hmc RUN.toml`: starts the chain of an input, or resumes it; with `check` prints the plan alone.
///
/// # Errors
/// Wrong input, a chain of other physics, or anything that stops a run.
pub fn run(path: &Path, check: bool, comm: &Ranks) -> Result<(), AppError> {
    let loaded = config::load(path, comm.size())?;
    let report = Report::new(comm.rank() == 0, 0, 0);
    loaded.warnings.iter().for_each(|warning| report.warn(warning));
    let input = loaded.input;
    if check {
        let partition = start::partition(&input.parallel, input.extents, &**comm)?;
        let root = comm.rank() == 0;
        return if root { say(plan::plan(&input, &partition, comm.size()).trim_end()) } else { Ok(()) };
    }
    drop(report);
    with_threads(start::threads(&input.parallel, &**comm), || Driver::new(input, comm)?.go())
}

/// A chain with its files.
struct Driver {
    input: Input,
    comm: Ranks,
    domain: Arc<Domain>,
    chain: Chain,
    folder: PathBuf,
    history: Option<History>,
    report: Report,
    done: u64,
    stop: Arc<AtomicBool>,
    started: Instant,
    _lock: Option<File>,
}

/// Columns of the history: those of a trajectory, then four for each level.
fn columns(levels: usize) -> Vec<String> {
    let mut names: Vec<String> =
        ["trajectory", "delta_h", "accepted", "plaquette", "unitarity", "seconds"].map(String::from).to_vec();
    for level in 0..levels {
        names.extend(["force", "force_max", "iterations", "seconds"].map(|name| format!("{name}_{level}")));
    }
    names
}

/// Takes the folder for this job: two jobs on one chain would spoil it.
fn lock(folder: &Path) -> Result<File, AppError> {
    let path = folder.join("lock");
    let failed = |e: std::io::Error| AppError::Refused(format!("{}: {e}", path.display()));
    let file = File::create(&path).map_err(failed)?;
    // SAFETY: an open file.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return Err(AppError::Refused(format!("{}: another job works on this chain", folder.display())));
    }
    Ok(file)
}

impl Driver {
    fn new(input: Input, comm: &Ranks) -> Result<Self, AppError> {
        let started = Instant::now();
        let folder = input.run.ensembles.join(&input.run.name);
        let root = comm.rank() == 0;
        let made = if root { make_folder(&folder, &input).map(Some) } else { Ok(None) };
        let lock = agree(&**comm, made)?;
        let domain = assemble::domain(&input.parallel, input.extents, assemble::layers(&input), comm)?;
        let (links, done, warnings) = resume_or_start(&input, &folder, &domain, &**comm)?;
        let report = Report::new(root, done, input.run.trajectories);
        warnings.iter().for_each(|warning| report.warn(warning));
        report.line(&format!(
            "{}: {} on {} ranks as {}, {}, halos {:?}",
            input.run.name,
            crate::lattice::shape(input.extents),
            comm.size(),
            crate::lattice::shape(domain.partition().grid),
            domain.device().backend().name(),
            domain.halo(),
        ));
        report.line(&match done {
            0 => format!("starts: {} trajectories to go", input.run.trajectories),
            n => format!("resumes after {n} of {} trajectories", input.run.trajectories),
        });
        let names = columns(input.hmc.levels.len());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let opened = root.then(|| {
            keep_lines_before(&folder.join("measurements.jsonl"), done + 1)?;
            History::open(&folder, &names, done + 1)
        });
        let history = agree(&**comm, opened.transpose())?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|e| AppError::Refused(format!("signal handler: {e}")))?;
        }
        let chain = assemble::chain(&input, links)?;
        let driver = Self {
            input,
            comm: Arc::clone(comm),
            domain,
            chain,
            folder,
            history,
            report,
            done,
            stop,
            started,
            _lock: lock,
        };
        if done == 0 {
            driver.checkpoint()?;
        }
        Ok(driver)
    }

    fn go(mut self) -> Result<(), AppError> {
        let mut longest = Duration::ZERO;
        while self.done < self.input.run.trajectories {
            if let Some(reason) = self.must_stop(longest) {
                self.checkpoint()?;
                self.report
                    .line(&format!("stops after {} trajectories: {reason}; checkpoint written", self.done));
                return self.close();
            }
            let start = Instant::now();
            self.one()?;
            longest = longest.max(start.elapsed());
        }
        self.checkpoint()?;
        self.report.line(&format!("done: {} trajectories in {}", self.done, self.folder.display()));
        self.close()
    }

    /// Whether to end before the next trajectory; the same on all ranks.
    fn must_stop(&self, longest: Duration) -> Option<&'static str> {
        let signalled = self.stop.load(Ordering::Relaxed);
        let late = self
            .input
            .run
            .wall_time
            .is_some_and(|limit| self.started.elapsed() + longest.mul_f64(1.2) > limit);
        let code = self.comm.max(if signalled { 2.0 } else { f64::from(u8::from(late)) });
        match code as u8 {
            2 => Some("a signal came"),
            1 => Some("wall_time is near"),
            _ => None,
        }
    }

    /// One trajectory with all that goes along.
    fn one(&mut self) -> Result<(), AppError> {
        let (number, run) = (self.done, self.input.run.clone());
        let failed = |source| AppError::Trajectory { number: number + 1, source };
        let every = |n: u64| n != 0 && (number + 1).is_multiple_of(n);
        if every(self.input.hmc.reversibility_every) {
            let r = self.chain.reversibility(number).map_err(failed)?;
            self.report.line(&format!(
                "trajectory {}: reversibility: max |U - U_back| {:.2e}, |dH| there and back {:.2e}",
                number + 1,
                r.distance,
                r.round_trip_delta_h
            ));
        }
        let outcome = self.chain.trajectory(number, number < run.thermalisation).map_err(failed)?;
        let drift = self.chain.links.unitarity(every(self.input.hmc.reproject_every))?;
        let plaquette = GaugeLoops::traces(&self.chain.links)?.plaquette();
        self.done += 1;
        self.report.trajectory(self.done, &outcome, plaquette);
        for (term, line) in self.chain.reports() {
            self.report.line(&format!("  {term}: {line}"));
        }
        self.record(&outcome, plaquette, drift)?;
        if every(self.input.measure.every) {
            self.measure()?;
        }
        if every(run.save_every) {
            let path = self.folder.join("cfg").join(format!("cfg_{:06}.h5", self.done));
            let host = self.chain.links.to_host()?;
            io::write_links(
                &path,
                Format::Hdf5,
                &host,
                self.domain.partition(),
                &*self.comm,
                &self.meta(plaquette),
            )?;
        }
        if every(run.checkpoint_every) && self.done < run.trajectories {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn meta(&self, plaquette: f64) -> Meta {
        Meta { trajectory: Some(self.done), plaquette, input: self.input.text.clone() }
    }

    fn checkpoint(&self) -> Result<(), AppError> {
        let plaquette = GaugeLoops::traces(&self.chain.links)?.plaquette();
        let host = self.chain.links.to_host()?;
        let state = serde_json::json!({ "trajectories": self.done, "seed": self.input.run.seed }).to_string();
        io::save(&self.folder, &host, self.domain.partition(), &*self.comm, &self.meta(plaquette), &state)?;
        Ok(())
    }

    fn record(&mut self, outcome: &Outcome, plaquette: f64, drift: f64) -> Result<(), AppError> {
        let mut row = vec![
            Value::Count(self.done),
            Value::Real(outcome.delta_h),
            Value::Count(u64::from(outcome.accepted)),
            Value::Real(plaquette),
            Value::Real(drift),
            Value::Real(outcome.seconds),
        ];
        for level in &outcome.levels {
            row.extend([
                Value::Real(level.norm),
                Value::Real(level.max),
                Value::Count(level.iterations as u64),
                Value::Real(level.seconds),
            ]);
        }
        let written = self.history.as_mut().map_or(Ok(()), |history| history.append(&row));
        Ok(agree(&*self.comm, written)?)
    }

    fn measure(&mut self) -> Result<(), AppError> {
        let noise = Noise { seed: self.input.run.seed, trajectory: self.done };
        let found =
            measure::observables(&self.chain.links, &self.input.measure, &self.input.fermions, noise)?;
        if found.is_empty() {
            return Ok(());
        }
        let mut object = serde_json::Map::new();
        object.insert("trajectory".into(), self.done.into());
        object.extend(found);
        let path = self.folder.join("measurements.jsonl");
        let append = || -> std::io::Result<()> {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(format!("{}\n", serde_json::Value::Object(object)).as_bytes())?;
            file.sync_data()
        };
        let written = if self.comm.rank() == 0 { append() } else { Ok(()) };
        Ok(agree(
            &*self.comm,
            written.map_err(|source| IoError::System { path: path.clone(), action: "append to", source }),
        )?)
    }

    fn close(self) -> Result<(), AppError> {
        let written = if self.history.is_some() { History::write_h5(&self.folder) } else { Ok(()) };
        Ok(agree(&*self.comm, written)?)
    }
}

/// Makes the ensemble's folders, takes the lock, keeps the input.
fn make_folder(folder: &Path, input: &Input) -> Result<File, AppError> {
    let failed = |e: std::io::Error| AppError::Refused(format!("{}: {e}", folder.display()));
    fs::create_dir_all(folder.join("cfg")).map_err(failed)?;
    let lock = lock(folder)?;
    if !folder.join("run.toml").exists() {
        fs::write(folder.join("run.toml"), &input.text).map_err(failed)?;
    }
    Ok(lock)
}

/// The newest checkpoint's links and trajectories, or the start's.
fn resume_or_start(
    input: &Input,
    folder: &Path,
    domain: &Arc<Domain>,
    comm: &dyn Comm,
) -> Result<(MatrixField, u64, Vec<String>), AppError> {
    let Some(loaded) = io::load_newest(folder, domain.partition(), comm)? else {
        return Ok((assemble::first_links(input, domain, comm)?, 0, Vec::new()));
    };
    if let Some(text) = &loaded.header.input {
        let stored = config::parse_stored(text, &loaded.path.display().to_string())?;
        let changes = config::compare(&stored.input, input);
        if !changes.is_empty() {
            return Err(AppError::Refused(format!(
                "{} holds a chain of other physics; give the run another name, or take back:\n  {}",
                folder.display(),
                changes.join("\n  ")
            )));
        }
    }
    let links = MatrixField::from_host(domain, &loaded.links)?;
    Ok((links, loaded.header.trajectory.unwrap_or(0), loaded.warnings))
}

/// Drops what a resumed run will measure again.
fn keep_lines_before(path: &Path, trajectory: u64) -> Result<(), IoError> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(()) };
    let kept: String = text
        .lines()
        .filter(|line| {
            let object: Option<serde_json::Value> = serde_json::from_str(line).ok();
            object.and_then(|o| o["trajectory"].as_u64()).is_some_and(|n| n < trajectory)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    if kept == text {
        return Ok(());
    }
    io::write_aside(path, &crate::comm::Solo, |temporary| {
        fs::write(temporary, &kept).map_err(|source| IoError::System {
            path: temporary.to_path_buf(),
            action: "write",
            source,
        })
    })
}
