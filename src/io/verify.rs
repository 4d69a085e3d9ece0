//! Whether links are what their file says, beyond its checksum: unitary, none of them much less than the others, with the
//! plaquette and the link trace of the header.
//!
//! One flipped bit of a real moves U U^dag as far as the real, unless the link is diagonal there. So where no checksum is,
//! a link that is less unitary than the others tells of all but the last bits.

use super::whole::{means, times_dagger};
use super::{Header, IoError, Precision, Verified};
use crate::comm::{Comm, agree};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Extents, Partition, coordinates, volume};
use rayon::prelude::*;
use std::path::Path;

/// How far U U^dag may be from 1: single precision of any file's writer, with two digits to spare.
const UNITARY_TO: f64 = 1e-4;

/// The binary exponent of a damaged link's violation is so much above the median's: 16 to 32 times the median and more. In
/// seven configurations of three programs, of 10^3 to 10^4 links, the greatest is 2 to 5 times the median; if elements are
/// normally distributed, less than twice that among 10^10 links.
const OUTLIER: usize = 5;

/// Exponents that are told apart: from 2^-64 to 2^-1.
const EXPONENTS: usize = 64;

/// A number that a header says of the links.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) of: Quantity,
    /// The key in the file.
    pub(super) key: &'static str,
    /// As it stands there.
    pub(super) text: String,
    pub(super) value: f64,
    /// How far off it may be.
    pub(super) within: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Plaquette,
    LinkTrace,
}

/// Refuses links that are not unitary, that are outliers if there is no checksum, or have not what the header claims;
/// collective.
pub(super) fn verify(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    header: &Header,
    claims: &[Claim],
) -> Result<(), IoError> {
    let off: Vec<f64> = links.reals.par_chunks_exact(LINK_REALS).map(violation).collect();
    agree(comm, require_unitary(path, &off, partition))?;
    if header.verified != Verified::Checksum {
        let usual = median_exponent(&off, comm).max(floor(header.precision));
        agree(comm, require_equally_unitary(path, &off, partition, usual))?;
    }
    if claims.is_empty() {
        return Ok(());
    }
    let found = means(links, partition, comm);
    for Claim { of, key, text, value, within } in claims {
        let found = match of {
            Quantity::Plaquette => found.plaquette,
            Quantity::LinkTrace => found.link_trace,
        };
        // Comparisons with NaN are false.
        if !is_at_most((found - value).abs(), *within) {
            return Err(IoError::damaged(path, format!("{key} = {text} in the header, {found:?} found")));
        }
    }
    Ok(())
}

/// False for NaN.
fn is_at_most(x: f64, bound: f64) -> bool {
    x <= bound
}

/// The greatest real or imaginary part of U U^dag - 1, or a NaN among them.
fn violation(u: &[f64]) -> f64 {
    let product = times_dagger(u, u);
    let parts = product.iter().enumerate().map(|(k, x)| (x - f64::from(u8::from(k % 8 == 0))).abs());
    parts.fold(0.0, |most: f64, x| if most.is_nan() || x <= most { most } else { x })
}

/// The place of a link of this rank's box in the lattice.
fn place(n: usize, partition: &Partition) -> String {
    let (x, offset) = (coordinates(partition.local(), n / 4), partition.offset());
    let x: Extents = std::array::from_fn(|mu| x[mu] + offset[mu]);
    format!("link {} of site {x:?} (x, y, z, t)", ["x", "y", "z", "t"][n % 4])
}

fn require_unitary(path: &Path, off: &[f64], partition: &Partition) -> Result<(), IoError> {
    match off.iter().position(|&x| !is_at_most(x, UNITARY_TO)) {
        None => Ok(()),
        Some(n) => Err(IoError::damaged(path, format!("{} is not unitary", place(n, partition)))),
    }
}

/// The number of a binary exponent, from 0.
fn exponent(x: f64) -> usize {
    (((x.to_bits() >> 52) & 0x7ff) as usize).saturating_sub(1023 - EXPONENTS).min(EXPONENTS - 1)
}

/// Unit links violate nothing: what their file's precision makes of others is taken instead.
fn floor(precision: Precision) -> usize {
    exponent(match precision {
        Precision::Single => f64::from(f32::EPSILON),
        Precision::Double => f64::EPSILON,
    })
}

/// The exponent that half of all links do not exceed; collective. The counts are integers, so it is the same on any grid.
fn median_exponent(off: &[f64], comm: &dyn Comm) -> usize {
    let mut counts = [0_i64; EXPONENTS];
    off.iter().for_each(|&x| counts[exponent(x)] += 1);
    comm.sum(&mut counts);
    let half = counts.iter().sum::<i64>() / 2;
    let mut below = 0;
    let is_enough = |count: &i64| {
        below += count;
        below > half
    };
    counts.iter().position(is_enough).unwrap_or_default()
}

fn require_equally_unitary(
    path: &Path,
    off: &[f64],
    partition: &Partition,
    usual: usize,
) -> Result<(), IoError> {
    let Some(n) = off.iter().position(|&x| exponent(x) >= usual + OUTLIER) else { return Ok(()) };
    // The link's own exponent is no less, and below EXPONENTS.
    let bound = 0.5f64.powi(i32::try_from(EXPONENTS - usual - OUTLIER).expect("at most 64"));
    let what = format!(
        "{} is less unitary than the others: U U^dag is off by {:.1e}, theirs by less than {bound:.1e}",
        place(n, partition),
        off[n]
    );
    Err(IoError::damaged(path, what))
}

/// A number of a text header, known to half a unit of its last printed digit; `None` if it is not a number.
pub(super) fn printed(text: &str) -> Option<(f64, f64)> {
    let value: f64 = text.parse().ok().filter(|x: &f64| x.is_finite())?;
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let exponent: i32 = exponent.parse().ok()?;
    Some((value, 0.5 * 10f64.powi(exponent.saturating_sub(i32::try_from(decimals).ok()?))))
}

/// How far rounding takes a plaquette or a link trace, as another program computed it, from ours; u is half an epsilon.
///
/// The links: each element is rounded by u at most, which moves (1/3) Re tr of a product of four by 4 u. The products: three
/// of matrices, with sums of six products of reals, by some 6 u each. So 22 u, and 28 u with a third row that is made from
/// the others, if no two errors cancel. The sum: in double 6 V terms in any order, each of which rounds the sum by u at most, to
/// either side, so sqrt(6 V) u. Programs of single precision sum in double or in parts, for which there are 4 u.
pub(super) fn rounding(precision: Precision, extents: Extents) -> f64 {
    match precision {
        Precision::Single => 32.0 * 0.5 * f64::from(f32::EPSILON),
        Precision::Double => (28.0 + (6.0 * volume(extents) as f64).sqrt()) * 0.5 * f64::EPSILON,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Solo;

    #[test]
    fn printed_digits_say_how_much_is_known() {
        let close = |text: &str, value: f64, half: f64| {
            let (x, h) = printed(text).unwrap();
            assert!(x == value && (h / half - 1.0).abs() < 1e-12, "{text}: {x} {h}");
        };
        close("0.0382422893", 0.038_242_289_3, 5e-11);
        close("-4.87e-04", -4.87e-4, 5e-7);
        close("1", 1.0, 0.5);
        close("+2.5E1", 25.0, 0.5);
        for bad in ["", "nan", "inf", "0.5x", "1e", "1e999"] {
            assert!(printed(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_unitary() {
        let unit = HostLinks::unit([2; 4]);
        let partition = Partition::whole([2; 4]).unwrap();
        assert_eq!(violation(unit.link(0, 0)), 0.0);
        for at in 0..LINK_REALS {
            let mut bad = unit.link(0, 0).to_vec();
            bad[at] = f64::NAN;
            let error = require_unitary(Path::new("x"), &[0.0, violation(&bad)], &partition).unwrap_err();
            assert_eq!(
                error.to_string(),
                "x: damaged: link y of site [0, 0, 0, 0] (x, y, z, t) is not unitary"
            );
        }
    }

    #[test]
    fn a_link_far_above_the_median_is_an_outlier() {
        let partition = Partition::whole([2; 4]).unwrap();
        let is_refused = |off: &[f64]| {
            let usual = median_exponent(off, &Solo).max(floor(Precision::Double));
            require_equally_unitary(Path::new("x"), off, &partition, usual).is_err()
        };
        let with = |usual: f64, one: f64| [vec![usual; 63], vec![one]].concat();
        for usual in [0.0_f64, 1e-17, 2.3e-16, 3e-13, 1e-7] {
            let usual_or_floor = usual.max(2.3e-16);
            assert!(!is_refused(&with(usual, 10.0 * usual_or_floor)), "{usual:e}");
            assert!(is_refused(&with(usual, 33.0 * usual_or_floor)), "{usual:e}");
        }
        assert_eq!((exponent(0.0), exponent(1.0), exponent(2f64.powi(-64))), (0, EXPONENTS - 1, 0));
    }
}
