//! The coarse operator `A = P^dag M P`, and GCR on its even-odd preconditioned form (`gcr`). Where GPUs reach each other's memory,
//! each solves for the places of its own aggregates, and kernels give each other what they need; elsewhere every rank
//! solves for all places, so no message delays an iteration. The result is the same.
//!
//! Four systems may be solved together: then a hop loads its links once for all.
//!
//! - `gcr`: the solver
//! - `below`: the next coarser level, whose aggregates are of places

mod below;
mod gcr;

pub(super) use gcr::CoarseSolver;

use super::aggregates::Aggregates;
use super::prolongator::{Coarse, Gathered, Numbers, Prolongator};
use crate::device::kernels::{
    COARSE_LINKS, CoarseBackward, CoarseHop, CoarseLocal, CoarsePost, HOP_ROWS, HOP_SHARES, Half,
    MOST_FIELDS, POSTS, RankRound, Together,
};
use crate::device::{Buffer, DeviceError, Meeting, Team};
use crate::field::{Dagger, Domain, FieldError};
use crate::lattice::Extents;
use below::Below;
use gcr::PRODUCTS;
#[cfg(test)]
use num_complex::Complex64;
use std::sync::Arc;

/// The coarse operator: its links, for all masses.
pub(super) struct CoarseLinks {
    shape: Shape,
    /// The places of this rank's aggregates.
    own: Vec<i32>,
    /// The same where a field of the first system has them.
    own_of_first: Buffer,
    /// Of these the ones whose neighbour forward in x, y, z, t is another rank's.
    leaving: [Vec<i32>; 4],
    pub own_places: Buffer,
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
    /// Places of one parity, of all ranks' aggregates.
    half: usize,
    neighbours: Buffer,
    /// The places of each parity for which this rank solves, as numbers among those of the parity.
    parts: [Part; 2],
    /// Where ranks solve together: what travels between hops, and products.
    together: Option<[Meeting; 2]>,
    /// Whether each rank restricts to some places only, and gets the others' from other ranks.
    shared: bool,
}

/// Places for which this rank solves.
struct Part {
    places: Buffer,
    count: usize,
}

/// A_xx^-1, and its products with the eight links to neighbours, rounded.
struct Inverses {
    local: Buffer,
    links: Buffer,
    scales: Buffer,
}

/// A buffer from a byte on.
type From<'a> = (&'a Buffer, usize);

/// What a hop reads of other ranks, and whether they read what it gives.
#[derive(Clone, Copy, PartialEq)]
enum Posts {
    Reads,
    ReadsAndGives,
}

impl Shape {
    /// `own` are the places of this rank's aggregates.
    fn new(
        domain: &Arc<Domain>,
        ([lanes, rows], systems): ([usize; 2], Together),
        aggregates: Aggregates,
        own: &[i32],
    ) -> Result<Self, FieldError> {
        let (device, half) = (domain.device(), aggregates.all() / 2);
        let shared = aggregates.here() < aggregates.all();
        let count = systems as usize;
        let products = count * 2 * 2 * MOST_FIELDS * PRODUCTS * domain.comm().size();
        let meet = |turns, halves| if shared { domain.meet(turns, halves) } else { Ok(None) };
        let together = match (meet(POSTS, count * half * 2 * rows)?, meet(2, products)?) {
            (Some(posts), Some(products)) => Some([posts, products]),
            _ => None,
        };
        let part = |parity: usize| -> Result<_, DeviceError> {
            let all = || (0..half as i32).collect();
            let of_parity = |place: &i32| (parity * half..(parity + 1) * half).contains(&(*place as usize));
            let among = |place: &i32| *place - (parity * half) as i32;
            let own = || own.iter().filter(|place| of_parity(place)).map(among).collect();
            let places: Vec<i32> = if together.is_some() { own() } else { all() };
            Ok(Part { count: places.len(), places: device.buffer_of(&places)? })
        };
        Ok(Self {
            parts: [part(0)?, part(1)?],
            domain: Arc::clone(domain),
            lanes,
            rows,
            systems,
            half,
            neighbours: device.buffer_of(&aggregates.neighbours())?,
            together,
            shared,
        })
    }

    /// Bytes of a field on a place.
    fn field(&self) -> usize {
        2 * self.rows * 4
    }

    /// Bytes of a field on places of one parity.
    fn half_field(&self) -> usize {
        self.half * self.field()
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
        self.domain.device().buffer(count * 2 * self.half * self.matrix())
    }

    /// Bytes of a matrix.
    fn matrix(&self) -> usize {
        self.rows * self.field()
    }

    /// Threads for a field on places of one parity.
    fn threads(&self) -> usize {
        self.half * self.rows / self.lanes
    }

    /// The same, of this rank's places.
    fn own_threads(&self, parity: usize) -> usize {
        self.parts[parity].count * self.rows / self.lanes
    }

    /// Threads for a matrix on all places.
    fn elements(&self) -> usize {
        2 * self.threads() * self.rows
    }

    /// `out = B input` on places of a parity, for so many systems, where B has one matrix per place.
    fn local(
        &self,
        matrices: &Buffer,
        (parity, systems): (usize, Together),
        out: From,
        input: From,
    ) -> Result<(), FieldError> {
        let Part { places: own, count } = &self.parts[parity];
        let kernel = CoarseLocal {
            own: own.input(),
            matrices: matrices.input_at(parity * self.half * self.matrix()),
            input: input.0.input_at(input.1),
            out: out.0.shared_output_at(out.1),
            rows: self.rows as i32,
            places: *count as i32,
            half: self.half as i32,
        };
        self.domain.launch_as(Half, &kernel, systems as usize * self.own_threads(parity))
    }

    /// Gives other ranks the places that this one has of fields, for the next hop.
    fn post(&self, (parity, systems): (usize, Together), input: From) -> Result<(), FieldError> {
        let Some([posts, _]) = &self.together else { return Ok(()) };
        let Part { places, count } = &self.parts[parity];
        let kernel = CoarsePost {
            own: places.input(),
            input: input.0.input_at(input.1),
            to: posts.next(),
            rows: self.rows as i32,
            places: *count as i32,
            half: self.half as i32,
            systems: self.systems as i32,
        };
        self.domain.launch_as(Half, &kernel, systems as usize * count * 2 * self.rows)
    }

    /// `out = x + scale H input` on places of a parity, for so many systems, where H are the hops. `input` was posted last.
    fn hop(
        &self,
        inverses: &Inverses,
        (parity, systems, posts): (usize, Together, Posts),
        out: From,
        (scale, input): (f64, From),
        x: Option<From>,
    ) -> Result<(), FieldError> {
        let first = parity * self.half;
        let near = (COARSE_LINKS - 1) * self.rows;
        let Part { places, count } = &self.parts[parity];
        let (mut from, mut to) = (RankRound::ALONE, RankRound::ALONE);
        if let Some([meeting, _]) = &self.together {
            from = meeting.last();
            if posts == Posts::ReadsAndGives {
                to = meeting.next();
            }
        }
        let kernel = CoarseHop {
            own: places.input(),
            from,
            to,
            half: self.half as i32,
            systems: self.systems as i32,
            links: inverses.links.input_at(first * near * self.rows * 4),
            scales: inverses.scales.input_at(first * near * 4),
            neighbours: self.neighbours.input_at(first * COARSE_LINKS * 4),
            input: input.0.input_at(input.1),
            x: x.map(|(x, offset)| x.input_at(offset)),
            out: out.0.shared_output_at(out.1),
            rows: self.rows as i32,
            scale,
        };
        let threads = near * HOP_SHARES / HOP_ROWS;
        let shared = systems as usize * 2 * near * (1 + HOP_SHARES) * 4;
        self.domain.launch_teams((Half, systems), &kernel, *count, Team { threads, shared })
    }

    /// Gives all ranks what each has of a field, of so many systems, at its `own` places.
    fn share_field(&self, own: &[i32], field: &mut Buffer, systems: Together) -> Result<(), FieldError> {
        if !self.shared {
            return Ok(());
        }
        let (comm, bytes, systems) = (self.domain.comm(), self.field(), systems as usize);
        let room = field.bytes() / (2 * self.half_field());
        let at = |place: usize, system: usize| {
            let (parity, place) = (place / self.half, place % self.half);
            ((parity * room + system) * self.half + place) * bytes
        };
        let mut all = vec![0u8; field.bytes()];
        field.read(&mut all)?;
        let mut message: Vec<u8> = own.iter().flat_map(|place| place.to_le_bytes()).collect();
        for &place in own {
            for system in 0..systems {
                message.extend_from_slice(&all[at(place as usize, system)..][..bytes]);
            }
        }
        for message in self.domain.waiting(|| comm.gather(&message)) {
            let places = message.len() / (4 + systems * bytes);
            let (places, content) = message.split_at(4 * places);
            let mut content = content.chunks_exact(bytes);
            for place in places_of(places) {
                for (system, content) in (0..systems).zip(&mut content) {
                    all[at(place, system)..][..bytes].copy_from_slice(content);
                }
            }
        }
        Ok(field.write(&all)?)
    }

    /// Gives all ranks matrix `which` of the `count` per place that each has at the places `of`.
    fn share_matrix(
        &self,
        matrices: &mut Buffer,
        (count, which): (usize, usize),
        of: &[i32],
    ) -> Result<(), FieldError> {
        let (device, comm, bytes) = (self.domain.device(), self.domain.comm(), self.matrix());
        let at = |place: usize| (place * count + which) * bytes;
        let mut packed = device.buffer(of.len() * bytes)?;
        for (n, &place) in of.iter().enumerate() {
            packed.copy_part(n * bytes, matrices, at(place as usize), bytes)?;
        }
        let mut message: Vec<u8> = of.iter().flat_map(|place| place.to_le_bytes()).collect();
        message.resize(of.len() * (4 + bytes), 0);
        packed.read(&mut message[4 * of.len()..])?;
        let messages = self.domain.waiting(|| comm.gather(&message));
        let others = messages.iter().enumerate().filter(|(rank, _)| *rank != comm.rank());
        for (_, message) in others {
            let places = message.len() / (4 + bytes);
            let (places, content) = message.split_at(4 * places);
            let content = device.buffer_of(content)?;
            for (n, place) in places_of(places).enumerate() {
                matrices.copy_part(at(place), &content, n * bytes, bytes)?;
            }
        }
        Ok(())
    }
}

/// The places that begin a message.
fn places_of(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().expect("four bytes")) as usize)
}

impl CoarseLinks {
    /// Memory for the operator on fields of `rows` rows, for so many systems at once, and for the `coarser` one below whose
    /// aggregates have these extents, in places. Without ranks that solve together, the latter is each rank's own.
    pub(super) fn new(
        domain: &Arc<Domain>,
        form: ([usize; 2], Together),
        aggregates: Aggregates,
        coarser: Option<Extents>,
    ) -> Result<Self, FieldError> {
        let device = domain.device();
        let own = aggregates.places();
        let shape = Shape::new(domain, form, aggregates, &own)?;
        let below = coarser.map(|block| Below::new(&shape, aggregates, block).map(Box::new)).transpose()?;
        let own_places = device.buffer_of(&own)?;
        let half = shape.half as i32;
        let of_first = |place: &i32| place / half * shape.systems as i32 * half + place % half;
        let own_of_first = device.buffer_of(&own.iter().map(of_first).collect::<Vec<_>>())?;
        let (leaving, links) = (aggregates.leaving(), shape.matrices(COARSE_LINKS)?);
        Ok(Self { own_places, own, own_of_first, leaving, links, odd: None, below, shape })
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
        let Shape { rows, half, .. } = self.shape;
        Coarse { buffer, offset: 0, places: &self.own_of_first, strides: [2 * rows, half * 2 * rows] }
    }

    /// Shares fields of so many systems after their restriction, where every rank solves for all places.
    pub(super) fn share(&self, field: &mut Buffer, systems: Together) -> Result<(), FieldError> {
        if self.shape.together.is_some() {
            return Ok(());
        }
        self.shape.share_field(&self.own, field, systems)
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

    /// Completes the links once all columns of the local ones and of the forward ones are set.
    pub(super) fn complete(&mut self) -> Result<(), FieldError> {
        let Self { shape, own, leaving, links, .. } = self;
        if shape.together.is_some() {
            // Only links backward of this rank's places are missing.
            for (mu, leaving) in leaving.iter().enumerate() {
                if shape.domain.partition().grid[mu] > 1 {
                    shape.share_matrix(links, (COARSE_LINKS, 1 + mu), leaving)?;
                }
            }
        } else if shape.shared {
            for which in 0..5 {
                shape.share_matrix(links, (COARSE_LINKS, which), own)?;
            }
        }
        let (rows, half) = (shape.rows as i32, shape.half as i32);
        let kernel =
            CoarseBackward { links: links.output(), neighbours: shape.neighbours.input(), rows, half };
        shape.domain.launch_as(Half, &kernel, 4 * shape.elements())
    }

    /// The same for `P_o^dag P_o`.
    pub(super) fn complete_odd(&mut self) -> Result<(), FieldError> {
        let Self { shape, own, odd, .. } = self;
        match odd {
            Some(odd) if shape.together.is_none() && shape.shared => shape.share_matrix(odd, (1, 0), own),
            _ => Ok(()),
        }
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
    pub(super) fn products_below(&self, twist: f64, c: &Buffer) -> Result<[Buffer; 3], FieldError> {
        let below = self.below.as_ref().expect("a third level");
        let x = below.prolonged(self, c)?;
        let own = below.links.applied(twist, c)?;
        Ok([below.restricted(self, &x)?, below.restricted(self, &self.applied(twist, &x)?)?, own])
    }

    /// `A x` by the links as they are, for tests.
    #[cfg(test)]
    pub(super) fn applied(&self, twist: f64, x: &Buffer) -> Result<Buffer, FieldError> {
        let Self { shape, links, odd, .. } = self;
        let floats = |buffer: &Buffer| {
            let mut all = vec![0f32; buffer.bytes() / 4];
            buffer.read(&mut all).map(|()| all)
        };
        let (links, x) = (floats(links)?, floats(x)?);
        let odd = odd.as_ref().map(floats).transpose()?;
        let mut neighbours = vec![0i32; 2 * shape.half * COARSE_LINKS];
        shape.neighbours.read(&mut neighbours)?;
        let rows = shape.rows;
        let complex = |a: &[f32], at: usize| Complex64::new(a[at].into(), a[at + rows].into());
        let mut out = vec![0f32; x.len()];
        for place in 0..2 * shape.half {
            for which in 0..COARSE_LINKS {
                let own = which == 0;
                let other_half = if (place < shape.half) == own { 0 } else { shape.half };
                let there = neighbours[place * COARSE_LINKS + which] as usize + other_half;
                for column in 0..rows {
                    let c = complex(&x, there * 2 * rows + column);
                    for row in 0..rows {
                        let at = |count: usize, which: usize| {
                            ((place * count + which) * rows + column) * 2 * rows + row
                        };
                        let mut element = complex(&links, at(COARSE_LINKS, which));
                        if let (Some(odd), true) = (&odd, own && twist != 0.0) {
                            let sign = if column < rows / 2 { 1.0 } else { -1.0 };
                            element += Complex64::i() * twist * sign * complex(odd, at(1, 0));
                        }
                        let product = element * c;
                        out[place * 2 * rows + row] += product.re as f32;
                        out[place * 2 * rows + rows + row] += product.im as f32;
                    }
                }
            }
        }
        Ok(shape.domain.device().buffer_of(&out)?)
    }
}
