//! The vectors of P, in the order of aggregates, and what P and its adjoint do.

use super::Aggregates;
use crate::device::kernels::{
    COLUMNS, FromAggregates, Half, NormaliseVector, Out, Prolong, ROUND_THREADS, Reals, RestrictParts,
    RestrictSum, RoundVectors, TILE, ToAggregates, Together, Vectors,
};
use crate::device::{Buffer, Precision, Teams};
use crate::field::{Dagger, Domain, FieldError, Spinor};
use std::sync::Arc;

/// Fields in the order of aggregates, in single precision: `[aggregate][chirality][field][re, im][parity][spin,
/// colour][site]`.
pub(super) struct Gathered {
    pub buffer: Buffer,
    pub fields: usize,
}

/// Coarse fields `[place][re, im][row]`, or columns of coarse matrices: where their parts are.
#[derive(Clone, Copy)]
pub(super) struct Coarse<'a> {
    pub buffer: &'a Buffer,
    /// In bytes.
    pub offset: usize,
    /// The places of this rank's aggregates.
    pub places: &'a Buffer,
    /// Reals from a place to the next, and from a column to the next.
    pub strides: [usize; 2],
}

/// P: vectors that are orthonormal in each aggregate and chirality.
pub(super) struct Transfer {
    aggregates: Aggregates,
    domain: Arc<Domain>,
    /// Of spinors.
    precision: Precision,
    /// Their number.
    count: usize,
    /// The vectors as 16-bit integers, and the scale of each in each aggregate and chirality.
    pub(super) rounded: Buffer,
    scales: Buffer,
    parts: Buffer,
    /// A coarse field of this rank's aggregates alone, their places in it, and one that is 1 for the first vector.
    own: [Buffer; 3],
}

/// Which numbers of an aggregate.
#[derive(Clone, Copy)]
pub(super) enum Sites {
    All,
    Odd,
}

impl Transfer {
    pub(super) fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        aggregates: Aggregates,
        vectors: usize,
    ) -> Result<Self, FieldError> {
        let device = domain.device();
        let count = aggregates.here();
        let own: Vec<i32> = (0..count as i32).collect();
        let mut first = vec![0f32; count * 4 * vectors];
        first.iter_mut().step_by(vectors).enumerate().for_each(|(n, c)| *c = f32::from(n % 4 < 2));
        Ok(Self {
            aggregates,
            domain: Arc::clone(domain),
            precision,
            count: vectors,
            rounded: device.buffer(count * 2 * vectors * 2 * aggregates.reals() * 4)?,
            scales: device.buffer(count * 2 * vectors * 4)?,
            parts: device.buffer(count * 2 * vectors * 4 * 2 * COLUMNS * 4)?,
            own: [
                device.buffer(count * 4 * vectors * 4)?,
                device.buffer_of(&own)?,
                device.buffer_of(&first)?,
            ],
        })
    }

    fn gathered(domain: &Domain, aggregates: Aggregates, fields: usize) -> Result<Gathered, FieldError> {
        let reals = aggregates.here() * 2 * fields * 4 * aggregates.reals();
        Ok(Gathered { buffer: domain.device().buffer(reals * 4)?, fields })
    }

    /// Memory for more fields.
    pub(super) fn fields(&self, fields: usize) -> Result<Gathered, FieldError> {
        Self::gathered(&self.domain, self.aggregates, fields)
    }

    /// Rows of a coarse field.
    pub(super) fn rows(&self) -> usize {
        2 * self.count
    }

    fn lanes(&self) -> usize {
        self.domain.layout(self.precision).lanes().count()
    }

    fn range(&self, sites: Sites) -> (i32, i32) {
        let reals = self.aggregates.reals() as i32;
        match sites {
            Sites::All => (0, 2 * reals),
            Sites::Odd => (reals, reals),
        }
    }

    /// Field number `field` becomes `x` on sites of a parity.
    pub(super) fn gather(
        &self,
        to: &mut Gathered,
        field: usize,
        x: &Spinor,
        parity: usize,
    ) -> Result<(), FieldError> {
        let (layout, fields) = (x.layout(), to.fields as i32);
        let (g, grid, out) = (layout.geometry(), self.aggregates.grid(), to.buffer.output());
        let (parity, field) = (parity as i32, field as i32);
        let kernel = ToAggregates { g, grid, x: x.fermions(), out, parity, fields, field };
        self.domain.launch_as(x.precision(), &kernel, layout.half())
    }

    /// The reverse.
    pub(super) fn scatter(
        &self,
        out: &mut Spinor,
        from: &Gathered,
        field: usize,
        parity: usize,
    ) -> Result<(), FieldError> {
        let layout = self.domain.layout(self.precision);
        let (g, grid, fields) = (layout.geometry(), self.aggregates.grid(), from.fields as i32);
        let (x, parity, field) = (from.buffer.input(), parity as i32, field as i32);
        let kernel = FromAggregates { g, grid, out: out.fermions_mut(), x, parity, fields, field };
        self.domain.launch_as(self.precision, &kernel, layout.half())
    }

    /// The rounded vectors from number `n` on.
    fn rounded(&self, n: usize) -> Vectors<'_> {
        Vectors {
            single: None,
            rounded: Some(self.rounded.input_at(n * 2 * self.aggregates.reals() * 4)),
            scales: Some(self.scales.input_at(n * 4)),
            count: self.count as i32,
            reals: self.aggregates.reals() as i32,
        }
    }

    /// `out = P^dag x` for one or four fields of `x`, by the first `used` vectors; `dagger`: `gamma_5 P^dag x`.
    fn restrict_by(
        &self,
        (vectors, used): (Vectors, usize),
        out: Coarse,
        (x, field, together): (&Gathered, usize, Together),
        sites: Sites,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let (first, count) = self.range(sites);
        let columns = together as usize;
        let groups = 2 * self.aggregates.here();
        let kernel = RestrictParts {
            v: vectors,
            x: x.buffer.input(),
            parts: self.parts.shared_output(),
            used: used as i32,
            fields: x.fields as i32,
            field: field as i32,
            first,
            count,
        };
        let threads = groups * used.div_ceil(TILE) * (COLUMNS / self.lanes());
        self.domain.launch_as((Half, together), &kernel, threads)?;
        let [place_stride, column_stride] = out.strides.map(|stride| stride as i32);
        let kernel = RestrictSum {
            v: vectors,
            parts: self.parts.input(),
            out: out.buffer.shared_output_at(out.offset),
            places: out.places.input(),
            used: used as i32,
            columns: columns as i32,
            place_stride,
            column_stride,
            upper: 1.0,
            lower: if dagger == Dagger::Yes { -1.0 } else { 1.0 },
        };
        self.domain.launch_as(Half, &kernel, groups * used * columns)
    }

    /// `out = P^dag x`; `dagger`: `gamma_5 P^dag x`.
    pub(super) fn restrict(
        &self,
        out: Coarse,
        x: &Gathered,
        sites: Sites,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        self.restrict_by((self.rounded(0), self.count), out, (x, 0, Together::OneField), sites, dagger)
    }

    /// Four columns `P^dag x`.
    pub(super) fn restrict_four(&self, out: Coarse, x: &Gathered, sites: Sites) -> Result<(), FieldError> {
        self.restrict_by((self.rounded(0), self.count), out, (x, 0, Together::FourFields), sites, Dagger::No)
    }

    /// `out = P c`; `dagger`: `P gamma_5 c`.
    pub(super) fn prolong(
        &self,
        out: &mut Gathered,
        c: &Buffer,
        places: &Buffer,
        sites: Sites,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let lower = if dagger == Dagger::Yes { -1.0 } else { 1.0 };
        let to = (out.buffer.shared_output(), out.fields, 0);
        self.prolong_by((self.rounded(0), self.count), to, (c, places), sites, [0.0, 1.0, lower])
    }

    /// Vector number `n` on one chirality; the other one becomes zero.
    pub(super) fn vector(&self, out: &mut Gathered, n: usize, chirality: usize) -> Result<(), FieldError> {
        let [_, places, first] = &self.own;
        let factor = |own| if own == chirality { 1.0 } else { 0.0 };
        let to = (out.buffer.shared_output(), out.fields, 0);
        self.prolong_by((self.rounded(n), 1), to, (first, places), Sites::All, [0.0, factor(0), factor(1)])
    }

    fn prolong_by(
        &self,
        (vectors, used): (Vectors, usize),
        (out, fields, field): (Out<Reals>, usize, usize),
        (c, places): (&Buffer, &Buffer),
        sites: Sites,
        [base, upper, lower]: [f64; 3],
    ) -> Result<(), FieldError> {
        let (first, count) = self.range(sites);
        let kernel = Prolong {
            v: vectors,
            c: c.input(),
            places: places.input(),
            out,
            used: used as i32,
            fields: fields as i32,
            field: field as i32,
            first,
            count,
            base,
            upper,
            lower,
        };
        let threads = 2 * self.aggregates.here() * count as usize / self.lanes();
        self.domain.launch_as(Half, &kernel, threads)
    }

    /// Takes vectors, which become orthonormal in each aggregate and chirality by classical Gram-Schmidt, twice, and
    /// then what they are as 16-bit integers.
    pub(super) fn take(&mut self, vectors: &mut Gathered) -> Result<(), FieldError> {
        let count = self.count;
        let reals = self.aggregates.reals() as i32;
        let single = Vectors {
            single: Some(vectors.buffer.input()),
            rounded: None,
            scales: None,
            count: count as i32,
            reals,
        };
        let [numbers, places, _] = &self.own;
        let out = Coarse { buffer: numbers, offset: 0, places, strides: [4 * count, 0] };
        for n in 0..count {
            let own = (&*vectors, n, Together::OneField);
            for _ in 0..if n == 0 { 0 } else { 2 } {
                self.restrict_by((single, n), out, own, Sites::All, Dagger::No)?;
                let to = (vectors.buffer.shared_output(), count, n);
                self.prolong_by((single, n), to, (numbers, places), Sites::All, [1.0, -1.0, -1.0])?;
            }
            self.restrict_by((single, n + 1), out, own, Sites::All, Dagger::No)?;
            let v = vectors.buffer.shared_output();
            let kernel = NormaliseVector { v, c: numbers.input(), vectors: count as i32, n: n as i32, reals };
            let threads = 2 * self.aggregates.here() * 4 * self.aggregates.reals() / self.lanes();
            self.domain.launch_as(Half, &kernel, threads)?;
        }
        let (v, rounded, scales) = (vectors.buffer.output(), self.rounded.output(), self.scales.output());
        let count = 2 * self.aggregates.here() * count;
        let teams = Teams { count, threads: ROUND_THREADS, shared: ROUND_THREADS * 4 };
        self.domain.launch_teams(Half, &RoundVectors { v, rounded, scales, reals }, teams)
    }
}
