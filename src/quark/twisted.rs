//! Solves with a twisted mass, of which reweighting factors are made.

use super::QuarkError;
use crate::field::{Domain, Spinor};
use crate::solver::Info;
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
}
