//! `docs/input.md` is what the declarations of the keys say. `HMC_UPDATE=1` rewrites it.

use hmc::input;
use std::path::PathBuf;

/// The file at `path` is `expected`, or becomes so.
pub fn assert_file(path: &str, expected: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("HMC_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&file, expected).expect("the file is written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let line = found.lines().zip(expected.lines()).position(|(a, b)| a != b);
    assert!(found == expected, "{path} differs, first in line {line:?}: HMC_UPDATE=1 rewrites it");
}

#[test]
fn the_documentation_has_every_key() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/input.md");
    let text = std::fs::read_to_string(path).expect("it is there");
    for place in input::sections() {
        assert_eq!(text.matches(&format!("<!-- keys of {place} -->")).count(), 1, "{place}");
    }
    assert_eq!(text.matches("<!-- end -->").count(), input::sections().len());
    assert_file("docs/input.md", &input::document(&text));
}
