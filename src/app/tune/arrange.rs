//! Other Hasenbusch masses, and quarks' terms on other levels: one change at a time, kept if it saves time at the same
//! acceptance.
//!
//! For each change, trials tell the error of every level with the schemes proposed before, from the same starts. What the
//! model then proposes is walked only if it is expected to be faster than the best so far.

use super::edit::{self, Mass};
use super::table::Table;
use super::{Reason, Settled, Tune, Walker, design};
use crate::app::output::{json, say, span};
use crate::app::{AppError, Ranks};
use crate::hmc::HmcError;
use crate::input::{self, Fermion, Input};
use serde::Serialize;

/// Factors of a mass's distance from the quark's, one after the other, up and down.
const FACTORS: [f64; 2] = [2.0, 1.4];
/// What a change has to save of the time of a trajectory: less may be the noise of clocks.
const SAVED: f64 = 0.02;
/// Changes that are tried.
const TRIES: usize = 40;

/// A change of an input.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Change {
    Mass { from: f64, to: Mass },
    Term { term: String, from: usize, to: usize },
}

/// A change that was tried.
#[derive(Debug, Serialize)]
struct Tried {
    change: Change,
    /// Of a trajectory with the best steps found for it, or as the model expects; `None` if there are none with the
    /// acceptance wanted.
    seconds: Option<f64>,
    kept: bool,
}

/// The best arrangement.
pub(super) struct Found {
    pub(super) input: Input,
    /// Its trials, if a change was kept.
    table: Option<Table>,
    tried: Vec<Tried>,
}

/// `input` with another text: levels, masses and places of terms.
pub(super) fn with_text(input: &Input, text: String, comm: &Ranks) -> Result<Input, AppError> {
    let read = input::parse(&text, "the proposal", comm.size())?.input;
    // Where to start may be another place than the text's.
    Ok(Input { run: input.run.clone(), ..read })
}

/// What a change changes: masses, and the terms of each level in any order.
fn arrangement(input: &Input) -> (Vec<Fermion>, Vec<Vec<String>>) {
    let mut terms = input.hmc.terms.clone();
    terms.iter_mut().for_each(|terms| terms.sort());
    (input.fermions.clone(), terms)
}

impl Change {
    /// `what: from -> to`
    fn told(&self) -> String {
        match self {
            Self::Mass { from, to } => format!("{} of {}: {from} -> {}", to.key, to.term, to.value),
            Self::Term { term, from, to } => format!("{term}: from level {} to {}", from + 1, to + 1),
        }
    }

    /// The text of `input` with the change.
    fn text(&self, input: &Input) -> String {
        match self {
            Self::Mass { to, .. } => edit::with_mass(&input.text, to),
            Self::Term { term, from, to } => {
                let text = edit::with_term(&input.text, term, *to);
                if input.hmc.terms[*from].len() > 1 {
                    return text;
                }
                // The level is gone.
                edit::with_levels(&text, &design::without(&input.hmc.levels, *from))
            }
        }
    }
}

/// The changes that are tried next to an input.
fn changes(args: &Tune, input: &Input, factor: f64) -> Vec<Change> {
    let mut changes = Vec::new();
    if args.masses {
        for mass in edit::masses(&input.text) {
            for factor in [factor, 1.0 / factor] {
                changes.push(Change::Mass { from: mass.value, to: mass.times(factor) });
            }
        }
    }
    let terms = &input.hmc.terms;
    for (from, own) in terms.iter().enumerate().filter(|_| args.levels) {
        for term in own.iter().filter(|term| *term != "gauge") {
            for to in [from.wrapping_sub(1), from + 1].into_iter().filter(|to| *to < terms.len()) {
                changes.push(Change::Term { term: term.clone(), from, to });
            }
        }
    }
    changes
}

/// Tries changes of `input` with the levels of `table`, until none is better or 40 were tried.
pub(super) fn search(
    args: &Tune,
    mut walker: Walker,
    input: &Input,
    table: &Table,
) -> Result<Found, AppError> {
    let comm = walker.comm;
    let speaks = comm.rank() == 0 && !args.json;
    let proposed = with_text(input, edit::with_levels(&input.text, table.levels()), comm)?;
    let mut found = Found { input: proposed, table: None, tried: Vec::new() };
    let mut best = table.best_seconds();
    let mut seen = vec![arrangement(&found.input)];
    if speaks {
        say(format_args!("\nchanges, tried one after the other; to begin with, {}", took(best)))?;
    }
    for factor in FACTORS {
        let mut open = changes(args, &found.input, factor);
        while !open.is_empty() && found.tried.len() < TRIES {
            let change = open.remove(0);
            let text = change.text(&found.input);
            // Masses in the wrong order, or a level without terms: no input.
            let Ok(input) = with_text(&found.input, text, comm) else { continue };
            let own = arrangement(&input);
            if seen.contains(&own) {
                continue;
            }
            seen.push(own);
            let limit = (1.0 - SAVED) * best;
            let (table, seconds);
            (walker, table, seconds) = walker.try_arrangement(args, &input, limit)?;
            let kept = seconds < limit;
            if speaks {
                let outcome = if kept { table.proposed() } else { took(seconds) };
                say(format_args!("  {}: {outcome}", change.told()))?;
            }
            let seconds = Some(seconds).filter(|seconds| seconds.is_finite());
            found.tried.push(Tried { change, seconds, kept });
            if kept {
                best = table.best_seconds();
                found.input = with_text(&input, edit::with_levels(&input.text, table.levels()), comm)?;
                found.table = Some(table);
                open = changes(args, &found.input, factor);
            }
        }
    }
    Ok(found)
}

fn took(seconds: f64) -> String {
    if seconds.is_finite() {
        format!("{} a trajectory", span(seconds))
    } else {
        "no steps with the acceptance wanted".to_owned()
    }
}

impl Walker<'_> {
    /// Trials and proposals of another arrangement, and the seconds of a trajectory: those expected if they are more than
    /// `limit`, infinity if there are no steps with the acceptance wanted.
    fn try_arrangement(self, args: &Tune, input: &Input, limit: f64) -> Result<(Self, Table, f64), AppError> {
        let mut walker = self.with_input(input)?;
        let mut table = Table::new(input, walker.chain.links.domain(), args, false)?;
        let seconds = match walker.arrangement_trials(&mut table, input, args.acceptance, limit) {
            Ok(Settled::Proposed) => table.best_seconds(),
            Ok(Settled::Slower(seconds)) => seconds,
            // dH or a force that is NaN: of no use.
            Ok(Settled::Nothing)
            | Err(AppError::Trajectory { source: HmcError::Hamiltonian | HmcError::Force { .. }, .. }) => {
                f64::INFINITY
            }
            Err(error) => return Err(error),
        };
        Ok((walker, table, seconds))
    }

    fn arrangement_trials(
        &mut self,
        table: &mut Table,
        input: &Input,
        wanted: f64,
        limit: f64,
    ) -> Result<Settled, AppError> {
        let basis = design::separate(&input.hmc.levels);
        for levels in std::iter::once(basis.clone()).chain(design::refined(&basis)) {
            let (trial, _) = self.walk(&levels)?;
            table.add(trial, Reason::Trial, None)?;
        }
        self.settle(table, wanted, limit)
    }
}

/// What `hmc tune --masses --levels` found, as JSON.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    first: &'a Table,
    changes: &'a [Tried],
    /// The trials of the last change that was kept.
    arranged: Option<&'a Table>,
}

impl Found {
    /// Prints the best arrangement, or all as JSON.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn print(&self, first: &Table, as_json: bool) -> Result<(), AppError> {
        if as_json {
            return say(json(&Told { first, changes: &self.tried, arranged: self.table.as_ref() }));
        }
        let Some(table) = &self.table else {
            return say("no change saves more than clocks may err: masses and places of terms stay");
        };
        say(format_args!("arrangement: {}", table.proposed()))?;
        for mass in edit::masses(&self.input.text) {
            say(format_args!("  {} of {}: {}", mass.key, mass.term, mass.value))?;
        }
        say(format_args!("\n{}", edit::tables(table.levels(), &self.input.hmc.terms).trim_end()))
    }
}
