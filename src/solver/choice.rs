//! `method = "auto"`: the methods that a chain tries, and the one that it has chosen.

use super::Method;
use super::method::{METHODS, Settings};
use super::mixes::{MULTIGRID, Mix, PLAIN_OR_SHIFTED, SCHWARZ};
use crate::device::Precision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::mem::discriminant;

/// A method and its precisions, by their words in an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The word of `method`.
    pub method: String,
    /// The word of `precision`.
    pub precision: String,
}

/// What terms with `method = "auto"` are solved by, under their names.
pub type Choices = BTreeMap<String, Choice>;

/// The combinations of a method's precisions.
fn mixes(method: Method) -> &'static [Mix] {
    match method {
        Method::GcrDd { .. } => &SCHWARZ,
        Method::Multigrid { .. } => &MULTIGRID,
        Method::Cg | Method::BiCgStab => &PLAIN_OR_SHIFTED,
    }
}

impl Choice {
    /// A method with precisions that it has.
    pub(super) fn new(method: Method, precisions: [Precision; 3]) -> Self {
        let same = |(_, other): &&(&str, Method)| discriminant(other) == discriminant(&method);
        let (method_word, _) = METHODS.iter().find(same).expect("every method has a word");
        let mix = mixes(method).iter().find(|(_, mix)| *mix == precisions);
        let (precision, _) = mix.expect("precisions of this method");
        Self { method: (*method_word).to_owned(), precision: (*precision).to_owned() }
    }

    /// The method and the precisions of these settings.
    pub fn of(settings: &Settings) -> Self {
        Self::new(settings.method, settings.precisions)
    }

    /// The method, without its own keys, and its precisions; `None` if this program does not know the words.
    pub(super) fn meaning(&self) -> Option<(Method, [Precision; 3])> {
        let (_, method) = METHODS.iter().find(|(word, _)| *word == self.method)?;
        let (_, precisions) = mixes(*method).iter().find(|(word, _)| *word == self.precision)?;
        Some((*method, *precisions))
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.method, self.precision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_they_are_made_of() {
        for (_, method) in METHODS {
            for (word, precisions) in mixes(*method) {
                let choice = Choice::new(*method, *precisions);
                assert_eq!(choice.precision, *word);
                assert_eq!(choice.meaning(), Some((*method, *precisions)));
            }
        }
        let unknown = Choice { method: "guess".into(), precision: "double".into() };
        assert_eq!(unknown.meaning(), None);
    }
}
