//! The operator of improved staggered quarks in every storage, linear algebra on colour vectors, and the solvers on
//! them: against the plain reference, by their laws, and with the same bits on any lanes and ranks.
//!
//! Found errors and their bounds are printed: `cargo test --release --test suite kernels::staggered -- --nocapture`.

mod algebra;
mod laws;
mod on_ranks;
mod operator;
mod solvers;

use crate::compare::{assert_same_bits, distance, norm};
use crate::devices::{Choice, choices};
use crate::ranks;
use crate::reference::gauge::Gauge;
use crate::reference::staggered::{self as plain, Vector};
use crate::reference::staggered::{reals, vectors};
use crate::reference::su3::{self, M3, Rng};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{REACH, Staggered};
use hmc::field::{Domain, HostLinks, Kind, LINK_REALS, MatrixField, Spinor};
use hmc::lattice::{Boundary, Extents, LaneGrid, Partition, coordinates, volume};
use num_complex::Complex64;
use std::sync::Arc;

const BOUNDARY: [f64; 4] = [0.0, 0.5, 0.3, 1.0];
const LONG_REALS: [usize; 3] = [18, 14, 9];
const D: Precision = Precision::Double;
const S: Precision = Precision::Single;
const H: Precision = Precision::Half;

/// Half a step of 16-bit integers, in units of the greatest number.
const HALF_STEP: f64 = 1.0 / 65534.0;

/// The devices that a rank's box takes.
fn choices_of(partition: &Partition) -> Vec<Choice> {
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    choices(|lanes| {
        LaneGrid::choose(partition.local(), cut, lanes)
            .is_some_and(|grid| grid.is_thick(partition.local(), cut, REACH))
    })
}

/// One rank's domain on each device.
fn domains(extents: Extents) -> Vec<Arc<Domain>> {
    let whole = Partition::whole(extents).unwrap();
    choices_of(&whole).into_iter().map(|choice| choice.domain(whole, Arc::new(Solo))).collect()
}

/// One rank's domain of most lanes.
fn domain(extents: Extents) -> Arc<Domain> {
    domains(extents).pop().unwrap()
}

/// Links of an operator: X any matrices, N = naik times unitary ones.
#[derive(Clone)]
struct Links {
    fat: Gauge,
    long: Gauge,
    naik: f64,
}

impl Links {
    /// X of Gaussians, N of U(3) by the Haar measure.
    fn random(extents: Extents, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let mut fat = Gauge::unit(extents);
        let mut long = Gauge::unit(extents);
        for u in fat.links.iter_mut().flatten() {
            *u = std::array::from_fn(|_| std::array::from_fn(|_| 0.4 * rng.complex()));
        }
        for u in long.links.iter_mut().flatten() {
            *u = su3::scale(Complex64::from_polar(1.0, 7.0 * rng.uniform()), &rng.su3());
        }
        Self { fat, long, naik: -0.7 }
    }

    /// Near those of a smooth field: X near 9/8, N of unitary matrices near 1, naik -1/24.
    fn smooth(extents: Extents, roughness: f64, seed: u64) -> Self {
        let (mut fat, mut rng) = (Gauge::warm(extents, roughness, seed), Rng(seed + 1));
        for u in fat.links.iter_mut().flatten() {
            let noise: M3 = std::array::from_fn(|_| std::array::from_fn(|_| 0.05 * rng.complex()));
            *u = su3::add(&su3::scale(9.0 / 8.0, u), &noise);
        }
        let mut long = Gauge::warm(extents, roughness, seed + 2);
        for u in long.links.iter_mut().flatten() {
            *u = su3::scale(Complex64::from_polar(1.0, 0.3 * rng.uniform()), u);
        }
        Self { fat, long, naik: -1.0 / 24.0 }
    }

    fn plain(&self, boundary: [f64; 4]) -> plain::Staggered {
        let mut long = self.long.clone();
        long.links.iter_mut().flatten().for_each(|u| *u = su3::scale(self.naik, u));
        plain::Staggered::of_links(self.fat.clone(), long, boundary)
    }

    /// The operator on a rank's part of them.
    fn operator(
        &self,
        domain: &Arc<Domain>,
        (precision, long_reals): (Precision, usize),
        fields: usize,
        boundary: [f64; 4],
    ) -> Staggered {
        let field = |links: &Gauge| {
            let reals = ranks::part(&links.to_host().reals, domain.partition(), 4 * LINK_REALS);
            MatrixField::from_host(domain, &HostLinks { local: domain.partition().local(), reals }).unwrap()
        };
        let mut operator =
            Staggered::new(domain, precision, long_reals, fields, Boundary::phases(boundary)).unwrap();
        operator.update(&field(&self.fat), &field(&self.long), self.naik).unwrap();
        operator
    }
}

fn colour(domain: &Arc<Domain>, precision: Precision) -> Spinor {
    Spinor::colour(domain, precision).unwrap()
}

/// The sites of `parity` of a rank's `reals`, rounded to `precision`.
fn upload(domain: &Arc<Domain>, precision: Precision, parity: usize, reals: &[f64]) -> Spinor {
    let (mut double, mut x) = (colour(domain, D), colour(domain, precision));
    double.read_host(parity, reals).unwrap();
    x.copy_from(&double).unwrap();
    x
}

/// The sites of `parity` as doubles; zero on the others.
fn download(x: &Spinor, parity: usize) -> Vec<f64> {
    let mut double = colour(x.domain(), D);
    double.copy_from(x).unwrap();
    let mut reals = vec![0.0; 6 * volume(x.domain().partition().local())];
    double.write_host(parity, &mut reals).unwrap();
    reals
}

/// Several fields as one.
fn joined(all: &[Spinor]) -> Spinor {
    let (domain, precision) = (all[0].domain(), all[0].precision());
    let mut one = Spinor::of(domain, Kind::Colour, precision, all.len()).unwrap();
    all.iter().enumerate().for_each(|(n, x)| one.set_field(n, x).unwrap());
    one
}

/// Field number n of several.
fn taken(all: &Spinor, n: usize) -> Spinor {
    let mut one = colour(all.domain(), all.precision());
    all.field(n, &mut one).unwrap();
    one
}
