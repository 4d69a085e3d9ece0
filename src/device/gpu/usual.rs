//! The constants for which GPUs compile kernels most often: `hmc kernels` compiles these ahead of time.

use crate::device::kernels::{
    BLOCK_THREADS, COARSE_LINKS, Constants, Enumerated, Epilogue, HOP_ROWS, HOP_SHARES, TEAM_SITES,
};
use crate::device::{KernelInfo, Work};

/// Slices of the fifth dimension.
const SLICES: i32 = 16;
/// Rows of a coarse field: two for each vector of P.
const ROWS: i32 = 48;
/// Number of colour vectors, and how many of them share a link.
const VECTORS: [[i32; 2]; 4] = [[1, 1], [2, 2], [4, 4], [16, 4]];
/// Orders along the slices: one chirality uses the reverse.
const ORDERS: [i32; 2] = [1, 2];

impl KernelInfo {
    /// Values of the kernel's constants, in its order; empty if it has none.
    pub fn usual(&self) -> Vec<Constants> {
        match self.constants {
            ["DAGGER", "HOPS", "FIELDS", "SLICES", "EPILOGUE"] => hops(),
            ["FIELDS", "EACH"] => VECTORS.iter().map(|vectors| Constants::new(vectors)).collect(),
            ["SLICES", "REVERSED"] => ORDERS.map(|order| Constants::new(&[SLICES, order])).into(),
            ["SLICES", "REVERSED", "DAGGER", "HOPS", "FIELDS"] => {
                ORDERS.map(|order| Constants::new(&[SLICES, order, 0, 0, SLICES])).into()
            }
            ["DAGGER", "HOPS", "FIELDS", "SLICES"] => vec![Constants::new(&[0, 0, 2, 2])],
            ["ROWS"] => vec![Constants::new(&[ROWS])],
            _ => Vec::new(),
        }
    }

    /// Threads per team of a kernel of teams, otherwise per block.
    pub fn usual_threads(&self) -> usize {
        match (self.work, self.family.as_str()) {
            (Work::Teams, "doublet") => 2 * TEAM_SITES,
            (Work::Teams, "domain_wall") => TEAM_SITES * SLICES as usize,
            (Work::Teams, _) if self.args == "CoarseHop" => {
                (COARSE_LINKS - 1) * HOP_SHARES * ROWS as usize / HOP_ROWS
            }
            (Work::Teams, _) if self.args == "CoarseBlock" => BLOCK_THREADS,
            _ => 128,
        }
    }
}

/// One per epilogue, and one with a fifth dimension.
fn hops() -> Vec<Constants> {
    let hop = |epilogue: Epilogue, fields| Constants::new(&[0, 0, fields, fields, epilogue as i32]);
    let epilogues = Epilogue::ALL.iter().map(|epilogue| hop(*epilogue, 1));
    epilogues.chain([hop(Epilogue::Plain, SLICES)]).collect()
}
