//! The Polyakov loop: mean over space of `tr prod_t U_t(x, t) / 3`.
//!
//! Lines are extended one link at a time, W(x) <- U_t(x) W(x + t), from every t at once: the products
//! are the same whatever the cut. The trace does not depend on where a line starts, so the mean is
//! over all sites.

use crate::device::kernels::ExtendLine;
use crate::field::{FieldError, MatrixField};
use num_complex::Complex64;

/// Mean Polyakov loop.
///
/// # Errors
/// The device is lost.
pub fn polyakov(links: &MatrixField) -> Result<Complex64, FieldError> {
    let domain = links.domain();
    let (mut line, mut longer) = (MatrixField::new(domain, 1)?, MatrixField::new(domain, 1)?);
    let mut trace = Complex64::default();
    for length in 0..domain.partition().global[3] {
        let kernel = ExtendLine {
            g: domain.geometry(),
            links: links.links(),
            line: (length > 0).then(|| line.matrices(1)),
            longer: longer.matrices_mut(1),
        };
        let sums = domain.sum(&kernel, 2 * domain.half())?.sums;
        trace = Complex64::new(sums[0].value(), sums[1].value());
        longer.fill_borders_to(1)?;
        std::mem::swap(&mut line, &mut longer);
    }
    Ok(trace / domain.global_volume())
}
