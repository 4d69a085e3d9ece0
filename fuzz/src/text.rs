//! Inputs of runs and of measurements.

use super::memory::bounded;
use hmc::config::{InputError, Loaded};
use hmc::input::{self, Input};

const FILE: &str = "given.toml";

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let each = 4000;
    let parsed = bounded(text.len(), each, || input::parse(text, FILE, 1));
    let stored = bounded(text.len(), each, || input::parse_stored(text, FILE));
    let measured = bounded(text.len(), each, || input::parse_measure(text, FILE));
    if let Some(Loaded { input, .. }) = told(text, parsed) {
        let stored = told(text, stored).expect("a run's input is one of any number of ranks");
        assert_eq!(input::compare(&input, &stored.input), []);
        again(text, &input);
    } else {
        told(text, stored);
    }
    told(text, measured);
}

/// The input, if there is one. Each mistake and each warning is a line with a place in the text.
fn told<T>(text: &str, found: Result<Loaded<T>, InputError>) -> Option<Loaded<T>> {
    match found {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                assert!(warning.starts_with(FILE), "{warning}");
            }
            Some(loaded)
        }
        Err(InputError::Mistakes { told, .. }) => {
            assert!(!told.is_empty());
            for mistake in &told {
                let line = text.split('\n').nth(mistake.line - 1).expect("a line of the text");
                assert!((1..=line.chars().count() + 2).contains(&mistake.column), "{mistake}");
                assert!(!mistake.message.contains('\n'), "more than a line: {mistake}");
                assert!(mistake.message.len() < 2000 + 4 * text.len(), "{mistake}");
            }
            None
        }
        Err(other) => panic!("not of a text: {other}"),
    }
}

/// What a TOML writer makes of the text is the same input.
fn again(text: &str, input: &Input) {
    // An integer of more digits than the writer knows may stand where a real does.
    let Ok(table) = text.parse::<toml::Table>() else { return };
    let rewritten = toml::to_string(&table).expect("it was read");
    let other =
        input::parse(&rewritten, FILE, 1).unwrap_or_else(|error| panic!("{error}\n{rewritten}")).input;
    // The writer sorts tables, and quarks and measurements are in the order of the file.
    let mut differences = input::compare(input, &other);
    differences.retain(|difference| difference.key != "fermion");
    assert_eq!(differences, [], "{rewritten}");
    let parts = |input: &Input| {
        format!("{:?}", (&input.run, input.extents, &input.parallel, &input.gauge, &input.hmc))
    };
    assert_eq!(parts(&other), parts(input));
    assert_eq!(other.fermions.len(), input.fermions.len());
}
