//! Numbers against numbers: what is found is printed, and fails where it is too far off.

use crate::reference::gauge::LinkField;
use crate::reference::su3;

/// `|x|`
pub fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// `|a - b| / |b|`
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()) / norm(b)
}

pub fn assert_same_bits(a: &[f64], b: &[f64], what: &str) {
    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(a) == bits(b), "{what}: other bits, distance {:.1e}", distance(a, b));
}

/// `|found - expected| <= tolerance max(|expected|, floor)`
pub fn close(what: &str, found: f64, expected: f64, tolerance: f64, floor: f64) {
    let error = (found - expected).abs() / expected.abs().max(floor);
    println!("{what}: {found:.16e} instead of {expected:.16e}, error {error:.1e}");
    assert!(error <= tolerance, "{what}: {found:.17e} is not {expected:.17e} to {tolerance:e}");
}

/// `|found - expected| <= tolerance |expected|`
pub fn relative(what: &str, found: f64, expected: f64, tolerance: f64) {
    close(what, found, expected, tolerance, f64::MIN_POSITIVE);
}

/// The worst link's `|found - expected|`, in units of the root mean square `|expected|`.
pub fn close_links(what: &str, found: &LinkField, expected: &LinkField, tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let pairs = || found.iter().flatten().zip(expected.iter().flatten());
    let worst = pairs().map(|(a, b)| su3::norm2(&su3::sub(a, b)).sqrt()).fold(0.0, f64::max);
    let size = (pairs().map(|(_, b)| su3::norm2(b)).sum::<f64>() / (4 * expected.len()) as f64).sqrt();
    println!("{what}: worst {:.1e}", worst / size);
    assert!(worst <= tolerance * size, "{what}: {worst:e} of {size:e}");
}
