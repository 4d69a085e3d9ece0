//! How the fields of one precision lie in memory: this rank's box, divided among lanes. A register holds twice as many
//! floats as doubles, so fields in double may have half the lanes of others.

use crate::device::kernels::{Enumerated, Geometry, TimeWalls, int};
use crate::device::{Buffer, Device, DeviceError};
use crate::lattice::{Extents, LaneGrid, Partition, TimeBoundary, coordinates, site, volume};

/// The lanes of a box, and the sites of one of them.
pub struct Layout {
    partition: Partition,
    lanes: LaneGrid,
    outer: Extents,
    border: Extents,
    permutation: Buffer,
    /// The links of walls that are fixed.
    given: Buffer,
    /// Where the lanes of fields in double are others.
    doubles: Option<Doubles>,
}

/// How fields in double lie, seen from a layout with twice their lanes.
struct Doubles {
    /// The direction that is split once more here.
    direction: usize,
    to: Buffer,
    from: Buffer,
}

impl Layout {
    /// The layout with these lanes, of matrices with these borders.
    pub(super) fn new(
        device: &Device,
        partition: Partition,
        lanes: LaneGrid,
        border: Extents,
    ) -> Result<Self, DeviceError> {
        let permutation = device.buffer_of(&permutation_table(lanes))?;
        Ok(Self {
            partition,
            lanes,
            outer: lanes.outer(partition.local()),
            border,
            permutation,
            given: device.buffer_of(&partition.time.given_links(partition.global))?,
            doubles: None,
        })
    }

    /// The same for fields in lower precision, beside that of fields in double.
    ///
    /// # Panics
    /// It has not twice the lanes.
    pub(super) fn beside(mut self, device: &Device, double: &Self) -> Result<Self, DeviceError> {
        let (own, other) = (self.lanes.0, double.lanes.0);
        let direction =
            (0..4).find(|&mu| own[mu] == 2 * other[mu]).expect("one direction is split once more");
        let (to, from) = tables(own, other, direction);
        self.doubles =
            Some(Doubles { direction, to: device.buffer_of(&to)?, from: device.buffer_of(&from)? });
        Ok(self)
    }

    /// The division of the box among lanes.
    pub fn lanes(&self) -> LaneGrid {
        self.lanes
    }

    /// Extents of a lane's box.
    pub fn outer(&self) -> Extents {
        self.outer
    }

    /// Outer sites of one parity.
    pub fn half(&self) -> usize {
        volume(self.outer) / 2
    }

    /// Outer sites of one parity, including the borders of matrices.
    pub fn half_bordered(&self) -> usize {
        let extents: Extents = std::array::from_fn(|mu| self.outer[mu] + 2 * self.border[mu]);
        volume(extents) / 2
    }

    /// The box in the form that kernels take.
    pub(crate) fn geometry(&self) -> Geometry<'_> {
        let ints = |x: Extents| x.map(int);
        Geometry {
            outer: ints(self.outer),
            border: ints(self.border),
            lanes: ints(self.lanes.0),
            offset: ints(self.partition.offset()),
            global: ints(self.partition.global),
            half: int(self.half()),
            half_bordered: int(self.half_bordered()),
            permutation: self.permutation.input(),
            to_double: self.doubles.as_ref().map(|doubles| doubles.to.input()),
            from_double: self.doubles.as_ref().map(|doubles| doubles.from.input()),
            walls: walls(self.partition.time),
            given: Some(self.given.input()),
            double_direction: self.doubles.as_ref().map_or(0, |doubles| int(doubles.direction)),
        }
    }
}

/// As kernels have it.
pub(super) fn walls(time: TimeBoundary) -> i32 {
    match time {
        TimeBoundary::Periodic => TimeWalls::Periodic,
        TimeBoundary::Open => TimeWalls::Open,
        TimeBoundary::Schroedinger { .. } => TimeWalls::Fixed,
        TimeBoundary::OpenSchroedinger { .. } => TimeWalls::OpenFixed,
    }
    .value()
}

/// For each direction, forward and backward, the neighbouring lane of every lane.
fn permutation_table(lanes: LaneGrid) -> Vec<i32> {
    let mut table = Vec::new();
    for mu in 0..4 {
        for step in [1, lanes.0[mu] - 1] {
            for lane in 0..lanes.count() {
                let mut at = coordinates(lanes.0, lane);
                at[mu] = (at[mu] + step) % lanes.0[mu];
                table.push(int(site(lanes.0, at)));
            }
        }
    }
    table
}

/// The lanes of two sites of doubles, one behind the other, in terms of the lanes here, and the inverse. The first site
/// is that with the same coordinates; the second one lies a box of this layout further in `direction`.
fn tables(own: Extents, other: Extents, direction: usize) -> (Vec<i32>, Vec<i32>) {
    let there = |lane: usize| {
        let mut at = coordinates(own, lane);
        let second = at[direction] % 2;
        at[direction] /= 2;
        second * volume(other) + site(other, at)
    };
    let from: Vec<usize> = (0..volume(own)).map(there).collect();
    let mut to = vec![0; from.len()];
    from.iter().zip(0..).for_each(|(&there, lane)| to[there] = lane);
    (to, from.into_iter().map(int).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_doubles_are_found() {
        let (own, other) = ([2, 2, 2, 2], [1, 2, 2, 2]);
        let (to, from) = tables(own, other, 0);
        assert_eq!(from[..4], [0, 8, 1, 9], "x alternates between the two sites");
        assert!((0..).zip(&from).all(|(lane, &there)| to[usize::try_from(there).unwrap()] == lane));
    }
}
