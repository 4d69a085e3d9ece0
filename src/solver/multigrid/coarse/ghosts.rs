//! What ranks give each other of coarse fields, for hops: places at the sides of their boxes are ghosts of their neighbours. Where
//! GPUs reach each other's memory they are posted there, by the kernel that makes them; elsewhere it packs them, and they travel in
//! messages.

use super::{From, Shape};
use crate::device::kernels::{
    COARSE_LINKS, CoarseGhosts, CoarseGift, CoarsePost, Half, MOST_FIELDS, Out, POSTS, RankRound, Reals,
    S_STEPS, Together, int,
};
use crate::device::{Buffer, Meeting};
use crate::field::{Domain, FieldError, Part};
use crate::solver::multigrid::aggregates::{Face, Places};

/// Fields in a product at once: those of a block, and the residual.
pub(super) const PRODUCTS: usize = S_STEPS + 1;

/// The ghosts of coarse fields.
pub(super) struct Ghosts {
    /// Of a parity.
    all: usize,
    /// Which ghosts places are to other ranks, and to which.
    leaves: Buffer,
    ranks: Buffer,
    /// Where ranks post, and where they add products. None: messages.
    together: Option<[Meeting; 2]>,
}

/// What travels in messages: what was packed, and the ghosts of each parity.
pub(super) struct Wires {
    packed: Buffer,
    pub incoming: [Buffer; 2],
}

impl Ghosts {
    /// None if no direction is cut. Collective.
    pub(super) fn new(
        domain: &Domain,
        places: &Places,
        systems: Together,
        rows: usize,
    ) -> Result<Option<Self>, FieldError> {
        let (all, count) = (places.ghosts(), systems as usize);
        if all == 0 {
            return Ok(None);
        }
        let products = count * 2 * 2 * MOST_FIELDS * PRODUCTS * domain.comm().size();
        let together = match (domain.meet(POSTS, count * all * 2 * rows)?, domain.meet(2, products)?) {
            (Some(posts), Some(products)) => Some([posts, products]),
            _ => None,
        };
        let device = domain.device();
        let (leaves, ranks) = (device.buffer_of(&places.leaves())?, device.buffer_of(&places.ranks())?);
        Ok(Some(Self { all, leaves, ranks, together }))
    }

    /// What a kernel gives of places of a parity, from this one on: posted, unless it is to be packed.
    fn gift<'a>(&'a self, first: usize, packed: Option<Out<'a, Reals>>) -> CoarseGift<'a> {
        let is_posted = packed.is_none();
        CoarseGift {
            leaves: Some(self.leaves.input_at(first * 8 * 4)),
            ranks: Some(self.ranks.input()),
            packed,
            to: match &self.together {
                Some([posts, _]) if is_posted => posts.next(),
                _ => RankRound::ALONE,
            },
        }
    }
}

/// What a hop to places of a parity, from number `first` on, reads of other ranks, and what it gives them.
pub(super) fn of_hop<'a>(
    ghosts: Option<&'a Ghosts>,
    wires: Option<&'a mut Wires>,
    (parity, first): (usize, usize),
    given: bool,
) -> (CoarseGhosts<'a>, CoarseGift<'a>) {
    let nothing = CoarseGift { leaves: None, ranks: None, packed: None, to: RankRound::ALONE };
    let Some(ghosts) = ghosts else {
        return (CoarseGhosts { ghosts: None, from: RankRound::ALONE, all: 0 }, nothing);
    };
    let (packed, incoming) = match wires {
        Some(Wires { packed, incoming }) => (Some(packed), Some(incoming[1 - parity].input())),
        None => (None, None),
    };
    let from = match &ghosts.together {
        Some([posts, _]) if incoming.is_none() => posts.last(),
        _ => RankRound::ALONE,
    };
    let read = CoarseGhosts { ghosts: incoming, from, all: int(ghosts.all) };
    (read, if given { ghosts.gift(first, packed.map(Buffer::output)) } else { nothing })
}

impl Shape {
    /// Whether ranks give each other ghosts in messages.
    pub(super) fn sends_messages(&self) -> bool {
        self.ghosts.as_ref().is_some_and(|ghosts| ghosts.together.is_none())
    }

    /// Of the round in which ranks that reach each other's memory add products.
    pub(super) fn products(&self) -> RankRound<'_> {
        let together = self.ghosts.as_ref().and_then(|ghosts| ghosts.together.as_ref());
        together.map_or(RankRound::ALONE, |[_, products]| products.next())
    }

    /// Memory for messages of so many systems.
    pub(super) fn wires(&self, systems: Together) -> Result<Option<Wires>, FieldError> {
        let Some(Ghosts { all, .. }) = self.ghosts else { return Ok(None) };
        let buffer = || self.domain.device().buffer(all * systems as usize * self.field());
        Ok(Some(Wires { packed: buffer()?, incoming: [buffer()?, buffer()?] }))
    }

    /// Gives other ranks what places of a parity have of fields, for the next hop.
    pub(super) fn give(
        &self,
        (parity, systems): (usize, Together),
        input: From,
        wires: &mut Option<Wires>,
    ) -> Result<(), FieldError> {
        let Some(ghosts) = &self.ghosts else { return Ok(()) };
        let places = self.places.counts[parity];
        let packed = wires.as_mut().map(|wires| wires.packed.output());
        let kernel = CoarsePost {
            input: input.0.input_at(input.1),
            gift: ghosts.gift(parity * self.half(), packed),
            rows: int(self.rows),
            places: int(places),
            half: int(self.half()),
            now: int(systems as usize),
            systems: int(self.systems as usize),
            ghosts: int(ghosts.all),
        };
        let threads = systems as usize * places * 2 * self.rows / self.lanes;
        self.domain.launch_as(Half, &kernel, threads)?;
        self.travel((parity, systems), wires)
    }

    /// Exchanges what was packed of places of a parity.
    pub(super) fn travel(
        &self,
        (parity, systems): (usize, Together),
        wires: &mut Option<Wires>,
    ) -> Result<(), FieldError> {
        let Some(Wires { packed, incoming }) = wires else { return Ok(()) };
        let bytes = systems as usize * self.field();
        let parts = |peer: fn(&Face) -> (usize, [usize; 2])| -> Vec<Part> {
            let part = |(face, tag): (&Face, i32)| {
                let (peer, counts) = peer(face);
                Part { peer, tag, bytes: face.first * bytes..(face.first + counts[parity]) * bytes }
            };
            self.places.faces.iter().zip(0..).map(part).collect()
        };
        let (sent, received) = (parts(|face| (face.to, face.given)), parts(|face| (face.from, face.ghosts)));
        self.domain.exchange_parts((packed, &sent[..]), (&mut incoming[parity], &received[..]))
    }

    /// The forward links of ghosts behind, `[parity][ghost of the face]`.
    pub(super) fn links_behind(&self, links: &Buffer, face: &Face) -> Result<Buffer, FieldError> {
        let (device, bytes) = (self.domain.device(), self.matrix());
        let mut packed = device.buffer(2 * face.room * bytes)?;
        let mut incoming = device.buffer(2 * face.room * bytes)?;
        for (place, number) in self.places.at_side(face.mu, true) {
            let to = place / self.half() * face.room + number;
            packed.copy_part(to * bytes, links, (place * COARSE_LINKS + 1 + face.mu) * bytes, bytes)?;
        }
        let part = |peer| Part { peer, tag: 0, bytes: 0..2 * face.room * bytes };
        let (sent, received) = ([part(face.to)], [part(face.from)]);
        self.domain.exchange_parts((&packed, &sent[..]), (&mut incoming, &received[..]))?;
        Ok(incoming)
    }
}
