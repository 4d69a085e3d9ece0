//! P between a lattice of spinors and its aggregates.

use super::aggregates::Aggregates;
use super::prolongator::{Gathered, Prolongator};
use crate::device::Precision;
use crate::device::kernels::{FromAggregates, ToAggregates};
use crate::field::{Domain, FieldError, Spinor};
use crate::lattice::volume;
use std::sync::Arc;

/// P, and the way from spinors into the order of aggregates: `[parity][spin, colour][site]` are the numbers of a field in an
/// aggregate and chirality.
pub(super) struct Transfer {
    pub p: Prolongator,
    aggregates: Aggregates,
    domain: Arc<Domain>,
    /// Of spinors.
    precision: Precision,
}

impl Transfer {
    pub(super) fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        aggregates: Aggregates,
        vectors: usize,
    ) -> Result<Self, FieldError> {
        let lanes = domain.layout(precision).lanes().count();
        let p = Prolongator::new(domain, lanes, [aggregates.here(), 6 * volume(aggregates.block)], vectors)?;
        Ok(Self { p, aggregates, domain: Arc::clone(domain), precision })
    }

    /// Fields from number `first` on become those of `x` on sites of a parity.
    pub(super) fn gather(
        &self,
        to: &mut Gathered,
        first: usize,
        x: &Spinor,
        parity: usize,
    ) -> Result<(), FieldError> {
        let (layout, fields) = (x.layout(), to.fields as i32);
        (0..x.fields()).try_for_each(|n| {
            let (g, grid, out) = (layout.geometry(), self.aggregates.grid(), to.buffer.output());
            let (parity, field) = (parity as i32, (first + n) as i32);
            let kernel = ToAggregates { g, grid, x: x.fermions_of(n), out, parity, fields, field };
            self.domain.launch_as(x.precision(), &kernel, layout.half())
        })
    }

    /// The reverse.
    pub(super) fn scatter(
        &self,
        to: &mut Spinor,
        from: &Gathered,
        first: usize,
        parity: usize,
    ) -> Result<(), FieldError> {
        let layout = self.domain.layout(self.precision);
        (0..to.fields()).try_for_each(|n| {
            let (g, grid, fields) = (layout.geometry(), self.aggregates.grid(), from.fields as i32);
            let (x, parity, field) = (from.buffer.input(), parity as i32, (first + n) as i32);
            let kernel = FromAggregates { g, grid, out: to.fermions_of_mut(n), x, parity, fields, field };
            self.domain.launch_as(self.precision, &kernel, layout.half())
        })
    }
}
