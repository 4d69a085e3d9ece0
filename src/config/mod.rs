//! TOML to a checked input, with every mistake told at once.
//!
//! - `raw`: a walker over the parsed file that remembers positions and refuses unknown keys
//! - `reader`: typed values out of TOML values
//! - `check`: builds the checked input: the run, the machine
//! - `measure`: what is measured
//! - `terms`: the gauge term, and the levels on which all terms live
//! - `fermions`: quarks; those of Wilson, and their Hasenbusch factors
//! - `domain_wall`: domain-wall quarks, their weights and masses
//! - `staggered`: improved staggered quarks, their pseudofermions and solver
//! - `solver`: the solver of a term of Wilson or domain-wall quarks
//! - `checked`: the checked input, from which the floors above work
//! - `source`: reads the file
//! - `syntax`: what is wrong with a text that is not TOML
//! - `compare`: what a continued run may not change
//! - `report`: mistakes with line and column, suggestions
//!
#![doc = include_str!("../../docs/input.md")]

mod check;
mod checked;
mod compare;
mod domain_wall;
mod fermions;
mod measure;
mod raw;
mod reader;
mod report;
mod solver;
mod source;
mod staggered;
mod syntax;
mod terms;

pub use checked::*;
pub use compare::compare;
pub use domain_wall::{DomainWallFermion, WallFactor, WallFlavours, Weights};
pub use measure::MAX_SOURCES;
pub use report::{InputError, Mistake};
pub use solver::usual_delta;

use raw::Table;
use report::{MAX_TOLD, Report};
use source::read;
use std::path::Path;
use toml::de::DeTable;

/// A checked input, and what in it is allowed but unwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// The checked input.
    pub input: T,
    /// One line each, with file, line and column.
    pub warnings: Vec<String>,
}

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
    checked(text, file, |root| check::input(root, text, Some(ranks)))
}

/// Checks the `text` of an input that an ensemble keeps, whatever the ranks that it was written for.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_stored(text: &str, file: &str) -> Result<Loaded<Input>, InputError> {
    checked(text, file, |root| check::input(root, text, None))
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
    checked(text, file, |root| check::measure_input(root, text))
}

/// Parses `text` and hands its root table to `build`, which answers `None` only after a mistake.
fn checked<T>(
    text: &str,
    file: &str,
    build: impl FnOnce(&mut Table) -> Option<T>,
) -> Result<Loaded<T>, InputError> {
    let report = Report::new(file, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let (mut broken_line, mut broken_lines) = (0, 0);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        // What follows on a broken line is mostly the parser's own confusion.
        let line = report.line(at);
        if line != broken_line {
            let tell = broken_lines < MAX_TOLD;
            let message = if tell { syntax::explain(text, error) } else { error.message().to_owned() };
            report.mistake(at, format!("not valid TOML: {message}"));
            broken_line = line;
            broken_lines += 1;
        }
    }
    if !errors.is_empty() {
        return report.finish(None);
    }
    let mut root = Table::root(document.get_ref(), &report);
    let input = build(&mut root);
    root.finish();
    report.finish(input)
}
