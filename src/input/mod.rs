//! A run's input, checked, with every mistake told at once.
//!
//! - `check`: builds the checked input: the run, the machine
//! - `measure`: what is measured
//! - `terms`: the gauge term, and the levels on which all terms live
//! - `fermions`: quarks; those of Wilson, and their Hasenbusch factors
//! - `domain_wall`: domain-wall quarks, their weights and masses
//! - `staggered`: improved staggered quarks, their pseudofermions and solver
//! - `solver`: the solver of a term of Wilson or domain-wall quarks
//! - `checked`: the checked input, from which the floors above work
//! - `compare`: what a continued run may not change
//!
#![doc = include_str!("../../docs/input.md")]

mod check;
mod checked;
mod compare;
mod domain_wall;
mod fermions;
mod measure;
mod solver;
mod staggered;
mod terms;

pub use checked::*;
pub use compare::compare;
pub use domain_wall::{DomainWallFermion, WallFactor, WallFlavours, Weights};

use crate::config::{InputError, Loaded, checked as read_text, read};
use std::path::Path;

/// Reads and checks the input of a run on `ranks` ranks.
///
/// # Errors
/// An unreadable file, or all mistakes in it.
pub fn load(path: &Path, ranks: usize) -> Result<Loaded<Input>, InputError> {
    parse(&read(path)?, &path.display().to_string(), ranks)
}

/// Checks the `text` of a run's input; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse(text: &str, file: &str, ranks: usize) -> Result<Loaded<Input>, InputError> {
    read_text(text, file, |root| check::input(root, text, Some(ranks)))
}

/// Checks the `text` of an input that an ensemble keeps, whatever the ranks that it was written for.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_stored(text: &str, file: &str) -> Result<Loaded<Input>, InputError> {
    read_text(text, file, |root| check::input(root, text, None))
}

/// Reads and checks the input of `hmc measure`: one of its own, or that of a run.
///
/// # Errors
/// An unreadable file, or all mistakes in it.
pub fn load_measure(path: &Path) -> Result<Loaded<MeasureInput>, InputError> {
    parse_measure(&read(path)?, &path.display().to_string())
}

/// Checks the `text` of an input of `hmc measure`; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_measure(text: &str, file: &str) -> Result<Loaded<MeasureInput>, InputError> {
    read_text(text, file, |root| check::measure_input(root, text))
}
