//! The division of a lattice into aggregates, and the places of this rank's: even ones first, then odd ones. Around them are
//! ghosts, places of other ranks.

use crate::device::kernels::{BlockGrid, int};
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

    pub(super) fn counts(self, extents: Extents) -> Extents {
        std::array::from_fn(|mu| extents[mu] / self.block[mu])
    }

    pub(super) fn grid(self) -> BlockGrid {
        let ints = |x: Extents| x.map(int);
        BlockGrid { block: ints(self.block), blocks: ints(self.counts(self.partition.local())) }
    }

    /// This rank's aggregates on the lattice, in their order in memory.
    pub(super) fn own(self) -> impl Iterator<Item = Extents> {
        let (own, offset) = (self.counts(self.partition.local()), self.counts(self.partition.offset()));
        (0..self.here()).map(move |n| {
            let here = coordinates(own, n);
            std::array::from_fn(|mu| offset[mu] + here[mu])
        })
    }
}

/// Parity on the lattice of aggregates.
fn parity(at: Extents) -> usize {
    at.iter().sum::<usize>() % 2
}

/// For each of some aggregates its number among those of its parity, and how many there are of each.
fn numbered(all: impl Iterator<Item = Extents>) -> (Vec<usize>, [usize; 2]) {
    let mut counts = [0; 2];
    let next = |at| {
        let count: &mut usize = &mut counts[parity(at)];
        *count += 1;
        *count - 1
    };
    (all.map(next).collect(), counts)
}

/// What lies beyond one side of the box.
pub(super) struct Face {
    pub mu: usize,
    pub forward: bool,
    /// The first of its ghosts; for how many of a parity there is room, on all ranks alike; how many there are.
    pub first: usize,
    pub room: usize,
    pub ghosts: [usize; 2],
    /// The rank whose places they are.
    pub from: usize,
    /// The rank on the other side, and how many of this rank's places are ghosts there.
    pub to: usize,
    pub given: [usize; 2],
}

/// The places of this rank's aggregates, and the ghosts around them.
pub(super) struct Places {
    aggregates: Aggregates,
    /// Of each aggregate in the order of memory, its number among those of its parity.
    numbers: Vec<usize>,
    /// How many there are of each parity; there is room for as many of either.
    pub counts: [usize; 2],
    pub half: usize,
    pub faces: Vec<Face>,
}

impl Places {
    pub(super) fn new(aggregates: Aggregates) -> Self {
        let (numbers, counts) = numbered(aggregates.own());
        let half = counts[0].max(counts[1]);
        let mut made = Self { aggregates, numbers, counts, half, faces: Vec::new() };
        let partition = aggregates.partition;
        for mu in (0..4).filter(|&mu| partition.is_cut(mu)) {
            for forward in [true, false] {
                let face = Face {
                    mu,
                    forward,
                    first: made.ghosts(),
                    room: made.layer(mu, forward, 1).count().div_ceil(2),
                    ghosts: numbered(made.layer(mu, forward, 1)).1,
                    from: partition.neighbour(mu, forward),
                    to: partition.neighbour(mu, !forward),
                    given: numbered(made.layer(mu, !forward, 0)).1,
                };
                made.faces.push(face);
            }
        }
        made
    }

    /// Ghosts of a parity for which there is room.
    pub(super) fn ghosts(&self) -> usize {
        self.faces.iter().map(|face| face.room).sum()
    }

    /// The place of an aggregate of this rank.
    pub(super) fn place(&self, at: Extents) -> usize {
        parity(at) * self.half + self.number(at)
    }

    /// The places of this rank's aggregates, in the order of memory.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.aggregates.own().map(|at| self.place(at))
    }

    /// The places at one side of the box, with their numbers among those of their parity there.
    pub(super) fn at_side(&self, mu: usize, forward: bool) -> Vec<(usize, usize)> {
        let layer = || self.layer(mu, forward, 0);
        layer().zip(numbered(layer()).0).map(|(at, number)| (self.place(at), number)).collect()
    }

    /// For every place itself and its neighbours, forward then backward, as numbers among places of their parity; ghosts follow
    /// these.
    pub(super) fn neighbours(&self) -> Vec<i32> {
        let all = self.aggregates.counts(self.aggregates.partition.global);
        let ghosts: Vec<Vec<usize>> =
            self.faces.iter().map(|face| numbered(self.layer(face.mu, face.forward, 1)).0).collect();
        let next = |at: Extents, mu: usize, forward: bool| {
            let beyond = self.faces.iter().zip(&ghosts).find(|(face, _)| {
                (face.mu, face.forward) == (mu, forward) && self.is_at_side(at, mu, forward)
            });
            if let Some((face, numbers)) = beyond {
                return self.half + face.first + numbers[self.in_layer(at, mu)];
            }
            let mut there = at;
            there[mu] = (at[mu] + if forward { 1 } else { all[mu] - 1 }) % all[mu];
            self.number(there)
        };
        let mut table = vec![0; 2 * self.half * 9];
        for at in self.aggregates.own() {
            let around = [true, false].into_iter().flat_map(|forward| (0..4).map(move |mu| (mu, forward)));
            let row = [self.number(at)].into_iter().chain(around.map(|(mu, forward)| next(at, mu, forward)));
            table[self.place(at) * 9..][..9].iter_mut().zip(row).for_each(|(to, number)| *to = int(number));
        }
        table
    }

    /// For every place the ghost that it is to other ranks, by the face that it fills there: 2 mu from forward, 2 mu + 1 from
    /// backward; -1 where it is none.
    pub(super) fn leaves(&self) -> Vec<i32> {
        let mut table = vec![-1; 2 * self.half * 8];
        for face in &self.faces {
            for (place, number) in self.at_side(face.mu, !face.forward) {
                table[place * 8 + 2 * face.mu + usize::from(!face.forward)] = int(face.first + number);
            }
        }
        table
    }

    /// For each ghost the rank to which this one gives it.
    pub(super) fn ranks(&self) -> Vec<i32> {
        self.faces.iter().flat_map(|face| std::iter::repeat_n(int(face.to), face.room)).collect()
    }

    /// For each place, which of its links leave an aggregate of `block` places, a bit each: forward in x, y, z, t, then backward.
    /// Where an aggregate spans the lattice, none does.
    pub(super) fn leaving_of(&self, block: Extents) -> Vec<i32> {
        let all = self.aggregates.counts(self.aggregates.partition.global);
        let mut table = vec![0; 2 * self.half];
        for at in self.aggregates.own() {
            let several = (0..4).filter(|&mu| all[mu] > block[mu]);
            let forward = several.clone().filter(|&mu| at[mu] % block[mu] + 1 == block[mu]);
            let backward = several.filter(|&mu| at[mu].is_multiple_of(block[mu])).map(|mu| 4 + mu);
            table[self.place(at)] = forward.chain(backward).map(|bit| 1 << bit).sum();
        }
        table
    }

    /// This rank's box in aggregates: its first one, and its extents.
    fn own_box(&self) -> [Extents; 2] {
        let Aggregates { partition, .. } = self.aggregates;
        [partition.offset(), partition.local()].map(|extents| self.aggregates.counts(extents))
    }

    /// The number of an aggregate of this rank among those of its parity.
    fn number(&self, at: Extents) -> usize {
        let [first, extents] = self.own_box();
        self.numbers[site(extents, std::array::from_fn(|mu| at[mu] - first[mu]))]
    }

    fn is_at_side(&self, at: Extents, mu: usize, forward: bool) -> bool {
        let [first, extents] = self.own_box();
        at[mu] == if forward { first[mu] + extents[mu] - 1 } else { first[mu] }
    }

    /// The layer at one side of the box, or so many steps `beyond` it.
    fn layer(&self, mu: usize, forward: bool, beyond: usize) -> impl Iterator<Item = Extents> {
        let ([first, extents], all) =
            (self.own_box(), self.aggregates.counts(self.aggregates.partition.global));
        let last = first[mu] + extents[mu] - 1;
        let there = (if forward { last + beyond } else { first[mu] + all[mu] - beyond }) % all[mu];
        let mut layer = extents;
        layer[mu] = 1;
        (0..volume(layer)).map(move |n| {
            let within = coordinates(layer, n);
            std::array::from_fn(|nu| if nu == mu { there } else { first[nu] + within[nu] })
        })
    }

    /// The number of an aggregate in its layer across mu.
    fn in_layer(&self, at: Extents, mu: usize) -> usize {
        let [first, mut layer] = self.own_box();
        layer[mu] = 1;
        site(layer, std::array::from_fn(|nu| if nu == mu { 0 } else { at[nu] - first[nu] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rank gives is what its neighbour finds as its ghost: every pair of neighbours on every rank, for boxes of even and
    /// odd extents.
    #[test]
    fn ghosts_are_the_places_next_to_them() {
        for (global, grid) in
            [([8, 4, 4, 4], [4, 1, 2, 1]), ([4, 4, 4, 12], [2, 2, 2, 2]), ([4, 4, 4, 8], [1, 1, 1, 4])]
        {
            let count = volume(grid);
            let of = |rank| {
                let partition = Partition::new(global, grid, count, rank).unwrap();
                Places::new(Aggregates { block: [2, 2, 2, 2], partition })
            };
            let ranks: Vec<Places> = (0..count).map(of).collect();
            // (place, rank) of each ghost, by the tables of those who give.
            for (rank, own) in ranks.iter().enumerate() {
                let (neighbours, all) = (own.neighbours(), own.aggregates.counts(global));
                for at in own.aggregates.own() {
                    for d in 0..8 {
                        let (mu, forward) = (d % 4, d < 4);
                        let found = usize::try_from(neighbours[own.place(at) * 9 + 1 + d]).unwrap();
                        let mut there = at;
                        there[mu] = (at[mu] + if forward { 1 } else { all[mu] - 1 }) % all[mu];
                        if found < own.half {
                            assert_eq!(found, own.number(there));
                            continue;
                        }
                        let face =
                            own.faces.iter().find(|face| (face.mu, face.forward) == (mu, forward)).unwrap();
                        let giver = &ranks[face.from];
                        let given = giver.leaves()[giver.place(there) * 8 + 2 * mu + usize::from(!forward)];
                        assert_eq!(given, int(found - own.half), "{at:?} of rank {rank}, direction {d}");
                        assert_eq!(giver.ranks()[found - own.half], int(rank));
                        let back =
                            giver.faces.iter().find(|face| (face.mu, face.forward) == (mu, forward)).unwrap();
                        assert_eq!((back.to, back.given), (rank, face.ghosts));
                    }
                }
            }
        }
    }
}
