//! What a header says about the links, computed on the host: plaquette, link trace, unitarity.
//!
//! Slow and obvious; the program's own plaquette is a kernel (`operator`).

use super::IoError;
use crate::field::HostLinks;
use crate::lattice::{coordinates, shape, site, volume};
use crate::math::ExactSum;
use rayon::prelude::*;
use std::ops::Add;
use std::path::Path;

/// Sites summed at once: far fewer than an [`ExactSum`] takes between normalisations.
const BLOCK: usize = 1 << 12;

/// How far U U^dag may be from 1: single precision of any file's writer, with two digits to spare.
const UNITARY_TO: f64 = 1e-4;

/// A 3x3 complex matrix, row by row, as in a link's reals.
type Matrix = [f64; 18];

/// a b
fn times(a: &[f64], b: &[f64]) -> Matrix {
    let mut product = [0.0; 18];
    for (i, j, k) in indices() {
        let (x, y) = (&a[6 * i + 2 * k..], &b[6 * k + 2 * j..]);
        product[6 * i + 2 * j] += x[0] * y[0] - x[1] * y[1];
        product[6 * i + 2 * j + 1] += x[0] * y[1] + x[1] * y[0];
    }
    product
}

/// a b^dag
fn times_dagger(a: &[f64], b: &[f64]) -> Matrix {
    let mut product = [0.0; 18];
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

/// The sum of `value` over sites, to the same bits on any number of threads.
fn sum_over_sites(sites: usize, value: impl Fn(usize) -> f64 + Sync) -> f64 {
    (0..sites.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| (block * BLOCK..sites.min((block + 1) * BLOCK)).map(&value).collect::<ExactSum>())
        .reduce(ExactSum::default, Add::add)
        .value()
}

/// The average of (1/3) Re tr U over all links of the whole lattice.
pub(super) fn link_trace(links: &HostLinks) -> f64 {
    let sites = volume(links.local);
    let trace = |u: &[f64]| u[0] + u[8] + u[16];
    sum_over_sites(sites, |s| (0..4).map(|mu| trace(links.link(s, mu))).sum()) / (12.0 * sites as f64)
}

/// The average of (1/3) Re tr U_{mu nu} over the sites and planes of the whole lattice.
pub(super) fn plaquette(links: &HostLinks) -> f64 {
    let extents = links.local;
    let sites = volume(extents);
    let at = |s: usize| {
        let x = coordinates(extents, s);
        let forward = |mu: usize| {
            let mut y = x;
            y[mu] = (y[mu] + 1) % extents[mu];
            site(extents, y)
        };
        let plane = |mu: usize, nu: usize| {
            let there = times(links.link(s, mu), links.link(forward(mu), nu));
            let back = times(links.link(s, nu), links.link(forward(nu), mu));
            let p = times_dagger(&there, &back);
            p[0] + p[8] + p[16]
        };
        (0..3).flat_map(|mu| (mu + 1..4).map(move |nu| (mu, nu))).map(|(mu, nu)| plane(mu, nu)).sum()
    };
    sum_over_sites(sites, at) / (18.0 * sites as f64)
}

/// Refuses links that are not unitary to `UNITARY_TO`: what garbage and most flipped bits fail.
pub(super) fn require_unitary(path: &Path, links: &HostLinks) -> Result<(), IoError> {
    for (n, u) in links.reals.chunks_exact(18).enumerate() {
        let p = times_dagger(u, u);
        for (k, value) in p.iter().enumerate() {
            let off = value - f64::from(u8::from(k % 8 == 0));
            if off.is_nan() || off.abs() > UNITARY_TO {
                let x = shape(coordinates(links.local, n / 4));
                let what = format!("link {} of site {x} of this rank's box is not unitary", n % 4);
                return Err(IoError::damaged(path, what));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_links_have_plaquette_one() {
        let links = HostLinks::unit([2, 2, 2, 4]);
        assert_eq!((plaquette(&links), link_trace(&links)), (1.0, 1.0));
        assert!(require_unitary(Path::new("x"), &links).is_ok());
        let mut bad = links;
        bad.reals[7] = f64::NAN;
        assert!(require_unitary(Path::new("x"), &bad).is_err());
    }
}
