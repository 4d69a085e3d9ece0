//! The next coarser level: aggregates of places, vectors on them, and the Galerkin operator `P^dag A P` of these, which has the
//! form of A itself: links to nearest neighbours, with `gamma_5 A gamma_5 = A^dag`.

use super::ghosts::Wires;
use super::{CoarseLinks, From, Shape};
use crate::device::Buffer;
use crate::device::kernels::{COARSE_LINKS, CoarsePart, GatherPlaces, Half, ScatterPlaces, Together, int};
use crate::field::{Dagger, FieldError};
use crate::lattice::{Extents, coordinates, volume};
use crate::solver::multigrid::aggregates::Aggregates;
use crate::solver::multigrid::prolongator::{Gathered, Numbers, Prolongator};

/// The level.
pub(super) struct Below {
    p: Prolongator,
    members: Members,
    /// For each place above, the links that leave its aggregate, a bit each.
    leaving: Buffer,
    pub links: CoarseLinks,
}

/// The places above in each aggregate.
struct Members {
    places: Buffer,
    /// Per aggregate, and of all.
    each: usize,
    count: usize,
}

/// Workspace of a correction.
pub(super) struct Correction {
    /// A field of each system.
    fields: Gathered,
    right: Buffer,
    pub left: Buffer,
}

impl Members {
    /// In aggregates of `block` places of `above` that `own` lists.
    fn new(above: &Shape, block: Extents, own: Aggregates) -> Result<Self, FieldError> {
        let each = volume(block);
        let inside = |at: Extents| {
            (0..each).map(move |n| {
                let within = coordinates(block, n);
                int(above.places.place(std::array::from_fn(|mu| at[mu] * block[mu] + within[mu])))
            })
        };
        let members: Vec<i32> = own.own().flat_map(inside).collect();
        let count = members.len();
        Ok(Self { places: above.domain.device().buffer_of(&members)?, each, count })
    }

    /// Field number `field` becomes `x`, which begins with place `skip` and is zero before.
    fn gather(
        &self,
        shape: &Shape,
        (to, field): (&mut Gathered, usize),
        (x, skip): (From, usize),
    ) -> Result<(), FieldError> {
        let kernel = GatherPlaces {
            members: self.places.input(),
            x: x.0.input_at(x.1),
            out: to.buffer.output(),
            places: int(self.each),
            rows: int(shape.rows),
            skip: int(skip),
            fields: int(to.fields),
            field: int(field),
        };
        shape.domain.launch_as(Half, &kernel, self.count * shape.rows)
    }

    /// The reverse.
    fn scatter(
        &self,
        shape: &Shape,
        (out, skip): (From, usize),
        (from, field): (&Gathered, usize),
    ) -> Result<(), FieldError> {
        let kernel = ScatterPlaces {
            members: self.places.input(),
            x: from.buffer.input(),
            out: out.0.shared_output_at(out.1),
            places: int(self.each),
            rows: int(shape.rows),
            skip: int(skip),
            fields: int(from.fields),
            field: int(field),
        };
        shape.domain.launch_as(Half, &kernel, self.count * shape.rows)
    }
}

impl Below {
    /// Memory for aggregates of `block` places.
    pub(super) fn new(shape: &Shape, above: Aggregates, block: Extents) -> Result<Self, FieldError> {
        let sites = std::array::from_fn(|mu| above.block[mu] * block[mu]);
        let aggregates = Aggregates { block: sites, partition: above.partition };
        let vectors = shape.rows / 2;
        let (domain, lanes) = (&shape.domain, shape.lanes);
        let numbers = vectors * volume(block);
        Ok(Self {
            p: Prolongator::new(domain, lanes, [aggregates.here(), numbers], vectors)?,
            members: Members::new(shape, block, aggregates)?,
            leaving: domain.device().buffer_of(&shape.places.leaving_of(block))?,
            links: CoarseLinks::new(domain, ([lanes, shape.rows], shape.systems), aggregates, None)?,
        })
    }

    /// The space of vectors that `vector` makes one at a time, and its operator.
    pub(super) fn make(
        &mut self,
        above: &CoarseLinks,
        mut vector: impl FnMut(usize, &mut Buffer) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let (shape, mut x) = (&above.shape, above.field()?);
        let mut vectors = self.p.fields(self.p.vectors())?;
        for n in 0..self.p.vectors() {
            vector(n, &mut x)?;
            self.members.gather(shape, (&mut vectors, n), ((&x, 0), 0))?;
        }
        self.p.take(&mut vectors)?;
        drop(vectors);
        // The local link, then those forward in x, y, z, t.
        let mut fields: Vec<Gathered> = (0..5).map(|_| self.p.fields(4)).collect::<Result<_, _>>()?;
        let product = above.field()?;
        self.columns(above, |Self { p, members, leaving, links }, (x, wires), (n, column)| {
            for (part, fields) in fields.iter_mut().enumerate() {
                shape.part(&above.links, leaving, &product, (x, wires), part)?;
                members.gather(shape, (&mut *fields, n), ((&product, 0), 0))?;
                if n == 3 {
                    links.set_link(p, part, column, fields)?;
                }
            }
            Ok(())
        })?;
        drop((fields, product));
        self.links.complete()
    }

    /// `P^dag T P`, where T is what a twisted mass multiplies above.
    pub(super) fn make_odd(&mut self, above: &CoarseLinks) -> Result<(), FieldError> {
        let (shape, product) = (&above.shape, above.field()?);
        let odd = above.odd.as_ref().expect("what a twisted mass multiplies");
        let mut field = self.p.fields(4)?;
        self.columns(above, |Self { p, members, links, .. }, (x, _), (n, column)| {
            for parity in 0..2 {
                let at = parity * shape.half_field();
                shape.local(odd, (parity, Together::OneField), (&product, at), (x, at))?;
            }
            members.gather(shape, (&mut field, n), ((&product, 0), 0))?;
            if n == 3 { links.set_odd(p, column, (&field, Numbers::All)) } else { Ok(()) }
        })
    }

    /// Calls `each` with every vector on one chirality, and what other ranks have of it, with its number among four, and with the
    /// column of the first of these.
    fn columns(
        &mut self,
        above: &CoarseLinks,
        mut each: impl FnMut(&mut Self, (&Buffer, Option<&Wires>), (usize, usize)) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let (vectors, shape) = (self.p.vectors(), &above.shape);
        let (mut one, x) = (self.p.fields(1)?, above.field()?);
        let mut wires = shape.wires(Together::OneField)?;
        for chirality in 0..2 {
            for n in 0..vectors {
                self.p.vector(&mut one, n, chirality)?;
                self.members.scatter(shape, ((&x, 0), 0), (&one, 0))?;
                if wires.is_some() {
                    for parity in 0..2 {
                        let half = (&x, parity * shape.half_field());
                        shape.give((parity, Together::OneField), half, &mut wires)?;
                    }
                }
                each(self, (&x, wires.as_ref()), (n % 4, chirality * vectors + n / 4 * 4))?;
            }
        }
        Ok(())
    }

    /// Workspace of a correction.
    pub(super) fn correction(&self) -> Result<Correction, FieldError> {
        let fields = self.p.fields(self.links.systems() as usize)?;
        Ok(Correction { fields, right: self.links.fields()?, left: self.links.fields()? })
    }

    /// `out = P A^-1 P^dag x` on odd places for so many systems, where `solve` solves them here.
    pub(super) fn correct(
        &self,
        (shape, systems): (&Shape, Together),
        Correction { fields, right, left }: &mut Correction,
        [out, x]: [From; 2],
        solve: impl FnOnce(&mut Buffer, &Buffer) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let odd = shape.half();
        for n in 0..systems as usize {
            self.members.gather(shape, (fields, n), (shape.of_system(x, n), odd))?;
        }
        self.p.restrict(self.links.of_fields(right), (fields, systems), Numbers::All, Dagger::No)?;
        solve(left, right)?;
        self.p.prolong((fields, systems), self.links.of_fields(left), Numbers::All, Dagger::No)?;
        for n in 0..systems as usize {
            self.members.scatter(shape, (shape.of_system(out, n), odd), (fields, n))?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Below {
    /// P c on all places above.
    pub(super) fn prolonged(&self, above: &CoarseLinks, c: &Buffer) -> Result<Buffer, FieldError> {
        let (mut one, out) = (self.p.fields(1)?, above.field()?);
        self.p.prolong((&mut one, Together::OneField), self.links.of_field(c), Numbers::All, Dagger::No)?;
        self.members.scatter(&above.shape, ((&out, 0), 0), (&one, 0))?;
        Ok(out)
    }

    /// P^dag x
    pub(super) fn restricted(&self, above: &CoarseLinks, x: &Buffer) -> Result<Buffer, FieldError> {
        let (mut one, out) = (self.p.fields(1)?, self.links.field()?);
        self.members.gather(&above.shape, (&mut one, 0), ((x, 0), 0))?;
        self.p.restrict(self.links.of_field(&out), (&one, Together::OneField), Numbers::All, Dagger::No)?;
        Ok(out)
    }
}

impl Shape {
    /// `out` = part of A times x: the links within aggregates, or the one of this number from there on, forward or backward.
    fn part(
        &self,
        links: &Buffer,
        leaving: &Buffer,
        out: &Buffer,
        (x, wires): (&Buffer, Option<&Wires>),
        part: usize,
    ) -> Result<(), FieldError> {
        assert!(part < COARSE_LINKS, "links within aggregates, or one of eight");
        for parity in 0..2 {
            let kernel = CoarsePart {
                links: links.input(),
                neighbours: self.neighbours.input(),
                leaving: leaving.input(),
                x: x.input(),
                ghosts: wires.map(|wires| wires.incoming[1 - parity].input()),
                out: out.shared_output(),
                rows: int(self.rows),
                half: int(self.half()),
                parity: int(parity),
                part: int(part),
            };
            self.domain.launch_as(Half, &kernel, self.threads(parity))?;
        }
        Ok(())
    }
}
