//! Bytes of serial formats: byte order, precision, and links as site records in natural order.
//!
//! MILC, NERSC and ILDG files all hold `[t][z][y][x][mu][row][column][re, im]`, mu = x, y, z, t;
//! they differ in the reals' width, the byte order, and whether the third row is there.

use super::safe::reopen;
use super::{IoError, Precision};
use crate::comm::{Comm, agree};
use crate::device::host_memory;
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Extents, Partition, site, volume};
use crate::math::single;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endian {
    Big,
    Little,
}

impl Endian {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Big => Self::Little,
            Self::Little => Self::Big,
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    pub(super) fn f64(self, bytes: [u8; 8]) -> f64 {
        match self {
            Self::Big => f64::from_be_bytes(bytes),
            Self::Little => f64::from_le_bytes(bytes),
        }
    }

    /// The 32-bit words of `bytes`; a rest of fewer than four bytes is left out.
    pub(super) fn words(self, bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
        bytes.chunks_exact(4).map(move |b| self.u32([b[0], b[1], b[2], b[3]]))
    }

    /// Appends the reals that `bytes` hold to `reals`.
    pub(super) fn decode(self, precision: Precision, bytes: &[u8], reals: &mut Vec<f64>) {
        match precision {
            Precision::Single => {
                reals.extend(self.words(bytes).map(|word| f64::from(f32::from_bits(word))));
            }
            Precision::Double => reals.extend(
                bytes.chunks_exact(8).map(|b| self.f64([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
            ),
        }
    }

    /// Appends the bytes of `reals` to `bytes`.
    pub(super) fn encode(self, precision: Precision, reals: &[f64], bytes: &mut Vec<u8>) {
        for &x in reals {
            match (precision, self) {
                (Precision::Single, Self::Big) => bytes.extend(single(x).to_be_bytes()),
                (Precision::Single, Self::Little) => bytes.extend(single(x).to_le_bytes()),
                (Precision::Double, Self::Big) => bytes.extend(x.to_be_bytes()),
                (Precision::Double, Self::Little) => bytes.extend(x.to_le_bytes()),
            }
        }
    }
}

/// Four bytes of `bytes` at `start`, as far as they are there.
pub(super) fn four(bytes: &[u8], start: usize) -> Option<[u8; 4]> {
    bytes.get(start..)?.first_chunk().copied()
}

/// Eight bytes of `bytes` at `start`, as far as they are there.
pub(super) fn eight(bytes: &[u8], start: usize) -> Option<[u8; 8]> {
    bytes.get(start..)?.first_chunk().copied()
}

/// The first bytes of a file, at most `length`, and the size of the file.
pub(super) fn head(path: &Path, length: usize) -> Result<(Vec<u8>, u64), IoError> {
    let file = open(path)?;
    let size = file.metadata().map_err(IoError::system(path, "look at"))?.len();
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(length)];
    read_at(&file, path, 0, &mut bytes)?;
    Ok((bytes, size))
}

/// The size of a file, and the checksum of its first and last bytes: those that say what the rest is.
pub(super) fn ends(path: &Path) -> Result<Vec<u8>, IoError> {
    const LENGTH: usize = 1 << 17;
    let (mut bytes, size) = head(path, LENGTH)?;
    let mut last = vec![0; bytes.len()];
    read_at(&open(path)?, path, size - last.len() as u64, &mut last)?;
    bytes.append(&mut last);
    Ok([&size.to_le_bytes()[..], &crc32fast::hash(&bytes).to_le_bytes()].concat())
}

/// Opens a file for reading; folders are refused, and pipes, which one would wait for.
pub(super) fn open(path: &Path) -> Result<File, IoError> {
    let kind = std::fs::metadata(path).map_err(IoError::system(path, "open"))?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "is a folder" } else { "is no file, but a pipe or a device" };
        return Err(IoError::malformed(path, what));
    }
    File::open(path).map_err(IoError::system(path, "open"))
}

/// Fills `bytes` from position `start`.
pub(super) fn read_at(file: &File, path: &Path, start: u64, bytes: &mut [u8]) -> Result<(), IoError> {
    file.read_exact_at(bytes, start).map_err(|source| match source.kind() {
        std::io::ErrorKind::UnexpectedEof => IoError::Truncated {
            path: path.into(),
            expected: start.saturating_add(bytes.len() as u64),
            found: file.metadata().map_or(0, |data| data.len()),
        },
        _ => IoError::system(path, "read")(source),
    })
}

/// So many zeros; or an error, where they are more than this node's memory.
pub(super) fn zeros<T: Copy + Default>(path: &Path, count: usize) -> Result<Vec<T>, IoError> {
    let needed = count.saturating_mul(size_of::<T>()) as u64;
    let node = host_memory().map(|[_, node]| node);
    let none = || IoError::NoMemory { path: path.into(), needed, node };
    if node.is_some_and(|node| needed > node) {
        return Err(none());
    }
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(count).map_err(|_| none())?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

/// Extents from a header: none may be zero, odd or so large that a count of bytes overflows.
pub(super) fn checked_extents(path: &Path, numbers: [u64; 4]) -> Result<Extents, IoError> {
    let bad = |why| IoError::malformed(path, format!("extents {numbers:?} {why}"));
    if numbers.iter().any(|&n| n == 0 || n > 1 << 20 || n % 2 == 1) {
        return Err(bad("are not even numbers from 2 to 2^20"));
    }
    // 1152 bytes: four links of 36 doubles, twice what any format holds.
    numbers
        .iter()
        .try_fold(1152_u64, |product, &n| product.checked_mul(n))
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .map(|_| numbers.map(|n| usize::try_from(n).expect("at most 2^20")))
        .ok_or_else(|| bad("are absurd"))
}

/// The extents of a lattice for a header of 32-bit numbers, refused as [`checked_extents`] does.
pub(super) fn extents_in_words(path: &Path, extents: Extents) -> Result<[u32; 4], IoError> {
    checked_extents(path, extents.map(|n| n as u64))?;
    Ok(extents.map(|n| u32::try_from(n).expect("at most 2^20")))
}

/// Refuses another lattice than the partition's.
pub(super) fn same_lattice(path: &Path, found: Extents, partition: &Partition) -> Result<(), IoError> {
    if found == partition.global {
        return Ok(());
    }
    Err(IoError::WrongLattice { path: path.into(), found, expected: partition.global })
}

/// The first site of each row of x of this rank's box: its index in the box and in the lattice.
pub(super) fn rows(partition: &Partition) -> impl Iterator<Item = (usize, usize)> {
    let (global, local, offset) = (partition.global, partition.local(), partition.offset());
    (0..volume(local) / local[0]).map(move |row| {
        let (y, z, t) = (row % local[1], row / local[1] % local[2], row / local[1] / local[2]);
        let x = [offset[0], offset[1] + y, offset[2] + z, offset[3] + t];
        (row * local[0], site(global, x))
    })
}

/// Makes a file of this size with some of its bytes, which all ranks then fill; collective.
pub(super) fn create(
    path: &Path,
    comm: &dyn Comm,
    size: u64,
    pieces: &[(u64, &[u8])],
) -> Result<(), IoError> {
    let make = || {
        let file = reopen(path)?;
        file.set_len(size)?;
        pieces.iter().try_for_each(|(at, bytes)| file.write_all_at(bytes, *at))
    };
    agree(comm, if comm.rank() == 0 { make().map_err(IoError::system(path, "write")) } else { Ok(()) })
}

/// Writes pieces of a file, those that follow each other together.
pub(super) struct Pen<'a> {
    path: &'a Path,
    file: File,
    bytes: Vec<u8>,
    at: u64,
}

impl<'a> Pen<'a> {
    /// So many bytes are written at once.
    const ENOUGH: usize = 1 << 22;

    /// For a file that is there.
    pub(super) fn new(path: &'a Path) -> Result<Self, IoError> {
        let file = reopen(path).map_err(IoError::system(path, "open"))?;
        Ok(Self { path, file, bytes: Vec::new(), at: 0 })
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        if self.at + self.bytes.len() as u64 != at || self.bytes.len() >= Self::ENOUGH {
            self.flush()?;
            self.at = at;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the rest, and puts all on the disk.
    pub(super) fn finish(mut self) -> Result<(), IoError> {
        self.flush()?;
        self.file.sync_data().map_err(IoError::system(self.path, "put on the disk"))
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.file.write_all_at(&self.bytes, self.at).map_err(IoError::system(self.path, "write"))?;
        self.bytes.clear();
        Ok(())
    }
}

/// Links as a file holds them: one record per site, in natural order of the sites.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Records {
    /// Where the first record starts.
    pub(super) start: u64,
    pub(super) endian: Endian,
    pub(super) precision: Precision,
    /// Rows of a link, 2 or 3.
    pub(super) link_rows: usize,
}

impl Records {
    /// Bytes of one site.
    pub(super) fn site_bytes(&self) -> usize {
        4 * self.link_rows * 6 * self.precision.bytes()
    }

    /// Bytes of the file up to the last record.
    pub(super) fn end(&self, extents: Extents) -> u64 {
        self.start + volume(extents) as u64 * self.site_bytes() as u64
    }

    /// Calls `see` with the first site and the bytes of each row of this rank's box, which has three rows of a link.
    pub(super) fn encode_box(
        &self,
        links: &HostLinks,
        partition: &Partition,
        mut see: impl FnMut(usize, &[u8]) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let mut bytes = Vec::new();
        let reals = 4 * LINK_REALS;
        rows(partition).try_for_each(|(own, first)| {
            bytes.clear();
            let row = &links.reals[own * reals..(own + links.local[0]) * reals];
            self.endian.encode(self.precision, row, &mut bytes);
            see(first, &bytes)
        })
    }

    /// Writes a file with all ranks: the first one `head`, which ends where records start, and `tail` behind them; each its own
    /// box. Collective.
    pub(super) fn write(
        &self,
        path: &Path,
        links: &HostLinks,
        partition: &Partition,
        comm: &dyn Comm,
        [head, tail]: [&[u8]; 2],
    ) -> Result<(), IoError> {
        let pieces = [(0, head), (self.end(partition.global), tail)];
        create(path, comm, self.end(partition.global) + tail.len() as u64, &pieces)?;
        let write = || {
            let mut pen = Pen::new(path)?;
            let site_bytes = self.site_bytes() as u64;
            self.encode_box(links, partition, |first, bytes| {
                pen.write(self.start + first as u64 * site_bytes, bytes)
            })?;
            pen.finish()
        };
        agree(comm, write())
    }

    /// Reads this rank's box row by row; `see` gets the first site and the bytes of each row.
    pub(super) fn read_box(
        &self,
        path: &Path,
        partition: &Partition,
        mut see: impl FnMut(usize, &[u8]),
    ) -> Result<HostLinks, IoError> {
        let file = open(path)?;
        let local = partition.local();
        let mut bytes = vec![0; local[0] * self.site_bytes()];
        let mut reals: Vec<f64> = zeros(path, volume(local) * 4 * LINK_REALS)?;
        reals.clear();
        for (_, first) in rows(partition) {
            let start = self.start + first as u64 * self.site_bytes() as u64;
            read_at(&file, path, start, &mut bytes)?;
            see(first, &bytes);
            if self.link_rows == 3 {
                self.endian.decode(self.precision, &bytes, &mut reals);
            } else {
                for link in bytes.chunks_exact(12 * self.precision.bytes()) {
                    self.endian.decode(self.precision, link, &mut reals);
                    push_third_row(&mut reals);
                }
            }
        }
        Ok(HostLinks { local, reals })
    }
}

/// Appends conj(row 0 x row 1) to two rows of a link.
fn push_third_row(reals: &mut Vec<f64>) {
    let start = reals.len() - 12;
    let rows: [f64; 12] = std::array::from_fn(|k| reals[start + k]);
    // The product of element i of row 0 and element j of row 1.
    let times = |i: usize, j: usize| {
        let (a, b) = (&rows[2 * i..], &rows[6 + 2 * j..]);
        [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
    };
    for k in 0..3 {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        let (p, q) = (times(i, j), times(j, i));
        reals.extend([p[0] - q[0], q[1] - p[1]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_row_of_a_phase_matrix() {
        // diag(i, i, -1): rows 0 and 1 give conj(i * i) = -1.
        let mut reals = vec![0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        push_third_row(&mut reals);
        assert_eq!(reals[12..], [0.0, 0.0, 0.0, 0.0, -1.0, 0.0]);
    }

    #[test]
    fn absurd_extents_are_refused() {
        let path = Path::new("x");
        assert_eq!(checked_extents(path, [4, 4, 6, 8]).ok(), Some([4, 4, 6, 8]));
        for bad in [[0, 4, 4, 4], [3, 4, 4, 4], [1 << 20; 4], [u64::MAX, 2, 2, 2]] {
            assert!(checked_extents(path, bad).is_err(), "{bad:?}");
        }
        assert_eq!(extents_in_words(path, [256, 256, 256, 512]).ok(), Some([256, 256, 256, 512]));
        assert!(extents_in_words(path, [(1 << 32) + 8, 4, 4, 4]).is_err());
    }
}
