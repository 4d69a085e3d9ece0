//! Numbers and texts from arbitrary bytes; zeros and empty texts when they end.

/// Bytes, from the first that is not yet taken.
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// Whether there are no more.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes, or those that are left.
    pub(super) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number below 256.
    pub(super) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// Any integer.
    pub(super) fn integer(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let taken = self.bytes(8);
        bytes[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(bytes)
    }

    /// A text of 255 bytes at most, its length first.
    pub(super) fn text(&mut self) -> String {
        let count = self.byte().into();
        String::from_utf8_lossy(self.bytes(count)).into_owned()
    }
}
