//! Derivatives of a quark's operator in the chemical potential mu, at mu = 0. Hops of n sites forward in time have the factor
//! e^{n mu}, those backward e^{-n mu} (Hasenfratz, Karsch, Phys. Lett. B 125 (1983) 308).

use super::{Fields, QuarkError};
use crate::field::{EVEN, FieldError, LINK_REALS, MatrixField, ODD, Spinor};
use num_complex::Complex64;

/// `d^n M / d mu^n`.
pub trait HopDerivative {
    /// Applies it to every field.
    fn apply(&mut self, out: &mut Fields, x: &Fields) -> Result<(), QuarkError>;
}

/// The links in time, zero in other directions. For odd `order` they are multiplied by i: then hops forward have the factor i
/// and hops backward -i, so that [`apply`] makes their difference.
pub fn links_in_time(links: &MatrixField, order: u32) -> Result<MatrixField, FieldError> {
    let mut natural = links.natural()?;
    // The four links of a site, of which the last is that in time.
    natural.change(4 * LINK_REALS, |site| {
        let (others, time) = site.split_at_mut(3 * LINK_REALS);
        others.fill(0.0);
        if order % 2 == 1 {
            time.as_chunks_mut().0.iter_mut().for_each(|[re, im]| (*re, *im) = (-*im, *re));
        }
    })?;
    let mut field = MatrixField::new(links.domain(), 4)?;
    field.set_natural(&natural)?;
    Ok(field)
}

/// Applies the derivative of this `order` by hops with [`links_in_time`]: `hop` writes that of a field to sites of a parity,
/// which M has times `factor`.
///
/// # Errors
/// Errors of `hop`.
pub fn apply(
    out: &mut Fields,
    x: &Fields,
    (order, factor): (u32, f64),
    mut hop: impl FnMut(&mut Spinor, &Spinor, usize) -> Result<(), FieldError>,
) -> Result<(), QuarkError> {
    let phase = if order.is_multiple_of(2) { Complex64::from(1.0) } else { -Complex64::i() };
    for parity in [EVEN, ODD] {
        let (out, x) = (&mut out[parity], &x[1 - parity]);
        for (out, x) in out.iter_mut().zip(x) {
            let mut hopped = Spinor::of(x.domain(), x.kind(), x.precision(), 1)?;
            hop(&mut hopped, x, parity)?;
            out.set_zero()?;
            out.caxpy(factor * phase, &hopped)?;
        }
    }
    Ok(())
}
