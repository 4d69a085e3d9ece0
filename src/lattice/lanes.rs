//! A rank's box as W equal boxes, one a SIMD lane (Boyle et al., Grid, arXiv:1512.03487, section 2).
//!
//! A direction may be halved more than once. Lane l sits at natural order in the lane grid. A box
//! keeps even extents wherever its direction is split, so that parity is the same in all lanes.

use super::extents::{Extents, volume};

/// The most lanes that a vector holds.
pub const MAX_LANES: usize = 16;

/// How many lanes split each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneGrid(pub Extents);

impl LaneGrid {
    /// Splits a box of `local` extents into `lanes` (a power of two), halving the longest lane box each time; directions
    /// that are not `cut` over ranks come first, and early ones among equals, since threads share the last one. `None`
    /// where the box is too small.
    pub fn choose(local: Extents, cut: [bool; 4], lanes: usize) -> Option<Self> {
        let mut grid = [1; 4];
        while volume(grid) < lanes {
            let mu = (0..4)
                .filter(|&mu| local[mu].is_multiple_of(4 * grid[mu]))
                .max_by_key(|&mu| (!cut[mu], local[mu] / grid[mu], 3 - mu))?;
            grid[mu] *= 2;
        }
        Some(Self(grid))
    }

    /// Whether the `cut` directions of a box of `local` extents keep as many layers in each lane as an operator of so
    /// long a `reach` takes from one neighbour.
    pub fn is_thick(self, local: Extents, cut: [bool; 4], reach: usize) -> bool {
        let outer = self.outer(local);
        (0..4).all(|mu| !cut[mu] || outer[mu] >= reach)
    }

    /// Number of lanes.
    pub fn count(self) -> usize {
        volume(self.0)
    }

    /// Extents of one lane's box.
    pub fn outer(self, local: Extents) -> Extents {
        std::array::from_fn(|mu| local[mu] / self.0[mu])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_leave_even_boxes() {
        assert_eq!(LaneGrid::choose([8; 4], [false; 4], 16), Some(LaneGrid([2; 4])));
        assert_eq!(
            LaneGrid::choose([2, 8, 8, 8], [true, false, false, false], 16),
            Some(LaneGrid([1, 4, 2, 2]))
        );
        assert_eq!(LaneGrid::choose([6; 4], [false; 4], 4), None);
        assert_eq!(LaneGrid::choose([2, 2, 2, 16], [false; 4], 8), Some(LaneGrid([1, 1, 1, 8])));
    }
}
