//! Configurations in LIME containers: ILDG's and SciDAC's, with SciDAC's checksum.
//!
//! ILDG (hep-lat/0409055, binary format 1.1): record `ildg-format` is XML with extents and precision; record
//! `ildg-binary-data` holds the links `[t][z][y][x][mu][3][3]` big-endian. SciDAC (QIO 2.5, `qio_2p3.pdf`): the private XML of
//! the file has the extents, that of the record the precision, and `scidac-binary-data` the same links. QIO's
//! `scidac-checksum`: with c_s the CRC-32 of site s's bytes, suma = xor of c_s rotated left by s mod 29, sumb the same with 31.
//!
//! Written is what QIO writes: a message of the file's two XML records, then one of the private and the user's XML of the
//! record, `ildg-format`, `ildg-data-lfn`, `ildg-binary-data`, `scidac-checksum`. The user's XML is USQCD's, with plaquette and
//! link trace, which Grid compares. Grid reads no file without the logical file name.

use super::bytes::{Endian, Records, checked_extents, open, read_at, same_lattice};
use super::cksum::Cksum;
use super::lime::{BEGINS, ENDS, Record, record_header, records, text, text_record, wrong_flags};
use super::verify::{Claim, Quantity, printed, rounding};
use super::{Format, Header, IoError, Meta, PROGRAM, Precision, Read, Verified, whole, xor_over_ranks};
use crate::comm::{Comm, agree};
use crate::field::HostLinks;
use crate::lattice::{Extents, Partition, volume};
use std::path::Path;

const FILE_PRIVATE: &str = "scidac-private-file-xml";
const FILE: &str = "scidac-file-xml";
const RECORD_PRIVATE: &str = "scidac-private-record-xml";
const RECORD: &str = "scidac-record-xml";
const FORMAT: &str = "ildg-format";
const LFN: &str = "ildg-data-lfn";
const DATA: &str = "ildg-binary-data";
const SCIDAC_DATA: &str = "scidac-binary-data";
const CHECKSUM: &str = "scidac-checksum";
/// Types that are not wondered at; the last are of tmLQCD and Grid.
const KNOWN: [&str; 12] = [
    FILE_PRIVATE,
    FILE,
    RECORD_PRIVATE,
    RECORD,
    FORMAT,
    LFN,
    DATA,
    SCIDAC_DATA,
    CHECKSUM,
    "xlf-info",
    "grid-format",
    "FieldNormMetaData",
];

/// Sites that are read at once for a checksum.
const BLOCK: usize = 1 << 12;

/// What stands behind the header's readable part.
pub(super) struct Layout {
    records: Records,
    sums: Option<[u32; 2]>,
    claims: Vec<Claim>,
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

/// The records of a file, of equal types the first.
struct Found<'a> {
    path: &'a Path,
    records: Vec<Record>,
}

impl Found<'_> {
    fn get(&self, kind: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.kind == kind)
    }

    fn need(&self, kind: &str) -> Result<&Record, IoError> {
        self.get(kind).ok_or_else(|| IoError::malformed(self.path, format!("no LIME record {kind}")))
    }

    fn text(&self, kind: &str) -> Result<Option<String>, IoError> {
        self.get(kind).map(|record| text(self.path, record)).transpose()
    }

    /// A number of an XML record.
    fn number(&self, kind: &str, xml: &str, name: &str) -> Result<u64, IoError> {
        element(xml, name)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| IoError::malformed(self.path, format!("{kind} has no number {name}")))
    }

    /// The extents of a private file record.
    fn scidac_extents(&self, xml: &str) -> Result<Extents, IoError> {
        let dims = element(xml, "dims").unwrap_or_default();
        let numbers: Vec<u64> = dims.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let numbers = <[u64; 4]>::try_from(numbers).map_err(|_| {
            IoError::malformed(self.path, format!("{FILE_PRIVATE} has dims '{dims}', not four numbers"))
        })?;
        checked_extents(self.path, numbers)
    }

    /// Extents, precision and data by ILDG's records.
    fn ildg(&self) -> Result<(Extents, Precision, &Record), IoError> {
        let format = text(self.path, self.need(FORMAT)?)?;
        let number = |name: &str| self.number(FORMAT, &format, name);
        if let Some(field) = element(&format, "field").filter(|&field| field != "su3gauge") {
            return Err(IoError::malformed(self.path, format!("the field is {field}, not su3gauge")));
        }
        let extents =
            checked_extents(self.path, [number("lx")?, number("ly")?, number("lz")?, number("lt")?])?;
        let precision = match number("precision")? {
            32 => Precision::Single,
            64 => Precision::Double,
            other => {
                return Err(IoError::malformed(self.path, format!("precision {other}, not 32 or 64")));
            }
        };
        Ok((extents, precision, self.need(DATA)?))
    }

    /// Extents, precision and data by SciDAC's records.
    fn scidac(&self) -> Result<(Extents, Precision, &Record), IoError> {
        let file = text(self.path, self.need(FILE_PRIVATE)?)?;
        let record = text(self.path, self.need(RECORD_PRIVATE)?)?;
        let volumes = element(&file, "volfmt").or(element(&file, "multifile"));
        if volumes.is_some_and(|volumes| volumes != "0") {
            return Err(IoError::malformed(self.path, "one of several files of QIO, which are not read"));
        }
        let number = |name: &str| self.number(RECORD_PRIVATE, &record, name);
        let count = number("datacount")?;
        let precision = match (number("typesize")?, element(&record, "precision")) {
            (72, Some("F") | None) if count == 4 => Precision::Single,
            (144, Some("D") | None) if count == 4 => Precision::Double,
            (size, _) => {
                let datatype = element(&record, "datatype").unwrap_or("no type");
                let what = format!("{count} of {datatype} ({size} bytes) a site, not four links");
                return Err(IoError::malformed(self.path, what));
            }
        };
        // Of a part of the lattice, or of no site at all.
        if element(&record, "recordtype").or(element(&record, "globaldata")).is_some_and(|kind| kind != "0") {
            return Err(IoError::malformed(self.path, "its record is no field on the whole lattice"));
        }
        Ok((self.scidac_extents(&file)?, precision, self.need(SCIDAC_DATA)?))
    }

    /// What is odd about the file, in one line each.
    fn notes(&self, extents: Extents) -> Result<Vec<String>, IoError> {
        let mut notes = wrong_flags(&self.records);
        let mut unknown: Vec<&str> = self.records.iter().map(|record| &*record.kind).collect();
        unknown.retain(|kind| !KNOWN.contains(kind));
        if !unknown.is_empty() {
            notes.push(format!("LIME records of unknown types, not read: {}", unknown.join(", ")));
        }
        for kind in [FORMAT, DATA, SCIDAC_DATA] {
            let count = self.records.iter().filter(|record| record.kind == kind).count();
            if count > 1 {
                notes.push(format!("{count} LIME records {kind}: the first is read"));
            }
        }
        if let Some(file) = self.text(FILE_PRIVATE)? {
            match self.scidac_extents(&file) {
                Ok(dims) if dims == extents => {}
                Ok(dims) => {
                    notes.push(format!(
                        "{FILE_PRIVATE} has dims {dims:?}, {FORMAT} has {extents:?}, which hold"
                    ));
                }
                Err(_) => notes.push(format!("{FILE_PRIVATE} has no dims of a lattice")),
            }
        }
        Ok(notes)
    }
}

/// Reads and checks the header.
pub(super) fn header(path: &Path) -> Result<(Header, Layout), IoError> {
    let found = Found { path, records: records(path)? };
    // ILDG's records say more, if both are there.
    let is_scidac = found.get(FORMAT).is_none() && found.get(SCIDAC_DATA).is_some();
    let (extents, precision, data) = if is_scidac { found.scidac()? } else { found.ildg()? };
    let records = Records { start: data.start, endian: Endian::Big, precision, link_rows: 3 };
    let bytes = records.end(extents) - data.start;
    if data.length != bytes {
        let what = format!("{} has {} bytes, the lattice needs {bytes}", data.kind, data.length);
        return Err(IoError::malformed(path, what));
    }
    let sums = found.text(CHECKSUM)?.map(|xml| -> Result<[u32; 2], IoError> {
        let sum = |name: &str| {
            element(&xml, name)
                .and_then(|value| u32::from_str_radix(value, 16).ok())
                .ok_or_else(|| IoError::malformed(path, format!("{CHECKSUM} has no {name}")))
        };
        Ok([sum("suma")?, sum("sumb")?])
    });
    let sums = sums.transpose()?;
    let usqcd = found.text(RECORD)?.filter(|xml| xml.contains("<usqcdInfo"));
    let value = |name: &str| usqcd.as_deref().and_then(|xml| element(xml, name));
    let claim = |of, key: &'static str, name: &str| {
        let text = value(name)?;
        let (value, half_a_digit) = printed(text)?;
        let within = half_a_digit + rounding(precision, extents);
        Some(Claim { of, key, text: text.to_owned(), value, within })
    };
    let plaquette = claim(Quantity::Plaquette, "plaq", "plaq");
    let verified = match (sums, &plaquette) {
        (Some(_), _) => Verified::Checksum,
        (None, Some(_)) => Verified::Plaquette,
        (None, None) => Verified::Unitarity,
    };
    let own = value("info").filter(|info| info.starts_with("hmc "));
    let (program, trajectory) = match own.map(|info| info.split_once(", trajectory ").unwrap_or((info, ""))) {
        None => (None, None),
        Some((program, number)) => (Some(program.to_owned()), number.parse().ok()),
    };
    let header = Header {
        verified,
        program,
        trajectory,
        plaquette: plaquette.as_ref().map(|claim| claim.value),
        logical_name: found.text(LFN)?,
        notes: found.notes(extents)?,
        ..Header::new(Format::Ildg, extents, precision)
    };
    // Where bits are known by a checksum, digits of a plaquette, of which others may mean the sum, refuse nothing.
    let claims = plaquette.into_iter().chain(claim(Quantity::LinkTrace, "linktr", "linktr"));
    let claims = if sums.is_none() { claims.collect() } else { Vec::new() };
    Ok((header, Layout { records, sums, claims }))
}

/// Adds the sites in `bytes`, the first of which is `first`, to the checksums.
fn add(bytes: &[u8], site_bytes: usize, first: usize, sums: &mut [u32; 2]) {
    for (site, bytes) in (first..).zip(bytes.chunks_exact(site_bytes)) {
        let crc = crc32fast::hash(bytes);
        sums[0] ^= crc.rotate_left((site as u64 % 29) as u32);
        sums[1] ^= crc.rotate_left((site as u64 % 31) as u32);
    }
}

/// Compares the checksums of a file, if it has any.
fn require_sums(path: &Path, said: Option<[u32; 2]>, found: [u32; 2]) -> Result<(), IoError> {
    let Some([a, b]) = said.filter(|&said| said != found) else { return Ok(()) };
    let what = format!("checksums {a:x} {b:x} in the file, {:x} {:x} found", found[0], found[1]);
    Err(IoError::damaged(path, what))
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
    require_sums(path, layout.sums, found)?;
    Ok(Read { links, header, claims: layout.claims })
}

/// What the header of an ILDG file says, and the `cksum` of the data in it, as ILDG's metadata have it. Reads all of the
/// file, a few megabytes at a time, and verifies SciDAC's checksum.
///
/// # Errors
/// The file cannot be read, is damaged, or no file of ILDG.
pub fn ildg_cksum(path: &Path) -> Result<(Header, u32), IoError> {
    let (header, layout) = header(path)?;
    let (records, all) = (layout.records, volume(header.extents));
    let (file, site_bytes) = (open(path)?, records.site_bytes());
    let (mut sum, mut sums, mut bytes) = (Cksum::default(), [0; 2], Vec::new());
    for first in (0..all).step_by(BLOCK) {
        bytes.resize(BLOCK.min(all - first) * site_bytes, 0);
        read_at(&file, path, records.start + (first * site_bytes) as u64, &mut bytes)?;
        sum.add(&bytes);
        add(&bytes, site_bytes, first, &mut sums);
    }
    require_sums(path, layout.sums, sums)?;
    Ok((header, sum.finish()))
}

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// The `ildg-format` record.
fn format_xml([x, y, z, t]: Extents) -> String {
    format!(
        "{XML}<ildgFormat xmlns=\"http://www.lqcd.org/ildg\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>\
         <field>su3gauge</field><precision>64</precision>\
         <lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>"
    )
}

/// The records up to the data, for links with these averages.
fn head(extents: Extents, means: &whole::Means, meta: &Meta, named: &Path) -> Vec<u8> {
    let [x, y, z, t] = extents;
    let file = format!(
        "{XML}<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>{x} {y} {z} {t} </dims>\
         <volfmt>0</volfmt></scidacFile>"
    );
    let title = format!("{XML}<title>gauge configuration of hmc</title>");
    // QIO wants a date, which may be empty: the same links make the same file.
    let record = format!(
        "{XML}<scidacRecord><version>1.1</version><date></date><recordtype>0</recordtype>\
         <datatype>USQCD_D3_ColorMatrix</datatype><precision>D</precision><colors>3</colors>\
         <typesize>144</typesize><datacount>4</datacount></scidacRecord>"
    );
    let number = meta.trajectory.map_or_else(String::new, |number| format!(", trajectory {number}"));
    let usqcd = format!(
        "{XML}<usqcdInfo><version>1.0</version><plaq>{:.17}</plaq><linktr>{:.17}</linktr>\
         <info>{PROGRAM}{number}</info></usqcdInfo>",
        means.plaquette, means.link_trace
    );
    let local = format!("lfn://hmc/{}", named.file_name().unwrap_or_default().to_string_lossy());
    let records = [
        (FILE_PRIVATE, &file, BEGINS),
        (FILE, &title, ENDS),
        (RECORD_PRIVATE, &record, BEGINS),
        (RECORD, &usqcd, 0),
        (FORMAT, &format_xml(extents), 0),
        (LFN, meta.logical_name.as_ref().unwrap_or(&local), 0),
    ];
    records.iter().flat_map(|(kind, text, flags)| text_record(kind, text, *flags)).collect()
}

/// Writes all links in double precision to `path`, a file that will be at `named`; collective.
pub(super) fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    meta: &Meta,
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
    let mut head = head(extents, &whole::means(links, partition, comm), meta, named);
    // A site's bytes are a multiple of 8: no padding.
    head.extend(record_header(DATA, records.end(extents), 0));
    let checksum = format!(
        "{XML}<scidacChecksum><version>1.0</version><suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>"
    );
    let records = Records { start: head.len() as u64, ..records };
    records.write(path, links, partition, comm, [&head, &text_record(CHECKSUM, &checksum, ENDS)])
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
