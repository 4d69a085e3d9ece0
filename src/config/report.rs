//! Mistakes with line and column, and suggestions for misspelt words.

use super::Loaded;
use std::cell::RefCell;

/// Minimum similarity of two words, from 0 to 1, for one to be suggested for the other.
const LIKENESS: f64 = 0.8;

/// The effect of changing a key of a resumed chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It would change what the chain samples, or its beginning: refused.
    Fixed,
    /// It may change the bits of later trajectories, but not what they sample: allowed, reported and recorded.
    Tuning,
    /// It changes no bit: allowed.
    Free,
}

/// One mistake in an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct Mistake {
    /// The file, as given by the user.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// The number of mistakes that are listed; the others are only counted.
pub(crate) const MAX_TOLD: usize = 50;

/// Why an input is refused.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file, as given by the user.
        file: String,
        /// The system's message.
        source: std::io::Error,
    },
    /// The file is too large to be an input.
    #[error("{file}: larger than {limit} MiB, too large for an input")]
    TooLarge {
        /// The file, as given by the user.
        file: String,
        /// In MiB.
        limit: u64,
    },
    /// The file is a gauge configuration.
    #[error("{file}: is a configuration ({format}), not an input; `hmc info {file}` reads it")]
    Configuration {
        /// The file, as given by the user.
        file: String,
        /// Its format.
        format: &'static str,
    },
    /// What rank 0 said of the file, which it reads for all.
    #[error("{0}")]
    OfFirst(String),
    /// Mistakes in the text, in the order of the file, one line each.
    #[error("{}", lines(.told, *.more))]
    Mistakes {
        /// The first ones.
        told: Vec<Mistake>,
        /// The number of further mistakes.
        more: usize,
    },
}

fn lines(told: &[Mistake], more: usize) -> String {
    let mut lines: Vec<String> = told.iter().map(Mistake::to_string).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// Collects mistakes and warnings with their byte in the text.
pub(crate) struct Report<'a> {
    file: &'a str,
    text: &'a str,
    /// The bytes at which lines begin.
    starts: Vec<usize>,
    mistakes: RefCell<Vec<(usize, String)>>,
    warnings: RefCell<Vec<(usize, String)>>,
    kept: RefCell<Vec<Record>>,
}

/// The value of a key, or the joint meaning of several, whose change matters to a resumed chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key with its tables.
    pub key: String,
    /// The value as shown.
    pub value: String,
    /// The effect of a change.
    pub change: Change,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        let (mistakes, warnings) = (RefCell::default(), RefCell::default());
        Self { file, text, starts, mistakes, warnings, kept: RefCell::default() }
    }

    pub(crate) fn mistake(&self, at: usize, message: impl Into<String>) {
        self.mistakes.borrow_mut().push((at, message.into()));
    }

    pub(crate) fn warning(&self, at: usize, message: impl Into<String>) {
        self.warnings.borrow_mut().push((at, message.into()));
    }

    pub(crate) fn has_mistakes(&self) -> bool {
        !self.mistakes.borrow().is_empty()
    }

    /// Records a value.
    pub(crate) fn keep(&self, record: Record) {
        self.kept.borrow_mut().push(record);
    }

    /// All records so far, in the order of reading.
    pub(crate) fn kept(&self) -> Vec<Record> {
        self.kept.borrow().clone()
    }

    /// The line, from 1, of byte `at`.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Line and column, from 1, of byte `at`.
    fn position(&self, at: usize) -> (usize, usize) {
        let line = self.line(at);
        let start = self.starts[line - 1];
        (line, 1 + self.text[start..].char_indices().take_while(|(byte, _)| start + byte < at).count())
    }

    /// The input, if there was no mistake.
    pub(crate) fn finish<T>(self, input: Option<T>) -> Result<Loaded<T>, InputError> {
        let place = |mut found: Vec<(usize, String)>| -> (Vec<Mistake>, usize) {
            found.sort_by_key(|(at, _)| *at);
            let more = found.len().saturating_sub(MAX_TOLD);
            let told = found.into_iter().take(MAX_TOLD).map(|(at, message)| {
                let (line, column) = self.position(at);
                Mistake { file: self.file.to_owned(), line, column, message }
            });
            (told.collect(), more)
        };
        let (told, more) = place(self.mistakes.take());
        match input {
            Some(input) if told.is_empty() => {
                let (told, more) = place(self.warnings.take());
                Ok(Loaded { input, warnings: lines(&told, more).lines().map(str::to_owned).collect() })
            }
            _ => Err(InputError::Mistakes { told, more }),
        }
    }
}

/// The most similar one of `words`, if one is similar enough.
pub(crate) fn nearest<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    let word = word.to_lowercase();
    words
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&word, candidate), *candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Words of inputs of earlier versions, and what to write instead.
const GONE: [(&str, &str); 8] = [
    ("halo_precision", "; it is gone, for halos of half precision lose nothing: leave it out"),
    (
        "multigrid_shifts",
        "; it is gone, for it cost more than it spared: leave it out, with the keys of multigrid",
    ),
    ("schwarz_block", "; it is 'block' in [fermion.NAME.solver.gcr-dd] of Wilson quarks"),
    ("aggregate", "; it stands in [fermion.NAME.solver.multigrid] of Wilson quarks"),
    ("coarse_aggregate", "; it stands in [fermion.NAME.solver.multigrid] of Wilson quarks"),
    ("vectors", "; it stands in [fermion.NAME.solver.multigrid] of Wilson quarks"),
    (
        "k_max",
        "; it stands in [fermion.NAME.solver.gcr-dd] or [fermion.NAME.solver.multigrid] of Wilson quarks",
    ),
    (
        "n_mr",
        "; it stands in [fermion.NAME.solver.gcr-dd] or [fermion.NAME.solver.multigrid] of Wilson quarks",
    ),
];

/// `; did you mean 'beta'?`, or a list of all `words`.
pub(crate) fn hint(word: &str, words: &[&str]) -> String {
    if let Some((_, instead)) = GONE.iter().find(|(gone, _)| *gone == word) {
        return (*instead).to_owned();
    }
    match nearest(word, words) {
        Some(near) => format!("; did you mean '{near}'?"),
        None if words.is_empty() => String::new(),
        None => format!("; expected {}", one_of(words)),
    }
}

/// `'a', 'b' or 'c'`
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_or_all() {
        assert_eq!(hint("betta", &["action", "beta"]), "; did you mean 'beta'?");
        assert_eq!(hint("Beta", &["action", "beta"]), "; did you mean 'beta'?");
        assert_eq!(hint("xyz", &["action", "beta", "u0"]), "; expected 'action', 'beta' or 'u0'");
    }

    #[test]
    fn positions_count_characters_from_one() {
        let report = Report::new("f", "ab\nΔc = 1");
        assert_eq!(report.position(0), (1, 1));
        assert_eq!(report.position(3), (2, 1));
        assert_eq!(report.position(5), (2, 2));
    }
}
