//! What reweighting factors are made of, and the spectrum.

use super::QuarkError;
use crate::field::{Domain, Spinor};
use crate::solver::{Bounds, Info};
use std::sync::Arc;

/// The inverse of `X + mu^2` on odd sites, `X = Mhat^dag Mhat` with the asymmetric even-odd operator Mhat.
pub trait TwistedInverse {
    /// This rank's box.
    fn domain(&self) -> &Arc<Domain>;

    /// Solves `(X + mu^2) x = b` from zero.
    ///
    /// # Errors
    /// It does not converge, or a number is infinite or NaN.
    fn solve(&mut self, x: &mut Spinor, b: &Spinor) -> Result<Info, QuarkError>;

    /// The ends of the spectrum of `X + mu^2`, from a random `start`, which is overwritten.
    ///
    /// # Errors
    /// They do not converge to `tolerance`.
    fn bounds(&mut self, start: &mut Spinor, tolerance: f64) -> Result<Bounds, QuarkError>;
}

/// What the determinant of one flavour lacks: its action has `r(X) ~ X^(-1/2n)` for each of n pseudofermions, and
/// `Z = X r(X)^2n - 1`.
pub trait RootError {
    /// This rank's box.
    fn domain(&self) -> &Arc<Domain>;

    /// `out = Z x`, on odd sites.
    ///
    /// # Errors
    /// A solve does not converge.
    fn apply(&mut self, out: &mut Spinor, x: &Spinor) -> Result<(), QuarkError>;
}
