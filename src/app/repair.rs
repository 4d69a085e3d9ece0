//! Makes missing records of a chain again, by walking from the states before them.

use super::AppError;
use super::resume::{Found, Repairs};
use super::run::Driver;
use crate::field::MatrixField;
use crate::io::{self, History};
use std::time::Duration;

impl Driver {
    /// Makes missing rows and lines again, and puts them into `found`; the links stay those at hand.
    ///
    /// # Errors
    /// A state on the way is damaged, a trajectory comes to other links than it did, or the run has to stop before.
    pub(super) fn repair(&mut self, repairs: &Repairs, found: &mut Found) -> Result<(), AppError> {
        if repairs.walks.is_empty() {
            return Ok(());
        }
        let here = self.chain.links.to_host()?;
        for walk in &repairs.walks {
            self.go_to(walk.from)?;
            if repairs.lines.contains(&walk.from) && !repairs.rows.contains(&walk.from) {
                self.measure_again(walk.from, found)?;
            }
            for number in walk.from..walk.to {
                self.may_go_on()?;
                let walked = self.walk(number)?;
                let number = number + 1;
                self.require_same_links(number)?;
                if repairs.rows.contains(&number) {
                    found.history.insert(number, History::line(&walked.row));
                    self.say(&format!("trajectory {number}: its row of the history is made again"));
                }
                if repairs.lines.contains(&number) {
                    self.measure_again(number, found)?;
                }
            }
        }
        Ok(self.chain.links.set_host(&here)?)
    }

    /// Takes the links after trajectory `number` from the disk, or those of the start.
    fn go_to(&mut self, number: u64) -> Result<(), AppError> {
        match io::load_state(&self.folder, number, self.domain.partition(), &*self.comm)? {
            Some(links) => self.chain.links.set_host(&links)?,
            None if number == 0 => {
                let links: MatrixField =
                    super::assemble::first_links(&self.input, &self.domain, &*self.comm)?;
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

    /// Refuses to go on where a file has other links than the trajectory that was walked again.
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

    fn measure_again(&mut self, number: u64, found: &mut Found) -> Result<(), AppError> {
        let Some(kept) = found.in_force(number) else { return Ok(()) };
        match self.measured(number, &kept.measure, &kept.fermions)? {
            Ok(line) => {
                found.measurements.insert(number, line);
                self.say(&format!("trajectory {number}: its measurement is made"));
                Ok(())
            }
            Err(reason) => Err(stopped(&reason)),
        }
    }

    fn may_go_on(&self) -> Result<(), AppError> {
        self.stop.reason(Duration::ZERO).map_or(Ok(()), |reason| Err(stopped(&reason)))
    }
}

/// The run ends before it began: nothing was written, and the next job would come no farther.
fn stopped(reason: &super::stop::Reason) -> AppError {
    AppError::Refused(format!("{reason} before the chain's missing records were made again"))
}
