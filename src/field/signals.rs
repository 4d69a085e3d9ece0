//! Numbers that ranks raise in the memory of their neighbours' GPUs, so that no host waits for a neighbour's data.
//!
//! Every exchange has a number. A rank packs into its neighbours' memory, and then raises its flags there to that number, one
//! for each chunk of a face; what reads the data waits for its own flags first, on the GPU. Each exchange raises flags in
//! all directions where the memory is open, and is read in all. So a rank whose reading of exchange n is done knows that its neighbours have
//! begun to pack it, and so read all data of exchange n - 1: with two buffers that take turns, nobody writes what is still
//! read.

use super::domain::exported;
use super::{Domain, FieldError, Halo};
use crate::comm::agree;
use crate::device::kernels::{HaloSignal, HaloWait, int};
use crate::device::{Buffer, Remote, Use};

/// This rank's flags, and those of its neighbours that it raises.
pub(super) struct Signals {
    own: Buffer,
    /// The flags of the ranks around this one, by rank.
    opened: Vec<(usize, Remote)>,
    /// The rank whose flag of this number is raised: `[2 mu + (0 from forward, 1 from backward)]`.
    raised: [Option<usize>; 8],
    /// Whether the flag of this number is raised here.
    awaited: [bool; 8],
    number: i32,
    /// Flags of a face.
    stride: usize,
}

impl Signals {
    /// Opens the neighbours' flags, `chunks` of each face. All ranks call it together.
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory, or memory runs out.
    pub(super) fn new(domain: &Domain, chunks: usize) -> Result<Self, FieldError> {
        let memory = domain.device().buffer_for(Use::Exported, 8 * chunks * size_of::<i32>());
        let (own, handles) = exported(domain.device(), domain.comm(), memory)?;
        let (mut raised, mut awaited) = ([None; 8], [false; 8]);
        for (mu, forward) in domain.cut_directions().flat_map(|mu| [(mu, true), (mu, false)]) {
            let place = 2 * mu + usize::from(!forward);
            awaited[place] = domain.halo(mu, forward) == Halo::Peer;
            // What comes from the forward neighbour there goes to the rank before.
            let goes_to = domain.partition().neighbour(mu, !forward);
            raised[place] = (domain.halo(mu, !forward) == Halo::Peer).then_some(goes_to);
        }
        let mut ranks: Vec<usize> = raised.into_iter().flatten().collect();
        ranks.sort_unstable();
        ranks.dedup();
        let open = |rank: usize| Ok((rank, domain.device().open(&handles[rank])?));
        let opened: Result<_, FieldError> = ranks.into_iter().map(open).collect();
        Ok(Self { own, opened: agree(domain.comm(), opened)?, raised, awaited, number: 0, stride: chunks })
    }

    /// The next number for the neighbours' flags, for a kernel that raises them.
    pub(super) fn next(&mut self) -> HaloSignal<'_> {
        self.number = self.number.wrapping_add(1);
        self.signal()
    }

    /// The same for a kernel that also waits until neighbours have raised that number here, in `chunks` of each face.
    pub(super) fn next_and_wait(&mut self, chunks: [usize; 8]) -> (HaloSignal<'_>, HaloWait<'_>) {
        self.next();
        (self.signal(), self.wait(chunks))
    }

    fn signal(&self) -> HaloSignal<'_> {
        let flags = self.raised.map(|rank| {
            let rank = rank?;
            self.opened.iter().find(|(opened, _)| *opened == rank).map(|(_, flags)| flags.shared_output())
        });
        HaloSignal { flags, number: self.number, stride: int(self.stride) }
    }

    /// Raises the neighbours' flags to the next number, when all work so far is done.
    pub(super) fn raise(&mut self, domain: &Domain) -> Result<(), FieldError> {
        let flags = 8 * self.stride;
        domain.launch(&self.next(), flags)
    }

    /// What a kernel waits for before it reads the data of the last exchange, if `chunks` of each face were raised.
    pub(super) fn wait(&self, chunks: [usize; 8]) -> HaloWait<'_> {
        let chunks = std::array::from_fn(|k| if self.awaited[k] { int(chunks[k]) } else { 0 });
        HaloWait { flags: Some(self.own.input()), number: self.number, stride: int(self.stride), chunks }
    }

    /// Lets later work wait.
    pub(super) fn await_all(&self, domain: &Domain, chunks: [usize; 8]) -> Result<(), FieldError> {
        domain.launch(&self.wait(chunks), 8 * self.stride)
    }
}

/// Nothing to raise.
pub(super) fn no_signal() -> HaloSignal<'static> {
    HaloSignal { flags: [const { None }; 8], number: 0, stride: 1 }
}

/// Nothing to wait for.
pub(super) fn no_wait() -> HaloWait<'static> {
    HaloWait { flags: None, number: 0, stride: 1, chunks: [0; 8] }
}
