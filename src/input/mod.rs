//! The checked input of a run; all mistakes are reported at once.
//!
//! - `check`: builds the checked input from all tables
//! - `choice`: what terms with `method = "auto"` choose
//! - `run`: the chain, the lattice, the machine
//! - `gauge`: the gauge action
//! - `hmc`: molecular dynamics, and the levels of all terms
//! - `measure`: measurements
//! - `reference`: tables of the documentation and the schema for editors, from the declared keys
//!
//! The families of quarks read their own keys; keys of solvers are declared with the solvers.
//!
#![doc = include_str!("../../docs/input.md")]

mod check;
mod choice;
mod gauge;
mod hmc;
mod measure;
mod reference;
mod run;

pub use crate::family::Fermion;
pub use gauge::Gauge;
pub use hmc::{Hmc, SCHEMES};
pub use reference::{document, schema, sections};
pub use run::{DeviceChoice, GridChoice, Parallel, Run, Start};

use crate::config::{InputError, Loaded, checked as read_text, read};
use crate::lattice::Extents;
use crate::measure::Measure;
use crate::solver::Choices;
use check::On;
use std::path::Path;

/// A checked run input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The chain: name, seed, length, files.
    pub run: Run,
    /// Lattice extents x, y, z, t: even, at least 2.
    pub extents: Extents,
    /// Ranks, threads, lanes, device.
    pub parallel: Parallel,
    /// The gauge action.
    pub gauge: Gauge,
    /// The quarks, in the order of the file.
    pub fermions: Vec<Fermion>,
    /// Molecular dynamics.
    pub hmc: Hmc,
    /// Measurements during the run.
    pub measure: Measure,
    /// Keys and values that a resumed chain may not change.
    pub fixed: Vec<(String, String)>,
    /// The text of the input file.
    pub text: String,
}

/// The checked input of `hmc measure`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureInput {
    /// Ranks, threads, lanes, device.
    pub parallel: Parallel,
    /// The quarks that measurements refer to.
    pub fermions: Vec<Fermion>,
    /// The measurements.
    pub measure: Measure,
    /// Keys the random sources.
    pub seed: u64,
}

/// The keys of a resumed chain that must not change but differ, each with both values.
///
/// The length of the chain, the machine, the files and what is measured may change.
#[must_use]
pub fn compare(stored: &Input, new: &Input) -> Vec<String> {
    let (stored, new) = (&stored.fixed, &new.fixed);
    let value = |keys: &[(String, String)], key: &str| {
        keys.iter().find(|(other, _)| other == key).map_or("(absent)".to_owned(), |(_, value)| value.clone())
    };
    let added = new.iter().filter(|(key, _)| stored.iter().all(|(other, _)| other != key));
    stored
        .iter()
        .chain(added)
        .map(|(key, _)| (key, value(stored, key), value(new, key)))
        .filter(|(_, before, after)| before != after)
        .map(|(key, before, after)| format!("{key}: was {before}, is {after}"))
        .collect()
}

/// Reads and checks the input of a run on `ranks` ranks.
///
/// # Errors
/// The file cannot be read, or all mistakes in it.
pub fn load(path: &Path, ranks: usize) -> Result<Loaded<Input>, InputError> {
    parse(&read(path)?, &path.display().to_string(), ranks)
}

/// Checks the `text` of a run's input; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse(text: &str, file: &str, ranks: usize) -> Result<Loaded<Input>, InputError> {
    read_text(text, file, |root| check::input(root, text, On::Ranks(ranks), &Choices::new()))
}

/// Checks the `text` of an ensemble's stored input, for any number of ranks.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_stored(text: &str, file: &str) -> Result<Loaded<Input>, InputError> {
    read_text(text, file, |root| check::input(root, text, On::Any, &Choices::new()))
}

/// Reads and checks the input of `hmc measure`, which may be the input of a run.
///
/// # Errors
/// The file cannot be read, or all mistakes in it.
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
