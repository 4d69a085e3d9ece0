//! What `hmc tune` prints: a line for each trial as soon as it was walked, then the proposal beside the input's levels.

use super::{Reason, Tune, edit};
use crate::app::AppError;
use crate::app::bench::{TermRow, say_terms};
use crate::app::output::{json, say, span};
use crate::field::Domain;
use crate::hmc::{Expected, Level, Model, Outcome, Trial, acceptance, forces};
use crate::input::Input;
use crate::lattice::shape;
use serde::Serialize;

/// A dH that is this many times the expected one is told.
const FAR: f64 = 2.0;
/// So much more time than by the model is told.
const BUSY: f64 = 1.5;

/// A level as in the input.
#[derive(Serialize)]
struct Keys {
    integrator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda: Option<f64>,
    steps: u32,
}

/// What was expected of a proposal before it was walked.
#[derive(Serialize)]
struct Foretold {
    delta_h: Vec<f64>,
    mean_square: f64,
    acceptance: f64,
    seconds: f64,
}

/// A trial.
#[derive(Serialize)]
pub(super) struct Line {
    reason: Reason,
    levels: Vec<Keys>,
    /// Evaluations in a trajectory, by level.
    forces: Vec<u64>,
    /// From each start.
    delta_h: Vec<f64>,
    /// Of dH.
    mean_square: f64,
    acceptance: f64,
    /// Of a trajectory; of its forces, by level.
    seconds: f64,
    force_seconds: Vec<f64>,
    /// Of a trajectory, by the model of all trials: what else the machine does disturbs it less.
    modelled_seconds: f64,
    expected: Option<Foretold>,
    #[serde(skip)]
    trial: Trial,
}

/// All trials, and the proposal.
#[derive(Serialize)]
pub(super) struct Table {
    lattice: String,
    ranks: usize,
    device: String,
    tau: f64,
    wanted: f64,
    pub(super) lines: Vec<Line>,
    /// The terms, in the trajectories with the input's levels if they are short enough.
    terms: Vec<TermRow>,
    /// Of those trajectories, as of their terms, the mean and not the least.
    mean_seconds: f64,
    /// Root mean square of what each level contributes to dH of the proposal.
    shares: Vec<Option<f64>>,
    /// Its place in `lines`, and its seconds by the model, which has them from all trials.
    proposal: usize,
    proposal_seconds: f64,
    /// Whether the model proposes nothing that was not walked.
    settled: bool,
    #[serde(skip)]
    speaks: bool,
}

/// `6 2mn, 1 omf4`
fn named(levels: &[Level]) -> String {
    let name = |Level { scheme, steps }: &Level| {
        let lambda = edit::own_lambda(*scheme).map_or(String::new(), |lambda| format!(" {lambda}"));
        format!("{steps} {}{lambda}", edit::word(*scheme))
    };
    levels.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn listed(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `0.81 (0.69 to 0.93)`: the range of one standard deviation of `<dH^2>` over so many starts.
fn with_range(mean_square: f64, starts: usize) -> String {
    let relative = (2.0 / starts as f64).sqrt();
    let at = |factor: f64| acceptance((mean_square * factor).max(0.0));
    format!("{:.2} ({:.2} to {:.2})", at(1.0), at(1.0 + relative), at(1.0 - relative))
}

impl Table {
    /// Says what will be done.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn new(input: &Input, domain: &Domain, args: &Tune, speaks: bool) -> Result<Self, AppError> {
        let ranks = domain.comm().size();
        let (lattice, device, tau) = (shape(input.extents), domain.device().backend().name(), input.hmc.tau);
        if speaks {
            let many = if ranks == 1 { "" } else { "s" };
            say(format_args!("{lattice} on {ranks} rank{many}; {device}"))?;
            say(format_args!(
                "trials: trajectories of length {tau} from each of {} starts; nothing of them is written",
                args.trajectories
            ))?;
            say(format_args!(
                "  {:44} {:18} {:>9} {:>11} {:>9}",
                "steps and schemes, the outermost first", "forces", "rms of dH", "acceptance", "time"
            ))?;
        }
        Ok(Self {
            lattice,
            ranks,
            device,
            tau,
            wanted: args.acceptance,
            lines: Vec::new(),
            terms: Vec::new(),
            mean_seconds: 0.0,
            shares: Vec::new(),
            proposal: 0,
            proposal_seconds: f64::INFINITY,
            settled: false,
            speaks,
        })
    }

    /// Says that the starts are being made, which takes a while.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn begin(&self, starts: u64) -> Result<(), AppError> {
        if !self.speaks {
            return Ok(());
        }
        say(format_args!("  (first {} trajectories, which find short steps and make the starts)", starts + 1))
    }

    /// Says that these steps are too long to begin with.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn too_long(&self, levels: &[Level], delta_h: f64) -> Result<(), AppError> {
        if !self.speaks {
            return Ok(());
        }
        say(format_args!("  {:44} dH {delta_h:+.3}: too long to begin with", named(levels)))
    }

    /// Adds a trial and says what came of it.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn add(
        &mut self,
        trial: Trial,
        reason: Reason,
        expected: Option<Expected>,
    ) -> Result<(), AppError> {
        let foretold = |Expected { delta_h, mean_square, seconds }| Foretold {
            delta_h,
            mean_square,
            acceptance: acceptance(mean_square),
            seconds,
        };
        let keys = |level: &Level| Keys {
            integrator: edit::word(level.scheme),
            lambda: edit::own_lambda(level.scheme),
            steps: level.steps,
        };
        let line = Line {
            reason,
            levels: trial.levels.iter().map(keys).collect(),
            forces: forces(&trial.levels),
            delta_h: trial.delta_h.clone(),
            mean_square: trial.mean_square(),
            acceptance: acceptance(trial.mean_square()),
            seconds: trial.seconds(),
            force_seconds: trial.force_seconds.clone(),
            modelled_seconds: trial.seconds(),
            expected: expected.map(foretold),
            trial,
        };
        if self.speaks {
            let what = match reason {
                Reason::Input => "  the input's",
                Reason::Trial => "",
                Reason::Proposal => "  a proposal",
            };
            say(format_args!(
                "  {:44} {:18} {:9.4} {:11.2} {:>9}{what}",
                named(&line.trial.levels),
                listed(&line.forces),
                line.mean_square.sqrt(),
                line.acceptance,
                span(line.seconds)
            ))?;
        }
        self.lines.push(line);
        Ok(())
    }

    /// Keeps the terms of the first trial after that of the starts.
    pub(super) fn tell_terms(&mut self, terms: Vec<TermRow>, outcomes: &[Outcome]) {
        self.terms = terms;
        self.mean_seconds =
            outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>() / outcomes.len() as f64;
    }

    /// All trials so far.
    pub(super) fn trials(&self) -> Vec<Trial> {
        self.lines.iter().map(|line| line.trial.clone()).collect()
    }

    /// Outermost levels with which two proposals had a lower acceptance than wanted: that the level is at fault is more
    /// likely than what the model says.
    pub(super) fn refused(&self) -> Vec<Level> {
        let missed = |line: &&Line| line.reason == Reason::Proposal && line.acceptance < self.wanted;
        let outermost: Vec<Level> =
            self.lines.iter().filter(missed).map(|line| line.trial.levels[0]).collect();
        let twice = |level: &Level| outermost.iter().filter(|other| *other == level).count() > 1;
        outermost.iter().copied().filter(twice).collect()
    }

    /// Whether these levels were walked already: then no further proposal comes.
    pub(super) fn settle(&mut self, levels: &[Level]) -> bool {
        self.settled = self.lines.iter().any(|line| line.trial.levels == levels);
        self.settled
    }

    /// Proposes the fastest of the trials with the acceptance wanted, or the last if there is none. The times are the
    /// model's, which has them from all trials.
    pub(super) fn choose(&mut self, model: &Model) {
        for line in &mut self.lines {
            let expected = model.expected(&line.trial.levels);
            line.modelled_seconds = expected.map_or(line.seconds, |expected| expected.seconds);
        }
        let seconds = |line: &Line| line.modelled_seconds;
        let good = self.lines.iter().enumerate().filter(|(_, line)| line.acceptance >= self.wanted);
        let fastest = good.min_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)));
        self.proposal = fastest.map_or(self.lines.len() - 1, |(place, _)| place);
        self.proposal_seconds = seconds(&self.lines[self.proposal]);
        self.shares = model.shares(self.levels());
    }

    /// The proposed levels.
    pub(super) fn levels(&self) -> &[Level] {
        &self.lines[self.proposal].trial.levels
    }

    /// Of a trajectory with the proposed levels; none if their acceptance is below the one wanted.
    pub(super) fn best_seconds(&self) -> f64 {
        let good = self.lines[self.proposal].acceptance >= self.wanted;
        if good { self.proposal_seconds } else { f64::INFINITY }
    }

    /// The proposal, in a line.
    pub(super) fn proposed(&self) -> String {
        told(&self.lines[self.proposal])
    }

    /// Prints terms and proposal, or all as JSON.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn print(&self, input: &Input, as_json: bool) -> Result<(), AppError> {
        if as_json {
            return say(json(self));
        }
        let own = self.lines.iter().find(|line| line.reason == Reason::Input);
        let walked = &self.lines[1];
        say(format_args!("terms, with {}:", named(&walked.trial.levels)))?;
        say_terms(&self.terms, self.mean_seconds)?;
        match own {
            Some(own) => say(format_args!("input: {}", told(own)))?,
            None => say("input: its steps are too long for trials")?,
        }
        let proposed = &self.lines[self.proposal];
        say(format_args!("proposal: {}", told(proposed)))?;
        match &proposed.expected {
            Some(expected) => {
                say(format_args!(
                    "  expected before it was walked: rms of dH {:.4}, acceptance {}, {} a trajectory",
                    expected.mean_square.sqrt(),
                    with_range(expected.mean_square, expected.delta_h.len()),
                    span(expected.seconds)
                ))?;
                if proposed.mean_square > FAR * FAR * expected.mean_square {
                    say(
                        "  the rms of dH is far from what was expected: --trajectories of more starts tell more",
                    )?;
                }
                let pairs = expected.delta_h.iter().zip(&proposed.delta_h);
                let pairs: Vec<String> =
                    pairs.map(|(expected, found)| format!("{expected:+.3} {found:+.3}")).collect();
                say(format_args!("  dH from each start, expected and found: {}", pairs.join(", ")))?;
            }
            None => say("  it is one of the first trials: nothing faster was found")?,
        }
        if proposed.seconds > BUSY * proposed.modelled_seconds {
            say(format_args!(
                "  it took {} when it was walked, {} by the model of all trials: the machine was busy, and times are rough",
                span(proposed.seconds),
                span(proposed.modelled_seconds)
            ))?;
        }
        if own.is_some_and(|own| {
            own.acceptance >= self.wanted && own.modelled_seconds <= proposed.modelled_seconds
        }) {
            say("  it is not faster than the input, which may stay")?;
        }
        let shares =
            self.shares.iter().map(|share| share.map_or("-".to_owned(), |share| format!("{share:.3}")));
        say(format_args!("  rms of what each level adds to dH: {}", shares.collect::<Vec<_>>().join(", ")))?;
        if proposed.acceptance < self.wanted {
            say(format_args!("  its acceptance is below the {} wanted: more starts tell more", self.wanted))?;
        }
        if !self.settled {
            say("  the model has further proposals, which were not walked")?;
        }
        say("the time decides between proposals: on another machine they may differ\n")?;
        say(edit::tables(self.levels(), &input.hmc.terms).trim_end())
    }
}

/// A trial with its levels; its time by the model.
fn told(line: &Line) -> String {
    format!(
        "{}: rms of dH {:.4}, acceptance {}, {} a trajectory",
        named(&line.trial.levels),
        line.mean_square.sqrt(),
        with_range(line.mean_square, line.delta_h.len()),
        span(line.modelled_seconds)
    )
}
