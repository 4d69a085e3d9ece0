//! Plaquette and link trace of the whole lattice, on the host, where every rank has a box: for headers.
//!
//! Slow and obvious; the program's own plaquette is a kernel (`operator`). A rank gets the first layer of links of
//! each forward neighbour. The sums are of integers: the same bits on any grid.

use super::Precision;
use super::bytes::Endian;
use crate::comm::{Comm, Message};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Extents, Partition, coordinates, site, volume};
use crate::math::ExactSum;
use rayon::prelude::*;
use std::ops::Add;

/// Sites summed at once: far fewer than an [`ExactSum`] takes between normalisations.
const BLOCK: usize = 1 << 12;

/// Averages over the lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Means {
    /// Of (1/3) Re tr U_{mu nu} over sites and planes.
    pub(super) plaquette: f64,
    /// As openQCD has it: between walls all plaquettes count, and the average is over six planes of all sites.
    pub(super) openqcd_plaquette: f64,
    /// Of (1/3) Re tr U over links.
    pub(super) link_trace: f64,
}

/// The averages; collective.
pub(super) fn means(links: &HostLinks, partition: &Partition, comm: &dyn Comm) -> Means {
    let all = Boxed::new(links, partition, comm);
    let (sites, whole) = (volume(links.local), volume(partition.global) as f64);
    // Between walls, plaquettes within them count for half, and no others leave the lattice.
    let extent = partition.time_extent() as f64 / partition.global[3] as f64;
    let ends = |x: Extents| partition.time.is_wall(x[3] + partition.offset()[3], partition.global[3]);
    let weight = |x, nu| if nu < 3 && ends(x) { 0.5 } else { 1.0 };
    let planes = || (0..3).flat_map(|mu| (mu + 1..4).map(move |nu| (mu, nu)));
    let sum = |weight: &(dyn Fn(Extents, usize) -> f64 + Sync)| {
        let plaquettes = |s: usize| {
            let x = coordinates(links.local, s);
            planes().map(|(mu, nu)| weight(x, nu) * all.plaquette(x, mu, nu)).sum()
        };
        sum_over_sites(sites, comm, plaquettes) / (18.0 * whole)
    };
    // Those within a fixed upper wall are 1, three of six planes on a slice.
    let upper = if partition.time.given()[1].is_some() { 0.5 / partition.global[3] as f64 } else { 0.0 };
    let plaquette = (sum(&weight) + 0.5 * upper) / extent;
    let trace = |u: &[f64]| u[0] + u[8] + u[16];
    let traces = |s: usize| (0..4).map(|mu| trace(links.link(s, mu))).sum();
    Means {
        plaquette,
        openqcd_plaquette: if partition.time.has_walls() { sum(&|_, _| 1.0) + upper } else { plaquette },
        link_trace: sum_over_sites(sites, comm, traces) / (12.0 * whole),
    }
}

/// The sum of `value` over the sites of all ranks, to the same bits on any number of threads and ranks.
fn sum_over_sites(sites: usize, comm: &dyn Comm, value: impl Fn(usize) -> f64 + Sync) -> f64 {
    let mut words = (0..sites.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| (block * BLOCK..sites.min((block + 1) * BLOCK)).map(&value).collect::<ExactSum>())
        .reduce(ExactSum::default, Add::add)
        .words();
    comm.sum(&mut words);
    ExactSum::from_words(words).value()
}

/// A rank's links, and of each forward neighbour the layer that touches them.
struct Boxed<'a> {
    links: &'a HostLinks,
    /// Four links per site; none in directions that are not cut.
    layers: [Vec<f64>; 4],
    /// The slice that is a fixed upper wall, as this rank counts, and its links in space.
    upper: Option<(usize, Vec<f64>)>,
}

impl<'a> Boxed<'a> {
    fn new(links: &'a HostLinks, partition: &Partition, comm: &dyn Comm) -> Self {
        let cut: Vec<usize> = (0..4).filter(|&mu| partition.is_cut(mu)).collect();
        let own: Vec<Vec<u8>> = cut.iter().map(|&mu| first_layer(links, mu)).collect();
        let mut theirs: Vec<Vec<u8>> = own.iter().map(|bytes| vec![0; bytes.len()]).collect();
        let sends = (0..).zip(cut.iter().zip(&own)).map(|(tag, (&mu, bytes))| Message {
            peer: partition.neighbour(mu, false),
            tag,
            bytes: &bytes[..],
        });
        let receives = (0..).zip(cut.iter().zip(&mut theirs)).map(|(tag, (&mu, bytes))| Message {
            peer: partition.neighbour(mu, true),
            tag,
            bytes: &mut bytes[..],
        });
        comm.exchange(&sends.collect::<Vec<_>>(), &mut receives.collect::<Vec<_>>());
        let mut layers: [Vec<f64>; 4] = Default::default();
        for (mu, bytes) in cut.into_iter().zip(theirs) {
            Endian::Little.decode(Precision::Double, &bytes, &mut layers[mu]);
        }
        let time = partition.time;
        let upper = time.given()[1].map(|_| {
            let mut reals = vec![0.0; 3 * LINK_REALS];
            for (k, z) in time.given_links(partition.global)[18..].chunks_exact(2).enumerate() {
                reals[k / 3 * LINK_REALS + k % 3 * 8..][..2].copy_from_slice(z);
            }
            (partition.global[3] - partition.offset()[3], reals)
        });
        Self { links, layers, upper }
    }

    /// Link `nu` of the site one step in direction `mu` from `x`.
    fn forward(&self, mut x: Extents, mu: usize, nu: usize) -> &[f64] {
        let local = self.links.local;
        x[mu] += 1;
        if let Some((_, reals)) = self.upper.as_ref().filter(|(slice, _)| x[3] == *slice) {
            return &reals[nu * LINK_REALS..][..LINK_REALS];
        }
        if x[mu] < local[mu] {
            return self.links.link(site(local, x), nu);
        }
        x[mu] = 0;
        if self.layers[mu].is_empty() {
            return self.links.link(site(local, x), nu);
        }
        &self.layers[mu][(site(layer_of(local, mu), x) * 4 + nu) * LINK_REALS..][..LINK_REALS]
    }

    /// Re tr U_mu(x) U_nu(x + mu) [U_nu(x) U_mu(x + nu)]^dag
    fn plaquette(&self, x: Extents, mu: usize, nu: usize) -> f64 {
        let here = site(self.links.local, x);
        let there = times(self.links.link(here, mu), self.forward(x, mu, nu));
        let back = times(self.links.link(here, nu), self.forward(x, nu, mu));
        let p = times_dagger(&there, &back);
        p[0] + p[8] + p[16]
    }
}

/// The extents of a layer across `mu`.
fn layer_of(mut local: Extents, mu: usize) -> Extents {
    local[mu] = 1;
    local
}

/// The links at x_mu = 0 as bytes.
fn first_layer(links: &HostLinks, mu: usize) -> Vec<u8> {
    let layer = layer_of(links.local, mu);
    let mut bytes = Vec::with_capacity(volume(layer) * 4 * LINK_REALS * 8);
    for s in 0..volume(layer) {
        let place = site(links.local, coordinates(layer, s)) * 4 * LINK_REALS;
        let reals = &links.reals[place..place + 4 * LINK_REALS];
        Endian::Little.encode(Precision::Double, reals, &mut bytes);
    }
    bytes
}

/// A 3x3 complex matrix, row by row, as in a link's reals.
type Matrix = [f64; LINK_REALS];

/// a b
fn times(a: &[f64], b: &[f64]) -> Matrix {
    let mut product = [0.0; LINK_REALS];
    for (i, j, k) in indices() {
        let (x, y) = (&a[6 * i + 2 * k..], &b[6 * k + 2 * j..]);
        product[6 * i + 2 * j] += x[0] * y[0] - x[1] * y[1];
        product[6 * i + 2 * j + 1] += x[0] * y[1] + x[1] * y[0];
    }
    product
}

/// a b^dag
pub(super) fn times_dagger(a: &[f64], b: &[f64]) -> Matrix {
    let mut product = [0.0; LINK_REALS];
    for (i, j, k) in indices() {
        let (x, y) = (&a[6 * i + 2 * k..], &b[6 * j + 2 * k..]);
        product[6 * i + 2 * j] += x[0] * y[0] + x[1] * y[1];
        product[6 * i + 2 * j + 1] += x[1] * y[0] - x[0] * y[1];
    }
    product
}

fn indices() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..27).map(|n| (n / 9, n / 3 % 3, n % 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_links_have_plaquette_one() {
        let links = HostLinks::unit([2, 2, 2, 4]);
        assert_eq!(
            means(&links, &Partition::whole(links.local).unwrap(), &crate::comm::Solo),
            Means { plaquette: 1.0, openqcd_plaquette: 1.0, link_trace: 1.0 }
        );
    }
}
