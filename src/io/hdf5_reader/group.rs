//! Links of a group: as a B-tree with a heap of names (HDF5 1.6), as messages, or in a heap if they are many (HDF5 1.8).

use super::fields::{Fields, name};
use super::heap::Records;
use super::object::{LINK, LINK_INFO, Object, SYMBOL_TABLE};
use super::tree::Tree;
use super::{IoError, NOWHERE, Reader};

/// No group has more links.
const MOST_LINKS: usize = 10_000;
/// In a list of symbols, a link to a name.
const SOFT: u64 = 2;

/// A link of a group.
struct Link {
    name: String,
    /// The header of the object in this file; `None` if it leads to a name or to another file.
    to: Option<u64>,
}

impl Reader<'_> {
    /// Whether there is an object of this path below `/`.
    pub(in crate::io) fn has(&self, path: &str) -> Result<bool, IoError> {
        self.find(path).map(|found| found.is_some())
    }

    /// The object of this path below `/`; `None` if there is none.
    pub(super) fn find(&self, path: &str) -> Result<Option<Object>, IoError> {
        let mut object = self.object(self.root)?;
        for part in path.split('/') {
            let links = self.links(&object)?;
            let Some(link) = links.into_iter().find(|link| link.name == part) else { return Ok(None) };
            let to = link.to.ok_or_else(|| {
                self.refused(format!("'{part}' of /{path} is a link to a name or to another file"))
            })?;
            object = self.object(to)?;
        }
        Ok(Some(object))
    }

    /// The names in the group of this path; none if there is no such group.
    pub(in crate::io) fn members(&self, path: &str) -> Result<Vec<String>, IoError> {
        let Some(object) = self.find(path)? else { return Ok(Vec::new()) };
        Ok(self.links(&object)?.into_iter().map(|link| link.name).collect())
    }

    fn links(&self, group: &Object) -> Result<Vec<Link>, IoError> {
        let mut links = Vec::new();
        if let Some(bytes) = group.one(self, SYMBOL_TABLE, "list of links")? {
            let addresses = Fields(bytes).addresses();
            let [tree, heap] = addresses.ok_or_else(|| self.broken("group", 0))?;
            links = self.symbols(tree, &self.names(heap)?)?;
        }
        for bytes in group.all(LINK) {
            links.push(link(bytes).ok_or_else(|| self.broken("link", 0))?);
        }
        if let Some(bytes) = group.one(self, LINK_INFO, "list of links")? {
            let info = info(bytes, 8).ok_or_else(|| self.broken("group", 0))?;
            if let Some([heap, tree]) = info {
                for bytes in self.kept(heap, tree, Records::LINKS)? {
                    links.push(link(&bytes).ok_or_else(|| self.broken("link", heap))?);
                }
            }
        }
        Ok(links)
    }

    /// The names of a group of version 1.
    fn names(&self, heap: u64) -> Result<Vec<u8>, IoError> {
        let head = self.block(heap, 32)?;
        let mut fields = Fields(&head);
        let mark = fields.take(8).filter(|mark| mark.starts_with(b"HEAP\0"));
        let [length, _, data] =
            mark.and_then(|_| fields.addresses()).ok_or_else(|| self.broken("HEAP", heap))?;
        self.block(data, length)
    }

    /// The links of a group of version 1.
    fn symbols(&self, tree: u64, names: &[u8]) -> Result<Vec<Link>, IoError> {
        let mut links = Vec::new();
        for (_, list) in self.leaves(tree, Tree::GROUP, MOST_LINKS)? {
            let broken = || self.broken("SNOD", list);
            let head = self.block(list, 8)?;
            let count = Fields(&head[6..]).number(2).filter(|_| head.starts_with(b"SNOD\x01"));
            let count = count.ok_or_else(broken)?;
            let entries = self.block(list, 8 + 40 * count)?;
            for entry in entries[8..].chunks_exact(40) {
                let mut fields = Fields(entry);
                let place = fields.length(8).and_then(|place| names.get(place..)).ok_or_else(broken)?;
                let (to, kind) = fields.address().zip(fields.number(4)).ok_or_else(broken)?;
                links.push(Link { name: name(place), to: (kind != SOFT && to != NOWHERE).then_some(to) });
            }
            if links.len() > MOST_LINKS {
                return Err(broken());
            }
        }
        Ok(links)
    }
}

/// Where a heap and the B-tree of what is in it are, if there are any; of a message with so many bytes for the greatest number.
pub(super) fn info(bytes: &[u8], width: usize) -> Option<Option<[u64; 2]>> {
    let mut fields = Fields(bytes);
    let (version, flags) = (fields.byte()?, fields.byte()?);
    fields.take(if flags & 1 == 0 { 0 } else { width })?;
    let [heap, tree] = fields.addresses()?;
    (version == 0).then_some((heap != NOWHERE).then_some([heap, tree]))
}

/// A link as a message.
fn link(bytes: &[u8]) -> Option<Link> {
    let mut fields = Fields(bytes);
    let (version, flags) = (fields.byte()?, fields.byte()?);
    let kind = if flags & 8 == 0 { 0 } else { fields.byte()? };
    fields.take(if flags & 4 == 0 { 0 } else { 8 })?;
    fields.take(usize::from(flags & 16 != 0))?;
    let length = fields.length(1 << (flags & 3))?;
    let name = name(fields.take(length)?);
    let to = if kind == 0 { Some(fields.address()?) } else { None };
    (version == 1).then_some(Link { name, to })
}
