//! Lines and progress of a run: a bar with the time left on a terminal, plain lines otherwise.

use crate::hmc::Outcome;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Where a run's lines go; silent on all ranks but the first.
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
            (Some(bar), _) => bar.suspend(|| println!("{text}")),
            (None, true) => println!("{text}"),
            _ => {}
        }
    }

    /// Warns.
    pub fn warn(&self, text: &str) {
        match (&self.bar, self.speaks) {
            (Some(bar), _) => bar.suspend(|| eprintln!("warning: {text}")),
            (None, true) => eprintln!("warning: {text}"),
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
