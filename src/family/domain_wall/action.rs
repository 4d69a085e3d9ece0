//! Domain-wall quarks: `W = C^dag`, so that a term's `W^dag W` is `C C^dag`, and its derivative.
//!
//! With `C = 1 - T D_oe T D_eo / 4`, D of `kernels/wilson.cuh`,
//!
//! ```text
//! y^dag dC x = - (T^dag y)^dag (dD_oe / 2) x_e - y_e^dag (dD_eo / 2) x,
//! x_e = T D_eo x / 2,   y_e = T^dag D_oe^dag (T^dag y) / 2,
//! ```
//!
//! For the adjoint, the spinors exchange their roles. T does not depend on links.

use super::{DomainWall, DomainWallParams};
use crate::action::{Derivative, Pair};
use crate::field::{Dagger, Domain, EVEN, FieldError, MatrixField, ODD, Spinor};
use crate::operator::{CloverTerm, HopPhases, Operator};
use crate::quark::{Eliminated, OperatorParams, QuarkOperator, Storage};
use std::sync::Arc;

impl OperatorParams for DomainWallParams {
    type Operator = DomainWall;
}

impl QuarkOperator for DomainWall {
    type Params = DomainWallParams;

    fn make(domain: &Arc<Domain>, storage: Storage, params: &DomainWallParams) -> Result<Self, FieldError> {
        let Storage { precision, link_reals, fields, whole: _ } = storage;
        Self::several(domain, precision, link_reals, fields, params)
    }

    fn update(&mut self, links: &MatrixField, _: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.update(links)
    }

    /// `C z_o = rhs` by `C C^dag y = rhs`.
    fn eliminate(
        &mut self,
        rhs: &mut Spinor,
        b: [&Spinor; 2],
        _: &mut Spinor,
    ) -> Result<Eliminated, FieldError> {
        self.prepare(rhs, b[EVEN], b[ODD])?;
        Ok(Eliminated::Normal)
    }

    /// `z_o = C^dag y`, then even sites.
    fn reconstruct(
        &mut self,
        [z_even, z_odd]: [&mut Spinor; 2],
        y: &Spinor,
        b_even: &Spinor,
        _: &mut Spinor,
    ) -> Result<(), FieldError> {
        self.apply(z_odd, y, Dagger::No)?;
        self.finish(z_even, z_odd, b_even)
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
            None => self.apply(image_odd, x, Dagger::No)?,
            Some(y) => image_odd.copy_from(y)?,
        }
        self.complete(image_even, image_odd)?;
        self.propagate(odd, x, Dagger::Yes, 1.0, None)?;
        self.complete_adjoint(even, odd)
    }

    fn phases(&mut self) -> HopPhases {
        self.links().phases()
    }
}
