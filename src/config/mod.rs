//! A reader of TOML files with declared keys: typed values with their positions, all mistakes reported at once,
//! suggestions.
//!
//! - `doubts`: warnings about allowed but unwise values
//! - `raw`: tables of a file, with positions; unknown keys are refused
//! - `key`: declarations of keys
//! - `forms`: values that the keys of several tables take
//! - `section`: the keys of a table, their documentation and schema
//! - `reader`: typed values from TOML values
//! - `report`: mistakes with line and column, suggestions
//! - `source`: reads the file
//! - `syntax`: explains a text that is not TOML

pub(crate) mod doubts;
pub(crate) mod forms;
pub(crate) mod key;
pub(crate) mod raw;
pub(crate) mod reader;
pub(crate) mod report;
pub(crate) mod section;
mod source;
mod syntax;

pub use report::{Change, InputError, Mistake, Record};
pub(crate) use source::read;

use raw::Table;
use report::{MAX_TOLD, Report};
use toml::de::DeTable;

/// A checked input, with warnings about what is allowed but unwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// The checked input.
    pub input: T,
    /// One line each, with file, line and column.
    pub warnings: Vec<String>,
}

/// Parses `text` and passes its root table to `build`, which returns `None` only after a mistake.
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
        // Further errors in a broken line are mostly the parser's own confusion.
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
