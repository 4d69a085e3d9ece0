//! Wilson(-clover) quarks: W is `Mhat`, or with a twisted mass mu `Mhat + i mu gamma_5` (symmetric form:
//! `Mhat + i mu A_oo^-1 gamma_5`), and its derivative.
//!
//! In the asymmetric form `dW = dMhat`; both spinors of a pair are completed to even sites by `A_ee^-1 D_eo / 2` (its
//! adjoint for y), and the full dM acts. In the symmetric one `W = A_oo^-1 B`, so `dW = A_oo^-1 (dB - dA_oo W)`: y goes
//! in as `A_oo^-1 y`, and the clover term on odd sites acts on `x - W x`. A twisted mass is constant in
//! `Mhat + i mu gamma_5` and in B, and changes nothing in this.

use super::{Schur, Wilson, WilsonParams};
use crate::action::{Derivative, OperatorParams, Pair, QuarkOperator};
use crate::device::Precision;
use crate::field::{Domain, EVEN, FieldError, MatrixField, ODD, Spinor};
use crate::operator::{CloverTerm, HopPhases, Operator};
use crate::solver::Method;
use std::sync::Arc;

impl OperatorParams for WilsonParams {
    type Operator = Wilson;
}

impl QuarkOperator for Wilson {
    type Params = WilsonParams;

    fn make(
        domain: &Arc<Domain>,
        precision: Precision,
        link_reals: usize,
        params: &WilsonParams,
        method: Method,
    ) -> Result<Self, FieldError> {
        let operator = Self::new(domain, precision, link_reals, *params)?;
        if let Method::GcrDd { block, .. } = method { operator.with_blocks(block) } else { Ok(operator) }
    }

    fn clover_term(domain: &Arc<Domain>, params: &WilsonParams) -> Result<Option<CloverTerm>, FieldError> {
        Self::clover_term(domain, params)
    }

    fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.update(links, clover)
    }

    /// # Panics
    /// The quarks differ in the Schur complement: the determinants of A_oo would not match.
    fn determinants_cancel(one: &WilsonParams, other: &WilsonParams) -> bool {
        assert_eq!(one.schur, other.schur, "a ratio is of one Schur complement");
        (one.kappa, one.c_sw) == (other.kappa, other.c_sw)
    }
}

impl Derivative for Wilson {
    fn fill(
        &mut self,
        pair: &mut Pair,
        clover: Option<&CloverTerm>,
        x: &Spinor,
        y: Option<&Spinor>,
        weight: f64,
    ) -> Result<(), FieldError> {
        let symmetric = self.params().schur == Schur::Symmetric;
        let Pair { x: [x_even, x_odd], y: [y_even, y_odd], insertion } = pair;
        match (symmetric, y) {
            (false, None) => self.apply(y_odd, x, false)?,
            (false, Some(y)) => y_odd.copy_from(y)?,
            (true, _) => {
                // W x, in the place of even sites
                if y.is_none() || clover.is_some() {
                    self.apply(y_even, x, false)?;
                }
                self.odd_inverse(y_odd, y.unwrap_or(y_even))?;
            }
        }
        if let (Some(clover), Some(insertion)) = (clover, &mut *insertion) {
            if symmetric {
                x_even.copy_from(x)?;
                x_even.axpy(-1.0, y_even)?;
                clover.insert_pair(insertion, x_even, y_odd, ODD, weight)?;
            } else {
                clover.insert_pair(insertion, x, y_odd, ODD, weight)?;
            }
        }
        x_odd.copy_from(x)?;
        self.complete(x_even, x_odd, false)?;
        self.complete(y_even, y_odd, true)?;
        match (clover, insertion) {
            (Some(clover), Some(insertion)) => clover.insert_pair(insertion, x_even, y_even, EVEN, weight),
            _ => Ok(()),
        }
    }

    fn phases(&mut self) -> HopPhases {
        self.links().phases()
    }
}
