//! The history of a run: `history.csv`, one row per trajectory, and its twin `history.h5`.
//!
//! Every row is on the disk before the next trajectory starts, with a checksum. Reals are printed as the shortest text
//! that reads back to the same bits. Only rank 0 has a history.

use super::records::LARGEST;
use super::safe::{make_folder, read_plain};
use super::{Form, IoError, Journal, Records};
use std::path::{Path, PathBuf};

const CSV: &str = "history.csv";

/// One entry of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// An integer; also 0 and 1 for no and yes.
    Count(u64),
    /// A real.
    Real(f64),
    /// Nothing: an empty field.
    Empty,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n}"),
            Self::Real(x) => write!(f, "{x:?}"),
            Self::Empty => Ok(()),
        }
    }
}

/// All entries of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Integers.
    Counts(Vec<u64>),
    /// Reals, or integers where fields are empty: those are NaN.
    Reals(Vec<f64>),
}

/// A history as read from its CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names and columns, in the file's order, all of one length; without the checksums.
    pub columns: Vec<(String, Column)>,
}

impl Table {
    /// A column of the table, counts as reals; none if there is no such column.
    #[must_use]
    pub fn reals(&self, name: &str) -> Vec<f64> {
        match self.columns.iter().find(|(other, _)| other == name) {
            Some((_, Column::Counts(values))) => values.iter().map(|&n| n as f64).collect(),
            Some((_, Column::Reals(values))) => values.clone(),
            None => Vec::new(),
        }
    }
}

fn texts(row: &[Value]) -> Vec<String> {
    row.iter().map(ToString::to_string).collect()
}

/// The CSV file, open for new rows.
pub struct History {
    path: PathBuf,
    journal: Journal,
    records: Records,
    /// The columns that rows have; the file may have more.
    names: Vec<String>,
}

impl History {
    /// The rows of `folder/history.csv`, which has these columns, or any of these and of `known`; the first must be the
    /// trajectory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn records(folder: &Path, columns: &[&str], known: &[&str]) -> Result<Records, IoError> {
        Records::read(&folder.join(CSV), Form::Csv, &columns.join(","), known)
    }

    /// Opens `folder/history.csv` with the rows `records`, for new rows with these columns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(folder: &Path, columns: &[&str], records: &Records) -> Result<Self, IoError> {
        make_folder(folder)?;
        let path = folder.join(CSV);
        let mut records = records.clone();
        records.widen(columns);
        let names = columns.iter().map(|name| (*name).to_owned()).collect();
        Ok(Self { journal: Journal::open(&path, &records)?, path, records: records.without_lines(), names })
    }

    /// A row with these columns as a line of `records`, which get those that they lack.
    pub fn line(records: &mut Records, columns: &[&str], row: &[Value]) -> String {
        records.widen(columns);
        records.line(columns, &texts(row))
    }

    /// Appends a row and puts it on the disk; the answer is a warning.
    ///
    /// # Errors
    /// The system refuses, the row has not one value per column, or another file stands in the place of this one.
    pub fn append(&mut self, row: &[Value]) -> Result<Option<String>, IoError> {
        if row.len() != self.names.len() {
            let what = format!("a row of {} values for {} columns", row.len(), self.names.len());
            return Err(IoError::malformed(&self.path, what));
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        self.journal.append(&self.records.line(&names, &texts(row)))
    }

    /// Reads `folder/history.csv`: its whole rows.
    ///
    /// # Errors
    /// The file cannot be read, or has no line of names.
    pub fn read(folder: &Path) -> Result<Table, IoError> {
        let path = folder.join(CSV);
        let bytes = read_plain(&path, LARGEST).map_err(IoError::system(&path, "read"))?;
        let text = String::from_utf8_lossy(&bytes);
        let names = text.lines().next().and_then(|line| line.strip_suffix(",crc32"));
        let names =
            names.ok_or_else(|| IoError::damaged(&path, "the line with the columns' names is missing"))?;
        let records = Records::read(&path, Form::Csv, names, &[])?;
        let rows: Vec<Vec<&str>> = records.lines().map(|row| row.split(',').collect()).collect();
        let columns = names.split(',').enumerate().map(|(n, name)| {
            let texts = || rows.iter().map(|row| row.get(n).copied().unwrap_or_default());
            let real = |text: &str| match text {
                "" => Ok(f64::NAN),
                _ => text
                    .parse()
                    .map_err(|_| IoError::damaged(&path, format!("{name}: {text} is not a number"))),
            };
            let column = if let Ok(counts) = texts().map(str::parse).collect() {
                Column::Counts(counts)
            } else {
                Column::Reals(texts().map(real).collect::<Result<_, _>>()?)
            };
            Ok((name.to_owned(), column))
        });
        Ok(Table { columns: columns.collect::<Result<_, IoError>>()? })
    }
}
