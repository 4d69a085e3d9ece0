//! In which blocks a GPU runs a kernel: what is tried, and which is fastest.

use crate::device::DeviceError;
use crate::device::backend::{Size, Teams};

/// How a GPU's threads are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a block.
    pub block: usize,
    /// Of teams, how many a processor's registers are to hold at once.
    pub resident: usize,
}

/// What is worth trying on a kind of GPU.
pub struct Candidates {
    /// Threads of a block where nothing is tried.
    pub block: usize,
    /// Those that are tried for sites, whose best depends on the lattice.
    pub blocks: &'static [usize],
    /// Registers of a processor.
    pub registers: usize,
    /// Limits on the registers of a thread that are tried for teams, the greatest first.
    pub thread_registers: &'static [usize],
}

impl Candidates {
    /// The shape of a kernel without choices.
    pub fn plain(&self, size: Size) -> Shape {
        let block = match size {
            Size::Sites(_) => self.block,
            Size::Teams(teams) => teams.threads,
        };
        Shape { block, resident: 1 }
    }

    /// The shapes that are tried for one with choices.
    fn shapes(&self, size: Size) -> Vec<Shape> {
        match size {
            Size::Sites(_) => self.blocks.iter().map(|&block| Shape { block, resident: 1 }).collect(),
            Size::Teams(Teams { threads, .. }) => {
                let resident = |own: &usize| (self.registers / (own * threads)).max(1);
                let mut resident: Vec<usize> = self.thread_registers.iter().map(resident).collect();
                resident.dedup();
                resident.into_iter().map(|resident| Shape { block: threads, resident }).collect()
            }
        }
    }

    /// The kernel that `compile` makes, in the shape in which `time` takes least.
    ///
    /// # Errors
    /// Those of `compile` and `time`.
    pub fn fastest<K>(
        &self,
        size: Size,
        compile: impl Fn(Shape) -> Result<K, DeviceError>,
        time: impl Fn(&K) -> Result<f32, DeviceError>,
    ) -> Result<K, DeviceError> {
        let mut best: Option<(f32, K)> = None;
        for shape in self.shapes(size) {
            let kernel = compile(shape)?;
            let own = time(&kernel)?;
            if best.as_ref().is_none_or(|(least, _)| own < *least) {
                best = Some((own, kernel));
            }
        }
        best.map_or_else(|| compile(self.plain(size)), |(_, kernel)| Ok(kernel))
    }
}
