//! The place of a field's random numbers in the stream, given by seed, trajectory and purpose.
//!
//! ChaCha12 with the key of `rand_chacha::ChaCha12Rng::seed_from_u64(seed)`; stream = global site;
//! first block = (trajectory * 256 + purpose) * 65536, of random source n 4 n more.
//!
//! Kernels draw the fields. What the host draws comes from the same streams, by `rand`'s traits.

use crate::device::kernels::Stream;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

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
    /// Tests and benchmarks; 13 is [`Purpose::SPACE`], 14 is [`Purpose::TRIAL`], 15 is [`Purpose::SPECTRUM`].
    Probe(u8),
    /// What a program or an observable of one's own draws; the number is below [`Purpose::OWN`].
    Own(u8),
}

/// Blocks per random source: a spinor takes 3, a colour vector 1.
const SOURCE_BLOCKS: u64 = 4;

impl Purpose {
    /// The starting vector of a measurement of the spectrum.
    pub const SPECTRUM: Self = Self::Probe(15);
    /// The source of a trial of solvers.
    pub const TRIAL: Self = Self::Probe(14);
    /// The first vectors of a multigrid.
    pub const SPACE: Self = Self::Probe(13);
    /// Maximum number of random sources per configuration.
    pub const SOURCES: usize = 16384;
    /// Maximum number of pseudofermions in a run.
    pub const PSEUDOFERMIONS: usize = 224;
    /// How many purposes there are for numbers of one's own.
    pub const OWN: usize = 12;

    fn number(self) -> u64 {
        match self {
            Self::Start => 0,
            Self::Momenta => 1,
            Self::Accept => 2,
            Self::Source(_) => 3,
            Self::Own(n) => 4 + u64::from(n) % Self::OWN as u64,
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
        let block = self.block().to_le_bytes();
        let word =
            |bytes: &[u8], k: usize| i32::from_le_bytes(bytes[4 * k..][..4].try_into().expect("four bytes"));
        Stream {
            key: std::array::from_fn(|k| word(&seed, k)),
            counter_low: word(&block, 0),
            counter_high: word(&block, 1),
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

    /// The generator of what belongs to no site, such as the Metropolis step; the same on all ranks. It has 2^19 words of
    /// 64 bits, and 32 for a random source: after them come those of the next purpose or source.
    ///
    /// ```
    /// use hmc::field::{Purpose, RandomAddress};
    /// use rand::RngExt;
    ///
    /// let mut rng = RandomAddress { seed: 7, trajectory: 10, purpose: Purpose::Own(0) }.rng();
    /// let (x, up): (f64, bool) = (rng.random(), rng.random());
    /// let slice = rng.random_range(0..48);
    /// # assert!((0.0..1.0).contains(&x) && (up || !up) && slice < 48);
    /// ```
    pub fn rng(&self) -> impl Rng + use<> {
        self.chacha(u64::MAX)
    }

    /// The generator of a site, `x + Lx (y + Ly (z + Lz t))` on the whole lattice; as long as [`Self::rng`]. Kernels draw a
    /// field with the same purpose from the same words. A rank that draws for its own sites alone gets what one rank gets.
    pub fn rng_of(&self, site: u64) -> impl Rng + use<> {
        self.chacha(site)
    }

    fn chacha(&self, stream: u64) -> ChaCha12Rng {
        let mut rng = ChaCha12Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng.set_word_pos(u128::from(self.block()) * 16);
        rng
    }

    /// A uniform number in [0, 1) that is no site's: the first of [`Self::rng`], a multiple of 2^-53.
    pub fn uniform(&self) -> f64 {
        self.rng().random()
    }
}

#[cfg(test)]
mod tests {
    use super::{Purpose, RandomAddress, SOURCE_BLOCKS};
    use crate::comm::Solo;
    use crate::device::{Cpu, Device, Precision};
    use crate::field::{Domain, EVEN, Halo, ODD, Spinor};
    use crate::lattice::{Partition, coordinates, site, volume};
    use rand::{Rng, RngExt, SeedableRng};
    use rand_chacha::ChaCha12Rng;
    use std::sync::Arc;

    /// Chains rest on these bits: the upper 53 of a word, as multiples of 2^-53.
    #[test]
    fn uniform_numbers_are_the_upper_53_bits_of_a_word() {
        for trajectory in 0..1000 {
            let address = RandomAddress { seed: 3 + trajectory % 5, trajectory, purpose: Purpose::Accept };
            let mut stream = ChaCha12Rng::seed_from_u64(address.seed);
            stream.set_stream(u64::MAX);
            stream.set_word_pos(u128::from((trajectory * 256 + 2) << 16) * 16);
            let mut words = stream.clone();
            let by_hand = |word: u64| (word >> 11) as f64 * 2f64.powi(-53);
            assert_eq!(address.uniform().to_bits(), by_hand(words.next_u64()).to_bits());
            stream.next_u64();
            assert_eq!(stream.random::<f64>().to_bits(), by_hand(words.next_u64()).to_bits());
        }
        // Also that the key of a seed and the place in the stream stay what they are.
        let address = RandomAddress { seed: 20_260_131, trajectory: 17, purpose: Purpose::Accept };
        assert_eq!(address.uniform().to_bits(), 4_603_377_254_295_743_049);
    }

    /// A colour vector of a kernel, and the same by Box and Muller from [`RandomAddress::rng_of`]. sqrt(-2 ln u) is 8.6 at
    /// most. Here the angle, up to 2 pi, is off by up to 7e-16, so a number by 6e-15; the rest adds less.
    #[test]
    fn the_host_draws_the_numbers_of_the_kernels() {
        let extents = [4, 4, 6, 4];
        let partition = Partition::new(extents, [1; 4], 1, 0).unwrap();
        let device = Device::new(Cpu::new(1).unwrap());
        let domain = Domain::new(partition, device, Arc::new(Solo), 0, Halo::Staged).unwrap();
        let address = RandomAddress { seed: 5, trajectory: 3, purpose: Purpose::Own(2) };
        let mut field = Spinor::colour(&domain, Precision::Double).unwrap();
        let sites = volume(extents);
        for parity in [EVEN, ODD] {
            field.set_random(parity, 1.0, address).unwrap();
            let mut drawn = vec![0.0; 6 * sites];
            field.write_host(parity, &mut drawn).unwrap();
            for n in (0..sites).filter(|&n| coordinates(extents, n).iter().sum::<usize>() % 2 == parity) {
                assert_eq!(site(extents, coordinates(extents, n)), n);
                let mut rng = address.rng_of(n as u64);
                for pair in drawn[6 * n..][..6].chunks_exact(2) {
                    let u = rng.random::<f64>() + 2f64.powi(-53);
                    let (sine, cosine) = (std::f64::consts::TAU * rng.random::<f64>()).sin_cos();
                    let r = (-2.0 * u.ln()).sqrt();
                    for (x, y) in pair.iter().zip([r * cosine, r * sine]) {
                        assert!((x - y).abs() < 1e-14, "site {n}: {x:e} and {y:e}");
                    }
                }
            }
        }
    }

    /// No two purposes have a number in common.
    #[test]
    fn purposes_do_not_overlap() {
        let own = (0..).take(Purpose::OWN).map(Purpose::Own);
        let probes = (0..16).map(Purpose::Probe);
        let phi = (0..).take(Purpose::PSEUDOFERMIONS).map(Purpose::Pseudofermion);
        let fixed = [Purpose::Start, Purpose::Momenta, Purpose::Accept, Purpose::Source(0)];
        let numbers: Vec<u64> =
            fixed.into_iter().chain(own).chain(probes).chain(phi).map(Purpose::number).collect();
        assert_eq!(numbers, (0..256).collect::<Vec<_>>());
    }

    /// Random sources have their own blocks, separate from the purposes before and after.
    #[test]
    fn sources_do_not_overlap() {
        let block = |trajectory, purpose| RandomAddress { seed: 1, trajectory, purpose }.block();
        let source = |n: usize| block(7, Purpose::Source(n.try_into().unwrap()));
        assert!(block(7, Purpose::Accept) + (1 << 16) <= source(0));
        assert_eq!(source(1), source(0) + SOURCE_BLOCKS);
        let last = source(Purpose::SOURCES - 1) + SOURCE_BLOCKS - 1;
        assert_eq!(last, source(0) + (1 << 16) - 1);
        assert!(last < block(7, Purpose::Probe(0)));
    }
}
