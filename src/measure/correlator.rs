//! Pseudoscalar correlators: `C(t) = sum_{x at t} sum over components of source and sink |M^-1(x, source)|^2`. Components
//! are spins and colours, or the colours of staggered quarks. Domain-wall quarks have one at the midpoint besides.

use super::{MeasureError, Stop};
use crate::field::{EVEN, ODD};
use crate::lattice::{Extents, coordinates, volume};
use crate::math::ExactSum;
use crate::quark::{Fields, Inverse, fields};
use std::sync::Arc;

/// Where a source is 1, component by component; it is 0 elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// At one site.
    Point(Extents),
    /// At the sites of this time slice with even x, y and z.
    CornerWall(usize),
}

impl Source {
    /// Its time slice, from which t is counted.
    pub fn time(self) -> usize {
        match self {
            Self::Point(at) => at[3],
            Self::CornerWall(t) => t,
        }
    }

    fn contains(self, x: Extents) -> bool {
        match self {
            Self::Point(at) => x == at,
            Self::CornerWall(t) => x[3] == t && x[..3].iter().all(|x| x.is_multiple_of(2)),
        }
    }
}

/// C(t) for t from 0 to Lt - 1, counted from the source; not normalised.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlators {
    /// Of the pseudoscalar density with itself.
    pub pion: Vec<f64>,
    /// Of a quark with a fifth dimension: of J5q, the density at its midpoint, with that of the source.
    pub midpoint: Option<Vec<f64>>,
}

/// What a finite fifth dimension adds to a quark's mass: `R(t) = <J5q P>(t) / <P P>(t)`, which is the residual mass away from
/// the source (Blum et al., hep-lat/0007038).
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualMass {
    /// R(t).
    pub ratio: Vec<f64>,
    /// Its mean over Lt/4 <= t <= 3 Lt/4.
    pub mean: f64,
}

impl Correlators {
    /// The residual mass of a quark with a fifth dimension.
    pub fn residual_mass(&self) -> Option<ResidualMass> {
        let ratio: Vec<f64> = self.midpoint.as_ref()?.iter().zip(&self.pion).map(|(j, p)| j / p).collect();
        let middle = &ratio[ratio.len().div_ceil(4)..=3 * ratio.len() / 4];
        Some(ResidualMass { mean: middle.iter().sum::<f64>() / middle.len() as f64, ratio })
    }
}

/// The pion's correlator alone.
///
/// # Errors
/// A solve failed.
pub fn pion(quark: &mut dyn Inverse, source: Source) -> Result<Vec<f64>, MeasureError> {
    Ok(correlators(quark, source, &|| false)?.pion)
}

/// The correlators of a quark from a source.
///
/// # Errors
/// A solve failed, or the measurement was told to stop.
pub fn correlators(quark: &mut dyn Inverse, source: Source, stop: Stop) -> Result<Correlators, MeasureError> {
    let domain = Arc::clone(quark.domain());
    let (partition, reals_of_site) = (*domain.partition(), quark.kind().reals());
    let (local, offset, slices) = (partition.local(), partition.offset(), partition.global[3]);
    let place = |s: usize| -> Extents {
        let x = coordinates(local, s);
        std::array::from_fn(|mu| x[mu] + offset[mu])
    };
    let zero = vec![ExactSum::default(); slices];
    let (mut sums, mut midpoint) = (zero.clone(), None);
    let room = || vec![0.0; volume(local) * reals_of_site];
    let (mut reals, mut others) = (room(), room());
    let components: Vec<usize> = (0..reals_of_site / 2).collect();
    for some in components.chunks(quark.together()) {
        if stop() {
            return Err(MeasureError::Stopped);
        }
        let mut b = fields(&domain, quark.kind(), some.len())?;
        let mut x = fields(&domain, quark.kind(), some.len())?;
        for (n, component) in some.iter().enumerate() {
            let mut ones = room();
            for s in (0..volume(local)).filter(|&s| source.contains(place(s))) {
                ones[s * reals_of_site + 2 * component] = 1.0;
            }
            for parity in [EVEN, ODD] {
                b[parity][n].read_host(parity, &ones)?;
            }
        }
        // Re y^dag x of every site, to the sum of its time slice.
        let mut add = |sums: &mut [ExactSum], x: &Fields, y: &Fields| -> Result<(), MeasureError> {
            for n in 0..some.len() {
                for parity in [EVEN, ODD] {
                    x[parity][n].write_host(parity, &mut reals)?;
                    y[parity][n].write_host(parity, &mut others)?;
                }
                let sites = reals.chunks_exact(reals_of_site).zip(others.chunks_exact(reals_of_site));
                for (s, (x, y)) in sites.enumerate() {
                    let t = place(s)[3] + slices - source.time();
                    sums[t % slices].push(x.iter().zip(y).map(|(x, y)| x * y).sum());
                }
            }
            Ok(())
        };
        quark.solve(&mut x, &b)?;
        add(&mut sums, &x, &x)?;
        if let Some([x, y]) = quark.midpoint(&b)? {
            add(midpoint.get_or_insert_with(|| zero.clone()), &x, &y)?;
        }
    }
    let over_ranks = |sums: Vec<ExactSum>| -> Vec<f64> {
        let mut words: Vec<i64> = sums.iter().flat_map(|s| s.words()).collect();
        domain.comm().sum(&mut words);
        let value = |w: &[i64]| ExactSum::from_words(w.try_into().expect("a sum's words")).value();
        words.chunks_exact(ExactSum::WORDS).map(value).collect()
    };
    Ok(Correlators { pion: over_ranks(sums), midpoint: midpoint.map(over_ranks) })
}
