//! Wilson(-clover) quarks, for solving `M x = b` on all sites.

use super::{Wilson, WilsonParams};
use crate::field::MatrixField;
use crate::quark::{FullInverse, QuarkError, QuarkParams};

/// Spinors solved at once.
const TOGETHER: usize = 4;

/// Wilson(-clover) quarks: M with `kappa`, `c_sw` and `boundary`, and `twisted_mass`, without the regulator.
pub type WilsonQuark = FullInverse<Wilson>;

impl WilsonQuark {
    /// The quark on `links`. `residual` is that of the even-odd normal equations `Mhat^dag Mhat x_o = ..`.
    ///
    /// # Errors
    /// The clover term cannot be inverted, or memory runs out.
    pub fn new(
        links: &MatrixField,
        params: &QuarkParams<WilsonParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let operator = WilsonParams { mu: 0.0, ..params.operator };
        Self::on(links, &QuarkParams { operator, ..params.clone() }, TOGETHER, residual)
    }
}
