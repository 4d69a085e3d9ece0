//! B-trees of version 1: of the links of a group, and of the chunks of a dataset.

use super::fields::Fields;
use super::{IoError, Reader};

/// What a tree is of, and bytes of a key.
#[derive(Clone, Copy)]
pub(super) struct Tree {
    kind: u8,
    key: usize,
}

impl Tree {
    pub(super) const GROUP: Self = Self { kind: 0, key: 8 };

    /// Of chunks: stored bytes, filters that were left out, and the first element, with a zero behind it.
    pub(super) fn chunks(directions: usize) -> Self {
        Self { kind: 1, key: 8 + 8 * (directions + 1) }
    }
}

impl Reader<'_> {
    /// What the last level of a tree points to, each with the key in front of it; a tree of more than `most` nodes and leaves
    /// is refused.
    pub(super) fn leaves(&self, root: u64, tree: Tree, most: usize) -> Result<Vec<(Vec<u8>, u64)>, IoError> {
        let mut open = vec![(root, u8::MAX)];
        let (mut found, mut seen) = (Vec::new(), 0);
        while let Some((address, above)) = open.pop() {
            let broken = || self.broken("TREE", address);
            let head = self.block(address, 24)?;
            let mut fields = Fields(&head);
            let mark = fields.take(5).filter(|mark| mark.starts_with(b"TREE") && mark[4] == tree.kind);
            let level = mark.and_then(|_| fields.byte()).filter(|&level| level < above).ok_or_else(broken)?;
            let count = fields.length(2).ok_or_else(broken)?;
            seen += 1 + count;
            if seen > most {
                return Err(broken());
            }
            let bytes = self.block(address, (24 + count * (tree.key + 8)) as u64)?;
            for child in bytes[24..].chunks_exact(tree.key + 8) {
                let (key, mut to) = (child[..tree.key].to_vec(), Fields(&child[tree.key..]));
                let to = to.address().ok_or_else(broken)?;
                if level == 0 { found.push((key, to)) } else { open.push((to, level)) }
            }
        }
        Ok(found)
    }
}
