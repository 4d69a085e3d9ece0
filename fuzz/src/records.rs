//! Files that grow by one line per trajectory.

use super::memory::bounded;
use super::scratch::{Scratch, names};
use hmc::io::{Column, Form, History, Journal, MOST_TRAJECTORIES, Records};

pub(super) fn run(bytes: &[u8]) {
    let folder = Scratch::new();
    // The names of the columns are those of the file, as a newer version's may be.
    let text = String::from_utf8_lossy(bytes);
    let first = text.lines().next().unwrap_or_default();
    let columns = first.strip_suffix(",crc32").unwrap_or(first);
    for (form, columns) in [(Form::Csv, columns), (Form::Csv, "trajectory,delta_h"), (Form::Json, "")] {
        let path = folder.file("history.csv", bytes);
        let records =
            bounded(bytes.len(), 64, || Records::read(&path, form, columns, &["delta_h", "plaquette"]))
                .unwrap();
        let lines: Vec<String> = records.lines().map(Into::into).collect();
        let mut journal = Journal::open(&path, &records).unwrap();
        let again = Records::read(&path, form, columns, &["delta_h", "plaquette"]).unwrap();
        assert_eq!(again.lines().collect::<Vec<_>>(), lines);
        assert_eq!(again.faults, [] as [&str; 0], "in a file just written");
        // A line that is appended is there, and the only one more.
        let line = match form {
            Form::Csv => records.line(&["trajectory"], &[MOST_TRAJECTORIES.to_string()]),
            Form::Json => format!("{{\"trajectory\":{MOST_TRAJECTORIES}}}"),
        };
        if !records.has(MOST_TRAJECTORIES)
            && (form == Form::Json || line.starts_with(&MOST_TRAJECTORIES.to_string()))
        {
            assert_eq!(journal.append(&line).unwrap(), None);
            let mut more = Records::read(&path, form, columns, &["delta_h", "plaquette"]).unwrap();
            assert_eq!((more.lines().count(), &more.faults[..]), (lines.len() + 1, &[][..]));
            assert_eq!(more.keep_up_to(MOST_TRAJECTORIES - 1), 1);
            assert_eq!(more.lines().collect::<Vec<_>>(), lines);
        }
    }
    let path = folder.file("history.csv", bytes);
    match bounded(bytes.len(), 256, || History::read(folder.path())) {
        Err(error) => names(error, &path),
        Ok(table) => {
            let length = |column: &Column| match column {
                Column::Counts(values) => values.len(),
                Column::Reals(values) => values.len(),
            };
            let lengths: Vec<usize> = table.columns.iter().map(|(_, column)| length(column)).collect();
            assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
        }
    }
}
