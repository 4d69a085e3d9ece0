//! `method = "auto"`: a trial of methods and precisions on a chain's first links.
//!
//! A trial is the force of a term whose pseudofermions are random numbers of an address that no chain has, so that a
//! chain does not notice it: from then on it is the chain of an input that names the chosen method. Each candidate gets
//! two trials, of which the faster one counts, by the clock of the slowest rank. What counts is all solves of a trajectory: the
//! heat bath, the forces and the action. Multigrid, whose space is made in every trajectory, gets a third trial with it; terms
//! that share a space take it if together they save more than it takes.

use crate::action::{Action, ActionError};
use crate::app::AppError;
use crate::app::output::span;
use crate::comm::Comm;
use crate::field::{AlgebraField, MatrixField, Purpose, RandomAddress};
use crate::hmc::{HmcError, forces};
use crate::input::{Fermion, Input};
use crate::io::Header;
use crate::solver::{Choice, Choices, SolverError};
use std::path::Path;
use std::time::Instant;

/// The trials of a candidate; the first one also compiles and tunes kernels.
const TRIALS: usize = 2;

/// A candidate's best trial.
struct Trial {
    iterations: usize,
    /// Of a force.
    seconds: f64,
    /// More of the first solve in a trajectory.
    setup: f64,
}

/// The trials of a term.
struct Tried<'a> {
    term: &'a str,
    /// Of a trajectory.
    solves: u64,
    /// What terms have in common that share a space.
    space: String,
    trials: Vec<(&'a Choice, Result<Trial, SolverError>)>,
}

impl Tried<'_> {
    /// The fastest candidate that converges, with a set-up or without one: its position, the seconds of its solves in a
    /// trajectory, and of its set-up.
    fn fastest(&self, with_setup: bool) -> Option<(usize, f64, f64)> {
        let converged =
            self.trials.iter().enumerate().filter_map(|(n, (_, trial))| Some((n, trial.as_ref().ok()?)));
        converged
            .filter(|(_, trial)| (trial.setup > 0.0) == with_setup)
            .map(|(n, trial)| (n, self.solves as f64 * trial.seconds, trial.setup))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The seconds of solves that a set-up saves.
    fn saves(&self) -> f64 {
        let seconds = |with_setup| self.fastest(with_setup).map_or(f64::INFINITY, |(_, seconds, _)| seconds);
        (seconds(false) - seconds(true)).max(0.0)
    }

    /// The candidate to take, if any converges. `all` are the trials of all terms.
    fn chosen(&self, all: &[Self]) -> Option<usize> {
        let sharing = || all.iter().filter(|other| other.space == self.space);
        let saved: f64 = sharing().map(Self::saves).sum();
        let setup =
            sharing().filter_map(|other| other.fastest(true)).fold(0.0, |most: f64, (.., own)| most.max(own));
        let taken = self.fastest(saved > setup && self.saves() > 0.0);
        Some(taken.or(self.fastest(false)).or(self.fastest(true))?.0)
    }
}

/// The choices that a file of a chain has.
///
/// # Errors
/// They are not as this program writes them.
pub(super) fn stored(path: &Path, header: &Header) -> Result<Choices, AppError> {
    let Some(text) = &header.solvers else { return Ok(Choices::new()) };
    serde_json::from_str(text).map_err(|error| {
        AppError::Refused(format!("{}: the chosen solvers are not understood: {error}", path.display()))
    })
}

/// The input with a choice for every term that still has to make one, by trials on `links`; `say` gets a table for each.
/// Collective: all ranks choose the same.
///
/// # Errors
/// No candidate of a term converges, a term failed, or memory runs out.
pub(super) fn choose(
    input: &Input,
    links: &MatrixField,
    comm: &dyn Comm,
    say: impl Fn(&str),
) -> Result<Input, AppError> {
    let mut all = Vec::new();
    for (term, candidates) in input.open_choices() {
        let mut trials = Vec::new();
        for candidate in candidates {
            let choice = Choices::from([(term.to_owned(), candidate.clone())]);
            trials.push((candidate, trial(&input.with_choices(&choice)?, term, links, comm)?));
        }
        all.push(Tried { term, solves: solves(input, term), space: space(input, term)?, trials });
    }
    let mut choices = Choices::new();
    for tried in &all {
        let best = tried.chosen(&all);
        say(&table(tried, best));
        let Some(best) = best else {
            let term = tried.term;
            let message =
                format!("no method of \"auto\" solves the systems of term '{term}': name one that does");
            return Err(AppError::Refused(message));
        };
        choices.insert(tried.term.to_owned(), tried.trials[best].0.clone());
    }
    Ok(input.with_choices(&choices)?)
}

/// The solves of a term in a trajectory.
fn solves(input: &Input, term: &str) -> u64 {
    let on_level = |terms: &Vec<String>| terms.iter().any(|name| name == term);
    let level = input.hmc.terms.iter().position(on_level).expect("a term is on a level");
    forces(&input.hmc.levels)[level] + 2
}

/// What terms have in common that share a space of multigrid: the fermion, aggregates, vectors and smoothing.
fn space(input: &Input, term: &str) -> Result<String, AppError> {
    let has_space = |choice: &&Choice| choice.has_set_up();
    let open = input.open_choices();
    let (_, candidates) = open.iter().find(|(name, _)| *name == term).expect("a term that chooses");
    let Some(choice) = candidates.iter().find(has_space) else { return Ok(term.to_owned()) };
    let input = input.with_choices(&Choices::from([(term.to_owned(), choice.clone())]))?;
    let of_term = |(n, fermion): (usize, &Fermion)| {
        let solvers = fermion.solvers();
        let (_, solver) = solvers.iter().find(|(name, _)| *name == term)?;
        Some(format!("{n} {:?} {}", solver.settings.method, solver.settings.precisions[2]))
    };
    Ok(input.fermions.iter().enumerate().find_map(of_term).expect("a fermion with this term"))
}

/// The trials of `term` with its settings in `input`; inside, why a solve failed.
fn trial(
    input: &Input,
    term: &str,
    links: &MatrixField,
    comm: &dyn Comm,
) -> Result<Result<Trial, SolverError>, AppError> {
    let of_term = |name: &str| name == term;
    let fermion = input.fermions.iter().find(|f| f.solvers().iter().any(|(name, _)| of_term(name)));
    let make = || -> Result<Box<dyn Action>, AppError> {
        let terms = fermion.expect("a fermion with this term").terms(links.domain(), 0)?;
        Ok(terms.into_iter().find(|action| of_term(action.name())).expect("this term"))
    };
    let mut forces = Forces::new(links, comm)?;
    let (seconds, done) = forces.fastest(&mut *make()?)?;
    let setup = if done.is_ok() && input.choices()[term].has_set_up() {
        // What was made is gone with the term.
        forces.once(&mut *make()?)?.0 - seconds
    } else {
        0.0
    };
    Ok(done.map(|iterations| Trial { iterations, seconds, setup: setup.max(0.0) }))
}

/// Forces on some links, by the clock.
struct Forces<'a> {
    links: &'a MatrixField,
    comm: &'a dyn Comm,
    force: AlgebraField,
}

impl<'a> Forces<'a> {
    /// Forces are added to one that nobody reads.
    fn new(links: &'a MatrixField, comm: &'a dyn Comm) -> Result<Self, AppError> {
        Ok(Self { links, comm, force: AlgebraField::new(links.domain())? })
    }

    /// The seconds of the fastest of some forces of a term by random pseudofermions, and its iterations, or why a solve
    /// failed. Collective.
    fn fastest(&mut self, action: &mut dyn Action) -> Result<(f64, Result<usize, SolverError>), AppError> {
        let (mut best, mut last) = (f64::INFINITY, Ok(0));
        for _ in 0..TRIALS {
            let (seconds, done) = self.once(action)?;
            (best, last) = (best.min(seconds), done);
            if last.is_err() {
                break;
            }
        }
        Ok((best, last))
    }

    /// The same of one force.
    fn once(&mut self, action: &mut dyn Action) -> Result<(f64, Result<usize, SolverError>), AppError> {
        let Self { links, comm, force } = self;
        let device = links.domain().device();
        set_random(action)?;
        device.synchronize()?;
        comm.barrier();
        let start = Instant::now();
        let done = action.add_force(links, force);
        device.synchronize()?;
        let seconds = comm.max(start.elapsed().as_secs_f64());
        match done {
            Ok(iterations) => Ok((seconds, Ok(iterations))),
            Err(ActionError::Solver(
                error @ (SolverError::NotConverged { .. } | SolverError::NotFinite { .. }),
            )) => Ok((seconds, Err(error))),
            Err(source) => {
                let source = HmcError::Term { term: action.name().to_owned(), source };
                Err(AppError::Trajectory { number: 1, source })
            }
        }
    }
}

/// Draws the pseudofermions of a term for a trial, which makes it forget past solutions.
fn set_random(action: &mut dyn Action) -> Result<(), AppError> {
    let address = RandomAddress { seed: 0, trajectory: 0, purpose: Purpose::TRIAL };
    for pseudofermion in action.pseudofermions() {
        pseudofermion.field.set_random(pseudofermion.parity, 0.5f64.sqrt(), address)?;
    }
    Ok(())
}

/// What was tried of a term, and what it takes.
fn table(Tried { term, solves, trials, .. }: &Tried, best: Option<usize>) -> String {
    let mut text = format!("solver of {term}, \"auto\":");
    for (n, (Choice { method, precision }, trial)) in trials.iter().enumerate() {
        text += &format!("\n  {method:<9} {precision:<18} ");
        text += &match trial {
            Ok(Trial { iterations, seconds, setup }) => {
                let chosen = if best == Some(n) { ", chosen" } else { "" };
                let setup = match setup {
                    0.0 => String::new(),
                    _ => format!(" and {} once in {solves} solves", clock(*setup)),
                };
                format!("{iterations:>6} iterations {:>10}{setup}{chosen}", clock(*seconds))
            }
            Err(error) => format!("out: {error}"),
        };
    }
    text
}

/// Seconds of a trial.
fn clock(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.2} ms", 1e3 * seconds) } else { span(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_was_tried_and_chosen() {
        let choice =
            |method: &str, precision: &str| Choice { method: method.into(), precision: precision.into() };
        let (cg, half, other) =
            (choice("cg", "double-single"), choice("cg", "double-half"), choice("bicgstab", "double-half"));
        let multigrid = choice("multigrid", "double-single-half");
        let failed = SolverError::NotConverged { iterations: 9, residual: 0.5, wanted: 1e-9 };
        let trials = vec![
            (&cg, Ok(Trial { iterations: 120, seconds: 0.0125, setup: 0.0 })),
            (&half, Ok(Trial { iterations: 140, seconds: 0.004, setup: 0.0 })),
            (&other, Err(failed)),
            (&multigrid, Ok(Trial { iterations: 31, seconds: 0.002, setup: 0.5 })),
        ];
        let expected = "solver of light, \"auto\":
  cg        double-single         120 iterations   12.50 ms
  cg        double-half           140 iterations    4.00 ms, chosen
  bicgstab  double-half        out: the solver did not converge: residual 5.000e-1 after 9 iterations, 1.0e-9 was asked for
  multigrid double-single-half     31 iterations    2.00 ms and 500.00 ms once in 21 solves";
        let tried = Tried { term: "light", solves: 21, space: String::new(), trials };
        assert_eq!(table(&tried, tried.chosen(&[])), expected);
    }

    /// A set-up of 50 ms for one term that saves 40 ms, for two of which each saves that, and for a third that is faster without.
    #[test]
    fn terms_that_share_a_space_share_its_cost() {
        let choice = |method: &str| Choice { method: method.into(), precision: String::new() };
        let (cg, multigrid) = (choice("cg"), choice("multigrid"));
        let tried = |term, milliseconds: [f64; 2], space: &str| {
            let [plain, own] = milliseconds.map(|n| 1e-3 * n);
            let of = |seconds, setup| Ok(Trial { iterations: 1, seconds, setup });
            let trials = vec![(&cg, of(plain, 0.0)), (&multigrid, of(own, 0.05))];
            Tried { term, solves: 10, space: space.into(), trials }
        };
        let all = [
            tried("alone", [9.0, 5.0], "own"),
            tried("light", [9.0, 5.0], "light"),
            tried("light-1", [10.0, 6.0], "light"),
            tried("light-2", [1.0, 6.0], "light"),
        ];
        assert_eq!([0, 1, 2, 3].map(|n| all[n].chosen(&all)), [Some(0), Some(1), Some(1), Some(0)]);
        let failed = || Err(SolverError::Stagnated { iterations: 1 });
        let only = Trial { iterations: 1, seconds: 1.0, setup: 0.05 };
        let trials = vec![(&cg, failed()), (&multigrid, Ok(only))];
        let mut last = Tried { term: "last", solves: 1, space: "last".into(), trials };
        assert_eq!(last.chosen(&[]), Some(1));
        last.trials = vec![(&cg, failed())];
        assert_eq!(last.chosen(&[]), None);
    }
}
