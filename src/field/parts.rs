//! Parts of buffers that travel between ranks in messages.

use super::{Domain, FieldError, Halo};
use crate::comm::Message;
use crate::device::Buffer;
use std::ops::Range;

/// A part of a buffer that goes to a rank, or comes from it.
pub(crate) struct Part {
    /// The other rank.
    pub peer: usize,
    /// Equal on both sides.
    pub tag: i32,
    /// Its bytes; none: nothing travels.
    pub bytes: Range<usize>,
}

/// Slices of some parts of `all`, which follow each other.
fn slices<'a>(mut all: &'a mut [u8], parts: &[&Part]) -> Vec<&'a mut [u8]> {
    let mut begin = 0;
    let mut next = |part: &&Part| {
        let (_, rest) = std::mem::take(&mut all).split_at_mut(part.bytes.start - begin);
        let (own, rest) = rest.split_at_mut(part.bytes.len());
        (all, begin) = (rest, part.bytes.end);
        own
    };
    parts.iter().map(&mut next).collect()
}

impl Domain {
    /// Gives parts of `from` to other ranks, and receives parts of `to`; all ranks call it together. Between two ranks they come in
    /// the order of their tags.
    ///
    /// # Panics
    /// Parts overlap, or are not in the order of a buffer.
    pub(crate) fn exchange_parts(
        &self,
        (from, sent): (&Buffer, &[Part]),
        (to, received): (&mut Buffer, &[Part]),
    ) -> Result<(), FieldError> {
        let [sent, received] =
            [sent, received].map(|all| all.iter().filter(|part| !part.bytes.is_empty()).collect::<Vec<_>>());
        if self.transports().messages() == Halo::Nccl {
            let sends: Vec<_> =
                sent.iter().map(|part| from.parcel_to(part.peer, part.bytes.clone())).collect();
            let places: Vec<_> = received.iter().map(|part| (part.peer, part.bytes.clone())).collect();
            let receives = to.parcels_from(&places);
            self.device().backend().mark()?;
            // SAFETY: no work comes before all has been received.
            unsafe { self.exchange_parcels(&sends, &receives)? };
            return self.await_parcels();
        }
        let messages = |bytes: &[u8], to: &mut [u8]| {
            let message = |part: &&Part, bytes| Message { peer: part.peer, tag: part.tag, bytes };
            let sends: Vec<_> = sent.iter().map(|part| message(part, &bytes[part.bytes.clone()])).collect();
            let slices = slices(to, &received).into_iter();
            let into = |(part, bytes): (&&Part, _)| Message { peer: part.peer, tag: part.tag, bytes };
            let mut receives: Vec<_> = received.iter().zip(slices).map(into).collect();
            self.waiting(|| self.comm().exchange(&sends, &mut receives));
        };
        if let (Some(bytes), Some(to)) = (from.host(), to.host_mut()) {
            messages(bytes, to);
            return Ok(());
        }
        if !self.device().nature().keeps {
            return Ok(());
        }
        let (mut bytes, mut all) = (vec![0; from.bytes()], vec![0; to.bytes()]);
        from.read(&mut bytes)?;
        messages(&bytes, &mut all);
        Ok(to.write(&all)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_the_parts() {
        let mut bytes: Vec<u8> = (0..10).collect();
        let parts = [1..3, 3..4, 6..9].map(|bytes| Part { peer: 0, tag: 0, bytes });
        let found = slices(&mut bytes, &parts.iter().collect::<Vec<_>>());
        assert_eq!(found, [&mut [1, 2][..], &mut [3], &mut [6, 7, 8]]);
    }
}
