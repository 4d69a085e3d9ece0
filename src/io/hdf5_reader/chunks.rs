//! Where the chunks of a dataset are: by a B-tree (HDF5 1.6 to 1.8), alone, in a row, or in an array of fixed length (HDF5 1.10).

use super::fields::Fields;
use super::tree::Tree;
use super::{IoError, NOWHERE, Reader};

/// A chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chunk {
    pub(super) address: u64,
    /// Stored bytes.
    pub(super) length: u64,
    /// A bit for each filter that was left out.
    pub(super) skipped: u32,
}

/// The chunks of a dataset, as its layout describes them.
pub(super) struct Grid {
    /// Elements of the dataset in each direction.
    pub(super) shape: Vec<usize>,
    /// Elements of a chunk in each direction.
    pub(super) chunk: Vec<usize>,
    /// Bytes of a chunk without filters.
    pub(super) bytes: u64,
    pub(super) is_filtered: bool,
}

impl Grid {
    /// Chunks in each direction.
    fn extents(&self) -> impl Iterator<Item = usize> {
        self.shape.iter().zip(&self.chunk).map(|(all, one)| all.div_ceil(*one))
    }

    /// Their number, if it is one.
    pub(super) fn count(&self) -> Option<usize> {
        self.extents().try_fold(1_usize, usize::checked_mul)
    }

    /// The first element of the n-th chunk; the last direction is the fastest.
    pub(super) fn start(&self, mut n: usize) -> Vec<usize> {
        let extents: Vec<usize> = self.extents().collect();
        let mut start = vec![0; extents.len()];
        for (k, extent) in extents.iter().enumerate().rev() {
            start[k] = n % extent * self.chunk[k];
            n /= extent;
        }
        start
    }

    /// The chunk that begins at an element.
    fn number(&self, start: &[usize]) -> Option<usize> {
        let mut number = 0;
        for ((extent, chunk), at) in self.extents().zip(&self.chunk).zip(start) {
            number = (at % chunk == 0 && at / chunk < extent).then_some(number * extent + at / chunk)?;
        }
        Some(number)
    }
}

impl Reader<'_> {
    /// All chunks by their numbers, of a layout of version 3: a B-tree.
    pub(super) fn chunks_of_tree(
        &self,
        tree: u64,
        grid: &Grid,
        count: usize,
    ) -> Result<Vec<Option<Chunk>>, IoError> {
        let broken = || self.broken("TREE", tree);
        let mut chunks = vec![None; count];
        let directions = grid.shape.len();
        for (key, address) in self.leaves(tree, Tree::chunks(directions), 2 * count + 64)? {
            let mut fields = Fields(&key);
            let stored = fields.number(4).zip(fields.number(4).and_then(|mask| u32::try_from(mask).ok()));
            let (length, skipped) = stored.ok_or_else(broken)?;
            let start = (0..directions).map(|_| fields.length(8)).collect::<Option<Vec<_>>>();
            let number = start.and_then(|start| grid.number(&start)).ok_or_else(broken)?;
            chunks[number] = Some(Chunk { address, length, skipped });
        }
        Ok(chunks)
    }

    /// The same of versions 4 and 5, from the number that says the kind of index on.
    pub(super) fn chunks_of_index(
        &self,
        mut fields: Fields,
        is_single_filtered: bool,
        grid: &Grid,
        count: usize,
    ) -> Result<Vec<Option<Chunk>>, IoError> {
        let broken = || self.broken("layout", 0);
        let index = fields.byte().ok_or_else(broken)?;
        let plain = |address| Chunk { address, length: grid.bytes, skipped: 0 };
        match index {
            1 => {
                let mut chunk = plain(NOWHERE);
                if is_single_filtered {
                    chunk.length = fields.number(8).ok_or_else(broken)?;
                    chunk.skipped =
                        fields.number(4).and_then(|mask| u32::try_from(mask).ok()).ok_or_else(broken)?;
                }
                chunk.address = fields.address().filter(|_| count == 1).ok_or_else(broken)?;
                Ok(vec![Some(chunk)])
            }
            2 => {
                let first = fields.address().ok_or_else(broken)?;
                let at = |n: u64| first.checked_add(n.checked_mul(grid.bytes)?).map(plain);
                Ok((0..count as u64).map(at).collect())
            }
            3 => {
                let address = fields.take(1).and_then(|_| fields.address()).ok_or_else(broken)?;
                self.chunks_of_array(address, grid, count)
            }
            _ => Err(self.refused("chunks of a dataset that can grow")),
        }
    }

    /// Chunks in an array of fixed length, which is divided into pages if it is long.
    fn chunks_of_array(&self, array: u64, grid: &Grid, count: usize) -> Result<Vec<Option<Chunk>>, IoError> {
        let broken = || self.broken("FAHD", array);
        let head = self.sealed(array, 28, b"FAHD\0")?;
        let mut fields = Fields(&head[5..]);
        let parts = (|| {
            let [client, entry, bits] = [fields.byte()?, fields.byte()?, fields.byte()?];
            Some((client, usize::from(entry), u32::from(bits), fields.length(8)?, fields.address()?))
        })();
        let (client, entry, bits, entries, block) = parts.ok_or_else(broken)?;
        let width = entry.checked_sub(if grid.is_filtered { 12 } else { 8 }).filter(|&width| width <= 8);
        let width =
            width.filter(|_| entries == count && client == u8::from(grid.is_filtered)).ok_or_else(broken)?;
        let page = 1_usize.checked_shl(bits).filter(|&page| page > 0).ok_or_else(broken)?;
        let chunk = |bytes: &[u8]| {
            let mut fields = Fields(bytes);
            let address = fields.address()?;
            if !grid.is_filtered {
                return Some(Chunk { address, length: grid.bytes, skipped: 0 });
            }
            let (length, skipped) = (fields.number(width)?, u32::try_from(fields.number(4)?).ok()?);
            Some(Chunk { address, length, skipped })
        };
        let mut chunks = Vec::new();
        if count <= page {
            let bytes = self.sealed(block, (14 + entry * count + 4) as u64, b"FADB\0")?;
            chunks.extend(bytes[14..].chunks_exact(entry).map(chunk));
            return Ok(chunks);
        }
        // A bit says whether a page was ever written; chunks of others are not there.
        let pages = count.div_ceil(page);
        let prefix = 14 + pages.div_ceil(8) + 4;
        let bits = self.sealed(block, prefix as u64, b"FADB\0")?;
        let mut at = block.saturating_add(prefix as u64);
        for n in 0..pages {
            let here = page.min(count - n * page);
            let length = (here * entry + 4) as u64;
            if bits[14 + n / 8] & (0x80 >> (n % 8)) == 0 {
                chunks.resize(chunks.len() + here, None);
            } else {
                chunks.extend(self.sealed(at, length, b"")?.chunks_exact(entry).map(chunk));
            }
            at = at.saturating_add(((page * entry) + 4) as u64);
        }
        Ok(chunks)
    }
}
