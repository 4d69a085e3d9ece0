//! Recreates missing records of a chain by rerunning trajectories from the states before them, and missing exports of its
//! configurations.

use super::driver::Driver;
use super::resume::{Found, Repairs, Walk, seconds, texts};
use super::stop::Reason;
use crate::app::AppError;
use crate::field::MatrixField;
use crate::input::Input;
use crate::io::{self, History, Meta};
use crate::measure::MeasureError;
use crate::solver::SolverError;
use std::time::{Duration, Instant};

/// The number of records that are made before they are written to disk.
const KEPT_AT_ONCE: usize = 10;

impl Driver {
    /// Recreates missing rows and lines, and adds them to `found`. The links are restored at the end. Returns the
    /// reason if it stopped early.
    ///
    /// # Errors
    /// A state on the way is damaged, a trajectory does not reproduce its links, or the job has too little time for a
    /// single record.
    pub(super) fn repair(
        &mut self,
        repairs: &Repairs,
        found: &mut Found,
    ) -> Result<Option<Reason>, AppError> {
        if repairs.walks.is_empty() {
            return Ok(None);
        }
        let here = self.chain.links.to_host()?;
        let (input, tuning) = (self.input.clone(), self.tuning);
        let mut made = 0;
        for walk in &repairs.walks {
            let stopped = self.walk_again(*walk, repairs, found, &mut made)?;
            self.keep(found)?;
            if let Some(reason) = stopped {
                // The next job would get no further.
                if matches!(reason, Reason::WallTime | Reason::JobEnd) && made == 0 {
                    let what = "before a single record of the chain was made again; give the job more time";
                    return Err(AppError::Refused(format!("{reason} {what}")));
                }
                return Ok(Some(reason));
            }
        }
        if self.tuning != tuning {
            self.retune(input, tuning)?;
        }
        self.chain.links.set_host(&here)?;
        Ok(None)
    }

    /// Makes exports that configurations of earlier jobs lack; of a damaged one there is none. Stops when the job is to end.
    pub(super) fn export_missing(&self) -> Result<(), AppError> {
        let (partition, comm) = (self.domain.partition(), &*self.comm);
        for &format in &self.input.run.save_formats {
            let missing = io::missing_exports(&self.folder, format, self.done, comm)?;
            let mut made = 0;
            for &number in &missing {
                if self.stop.reason(Duration::ZERO).is_some() {
                    break;
                }
                let (links, header) = match io::load_configuration(&self.folder, number, partition, comm) {
                    Ok(stored) => stored,
                    Err(error) => {
                        self.warn(&format!("{error}; no {format} file is made of configuration {number}"));
                        continue;
                    }
                };
                let meta = Meta {
                    trajectory: Some(number),
                    plaquette: header.plaquette.unwrap_or(f64::NAN),
                    logical_name: Some(self.input.run.logical_name(number)),
                    ..Meta::default()
                };
                let warning = io::export(&self.folder, format, &links, partition, comm, &meta)?;
                warning.iter().for_each(|warning| self.warn(warning));
                made += 1;
            }
            if made > 0 {
                self.say(&format!(
                    "{format} files of {made} configuration{} that were missing are made",
                    if made == 1 { "" } else { "s" }
                ));
            }
        }
        Ok(())
    }

    /// Takes up the tuning by which trajectory `number` was made.
    fn retune_for(&mut self, number: u64, found: &Found) -> Result<(), AppError> {
        let tuning = found.tuning(number);
        if tuning == self.tuning {
            return Ok(());
        }
        let Some(kept) = found.in_force(number).and_then(|kept| kept.input.clone()) else {
            return Err(AppError::Refused(format!(
                "{}: trajectory {number}, which is to be made again, was made by an input that this version cannot read; \
                 --gaps leave goes on without it",
                self.folder.display()
            )));
        };
        self.say(&format!("trajectory {number}: again with the tuning in force after {tuning}"));
        self.retune(
            Input { run: self.input.run.clone(), parallel: self.input.parallel.clone(), ..kept },
            tuning,
        )
    }

    /// Recreates the records of one walk, and counts them.
    fn walk_again(
        &mut self,
        walk: Walk,
        repairs: &Repairs,
        found: &mut Found,
        made: &mut usize,
    ) -> Result<Option<Reason>, AppError> {
        self.go_to(walk.from)?;
        let mut longest = Duration::from_secs_f64(seconds(&self.folder));
        for number in walk.from..=walk.to {
            if number > walk.from {
                if let Some(reason) = self.stop.reason(longest.mul_f64(1.2)) {
                    return Ok(Some(reason));
                }
                let start = Instant::now();
                self.retune_for(number, found)?;
                let walked = self.walk(number - 1)?;
                longest = longest.max(start.elapsed());
                self.require_same_links(number)?;
                if repairs.rows.contains(&number) {
                    let line = History::line(&mut found.history, &texts(&self.columns()), &walked.row);
                    found.history.insert(number, line);
                    *made += 1;
                    self.say(&format!("trajectory {number}: its row of the history is made again"));
                }
            }
            if *made > 0 && made.is_multiple_of(KEPT_AT_ONCE) {
                self.keep(found)?;
            }
            let due = repairs.lines.contains(&number) && !found.measurements.has(number);
            let Some(kept) = found.in_force(number).filter(|_| due) else { continue };
            let Some(input) = &kept.input else { continue };
            let measured = self.measured(number, &input.measure, &input.fermions);
            let hopeless = |error: AppError| match error {
                AppError::Measure(error @ MeasureError::Solver(SolverError::NotConverged { .. })) => {
                    let folder = self.folder.display();
                    AppError::Refused(format!(
                        "{folder}: measurement of trajectory {number}: {error}; --gaps leave goes on without it"
                    ))
                }
                other => other,
            };
            match measured.map_err(hopeless)? {
                Ok(line) => {
                    found.measurements.insert(number, line);
                    *made += 1;
                    self.say(&format!("trajectory {number}: its measurement is made"));
                }
                Err(reason) => return Ok(Some(reason)),
            }
        }
        Ok(None)
    }

    /// Loads the links after trajectory `number` from disk, or makes the initial ones.
    fn go_to(&mut self, number: u64) -> Result<(), AppError> {
        match io::load_state(&self.folder, number, self.domain.partition(), &*self.comm)? {
            Some(links) => self.chain.links.set_host(&links)?,
            None if number == 0 => {
                let links: MatrixField =
                    crate::app::chain::assemble::first_links(&self.input, &self.domain, &*self.comm)?;
                self.chain.links.copy_from(&links)?;
            }
            None => {
                return Err(AppError::Refused(format!(
                    "{}: the state after trajectory {number}, from which records are to be made again, is damaged; move it \
                     away, or go on without by --gaps leave",
                    self.folder.display()
                )));
            }
        }
        Ok(())
    }

    /// Refuses to continue if a file has other links than the trajectory that was rerun.
    fn require_same_links(&self, number: u64) -> Result<(), AppError> {
        let Some(stored) = io::load_state(&self.folder, number, self.domain.partition(), &*self.comm)? else {
            return Ok(());
        };
        let differ = stored != self.chain.links.to_host()?;
        if self.comm.max(f64::from(u8::from(differ))) > 0.0 {
            return Err(AppError::Refused(format!(
                "{}: trajectory {number}, walked again, comes to other links than those of its file; the history cannot be \
                 made again, --gaps leave goes on without",
                self.folder.display()
            )));
        }
        Ok(())
    }
}
