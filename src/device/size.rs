//! How many sites or teams a launch has, and what kernels are compiled for.

use crate::lattice::MOST_SITES;

/// What is fixed when kernels are compiled for a lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Extents of a lane's box.
    pub outer: [usize; 4],
    /// Whether any direction is cut.
    pub cut: bool,
    /// How time ends.
    pub walls: i32,
}

/// A number of sites or teams that a launch may have: kernels count with 32 bits, also the threads that the last block, or the
/// last step of a sum, has beyond the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(i32);

impl Count {
    /// So many, unless they are more than a kernel counts.
    pub fn new(n: usize) -> Option<Self> {
        i32::try_from(n).ok().filter(|_| n <= MOST_SITES).map(Self)
    }

    /// As kernels take it.
    pub fn int(self) -> i32 {
        self.0
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0.unsigned_abs() as usize
    }
}

/// The number of sites or teams of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// Sites `0..n`.
    Sites(Count),
    /// So many teams of threads.
    Teams(Count, Team),
}

impl Size {
    /// The number of either.
    pub fn count(self) -> Count {
        let (Self::Sites(count) | Self::Teams(count, _)) = self;
        count
    }
}

/// Threads that share memory.
#[derive(Clone, Copy, Debug)]
pub struct Team {
    /// Their number.
    pub threads: usize,
    /// Bytes of shared memory.
    pub shared: usize,
}
