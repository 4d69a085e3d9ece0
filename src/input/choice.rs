//! Terms with `method = "auto"`: what a chain still has to choose, and an input with the choice made.
//!
//! An input with a choice is read again from its text. It is then the input that names the chosen methods, in all but the
//! text.

use super::{Input, check};
use crate::config::{InputError, checked};
use crate::lattice::Lattice;
use crate::solver::{Choice, Choices};

impl Input {
    /// The lattice.
    pub fn lattice(&self) -> Lattice {
        Lattice { extents: self.extents, time: self.time }
    }

    /// The terms whose method is still to be chosen, with the candidates of each.
    pub fn open_choices(&self) -> Vec<(&str, &[Choice])> {
        let solvers = self.fermions.iter().flat_map(|fermion| fermion.solvers());
        let open = solvers.filter(|(_, solver)| !solver.candidates.is_empty());
        open.map(|(name, solver)| (name, solver.candidates.as_slice())).collect()
    }

    /// The method and precision of every term that has them, by choice or by name.
    pub fn choices(&self) -> Choices {
        let solvers = self.fermions.iter().flat_map(|fermion| fermion.solvers());
        let settled = solvers.filter(|(_, solver)| solver.candidates.is_empty());
        settled.map(|(name, solver)| (name.to_owned(), Choice::of(&solver.settings))).collect()
    }

    /// This input where terms that still have to choose have what is in `choices`.
    ///
    /// # Errors
    /// A choice has a word that this program does not know.
    pub fn with_choices(&self, choices: &Choices) -> Result<Self, InputError> {
        if self.open_choices().is_empty() {
            return Ok(self.clone());
        }
        let mut choices = choices.clone();
        choices.extend(self.choices());
        let read = checked(&self.text, "", |root| check::input(root, &self.text, None, &choices))?.input;
        // What may have been changed since this input was read.
        Ok(Self { run: self.run.clone(), parallel: self.parallel.clone(), ..read })
    }

    /// Choices in which every candidate of every term occurs at least once; one without any if nothing is open.
    pub fn all_choices(&self) -> Vec<Choices> {
        let open = self.open_choices();
        let rounds = open.iter().map(|(_, candidates)| candidates.len()).max().unwrap_or(1);
        let round = |n: usize| {
            let of_term = |(term, candidates): &(&str, &[Choice])| {
                ((*term).to_owned(), candidates[n % candidates.len()].clone())
            };
            open.iter().map(of_term).collect()
        };
        (0..rounds).map(round).collect()
    }
}
