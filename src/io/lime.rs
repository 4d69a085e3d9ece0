//! ILDG configurations in LIME containers, with SciDAC's checksum.
//!
//! LIME (`usqcd.lns.cornell.edu`, c-lime 1.3): records of a header of 144 bytes (magic, version, flags,
//! length, type; big-endian) and data padded to 8 bytes. ILDG (hep-lat/0409055, binary format 1.1): record
//! `ildg-format` is XML with extents and precision; record `ildg-binary-data` holds the links
//! `[t][z][y][x][mu][3][3]` big-endian. QIO's `scidac-checksum`: with c_s the CRC-32 of site s's bytes,
//! suma = xor of c_s rotated left by s mod 29, sumb the same with 31.
//!
//! Written is one message in the order of QIO: `ildg-format`, `ildg-data-lfn`, `ildg-binary-data`, `scidac-checksum`. Grid
//! reads no file without the logical file name, which QIO leaves out if there is none.

use super::bytes::{Endian, Records, checked_extents, eight, head, open, read_at, same_lattice};
use super::{Format, Header, IoError, Precision, Read, Verified, xor_over_ranks};
use crate::comm::{Comm, agree};
use crate::field::HostLinks;
use crate::lattice::{Extents, Partition};
use std::collections::HashMap;
use std::path::Path;

/// The first four bytes of each record.
pub(super) const MAGIC: u32 = 0x4567_89ab;
const RECORD_HEADER: usize = 144;
/// No XML record that is read is longer.
const LONGEST_TEXT: u64 = 1 << 20;
/// No file has more records: those of ILDG and QIO have less than ten.
const MOST_RECORDS: usize = 10_000;

/// One record: where its data lie.
#[derive(Clone, Copy)]
struct Record {
    start: u64,
    length: u64,
}

/// What stands behind the header's readable part.
pub(super) struct Layout {
    records: Records,
    sums: Option<[u32; 2]>,
}

/// Finds the records by type; of equal types the first.
fn records(path: &Path) -> Result<HashMap<String, Record>, IoError> {
    let (_, size) = head(path, 0)?;
    let file = open(path)?;
    let mut found = HashMap::new();
    let (mut place, mut count) = (0, 0);
    while place < size {
        count += 1;
        if count > MOST_RECORDS {
            return Err(IoError::malformed(path, format!("more than {MOST_RECORDS} LIME records")));
        }
        let mut bytes = [0; RECORD_HEADER];
        read_at(&file, path, place, &mut bytes)?;
        if !bytes.starts_with(&MAGIC.to_be_bytes()) {
            return Err(IoError::malformed(path, format!("no LIME record at byte {place}")));
        }
        let length = eight(&bytes, 8).map_or(0, u64::from_be_bytes);
        let kind = bytes[16..].split(|&b| b == 0).next().unwrap_or_default();
        let start = place + RECORD_HEADER as u64;
        let end = start.saturating_add(length);
        if end > size {
            return Err(IoError::Truncated { path: path.into(), expected: end, found: size });
        }
        found.entry(String::from_utf8_lossy(kind).into_owned()).or_insert(Record { start, length });
        place = end.saturating_add(length.wrapping_neg() % 8);
    }
    Ok(found)
}

/// The text of a record.
fn text(path: &Path, record: Record) -> Result<String, IoError> {
    if record.length > LONGEST_TEXT {
        return Err(IoError::malformed(path, format!("an XML record of {} bytes", record.length)));
    }
    let mut bytes = vec![0; record.length as usize];
    read_at(&open(path)?, path, record.start, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What stands between `<name>` (with or without attributes) and `</name>`.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    xml.match_indices('<').find_map(|(place, _)| {
        let rest = xml[place + 1..].strip_prefix(name)?;
        let (attributes, rest) = rest.split_once('>')?;
        let own = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        own.then(|| rest.split_once("</").map(|(value, _)| value.trim()))?
    })
}

/// Reads and checks the header.
pub(super) fn header(path: &Path) -> Result<(Header, Layout), IoError> {
    let found = records(path)?;
    let need = |kind: &str| {
        let missing = || IoError::malformed(path, format!("no LIME record {kind}"));
        found.get(kind).copied().ok_or_else(missing)
    };
    let format = text(path, need("ildg-format")?)?;
    let number = |name: &str| -> Result<u64, IoError> {
        element(&format, name)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| IoError::malformed(path, format!("ildg-format has no number {name}")))
    };
    if let Some(field) = element(&format, "field").filter(|&field| field != "su3gauge") {
        return Err(IoError::malformed(path, format!("the field is {field}, not su3gauge")));
    }
    let extents = checked_extents(path, [number("lx")?, number("ly")?, number("lz")?, number("lt")?])?;
    let precision = match number("precision")? {
        32 => Precision::Single,
        64 => Precision::Double,
        other => return Err(IoError::malformed(path, format!("precision {other}, not 32 or 64"))),
    };
    let data = need("ildg-binary-data")?;
    let records = Records { start: data.start, endian: Endian::Big, precision, link_rows: 3 };
    let bytes = records.end(extents) - data.start;
    if data.length != bytes {
        let what = format!("ildg-binary-data has {} bytes, the lattice needs {bytes}", data.length);
        return Err(IoError::malformed(path, what));
    }
    let sums = match found.get("scidac-checksum") {
        None => None,
        Some(&record) => {
            let xml = text(path, record)?;
            let sum = |name: &str| {
                element(&xml, name)
                    .and_then(|value| u32::from_str_radix(value, 16).ok())
                    .ok_or_else(|| IoError::malformed(path, format!("scidac-checksum has no {name}")))
            };
            Some([sum("suma")?, sum("sumb")?])
        }
    };
    let verified = if sums.is_some() { Verified::Checksum } else { Verified::Unitarity };
    let header = Header { verified, ..Header::new(Format::Ildg, extents, precision) };
    Ok((header, Layout { records, sums }))
}

/// Adds the sites in `bytes`, the first of which is `first`, to the checksums.
fn add(bytes: &[u8], site_bytes: usize, first: usize, sums: &mut [u32; 2]) {
    for (site, bytes) in (first..).zip(bytes.chunks_exact(site_bytes)) {
        let crc = crc32fast::hash(bytes);
        sums[0] ^= crc.rotate_left((site % 29) as u32);
        sums[1] ^= crc.rotate_left((site % 31) as u32);
    }
}

/// Reads this rank's box and verifies the checksums.
pub(super) fn read(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Read, IoError> {
    let (header, layout) = agree(comm, header(path))?;
    same_lattice(path, header.extents, partition)?;
    let records = layout.records;
    let mut own = [0; 2];
    let box_read =
        records.read_box(path, partition, |site, bytes| add(bytes, records.site_bytes(), site, &mut own));
    let links = agree(comm, box_read)?;
    let found = xor_over_ranks(comm, own);
    if let Some(sums) = layout.sums.filter(|&sums| sums != found) {
        let [a, b] = sums;
        let what = format!("checksums {a:x} {b:x} in the file, {:x} {:x} found", found[0], found[1]);
        return Err(IoError::damaged(path, what));
    }
    Ok(Read { links, header, claims: Vec::new() })
}

/// The `ildg-format` record.
fn format_xml([x, y, z, t]: Extents) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ildgFormat xmlns=\"http://www.lqcd.org/ildg\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.lqcd.org/ildg filefmt.xsd\"><version>1.0</version>\
         <field>su3gauge</field><precision>64</precision>\
         <lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>"
    )
}

/// The flags of the first and of the last record of a message.
const BEGINS: u16 = 0x8000;
const ENDS: u16 = 0x4000;

/// A record of text, padded to 8 bytes.
fn text_record(kind: &str, text: &str, flags: u16) -> Vec<u8> {
    let mut bytes = record_header(kind, text.len() as u64, flags);
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A record's header.
fn record_header(kind: &str, length: u64, flags: u16) -> Vec<u8> {
    let mut bytes = MAGIC.to_be_bytes().to_vec();
    bytes.extend(1_u16.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(kind.as_bytes());
    bytes.resize(RECORD_HEADER, 0);
    bytes
}

/// The logical file name of a file that will be at `path`.
fn logical_name(path: &Path) -> String {
    format!("lfn://hmc/{}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Writes all links in double precision to `path`, a file that will be at `named`; collective.
pub(super) fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    named: &Path,
) -> Result<(), IoError> {
    let extents = partition.global;
    let records = Records { start: 0, endian: Endian::Big, precision: Precision::Double, link_rows: 3 };
    let mut own = [0; 2];
    records.encode_box(links, partition, |first, bytes| {
        add(bytes, records.site_bytes(), first, &mut own);
        Ok(())
    })?;
    let [a, b] = xor_over_ranks(comm, own);
    let mut head = text_record("ildg-format", &format_xml(extents), BEGINS);
    head.extend(text_record("ildg-data-lfn", &logical_name(named), 0));
    // A site's bytes are a multiple of 8: no padding.
    head.extend(record_header("ildg-binary-data", records.end(extents), 0));
    let checksum = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version>\
         <suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>"
    );
    let records = Records { start: head.len() as u64, ..records };
    records.write(path, links, partition, comm, [&head, &text_record("scidac-checksum", &checksum, ENDS)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_whole() {
        let xml = format_xml([4, 6, 8, 10]);
        assert_eq!(element(&xml, "lx"), Some("4"));
        assert_eq!(element(&xml, "lt"), Some("10"));
        assert_eq!(element("<lxx>1</lxx><lx a='2'> 3 </lx>", "lx"), Some("3"));
        assert_eq!(element("<lx>", "lx"), None);
        assert_eq!(element("<é<lx", "lx"), None);
    }
}
