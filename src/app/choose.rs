//! `method = "auto"`: a trial of methods and precisions on a chain's first links.
//!
//! A trial is the force of a term whose pseudofermions are random numbers of an address that no chain has, so that a
//! chain does not notice it: from then on it is the chain of an input that names the chosen method. Each candidate gets
//! two trials, of which the faster one counts, by the clock of the slowest rank. Multigrid, whose space is made in every
//! trajectory, gets a third one with it; what counts is all forces of a trajectory.

use super::AppError;
use super::report::span;
use crate::action::{Action, ActionError};
use crate::comm::Comm;
use crate::field::{AlgebraField, MatrixField, Purpose, RandomAddress};
use crate::hmc::{HmcError, forces};
use crate::input::Input;
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
    /// More of the first force in a trajectory.
    setup: f64,
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
    let mut choices = Choices::new();
    for (term, candidates) in input.open_choices() {
        let mut tried = Vec::new();
        for candidate in candidates {
            let choice = Choices::from([(term.to_owned(), candidate.clone())]);
            tried.push((candidate, trial(&input.with_choices(&choice)?, term, links, comm)?));
        }
        let on_level = |terms: &Vec<String>| terms.iter().any(|name| name == term);
        let level = input.hmc.terms.iter().position(on_level).expect("a term is on a level");
        let count = forces(&input.hmc.levels)[level];
        let seconds = |(_, trial): &(&Choice, Result<Trial, _>)| {
            trial.as_ref().map_or(f64::INFINITY, |trial| trial.setup + count as f64 * trial.seconds)
        };
        let best = (0..tried.len()).min_by(|a, b| seconds(&tried[*a]).total_cmp(&seconds(&tried[*b])));
        let best = best.expect("a term with a choice has candidates");
        say(&table(term, count, &tried, best));
        let (chosen, trial) = &tried[best];
        if trial.is_err() {
            let message =
                format!("no method of \"auto\" solves the systems of term '{term}': name one that does");
            return Err(AppError::Refused(message));
        }
        choices.insert(term.to_owned(), (*chosen).clone());
    }
    Ok(input.with_choices(&choices)?)
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
    let setup = match (&done, &input.choices()[term].method) {
        // The space is gone with the term.
        (Ok(_), method) if method == "multigrid" => forces.once(&mut *make()?)?.0 - seconds,
        _ => 0.0,
    };
    Ok(done.map(|iterations| Trial { iterations, seconds, setup: setup.max(0.0) }))
}

/// Forces on some links, by the clock.
pub(super) struct Forces<'a> {
    links: &'a MatrixField,
    comm: &'a dyn Comm,
    force: AlgebraField,
}

impl<'a> Forces<'a> {
    /// Forces are added to one that nobody reads.
    pub(super) fn new(links: &'a MatrixField, comm: &'a dyn Comm) -> Result<Self, AppError> {
        Ok(Self { links, comm, force: AlgebraField::new(links.domain())? })
    }

    /// The seconds of the fastest of some forces of a term by random pseudofermions, and its iterations, or why a solve
    /// failed. Collective.
    pub(super) fn fastest(
        &mut self,
        action: &mut dyn Action,
    ) -> Result<(f64, Result<usize, SolverError>), AppError> {
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

/// The trials of a term, which has so many forces in a trajectory.
fn table(term: &str, forces: u64, tried: &[(&Choice, Result<Trial, SolverError>)], best: usize) -> String {
    let mut text = format!("solver of {term}, \"auto\":");
    for (n, (Choice { method, precision }, trial)) in tried.iter().enumerate() {
        text += &format!("\n  {method:<9} {precision:<18} ");
        text += &match trial {
            Ok(Trial { iterations, seconds, setup }) => {
                let chosen = if n == best { ", chosen" } else { "" };
                let setup = match setup {
                    0.0 => String::new(),
                    _ => format!(" and {} once in {forces} forces", clock(*setup)),
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
        let tried = [
            (&cg, Ok(Trial { iterations: 120, seconds: 0.0125, setup: 0.0 })),
            (&half, Ok(Trial { iterations: 140, seconds: 0.004, setup: 0.0 })),
            (&other, Err(failed)),
            (&multigrid, Ok(Trial { iterations: 31, seconds: 0.002, setup: 0.5 })),
        ];
        let expected = "solver of light, \"auto\":
  cg        double-single         120 iterations   12.50 ms
  cg        double-half           140 iterations    4.00 ms, chosen
  bicgstab  double-half        out: the solver did not converge: residual 5.000e-1 after 9 iterations, 1.0e-9 was asked for
  multigrid double-single-half     31 iterations    2.00 ms and 500.00 ms once in 21 forces";
        assert_eq!(table("light", 21, &tried, 1), expected);
    }
}
