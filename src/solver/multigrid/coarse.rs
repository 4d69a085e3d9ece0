//! The coarse operator `A = P^dag M P`, and GCR on its even-odd preconditioned form (`gcr`). A rank has the places of its own
//! aggregates. Where GPUs reach each other's memory, kernels give each other what hops read of other ranks; elsewhere it travels
//! in messages. The result is the same.
//!
//! Four systems may be solved together: then a hop loads its links once for all.
//!
//! - `gcr`: the solver
//! - `ghosts`: what ranks give each other
//! - `below`: the next coarser level, whose aggregates are of places

mod below;
mod gcr;
mod ghosts;

pub(super) use gcr::CoarseSolver;

use super::aggregates::{Aggregates, Places};
use super::prolongator::{Coarse, Gathered, Numbers, Prolongator};
use crate::device::kernels::{
    COARSE_LINKS, CoarseBackward, CoarseHop, CoarseLocal, HOP_ROWS, HOP_SHARES, Half, Together, int,
};
use crate::device::{Buffer, DeviceError, Team};
use crate::field::{Dagger, Domain, FieldError};
use crate::lattice::Extents;
use below::Below;
use ghosts::{Ghosts, Wires};
use std::sync::Arc;
#[cfg(test)]
use {crate::math::single, crate::operator::Twists, num_complex::Complex64};

/// The coarse operator: its links, for all masses.
pub(super) struct CoarseLinks {
    shape: Shape,
    /// The places of this rank's aggregates in their order in memory, in a field, and where one of the first system has them.
    own_places: Buffer,
    own_of_first: Buffer,
    /// `COARSE_LINKS` matrices per place.
    links: Buffer,
    /// `P_o^dag P_o`, which a twisted mass multiplies.
    odd: Option<Buffer>,
    below: Option<Box<Below>>,
}

/// Of coarse fields and matrices.
struct Shape {
    domain: Arc<Domain>,
    lanes: usize,
    rows: usize,
    /// Systems for which fields have room. A solve is for the first of them, or for all.
    systems: Together,
    places: Places,
    neighbours: Buffer,
    /// None if no direction is cut.
    ghosts: Option<Ghosts>,
}

/// A_xx^-1, and its products with the eight links to neighbours, rounded.
struct Inverses {
    local: Buffer,
    links: Buffer,
    scales: Buffer,
}

/// A buffer from a byte on.
type From<'a> = (&'a Buffer, usize);

/// Whether other ranks get the result of a hop, since the next one reads it.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Kept,
    Given,
}

impl Shape {
    fn new(
        domain: &Arc<Domain>,
        ([lanes, rows], systems): ([usize; 2], Together),
        aggregates: Aggregates,
    ) -> Result<Self, FieldError> {
        let places = Places::new(aggregates);
        let neighbours = domain.device().buffer_of(&places.neighbours())?;
        let ghosts = Ghosts::new(domain, &places, systems, rows)?;
        Ok(Self { domain: Arc::clone(domain), lanes, rows, systems, places, neighbours, ghosts })
    }

    /// Places of a parity for which fields have room.
    fn half(&self) -> usize {
        self.places.half
    }

    /// Bytes of a field on a place.
    fn field(&self) -> usize {
        2 * self.rows * 4
    }

    /// Bytes of a field on places of one parity.
    fn half_field(&self) -> usize {
        self.half() * self.field()
    }

    /// The same of all systems.
    fn half_fields(&self) -> usize {
        self.systems as usize * self.half_field()
    }

    /// Of a field of all systems on places of one parity, that of system `n`.
    fn of_system<'a>(&self, (all, offset): From<'a>, n: usize) -> From<'a> {
        (all, offset + n * self.half_field())
    }

    /// So many matrices per place.
    fn matrices(&self, count: usize) -> Result<Buffer, DeviceError> {
        self.domain.device().buffer(count * 2 * self.half() * self.matrix())
    }

    /// Bytes of a matrix.
    fn matrix(&self) -> usize {
        self.rows * self.field()
    }

    /// Threads for a field on places of one parity.
    fn threads(&self, parity: usize) -> usize {
        self.places.counts[parity] * self.rows / self.lanes
    }

    /// Threads for a matrix on all places.
    fn elements(&self) -> usize {
        2 * self.half() * self.rows / self.lanes * self.rows
    }

    /// `out = B input` on places of a parity, for so many systems, where B has one matrix per place.
    fn local(
        &self,
        matrices: &Buffer,
        (parity, systems): (usize, Together),
        out: From,
        input: From,
    ) -> Result<(), FieldError> {
        let kernel = CoarseLocal {
            matrices: matrices.input_at(parity * self.half() * self.matrix()),
            input: input.0.input_at(input.1),
            out: out.0.shared_output_at(out.1),
            rows: int(self.rows),
            places: int(self.places.counts[parity]),
            half: int(self.half()),
        };
        self.domain.launch_as(Half, &kernel, systems as usize * self.threads(parity))
    }

    /// `out = x + scale H input` on places of a parity, for so many systems, where H are the hops. `input` was given last.
    fn hop(
        &self,
        inverses: &Inverses,
        (parity, systems, result): (usize, Together, Fate),
        out: From,
        (scale, input): (f64, From),
        x: Option<From>,
        wires: &mut Option<Wires>,
    ) -> Result<(), FieldError> {
        let first = parity * self.half();
        let near = (COARSE_LINKS - 1) * self.rows;
        let given = result == Fate::Given;
        let (ghosts, gift) = ghosts::of_hop(self.ghosts.as_ref(), wires.as_mut(), (parity, first), given);
        let kernel = CoarseHop {
            half: int(self.half()),
            systems: int(self.systems as usize),
            links: inverses.links.input_at(first * near * self.rows * 4),
            scales: inverses.scales.input_at(first * near * 4),
            neighbours: self.neighbours.input_at(first * COARSE_LINKS * 4),
            input: input.0.input_at(input.1),
            ghosts,
            x: x.map(|(x, offset)| x.input_at(offset)),
            out: out.0.shared_output_at(out.1),
            gift,
            rows: int(self.rows),
            scale,
        };
        let threads = near * HOP_SHARES / HOP_ROWS;
        let shared = systems as usize * 2 * near * (1 + HOP_SHARES) * 4;
        let team = Team { threads, shared };
        self.domain.launch_teams((Half, systems), &kernel, self.places.counts[parity], team)?;
        if given { self.travel((parity, systems), wires) } else { Ok(()) }
    }
}

impl CoarseLinks {
    /// Memory for the operator on fields of `rows` rows, for so many systems at once, and for the `coarser` one below whose
    /// aggregates have these extents, in places.
    pub(super) fn new(
        domain: &Arc<Domain>,
        form: ([usize; 2], Together),
        aggregates: Aggregates,
        coarser: Option<Extents>,
    ) -> Result<Self, FieldError> {
        let device = domain.device();
        let shape = Shape::new(domain, form, aggregates)?;
        let below = coarser.map(|block| Below::new(&shape, aggregates, block).map(Box::new)).transpose()?;
        let (own, half) = (shape.places.all(), shape.half());
        let own: Vec<usize> = own.collect();
        let of_first = |place: &usize| int(place / half * shape.systems as usize * half + place % half);
        let own_of_first = device.buffer_of(&own.iter().map(of_first).collect::<Vec<_>>())?;
        let own_places = device.buffer_of(&own.into_iter().map(int).collect::<Vec<_>>())?;
        let links = shape.matrices(COARSE_LINKS)?;
        Ok(Self { own_places, own_of_first, links, odd: None, below, shape })
    }

    /// A field on all places, zero.
    pub(super) fn field(&self) -> Result<Buffer, FieldError> {
        Ok(self.shape.domain.device().buffer(2 * self.shape.half_field())?)
    }

    /// The same of all systems.
    pub(super) fn fields(&self) -> Result<Buffer, FieldError> {
        Ok(self.shape.domain.device().buffer(2 * self.shape.half_fields())?)
    }

    /// Systems for which fields have room.
    pub(super) fn systems(&self) -> Together {
        self.shape.systems
    }

    /// A field as what this rank's restrictions fill.
    pub(super) fn of_field<'a>(&'a self, buffer: &'a Buffer) -> Coarse<'a> {
        Coarse { buffer, offset: 0, places: &self.own_places, strides: [2 * self.shape.rows, 0] }
    }

    /// The same of all systems.
    pub(super) fn of_fields<'a>(&'a self, buffer: &'a Buffer) -> Coarse<'a> {
        let (rows, half) = (self.shape.rows, self.shape.half());
        Coarse { buffer, offset: 0, places: &self.own_of_first, strides: [2 * rows, half * 2 * rows] }
    }

    /// Restricts four fields to columns `column` and following of link `which`.
    pub(super) fn set_link(
        &self,
        p: &Prolongator,
        which: usize,
        column: usize,
        x: &Gathered,
    ) -> Result<(), FieldError> {
        let to = self.columns(&self.links, COARSE_LINKS, which, column);
        p.restrict(to, (x, Together::FourFields), Numbers::All, Dagger::No)
    }

    /// The same for `P_o^dag P_o`, from those of their numbers that belong to odd sites.
    pub(super) fn set_odd(
        &mut self,
        p: &Prolongator,
        column: usize,
        (x, numbers): (&Gathered, Numbers),
    ) -> Result<(), FieldError> {
        self.reserve_odd()?;
        let odd = self.odd.as_ref().expect("just made");
        let to = self.columns(odd, 1, 0, column);
        p.restrict(to, (x, Together::FourFields), numbers, Dagger::No)
    }

    /// Memory for what a twisted mass multiplies, here and below.
    pub(super) fn reserve_odd(&mut self) -> Result<(), FieldError> {
        if self.odd.is_none() {
            self.odd = Some(self.shape.matrices(1)?);
        }
        self.below.as_mut().map_or(Ok(()), |below| below.links.reserve_odd())
    }

    fn columns<'a>(&'a self, buffer: &'a Buffer, matrices: usize, which: usize, column: usize) -> Coarse<'a> {
        let rows = self.shape.rows;
        let offset = (which * rows + column) * self.shape.field();
        Coarse { buffer, offset, places: &self.own_places, strides: [matrices * rows * 2 * rows, 2 * rows] }
    }

    /// Completes the links once all columns of the local ones and of the forward ones are set: backward links are the adjoint of
    /// those behind.
    pub(super) fn complete(&mut self) -> Result<(), FieldError> {
        let Self { shape, links, .. } = self;
        for mu in 0..4 {
            let face = shape.places.faces.iter().find(|face| (face.mu, face.forward) == (mu, false));
            let ghosts = face.map(|face| shape.links_behind(links, face)).transpose()?;
            let kernel = CoarseBackward {
                links: links.output(),
                neighbours: shape.neighbours.input(),
                ghosts: ghosts.as_ref().map(Buffer::input),
                rows: int(shape.rows),
                half: int(shape.half()),
                mu: int(mu),
                first: int(face.map_or(0, |face| face.first)),
                face: int(face.map_or(0, |face| face.room)),
            };
            shape.domain.launch_as(Half, &kernel, shape.elements())?;
        }
        Ok(())
    }

    /// Makes the level below, if there is one, from vectors on places that nearly solve `A v = 0`; `vector` makes one at a
    /// time.
    pub(super) fn make_below(
        &mut self,
        mut vector: impl FnMut(&Self, usize, &mut Buffer) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let Some(mut below) = self.below.take() else { return Ok(()) };
        let made = below.make(self, |n, out| vector(self, n, out));
        self.below = Some(below);
        made
    }

    /// The same for `P_o^dag P_o`.
    pub(super) fn make_below_odd(&mut self) -> Result<(), FieldError> {
        let Some(mut below) = self.below.take() else { return Ok(()) };
        let made = below.make_odd(self);
        self.below = Some(below);
        made
    }

    /// For a field on the level below: `P^dag P c`, `P^dag A P c`, and the operator there times c, for tests.
    #[cfg(test)]
    pub(super) fn products_below(&self, twists: Twists, c: &Buffer) -> Result<[Buffer; 3], FieldError> {
        let below = self.below.as_ref().expect("a third level");
        let x = below.prolonged(self, c)?;
        let own = below.links.applied(twists, c)?;
        Ok([below.restricted(self, &x)?, below.restricted(self, &self.applied(twists, &x)?)?, own])
    }

    /// `A x` by the links as they are, for tests.
    #[cfg(test)]
    pub(super) fn applied(&self, twists: Twists, x: &Buffer) -> Result<Buffer, FieldError> {
        let Self { shape, links, odd, .. } = self;
        let floats = |buffer: &Buffer| {
            let mut all = vec![0f32; buffer.bytes() / 4];
            buffer.read(&mut all).map(|()| all)
        };
        let (links, x) = (floats(links)?, floats(x)?);
        let odd = odd.as_ref().map(floats).transpose()?;
        let mut neighbours = vec![0i32; 2 * shape.half() * COARSE_LINKS];
        shape.neighbours.read(&mut neighbours)?;
        let rows = shape.rows;
        let complex = |a: &[f32], at: usize| Complex64::new(a[at].into(), a[at + rows].into());
        let mut out = vec![0f32; x.len()];
        for place in 0..2 * shape.half() {
            for which in 0..COARSE_LINKS {
                let own = which == 0;
                let other_half = if (place < shape.half()) == own { 0 } else { shape.half() };
                let there =
                    usize::try_from(neighbours[place * COARSE_LINKS + which]).expect("a place") + other_half;
                for column in 0..rows {
                    let c = complex(&x, there * 2 * rows + column);
                    for row in 0..rows {
                        let at = |count: usize, which: usize| {
                            ((place * count + which) * rows + column) * 2 * rows + row
                        };
                        let mut element = complex(&links, at(COARSE_LINKS, which));
                        let sign = if column < rows / 2 { Complex64::i() } else { -Complex64::i() };
                        if let (Some(odd), true) = (&odd, own && twists.odd != 0.0) {
                            element += twists.odd * sign * complex(odd, at(1, 0));
                        }
                        if own && row == column {
                            element += twists.all * sign;
                        }
                        let product = element * c;
                        out[place * 2 * rows + row] += single(product.re);
                        out[place * 2 * rows + rows + row] += single(product.im);
                    }
                }
            }
        }
        Ok(shape.domain.device().buffer_of(&out)?)
    }
}
