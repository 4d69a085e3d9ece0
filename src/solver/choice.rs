//! `method = "auto"`: the methods that a chain tries, and the one that it has chosen.

use super::Method;
use super::method::{METHODS, Settings};
use crate::device::Precision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

impl Choice {
    /// A method with precisions that it has.
    pub(super) fn new(method: Method, precisions: [Precision; 3]) -> Self {
        let mix = method.mixes().iter().find(|(_, mix)| *mix == precisions);
        let (precision, _) = mix.expect("precisions of this method");
        Self { method: method.row().word.to_owned(), precision: (*precision).to_owned() }
    }

    /// The method and the precisions of these settings.
    pub fn of(settings: &Settings) -> Self {
        Self::new(settings.method, settings.precisions)
    }

    /// The method, without its own keys, and its precisions; `None` if this program does not know the words.
    pub(super) fn meaning(&self) -> Option<(Method, [Precision; 3])> {
        let method = METHODS.iter().find(|method| method.row().word == self.method)?;
        let (_, precisions) = method.mixes().iter().find(|(word, _)| *word == self.precision)?;
        Some((*method, *precisions))
    }

    /// Whether the method makes something in each trajectory before its first solve.
    pub fn has_set_up(&self) -> bool {
        self.meaning().is_some_and(|(method, _)| method.row().has_set_up)
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
        for method in METHODS {
            for (word, precisions) in method.mixes() {
                let choice = Choice::new(*method, *precisions);
                assert_eq!(choice.precision, *word);
                assert_eq!(choice.meaning(), Some((*method, *precisions)));
            }
        }
        let unknown = Choice { method: "guess".into(), precision: "double".into() };
        assert_eq!(unknown.meaning(), None);
    }
}
