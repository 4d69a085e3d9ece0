//! Contractions of propagators, and their sums over time slices:
//!
//! ```text
//! d(x) = tr[A S(x) B T(x)^dag],   D(t, p) = sum_{x at t} e^{-i p.(x - x0)} d(x),   p_k = 2 pi n_k / L_k
//! ```
//!
//! A acts at the sink, B at the source. x0 is the source; t is counted from it. The trace is over spins and colours,
//! for staggered quarks over colours. Sums are exact, so they do not depend on ranks, lanes or device.

use super::gamma::Gamma;
use crate::comm::agree;
use crate::device::kernels::{
    ContractColours, ContractSpinors, Double, Fermions, In, SpinMatrix, TimeSliceSum,
};
use crate::device::{Buffer, Precision};
use crate::field::{Domain, EVEN, FieldError, Kind, ODD, Spinor};
use crate::lattice::{Extents, coordinates};
use crate::math::ExactSum;
use crate::quark::Fields;
use num_complex::Complex64;
use std::f64::consts::TAU;
use std::sync::Arc;

/// A momentum as integers n_x, n_y, n_z: `p_k = 2 pi n_k / L_k`.
pub type Momentum = [i32; 3];

/// One complex number per site.
pub struct Density {
    domain: Arc<Domain>,
    values: [Buffer; 2],
    /// For [`TimeSliceSum`].
    mask: Buffer,
}

impl Density {
    /// A density, zero everywhere.
    pub fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        let (lanes, device) = (domain.lanes(), domain.device());
        let bytes = 16 * domain.half() * lanes.count();
        let place = |lane: usize| coordinates(lanes.0, lane)[3];
        let mask: Vec<f64> = (0..lanes.0[3])
            .flat_map(|t| (0..lanes.count()).map(move |lane| f64::from(u8::from(place(lane) == t))))
            .collect();
        let values = [device.buffer(bytes)?, device.buffer(bytes)?];
        Ok(Self { domain: Arc::clone(domain), values, mask: device.buffer_of(&mask)? })
    }

    /// `tr[A S B T^dag]` with `[A, B]` as `[sink, source]`. S and T have one field per component of the source.
    ///
    /// # Panics
    /// Spin matrices for colour vectors; fields that are not a propagator.
    pub fn contract(&mut self, [s, t]: [&Fields; 2], [sink, source]: [Gamma; 2]) -> Result<(), FieldError> {
        let domain = Arc::clone(&self.domain);
        let all = || [s, t].into_iter().flatten().flatten();
        domain.check(all().map(Spinor::domain));
        let own = (Precision::Double, s[EVEN].first().map_or(Kind::Dirac, Spinor::kind), 1);
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!(all().all(fit), "single fields of one kind, in double");
        let half = domain.half();
        for parity in [EVEN, ODD] {
            let [s, t] = [&s[parity], &t[parity]];
            let out = self.values[parity].output();
            match own.1 {
                Kind::Dirac => {
                    let (quark, antiquark) = (columns(s), columns(t));
                    let (sink, source) = (spin_matrix(sink), spin_matrix(source));
                    let kernel = ContractSpinors { quark, antiquark, out, sink, source, half: half as i32 };
                    domain.launch(&kernel, half)?;
                }
                Kind::Colour => {
                    assert_eq!([sink, source], [Gamma::ONE; 2], "colour vectors have no spin");
                    let (quark, antiquark) = (columns(s), columns(t));
                    let kernel = ContractColours { quark, antiquark, out, half: half as i32 };
                    domain.launch(&kernel, half)?;
                }
                Kind::Wall(_) => panic!("propagators have no slices"),
            }
        }
        Ok(())
    }

    /// D(t, p) for t from 0 to Lt - 1, counted from `origin`.
    pub fn slices(&self, momentum: Momentum, origin: Extents) -> Result<Vec<Complex64>, FieldError> {
        let domain = &self.domain;
        let phases = domain.device().buffer_of(&phase_table(domain, momentum, origin))?;
        let sums = agree(domain.comm(), self.own_sums(&phases, origin[3]))?;
        let mut words: Vec<i64> = sums.iter().flatten().flat_map(|sum| sum.words()).collect();
        domain.comm().sum(&mut words);
        let value = |words: &[i64]| ExactSum::from_words(words.try_into().expect("a sum's words")).value();
        let values: Vec<f64> = words.chunks_exact(ExactSum::WORDS).map(value).collect();
        Ok(values.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect())
    }

    /// Real and imaginary part of each time slice over this rank's sites, counted from `start`.
    fn own_sums(&self, phases: &Buffer, start: usize) -> Result<Vec<[ExactSum; 2]>, FieldError> {
        let (domain, g) = (&self.domain, self.domain.geometry());
        let (partition, sites) = (domain.partition(), domain.half() / g.outer[3] as usize);
        let extent = partition.global[3];
        let mut sums = vec![[ExactSum::default(); 2]; extent];
        for local in 0..partition.local()[3] {
            let t = (local + partition.offset()[3] + extent - start) % extent;
            for parity in [EVEN, ODD] {
                let kernel = TimeSliceSum {
                    g,
                    density: self.values[parity].input(),
                    phases: phases.input(),
                    mask: self.mask.input(),
                    parity: parity as i32,
                    time: local as i32 % g.outer[3],
                    lane_time: local as i32 / g.outer[3],
                    sites: sites as i32,
                };
                let own = domain.device().sum(Double, &kernel, sites)?.sums;
                sums[t].iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
        }
        Ok(sums)
    }
}

fn columns<const N: usize>(fields: &[Spinor]) -> [In<'_, Fermions>; N] {
    assert_eq!(fields.len(), N, "one field per component");
    std::array::from_fn(|n| fields[n].fermions())
}

fn spin_matrix(gamma: Gamma) -> SpinMatrix {
    assert!(gamma.column.iter().chain(&gamma.phase).all(|&n| n < 4), "{gamma:?} is no product of gammas");
    let ints = |numbers: [usize; 4]| numbers.map(|n| n as i32);
    SpinMatrix { column: ints(gamma.column), phase: ints(gamma.phase) }
}

/// `e^{-i p_k (x_k - x0_k)}` in the kernel's layout: `[k][coordinate in a lane's box][re, im][lane]`.
fn phase_table(domain: &Domain, momentum: Momentum, origin: Extents) -> Vec<f64> {
    let (partition, lanes) = (domain.partition(), domain.lanes());
    let outer = lanes.outer(partition.local());
    let mut table = Vec::new();
    for k in 0..3 {
        let extent = partition.global[k];
        for x in 0..outer[k] {
            let of_lane = |lane: usize| {
                let x = partition.offset()[k] + coordinates(lanes.0, lane)[k] * outer[k] + x;
                // The angle is an integer fraction of a turn, so a phase of 1 is exactly 1.
                let parts = -i64::from(momentum[k]) * (x as i64 - origin[k] as i64);
                let angle = TAU * parts.rem_euclid(extent as i64) as f64 / extent as f64;
                Complex64::new(angle.cos(), angle.sin())
            };
            let all: Vec<Complex64> = (0..lanes.count()).map(of_lane).collect();
            table.extend(all.iter().map(|z| z.re));
            table.extend(all.iter().map(|z| z.im));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quark::fields;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_contraction_is_of_propagators_and_products_of_gammas() {
        let domain = Domain::local([4; 4]).unwrap();
        let dirac = || fields(&domain, Kind::Dirac, 12).unwrap();
        let good = dirac();
        let mut density = Density::new(&domain).unwrap();
        density.contract([&good, &good], [Gamma::FIVE; 2]).unwrap();
        let mut refused = |t: Fields, gamma: Gamma| {
            let work = AssertUnwindSafe(|| density.contract([&good, &t], [gamma, Gamma::FIVE]));
            assert!(catch_unwind(work).is_err());
        };
        refused(fields(&domain, Kind::Colour, 12).unwrap(), Gamma::FIVE);
        let mut single = dirac();
        single[ODD][11] = Spinor::new(&domain, Precision::Single).unwrap();
        refused(single, Gamma::FIVE);
        refused(dirac(), Gamma { column: [0, 1, 2, 4], phase: [0; 4] });
    }
}
