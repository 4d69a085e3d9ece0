//! The rank grid: every rank owns one box of equal, even extents.
//!
//! Rank r sits at the coordinates of natural order in the grid (x fastest).

use super::boundary::{Lattice, TimeBoundary};
use super::extents::{Extents, coordinates, shape, site, volume};
use super::lanes::LaneGrid;

/// One rank's share of the lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partition {
    /// Extents of the whole lattice.
    pub global: Extents,
    /// Number of ranks in each direction.
    pub grid: Extents,
    /// This rank's place in the grid.
    pub place: Extents,
    /// How time ends.
    pub time: TimeBoundary,
}

/// Sites of a box, links of a lane's box, and sites of a launch, at most: kernels count them with 32 bits, and a little
/// beyond the end.
pub const MOST_SITES: usize = (1 << 31) - (1 << 20);

/// Why a lattice cannot be cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// The grid holds another number of ranks than there are.
    #[error("the grid {} holds {} ranks, but {ranks} run", shape(*.grid), volume(*.grid))]
    RankCount {
        /// The grid asked for.
        grid: Extents,
        /// The ranks there are.
        ranks: usize,
    },
    /// A local extent is odd, or no integer.
    #[error("extent {extent} in direction {} cannot be cut into {parts} parts of even extent", ["x", "y", "z", "t"][*.direction])]
    Uneven {
        /// 0 to 3 for x to t.
        direction: usize,
        /// The lattice extent.
        extent: usize,
        /// The parts asked for.
        parts: usize,
    },
    /// A box that is larger than kernels count.
    #[error(
        "a rank's box of {} has more sites than a rank takes ({MOST_SITES}); take more ranks",
        shape(*.local)
    )]
    Sites {
        /// Extents of the box.
        local: Extents,
    },
    /// A box with more links in a lane than kernels count.
    #[error(
        "a rank's box of {} has more links in a lane than a kernel takes ({MOST_SITES}); take more ranks",
        shape(*.local)
    )]
    Links {
        /// Extents of the box.
        local: Extents,
    },
    /// No grid at all fits.
    #[error("a lattice of {} cannot be cut evenly over {ranks} ranks", shape(*.global))]
    NoGrid {
        /// Extents of the lattice.
        global: Extents,
        /// The ranks there are.
        ranks: usize,
    },
}

impl Partition {
    /// The share of `rank` when `global` is cut by `grid`.
    ///
    /// # Errors
    /// A local extent that is odd or broken, or a grid of another size than `ranks`.
    pub fn new(global: Extents, grid: Extents, ranks: usize, rank: usize) -> Result<Self, PartitionError> {
        if product(grid) != Some(ranks) {
            return Err(PartitionError::RankCount { grid, ranks });
        }
        for direction in 0..4 {
            let (extent, parts) = (global[direction], grid[direction]);
            if parts == 0 || extent == 0 || extent % 2 != 0 || !(extent / 2).is_multiple_of(parts) {
                return Err(PartitionError::Uneven { direction, extent, parts });
            }
        }
        Ok(Self { global, grid, place: coordinates(grid, rank), time: TimeBoundary::Periodic })
    }

    /// The same with another boundary in time.
    #[must_use]
    pub fn with_time(self, time: TimeBoundary) -> Self {
        Self { time, ..self }
    }

    /// The whole lattice.
    pub fn lattice(&self) -> Lattice {
        Lattice { extents: self.global, time: self.time }
    }

    /// Slices on which the two walls count for half: the extent of the lattice in time.
    pub fn time_extent(&self) -> usize {
        self.time.length(self.global[3])
    }

    /// Slices that have quarks.
    pub fn quark_slices(&self) -> usize {
        (0..self.global[3]).filter(|t| !self.time.is_wall(*t, self.global[3])).count()
    }

    /// Whether links in direction `mu` that start on slice `t` are part of the lattice.
    pub fn has_link(&self, mu: usize, t: usize) -> bool {
        mu != 3 || t < self.time.length(self.global[3])
    }

    /// The whole lattice on one rank.
    ///
    /// # Errors
    /// An odd extent.
    pub fn whole(global: Extents) -> Result<Self, PartitionError> {
        Self::new(global, [1; 4], 1, 0)
    }

    /// Refuses a box with more sites than kernels count, `border` layers on both sides of each cut direction included.
    ///
    /// # Errors
    /// It has more.
    pub fn check_sites(&self, border: usize) -> Result<(), PartitionError> {
        let local = self.local();
        let layers = |mu: usize| if self.is_cut(mu) { border.saturating_mul(2) } else { 0 };
        let sites = product(std::array::from_fn(|mu| local[mu].saturating_add(layers(mu))));
        if sites.is_some_and(|sites| sites <= MOST_SITES) {
            Ok(())
        } else {
            Err(PartitionError::Sites { local })
        }
    }

    /// Refuses a box with more links in one of the `lanes` than kernels count: some work link by link.
    ///
    /// # Errors
    /// It has more.
    pub fn check_links(&self, lanes: LaneGrid) -> Result<(), PartitionError> {
        let local = self.local();
        let links = product(lanes.outer(local)).and_then(|sites| sites.checked_mul(4));
        if links.is_some_and(|links| links <= MOST_SITES) {
            Ok(())
        } else {
            Err(PartitionError::Links { local })
        }
    }

    /// Whether it is one that [`Partition::new`] makes.
    pub(crate) fn is_sound(&self) -> bool {
        let cut_evenly = Self::new(self.global, self.grid, product(self.grid).unwrap_or(0), 0).is_ok();
        cut_evenly && (0..4).all(|mu| self.place[mu] < self.grid[mu])
    }

    /// Extents of this rank's box.
    pub fn local(&self) -> Extents {
        std::array::from_fn(|mu| self.global[mu] / self.grid[mu])
    }

    /// Global coordinates of this rank's first site.
    pub fn offset(&self) -> Extents {
        std::array::from_fn(|mu| self.place[mu] * self.local()[mu])
    }

    /// The rank one step forward or backward in direction `mu` (periodic).
    pub fn neighbour(&self, mu: usize, forward: bool) -> usize {
        let mut place = self.place;
        place[mu] = (place[mu] + if forward { 1 } else { self.grid[mu] - 1 }) % self.grid[mu];
        site(self.grid, place)
    }

    /// Whether direction `mu` is cut.
    pub fn is_cut(&self, mu: usize) -> bool {
        self.grid[mu] > 1
    }
}

/// The volume, if it fits.
fn product(extents: Extents) -> Option<usize> {
    extents.into_iter().try_fold(1, usize::checked_mul)
}

/// Long links reach three sites, and local extents are even.
const ROOMY: usize = 4;

/// The grid of `ranks` ranks with the least surface, of those that leave four sites or more where they cut if there are any.
///
/// # Errors
/// No grid has even local extents.
pub fn choose_grid(global: Extents, ranks: usize) -> Result<Extents, PartitionError> {
    let first = all_grids(global, ranks).into_iter().next();
    first.map(|(_, grid)| grid).ok_or(PartitionError::NoGrid { global, ranks })
}

/// All grids of `ranks` ranks with even local extents, each with the sites of a rank's faces in the directions that are cut:
/// first those that leave four sites or more where they cut, then the least faces; among equals, first those that cut t, then z,
/// then y.
fn all_grids(global: Extents, ranks: usize) -> Vec<(usize, Extents)> {
    let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    let mut grids = Vec::new();
    for x in divisors(ranks) {
        for y in divisors(ranks / x) {
            for z in divisors(ranks / x / y) {
                let grid = [x, y, z, ranks / x / y / z];
                let Ok(partition) = Partition::new(global, grid, ranks, 0) else { continue };
                let local = partition.local();
                let surface = (0..4).filter(|&mu| grid[mu] > 1).map(|mu| volume(local) / local[mu]).sum();
                let is_thin = (0..4).any(|mu| grid[mu] > 1 && local[mu] < ROOMY);
                grids.push((is_thin, surface, grid));
            }
        }
    }
    // They come with x ascending, and equals keep their order.
    grids.sort_by_key(|(is_thin, surface, _)| (*is_thin, *surface));
    grids.into_iter().map(|(_, surface, grid)| (surface, grid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_surface_prefers_late_directions() {
        assert_eq!(choose_grid([8; 4], 2), Ok([1, 1, 1, 2]));
        assert_eq!(choose_grid([8, 8, 8, 32], 4), Ok([1, 1, 1, 4]));
        assert_eq!(choose_grid([4, 4, 4, 4], 4), Ok([1, 1, 2, 2]));
        // Faces of 1x1x1x4 are no larger, but its boxes are too thin for long links.
        assert_eq!(choose_grid([8; 4], 4), Ok([1, 1, 2, 2]));
        assert_eq!(choose_grid([4; 4], 3), Err(PartitionError::NoGrid { global: [4; 4], ranks: 3 }));
    }

    #[test]
    fn grids_come_with_their_surfaces() {
        let grids = all_grids([8, 8, 8, 16], 2);
        assert_eq!(grids[0], (512, [1, 1, 1, 2]));
        assert_eq!(grids[1..], [[1, 1, 2, 1], [1, 2, 1, 1], [2, 1, 1, 1]].map(|grid| (1024, grid)));
    }

    #[test]
    fn neighbours_wrap() {
        let partition = Partition::new([8; 4], [1, 1, 2, 4], 8, 6).unwrap();
        assert_eq!(partition.place, [0, 0, 0, 3]);
        assert_eq!(partition.offset(), [0, 0, 0, 6]);
        assert_eq!(partition.neighbour(3, true), 0);
        assert_eq!(partition.neighbour(2, false), 7);
        assert_eq!(partition.neighbour(0, true), 6);
    }

    #[test]
    fn odd_local_extents_are_refused() {
        assert!(matches!(
            Partition::new([6; 4], [1, 1, 1, 2], 2, 0),
            Err(PartitionError::Uneven { direction: 3, extent: 6, parts: 2 })
        ));
    }
}
