//! The history of a run: `history.csv`, one row a trajectory, and its twin `history.h5`.
//!
//! Every row is on the disk before the next trajectory starts. Reals are printed as the shortest text
//! that reads back to the same bits. Only rank 0 has a history.

use super::IoError;
use super::hdf5_raw::{self, failed};
use super::safe::{make_folder, write_aside};
use crate::comm::Solo;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

const CSV: &str = "history.csv";
const HDF5: &str = "history.h5";

/// One entry of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// An integer; also 0 and 1 for no and yes.
    Count(u64),
    /// A real.
    Real(f64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n}"),
            Self::Real(x) => write!(f, "{x:?}"),
        }
    }
}

/// All entries of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Integers.
    Counts(Vec<u64>),
    /// Reals.
    Reals(Vec<f64>),
}

/// A history as read from its CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names and columns, in the file's order, all of one length.
    pub columns: Vec<(String, Column)>,
}

/// The CSV file, open for new rows.
pub struct History {
    path: PathBuf,
    file: File,
    columns: usize,
    /// Bytes up to the last complete row.
    length: u64,
}

impl History {
    /// Opens or starts `folder/history.csv` with these columns; the first must be the trajectory.
    ///
    /// A last line that was not written to its end is dropped, and so are the rows of trajectories from
    /// `keep_before` on: they are about to be made again.
    ///
    /// # Errors
    /// The file cannot be read or written, has other columns, or is damaged before its last line.
    pub fn open(folder: &Path, columns: &[&str], keep_before: u64) -> Result<Self, IoError> {
        make_folder(folder)?;
        let path = folder.join(CSV);
        let header = columns.join(",");
        let mut text = format!("{header}\n");
        if path.exists() {
            let old = Lines::read(&path)?;
            if old.header != header {
                let what = format!("has the columns {}, this run writes {header}", old.header);
                return Err(IoError::malformed(&path, what));
            }
            for row in &old.rows {
                let trajectory = row.split(',').next().and_then(|first| first.parse::<u64>().ok());
                match trajectory {
                    Some(n) if n < keep_before => {
                        text.push_str(row);
                        text.push('\n');
                    }
                    Some(_) => {}
                    None => return Err(IoError::damaged(&path, format!("no trajectory in the row {row}"))),
                }
            }
        }
        write_aside(&path, &Solo, |temporary| {
            fs::write(temporary, &text).map_err(IoError::system(temporary, "write"))
        })?;
        let file = OpenOptions::new().append(true).open(&path).map_err(IoError::system(&path, "open"))?;
        Ok(Self { path, file, columns: columns.len(), length: text.len() as u64 })
    }

    /// Appends a row and puts it on the disk.
    ///
    /// # Errors
    /// The system refuses, or the row has not one value a column.
    pub fn append(&mut self, row: &[Value]) -> Result<(), IoError> {
        if row.len() != self.columns {
            let what = format!("a row of {} values for {} columns", row.len(), self.columns);
            return Err(IoError::malformed(&self.path, what));
        }
        let mut line = row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        line.push('\n');
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a row must not stand in front of the next one; reading drops it only at the end.
            let _ = self.file.set_len(self.length);
            return Err(IoError::system(&self.path, "append to")(error));
        }
        self.length += line.len() as u64;
        self.file.sync_data().map_err(IoError::system(&self.path, "put on the disk"))
    }

    /// Reads `folder/history.csv`.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged before its last line.
    pub fn read(folder: &Path) -> Result<Table, IoError> {
        let path = folder.join(CSV);
        let lines = Lines::read(&path)?;
        let rows: Vec<Vec<&str>> = lines.rows.iter().map(|row| row.split(',').collect()).collect();
        let columns = lines.header.split(',').enumerate().map(|(n, name)| {
            let texts = || rows.iter().map(|row| row[n]);
            let real = |text: &str| {
                text.parse().map_err(|_| IoError::damaged(&path, format!("{name}: {text} is no number")))
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

    /// Writes `folder/history.h5` from the CSV file: group `/history`, one dataset a column.
    ///
    /// # Errors
    /// The CSV file cannot be read, or the HDF5 file cannot be written.
    pub fn write_h5(folder: &Path) -> Result<(), IoError> {
        let table = Self::read(folder)?;
        write_aside(&folder.join(HDF5), &Solo, |temporary| {
            let file = hdf5_raw::create(temporary, &Solo)?;
            let put = || -> hdf5::Result<()> {
                let group = file.create_group_builder().obj_track_times(false).create("history")?;
                for (name, column) in &table.columns {
                    let name = name.as_str();
                    match column {
                        Column::Counts(values) => put_column(&group, name, values)?,
                        Column::Reals(values) => put_column(&group, name, values)?,
                    }
                }
                file.flush()
            };
            put().map_err(failed(temporary, "write /history"))?;
            file.close().map_err(failed(temporary, "close the file"))
        })
    }
}

fn put_column<T: hdf5::H5Type>(group: &hdf5::Group, name: &str, values: &[T]) -> hdf5::Result<()> {
    let dataset = group.new_dataset::<T>().shape(values.len()).obj_track_times(false).create(name)?;
    if values.is_empty() { Ok(()) } else { dataset.write_raw(values) }
}

/// The complete lines of a CSV file.
struct Lines {
    header: String,
    rows: Vec<String>,
}

impl Lines {
    /// Drops a last line that lacks its end or some of its entries; any other is an error.
    fn read(path: &Path) -> Result<Self, IoError> {
        let bytes = fs::read(path).map_err(IoError::system(path, "read"))?;
        let complete = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&bytes[..complete]);
        let mut lines = text.lines().map(str::to_owned);
        let Some(header) = lines.next() else {
            return Err(IoError::damaged(path, "the line with the columns' names is missing"));
        };
        let columns = header.split(',').count();
        let mut rows: Vec<String> = lines.collect();
        let whole = |row: &String| {
            row.split(',').count() == columns && row.split(',').all(|value| value.parse::<f64>().is_ok())
        };
        if rows.last().is_some_and(|row| !whole(row)) {
            rows.pop();
        }
        match rows.iter().position(|row| !whole(row)) {
            None => Ok(Self { header, rows }),
            Some(n) => Err(IoError::damaged(path, format!("line {} is no row of {columns} numbers", n + 2))),
        }
    }
}
