//! What the program says; lines and progress of a run: a bar with the time left on a terminal, plain lines otherwise.

use super::AppError;
use crate::hmc::Outcome;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

/// Says a line that is a command's product. A reader that has enough (`head`) is no error.
///
/// # Errors
/// It cannot be written.
pub(super) fn say(text: impl Display) -> Result<(), AppError> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(()),
    }
}

/// Warns. Where nobody listens the work goes on.
pub(super) fn warn(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "warning: {text}");
}

/// Where a run's lines go; silent on all ranks but the first. A log that cannot be written stops no run: what counts is in
/// its files.
pub struct Report {
    bar: Option<ProgressBar>,
    speaks: bool,
}

impl Report {
    /// For `total` trajectories of which `done` are there.
    pub fn new(speaks: bool, done: u64, total: u64) -> Self {
        let bar = (speaks && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(total).with_position(done);
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} trajectories, {eta} left") {
                bar.set_style(style);
            }
            bar.reset_eta();
            bar
        });
        Self { bar, speaks }
    }

    /// Says a line.
    pub fn line(&self, text: &str) {
        match (&self.bar, self.speaks) {
            (Some(bar), _) => drop(bar.suspend(|| say(text))),
            (None, true) => drop(say(text)),
            _ => {}
        }
    }

    /// Warns.
    pub fn warn(&self, text: &str) {
        match (&self.bar, self.speaks) {
            (Some(bar), _) => bar.suspend(|| warn(text)),
            (None, true) => warn(text),
            _ => {}
        }
    }

    /// Tells a trajectory.
    pub fn trajectory(&self, number: u64, outcome: &Outcome, plaquette: f64) {
        let levels: String = outcome
            .levels
            .iter()
            .enumerate()
            .map(|(n, level)| {
                let iterations =
                    if level.iterations > 0 { format!(" it {}", level.iterations) } else { String::new() };
                format!(
                    " | level {n}: |F| {:.3} max {:.3}{iterations} {:.2} s",
                    level.norm, level.max, level.seconds
                )
            })
            .collect();
        let verdict = if outcome.accepted { "accept" } else { "reject" };
        self.line(&format!(
            "trajectory {number}: dH {:+.6e} {verdict} plaquette {plaquette:.8}{levels} | {:.2} s",
            outcome.delta_h, outcome.seconds
        ));
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}
