//! `history.h5`, the twin of `history.csv`: group `/history`, one dataset per column.

use super::hdf5_raw::{self, failed};
use super::{Column, History, IoError, write_aside};
use crate::comm::Solo;
use std::path::Path;

/// Writes `folder/history.h5` from the CSV file: group `/history`, one dataset per column.
///
/// # Errors
/// The CSV file cannot be read, or the HDF5 file cannot be written.
pub fn write_history_h5(folder: &Path) -> Result<(), IoError> {
    let table = History::read(folder)?;
    write_aside(&folder.join("history.h5"), &Solo, |temporary| {
        let file = hdf5_raw::create(temporary)?;
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

fn put_column<T: hdf5::H5Type>(group: &hdf5::Group, name: &str, values: &[T]) -> hdf5::Result<()> {
    let dataset = group.new_dataset::<T>().shape(values.len()).obj_track_times(false).create(name)?;
    if values.is_empty() { Ok(()) } else { dataset.write_raw(values) }
}
