//! The place of a field's random numbers in the stream, given by seed, trajectory and purpose.
//!
//! ChaCha12 with the key of `rand_chacha::ChaCha12Rng::seed_from_u64(seed)`. The stream is the global site, the first
//! block is (trajectory * 256 + purpose) * 65536, plus 4 n for random source n.

use crate::device::kernels::Stream;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The purpose of random numbers; each has its own part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The links of a hot start.
    Start,
    /// Momenta.
    Momenta,
    /// The Metropolis step.
    Accept,
    /// The random source of a measurement with this number, below [`Purpose::SOURCES`].
    Source(u16),
    /// The pseudofermion with this number, below [`Purpose::PSEUDOFERMIONS`].
    Pseudofermion(u8),
    /// Tests and benchmarks; 15 is [`Purpose::SPECTRUM`].
    Probe(u8),
}

/// Blocks per random source: a spinor takes 3, a colour vector 1.
const SOURCE_BLOCKS: u64 = 4;

impl Purpose {
    /// The starting vector of a measurement of the spectrum.
    pub const SPECTRUM: Self = Self::Probe(15);
    /// Maximum number of random sources per configuration.
    pub const SOURCES: usize = 16384;
    /// Maximum number of pseudofermions in a run.
    pub const PSEUDOFERMIONS: usize = 224;

    fn number(self) -> u64 {
        match self {
            Self::Start => 0,
            Self::Momenta => 1,
            Self::Accept => 2,
            Self::Source(_) => 3,
            Self::Probe(n) => 16 + u64::from(n & 15),
            Self::Pseudofermion(n) => 32 + u64::from(n),
        }
    }
}

/// The address of a field's random numbers.
#[derive(Clone, Copy, Debug)]
pub struct RandomAddress {
    /// The run's seed.
    pub seed: u64,
    /// The trajectory.
    pub trajectory: u64,
    /// The purpose.
    pub purpose: Purpose,
}

impl RandomAddress {
    /// The address in the form that kernels take.
    pub(super) fn stream(&self) -> Stream {
        let seed = ChaCha12Rng::seed_from_u64(self.seed).get_seed();
        let word =
            |k: usize| i32::from_le_bytes([seed[4 * k], seed[4 * k + 1], seed[4 * k + 2], seed[4 * k + 3]]);
        let block = self.block();
        Stream {
            key: std::array::from_fn(word),
            counter_low: block as u32 as i32,
            counter_high: (block >> 32) as u32 as i32,
        }
    }

    /// The first block.
    fn block(&self) -> u64 {
        let within = match self.purpose {
            Purpose::Source(n) => SOURCE_BLOCKS * (u64::from(n) % Purpose::SOURCES as u64),
            _ => 0,
        };
        ((self.trajectory * 256 + self.purpose.number()) << 16) + within
    }

    /// A uniform number in [0, 1), from a stream that no site uses.
    pub fn uniform(&self) -> f64 {
        let mut stream = ChaCha12Rng::seed_from_u64(self.seed);
        stream.set_stream(u64::MAX);
        stream.set_word_pos(u128::from(self.block()) * 16);
        (stream.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }
}

#[cfg(test)]
mod tests {
    use super::{Purpose, RandomAddress, SOURCE_BLOCKS};

    /// Random sources have their own blocks, separate from the purposes before and after.
    #[test]
    fn sources_do_not_overlap() {
        let block = |trajectory, purpose| RandomAddress { seed: 1, trajectory, purpose }.block();
        let source = |n: usize| block(7, Purpose::Source(n as u16));
        assert!(block(7, Purpose::Accept) + (1 << 16) <= source(0));
        assert_eq!(source(1), source(0) + SOURCE_BLOCKS);
        let last = source(Purpose::SOURCES - 1) + SOURCE_BLOCKS - 1;
        assert_eq!(last, source(0) + (1 << 16) - 1);
        assert!(last < block(7, Purpose::Probe(0)));
    }
}
