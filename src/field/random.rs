//! Where in the random stream a field is drawn: by seed, trajectory and purpose.
//!
//! ChaCha12 with the key of `rand_chacha::ChaCha12Rng::seed_from_u64(seed)`; stream = global site;
//! first block = ((trajectory * 256 + purpose) * 65536).

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What random numbers are for; each draws from its own part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The links of a hot start.
    Start,
    /// Momenta.
    Momenta,
    /// The Metropolis step.
    Accept,
    /// The pseudofermion with this number.
    Pseudofermion(u8),
    /// Tests and benchmarks; 15: the start of a measurement of the spectrum.
    Probe(u8),
}

impl Purpose {
    fn number(self) -> u64 {
        match self {
            Self::Start => 0,
            Self::Momenta => 1,
            Self::Accept => 2,
            Self::Probe(n) => 16 + u64::from(n & 15),
            Self::Pseudofermion(n) => 32 + u64::from(n),
        }
    }
}

/// Where a field is drawn.
#[derive(Clone, Copy, Debug)]
pub struct RandomAddress {
    /// The run's seed.
    pub seed: u64,
    /// The trajectory.
    pub trajectory: u64,
    /// What for.
    pub purpose: Purpose,
}

impl RandomAddress {
    /// Key words as kernels take them.
    pub(super) fn key(&self) -> [i32; 8] {
        let seed = ChaCha12Rng::seed_from_u64(self.seed).get_seed();
        std::array::from_fn(|k| {
            i32::from_le_bytes([seed[4 * k], seed[4 * k + 1], seed[4 * k + 2], seed[4 * k + 3]])
        })
    }

    /// The first block.
    pub(super) fn block(&self) -> u64 {
        (self.trajectory * 256 + self.purpose.number()) << 16
    }

    /// A uniform number in [0, 1) that is no site's.
    pub fn uniform(&self) -> f64 {
        let mut stream = ChaCha12Rng::seed_from_u64(self.seed);
        stream.set_stream(u64::MAX);
        stream.set_word_pos(u128::from(self.block()) * 16);
        (stream.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }
}
