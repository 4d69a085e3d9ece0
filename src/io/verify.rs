//! Whether links are what their file says, beyond its checksum: matrices of SU(3), with the plaquette and the link trace of the
//! header.
//!
//! One flipped bit of a real moves U U^dag as far as the real, unless the link is diagonal there. So where no checksum is, a
//! link that is much less unitary than the others is told. It is refused by a bound alone that is the same for all programs:
//! those that do not make links unitary again leave some links a hundred times further off than others.

use super::whole::{means, times_dagger};
use super::{Header, IoError, Precision, Verified};
use crate::comm::{Comm, agree};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Extents, Partition, coordinates, volume};
use num_complex::Complex64;
use rayon::prelude::*;
use std::path::Path;

/// How far U U^dag may be from 1: single precision of any file's writer, with two digits to spare.
const UNITARY_TO: f64 = 1e-4;
/// The same where no checksum is: what years of molecular dynamics without projection leave in double precision, and what a
/// few roundings leave in single.
const DOUBLE_TO: f64 = 1e-8;
const SINGLE_TO: f64 = 1e-5;
/// How far links of a fixed wall may be from those given: single precision of any file's writer.
const GIVEN_TO: f64 = 1e-6;
/// det U moves by 3/2 of what U U^dag does.
const DETERMINANT: f64 = 2.0;

/// The binary exponent of an odd link's violation is so much above the median's: 16 to 32 times the median and more. In
/// seven configurations of three programs, of 10^3 to 10^4 links, the greatest is 2 to 5 times the median; if elements are
/// normally distributed, less than twice that among 10^10 links.
const OUTLIER: usize = 5;

/// Exponents that are told apart: from 2^-64 to 2^-1.
const EXPONENTS: usize = 64;

/// A number that a header says of the links.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    of: Quantity,
    /// The key in the file.
    key: &'static str,
    /// As it stands there.
    text: String,
    pub(super) value: f64,
    /// How far off it is at most, if sums are rounded as rarely as ours; more is told.
    within: f64,
    /// How far off it may be, if it is one sum of all terms, each of which rounds it.
    at_most: f64,
}

impl Claim {
    /// A number that is stored with all of its bits.
    pub(super) fn exact(
        of: Quantity,
        key: &'static str,
        value: f64,
        precision: Precision,
        extents: Extents,
    ) -> Self {
        let within = rounding(precision, extents);
        let at_most = within + running(precision, extents);
        Self { of, key, text: format!("{value:?}"), value, within, at_most }
    }

    /// A number of a text header, known to half a unit of its last printed digit; `None` if it is not a number.
    pub(super) fn printed(
        of: Quantity,
        key: &'static str,
        text: &str,
        precision: Precision,
        extents: Extents,
    ) -> Option<Self> {
        let (value, half_a_digit) = printed(text)?;
        let claim = Self::exact(of, key, value, precision, extents);
        let [within, at_most] = [claim.within, claim.at_most].map(|off| off + half_a_digit);
        Some(Self { text: text.to_owned(), within, at_most, ..claim })
    }

    /// Whether signs that cancel in plaquettes do not change it.
    pub(super) fn is_of_plaquettes(&self) -> bool {
        self.of != Quantity::LinkTrace
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Plaquette,
    OpenQcdPlaquette,
    LinkTrace,
}

/// Refuses links that are not in SU(3), or have not what the header claims; collective. The answer is what is odd about them,
/// in one line each.
pub(super) fn verify(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    header: &Header,
    claims: &[Claim],
) -> Result<Vec<String>, IoError> {
    let off = |(n, link)| if is_of_lattice(n, partition) { violation(link) } else { 0.0 };
    let off: Vec<f64> = links.reals.par_chunks_exact(LINK_REALS).enumerate().map(off).collect();
    let mut notes = Vec::new();
    agree(comm, require_unitary(path, &off, partition, UNITARY_TO))?;
    let mut bound = UNITARY_TO;
    if header.verified != Verified::Checksum {
        let usual = median_exponent(&off, comm).max(floor(header.precision));
        // Links of single precision in a file of double are as unitary as those.
        bound = if usual > exponent(DOUBLE_TO / 10.0) { SINGLE_TO } else { DOUBLE_TO };
        agree(comm, require_unitary(path, &off, partition, bound))?;
        notes.extend(outlier(&off, comm, usual));
    }
    require_special(path, links, partition, comm, DETERMINANT * bound)?;
    if claims.is_empty() {
        return Ok(notes);
    }
    let found = means(links, partition, comm);
    for Claim { of, key, text, value, within, at_most } in claims {
        let found = match of {
            Quantity::Plaquette => found.plaquette,
            Quantity::OpenQcdPlaquette => found.openqcd_plaquette,
            Quantity::LinkTrace => found.link_trace,
        };
        let off = (found - value).abs();
        // Comparisons with NaN are false.
        if !is_at_most(off, *at_most) {
            return Err(IoError::damaged(path, format!("{key} = {text} in the header, {found:?} found")));
        }
        if off > *within {
            notes.push(format!(
                "{key} = {text} in the header, {found:?} found: off by {off:.1e}, as one sum of all may be"
            ));
        }
    }
    Ok(notes)
}

/// Refuses links within a fixed lower wall that are not those given, beyond single precision; collective.
pub(super) fn require_given(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(), IoError> {
    if partition.time.given()[0].is_none() {
        return Ok(());
    }
    let given = partition.time.given_links(partition.global);
    let off = |(n, link): (usize, &[f64])| {
        let (t, mu) = (coordinates(links.local, n / 4)[3] + partition.offset()[3], n % 4);
        if t > 0 || mu == 3 {
            return 0.0;
        }
        let expected = |k: usize| if k % 8 < 2 { given[6 * mu + k / 8 * 2 + k % 8] } else { 0.0 };
        link.iter().enumerate().map(|(k, real)| (real - expected(k)).abs()).fold(0.0, f64::max)
    };
    let off = links.reals.par_chunks_exact(LINK_REALS).enumerate().map(off).reduce(|| 0.0, f64::max);
    let off = comm.max(off);
    if off < GIVEN_TO {
        return Ok(());
    }
    let what =
        format!("links in space on the first slice are not those of {}: off by {off:.1e}", partition.time);
    Err(IoError::malformed(path, what))
}

/// Whether a link of this rank's box leads to a site of the lattice.
pub(super) fn is_of_lattice(n: usize, partition: &Partition) -> bool {
    let t = coordinates(partition.local(), n / 4)[3] + partition.offset()[3];
    partition.has_link(n % 4, t)
}

/// Whether all links are unitary or zero, so that their bytes were read in the right order; collective.
pub(super) fn are_unitary(links: &HostLinks, comm: &dyn Comm) -> bool {
    let is_off =
        |link: &[f64]| link.iter().any(|real| *real != 0.0) && !is_at_most(violation(link), UNITARY_TO);
    let any = links.reals.par_chunks_exact(LINK_REALS).any(is_off);
    comm.max(f64::from(u8::from(any))) == 0.0
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

fn require_unitary(path: &Path, off: &[f64], partition: &Partition, bound: f64) -> Result<(), IoError> {
    let Some(n) = off.iter().position(|&x| !is_at_most(x, bound)) else { return Ok(()) };
    let link = place(n, partition);
    Err(IoError::damaged(
        path,
        format!("{link} is not unitary: U U^dag is off by {:.1e}, at most {bound:.0e} is taken", off[n]),
    ))
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

/// A word about links that are much less unitary than half of all; collective.
fn outlier(off: &[f64], comm: &dyn Comm, usual: usize) -> Option<String> {
    let most = comm.max(off.iter().copied().fold(0.0, f64::max));
    // Its own exponent is no less, and below EXPONENTS.
    let bound = 0.5f64.powi(i32::try_from(EXPONENTS.checked_sub(usual + OUTLIER)?).ok()?);
    (exponent(most) >= usual + OUTLIER).then(|| {
        format!("a link is less unitary than the others: U U^dag is off by {most:.1e}, more than {bound:.1e} is unusual here")
    })
}

/// What phases the determinants show.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phases {
    None,
    /// All links of a direction that start from one slice, and no others, have the sign of an antiperiodic boundary.
    Boundary {
        mu: usize,
        at: usize,
    },
    /// So many links have another sign or phase.
    Some {
        minus: i64,
        other: i64,
    },
}

/// The phases of all links; collective. Each determinant is 1, -1 or another to `bound`.
fn phases(links: &HostLinks, partition: &Partition, comm: &dyn Comm, bound: f64) -> Phases {
    let is = |link: &[f64], sign: f64| {
        let det = determinant(link);
        is_at_most((det.re - sign).abs().max(det.im.abs()), bound)
    };
    let all = links.reals.par_chunks_exact(LINK_REALS).enumerate();
    let odd: Vec<(usize, bool)> = all
        .filter(|(n, link)| is_of_lattice(*n, partition) && !is(link, 1.0))
        .map(|(n, link)| (n, is(link, -1.0)))
        .collect();
    // Signs by direction and slice, and other phases.
    let starts = [0, 1, 2, 3].map(|mu| partition.global[..mu].iter().sum::<usize>());
    let slices: usize = partition.global.iter().sum();
    let mut counts = vec![0_i64; slices + 1];
    for (n, is_minus) in odd {
        let (mu, x) = (n % 4, coordinates(links.local, n / 4));
        counts[if is_minus { starts[mu] + x[mu] + partition.offset()[mu] } else { slices }] += 1;
    }
    comm.sum(&mut counts);
    let other = counts[slices];
    let minus: i64 = counts[..slices].iter().sum();
    if (minus, other) == (0, 0) {
        return Phases::None;
    }
    for (mu, start) in starts.into_iter().enumerate() {
        let extent = partition.global[mu];
        let all = i64::try_from(volume(partition.global) / extent).unwrap_or(i64::MAX);
        let full = (0..extent).find(|at| counts[start + at] == all);
        if let Some(at) = full.filter(|_| (minus, other) == (all, 0)) {
            return Phases::Boundary { mu, at };
        }
    }
    Phases::Some { minus, other }
}

/// Refuses links whose determinant is not 1, with what they may come from; collective.
fn require_special(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    bound: f64,
) -> Result<(), IoError> {
    let all = i64::try_from(volume(partition.global)).unwrap_or(i64::MAX / 3);
    let what = match phases(links, partition, comm, bound) {
        Phases::None => return Ok(()),
        Phases::Boundary { mu, at } => {
            let cure =
                if mu == 3 { "`hmc convert --remove-boundary-sign` takes it out" } else { "take it out" };
            let direction = ["x", "y", "z", "t"][mu];
            format!(
                "det U = -1 on all links in {direction} from {direction} = {at}: the sign of an antiperiodic boundary is in the \
                 links; {cure}"
            )
        }
        // These signs are on three eighths of the links, or as many with another choice of directions.
        Phases::Some { minus, other: 0 }
            if (all..3 * all).contains(&minus) && means(links, partition, comm).plaquette < 0.0 =>
        {
            format!(
                "det U = -1 on {minus} links and a negative plaquette: phases of staggered quarks are in the links; write them \
             without"
            )
        }
        Phases::Some { minus, other } => format!(
            "not in SU(3): det U is not 1 on {} links (-1 on {minus} of them); they are of U(3), or have phases of a boundary \
             or a chemical potential",
            minus + other
        ),
    };
    Err(IoError::malformed(path, what))
}

/// Takes the sign of an antiperiodic boundary in time out of the links; collective.
///
/// # Errors
/// There is none.
pub(super) fn remove_boundary_sign(
    path: &Path,
    links: &mut HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
) -> Result<(), IoError> {
    let Phases::Boundary { mu: 3, at } = phases(links, partition, comm, UNITARY_TO) else {
        let what =
            "--remove-boundary-sign: its links do not have the sign of an antiperiodic boundary in time";
        return Err(IoError::malformed(path, what));
    };
    let (local, offset) = (links.local, partition.offset()[3]);
    for (n, link) in links.reals.chunks_exact_mut(LINK_REALS).enumerate() {
        if n % 4 == 3 && coordinates(local, n / 4)[3] + offset == at {
            link.iter_mut().for_each(|x| *x = -*x);
        }
    }
    Ok(())
}

fn determinant(u: &[f64]) -> Complex64 {
    let at = |i: usize, j: usize| Complex64::new(u[6 * i + 2 * j], u[6 * i + 2 * j + 1]);
    let minor = |k: usize| {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        at(0, i) * at(1, j) - at(0, j) * at(1, i)
    };
    (0..3).map(|k| minor(k) * at(2, k)).sum()
}

/// A number of a text header, known to half a unit of its last printed digit; `None` if it is not a number.
fn printed(text: &str) -> Option<(f64, f64)> {
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
fn rounding(precision: Precision, extents: Extents) -> f64 {
    match precision {
        Precision::Single => 32.0 * 0.5 * f64::from(f32::EPSILON),
        Precision::Double => (28.0 + (6.0 * volume(extents) as f64).sqrt()) * 0.5 * f64::EPSILON,
    }
}

/// How far one running sum of 6 V terms takes it besides, each of which rounds the sum by an epsilon at most.
fn running(precision: Precision, extents: Extents) -> f64 {
    match precision {
        Precision::Single => 0.0,
        Precision::Double => 6.0 * volume(extents) as f64 * f64::EPSILON,
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
            let off = [0.0, violation(&bad)];
            let error =
                require_unitary(Path::new("x"), &off, &partition, UNITARY_TO).unwrap_err().to_string();
            let told =
                "x: damaged: link y of site [0, 0, 0, 0] (x, y, z, t) is not unitary: U U^dag is off by NaN";
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn a_link_far_above_the_median_is_told() {
        let is_told = |off: &[f64]| {
            let usual = median_exponent(off, &Solo).max(floor(Precision::Double));
            outlier(off, &Solo, usual).is_some()
        };
        let with = |usual: f64, one: f64| [vec![usual; 63], vec![one]].concat();
        for usual in [0.0_f64, 1e-17, 2.3e-16, 3e-13, 1e-7] {
            let usual_or_floor = usual.max(2.3e-16);
            assert!(!is_told(&with(usual, 10.0 * usual_or_floor)), "{usual:e}");
            assert!(is_told(&with(usual, 33.0 * usual_or_floor)), "{usual:e}");
        }
        assert!(!is_told(&[0.4; 64]));
        assert_eq!((exponent(0.0), exponent(1.0), exponent(2f64.powi(-64))), (0, EXPONENTS - 1, 0));
    }

    #[test]
    fn phases_of_determinants_are_told_apart() {
        let local = [2, 4, 2, 6];
        let partition = Partition::whole(local).unwrap();
        let phases = |change: &dyn Fn(usize, Extents) -> bool| {
            let mut links = HostLinks::unit(local);
            for (n, link) in links.reals.chunks_exact_mut(LINK_REALS).enumerate() {
                if change(n % 4, coordinates(local, n / 4)) {
                    link.iter_mut().for_each(|x| *x = -*x);
                }
            }
            super::phases(&links, &partition, &Solo, 1e-8)
        };
        assert_eq!(phases(&|_, _| false), Phases::None);
        assert_eq!(phases(&|mu, x| mu == 3 && x[3] == 5), Phases::Boundary { mu: 3, at: 5 });
        assert_eq!(phases(&|mu, x| mu == 1 && x[1] == 0), Phases::Boundary { mu: 1, at: 0 });
        assert_eq!(phases(&|mu, x| mu == 3 && x[3] > 3), Phases::Some { minus: 32, other: 0 });
        let mut links = HostLinks::unit(local);
        links.reals[..2].copy_from_slice(&[0.0, 1.0]);
        assert_eq!(super::phases(&links, &partition, &Solo, 1e-8), Phases::Some { minus: 0, other: 1 });
    }
}
