//! The program's output: results of commands, warnings, and the log of a run with one line per trajectory, the time
//! left, and a summary at the end.

use super::{AppError, plan};
use crate::action::TermReport;
use crate::device::{Held, most_host_memory};
use crate::hmc::{Outcome, Reversibility, TermOutcome};
use crate::io::Table;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
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

/// A text in which control characters, which a terminal would obey, are shown as they are written in Rust. Names in files of
/// others may hold any.
pub(super) fn plain(text: impl Display) -> String {
    let escaped = |c: char| {
        // Marks that turn the direction of a text would show it as another one.
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if turns || (c.is_control() && !"\n\t".contains(c)) {
            c.escape_default().to_string()
        } else {
            c.into()
        }
    };
    text.to_string().chars().map(escaped).collect()
}

/// Prints a line of a command's output. It is not an error if the reader has closed the pipe (`head`).
///
/// # Errors
/// The line cannot be written.
pub(super) fn say(text: impl Display) -> Result<(), AppError> {
    match writeln!(std::io::stdout(), "{}", plain(text)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(()),
    }
}

/// Prints a text as it is.
///
/// # Errors
/// As of a line.
pub fn say_text(text: &[u8]) -> Result<(), AppError> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(()),
    }
}

/// An object as a line of JSON: fields in their order, reals as the shortest text that reads back to the same bits, `null`
/// for NaN.
///
/// # Panics
/// A map whose keys are no texts.
pub(super) fn json(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("objects of this program have texts as keys")
}

/// For fields of JSON that are what is shown of a value.
pub(super) fn shown<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Warns. Where nobody listens the work goes on.
pub(super) fn warn(text: impl Display) {
    complain(format_args!("warning: {text}"));
}

/// A line on stderr, in one write: a launcher puts other lines between two.
pub(super) fn complain(text: impl Display) {
    let _ = std::io::stderr().write_all(format!("{}\n", plain(text)).as_bytes());
}

/// A time in a suitable unit.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        s if s > 0.0 && s < 0.00995 => format!("{:.1} ms", 1e3 * s),
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 600.0 => format!("{s:.0} s"),
        s if s < 2.0 * 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * 86400.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86400.0),
    }
}

/// A mean with its error in units of its last digit: `0.4807(3)`; of any size: `3.1(4)e-39`; `-` where it is unknown.
pub(super) fn with_error(mean: f64, error: f64) -> String {
    if !mean.is_finite() {
        return "-".to_owned();
    }
    let size = if error.is_finite() { mean.abs().max(error) } else { mean.abs() };
    if size > 0.0 && !(1e-6..1e9).contains(&size) {
        let power = size.log10().floor() as i32;
        // Of numbers below the least power of ten that there is, what is left is 0.
        let [mean, error] = [mean, error].map(|x| x / 10f64.powi(power));
        return if mean.is_finite() {
            format!("{}e{power}", with_error(mean, error))
        } else {
            "0".to_owned()
        };
    }
    // An error that rounding alone makes is none.
    if !(error > 1e-14 * mean.abs() && error.is_finite()) {
        return format!("{mean:.8}");
    }
    // Two digits of the error if it is below 20 units of the last digit.
    let digits =
        (-(error.log10().floor()) as i32 + i32::from(error / 10f64.powf(error.log10().floor()) < 2.0)).max(0);
    format!("{mean:.*}({:.0})", digits as usize, error * 10f64.powi(digits))
}

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
        let Outcome { delta_h, accepted, levels, terms: shares, seconds } = outcome;
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
            let all = most_host_memory()
                .map(|all| format!("; {} of its node in all", plan::megabytes(all as usize)));
            let held = plan::memory(held);
            self.line(&format!("memory: at most {held} on this rank{}", all.unwrap_or_default()));
        }
    }

    /// Reports the speed of files of `bytes` in all, where they took their time.
    pub(super) fn files(&self, bytes: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        if seconds > 1.0 {
            let [all, speed] = [bytes, (bytes as f64 / seconds) as usize].map(plan::megabytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_stand_in_the_last_digits() {
        assert_eq!(with_error(0.480_712, 0.000_31), "0.4807(3)");
        assert_eq!(with_error(0.480_712, 0.000_14), "0.48071(14)");
        assert_eq!(with_error(0.9927, 0.0099), "0.993(10)");
        assert_eq!(with_error(12.3, 2.0), "12(2)");
        assert_eq!(with_error(0.5, f64::NAN), "0.50000000");
        assert_eq!(with_error(f64::NAN, f64::NAN), "-");
        assert_eq!(with_error(1.0e-39, 1.9e-39), "1.0(19)e-39");
        assert_eq!(with_error(2.34e12, 3e10), "2.34(3)e12");
        assert_eq!(with_error(1.2446e134, f64::NAN), "1.24460000e134");
        assert_eq!(with_error(-0.001_029_56, 1.6e-19), "-0.00102956");
        assert_eq!(with_error(5e-324, 0.0), "0");
    }

    #[test]
    fn times_have_units() {
        let told = [0.0042, 0.39, 16.0, 250.0, 900.0, 40_000.0, 1e6].map(span);
        assert_eq!(told, ["4.2 ms", "0.39 s", "16.0 s", "250 s", "15 min", "11.1 h", "11.6 d"]);
    }
}
