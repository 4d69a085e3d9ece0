//! Results of measurements as text: one line per number; a list is printed as rows below its name.

use serde_json::{Map, Value};

/// The fields of a result; an entry of a `list` is one row.
pub(super) fn table(list: Option<&str>, found: &Map<String, Value>) -> String {
    match list {
        Some(list) => row(list, found),
        None => found.iter().map(|(name, value)| lines(name, value)).collect(),
    }
}

fn lines(name: &str, value: &Value) -> String {
    match value {
        Value::Array(rows) if rows.iter().any(Value::is_object) => {
            rows.iter().filter_map(Value::as_object).map(|entry| row(name, entry)).collect()
        }
        _ => format!("  {name:<16} {}\n", number(value)),
    }
}

fn row(name: &str, entry: &Map<String, Value>) -> String {
    let cells: Vec<String> = entry.iter().map(|(key, value)| cell(key, value)).collect();
    format!("  {name:<16} {}\n", cells.join("  "))
}

/// One entry of a row; a list starts new lines.
fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let lines = values.iter().enumerate().map(|(n, x)| format!("\n  {n:>16} {}", number(x)));
            format!("{key}{}", lines.collect::<String>())
        }
        Value::String(text) => text.clone(),
        _ => format!("{key} {}", number(value)),
    }
}

/// A number with the significant digits; the JSON has all of them.
pub(super) fn number(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Array(parts) => parts.iter().map(number).collect::<Vec<_>>().join(" "),
        Value::Number(n) if n.is_f64() => {
            let x = n.as_f64().unwrap_or(f64::NAN);
            if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { format!("{x:.10}") } else { format!("{x:.9e}") }
        }
        _ => value.to_string(),
    }
}

/// The mean over Lt/4 <= t <= 3 Lt/4.
pub(super) fn mean_in_the_middle(values: &[f64]) -> f64 {
    let middle = &values[values.len().div_ceil(4)..=3 * values.len() / 4];
    middle.iter().sum::<f64>() / middle.len() as f64
}
