//! Heaps: global ones with texts of variable length, and fractal ones with links and attributes that are too many for a header.

use super::fields::Fields;
use super::{IoError, Reader};

/// What a B-tree of version 2 points to in a fractal heap: its kind, bytes of a record, and where the place in the heap is.
pub(super) struct Records {
    kind: u8,
    length: usize,
    id: std::ops::Range<usize>,
}

impl Records {
    /// Links by the hash of their name: hash, place.
    pub(super) const LINKS: Self = Self { kind: 5, length: 11, id: 4..11 };
    /// Attributes by the hash of their name: place, flags, order, hash.
    pub(super) const ATTRIBUTES: Self = Self { kind: 8, length: 17, id: 0..8 };
}

/// A fractal heap.
struct Fractal {
    /// Bytes of an offset and of a length in a place.
    widths: [usize; 2],
    /// Addresses of direct blocks, with the first offset and the length of each.
    blocks: Vec<(u64, u64, u64)>,
}

impl Reader<'_> {
    /// The text that a value of variable length stands for.
    pub(super) fn text(&self, value: &[u8]) -> Result<String, IoError> {
        let mut fields = Fields(value);
        let found = (|| Some((fields.length(4)?, fields.address()?, fields.number(4)?)))();
        let (length, heap, index) = found.ok_or_else(|| self.broken("text", 0))?;
        if length == 0 {
            return Ok(String::new());
        }
        let broken = || self.broken("GCOL", heap);
        let head = self.block(heap, 16)?;
        let size =
            Fields(&head[8..]).number(8).filter(|_| head.starts_with(b"GCOL\x01")).ok_or_else(broken)?;
        let bytes = self.block(heap, size)?;
        let object = object_of(bytes.get(16..).ok_or_else(broken)?, index).ok_or_else(broken)?;
        let text = object.get(..length).ok_or_else(broken)?;
        let text = std::str::from_utf8(text).map_err(|_| self.refused("a text is not in UTF-8"))?;
        Ok(text.to_owned())
    }

    /// The messages that a fractal heap keeps, in the order of a B-tree.
    pub(super) fn kept(&self, heap: u64, tree: u64, of: Records) -> Result<Vec<Vec<u8>>, IoError> {
        let fractal = self.fractal(heap)?;
        let broken = || self.broken("BTHD", tree);
        let head = self.sealed(tree, 38, b"BTHD")?;
        let mut fields = Fields(&head[4..]);
        let parts = (|| {
            let version_kind = [fields.byte()?, fields.byte()?];
            let (node, length, depth) = (fields.number(4)?, fields.length(2)?, fields.number(2)?);
            fields.take(2)?;
            Some((
                version_kind == [0, of.kind] && length == of.length,
                node,
                depth,
                fields.address()?,
                fields.length(2)?,
            ))
        })();
        let (is_known, node, depth, root, count) = parts.ok_or_else(broken)?;
        if !is_known {
            return Err(broken());
        }
        if depth > 0 {
            return Err(self.refused("more than some 30 links or attributes of one object"));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let used = 6 + count * of.length + 4;
        if used as u64 > node {
            return Err(broken());
        }
        let leaf = self.sealed(root, used as u64, b"BTLF")?;
        leaf[6..]
            .chunks_exact(of.length)
            .map(|record| self.managed(&fractal, &record[of.id.clone()], heap))
            .collect()
    }

    /// Reads the header of a fractal heap and where its blocks are.
    fn fractal(&self, address: u64) -> Result<Fractal, IoError> {
        let broken = || self.broken("FRHP", address);
        let head = self.sealed(address, 146, b"FRHP")?;
        let mut fields = Fields(&head[4..]);
        let parts = (|| {
            let version = fields.byte()?;
            fields.take(2)?;
            let filters = fields.number(2)?;
            fields.take(1)?;
            let longest = fields.number(4)?;
            fields.take(96)?;
            let width = fields.length(2)?;
            let [first, largest] = fields.addresses()?;
            let bits = fields.length(2)?;
            fields.take(2)?;
            let (root, rows) = (fields.address()?, fields.length(2)?);
            let is_plain = version == 0 && filters == 0 && bits <= 64 && first.is_power_of_two();
            is_plain.then_some((longest, width, first, largest, bits.div_ceil(8), root, rows))
        })();
        let (longest, width, first, largest, offset, root, rows) = parts.ok_or_else(broken)?;
        let bytes_of = |most: u64| usize::try_from(most.max(1).ilog2() / 8 + 1).unwrap_or(8);
        let widths = [offset, bytes_of(longest).min(bytes_of(largest))];
        if rows == 0 {
            return Ok(Fractal { widths, blocks: vec![(root, 0, first)] });
        }
        // Blocks of a row are of one size: those of the first two the least, then twice as much in each. Larger ones than the
        // largest are blocks of blocks, which some hundred kilobytes do not need.
        let sizes =
            (0..rows).map(|row| first.checked_shl(u32::try_from(row.saturating_sub(1)).unwrap_or(64)));
        let sizes = sizes.take_while(|size| size.is_some_and(|size| size <= largest && size > 0)).flatten();
        let sizes: Vec<u64> =
            sizes.take(64).flat_map(|size| std::iter::repeat_n(size, width.min(64))).collect();
        let table = self.block(root, (13 + offset + 8 * sizes.len()) as u64)?;
        if !table.starts_with(b"FHIB\0") {
            return Err(self.broken("FHIB", root));
        }
        let mut addresses = Fields(&table[13 + offset..]);
        let mut start = 0_u64;
        let mut blocks = Vec::new();
        for size in sizes {
            blocks.push((addresses.address().ok_or_else(broken)?, start, size));
            start = start.checked_add(size).ok_or_else(broken)?;
        }
        Ok(Fractal { widths, blocks })
    }

    /// What a heap has at a place: a kind, an offset among all blocks, which begin with heads of their own, and a length.
    fn managed(&self, fractal: &Fractal, place: &[u8], heap: u64) -> Result<Vec<u8>, IoError> {
        let mut fields = Fields(place);
        let [offset, length] = fractal.widths;
        let parts = (|| Some((fields.byte()?, fields.number(offset)?, fields.number(length)?)))();
        let (0, offset, length) = parts.ok_or_else(|| self.broken("FRHP", heap))? else {
            return Err(self.refused("an attribute or a link of more than 4096 bytes"));
        };
        let end = offset.saturating_add(length);
        let block = fractal.blocks.iter().find(|(_, start, size)| *start <= offset && end <= start + size);
        let (address, start, _) = block.ok_or_else(|| self.broken("FRHP", heap))?;
        self.block(address.saturating_add(offset - start), length)
    }
}

/// An object of a global heap, by its number: number, count, size, data padded to eight bytes.
fn object_of(heap: &[u8], index: u64) -> Option<&[u8]> {
    let mut fields = Fields(heap);
    loop {
        let number = fields.number(2)?;
        fields.take(6)?;
        let length = fields.length(8)?;
        // The rest is free.
        if number == 0 {
            return None;
        }
        let data = fields.take(length)?;
        if number == index {
            return Some(data);
        }
        fields.take(length.wrapping_neg() % 8)?;
    }
}
