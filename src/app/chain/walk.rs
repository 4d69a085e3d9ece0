//! Trajectories that are walked: their rows of the history, their reversibility, and the comparison of their bits.

use super::driver::{Driver, Walked, is_due};
use crate::app::AppError;
use crate::app::machine::crash::{after_trajectory, in_trajectory};
use crate::app::machine::self_test::test_devices;
use crate::hmc::{Outcome, Reversibility};
use crate::io::{self, Value};
use crate::operator::GaugeLoops;

impl Driver {
    /// Measures the reversibility of trajectory `number`, counted from 0, if due.
    fn reversibility(&mut self, number: u64) -> Result<Option<Reversibility>, AppError> {
        if !is_due(number + 1, self.input.hmc.reversibility_every) {
            return Ok(None);
        }
        let failed = |source| AppError::Trajectory { number: number + 1, source };
        let found = self.chain.reversibility(number).map_err(failed)?;
        self.report.reversibility(number + 1, &found);
        Ok(Some(found))
    }

    /// Walks trajectory `number`, counted from 0. If that is due, compares its links with those that were written, and walks
    /// it a second time to compare bits.
    fn verified(&mut self, number: u64) -> Result<(Outcome, bool), AppError> {
        let failed = |source| AppError::Trajectory { number: number + 1, source };
        let always = number < self.input.run.thermalisation;
        if !is_due(number + 1, self.input.hmc.verify_every) {
            return Ok((self.chain.trajectory(number, always).map_err(failed)?, false));
        }
        let before = self.chain.links.to_host()?;
        if let Some((_, sum)) = self.sealed.filter(|(done, _)| *done == number)
            && sum != io::links_checksum(&before, self.domain.partition(), &*self.comm)
        {
            let what = "the links it starts from are not those that were written".to_owned();
            return Err(AppError::Unverified { number: number + 1, what });
        }
        let outcome = self.chain.trajectory(number, always).map_err(failed)?;
        let after = self.chain.links.to_host()?;
        self.chain.links.set_host(&before)?;
        let again = self.chain.trajectory(number, always).map_err(failed)?;
        let differ = self.chain.links.to_host()? != after;
        let ranks =
            self.comm.gather(&[u8::from(differ)]).concat().iter().filter(|differ| **differ > 0).count();
        if ranks > 0 || again.delta_h.to_bits() != outcome.delta_h.to_bits() {
            let found = match test_devices(&self.domain, &self.input.parallel, &*self.comm) {
                Ok(_) => "a self-test of the devices finds nothing now".to_owned(),
                Err(error) => error.to_string(),
            };
            let what = format!(
                "walked twice from the same links, it has dH = {:?} and {:?}, and other links on {ranks} of {} ranks; {found}",
                outcome.delta_h,
                again.delta_h,
                self.comm.size()
            );
            return Err(AppError::Unverified { number: number + 1, what });
        }
        self.report.line(&format!("trajectory {}: walked twice, the same bits", number + 1));
        Ok((outcome, true))
    }

    /// Runs trajectory `number`, counted from 0, from the current links.
    pub(super) fn walk(&mut self, number: u64) -> Result<Walked, AppError> {
        in_trajectory(number + 1);
        let reversibility = self.reversibility(number)?;
        let (outcome, is_verified) = self.verified(number)?;
        let drift = self.chain.links.unitarity(is_due(number + 1, self.input.hmc.reproject_every))?;
        let plaquette = GaugeLoops::traces(&self.chain.links)?.plaquette();
        let mut row = vec![
            Value::Count(number + 1),
            Value::Real(outcome.delta_h),
            Value::Count(u64::from(outcome.accepted)),
            Value::Real(plaquette),
            Value::Real(drift),
            Value::Real(outcome.seconds),
            Value::Count(self.tuning),
            reversibility.as_ref().map_or(Value::Empty, |found| Value::Real(found.distance)),
            reversibility.as_ref().map_or(Value::Empty, |found| Value::Real(found.round_trip_delta_h)),
            Value::Count(u64::from(is_verified)),
        ];
        for level in &outcome.levels {
            row.extend([
                Value::Real(level.norm),
                Value::Real(level.max),
                Value::Count(level.iterations as u64),
                Value::Real(level.seconds),
            ]);
        }
        for term in &outcome.terms {
            row.extend([
                term.delta.map_or(Value::Empty, Value::Real),
                Value::Real(term.force.norm),
                Value::Real(term.force.max),
                Value::Count(term.force.iterations as u64),
                Value::Real(term.heat_bath_seconds + term.force.seconds + term.value_seconds),
            ]);
        }
        row.extend(self.input.hmc.smd.iter().map(|_| Value::Count(outcome.accepted_cycles)));
        after_trajectory(number + 1);
        Ok(Walked { outcome, plaquette, row })
    }
}
