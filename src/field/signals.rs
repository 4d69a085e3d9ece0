//! Numbers that ranks raise in the memory of their neighbours' GPUs, so that no host waits for a neighbour's data.
//!
//! Every exchange has a number. A rank packs into its neighbours' memory, and then raises its flags there to that number;
//! what reads the data waits for its own flags first, on the GPU. All flags of all cut directions are raised each time, so
//! a rank that sees the flags of exchange n knows that its neighbours have packed it, and so read all data of exchange
//! n - 1: with two buffers that take turns, nobody writes what is still read.

use super::{Domain, FieldError};
use crate::comm::agree;
use crate::device::kernels::{HaloSignal, HaloWait, Ints, Out};
use crate::device::{Buffer, Remote};

/// This rank's flags, and those of its neighbours that it raises.
pub(super) struct Signals {
    own: Buffer,
    /// The flags of the ranks around this one, by rank.
    opened: Vec<(usize, Remote)>,
    /// The rank whose flag of this number is raised: `[2 mu + (0 from forward, 1 from backward)]`.
    raised: [Option<usize>; 8],
    number: i32,
    /// Counts blocks that pack.
    packed: Buffer,
}

impl Signals {
    /// Opens the neighbours' flags. All ranks call it together.
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory, or memory runs out.
    pub(super) fn new(domain: &Domain) -> Result<Self, FieldError> {
        let exported = || {
            let own = domain.device().buffer_for_export(size_of::<[i32; 8]>())?;
            let handle = own.export()?.unwrap_or_default();
            // It must be zero before a neighbour raises a flag.
            domain.device().synchronize()?;
            Ok::<_, FieldError>((own, handle))
        };
        let (own, handle) = agree(domain.comm(), exported())?;
        let handles = domain.comm().gather(&handle);
        let mut raised = [None; 8];
        for mu in domain.cut_directions() {
            // What comes from the forward neighbour there goes to the rank before.
            raised[2 * mu] = Some(domain.partition().neighbour(mu, false));
            raised[2 * mu + 1] = Some(domain.partition().neighbour(mu, true));
        }
        let mut ranks: Vec<usize> = raised.into_iter().flatten().collect();
        ranks.sort_unstable();
        ranks.dedup();
        let open = |rank: usize| Ok((rank, domain.device().open(&handles[rank])?));
        let opened: Result<_, FieldError> = ranks.into_iter().map(open).collect();
        let (opened, packed) = agree(
            domain.comm(),
            opened.and_then(|opened| Ok((opened, domain.device().buffer(size_of::<i32>())?))),
        )?;
        Ok(Self { own, opened, raised, number: 0, packed })
    }

    /// The next number for the neighbours' flags, for a kernel that raises them, and what counts its blocks.
    pub(super) fn next(&mut self) -> (HaloSignal<'_>, Out<'_, Ints>) {
        self.number = self.number.wrapping_add(1);
        (self.signal(), self.packed.shared_output())
    }

    fn signal(&self) -> HaloSignal<'_> {
        let flags = self.raised.map(|rank| {
            let rank = rank?;
            self.opened.iter().find(|(opened, _)| *opened == rank).map(|(_, flags)| flags.shared_output())
        });
        HaloSignal { flags, number: self.number }
    }

    /// Raises the neighbours' flags to the next number, when all work so far is done.
    pub(super) fn raise(&mut self, domain: &Domain) -> Result<(), FieldError> {
        domain.launch(&self.next().0, 8)
    }

    /// What a kernel waits for before it reads the data of the last exchange.
    pub(super) fn wait(&self) -> HaloWait<'_> {
        let mask = (0..8).filter(|&k| self.raised[k].is_some()).map(|k| 1 << k).sum();
        HaloWait { flags: Some(self.own.input()), mask, number: self.number }
    }

    /// Lets later work wait.
    pub(super) fn await_all(&self, domain: &Domain) -> Result<(), FieldError> {
        domain.launch(&self.wait(), 8)
    }
}

/// Nothing to raise.
pub(super) fn no_signal() -> HaloSignal<'static> {
    HaloSignal { flags: [const { None }; 8], number: 0 }
}

/// Nothing to wait for.
pub(super) fn no_wait() -> HaloWait<'static> {
    HaloWait { flags: None, mask: 0, number: 0 }
}
