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
pub use run::{DeviceChoice, Parallel, Run, Start, is_logical_name};

pub(crate) use crate::config::read;
use crate::config::{Change, InputError, Loaded, Record, checked as read_text};
use crate::lattice::{Extents, TimeBoundary};
use crate::measure::{Measure, QuarkChoice};
use crate::solver::Choices;
use std::path::Path;

/// A checked run input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The chain: name, seed, length, files.
    pub run: Run,
    /// Lattice extents x, y, z, t: even, at least 2.
    pub extents: Extents,
    /// How the lattice ends in time.
    pub time: TimeBoundary,
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
    /// Keys and values whose change matters to a resumed chain.
    pub kept: Vec<Record>,
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
    /// How time ends, if the input is that of a run.
    pub time: TimeBoundary,
    /// Keys the random sources.
    pub seed: u64,
}

/// A quark for a program that calls the library: its table, and what a measurement would set.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkInput {
    /// All fermions of the text.
    pub fermions: Vec<Fermion>,
    /// Which of them, with its mass and the residual of its solves.
    pub quark: QuarkChoice,
}

/// A key that differs between two inputs of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key with its tables, or what several keys mean together.
    pub key: String,
    /// The earlier value; `None` if there was none.
    pub was: Option<String>,
    /// The later value; `None` if there is none.
    pub is: Option<String>,
    /// The effect of the change: `Fixed` or `Tuning`.
    pub change: Change,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [was, is] = [&self.was, &self.is].map(|value| value.as_deref().unwrap_or("(absent)"));
        write!(f, "{}: was {was}, is {is}", self.key)
    }
}

/// The keys in which two inputs of a chain differ, if that matters.
///
/// The length of the chain, the machine, the files and what is measured do not.
#[must_use]
pub fn compare(stored: &Input, new: &Input) -> Vec<Difference> {
    let (stored, new) = (&stored.kept, &new.kept);
    let value = |all: &[Record], key: &str| {
        all.iter().find(|other| other.key == key).map(|found| found.value.clone())
    };
    let added = new.iter().filter(|record| stored.iter().all(|other| other.key != record.key));
    let difference = |Record { key, change, .. }: &Record| {
        let (was, is) = (value(stored, key), value(new, key));
        (was != is).then(|| Difference { key: key.clone(), was, is, change: *change })
    };
    stored.iter().chain(added).filter_map(difference).collect()
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
    read_text(text, file, |root| check::input(root, text, Some(ranks), &Choices::new()))
}

/// Checks the `text` of an ensemble's stored input, for any number of ranks.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_stored(text: &str, file: &str) -> Result<Loaded<Input>, InputError> {
    read_text(text, file, |root| check::input(root, text, None, &Choices::new()))
}

/// Checks the `text` of an input of `hmc measure`, which may be the input of a run; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_measure(text: &str, file: &str) -> Result<Loaded<MeasureInput>, InputError> {
    read_text(text, file, |root| check::measure_input(root, text))
}

/// Checks a text with `[fermion.NAME]` and `[quark]`, which has the keys of a measurement's quark; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_quark(text: &str, file: &str) -> Result<Loaded<QuarkInput>, InputError> {
    read_text(text, file, check::quark_input)
}

/// Checks a text that has `[gauge]` alone; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_gauge(text: &str, file: &str) -> Result<Loaded<Gauge>, InputError> {
    read_text(text, file, check::gauge_input)
}

/// Checks a text that has `[parallel]` alone, or nothing; `file` is its name in messages.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_parallel(text: &str, file: &str) -> Result<Loaded<Parallel>, InputError> {
    read_text(text, file, check::parallel_input)
}
