//! Headers of objects: lists of messages, of version 1 (HDF5 1.6) and 2 (HDF5 1.8).

use super::fields::Fields;
use super::{IoError, Reader};

/// Numbers of messages.
pub(super) const DATASPACE: u16 = 1;
pub(super) const LINK_INFO: u16 = 2;
pub(super) const DATATYPE: u16 = 3;
pub(super) const LINK: u16 = 6;
pub(super) const EXTERNAL: u16 = 7;
pub(super) const LAYOUT: u16 = 8;
pub(super) const FILTERS: u16 = 11;
pub(super) const ATTRIBUTE: u16 = 12;
const CONTINUATION: u16 = 16;
pub(super) const SYMBOL_TABLE: u16 = 17;
pub(super) const ATTRIBUTE_INFO: u16 = 21;

/// No header has more blocks.
const MOST_BLOCKS: usize = 256;
const MARK: &[u8] = b"OHDR";

/// A message of a header.
#[derive(Debug)]
struct Message {
    kind: u16,
    /// Its content is elsewhere.
    is_shared: bool,
    bytes: Vec<u8>,
}

/// The header of a group or a dataset.
#[derive(Debug)]
pub(super) struct Object {
    address: u64,
    messages: Vec<Message>,
}

impl Object {
    /// The content of all messages of a kind.
    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().filter(move |message| message.kind == kind).map(|message| &*message.bytes)
    }

    /// The content of the only message of a kind.
    pub(super) fn one(&self, reader: &Reader, kind: u16, what: &str) -> Result<Option<&[u8]>, IoError> {
        let mut all = self.messages.iter().filter(|message| message.kind == kind);
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some(message), None) if message.is_shared => {
                Err(reader.refused(format!("its {what} is one that several objects share")))
            }
            (Some(message), None) => Ok(Some(&message.bytes)),
            (Some(_), Some(_)) => Err(reader.broken("header", self.address)),
        }
    }
}

impl Reader<'_> {
    /// The header at an address.
    pub(super) fn object(&self, address: u64) -> Result<Object, IoError> {
        let broken = || self.broken("header", address);
        let start = self.block(address, 16)?;
        let is_new = start.starts_with(MARK);
        let (bytes, extra) = if is_new {
            self.new_header(address, &start)?
        } else {
            let mut fields = Fields(&start);
            let version = fields.byte();
            fields.take(7).filter(|_| version == Some(1)).ok_or_else(broken)?;
            let length = fields.number(4).ok_or_else(broken)?;
            (self.block(address.saturating_add(16), length)?, 0)
        };
        let form = if is_new { Form::New { extra } } else { Form::Old };
        let mut messages = Vec::new();
        let mut open = vec![bytes];
        let mut count = 1;
        while let Some(bytes) = open.pop() {
            for message in form.messages(&bytes).ok_or_else(broken)? {
                if message.kind != CONTINUATION {
                    messages.push(message);
                    continue;
                }
                let mut fields = Fields(&message.bytes);
                let [at, length] = fields.addresses().ok_or_else(broken)?;
                count += 1;
                if count > MOST_BLOCKS {
                    return Err(broken());
                }
                let block = if is_new {
                    self.sealed(at, length, b"OCHK")?.split_off(4)
                } else {
                    self.block(at, length)?
                };
                open.push(block);
            }
        }
        Ok(Object { address, messages })
    }

    /// The messages of the first block of a header of version 2, and how many bytes stand in front of each besides.
    fn new_header(&self, address: u64, start: &[u8]) -> Result<(Vec<u8>, usize), IoError> {
        let (version, flags) = (start[4], start[5]);
        // Times, and when attributes go elsewhere.
        let prefix = 6 + if flags & 0x20 == 0 { 0 } else { 16 } + if flags & 0x10 == 0 { 0 } else { 4 };
        let width = 1 << (flags & 3);
        let head = self.block(address, (prefix + width) as u64)?;
        let length = Fields(&head[prefix..]).number(width).filter(|_| version == 2);
        let length = length.and_then(|length| length.checked_add(head.len() as u64 + 4));
        let length = length.ok_or_else(|| self.broken("header", address))?;
        let messages = self.sealed(address, length, MARK)?.split_off(head.len());
        Ok((messages, if flags & 4 == 0 { 0 } else { 2 }))
    }
}

/// How messages stand in a block.
#[derive(Clone, Copy)]
enum Form {
    Old,
    New {
        /// Bytes for the order in which attributes were made.
        extra: usize,
    },
}

impl Form {
    fn messages(self, bytes: &[u8]) -> Option<Vec<Message>> {
        let head = match self {
            Self::Old => 8,
            Self::New { extra } => 4 + extra,
        };
        let mut fields = Fields(bytes);
        let mut messages = Vec::new();
        while fields.0.len() >= head {
            let (kind, length, flags);
            match self {
                Self::Old => {
                    kind = fields.number(2)?;
                    length = fields.length(2)?;
                    flags = fields.byte()?;
                    fields.take(3)?;
                }
                Self::New { extra } => {
                    kind = fields.number(1)?;
                    length = fields.length(2)?;
                    flags = fields.byte()?;
                    fields.take(extra)?;
                }
            }
            let bytes = fields.take(length)?.to_vec();
            messages.push(Message { kind: u16::try_from(kind).ok()?, is_shared: flags & 2 != 0, bytes });
        }
        Some(messages)
    }
}
