//! Quarks whose `M x = b` is solved on all sites.

use super::MeasureError;
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind, Spinor};
use std::sync::Arc;

/// Fields on all sites: `[parity][number]`, as many on even sites as on odd ones.
pub type Fields = [Vec<Spinor>; 2];

/// `count` fields of a kind, zero everywhere.
///
/// # Errors
/// No room.
pub fn fields(domain: &Arc<Domain>, kind: Kind, count: usize) -> Result<Fields, FieldError> {
    let several = || (0..count).map(|_| Spinor::of(domain, kind, Precision::Double, 1)).collect();
    let [even, odd]: [Result<_, FieldError>; 2] = [several(), several()];
    Ok([even?, odd?])
}

/// A quark on the links of one configuration.
pub trait Quark {
    /// The box.
    fn domain(&self) -> &Arc<Domain>;
    /// What its fields hold on a site.
    fn kind(&self) -> Kind;
    /// The most right-hand sides that are solved at once.
    fn together(&self) -> usize;
    /// Solves `M x_n = b_n`, on even and odd sites. What `x` held is lost.
    ///
    /// # Errors
    /// No convergence.
    ///
    /// # Panics
    /// More right-hand sides than are solved at once.
    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<(), MeasureError>;
    /// Of a quark with a fifth dimension, from the one right-hand side `b` that was solved last: x and y of which `Re y^dag x`
    /// is the density of J5q, the pseudoscalar at the midpoint, with the source's.
    ///
    /// # Errors
    /// No convergence.
    fn midpoint(&mut self, _b: &Fields) -> Result<Option<[Fields; 2]>, MeasureError> {
        Ok(None)
    }
}
