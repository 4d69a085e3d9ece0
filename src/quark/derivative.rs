//! Derivatives of a quark's operator in the chemical potential mu, at mu = 0. Hops of n sites forward in time have the factor
//! e^{n mu}, those backward e^{-n mu} (Hasenfratz, Karsch, Phys. Lett. B 125 (1983) 308).

use super::{Fields, QuarkError};
use crate::field::{EVEN, FieldError, HostLinks, LINK_REALS, MatrixField, ODD, Spinor};
use num_complex::Complex64;

/// `d^n M / d mu^n`.
pub trait HopDerivative {
    /// Applies it to every field.
    fn apply(&mut self, out: &mut Fields, x: &Fields) -> Result<(), QuarkError>;
}

/// The links in time, zero in other directions. For odd `order` they are multiplied by i: then hops forward have the factor i
/// and hops backward -i, so that [`apply`] makes their difference.
pub fn links_in_time(links: &MatrixField, order: u32) -> Result<MatrixField, FieldError> {
    let HostLinks { local, reals } = links.to_host()?;
    let of_link = |(n, link): (usize, &[f64])| -> Vec<f64> {
        let numbers = link.chunks_exact(2);
        match (n % 4, order % 2) {
            (3, 0) => link.to_vec(),
            (3, _) => numbers.flat_map(|z| [-z[1], z[0]]).collect(),
            _ => vec![0.0; LINK_REALS],
        }
    };
    let reals = reals.chunks_exact(LINK_REALS).enumerate().flat_map(of_link).collect();
    let mut field = MatrixField::new(links.domain(), 4)?;
    field.set_host(&HostLinks { local, reals })?;
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
