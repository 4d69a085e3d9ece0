//! Wilson(-clover) quarks whose `M x = b` is solved on all sites, in double with links of 18 reals.

use super::{Wilson, WilsonParams};
use crate::device::Precision;
use crate::field::{Domain, Kind, MatrixField, Spinor};
use crate::measure::{Fields, MeasureError, Quark};
use crate::operator::Operator;
use crate::solver::{Cg, Params};
use std::sync::Arc;

/// Wilson(-clover) quarks: M of `kappa`, `c_sw` and `boundary`, without the twisted mass.
pub struct WilsonQuark {
    operator: Wilson,
    solver: Cg,
    wanted: Params,
    rhs: Spinor,
    normal: Spinor,
}

impl WilsonQuark {
    /// The quark on `links`. `wanted`: of the normal equations `Mhat^dag Mhat x_o = ..` of the even-odd form.
    ///
    /// # Errors
    /// No room, or a clover term that cannot be inverted.
    pub fn new(links: &MatrixField, params: WilsonParams, wanted: Params) -> Result<Self, MeasureError> {
        let domain = links.domain();
        let params = WilsonParams { mu: 0.0, ..params };
        let mut clover = Wilson::clover_term(domain, &params)?;
        if let Some(clover) = &mut clover {
            clover.update(links)?;
        }
        let mut operator = Wilson::new(domain, Precision::Double, 18, params)?;
        operator.update(links, clover.as_ref())?;
        let spinor = || Spinor::new(domain, Precision::Double);
        let solver = Cg::new(domain, Kind::Dirac, Precision::Double, 1e-3)?;
        Ok(Self { operator, solver, wanted, rhs: spinor()?, normal: spinor()? })
    }
}

impl Quark for WilsonQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.operator.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Dirac
    }

    fn together(&self) -> usize {
        1
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<(), MeasureError> {
        let ([x_even, x_odd], [b_even, b_odd]) = (x, b);
        for n in 0..b_even.len() {
            // Mhat x_o = rhs, by its normal equations; then x_e = A_ee^-1 (b_e + D_eo x_o / 2).
            self.operator.prepare(&mut self.rhs, &b_even[n], &b_odd[n])?;
            self.operator.apply(&mut self.normal, &self.rhs, true)?;
            x_odd[n].set_zero()?;
            self.solver.solve(&mut self.operator, None, &mut x_odd[n], &self.normal, self.wanted)?;
            self.operator.complete(&mut x_even[n], &x_odd[n], false)?;
            self.operator.even_inverse(&mut self.rhs, &b_even[n])?;
            x_even[n].axpy(1.0, &self.rhs)?;
        }
        Ok(())
    }
}
