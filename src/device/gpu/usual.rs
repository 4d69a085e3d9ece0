//! The constants with which GPUs compile kernels most often: what `hmc kernels` compiles ahead.

use crate::device::kernels::{Constants, Enumerated, Epilogue, TEAM_SITES};
use crate::device::{KernelInfo, Work};

/// Slices of the fifth dimension.
const SLICES: i32 = 16;
/// Colour vectors at once, and how many of them share a link.
const VECTORS: [[i32; 2]; 4] = [[1, 1], [2, 2], [4, 4], [16, 4]];
/// The order along the slices is turned for one chirality.
const ORDERS: [i32; 2] = [1, 2];

impl KernelInfo {
    /// Values of its constants, in their order; none where it has none.
    pub fn usual(&self) -> Vec<Constants> {
        match self.constants {
            ["DAGGER", "BLOCKED", "FIELDS", "SLICES", "EPILOGUE"] => hops(),
            ["FIELDS", "EACH"] => VECTORS.iter().map(|vectors| Constants::new(vectors)).collect(),
            ["SLICES", "REVERSED"] => ORDERS.map(|order| Constants::new(&[SLICES, order])).into(),
            ["SLICES", "REVERSED", "DAGGER", "BLOCKED", "FIELDS"] => {
                ORDERS.map(|order| Constants::new(&[SLICES, order, 0, 0, SLICES])).into()
            }
            _ => Vec::new(),
        }
    }

    /// Threads of a team of it, where it has teams; of a block otherwise.
    pub fn usual_threads(&self) -> usize {
        if self.work == Work::Teams { TEAM_SITES * SLICES as usize } else { 128 }
    }
}

/// One of each epilogue, and one of a fifth dimension.
fn hops() -> Vec<Constants> {
    let hop = |epilogue: Epilogue, fields| Constants::new(&[0, 0, fields, fields, epilogue as i32]);
    let epilogues = Epilogue::ALL.iter().map(|epilogue| hop(*epilogue, 1));
    epilogues.chain([hop(Epilogue::Plain, SLICES)]).collect()
}
