//! HDF5 as this floor writes it: files, attributes, and datasets whose bytes follow each other. What is read goes by
//! `hdf5_reader`.
//!
//! One rank lays a file out: its attributes, and datasets without chunks or filters, which are plain bytes from an offset on.
//! All ranks then write these bytes as they write those of other formats. HDF5's own parallel writing is not used: where all
//! ranks together have some gigabytes, MPI's part of it fails (docs/files.md).
//!
//! Its error stack is silenced by the crate and comes back in [`IoError::Hdf5`].

use super::bytes::{Endian, Pen, rows};
use super::error::one_line;
use super::{IoError, Precision};
use crate::lattice::{Extents, Partition, volume};
use hdf5::dataset::{AllocTime, FillTime};
use hdf5::file::LibraryVersion;
use hdf5::types::{CompoundField, CompoundType, FloatSize, TypeDescriptor, VarLenUnicode};
use hdf5::{Error, File, FileBuilder, Group, Location};
use std::path::Path;
use std::str::FromStr;

/// For `map_err`: HDF5 cannot do `action` with `path`.
pub(super) fn failed(path: &Path, action: impl Into<String>) -> impl FnOnce(Error) -> IoError {
    let (path, action) = (path.to_path_buf(), action.into());
    move |error| IoError::Hdf5 { path, action, message: one_line(&error.to_string()) }
}

/// Files of this format only: HDF5 1.10 checks its metadata by checksums of their own.
///
/// Without HDF5's file locks: a file is written under another name and appears whole, some parallel file
/// systems have no locks, and a lock outlives its file where a process was forked meanwhile.
fn builder() -> FileBuilder {
    let mut builder = FileBuilder::new();
    builder.with_fapl(|p| {
        p.libver_bounds(LibraryVersion::V110, LibraryVersion::V110).file_locking(false).sec2()
    });
    // No times, and all attributes in the header of their object: the same bytes for the same content.
    builder.with_fcpl(|p| p.obj_track_times(false).attr_phase_change(64, 0));
    builder
}

/// Creates a file.
pub(super) fn create(path: &Path) -> Result<File, IoError> {
    builder().create(path).map_err(failed(path, "create the file"))
}

/// The type that h5py reads as complex128.
fn complex() -> TypeDescriptor {
    let real = || TypeDescriptor::Float(FloatSize::U8);
    let fields = vec![CompoundField::new("r", real(), 0, 0), CompoundField::new("i", real(), 8, 1)];
    TypeDescriptor::Compound(CompoundType { fields, size: 16 })
}

/// Writes a text attribute: variable length, UTF-8, so that h5py reads a `str`.
pub(super) fn put_text(place: &Location, name: &str, text: &str) -> hdf5::Result<()> {
    let text = VarLenUnicode::from_str(text)
        .map_err(|error| Error::Internal(format!("attribute {name}: {error}")))?;
    place.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&text)
}

/// Makes a dataset of complex numbers `[t, z, y, x]` and `tail`, whose bytes nobody has written yet; returns where they begin.
pub(super) fn lay_out(group: &Group, name: &str, [x, y, z, t]: Extents, tail: &[usize]) -> hdf5::Result<u64> {
    let dataset = group
        .new_dataset_builder()
        .empty_as(complex())
        .shape([&[t, z, y, x], tail].concat())
        .alloc_time(Some(AllocTime::Early))
        .fill_time(FillTime::Never)
        .obj_track_times(false)
        .create(name)?;
    dataset.offset().ok_or_else(|| Error::Internal(format!("dataset {name} has no place in its file")))
}

/// Writes this rank's box of a dataset that begins at byte `start` of the file, and puts it on the disk.
pub(super) fn write(path: &Path, start: u64, partition: &Partition, reals: &[f64]) -> Result<(), IoError> {
    let site_reals = reals.len() / volume(partition.local());
    let row_reals = site_reals * partition.local()[0];
    let mut pen = Pen::new(path)?;
    let mut bytes = Vec::new();
    for ((_, first), row) in rows(partition).zip(reals.chunks_exact(row_reals)) {
        bytes.clear();
        Endian::Little.encode(Precision::Double, row, &mut bytes);
        pen.write(start + (first * site_reals) as u64 * 8, &bytes)?;
    }
    pen.finish()
}
