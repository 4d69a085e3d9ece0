//! The division of a lattice into aggregates, and the places of these: those of the whole lattice, even ones first.

use crate::device::kernels::BlockGrid;
use crate::lattice::{Extents, Partition, coordinates, site, volume};

/// The division of the lattice into aggregates.
#[derive(Clone, Copy)]
pub(super) struct Aggregates {
    pub block: Extents,
    pub partition: Partition,
}

impl Aggregates {
    /// The number of this rank's.
    pub(super) fn here(self) -> usize {
        volume(self.counts(self.partition.local()))
    }

    /// The number of all.
    pub(super) fn all(self) -> usize {
        volume(self.counts(self.partition.global))
    }

    pub(super) fn counts(self, extents: Extents) -> Extents {
        std::array::from_fn(|mu| extents[mu] / self.block[mu])
    }

    pub(super) fn grid(self) -> BlockGrid {
        let ints = |x: Extents| x.map(|n| n as i32);
        BlockGrid { block: ints(self.block), blocks: ints(self.counts(self.partition.local())) }
    }

    /// The place of an aggregate of the lattice: even ones first.
    pub(super) fn place(self, at: Extents) -> usize {
        let all = self.counts(self.partition.global);
        // In each pair along the first direction with several aggregates, one is even and one is odd.
        let along = (0..4).find(|&mu| all[mu] > 1).expect("several aggregates");
        let mut halved = (all, at);
        halved.0[along] /= 2;
        halved.1[along] /= 2;
        at.iter().sum::<usize>() % 2 * self.all() / 2 + site(halved.0, halved.1)
    }

    /// This rank's aggregates on the lattice.
    pub(super) fn own(self) -> impl Iterator<Item = Extents> {
        let (own, offset) = (self.counts(self.partition.local()), self.counts(self.partition.offset()));
        (0..self.here()).map(move |n| {
            let here = coordinates(own, n);
            std::array::from_fn(|mu| offset[mu] + here[mu])
        })
    }

    /// The places of this rank's aggregates.
    pub(super) fn places(self) -> Vec<i32> {
        self.own().map(|at| self.place(at) as i32).collect()
    }

    /// For each direction, the places of this rank's aggregates whose neighbour forward is another rank's.
    pub(super) fn leaving(self) -> [Vec<i32>; 4] {
        let (own, offset) = (self.counts(self.partition.local()), self.counts(self.partition.offset()));
        std::array::from_fn(|mu| {
            let cut = self.partition.grid[mu] > 1;
            let last = |at: &Extents| cut && at[mu] + 1 == offset[mu] + own[mu];
            self.own().filter(last).map(|at| self.place(at) as i32).collect()
        })
    }

    /// For every place itself and its neighbours, forward then backward, as numbers among places of their parity.
    pub(super) fn neighbours(self) -> Vec<i32> {
        let (all, half) = (self.counts(self.partition.global), self.all() / 2);
        let mut table = vec![0; self.all() * 9];
        for n in 0..self.all() {
            let at = coordinates(all, n);
            let moved = |mu: usize, by: usize| {
                let mut there = at;
                there[mu] = (there[mu] + by) % all[mu];
                there
            };
            let forward = (0..4).map(|mu| moved(mu, 1));
            let backward = (0..4).map(|mu| moved(mu, all[mu] - 1));
            let row = std::iter::once(at).chain(forward).chain(backward);
            let to = &mut table[self.place(at) * 9..][..9];
            to.iter_mut().zip(row).for_each(|(to, there)| *to = (self.place(there) % half) as i32);
        }
        table
    }

    /// For each place, which of its links leave an aggregate of `block` places, a bit each: forward in x, y, z, t, then backward.
    /// Where an aggregate spans the lattice, none does.
    pub(super) fn leaving_of(self, block: Extents) -> Vec<i32> {
        let all = self.counts(self.partition.global);
        let mut table = vec![0; self.all()];
        for n in 0..self.all() {
            let at = coordinates(all, n);
            let several = (0..4).filter(|&mu| all[mu] > block[mu]);
            let forward = several.clone().filter(|&mu| at[mu] % block[mu] + 1 == block[mu]);
            let backward = several.filter(|&mu| at[mu].is_multiple_of(block[mu])).map(|mu| 4 + mu);
            table[self.place(at)] = forward.chain(backward).map(|bit| 1 << bit).sum();
        }
        table
    }
}
