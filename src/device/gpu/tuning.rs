//! Block sizes of a GPU's kernels: candidates, and the choice of the fastest.

use crate::device::DeviceError;
use crate::device::size::{Size, Team};

/// How a GPU's threads are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Threads per block.
    pub block: usize,
    /// For teams: the number of teams whose registers must fit a multiprocessor at once.
    pub resident: usize,
}

impl Shape {
    /// As it is kept on disk.
    pub(crate) fn bytes(self) -> Vec<u8> {
        [self.block, self.resident].iter().flat_map(|n| (*n as u64).to_le_bytes()).collect()
    }

    /// From [`Shape::bytes`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (block, resident) = bytes.split_at_checked(8)?;
        let number = |bytes: &[u8]| usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok();
        Some(Self { block: number(block)?, resident: number(resident)? })
    }
}

/// The candidates for a kind of GPU.
pub(crate) struct Candidates {
    /// Threads per block if nothing is tried.
    pub block: usize,
    /// Candidates for sites; the best depends on the lattice.
    pub blocks: &'static [usize],
    /// Registers per multiprocessor.
    pub registers: usize,
    /// For teams: limits on the registers per thread, in descending order.
    pub thread_registers: &'static [usize],
}

impl Candidates {
    /// The shape of a kernel without choices.
    pub(crate) fn plain(&self, size: Size) -> Shape {
        let block = match size {
            Size::Sites(_) => self.block,
            Size::Teams(_, team) => team.threads,
        };
        Shape { block, resident: 1 }
    }

    /// The shape for which the code of `shape` is compiled. Candidates for sites share theirs: a thread may have as many
    /// registers in each.
    pub(crate) fn compiled(&self, shape: Shape, size: Size) -> Shape {
        match size {
            Size::Sites(_) => {
                Shape { block: self.blocks.iter().copied().fold(self.block, usize::max), ..shape }
            }
            Size::Teams(..) => shape,
        }
    }

    /// The candidate shapes for a kernel with choices.
    pub(crate) fn shapes(&self, size: Size) -> Vec<Shape> {
        match size {
            Size::Sites(_) => self.blocks.iter().map(|&block| Shape { block, resident: 1 }).collect(),
            Size::Teams(_, Team { threads, .. }) => {
                let resident = |own: &usize| (self.registers / (own * threads)).max(1);
                let mut resident: Vec<usize> = self.thread_registers.iter().map(resident).collect();
                resident.dedup();
                resident.into_iter().map(|resident| Shape { block: threads, resident }).collect()
            }
        }
    }

    /// The kernel that `compile` makes, in the shape for which `time` is shortest, and that shape.
    ///
    /// # Errors
    /// Errors of `compile` and `time`.
    pub(crate) fn fastest<K>(
        &self,
        size: Size,
        mut compile: impl FnMut(Shape) -> Result<K, DeviceError>,
        time: impl Fn(&K) -> Result<f32, DeviceError>,
    ) -> Result<(Shape, K), DeviceError> {
        let mut best: Option<(f32, Shape, K)> = None;
        for shape in self.shapes(size) {
            let kernel = compile(shape)?;
            let own = time(&kernel)?;
            if best.as_ref().is_none_or(|(least, ..)| own < *least) {
                best = Some((own, shape, kernel));
            }
        }
        let plain = || compile(self.plain(size)).map(|kernel| (self.plain(size), kernel));
        best.map_or_else(plain, |(_, shape, kernel)| Ok((shape, kernel)))
    }
}
