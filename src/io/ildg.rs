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
use super::format::{Row, Writes};
use super::lime::{BEGINS, ENDS, MAGIC, Record, record_header, records, text, text_record, wrong_flags};
use super::verify::{Claim, Quantity};
use super::{Format, Header, IoError, Meta, PROGRAM, Precision, Read, Verified, whole, xor_over_ranks};
use crate::comm::{Comm, agree};
use crate::field::HostLinks;
use crate::lattice::{Extents, Partition, volume};
use roxmltree::{Document, Node, ParsingOptions};
use std::path::Path;

pub(super) const ROW: Row = Row {
    format: Format::Ildg,
    name: "ILDG",
    ending: "ildg",
    has_mark: |bytes| bytes.starts_with(&MAGIC.to_be_bytes()),
    header: |path, told| header(path, told.extents).map(|(header, _)| header),
    read: |path, partition, comm, told| read(path, partition, comm, told.extents),
    writes: Writes::Links { precision: Precision::Double, write },
};

const FILE_PRIVATE: &str = "scidac-private-file-xml";
const FILE: &str = "scidac-file-xml";
const RECORD_PRIVATE: &str = "scidac-private-record-xml";
const RECORD: &str = "scidac-record-xml";
const FORMAT: &str = "ildg-format";
const LFN: &str = "ildg-data-lfn";
const DATA: &str = "ildg-binary-data";
const SCIDAC_DATA: &str = "scidac-binary-data";
const CHECKSUM: &str = "scidac-checksum";
const TMLQCD: &str = "xlf-info";
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
    TMLQCD,
    "grid-format",
    "FieldNormMetaData",
];

/// Sites that are read at once for a checksum.
const BLOCK: usize = 1 << 12;

/// What stands behind the header's readable part.
struct Layout {
    records: Records,
    sums: Option<[u32; 2]>,
    claims: Vec<Claim>,
}

/// No text of a header has more elements.
const MOST_NODES: u32 = 10_000;

/// A record that is XML. Document types are passed over, but not if they define entities: these may stand for gigabytes.
fn xml(text: &str) -> Result<Document<'_>, String> {
    let allow_dtd = !text.contains("<!ENTITY");
    let options = ParsingOptions { nodes_limit: MOST_NODES, allow_dtd, ..ParsingOptions::default() };
    Document::parse_with_options(text.trim_matches(|c: char| c.is_whitespace() || c == '\0'), options)
        .map_err(|error| error.to_string())
}

/// The first element of this name from `node` on, in any namespace.
fn inside<'a, 't>(node: Node<'a, 't>, name: &str) -> Option<Node<'a, 't>> {
    node.descendants().find(|node| node.is_element() && node.tag_name().name() == name)
}

/// Its text.
fn element(node: Node, name: &str) -> Option<String> {
    let all = inside(node, name)?.descendants().filter(Node::is_text);
    let text: String = all.filter_map(|node| node.text()).collect();
    Some(text.trim().to_owned())
}

/// The records of a file, of equal types the first.
struct Found<'a> {
    path: &'a Path,
    records: Vec<Record>,
    /// Bytes behind them.
    zeros: u64,
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

    /// A text as XML.
    fn xml<'t>(&self, kind: &str, text: &'t str) -> Result<Document<'t>, IoError> {
        xml(text).map_err(|error| IoError::malformed(self.path, format!("{kind} is no XML: {error}")))
    }

    /// A number of an XML record.
    fn number(&self, kind: &str, xml: &Document, name: &str) -> Result<u64, IoError> {
        element(xml.root(), name)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| IoError::malformed(self.path, format!("{kind} has no number {name}")))
    }

    /// The extents of a private file record.
    fn scidac_extents(&self, text: &str) -> Result<Extents, IoError> {
        let dims = element(self.xml(FILE_PRIVATE, text)?.root(), "dims").unwrap_or_default();
        let numbers: Vec<u64> = dims.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let numbers = <[u64; 4]>::try_from(numbers).map_err(|_| {
            IoError::malformed(self.path, format!("{FILE_PRIVATE} has dims '{dims}', not four numbers"))
        })?;
        checked_extents(self.path, numbers)
    }

    /// Extents, precision and data by ILDG's records; without their format by extents that the user tells.
    fn ildg(&self, told: Option<Extents>) -> Result<(Extents, Precision, &Record), IoError> {
        let Some(format) = self.text(FORMAT)? else {
            let data = self.need(DATA)?;
            let Some(extents) = told else {
                let what = format!("no LIME record {FORMAT}; tell its extents: --extents 8x8x8x16, say");
                return Err(IoError::malformed(self.path, what));
            };
            let extents = checked_extents(self.path, extents.map(|n| n as u64))?;
            if let Some(dims) = self.text(FILE_PRIVATE)?.and_then(|file| self.scidac_extents(&file).ok())
                && dims != extents
            {
                return Err(IoError::WrongLattice { path: self.path.into(), found: dims, expected: extents });
            }
            let is_single = data.length == volume(extents) as u64 * 288;
            return Ok((extents, if is_single { Precision::Single } else { Precision::Double }, data));
        };
        let format = self.xml(FORMAT, &format)?;
        let number = |name: &str| self.number(FORMAT, &format, name);
        if let Some(field) = element(format.root(), "field").filter(|field| field != "su3gauge") {
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
        let file_text = text(self.path, self.need(FILE_PRIVATE)?)?;
        let record = text(self.path, self.need(RECORD_PRIVATE)?)?;
        let record = self.xml(RECORD_PRIVATE, &record)?;
        let number = |name: &str| self.number(RECORD_PRIVATE, &record, name);
        // Four matrices, or one object of them.
        let (size, count) = (number("typesize")?, number("datacount")?);
        let is_links = matches!(count, 1 | 4);
        let precision = match (size.checked_mul(count), element(record.root(), "precision").as_deref()) {
            (Some(288), Some("F") | None) if is_links => Precision::Single,
            (Some(576), Some("D") | None) if is_links => Precision::Double,
            _ => {
                let datatype = element(record.root(), "datatype").unwrap_or_else(|| "no type".into());
                let what = format!("{count} of {datatype} ({size} bytes) a site, not four links");
                return Err(IoError::malformed(self.path, what));
            }
        };
        Ok((self.scidac_extents(&file_text)?, precision, self.need(SCIDAC_DATA)?))
    }

    /// Refuses files of QIO that hold a part of the links, whatever other records say.
    fn require_whole(&self) -> Result<(), IoError> {
        let value = |kind: &str, names: [&str; 2]| -> Result<Option<String>, IoError> {
            let text = self.text(kind)?;
            let xml = text.as_deref().and_then(|text| xml(text).ok());
            Ok(xml.and_then(|xml| names.iter().find_map(|name| element(xml.root(), name))))
        };
        if value(FILE_PRIVATE, ["volfmt", "multifile"])?.is_some_and(|volumes| volumes != "0") {
            return Err(IoError::malformed(self.path, "one of several files of QIO, which are not read"));
        }
        // Of a part of the lattice, or of no site at all.
        if value(RECORD_PRIVATE, ["recordtype", "globaldata"])?.is_some_and(|kind| kind != "0") {
            return Err(IoError::malformed(self.path, "its record is no field on the whole lattice"));
        }
        Ok(())
    }

    /// What tmLQCD says under a key, in lines of `key = value`.
    fn of_tmlqcd(&self, key: &str) -> Result<Option<String>, IoError> {
        let text = self.text(TMLQCD)?.unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let found =
            pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).next();
        Ok(found)
    }

    /// What is odd about the file, in one line each.
    fn notes(&self, extents: Extents) -> Result<Vec<String>, IoError> {
        let mut notes = wrong_flags(&self.records);
        if self.zeros > 0 {
            notes.push(format!("{} zeros behind the last LIME record, not read", self.zeros));
        }
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
fn header(path: &Path, told: Option<Extents>) -> Result<(Header, Layout), IoError> {
    let (records, zeros) = records(path)?;
    let found = Found { path, records, zeros };
    found.require_whole()?;
    // ILDG's records say more, if both are there.
    let is_scidac = found.get(FORMAT).is_none() && found.get(SCIDAC_DATA).is_some();
    let (extents, precision, data) = if is_scidac { found.scidac()? } else { found.ildg(told)? };
    let records = Records { start: data.start, endian: Endian::Big, precision, link_rows: 3 };
    let bytes = records.end(extents) - data.start;
    if data.length != bytes {
        let what = format!("{} has {} bytes, the lattice needs {bytes}", data.kind, data.length);
        return Err(IoError::malformed(path, what));
    }
    let sums = found.text(CHECKSUM)?.map(|text| -> Result<[u32; 2], IoError> {
        let xml = found.xml(CHECKSUM, &text)?;
        let sum = |name: &str| {
            element(xml.root(), name)
                .and_then(|value| u32::from_str_radix(&value, 16).ok())
                .ok_or_else(|| IoError::malformed(path, format!("{CHECKSUM} has no {name}")))
        };
        Ok([sum("suma")?, sum("sumb")?])
    });
    let sums = sums.transpose()?;
    // The record's own text is the user's, and need not be XML.
    let user = found.text(RECORD)?;
    let user = user.as_deref().and_then(|text| xml(text).ok());
    let usqcd = user.as_ref().and_then(|xml| inside(xml.root(), "usqcdInfo"));
    let value = |name: &str| element(usqcd?, name);
    let claim =
        |of, key: &'static str, text: Option<String>| Claim::printed(of, key, &text?, precision, extents);
    let plaquette = claim(Quantity::Plaquette, "plaq", value("plaq"));
    let of_tmlqcd = claim(Quantity::Plaquette, "plaquette", found.of_tmlqcd("plaquette")?);
    let plaquette = plaquette.or(of_tmlqcd);
    let verified = match (sums, &plaquette) {
        (Some(_), _) => Verified::Checksum,
        (None, Some(_)) => Verified::Plaquette,
        (None, None) => Verified::Unitarity,
    };
    let own = value("info").filter(|info| info.starts_with("hmc "));
    let (program, trajectory) =
        match own.as_deref().map(|own| own.split_once(", trajectory ").unwrap_or((own, ""))) {
            None => {
                let number = found.of_tmlqcd("trajectory nr")?;
                (found.of_tmlqcd("hmcversion")?, number.and_then(|number| number.parse().ok()))
            }
            Some((program, number)) => (Some(program.to_owned()), number.parse().ok()),
        };
    let header = Header {
        verified,
        program,
        trajectory,
        plaquette: plaquette.as_ref().map(|claim| claim.value),
        logical_name: found.text(LFN)?.map(|name| name.trim().to_owned()),
        notes: found.notes(extents)?,
        ..Header::new(Format::Ildg, extents, precision)
    };
    // Where bits are known by a checksum, digits of a plaquette, of which others may mean the sum, refuse nothing.
    let claims = plaquette.into_iter().chain(claim(Quantity::LinkTrace, "linktr", value("linktr")));
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
fn read(path: &Path, partition: &Partition, comm: &dyn Comm, told: Option<Extents>) -> Result<Read, IoError> {
    let (header, layout) = agree(comm, header(path, told))?;
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
    let (header, layout) = header(path, None)?;
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
fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    (meta, named): (&Meta, &Path),
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
        let of = |text: &str, name: &str| xml(text).ok().and_then(|xml| element(xml.root(), name));
        let format = format_xml([4, 6, 8, 10]);
        assert_eq!(of(&format, "lx").as_deref(), Some("4"));
        assert_eq!(of(&format, "lt").as_deref(), Some("10"));
        let odd = "<!-- <lx>9</lx> --><a:f xmlns:a='u'><lxx>1</lxx><a:lx b='>'> <![CDATA[1]]>&#50;<!-- --> </a:lx></a:f>\n\0";
        assert_eq!(of(odd, "lx").as_deref(), Some("12"));
        assert_eq!(of("<!DOCTYPE x SYSTEM 'x.dtd'><x><lx>4</lx></x>", "lx").as_deref(), Some("4"));
        for bad in ["<lx>", "", "<lx>1</ly>", "<!DOCTYPE x [<!ENTITY e '1'>]><lx>&e;</lx>"] {
            assert_eq!(of(bad, "lx"), None, "{bad}");
        }
    }
}
