//! HDF5 as this floor uses it: files, attributes, and one rank's box of a dataset.
//!
//! One rank lays a file out: its attributes, and datasets without chunks or filters, which are plain bytes from an offset on.
//! All ranks then write these bytes as they write those of other formats, and read through HDF5, each for itself. HDF5's own
//! parallel writing is not used: where all ranks together have some gigabytes, MPI's part of it fails (docs/files.md).
//!
//! `hdf5` does most; transfers call the C library. Its lock is held for every call: the library serves one thread at a time. Its
//! error stack is silenced by the crate and comes back in [`IoError::Hdf5`].

use super::bytes::{Endian, Pen, eight, four, rows};
use super::error::one_line;
use super::{IoError, Precision};
use crate::lattice::{Extents, Partition, volume};
use hdf5::dataset::{AllocTime, FillTime};
use hdf5::file::LibraryVersion;
use hdf5::types::{CompoundField, CompoundType, FloatSize, TypeDescriptor, VarLenUnicode};
use hdf5::{Dataset, Datatype, Error, File, FileBuilder, Group, Location};
use hdf5_sys::h5::{herr_t, hsize_t};
use hdf5_sys::h5d::{H5Dget_space, H5Dread};
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::h5s::{H5S_seloper_t, H5Sclose, H5Screate_simple, H5Sselect_hyperslab};
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

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<File, IoError> {
    builder().open(path).map_err(failed(path, "open the file"))
}

/// Whether there is a dataset of this name, in groups that are there.
pub(super) fn has(file: &File, name: &str) -> bool {
    name.match_indices('/').all(|(end, _)| file.link_exists(&name[..end])) && file.link_exists(name)
}

/// The type that h5py reads as complex128.
pub(super) fn complex() -> TypeDescriptor {
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

/// Reads a text attribute.
pub(super) fn get_text(place: &Location, name: &str) -> hdf5::Result<String> {
    let text = place.attr(name)?.read_scalar::<VarLenUnicode>()?;
    let text = std::str::from_utf8(text.as_bytes());
    text.map(Into::into).map_err(|error| Error::Internal(format!("attribute {name}: {error}")))
}

/// Checks the global heaps in `head`, the part of a file in front of its data: texts live there.
///
/// Heaps are the one kind of metadata that HDF5 keeps without a checksum, and a damaged size in one
/// sends HDF5 1.10 into an endless loop. HDF5 file format 3.0, III.E: `GCOL`, version 1, three zeros, size;
/// then objects of index (2 bytes), count (2), zeros (4), size (8), data padded to 8 bytes; object 0 is
/// the free rest, and its size includes these 16 bytes.
pub(super) fn heaps_are_sound(head: &[u8]) -> bool {
    let mark = b"GCOL\x01\0\0\0";
    let starts = (0..head.len()).filter(|&start| head[start..].starts_with(mark));
    starts.into_iter().all(|start| heap_is_sound(&head[start..]).is_some())
}

/// Walks the objects of one heap; `None` if one does not end inside.
fn heap_is_sound(bytes: &[u8]) -> Option<()> {
    let number = |place: usize| usize::try_from(u64::from_le_bytes(eight(bytes, place)?)).ok();
    let end = number(8)?;
    let mut place = 16;
    // A rest of less than an object's header is free space without a header.
    while end.checked_sub(place)? >= 16 {
        let (index, size) = (four(bytes, place)?, number(place + 8)?);
        let length = match index {
            [0, 0, ..] if size < 16 => return None,
            [0, 0, ..] => size,
            _ => size.checked_next_multiple_of(8)?.checked_add(16)?,
        };
        place = place.checked_add(length)?;
    }
    (end <= bytes.len()).then_some(())
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

/// Opens a dataset of complex numbers and checks shape, `[t, z, y, x]` and `tail`, and type.
pub(super) fn dataset(
    file: &File,
    path: &Path,
    name: &str,
    [x, y, z, t]: Extents,
    tail: &[usize],
) -> Result<Dataset, IoError> {
    let dataset = file.dataset(name).map_err(failed(path, format!("open /{name}")))?;
    let (shape, expected) = (dataset.shape(), [&[t, z, y, x], tail].concat());
    if shape != expected {
        let what = format!("/{name} has shape {shape:?}, but {expected:?} is expected");
        return Err(IoError::malformed(path, what));
    }
    let kind = dataset.dtype().and_then(|kind| kind.to_descriptor());
    if kind.map_err(failed(path, format!("read the type of /{name}")))? != complex() {
        return Err(IoError::malformed(path, format!("/{name} does not hold pairs r, i of doubles")));
    }
    Ok(dataset)
}

/// One rank's box of a dataset: first element and extents, slowest direction first.
pub(super) struct Slab {
    start: Vec<usize>,
    count: Vec<usize>,
}

impl Slab {
    /// A rank's box where the sites hold `tail`.
    pub(super) fn new(partition: &Partition, tail: &[usize]) -> Self {
        let ([x, y, z, t], [lx, ly, lz, lt]) = (partition.offset(), partition.local());
        Self {
            start: [&[t, z, y, x], &vec![0; tail.len()][..]].concat(),
            count: [&[lt, lz, ly, lx], tail].concat(),
        }
    }
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

/// Reads this rank's box of complex numbers, however the file keeps them.
pub(super) fn read(dataset: &Dataset, slab: &Slab, reals: &mut [f64]) -> hdf5::Result<()> {
    let dimensions = slab.count.len();
    let wanted = slab.count.iter().try_fold(2_usize, |product, &n| product.checked_mul(n));
    if dataset.ndim() != dimensions || wanted != Some(reals.len()) {
        return Err(Error::Internal("a box of another shape".into()));
    }
    let [start, count] =
        [&slab.start, &slab.count].map(|all| all.iter().map(|&n| n as hsize_t).collect::<Vec<_>>());
    let rank = i32::try_from(dimensions).map_err(|error| Error::Internal(error.to_string()))?;
    let kind = Datatype::from_descriptor(&complex())?;
    hdf5::sync::sync(|| {
        // SAFETY: the dataset is open.
        let file = Owned::new(unsafe { H5Dget_space(dataset.id()) }, H5Sclose)?;
        // SAFETY: `count` has as many numbers as is said.
        let memory = unsafe { H5Screate_simple(rank, count.as_ptr(), std::ptr::null()) };
        let memory = Owned::new(memory, H5Sclose)?;
        let (set, none) = (H5S_seloper_t::H5S_SELECT_SET, std::ptr::null());
        // SAFETY: the dataset has as many dimensions as `start` and `count` have numbers.
        let selected =
            unsafe { H5Sselect_hyperslab(file.0, set, start.as_ptr(), none, count.as_ptr(), none) };
        check(selected.into())?;
        // SAFETY: `memory` has as many complex numbers as `reals` holds pairs, as was checked.
        let read = unsafe {
            let to = reals.as_mut_ptr().cast();
            H5Dread(dataset.id(), kind.id(), memory.0, file.0, H5P_DEFAULT, to)
        };
        check(read.into()).map(drop)
    })
}

/// An identifier that is closed with its scope, inside `sync`.
struct Owned(hid_t, unsafe extern "C" fn(hid_t) -> herr_t);

impl Owned {
    fn new(id: hid_t, close: unsafe extern "C" fn(hid_t) -> herr_t) -> hdf5::Result<Self> {
        check(id).map(|id| Self(id, close))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the identifier is valid, of the kind that its `close` closes, and this guard's alone.
        unsafe { (self.1)(self.0) };
    }
}

/// HDF5's convention: negative for a failure, told by the error stack.
fn check(code: hid_t) -> hdf5::Result<hid_t> {
    if code >= 0 { Ok(code) } else { Err(Error::query().unwrap_or_else(|error| error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_with_a_damaged_size_is_unsound() {
        // A collection of 64 bytes: a text of 3, padded to 8, and 24 bytes free.
        let mut heap = b"GCOL\x01\0\0\0".to_vec();
        heap.extend(64_u64.to_le_bytes());
        heap.extend([1, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        heap.extend(b"abc\0\0\0\0\0");
        heap.extend([0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]);
        heap.extend([0; 8]);
        assert!(heaps_are_sound(&heap));
        assert!(heaps_are_sound(b"no heap"));
        for (place, value) in [(8, 65), (24, 200), (31, 255), (48, 0), (48, 25)] {
            let mut bad = heap.clone();
            bad[place] = value;
            assert!(!heaps_are_sound(&bad), "{value} at {place}");
        }
    }
}
