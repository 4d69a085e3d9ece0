//! Numbers of a block, and its checksum.

/// What is left of a block: little-endian numbers, one after the other. `None` is its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of so many bytes, eight at most.
    pub(super) fn number(&mut self, width: usize) -> Option<u64> {
        let bytes = self.take(width).filter(|_| width <= 8)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// The same as a length in memory.
    pub(super) fn length(&mut self, width: usize) -> Option<usize> {
        usize::try_from(self.number(width)?).ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    pub(super) fn address(&mut self) -> Option<u64> {
        self.number(8)
    }

    pub(super) fn addresses<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut all = [0; N];
        for one in &mut all {
            *one = self.address()?;
        }
        Some(all)
    }

    /// The text up to the next zero, which is passed.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.take(end);
        self.take(1)?;
        text
    }
}

/// A text of a file that ends at a zero, or at its end.
pub(super) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// Whether the last four bytes are the checksum of those before: Jenkins' lookup3 (`hashlittle`), as HDF5 has it.
pub(super) fn has_checksum(bytes: &[u8]) -> bool {
    let Some((bytes, sum)) = bytes.split_last_chunk() else { return false };
    lookup3(bytes) == u32::from_le_bytes(*sum)
}

pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let [mut a, mut b, mut c] = [0xdead_beef_u32.wrapping_add(length); 3];
    // A whole block at the end is the last one.
    let last = bytes.len().saturating_sub(1) / 12 * 12;
    let (blocks, rest) = bytes.split_at(last);
    let add = |block: &[u8], to: [u32; 3]| {
        let mut fields = [0; 12];
        fields[..block.len()].copy_from_slice(block);
        let words = fields.as_chunks().0;
        [0, 1, 2].map(|n| to[n].wrapping_add(u32::from_le_bytes(words[n])))
    };
    for block in blocks.chunks_exact(12) {
        [a, b, c] = add(block, [a, b, c]);
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    if rest.is_empty() {
        return c;
    }
    [a, b, c] = add(rest, [a, b, c]);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of `lookup3.c` itself (its `driver5`).
    #[test]
    fn checksums_are_those_of_lookup3() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
