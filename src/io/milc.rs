//! MILC's version 5 gauge files (MILC code, `io_lat4.c`, `io_lat.h`).
//!
//! Header of 96 bytes: magic 20103, extents x to t, 64 bytes of date, order (0: natural), then two
//! checksums; all `int32` in the writer's byte order. Links `[t][z][y][x][mu][3][3]` as `float`. A file
//! of doubles, which MILC itself does not write, is known by its size.
//!
//! Checksums: over 32-bit words w_n, `sum29` = xor of w_n rotated left by n mod 29, `sum31` the same with 31.

use super::bytes::{Endian, Records, checked_extents, four, head, same_lattice};
use super::{Format, Header, IoError, Precision, Read, xor_over_ranks};
use crate::comm::{Comm, agree};
use crate::field::HostLinks;
use crate::lattice::Partition;
use std::path::Path;

const MAGIC: u32 = 20103;
const HEADER_BYTES: usize = 96;

/// The byte order in which the magic number stands at the start.
pub(super) fn byte_order(bytes: &[u8]) -> Option<Endian> {
    let magic = four(bytes, 0)?;
    [Endian::Big, Endian::Little].into_iter().find(|endian| endian.u32(magic) == MAGIC)
}

/// Both checksums of words that start at word `first` of the links.
fn sums(words: impl Iterator<Item = u32>, first: u64, sums: &mut [u32; 2]) {
    let mut places = [(first % 29) as u32, (first % 31) as u32];
    for word in words {
        for (k, period) in [29, 31].into_iter().enumerate() {
            sums[k] ^= word.rotate_left(places[k]);
            places[k] = (places[k] + 1) % period;
        }
    }
}

/// What stands behind the header's readable part.
pub(super) struct Layout {
    records: Records,
    sums: [u32; 2],
}

/// Reads and checks the header.
pub(super) fn header(path: &Path) -> Result<(Header, Layout), IoError> {
    let (bytes, size) = head(path, HEADER_BYTES)?;
    let endian = byte_order(&bytes).ok_or_else(|| IoError::malformed(path, "no MILC file"))?;
    let truncated = |expected| IoError::Truncated { path: path.into(), expected, found: size };
    let word = |n: usize| four(&bytes, 4 * n).map(|b| endian.u32(b));
    let numbers = || -> Option<([u64; 4], u32, [u32; 2])> {
        let extents = [word(1)?.into(), word(2)?.into(), word(3)?.into(), word(4)?.into()];
        Some((extents, word(21)?, [word(22)?, word(23)?]))
    };
    let (extents, order, sums) = numbers().ok_or_else(|| truncated(HEADER_BYTES as u64))?;
    let extents = checked_extents(path, extents)?;
    if order != 0 {
        return Err(IoError::malformed(path, format!("order of sites {order}, only 0 (natural) is read")));
    }
    let records = |precision| Records { start: HEADER_BYTES as u64, endian, precision, link_rows: 3 };
    let (single, double) = (records(Precision::Single), records(Precision::Double));
    let records = if size == double.end(extents) { double } else { single };
    if size < records.end(extents) {
        return Err(truncated(records.end(extents)));
    }
    if size > records.end(extents) {
        return Err(IoError::malformed(path, format!("{size} bytes, {} expected", records.end(extents))));
    }
    Ok((Header::new(Format::Milc, extents, records.precision), Layout { records, sums }))
}

/// Reads this rank's box and verifies the checksums.
pub(super) fn read(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Read, IoError> {
    let (header, layout) = agree(comm, header(path))?;
    same_lattice(path, header.extents, partition)?;
    let records = layout.records;
    let mut own = [0; 2];
    let links = agree(
        comm,
        records.read_box(path, partition, |site, bytes| {
            sums(records.endian.words(bytes), (site * records.site_bytes() / 4) as u64, &mut own);
        }),
    )?;
    let found = xor_over_ranks(comm, own);
    if found != layout.sums {
        let [a, b] = layout.sums;
        let what =
            format!("checksums {a:08x} {b:08x} in the header, {:08x} {:08x} found", found[0], found[1]);
        return Err(IoError::damaged(path, what));
    }
    Ok(Read { links, header, claims: Vec::new() })
}

/// Writes all links in single precision, in this machine's byte order; collective.
pub(super) fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(), IoError> {
    let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
    let records = Records { start: HEADER_BYTES as u64, endian, precision: Precision::Single, link_rows: 3 };
    let mut own = [0; 2];
    records.encode_box(links, partition, |first, bytes| {
        sums(endian.words(bytes), (first * records.site_bytes() / 4) as u64, &mut own);
        Ok(())
    })?;
    let extents = partition.global.map(|extent| extent as u32);
    // No date: the same links make the same file.
    let words = std::iter::once(MAGIC).chain(extents).chain([0; 17]).chain(xor_over_ranks(comm, own));
    let head: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    records.write(path, links, partition, comm, [&head, &[]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_care_how_words_are_cut() {
        let words: Vec<u32> = (0..1000_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        let (mut whole, mut parts) = ([0; 2], [0; 2]);
        sums(words.iter().copied(), 0, &mut whole);
        sums(words[613..].iter().copied(), 613, &mut parts);
        sums(words[..613].iter().copied(), 0, &mut parts);
        assert_eq!(whole, parts);
    }
}
