//! MILC's gauge files of versions 5 to 7, and of 1 to 4 (MILC code, `io_lat4.c`, `io_lat.h`).
//!
//! Header of 88 bytes: magic 20103, extents x to t, 64 bytes of date, order of sites. If the order is 1 ('checkpoint', in
//! the order of the nodes that wrote it) a list of V sites follows, x + n_x (y + n_y (z + n_z t)) each. Then two checksums;
//! all `int32` in the writer's byte order. Links `[site][mu][3][3]` as `float`; with order 0 sites are in natural order.
//! A file of doubles, which MILC itself neither writes nor reads, is known by its size.
//!
//! Versions 1 to 4 have the magic 59354, extents, and two `float` of the action, 28 bytes, then links in natural order as above:
//! without a checksum.
//!
//! Checksums: over 32-bit words w_n, in the order of the file, `sum29` = xor of w_n rotated left by n mod 29, `sum31` the
//! same with 31. They do not see the list: each site must be there once.

use super::bytes::{
    Endian, Records, checked_extents, extents_in_words, four, head, open, read_at, same_lattice, zeros,
};
use super::format::{Row, Writes};
use super::{Format, Header, IoError, Meta, Precision, Read, Verified, xor_over_ranks};
use crate::comm::{Comm, agree};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Partition, coordinates, site, volume};
use std::path::Path;

pub(super) const ROW: Row = Row {
    format: Format::Milc,
    name: "MILC",
    ending: "milc",
    has_mark: |bytes| byte_order(bytes).is_some(),
    header: |path, _| header(path).map(|(header, _)| header),
    read: |path, partition, comm, _| read(path, partition, comm),
    writes: Writes::Links { precision: Precision::Single, write },
};

const MAGIC: u32 = 20103;
const OLD_MAGIC: u32 = 59354;
const OLD_HEADER_BYTES: usize = 28;
const HEADER_BYTES: usize = 88;
const SUMS_BYTES: usize = 8;
/// Sites of a list that are read at once.
const BLOCK: usize = 1 << 14;

/// The byte order in which a magic number stands at the start.
fn byte_order(bytes: &[u8]) -> Option<Endian> {
    let magic = four(bytes, 0)?;
    [Endian::Big, Endian::Little].into_iter().find(|endian| [MAGIC, OLD_MAGIC].contains(&endian.u32(magic)))
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
struct Layout {
    records: Records,
    /// None up to version 4.
    sums: Option<[u32; 2]>,
    /// Whether a list of sites says their order.
    is_listed: bool,
}

/// Reads and checks the header.
fn header(path: &Path) -> Result<(Header, Layout), IoError> {
    let (bytes, size) = head(path, HEADER_BYTES)?;
    let endian = byte_order(&bytes).ok_or_else(|| IoError::malformed(path, "no MILC file"))?;
    let truncated = |expected| IoError::Truncated { path: path.into(), expected, found: size };
    let word = |n: usize| four(&bytes, 4 * n).map(|b| endian.u32(b));
    let is_old = word(0) == Some(OLD_MAGIC);
    let numbers = || -> Option<([u64; 4], u32)> {
        let order = if is_old { 0 } else { word(21)? };
        Some(([word(1)?.into(), word(2)?.into(), word(3)?.into(), word(4)?.into()], order))
    };
    let (extents, order) = numbers().ok_or_else(|| truncated(HEADER_BYTES as u64))?;
    let extents = checked_extents(path, extents)?;
    if order > 1 {
        let what = format!("order of sites {order}; 0 (natural) and 1 (as its list of sites says) are read");
        return Err(IoError::malformed(path, what));
    }
    let is_listed = order == 1;
    if is_listed && u32::try_from(volume(extents) - 1).is_err() {
        let what = format!("a list of {} sites, more than its 32 bits can number", volume(extents));
        return Err(IoError::malformed(path, what));
    }
    let list = if is_listed { 4 * volume(extents) as u64 } else { 0 };
    let start = if is_old { OLD_HEADER_BYTES as u64 } else { (HEADER_BYTES + SUMS_BYTES) as u64 + list };
    let records = |precision| Records { start, endian, precision, link_rows: 3 };
    let (single, double) = (records(Precision::Single), records(Precision::Double));
    let records = if size == double.end(extents) { double } else { single };
    if size < records.end(extents) {
        return Err(truncated(records.end(extents)));
    }
    if size > records.end(extents) {
        return Err(IoError::malformed(path, format!("{size} bytes, {} expected", records.end(extents))));
    }
    let header = Header::new(Format::Milc, extents, records.precision);
    if is_old {
        let header = Header { verified: Verified::Unitarity, ..header };
        return Ok((header, Layout { records, sums: None, is_listed }));
    }
    let mut sums = [0; SUMS_BYTES];
    read_at(&open(path)?, path, start - SUMS_BYTES as u64, &mut sums)?;
    let sums = [0, 4].map(|at| four(&sums, at).map_or(0, |b| endian.u32(b)));
    Ok((header, Layout { records, sums: Some(sums), is_listed }))
}

/// Reads this rank's box and verifies the checksums.
fn read(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Read, IoError> {
    let (header, layout) = agree(comm, header(path))?;
    same_lattice(path, header.extents, partition)?;
    let records = layout.records;
    let mut own = [0; 2];
    let see = |place: usize, bytes: &[u8]| {
        sums(records.endian.words(bytes), (place * records.site_bytes() / 4) as u64, &mut own);
    };
    let read = if layout.is_listed {
        read_listed(path, &records, partition, see)
    } else {
        records.read_box(path, partition, see)
    };
    let links = agree(comm, read)?;
    let found = xor_over_ranks(comm, own);
    if let Some([a, b]) = layout.sums.filter(|sums| *sums != found) {
        let what =
            format!("checksums {a:08x} {b:08x} in the header, {:08x} {:08x} found", found[0], found[1]);
        return Err(IoError::damaged(path, what));
    }
    Ok(Read { links, header, claims: Vec::new() })
}

/// Reads the sites of this rank's box from where the list puts them; `see` gets the first place and the bytes of each run of
/// such sites in the file.
fn read_listed(
    path: &Path,
    records: &Records,
    partition: &Partition,
    mut see: impl FnMut(usize, &[u8]),
) -> Result<HostLinks, IoError> {
    let file = open(path)?;
    let (global, local, offset) = (partition.global, partition.local(), partition.offset());
    let (all, site_bytes) = (volume(global), records.site_bytes());
    let mut is_read = vec![false; volume(local)];
    let mut links = HostLinks { local, reals: zeros(path, volume(local) * 4 * LINK_REALS)? };
    let (mut list, mut bytes, mut reals) = (vec![0; 4 * BLOCK.min(all)], Vec::new(), Vec::new());
    for first in (0..all).step_by(BLOCK) {
        let count = BLOCK.min(all - first);
        read_at(&file, path, (HEADER_BYTES + 4 * first) as u64, &mut list[..4 * count])?;
        let mut inside = Vec::new();
        for (place, listed) in (first..).zip(records.endian.words(&list[..4 * count])) {
            let listed = listed as usize;
            if listed >= all {
                let what = format!("the list of sites has {listed}, the lattice {all} sites");
                return Err(IoError::damaged(path, what));
            }
            let x = coordinates(global, listed);
            if (0..4).all(|mu| (offset[mu]..offset[mu] + local[mu]).contains(&x[mu])) {
                let own = site(local, std::array::from_fn(|mu| x[mu] - offset[mu]));
                if std::mem::replace(&mut is_read[own], true) {
                    let what = format!("the list of sites has {x:?} (x, y, z, t) twice");
                    return Err(IoError::damaged(path, what));
                }
                inside.push((place, own));
            }
        }
        for run in inside.chunk_by(|a, b| a.0 + 1 == b.0) {
            bytes.resize(run.len() * site_bytes, 0);
            read_at(&file, path, records.start + run[0].0 as u64 * site_bytes as u64, &mut bytes)?;
            see(run[0].0, &bytes);
            for ((_, own), bytes) in run.iter().zip(bytes.chunks_exact(site_bytes)) {
                reals.clear();
                records.endian.decode(records.precision, bytes, &mut reals);
                links.reals[own * 4 * LINK_REALS..][..4 * LINK_REALS].copy_from_slice(&reals);
            }
        }
    }
    // As many entries as sites, and none twice: none is missing.
    Ok(links)
}

/// Writes all links in single precision and natural order, in this machine's byte order; collective.
fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    _: (&Meta, &Path),
) -> Result<(), IoError> {
    let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
    let start = (HEADER_BYTES + SUMS_BYTES) as u64;
    let records = Records { start, endian, precision: Precision::Single, link_rows: 3 };
    let mut own = [0; 2];
    records.encode_box(links, partition, |first, bytes| {
        sums(endian.words(bytes), (first * records.site_bytes() / 4) as u64, &mut own);
        Ok(())
    })?;
    let extents = extents_in_words(path, partition.global)?;
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
