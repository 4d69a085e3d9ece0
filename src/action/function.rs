//! What differs between the powers of a determinant.

use super::{ActionError, Fraction, PairSum};
use crate::field::{RandomAddress, Spinor};
use crate::math::ExactSum;
use crate::quark::QuarkOperator;
use crate::solver::Bounds;

/// The part of a determinant that depends on the function f, for several pseudofermions phi at once. The quarks are up to date with
/// the links.
pub(super) trait Function<O: QuarkOperator> {
    /// Number of flavours.
    fn flavours(&self) -> u8;

    /// Begins a trajectory.
    fn begin(&mut self, _seed: u64, _trajectory: u64) {}

    /// Draws each phi from its address, and returns the sum of their actions; `first`: they are the term's first.
    fn draw(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &mut [Spinor],
        addresses: &[RandomAddress],
        residual: f64,
        first: bool,
    ) -> Result<ExactSum, ActionError>;

    /// The sum of `phi^dag V f(W^dag W) V^dag phi`; `first`: they are the term's first.
    fn value(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &[Spinor],
        residual: f64,
        first: bool,
    ) -> Result<ExactSum, ActionError>;

    /// Adds the pairs of each phi, or those of a `part` of the force; returns the number of iterations.
    fn add_pairs(
        &mut self,
        quarks: &mut Fraction<O>,
        phi: &[Spinor],
        sum: &mut PairSum,
        residual: f64,
        part: Option<usize>,
    ) -> Result<usize, ActionError>;

    /// The ends of the spectra of W and V from the last measurement.
    fn measured(&self) -> [Option<Bounds>; 2] {
        [None; 2]
    }

    /// Text that follows the solves in a report.
    fn report(&self) -> String {
        String::new()
    }
}
