//! Links alone, without a header: `[t][z][y][x][mu][row][column][re, im]` as in ILDG's files, of extents that the user tells.
//!
//! Their precision and whether there are two rows or three is known by the size, their byte order by their being unitary.

use super::bytes::{Endian, Records, checked_extents, head, same_lattice};
use super::format::{Row, Writes};
use super::{Format, Header, IoError, Precision, Read, Verified, in_right_order};
use crate::comm::{Comm, agree};
use crate::lattice::{Extents, Partition, shape};
use std::path::Path;

pub(super) const ROW: Row = Row {
    format: Format::Raw,
    name: "raw links",
    ending: "raw",
    has_mark: |_| false,
    header: |path, told| header(path, told.extents).map(|(header, _)| header),
    read: |path, partition, comm, told| read(path, partition, comm, told.extents),
    writes: Writes::Nothing,
};

/// The header that the user makes it.
fn header(path: &Path, told: Option<Extents>) -> Result<(Header, Records), IoError> {
    let extents = told.ok_or_else(|| IoError::UnknownFormat { path: path.into() })?;
    let extents = checked_extents(path, extents.map(|n| n as u64))?;
    let (_, size) = head(path, 0)?;
    let of = |(precision, link_rows)| Records { start: 0, endian: Endian::Big, precision, link_rows };
    let all =
        [(Precision::Double, 3), (Precision::Single, 3), (Precision::Double, 2), (Precision::Single, 2)];
    let records = all.into_iter().map(of).find(|records| records.end(extents) == size);
    let records = records.ok_or_else(|| {
        let (most, of) = (of(all[0]).end(extents), shape(extents));
        let what = format!(
            "{size} bytes are no links of {of} without a header: those are {most} in double precision"
        );
        IoError::malformed(path, what)
    })?;
    let header =
        Header { verified: Verified::Unitarity, ..Header::new(Format::Raw, extents, records.precision) };
    Ok((header, records))
}

/// Reads this rank's box.
fn read(path: &Path, partition: &Partition, comm: &dyn Comm, told: Option<Extents>) -> Result<Read, IoError> {
    let (header, records) = agree(comm, header(path, told))?;
    same_lattice(path, header.extents, partition)?;
    let (links, _) = in_right_order(Endian::Big, false, comm, |endian| {
        let links = Records { endian, ..records }.read_box(path, partition, |_, _| {});
        agree(comm, links).map(|links| (links, None))
    })?;
    Ok(Read { links, header, claims: Vec::new() })
}
