//! Wilson(-clover) quarks whose `M x = b` is solved on all sites.

use super::{Wilson, WilsonParams};
use crate::field::MatrixField;
use crate::quark::{FullInverse, QuarkError, QuarkParams};

/// Spinors that are solved at once.
const TOGETHER: usize = 4;

/// Wilson(-clover) quarks: M of `kappa`, `c_sw` and `boundary`, without the twisted mass.
pub type WilsonQuark = FullInverse<Wilson>;

impl WilsonQuark {
    /// The quark on `links`. `residual`: of the normal equations `Mhat^dag Mhat x_o = ..` of the even-odd form.
    ///
    /// # Errors
    /// No memory, or a clover term that cannot be inverted.
    pub fn new(
        links: &MatrixField,
        params: &QuarkParams<WilsonParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let operator = WilsonParams { mu: 0.0, ..params.operator };
        Self::on(links, &QuarkParams { operator, ..params.clone() }, TOGETHER, residual)
    }
}
