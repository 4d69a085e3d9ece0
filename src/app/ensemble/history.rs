//! The history of a chain as CSV, or those of all streams as one table with the name of the stream before each row.

use crate::io::{Column, Table, Value};
use std::fmt::Write;

/// The rows of one chain after those of another, each with the name of its stream, if it has one. All columns that a chain has,
/// in the order in which they come; a field is empty where a chain has no such column.
pub(super) fn csv(chains: &[(Option<&str>, &Table)]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in chains.iter().flat_map(|(_, table)| &table.columns) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let before = |stream: Option<&str>| stream.map_or(String::new(), |stream| format!("{stream},"));
    let has_streams = chains.iter().any(|(stream, _)| stream.is_some());
    let mut text = before(has_streams.then_some("stream")) + &names.join(",");
    for (stream, table) in chains {
        let own =
            |wanted: &&str| table.columns.iter().find(|(name, _)| name == wanted).map(|(_, column)| column);
        let columns: Vec<Option<&Column>> = names.iter().map(own).collect();
        for row in 0..table.reals("trajectory").len() {
            let fields: Vec<String> = columns
                .iter()
                .map(|column| column.map_or(Value::Empty, |column| value(column, row)).to_string())
                .collect();
            let _ = write!(text, "\n{}{}", before(*stream), fields.join(","));
        }
    }
    text
}

fn value(column: &Column, row: usize) -> Value {
    match column {
        Column::Counts(values) => Value::Count(values[row]),
        Column::Reals(values) if values[row].is_nan() => Value::Empty,
        Column::Reals(values) => Value::Real(values[row]),
    }
}
