//! A walker over a TOML file, and the declarations of its keys: typed values with their places, every mistake told at once,
//! suggestions.
//!
//! - `doubts`: values that are allowed but unwise
//! - `raw`: the walker, which remembers positions and refuses unknown keys
//! - `key`: a key, declared once
//! - `forms`: values that keys of several tables take
//! - `section`: the keys of a table; documentation and schema of them
//! - `reader`: typed values out of TOML values
//! - `report`: mistakes with line and column, suggestions
//! - `source`: reads the file
//! - `syntax`: what is wrong with a text that is not TOML

pub(crate) mod doubts;
pub(crate) mod forms;
pub(crate) mod key;
pub(crate) mod raw;
pub(crate) mod reader;
pub(crate) mod report;
pub(crate) mod section;
mod source;
mod syntax;

pub use report::{InputError, Mistake};
pub(crate) use source::read;

use raw::Table;
use report::{MAX_TOLD, Report};
use toml::de::DeTable;

/// A checked input, and what in it is allowed but unwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// The checked input.
    pub input: T,
    /// One line each, with file, line and column.
    pub warnings: Vec<String>,
}

/// Parses `text` and hands its root table to `build`, which answers `None` only after a mistake.
pub(crate) fn checked<T>(
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
