//! Explains why a text is not TOML, and what to change.

use toml::de::Error;

/// A better message than the parser's, or the parser's.
pub(super) fn explain(text: &str, error: &Error) -> String {
    let found = error.span().and_then(|span| Some((span.start, text.get(span)?)));
    let better = match (error.message(), found) {
        ("duplicate key", Some((at, name))) => Some(twice(text, at, name)),
        (message, Some((_, value))) if message.starts_with("string values must be quoted") => after(value),
        _ => None,
    };
    better.unwrap_or_else(|| error.message().to_owned())
}

/// The key or table `name` at byte `at` occurs earlier, too.
fn twice(text: &str, at: usize, name: &str) -> String {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let (what, header) = (left(line), line.trim_start().starts_with('['));
    // A key's table begins at the last header before it.
    let above: Vec<&str> = text[..start].lines().collect();
    let table = above.iter().rposition(|line| line.trim_start().starts_with('[')).filter(|_| !header);
    let first = above.iter().skip(table.unwrap_or(0)).position(|line| left(line) == what);
    let (kind, name) = if header { ("table", what.as_str()) } else { ("key", name) };
    match first {
        Some(first) => {
            let line = first + table.unwrap_or(0) + 1;
            format!("the {kind} '{name}' is there already, in line {line}: keep one of both")
        }
        None => format!("the {kind} '{name}' is there already: keep one of both"),
    }
}

/// What a line sets or opens, without spaces.
fn left(line: &str) -> String {
    let line = line.trim_start();
    let end = if line.starts_with('[') { line.rfind(']').map(|end| end + 1) } else { line.find('=') };
    line[..end.unwrap_or(0)].chars().filter(|c| !c.is_whitespace()).collect()
}

/// A number or a truth value followed by more text.
fn after(value: &str) -> Option<String> {
    let (first, rest) = value.trim().split_once(char::is_whitespace)?;
    let complete = first.parse::<f64>().is_ok() || matches!(first, "true" | "false");
    let rest = rest.trim();
    complete.then(|| format!("'{rest}' after the value {first} is not understood: a key has one value"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn explained(text: &str) -> String {
        let (_, errors) = DeTable::parse_recoverable(text);
        explain(text, errors.first().unwrap_or_else(|| panic!("{text} is right")))
    }

    #[test]
    fn what_stands_twice_is_named_with_its_first_line() {
        let key = "the key 'seed' is there already, in line 3: keep one of both";
        assert_eq!(explained("[a]\nseed = 1\nseed = 2"), key.replace('3', "2"));
        assert_eq!(explained("[a]\n[b]\n seed=1\nname = 3\nseed = 2\n"), key);
        assert_eq!(explained("x = 1\nx = 2"), "the key 'x' is there already, in line 1: keep one of both");
        // The key of the other table does not count.
        assert_eq!(explained("[[l]]\nseed = 1\n[[l]]\nseed = 1\nseed = 2"), key.replace('3', "4"));
        let table = "the table '[run]' is there already, in line 1: keep one of both";
        assert_eq!(explained("[run]\nseed = 1\n[b]\n[ run ]\nname = 1"), table);
        // Within one line there is no other line to name.
        assert_eq!(explained("a = { x = 1, x = 2 }"), "the key 'x' is there already: keep one of both");
    }

    #[test]
    fn what_follows_a_value_is_named() {
        let message = "'5' after the value 5.7 is not understood: a key has one value";
        assert_eq!(explained("beta = 5.7 5"), message);
        assert_eq!(
            explained("on = true 1 # x"),
            "'1' after the value true is not understood: a key has one value"
        );
        assert!(explained("name = quick start").starts_with("string values must be quoted"));
        assert!(explained("name = quick").starts_with("string values must be quoted"));
    }
}
