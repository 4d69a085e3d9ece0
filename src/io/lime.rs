//! LIME containers (c-lime 1.3, `lime_1p2.pdf`): files of typed records in messages.
//!
//! A record is a header of 144 bytes, big-endian: magic, version 1 and flags in 16 bits each, length in 64, type in 128 bytes;
//! then data, padded to 8 bytes. The first record of a message has the flag MB, the last one ME.

use super::IoError;
use super::bytes::{eight, head, open, read_at};
use std::fs::File;
use std::path::Path;

/// The first four bytes of each record.
pub(super) const MAGIC: u32 = 0x4567_89ab;
const VERSION: u16 = 1;
pub(super) const RECORD_HEADER: usize = 144;
/// The flag of the first record of a message, MB.
pub(super) const BEGINS: u16 = 0x8000;
/// The flag of the last record of a message, ME.
pub(super) const ENDS: u16 = 0x4000;
/// No text that is read is longer.
const LONGEST_TEXT: usize = 1 << 20;
/// No file has more records: those of ILDG and QIO have less than ten.
const MOST_RECORDS: usize = 10_000;
/// No block that is filled up is longer.
const MOST_ZEROS: u64 = 1 << 20;

/// One record: what it is, and where its data lie.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) kind: String,
    pub(super) start: u64,
    pub(super) length: u64,
    version: u16,
    flags: u16,
}

/// All records of a file, in its order, and how many zeros stand behind them.
pub(super) fn records(path: &Path) -> Result<(Vec<Record>, u64), IoError> {
    let (_, size) = head(path, 0)?;
    let file = open(path)?;
    let mut found = Vec::new();
    let mut place = 0;
    while place < size {
        if found.len() >= MOST_RECORDS {
            return Err(IoError::malformed(path, format!("more than {MOST_RECORDS} LIME records")));
        }
        let rest = size - place;
        let mut bytes = [0; RECORD_HEADER];
        let there = usize::try_from(rest).unwrap_or(usize::MAX).min(RECORD_HEADER);
        read_at(&file, path, place, &mut bytes[..there])?;
        let magic = MAGIC.to_be_bytes();
        if bytes[..there].starts_with(&magic) && there < RECORD_HEADER {
            return Err(IoError::Truncated {
                path: path.into(),
                expected: place + RECORD_HEADER as u64,
                found: size,
            });
        }
        if !bytes.starts_with(&magic) {
            // Some file systems and tapes fill up a block.
            if !found.is_empty() && rest <= MOST_ZEROS && is_zero(&file, path, place, rest)? {
                return Ok((found, rest));
            }
            return Err(IoError::malformed(
                path,
                format!("the {rest} bytes from byte {place} on are no LIME record"),
            ));
        }
        let [version, flags] = [4, 6].map(|at| u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        let length = eight(&bytes, 8).map_or(0, u64::from_be_bytes);
        let kind = bytes[16..].split(|&b| b == 0).next().unwrap_or_default();
        let kind = String::from_utf8_lossy(kind).into_owned();
        let start = place + RECORD_HEADER as u64;
        let end = start.saturating_add(length);
        if end > size {
            return Err(IoError::Truncated { path: path.into(), expected: end, found: size });
        }
        found.push(Record { kind, start, length, version, flags });
        place = end.saturating_add(length.wrapping_neg() % 8);
    }
    Ok((found, 0))
}

/// Whether so many bytes are zero.
fn is_zero(file: &File, path: &Path, start: u64, length: u64) -> Result<bool, IoError> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    read_at(file, path, start, &mut bytes)?;
    Ok(bytes.iter().all(|&byte| byte == 0))
}

/// What is wrong with the versions and flags of records, in one line each.
pub(super) fn wrong_flags(records: &[Record]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut tell = |what: &str, is: &dyn Fn(usize) -> bool| {
        let of: Vec<&str> = (0..records.len()).filter(|&n| is(n)).map(|n| records[n].kind.as_str()).collect();
        if !of.is_empty() {
            wrong.push(format!("LIME records {what}: {}", of.join(", ")));
        }
    };
    let has = |n: usize, flag: u16| records[n].flags & flag != 0;
    let begins = |n: usize| n == 0 || has(n - 1, ENDS);
    tell("of another version than 1", &|n| records[n].version != VERSION);
    tell("at the start of a message without its flag", &|n| begins(n) && !has(n, BEGINS));
    tell("inside a message with the flag of its start", &|n| !begins(n) && has(n, BEGINS));
    tell("at the end of the file without the flag of a message's end", &|n| {
        n + 1 == records.len() && !has(n, ENDS)
    });
    tell("with flags that nothing defines", &|n| records[n].flags & !(BEGINS | ENDS) != 0);
    wrong
}

/// The text of a record, without the zeros that end it in some files.
pub(super) fn text(path: &Path, record: &Record) -> Result<String, IoError> {
    let length = usize::try_from(record.length).ok().filter(|&length| length <= LONGEST_TEXT);
    let too_long = || format!("a record {} of {} bytes", record.kind, record.length);
    let mut bytes = vec![0; length.ok_or_else(|| IoError::malformed(path, too_long()))?];
    read_at(&open(path)?, path, record.start, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

/// A record of text, padded to 8 bytes.
pub(super) fn text_record(kind: &str, text: &str, flags: u16) -> Vec<u8> {
    let mut bytes = record_header(kind, text.len() as u64, flags);
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A record's header.
pub(super) fn record_header(kind: &str, length: u64, flags: u16) -> Vec<u8> {
    let mut bytes = MAGIC.to_be_bytes().to_vec();
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(kind.as_bytes());
    bytes.resize(RECORD_HEADER, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_begin_and_end_messages() {
        let told = |all: &[u16]| {
            let record = |(n, &flags): (usize, &u16)| Record {
                kind: n.to_string(),
                start: 0,
                length: 0,
                version: VERSION,
                flags,
            };
            wrong_flags(&all.iter().enumerate().map(record).collect::<Vec<_>>())
        };
        let both = BEGINS | ENDS;
        for good in [&[both][..], &[BEGINS, ENDS], &[BEGINS, 0, ENDS, both, BEGINS, ENDS], &[]] {
            assert!(told(good).is_empty(), "{good:x?}");
        }
        assert_eq!(told(&[0, ENDS]), ["LIME records at the start of a message without its flag: 0"]);
        let inside = "LIME records inside a message with the flag of its start: 1, 2";
        assert_eq!(told(&[BEGINS, BEGINS, BEGINS | ENDS]), [inside]);
        assert_eq!(told(&[BEGINS, 0]).len(), 1);
        assert_eq!(told(&[both | 1]), ["LIME records with flags that nothing defines: 0"]);
    }
}
