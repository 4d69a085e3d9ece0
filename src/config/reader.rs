//! Typed values from TOML values. A reader is made from a description of what it expects, for its message.

use super::report::hint;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// Longest extent; a product of four is far from overflow.
pub(crate) const MAX_EXTENT: i64 = 4096;

/// A value with its position in the file.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// The value that was read, or all its mistakes with their bytes.
pub(crate) type Read<T> = Result<T, Vec<(usize, String)>>;

/// An end of a range of numbers.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// No end.
    Free,
    /// This number belongs to the range.
    With(f64),
    /// This number does not belong to the range.
    Without(f64),
}

/// The value's kind, in words.
pub(crate) fn describe(value: &Value) -> String {
    match value.get_ref() {
        DeValue::String(text) => format!("the string {text:?}"),
        DeValue::Integer(number) => format!("the integer {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(items) => format!("an array of {}", items.len()),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// The mistake of an unexpected value.
pub(crate) fn unexpected<T>(expected: &str, value: &Value) -> Read<T> {
    Err(vec![(value.span().start, format!("expected {expected}, found {}", describe(value)))])
}

/// A finite number from `low` to `high`.
pub(crate) fn number_within(expected: &str, low: Bound, high: Bound) -> impl Fn(&Value) -> Read<f64> {
    let above = move |x: f64| match low {
        Bound::Free => true,
        Bound::With(low) => x >= low,
        Bound::Without(low) => x > low,
    };
    let below = move |x: f64| match high {
        Bound::Free => true,
        Bound::With(high) => x <= high,
        Bound::Without(high) => x < high,
    };
    move |value| {
        let digits = match value.get_ref() {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => return unexpected(expected, value),
        };
        match digits.parse() {
            Ok(number) if f64::is_finite(number) && above(number) && below(number) => Ok(number),
            _ => unexpected(expected, value),
        }
    }
}

/// One of these integers.
pub(crate) fn one_of<T: TryFrom<i64> + Copy + PartialEq + std::fmt::Display>(
    all: &[T],
    expected: &str,
) -> impl Fn(&Value) -> Read<T> {
    move |value| {
        let number: T = whole(0..=MAX_EXTENT)(value)?;
        if all.contains(&number) {
            return Ok(number);
        }
        Err(vec![(value.span().start, format!("expected {expected}, found {number}"))])
    }
}

/// An integer in `range`.
pub(crate) fn whole<T: TryFrom<i64>>(range: RangeInclusive<i64>) -> impl Fn(&Value) -> Read<T> {
    move |value| {
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        match number.filter(|n| range.contains(n)).and_then(|n| T::try_from(n).ok()) {
            Some(number) => Ok(number),
            None if *range.end() == i64::MAX => {
                unexpected(&format!("an integer, {} at least", range.start()), value)
            }
            None => unexpected(&format!("an integer from {} to {}", range.start(), range.end()), value),
        }
    }
}

/// The meaning of a word from the list `options`.
pub(crate) fn choice<T: Copy>(options: &[(&str, T)]) -> impl Fn(&Value) -> Read<T> {
    move |value| {
        let words: Vec<&str> = options.iter().map(|(word, _)| *word).collect();
        let expected = options.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(", ");
        let DeValue::String(text) = value.get_ref() else { return unexpected(&expected, value) };
        match options.iter().find(|(word, _)| word == text) {
            Some((_, meaning)) => Ok(*meaning),
            None => Err(vec![(value.span().start, format!("unknown {text:?}{}", hint(text, &words)))]),
        }
    }
}

/// `"auto"` reads as `None`.
pub(crate) fn or_auto<'a, T>(
    reader: impl Fn(&'a Value<'a>) -> Read<T>,
) -> impl Fn(&'a Value<'a>) -> Read<Option<T>> {
    move |value| match value.get_ref() {
        DeValue::String(text) if text == "auto" => Ok(None),
        DeValue::String(_) => unexpected("\"auto\" or a number", value),
        _ => reader(value).map(Some),
    }
}

/// One of some words, or what `reader` reads.
pub(crate) fn or_word<'a, T: Copy + 'static>(
    words: &'static [(&'static str, T)],
    expected: &'static str,
    reader: impl Fn(&'a Value<'a>) -> Read<T>,
) -> impl Fn(&'a Value<'a>) -> Read<T> {
    move |value| match value.get_ref() {
        DeValue::String(text) => match words.iter().find(|(word, _)| text == *word) {
            Some((_, meaning)) => Ok(*meaning),
            None => unexpected(expected, value),
        },
        _ => reader(value),
    }
}

/// An array of values.
pub(crate) fn list<'a, T>(
    expected: &str,
    item: impl Fn(&'a Value<'a>) -> Read<T>,
) -> impl Fn(&'a Value<'a>) -> Read<Vec<T>> {
    move |value| {
        let DeValue::Array(items) = value.get_ref() else { return unexpected(expected, value) };
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for read in items.iter().map(&item) {
            match read {
                Ok(one) => good.push(one),
                Err(mistakes) => bad.extend(mistakes),
            }
        }
        if bad.is_empty() { Ok(good) } else { Err(bad) }
    }
}

/// An array of N values.
pub(crate) fn array<'a, T, const N: usize>(
    expected: &str,
    item: impl Fn(&'a Value<'a>) -> Read<T>,
) -> impl Fn(&'a Value<'a>) -> Read<[T; N]> {
    let items = list(expected, item);
    move |value| match items(value)?.try_into() {
        Ok(array) => Ok(array),
        Err(_) => unexpected(expected, value),
    }
}

/// Four values, for x, y, z, t.
pub(crate) fn four<'a, T>(
    expected: &str,
    item: impl Fn(&'a Value<'a>) -> Read<T>,
) -> impl Fn(&'a Value<'a>) -> Read<[T; 4]> {
    array(expected, item)
}

/// An extent of a lattice or of a block.
pub(crate) fn extent(value: &Value) -> Read<usize> {
    let extent: usize = whole(2..=MAX_EXTENT)(value)?;
    if extent.is_multiple_of(2) {
        return Ok(extent);
    }
    Err(vec![(value.span().start, format!("expected an even extent, found {extent}"))])
}

/// A non-empty text.
pub(crate) fn text(value: &Value) -> Read<String> {
    match value.get_ref() {
        DeValue::String(text) if !text.is_empty() => Ok(text.to_string()),
        DeValue::String(_) => {
            Err(vec![(value.span().start, "an empty text is neither a name nor a path".to_owned())])
        }
        _ => unexpected("a text", value),
    }
}

/// A text, with its first byte in the file.
pub(crate) fn placed_text(value: &Value) -> Read<(String, usize)> {
    Ok((text(value)?, value.span().start))
}

/// No file system takes much longer names of folders.
const LONGEST_NAME: usize = 200;

/// Whether a name is safe as a folder name: letters, digits, `.`, `_`, `-`; the first is a letter or a digit.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// `11h30m`, `90m`, `3600s`: hours, minutes and seconds in this order, each at most once; not 0.
pub(crate) fn duration(value: &Value) -> Read<Duration> {
    let found = match value.get_ref() {
        DeValue::String(text) => seconds(text).filter(|seconds| *seconds > 0),
        _ => None,
    };
    match found {
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => unexpected("a time like \"11h30m\", \"90m\" or \"3600s\"", value),
    }
}

fn seconds(text: &str) -> Option<u64> {
    let (mut rest, mut total) = (text, 0u64);
    for (unit, length) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((digits, after)) = rest.split_once(unit) {
            total = total.checked_add(digits.parse::<u32>().map(u64::from).ok()? * length)?;
            rest = after;
        }
    }
    rest.is_empty().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(seconds("11h30m"), Some(41_400));
        assert_eq!(seconds("90m"), Some(5400));
        assert_eq!(seconds("1h2m3s"), Some(3723));
        for wrong in ["90", "30m1h", "1h1h", "-1h", "h", "1.5h", "9999999999h", "1d"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_are_safe_as_folders() {
        assert!(is_name("b5.3_k-0.13"));
        for wrong in ["", "..", "-x", "a/b", "a b", "ä"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
