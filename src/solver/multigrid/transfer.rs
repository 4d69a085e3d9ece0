//! P between a lattice of spinors and its aggregates.

use super::aggregates::Aggregates;
use super::prolongator::{Gathered, Prolongator};
use crate::device::Precision;
use crate::device::kernels::{FromAggregates, ToAggregates, int};
use crate::field::{Domain, FieldError, Kind, Spinor};
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

    /// # Panics
    /// A spinor of another domain or kind, or with fewer or more fields than there is room for: operators of others may have put
    /// another one in its place.
    fn check(&self, x: &Spinor, gathered: &Gathered, first: usize) {
        self.domain.check([x.domain()]);
        assert_eq!(x.kind(), Kind::Dirac, "a Dirac spinor");
        assert!(
            first + x.fields() <= gathered.fields,
            "fields from number {first} on of {}",
            gathered.fields
        );
    }

    /// Fields from number `first` on become those of `x` on sites of a parity.
    pub(super) fn gather(
        &self,
        to: &mut Gathered,
        first: usize,
        x: &Spinor,
        parity: usize,
    ) -> Result<(), FieldError> {
        self.check(x, to, first);
        let (layout, fields) = (x.layout(), int(to.fields));
        (0..x.fields()).try_for_each(|n| {
            let (g, grid, out) = (layout.geometry(), self.aggregates.grid(), to.buffer.output());
            let (parity, field) = (int(parity), int(first + n));
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
        self.check(to, from, first);
        assert_eq!(to.precision(), self.precision, "spinors of one precision");
        let layout = self.domain.layout(self.precision);
        (0..to.fields()).try_for_each(|n| {
            let (g, grid, fields) = (layout.geometry(), self.aggregates.grid(), int(from.fields));
            let (x, parity, field) = (from.buffer.input(), int(parity), int(first + n));
            let kernel = FromAggregates { g, grid, out: to.fermions_of_mut(n), x, parity, fields, field };
            self.domain.launch_as(self.precision, &kernel, layout.half())
        })
    }
}
