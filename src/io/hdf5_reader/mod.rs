//! HDF5 files are read here, and not by HDF5's library: that one believes what a file says of itself, so that a file that is
//! made for it crashes the program, opens other files or loads other programs.
//!
//! Read is what HDF5 keeps inside of one file ("HDF5 File Format Specification 3.0"): what this program writes, and what
//! `h5repack` and h5py make of it. Everything else is refused by its name: other files, links other than hard ones, types
//! other than expected, filters other than shuffle, deflate and Fletcher-32. Every block lies inside of the file, is read once
//! at a bounded length, and must have its checksum if it has one.
//!
//! - `fields`: numbers of a block, and its checksum
//! - `object`: headers of groups and datasets: lists of messages
//! - `group`: links of a group
//! - `tree`: B-trees of links and of chunks
//! - `heap`: texts, and what is too much for a header
//! - `kind`: types of numbers and texts, shapes
//! - `attribute`: attributes
//! - `dataset`: a box of a dataset of complex numbers
//! - `chunks`: where chunks are
//! - `filters`: what was done to them

mod attribute;
mod chunks;
mod dataset;
mod fields;
mod filters;
mod group;
mod heap;
mod kind;
mod object;
mod tree;

pub(super) use dataset::Slab;

use super::bytes::{open, read_at};
use super::{HDF5_SIGNATURE, IoError};
use fields::{Fields, has_checksum};
use std::fs::File;
use std::path::Path;

/// No block of metadata is longer. Texts of attributes are in such blocks.
const LONGEST: u64 = 1 << 28;
/// An address that leads nowhere.
const NOWHERE: u64 = u64::MAX;

/// An open HDF5 file.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    path: &'a Path,
    file: File,
    /// Bytes of a user block, before the first one that addresses count.
    base: u64,
    /// Bytes behind it.
    size: u64,
    /// Where the header of `/` is.
    root: u64,
}

impl<'a> Reader<'a> {
    /// Opens a file and reads its superblock.
    pub(super) fn open(path: &'a Path) -> Result<Self, IoError> {
        let file = open(path)?;
        let base = start(path)?.ok_or_else(|| IoError::malformed(path, "not an HDF5 file"))?;
        let size = file.metadata().map_err(IoError::system(path, "look at"))?.len().saturating_sub(base);
        let mut reader = Self { path, file, base, size, root: 0 };
        let version = reader.block(0, 9)?[8];
        let found = match version {
            0 | 1 => old_superblock(&reader.block(0, 96 + 4 * u64::from(version))?, version, base),
            2 | 3 => new_superblock(&reader.block(0, 48)?, base),
            _ => return Err(reader.refused(format!("HDF5 with a superblock of version {version}"))),
        };
        let [end, root] = found.ok_or_else(|| reader.broken("superblock", 0))?;
        reader.require(0, end.saturating_sub(base))?;
        reader.root = root;
        Ok(reader)
    }

    /// So many bytes of metadata.
    fn block(&self, address: u64, length: u64) -> Result<Vec<u8>, IoError> {
        let end = address.checked_add(length).filter(|_| length <= LONGEST);
        end.ok_or_else(|| self.broken("block", address))?;
        self.require(address, length)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| self.broken("block", address))?];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads the bytes at an address.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), IoError> {
        read_at(&self.file, self.path, self.base.saturating_add(address), bytes)
    }

    /// Refuses what ends behind the file.
    fn require(&self, address: u64, length: u64) -> Result<(), IoError> {
        let end = address.saturating_add(length);
        if end <= self.size {
            return Ok(());
        }
        let [expected, found] = [end, self.size].map(|end| self.base.saturating_add(end));
        Err(IoError::Truncated { path: self.path.into(), expected, found })
    }

    /// A block that begins with a mark and ends with a checksum, which is left out.
    fn sealed(&self, address: u64, length: u64, mark: &[u8]) -> Result<Vec<u8>, IoError> {
        let mut bytes = self.block(address, length)?;
        if !bytes.starts_with(mark) || !has_checksum(&bytes) {
            return Err(self.broken(&String::from_utf8_lossy(mark), address));
        }
        bytes.truncate(bytes.len() - 4);
        Ok(bytes)
    }

    /// A part of the file's structure that is not what it must be.
    fn broken(&self, what: &str, address: u64) -> IoError {
        IoError::damaged(self.path, format!("HDF5's {what} at byte {address} is broken"))
    }

    /// What this program does not read.
    fn refused(&self, what: impl std::fmt::Display) -> IoError {
        IoError::malformed(self.path, format!("{what}; expected is what hmc or h5repack writes"))
    }
}

/// Where the superblock is: at the beginning, or behind a user block of 512 bytes, 1024, and so on.
pub(super) fn start(path: &Path) -> Result<Option<u64>, IoError> {
    let file = open(path)?;
    let size = file.metadata().map_err(IoError::system(path, "look at"))?.len();
    let mut places = std::iter::once(0).chain((9..63).map(|n| 1 << n)).take_while(|place| place + 9 <= size);
    let is_mark = |place: &u64| {
        let mut mark = [0; HDF5_SIGNATURE.len()];
        read_at(&file, path, *place, &mut mark).is_ok() && mark == HDF5_SIGNATURE
    };
    Ok(places.find(is_mark))
}

/// End of the file and the header of `/`, of versions 0 and 1.
fn old_superblock(bytes: &[u8], version: u8, at: u64) -> Option<[u64; 2]> {
    let mut fields = Fields(bytes);
    fields.take(13)?;
    let widths = fields.take(2)?;
    fields.take(if version == 0 { 9 } else { 13 })?;
    let [base, _, end, _, _, root] = fields.addresses()?;
    (widths == [8, 8] && base == at).then_some([end, root])
}

/// The same of versions 2 and 3.
fn new_superblock(bytes: &[u8], at: u64) -> Option<[u64; 2]> {
    let mut fields = Fields(bytes);
    fields.take(9)?;
    let widths = fields.take(2)?;
    fields.take(1)?;
    let [base, _, end, root] = fields.addresses()?;
    (has_checksum(bytes) && widths == [8, 8] && base == at).then_some([end, root])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Partition;
    use hdf5::file::LibraryVersion;
    use hdf5::types::VarLenUnicode;
    use std::fs;
    use std::ops::Range;

    #[derive(Clone, Copy, hdf5::H5Type)]
    #[repr(C)]
    struct Pair {
        r: f64,
        i: f64,
    }

    const TEXT: &str = "a text";

    /// A small file: attributes in the header, or in a heap if they are many, and links in chunks or not.
    fn file(path: &Path, version: LibraryVersion, attributes: usize, chunk: Option<[usize; 7]>) -> Vec<u8> {
        file_behind(0, path, version, attributes, chunk)
    }

    /// The same behind a user block of so many bytes.
    fn file_behind(
        user: u64,
        path: &Path,
        version: LibraryVersion,
        attributes: usize,
        chunk: Option<[usize; 7]>,
    ) -> Vec<u8> {
        {
            let mut options = hdf5::File::with_options();
            options.with_fapl(|p| p.libver_bounds(version, LibraryVersion::V110));
            options.with_fcpl(|p| p.userblock(user));
            let file = options.create(path).unwrap();
            let text: VarLenUnicode = TEXT.parse().unwrap();
            for n in 0..attributes {
                let name = format!("text{n}");
                file.new_attr::<VarLenUnicode>().create(&*name).unwrap().write_scalar(&text).unwrap();
            }
            file.new_attr::<u64>().shape(4).create("number").unwrap().write_raw(&[1, 2, 3, 4]).unwrap();
            let builder = file.create_group("gauge").unwrap().new_dataset::<Pair>();
            let builder = match chunk {
                Some(chunk) => builder.chunk(chunk).shuffle().deflate(6).fletcher32(),
                None => builder,
            };
            let links = vec![Pair { r: 0.5, i: 1.0 }; 16 * 36];
            builder.shape([2, 2, 2, 2, 4, 3, 3]).create("U").unwrap().write_raw(&links).unwrap();
        }
        fs::read(path).unwrap()
    }

    /// All that there is to read, as far as it is read.
    fn read_all(path: &Path) -> Result<usize, IoError> {
        let reader = Reader::open(path)?;
        let all = reader.attributes()?;
        let mut texts = 0;
        for name in (0..20).map(|n| format!("text{n}")).filter(|name| all.has(name)) {
            texts += usize::from(all.text(&name)? == TEXT);
        }
        assert!(all.integers("number", &[4])? != [0; 4] || texts < 20);
        reader.members("gauge")?;
        let partition = Partition::whole([2; 4]).expect("even extents");
        reader.dataset("gauge/U", [2; 4], &[4, 3, 3])?.read(&Slab::new(&partition, &[4, 3, 3]))?;
        Ok(texts)
    }

    /// The parts of a file that end with their checksum.
    fn sealed(file: &[u8]) -> Vec<Range<usize>> {
        let marks = [HDF5_SIGNATURE, b"OHDR", b"OCHK", b"FAHD", b"FADB", b"BTHD", b"BTLF", b"FRHP"];
        let starts = (0..file.len()).filter(|&n| marks.iter().any(|mark| file[n..].starts_with(mark)));
        let end = |start: usize| {
            (start + 8..(start + 4096).min(file.len())).find(|&end| has_checksum(&file[start..end]))
        };
        starts.filter_map(|start| Some(start..end(start)?)).collect()
    }

    #[test]
    fn a_user_block_is_passed() {
        let path = std::env::temp_dir().join(format!("hmc-user-block-{}", std::process::id()));
        for user in [512, 4096] {
            for version in [LibraryVersion::Earliest, LibraryVersion::V110] {
                for chunk in [None, Some([1, 2, 2, 2, 4, 3, 3])] {
                    let mut bytes = file_behind(user, &path, version, 12, chunk);
                    bytes[..6].copy_from_slice(b"notes\n");
                    fs::write(&path, &bytes).unwrap();
                    assert_eq!(crate::io::detect(&path).unwrap(), crate::io::Format::Hdf5);
                    assert_eq!(read_all(&path).unwrap(), 12);
                    // Cut anywhere: no more than an error.
                    for length in (0..bytes.len()).step_by(37) {
                        fs::write(&path, &bytes[..length]).unwrap();
                        assert!(read_all(&path).is_err());
                    }
                }
            }
        }
        fs::remove_file(path).unwrap();
    }

    /// Whatever byte of its structure is another one, under right checksums: a file is read or refused, and nothing else happens.
    #[test]
    fn altered_files_are_read_or_refused() {
        let path = std::env::temp_dir().join(format!("hmc-altered-{}", std::process::id()));
        let whole = Some([2, 2, 2, 2, 4, 3, 3]);
        let (slices, elements) = (Some([1, 2, 2, 2, 4, 3, 3]), Some([1, 1, 1, 2, 1, 3, 3]));
        let (mut altered, mut sealed_again, mut refused) = (0, 0, 0);
        for (version, attributes, chunk) in [
            (LibraryVersion::Earliest, 2, None),
            (LibraryVersion::Earliest, 12, elements),
            (LibraryVersion::V110, 2, None),
            (LibraryVersion::V110, 12, slices),
            (LibraryVersion::V110, 2, elements),
            (LibraryVersion::V110, 2, whole),
        ] {
            let good = file(&path, version, attributes, chunk);
            assert_eq!(read_all(&path).unwrap(), attributes, "{version:?} {attributes} {chunk:?}");
            let sealed = sealed(&good);
            assert_eq!(sealed.is_empty(), version == LibraryVersion::Earliest);
            // Texts and links are in the file, and other than zeros but for what is padded.
            let places: Vec<usize> = (8..good.len())
                .filter(|&n| good[n] != 0 || sealed.iter().any(|part| part.contains(&n)))
                .collect();
            for (n, place) in places.into_iter().enumerate().filter(|(n, _)| n % 3 == 0 || chunk.is_none()) {
                let values = [0, 0xff, good[place] ^ 1, good[place] ^ 0x80];
                let part = sealed.iter().find(|part| part.contains(&place));
                for value in if part.is_some() { &values[..] } else { &values[n / 3 % 4..][..1] } {
                    let mut bad = good.clone();
                    bad[place] = *value;
                    if let Some(part) = part {
                        let sum = fields::lookup3(&bad[part.start..part.end - 4]);
                        bad[part.end - 4..part.end].copy_from_slice(&sum.to_le_bytes());
                        sealed_again += 1;
                    }
                    altered += 1;
                    fs::write(&path, &bad).unwrap();
                    if let Err(error) = read_all(&path) {
                        refused += 1;
                        let error = error.to_string();
                        assert!(
                            error.starts_with(path.to_str().unwrap()) && !error.contains('\n'),
                            "{error}"
                        );
                    }
                }
            }
        }
        fs::remove_file(path).unwrap();
        println!(
            "{altered} altered files, {sealed_again} of them with right checksums: {refused} are refused"
        );
    }
}
