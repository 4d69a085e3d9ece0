//! The operator M of a quark on all sites, in double precision.

use super::{Fields, QuarkError};
use crate::field::{Dagger, Domain, Kind};
use std::sync::Arc;

/// M on the links of one configuration: `A - D/2` of Wilson quarks, `2 m + D` of staggered quarks, `D_5` of domain-wall
/// quarks.
pub trait FullOperator {
    /// This rank's box.
    fn domain(&self) -> &Arc<Domain>;
    /// The kind of its fields.
    fn kind(&self) -> Kind;
    /// `out_n = M x_n`, or `M^dag x_n`.
    ///
    /// # Panics
    /// The fields are of another kind or number.
    fn apply(&mut self, out: &mut Fields, x: &Fields, dagger: Dagger) -> Result<(), QuarkError>;
}
