//! Mistakes with line and column, and suggestions for misspelt words.

use super::Loaded;
use std::cell::RefCell;

/// How alike two words must be, from 0 to 1, for one to be suggested for the other.
const LIKENESS: f64 = 0.8;

/// One mistake in an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct Mistake {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// Why an input is refused.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file, as it was named.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// All mistakes, in the order of the file: one line each.
    #[error("{}", .0.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n"))]
    Mistakes(Vec<Mistake>),
}

/// Collects mistakes and warnings by their byte in the text.
pub struct Report<'a> {
    file: &'a str,
    text: &'a str,
    mistakes: RefCell<Vec<(usize, String)>>,
    warnings: RefCell<Vec<(usize, String)>>,
}

impl<'a> Report<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, mistakes: RefCell::default(), warnings: RefCell::default() }
    }

    pub fn mistake(&self, at: usize, message: impl Into<String>) {
        self.mistakes.borrow_mut().push((at, message.into()));
    }

    pub fn warning(&self, at: usize, message: impl Into<String>) {
        self.warnings.borrow_mut().push((at, message.into()));
    }

    /// Line and column, from 1, of byte `at`.
    pub fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.char_indices().take_while(|(byte, _)| *byte < at);
        before
            .fold((1, 1), |(line, column), (_, c)| if c == '\n' { (line + 1, 1) } else { (line, column + 1) })
    }

    /// The input, where there was no mistake.
    pub fn finish<T>(self, input: Option<T>) -> Result<Loaded<T>, InputError> {
        let place = |mut found: Vec<(usize, String)>| -> Vec<Mistake> {
            found.sort_by_key(|(at, _)| *at);
            found
                .into_iter()
                .map(|(at, message)| {
                    let (line, column) = self.position(at);
                    Mistake { file: self.file.to_owned(), line, column, message }
                })
                .collect()
        };
        let mistakes = place(self.mistakes.take());
        match input {
            Some(input) if mistakes.is_empty() => {
                let warnings = place(self.warnings.take()).iter().map(Mistake::to_string).collect();
                Ok(Loaded { input, warnings })
            }
            _ => Err(InputError::Mistakes(mistakes)),
        }
    }
}

/// The one of `words` that is most like `word`, if any is like it.
pub fn nearest<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    let word = word.to_lowercase();
    words
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&word, candidate), *candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// `; did you mean 'beta'?`, or else all `words`.
pub fn hint(word: &str, words: &[&str]) -> String {
    match nearest(word, words) {
        Some(near) => format!("; did you mean '{near}'?"),
        None if words.is_empty() => String::new(),
        None => format!("; expected {}", one_of(words)),
    }
}

/// `'a', 'b' or 'c'`
pub fn one_of(words: &[&str]) -> String {
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
