//! P: vectors that are orthonormal in each aggregate and chirality, and what P and its adjoint do. It does not matter what the
//! numbers of an aggregate belong to: sites of a lattice (`transfer`) or places of a coarse one (`coarse/below`).

use crate::device::kernels::{
    COLUMNS, Half, NormaliseVector, Out, Prolong, ROUND_THREADS, Reals, RestrictParts, RestrictSum,
    RoundVectors, TILE, Together, Vectors, int,
};
use crate::device::{Buffer, Team};
use crate::field::{Dagger, Domain, FieldError};
use std::sync::Arc;

/// Fields in the order of aggregates, in single precision: `[aggregate][chirality][field][re, im][number]`.
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

/// Which numbers of an aggregate.
#[derive(Clone, Copy)]
pub(super) enum Numbers {
    All,
    /// The second half: odd sites.
    Odd,
}

/// P.
pub(super) struct Prolongator {
    domain: Arc<Domain>,
    lanes: usize,
    /// Aggregates of this rank.
    groups: usize,
    /// Half of the complex numbers of a field in an aggregate and chirality.
    reals: usize,
    /// The number of vectors.
    count: usize,
    /// The vectors as 16-bit integers, and the scale of each in each aggregate and chirality.
    pub rounded: Buffer,
    scales: Buffer,
    parts: Buffer,
    /// A coarse field of this rank's aggregates alone, their places in it, and one that is 1 for the first vector.
    own: [Buffer; 3],
}

impl Prolongator {
    /// Memory for `count` vectors on `groups` aggregates, each of `numbers` complex numbers per chirality.
    pub(super) fn new(
        domain: &Arc<Domain>,
        lanes: usize,
        [groups, numbers]: [usize; 2],
        count: usize,
    ) -> Result<Self, FieldError> {
        assert!(numbers.is_multiple_of(COLUMNS), "a multiple of {COLUMNS} numbers");
        let device = domain.device();
        let own: Vec<i32> = (0..int(groups)).collect();
        let mut first = vec![0f32; groups * 4 * count];
        first.iter_mut().step_by(count).enumerate().for_each(|(n, c)| *c = f32::from(n % 4 < 2));
        Ok(Self {
            domain: Arc::clone(domain),
            lanes,
            groups,
            reals: numbers / 2,
            count,
            rounded: device.buffer(groups * 2 * count * numbers * 4)?,
            scales: device.buffer(groups * 2 * count * 4)?,
            parts: device.buffer(groups * 2 * count * 4 * 2 * COLUMNS * 4)?,
            own: [device.buffer(groups * 4 * count * 4)?, device.buffer_of(&own)?, device.buffer_of(&first)?],
        })
    }

    /// Memory for fields in the order of aggregates.
    pub(super) fn fields(&self, fields: usize) -> Result<Gathered, FieldError> {
        let reals = self.groups * 2 * fields * 4 * self.reals;
        Ok(Gathered { buffer: self.domain.device().buffer(reals * 4)?, fields })
    }

    /// The number of vectors.
    pub(super) fn vectors(&self) -> usize {
        self.count
    }

    /// The first of them, and how many they are.
    fn range(&self, numbers: Numbers) -> (usize, usize) {
        match numbers {
            Numbers::All => (0, 2 * self.reals),
            Numbers::Odd => (self.reals, self.reals),
        }
    }

    /// The rounded vectors from number `n` on.
    fn rounded(&self, n: usize) -> Vectors<'_> {
        Vectors {
            single: None,
            rounded: Some(self.rounded.input_at(n * 2 * self.reals * 4)),
            scales: Some(self.scales.input_at(n * 4)),
            count: int(self.count),
            reals: int(self.reals),
        }
    }

    /// `out = P^dag x` for one or four fields of `x`, by the first `used` vectors; `dagger`: `gamma_5 P^dag x`.
    fn restrict_by(
        &self,
        (vectors, used): (Vectors, usize),
        out: Coarse,
        (x, field, together): (&Gathered, usize, Together),
        numbers: Numbers,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let (first, count) = self.range(numbers);
        let columns = together as usize;
        let groups = 2 * self.groups;
        let kernel = RestrictParts {
            v: vectors,
            x: x.buffer.input(),
            parts: self.parts.shared_output(),
            used: int(used),
            fields: int(x.fields),
            field: int(field),
            first: int(first),
            count: int(count),
        };
        let threads = groups * used.div_ceil(TILE) * (COLUMNS / self.lanes);
        self.domain.launch_as((Half, together), &kernel, threads)?;
        let [place_stride, column_stride] = out.strides.map(int);
        let kernel = RestrictSum {
            v: vectors,
            parts: self.parts.input(),
            out: out.buffer.shared_output_at(out.offset),
            places: out.places.input(),
            used: int(used),
            columns: int(columns),
            place_stride,
            column_stride,
            upper: 1.0,
            lower: if dagger == Dagger::Yes { -1.0 } else { 1.0 },
        };
        self.domain.launch_as(Half, &kernel, groups * used * columns)
    }

    /// `out = P^dag x` for so many fields; `dagger`: `gamma_5 P^dag x`.
    pub(super) fn restrict(
        &self,
        out: Coarse,
        (x, together): (&Gathered, Together),
        numbers: Numbers,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        self.restrict_by((self.rounded(0), self.count), out, (x, 0, together), numbers, dagger)
    }

    /// `out = P c` for so many fields; `dagger`: `P gamma_5 c`.
    pub(super) fn prolong(
        &self,
        (out, together): (&mut Gathered, Together),
        c: Coarse,
        numbers: Numbers,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let lower = if dagger == Dagger::Yes { -1.0 } else { 1.0 };
        let to = (out.buffer.output(), out.fields, 0, together);
        self.prolong_by((self.rounded(0), self.count), to, c, numbers, [0.0, 1.0, lower])
    }

    /// Vector number `n` on one chirality; the other one becomes zero.
    pub(super) fn vector(&self, out: &mut Gathered, n: usize, chirality: usize) -> Result<(), FieldError> {
        let [_, places, first] = &self.own;
        let factor = |own| if own == chirality { 1.0 } else { 0.0 };
        let to = (out.buffer.output(), out.fields, 0, Together::OneField);
        let c = Coarse { buffer: first, offset: 0, places, strides: [4 * self.count, 0] };
        self.prolong_by((self.rounded(n), 1), to, c, Numbers::All, [0.0, factor(0), factor(1)])
    }

    fn prolong_by(
        &self,
        (vectors, used): (Vectors, usize),
        (out, fields, field, together): (Out<Reals>, usize, usize, Together),
        c: Coarse,
        numbers: Numbers,
        [base, upper, lower]: [f64; 3],
    ) -> Result<(), FieldError> {
        let (first, count) = self.range(numbers);
        let kernel = Prolong {
            v: vectors,
            c: c.buffer.input_at(c.offset),
            places: c.places.input(),
            column_stride: int(c.strides[1]),
            out,
            used: int(used),
            fields: int(fields),
            field: int(field),
            first: int(first),
            count: int(count),
            base,
            upper,
            lower,
        };
        let threads = 2 * self.groups * count / self.lanes;
        self.domain.launch_as((Half, together), &kernel, threads)
    }

    /// Takes vectors, which become orthonormal in each aggregate and chirality by classical Gram-Schmidt, twice, and
    /// then what they are as 16-bit integers.
    pub(super) fn take(&mut self, vectors: &mut Gathered) -> Result<(), FieldError> {
        let count = self.count;
        let reals = int(self.reals);
        let single = Vectors {
            single: Some(vectors.buffer.input()),
            rounded: None,
            scales: None,
            count: int(count),
            reals,
        };
        let [numbers, places, _] = &self.own;
        let out = Coarse { buffer: numbers, offset: 0, places, strides: [4 * count, 0] };
        for n in 0..count {
            let own = (&*vectors, n, Together::OneField);
            for _ in 0..if n == 0 { 0 } else { 2 } {
                self.restrict_by((single, n), out, own, Numbers::All, Dagger::No)?;
                let to = (vectors.buffer.shared_output(), count, n, Together::OneField);
                self.prolong_by((single, n), to, out, Numbers::All, [1.0, -1.0, -1.0])?;
            }
            self.restrict_by((single, n + 1), out, own, Numbers::All, Dagger::No)?;
            let v = vectors.buffer.shared_output();
            let kernel = NormaliseVector { v, c: numbers.input(), vectors: int(count), n: int(n), reals };
            let threads = 2 * self.groups * 4 * self.reals / self.lanes;
            self.domain.launch_as(Half, &kernel, threads)?;
        }
        let (v, rounded, scales) = (vectors.buffer.output(), self.rounded.output(), self.scales.output());
        let team = Team { threads: ROUND_THREADS, shared: ROUND_THREADS * 4 };
        let kernel = RoundVectors { v, rounded, scales, reals };
        self.domain.launch_teams(Half, &kernel, 2 * self.groups * count, team)
    }
}
