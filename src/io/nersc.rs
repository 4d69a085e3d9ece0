//! The NERSC archive format, also called Gauge Connection or QCD archive (`qcdoc.phys.columbia.edu`,
//! Grid's `NerscIO.h`).
//!
//! Text `KEY = VALUE` between `BEGIN_HEADER` and `END_HEADER`, then links `[t][z][y][x][mu]` of two rows
//! (`4D_SU3_GAUGE`) or three (`4D_SU3_GAUGE_3x3`). `CHECKSUM` is the sum modulo 2^32 of all 32-bit words
//! after the header, `PLAQUETTE` the average of (1/3) Re tr P, `LINK_TRACE` that of (1/3) Re tr U.
//!
//! `IEEE32` and `IEEE64` without a byte order are old: little-endian is tried, then big-endian, and the
//! checksum decides; without one, whether links are unitary. The `BOUNDARY` keys tell of fermions: the links are taken as they stand, and if one is not
//! periodic the link trace, of which nobody knows whether it has the sign, is not compared.
//!
//! `CHECKSUM` does not see two links change places: `PLAQUETTE` and `LINK_TRACE` are compared as well, if they are there.

use super::bytes::{Endian, Records, checked_extents, head, same_lattice};
use super::format::{Row, Writes};
use super::verify::{Claim, Quantity};
use super::{Format, Header, IoError, Meta, Precision, Read, Verified, in_right_order, whole};
use crate::comm::{Comm, agree};
use crate::field::HostLinks;
use crate::lattice::Partition;
use std::path::Path;

pub(super) const ROW: Row = Row {
    format: Format::Nersc,
    name: "NERSC",
    ending: "nersc",
    has_mark: |bytes| bytes.starts_with(b"BEGIN_HEADER"),
    header: |path, _| header(path).map(|(header, _)| header),
    read: |path, partition, comm, _| read(path, partition, comm),
    writes: Writes::Links { precision: Precision::Double, write },
};

/// No header is longer.
const LONGEST_HEADER: usize = 1 << 16;

/// What stands behind the header's readable part.
struct Layout {
    records: Records,
    checksum: Option<u32>,
    claims: Vec<Claim>,
    /// Whether `FLOATING_POINT` says the byte order.
    is_sure: bool,
}

/// Reads and checks the header.
fn header(path: &Path) -> Result<(Header, Layout), IoError> {
    let (bytes, size) = head(path, LONGEST_HEADER)?;
    let (length, start) =
        header_end(&bytes).ok_or_else(|| IoError::malformed(path, "the header has no END_HEADER"))?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    let value = |key: &str| {
        let pair = |line: &str| line.split_once('=').map(|(k, v)| (k.trim() == key, v.trim().to_owned()));
        text.lines().filter_map(pair).find_map(|(found, value)| found.then_some(value))
    };
    let pairs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let twice = pairs.iter().enumerate().find(|(n, (key, value))| {
        pairs[..*n].iter().any(|(k, v)| k.trim() == key.trim() && v.trim() != value.trim())
    });
    if let Some((_, (key, _))) = twice {
        return Err(IoError::malformed(path, format!("{} stands twice, with other values", key.trim())));
    }
    let need = |key: &str| value(key).ok_or_else(|| IoError::malformed(path, format!("{key} is missing")));
    let number = |key: &str| -> Result<u64, IoError> {
        let text = need(key)?;
        text.parse().map_err(|_| IoError::malformed(path, format!("{key} = {text} is no extent")))
    };
    let extents = checked_extents(
        path,
        [number("DIMENSION_1")?, number("DIMENSION_2")?, number("DIMENSION_3")?, number("DIMENSION_4")?],
    )?;
    let link_rows = match need("DATATYPE")?.as_str() {
        "4D_SU3_GAUGE" => 2,
        "4D_SU3_GAUGE_3x3" | "4D_SU3_GAUGE_3X3" => 3,
        other => return Err(IoError::malformed(path, format!("DATATYPE = {other} is not read"))),
    };
    let (precision, endian, is_sure) = match need("FLOATING_POINT")?.to_ascii_uppercase().as_str() {
        "IEEE32BIG" => (Precision::Single, Endian::Big, true),
        "IEEE64BIG" => (Precision::Double, Endian::Big, true),
        "IEEE32LITTLE" => (Precision::Single, Endian::Little, true),
        "IEEE64LITTLE" => (Precision::Double, Endian::Little, true),
        "IEEE32" => (Precision::Single, Endian::Little, false),
        "IEEE64" => (Precision::Double, Endian::Little, false),
        other => return Err(IoError::malformed(path, format!("FLOATING_POINT = {other} is not read"))),
    };
    let checksum = value("CHECKSUM")
        .map(|text| {
            u32::from_str_radix(text.trim_start_matches("0x"), 16)
                .map_err(|_| IoError::malformed(path, format!("CHECKSUM = {text} is no hexadecimal number")))
        })
        .transpose()?;
    let records = Records { start: start as u64, endian, precision, link_rows };
    if size < records.end(extents) {
        return Err(IoError::Truncated { path: path.into(), expected: records.end(extents), found: size });
    }
    let claim = |of, key: &'static str| -> Result<Option<Claim>, IoError> {
        let Some(text) = value(key) else { return Ok(None) };
        let claim = Claim::printed(of, key, &text, precision, extents);
        let what = || format!("{key} = {text} is not a number");
        claim.map(Some).ok_or_else(|| IoError::malformed(path, what()))
    };
    let plaquette = claim(Quantity::Plaquette, "PLAQUETTE")?;
    let is_periodic = |key: &str| value(key).is_none_or(|text| text.eq_ignore_ascii_case("PERIODIC"));
    let boundaries = ["BOUNDARY_1", "BOUNDARY_2", "BOUNDARY_3", "BOUNDARY_4"].into_iter();
    let other: Vec<String> = boundaries
        .filter(|key| !is_periodic(key))
        .map(|key| {
            format!(
                "{key} = {}: links are taken as they stand, without a sign of the boundary",
                value(key).unwrap_or_default()
            )
        })
        .collect();
    let behind = size - records.end(extents);
    let trailing = (behind > 0).then(|| format!("{behind} bytes behind the links, not read"));
    let trace = claim(Quantity::LinkTrace, "LINK_TRACE")?.filter(|_| other.is_empty());
    let header = Header {
        // Ours is -1 if it is not known: Grid stops where the key is missing.
        trajectory: value("SEQUENCE_NUMBER").and_then(|v| v.parse().ok()),
        plaquette: plaquette.as_ref().map(|claim| claim.value),
        program: value("CREATOR"),
        verified: match (checksum, &plaquette) {
            (Some(_), _) => Verified::Checksum,
            (None, Some(_)) => Verified::Plaquette,
            (None, None) => Verified::Unitarity,
        },
        notes: other.into_iter().chain(trailing).collect(),
        ..Header::new(Format::Nersc, extents, precision)
    };
    let claims = plaquette.into_iter().chain(trace).collect();
    Ok((header, Layout { records, checksum, claims, is_sure }))
}

/// The sum of all ranks' checksums modulo 2^32; collective.
fn sum_over_ranks(own: u32, comm: &dyn Comm) -> u32 {
    let mut total = [i64::from(own)];
    comm.sum(&mut total);
    (total[0].cast_unsigned() & 0xffff_ffff) as u32
}

/// Reads this rank's box and verifies the checksum.
fn read(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Read, IoError> {
    let (header, layout) = agree(comm, header(path))?;
    same_lattice(path, header.extents, partition)?;
    let mut sums = Vec::new();
    let (links, is_right) = in_right_order(layout.records.endian, layout.is_sure, comm, |endian| {
        let mut sum = 0_u32;
        let links = Records { endian, ..layout.records }.read_box(path, partition, |_, bytes| {
            sum = endian.words(bytes).fold(sum, u32::wrapping_add);
        });
        let links = agree(comm, links)?;
        let found = sum_over_ranks(sum, comm);
        sums.push(format!("{found:x}"));
        Ok((links, layout.checksum.map(|checksum| checksum == found)))
    })?;
    if is_right == Some(false) {
        let (expected, found) = (layout.checksum.unwrap_or_default(), sums.join(" or "));
        return Err(IoError::damaged(path, format!("CHECKSUM = {expected:x} in the header, {found} found")));
    }
    Ok(Read { links, header, claims: layout.claims })
}

/// Where the line of `END_HEADER` begins, and where the next one does. Blanks may stand around it, and a carriage return.
fn header_end(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut start = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let end = start + line.len();
        if line.ends_with(b"\n") && line.trim_ascii() == b"END_HEADER" {
            return Some((start, end));
        }
        start = end;
    }
    None
}

/// Writes all links with three rows in big-endian double precision; collective.
fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    (meta, _): (&Meta, &Path),
) -> Result<(), IoError> {
    let records = Records { start: 0, endian: Endian::Big, precision: Precision::Double, link_rows: 3 };
    let mut own = 0_u32;
    records.encode_box(links, partition, |_, bytes| {
        own = Endian::Big.words(bytes).fold(own, u32::wrapping_add);
        Ok(())
    })?;
    let checksum = sum_over_ranks(own, comm);
    let [x, y, z, t] = partition.global;
    let whole::Means { plaquette, link_trace, .. } = whole::means(links, partition, comm);
    let number = meta.trajectory.map_or_else(|| "-1".into(), |number| number.to_string());
    // No dates: the same links make the same file.
    let header = format!(
        "BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = 4D_SU3_GAUGE_3x3\nSTORAGE_FORMAT = 1.0\n\
         DIMENSION_1 = {x}\nDIMENSION_2 = {y}\nDIMENSION_3 = {z}\nDIMENSION_4 = {t}\n\
         LINK_TRACE = {link_trace:.17}\nPLAQUETTE = {plaquette:.17}\n\
         BOUNDARY_1 = PERIODIC\nBOUNDARY_2 = PERIODIC\nBOUNDARY_3 = PERIODIC\nBOUNDARY_4 = PERIODIC\n\
         CHECKSUM = {checksum:x}\nENSEMBLE_ID = hmc\nENSEMBLE_LABEL = hmc\nSEQUENCE_NUMBER = {number}\n\
         CREATOR = {}\nFLOATING_POINT = IEEE64BIG\nEND_HEADER\n",
        super::PROGRAM,
    );
    let records = Records { start: header.len() as u64, ..records };
    records.write(path, links, partition, comm, [header.as_bytes(), &[]])
}
