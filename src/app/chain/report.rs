//! The log of a run: a line per trajectory, the time left, warnings, and a summary at the end.

use crate::action::TermReport;
use crate::app::output::{megabytes, memory, say, span, warn, with_error};
use crate::device::{Held, most_host_memory};
use crate::hmc::{Outcome, Reversibility, TermOutcome};
use crate::io::Table;
use std::collections::VecDeque;
use std::time::Duration;

/// What to do about great dH.
const ADVICE: &str = "more 'steps' on the levels with the greatest forces (dH falls with their square, with their fourth power for \
                      omf4), a smaller tau, or more thermalisation";
/// Consecutive trajectories of thermalisation with a great dH that cause a warning. The first few of a hot start have one.
const MANY_ASTRAY: u64 = 5;
/// Consecutive rejections that cause a warning.
const MANY_REJECTIONS: u64 = 10;
/// |dH| that causes a warning.
const GREAT_DELTA_H: f64 = 50.0;
/// |dH| there and back that causes a warning: above it, the Metropolis step is wrong by as much.
const GREAT_ROUND_TRIP: f64 = 1e-3;
/// Number of trajectories from which the time left is estimated.
const RECENT: usize = 8;

/// A term's share of a trajectory.
fn share_of(
    TermOutcome { name, level, delta, heat_bath_seconds, value_seconds, force }: &TermOutcome,
) -> String {
    let own = delta.map_or(String::new(), |delta| {
        let [heat_bath, value] = [heat_bath_seconds, value_seconds].map(|seconds| span(*seconds));
        format!("; dS {delta:+.4}, heat bath {heat_bath}, action {value}")
    });
    let iterations = if force.iterations > 0 { format!(", {} it", force.iterations) } else { String::new() };
    format!(
        "{name}: level {level}, {} forces, |F| {:.4}, max {:.3}{iterations}, {}{own}",
        force.kicks,
        force.norm,
        force.max,
        span(force.seconds)
    )
}

/// The log of a run; silent on all ranks except the first. Errors of writing the log do not stop the run, since the
/// results are in its files.
pub(super) struct Report {
    speaks: bool,
    verbose: bool,
    total: u64,
    thermalisation: u64,
    /// Accepted trajectories after thermalisation, and all trajectories after it.
    accepted: u64,
    decided: u64,
    rejected_in_a_row: u64,
    /// Whether a great dH was told.
    strayed: bool,
    astray_in_a_row: u64,
    /// Seconds of the last trajectories, including measurements and files.
    recent: VecDeque<f64>,
    /// Of each trajectory of this job whose energy was counted.
    joules: Vec<f64>,
}

impl Report {
    /// A log for `total` trajectories, of which the first `thermalisation` are accepted whatever dH is.
    pub(super) fn new(speaks: bool, verbose: bool, total: u64, thermalisation: u64) -> Self {
        Self {
            speaks,
            verbose,
            total,
            thermalisation,
            accepted: 0,
            decided: 0,
            rejected_in_a_row: 0,
            strayed: false,
            astray_in_a_row: 0,
            recent: VecDeque::new(),
            joules: Vec::new(),
        }
    }

    /// Counts the trajectories of earlier jobs.
    pub(super) fn remember(&mut self, history: &Table) {
        for (number, accepted) in history.reals("trajectory").into_iter().zip(history.reals("accepted")) {
            self.count(number as u64, accepted > 0.0);
        }
    }

    fn count(&mut self, number: u64, accepted: bool) {
        if number > self.thermalisation {
            self.decided += 1;
            self.accepted += u64::from(accepted);
            self.rejected_in_a_row = if accepted { 0 } else { self.rejected_in_a_row + 1 };
        }
    }

    /// Prints a line.
    pub(super) fn line(&self, text: &str) {
        if self.speaks {
            let _ = say(text);
        }
    }

    /// Prints a warning.
    pub(super) fn warn(&self, text: &str) {
        if self.speaks {
            warn(text);
        }
    }

    /// Reports a trajectory; `terms` are the terms' own lines.
    pub(super) fn trajectory(
        &mut self,
        number: u64,
        outcome: &Outcome,
        plaquette: f64,
        terms: &[(&str, TermReport)],
    ) {
        let Outcome { delta_h, accepted, levels, terms: shares, seconds, .. } = outcome;
        self.count(number, *accepted);
        let decides = number > self.thermalisation;
        let verdict = match (decides, accepted) {
            (false, _) => "therm",
            (true, true) => "accept",
            (true, false) => "reject",
        };
        let iterations: usize = levels.iter().map(|level| level.iterations).sum();
        let solves = if iterations > 0 { format!("{iterations:>8} it") } else { String::new() };
        let acceptance = if decides {
            format!("  acc {:.2}", self.accepted as f64 / self.decided as f64)
        } else {
            String::new()
        };
        let width = self.total.to_string().len();
        let change = if delta_h.abs() < 1e3 { format!("{delta_h:+.4}") } else { format!("{delta_h:+.2e}") };
        self.line(&format!(
            "{number:>width$}/{} {verdict:<6} dH {change:>9}  plaquette {plaquette:.8}{solves} {:>8}{acceptance}{}",
            self.total,
            span(*seconds),
            self.left(number, *seconds)
        ));
        if self.verbose {
            for (n, level) in levels.iter().enumerate() {
                let iterations =
                    if level.iterations > 0 { format!(", {} it", level.iterations) } else { String::new() };
                self.line(&format!(
                    "  level {n}: |F| {:.3}, max {:.3}{iterations}, {}",
                    level.norm,
                    level.max,
                    span(level.seconds)
                ));
            }
            shares.iter().for_each(|share| self.line(&format!("  {}", share_of(share))));
        }
        for (name, term) in terms.iter().filter(|(_, term)| term.notable || self.verbose) {
            self.line(&format!("  {name}: {}", term.text));
        }
        let astray = delta_h.is_nan() || delta_h.abs() > GREAT_DELTA_H;
        self.astray_in_a_row = if astray { self.astray_in_a_row + 1 } else { 0 };
        if decides {
            self.judge(number, *delta_h);
        } else if self.astray_in_a_row > 0 && self.astray_in_a_row.is_multiple_of(MANY_ASTRAY) {
            self.warn(&format!(
                "trajectory {number}: the last {} in a row of thermalisation have |dH| above {GREAT_DELTA_H}, and all were \
                 accepted: the chain does not go where the action takes it; try {ADVICE}",
                self.astray_in_a_row
            ));
        }
    }

    /// Reports a measurement of reversibility, and warns of a poor one.
    pub(super) fn reversibility(&self, number: u64, found: &Reversibility) {
        let Reversibility { distance, round_trip_delta_h, .. } = found;
        self.line(&format!(
            "trajectory {number}: reversibility: max |U - U_back| {distance:.2e}, |dH| there and back {round_trip_delta_h:.2e}"
        ));
        if round_trip_delta_h.is_nan() || *round_trip_delta_h > GREAT_ROUND_TRIP {
            self.warn(&format!(
                "trajectory {number}: molecular dynamics is not reversible: there and back changes H by \
                 {round_trip_delta_h:.2e}; try a smaller force_residual, most of all with 'guess'"
            ));
        }
    }

    /// With `verbose`, reports the most memory that this rank has held, as `--check` counts it, and what the system says.
    pub(super) fn memory(&self, held: &Held) {
        if self.verbose {
            let all =
                most_host_memory().map(|all| format!("; {} of its node in all", megabytes(all as usize)));
            let held = memory(held);
            self.line(&format!("memory: at most {held} on this rank{}", all.unwrap_or_default()));
        }
    }

    /// Reports the speed of files of `bytes` in all, where they took their time.
    pub(super) fn files(&self, bytes: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        if seconds > 1.0 {
            let [all, speed] = [bytes, (bytes as f64 / seconds) as usize].map(megabytes);
            self.line(&format!("files: {all} written and read back in {}, {speed}/s", span(seconds)));
        }
    }

    /// Records the time of a trajectory, including measurements and files.
    pub(super) fn took(&mut self, time: Duration) {
        self.recent.push_back(time.as_secs_f64());
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    /// Records the energy of a trajectory in joules, if it was counted.
    pub(super) fn spent(&mut self, joules: Option<f64>) {
        self.joules.extend(joules);
    }

    /// The mean energy of this job's trajectories, or why there is none.
    pub(super) fn energy(&self, unread: Option<String>) {
        if !self.joules.is_empty() {
            let mean = self.joules.iter().sum::<f64>() / self.joules.len() as f64;
            self.line(&format!("  a trajectory of this job took {mean:.0} J on average"));
        }
        unread.iter().for_each(|why| self.line(&format!("  energy was not counted: {why}")));
    }

    /// `16 s left`, estimated from the last trajectories of this job, or from the `seconds` of its first one.
    fn left(&self, number: u64, seconds: f64) -> String {
        let mean = match self.recent.len() {
            0 => seconds,
            n => self.recent.iter().sum::<f64>() / n as f64,
        };
        let left = self.total.saturating_sub(number);
        if left == 0 { String::new() } else { format!("  {} left", span(mean * left as f64)) }
    }

    /// Warns about a chain that does not move.
    fn judge(&mut self, number: u64, delta_h: f64) {
        if delta_h.abs() > GREAT_DELTA_H {
            // The advice once; the log has each dH.
            if !self.strayed {
                self.warn(&format!(
                    "trajectory {number}: dH = {delta_h:+.3e}, the integration goes astray; try {ADVICE}"
                ));
            }
            self.strayed = true;
        }
        let rejected = self.rejected_in_a_row;
        if rejected > 0 && rejected.is_multiple_of(MANY_REJECTIONS) {
            self.warn(&format!("trajectory {number}: the last {rejected} were rejected; try {ADVICE}"));
        }
    }

    /// Summarises the chain so far from its history.
    pub(super) fn summary(&self, history: &Table) {
        let column = |name: &str| history.reals(name);
        let decided = |values: Vec<f64>| -> Vec<f64> {
            let numbers = column("trajectory");
            let after = |n: &f64| *n > self.thermalisation as f64;
            values.into_iter().zip(numbers).filter(|(_, n)| after(n)).map(|(value, _)| value).collect()
        };
        let mean = |values: &[f64]| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
            (mean, (variance / n).sqrt())
        };
        let accepted = decided(column("accepted"));
        if !accepted.is_empty() {
            let (exp, exp_error) =
                mean(&decided(column("delta_h")).iter().map(|dh| (-dh).exp()).collect::<Vec<_>>());
            let (plaquette, error) = mean(&decided(column("plaquette")));
            self.line(&format!(
                "  after thermalisation: acceptance {:.2} of {}, <exp(-dH)> {}, plaquette {}",
                mean(&accepted).0,
                accepted.len(),
                with_error(exp, exp_error),
                with_error(plaquette, error),
            ));
        }
        let variance = |name: &str| -> Option<f64> {
            // Rows of older versions say nothing of terms.
            let told: Vec<f64> = decided(column(name)).into_iter().filter(|value| !value.is_nan()).collect();
            let (_, error) = mean(&told);
            Some(error * error * told.len() as f64).filter(|variance| variance.is_finite())
        };
        let terms = history.columns.iter().filter_map(|(name, _)| Some((name, name.strip_prefix("dS_of_")?)));
        let terms = terms.filter_map(|(column, term)| Some(format!("{term} {:.2e}", variance(column)?)));
        if let Some(of_h) = variance("delta_h") {
            let terms = terms.map(|term| format!(", {term}")).collect::<String>();
            self.line(&format!("  variance of dH {of_h:.2e}; of dS:{}", terms.replacen(',', "", 1)));
        }
        // A row may say anything, with the right checksum.
        let mut seconds = column("seconds");
        seconds.retain(|seconds| (0.0..1e9).contains(seconds));
        if !seconds.is_empty() {
            let mean = span(mean(&seconds).0);
            self.line(&format!("  a trajectory took {mean} on average; errors are without autocorrelation"));
        }
    }
}
