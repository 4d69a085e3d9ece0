//! Whether a chain from another version continues with the same bits, according to 'Changes bits' in `CHANGELOG.md`.

/// This program's name in files.
pub(super) const PROGRAM: &str = concat!("hmc ", env!("CARGO_PKG_VERSION"));

const CHANGELOG: &str = include_str!("../../CHANGELOG.md");

/// The changes of bits between the version that wrote a file and this one, one per line.
///
/// # Errors
/// The changelog does not contain the version.
pub(super) fn changes_since(writer: &str) -> Result<Vec<String>, String> {
    if writer == PROGRAM {
        return Ok(Vec::new());
    }
    let version = writer.strip_prefix("hmc ").unwrap_or(writer);
    changes(CHANGELOG, version).ok_or_else(|| format!("this program, {PROGRAM}, does not know {writer}"))
}

/// The entries under 'Changes bits' above the section of `version`, except those that start with 'Nothing'.
fn changes(changelog: &str, version: &str) -> Option<Vec<String>> {
    let (newer, _) = changelog.split_once(&format!("\n## [{version}]"))?;
    let mut found: Vec<String> = Vec::new();
    let mut counts = false;
    for line in newer.lines() {
        if line.starts_with('#') {
            counts = line == "### Changes bits";
        } else if counts && let Some(entry) = line.strip_prefix("- ") {
            found.push(entry.to_owned());
        }
    }
    found.retain(|entry| !entry.starts_with("Nothing"));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_bits_counts() {
        let text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A flow\n\n### Changes bits\n\n- Nothing yet\n\n\
                    ## [0.3.0]\n\n### Changes bits\n\n- A force\n\n## [0.2.0]\n\n### Changes bits\n\n- Nothing\n\n## [0.1.0]\n";
        assert_eq!(changes(text, "0.3.0"), Some(vec![]));
        assert_eq!(changes(text, "0.2.0"), Some(vec!["A force".to_owned()]));
        assert_eq!(changes(text, "0.1.0"), Some(vec!["A force".to_owned()]));
        assert_eq!(changes(text, "0.0.3"), None);
        assert!(changes_since("hmc 0.0.3").is_err());
        assert!(changes_since(PROGRAM).unwrap().is_empty());
    }
}
