//! Domain-wall quarks: `W = C^dag`, so that a term's `W^dag W` is `C C^dag`, and its derivative.
//!
//! With `C = 1 - T D_oe T D_eo / 4`, D of `kernels/wilson.cuh`,
//!
//! ```text
//! y^dag dC x = - (T^dag y)^dag (dD_oe / 2) x_e - y_e^dag (dD_eo / 2) x,
//! x_e = T D_eo x / 2,   y_e = T^dag D_oe^dag (T^dag y) / 2,
//! ```
//!
//! and of the adjoint the spinors change places. T holds no links.

use super::{DomainWall, DomainWallParams};
use crate::action::{Derivative, OperatorParams, Pair, QuarkOperator};
use crate::device::Precision;
use crate::field::{Domain, FieldError, MatrixField, Spinor};
use crate::operator::{CloverTerm, HopPhases, Operator};
use crate::solver::Method;
use std::sync::Arc;

impl OperatorParams for DomainWallParams {
    type Operator = DomainWall;
}

impl QuarkOperator for DomainWall {
    type Params = DomainWallParams;

    fn make(
        domain: &Arc<Domain>,
        precision: Precision,
        link_reals: usize,
        params: &DomainWallParams,
        _: Method,
    ) -> Result<Self, FieldError> {
        Self::several(domain, precision, link_reals, 1, params)
    }

    fn update(&mut self, links: &MatrixField, _: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.update(links)
    }
}

impl Derivative for DomainWall {
    fn fill(
        &mut self,
        pair: &mut Pair,
        _: Option<&CloverTerm>,
        x: &Spinor,
        y: Option<&Spinor>,
        _: f64,
    ) -> Result<(), FieldError> {
        let Pair { x: [image_even, image_odd], y: [even, odd], .. } = pair;
        match y {
            None => self.apply(image_odd, x, false)?,
            Some(y) => image_odd.copy_from(y)?,
        }
        self.complete(image_even, image_odd)?;
        self.propagate(odd, x, true, 1.0, None)?;
        self.complete_adjoint(even, odd)
    }

    fn phases(&mut self) -> HopPhases {
        self.links().phases()
    }
}
