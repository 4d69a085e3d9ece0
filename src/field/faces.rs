//! Faces of fermion fields that cross ranks: pack, transport and merge, overlapped with work.
//!
//! Face number 2 mu comes from the next rank in direction mu (for forward hops), and 2 mu + 1 from the rank before.
//! Only lanes at the rank's edge travel; the pack kernel puts the others in place. GPUs that open each other's memory pack
//! into it, and wait for each other by flags: the host launches and goes on.
//!
//! In half precision a field's integers travel, and their factor (`kernels/faces.cuh`): the same bits as from floats, in 16
//! instead of 24 bytes of a colour vector and 32 instead of 48 of a half spinor. A GPU's hops read them as they come; a CPU
//! unpacks them.

mod messages;

use super::order::{Order, Swap, nothing};
use super::signals::{Signals, no_signal, no_wait};
use super::{Dagger, Domain, FieldError, Halo};
use crate::comm::agree;
use crate::device::kernels::{
    self, FACE_CHUNK, Fermions, In, LinkFace, LinkReals, Links, LongReals, Out, Outgoing, Places,
    StaggeredFace, StaggeredLinkFace, WilsonFace, int,
};
use crate::device::{Buffer, Precision, Remote, Staging, Use};
use std::sync::Arc;

/// What crosses at a site of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// A half spinor.
    HalfSpinor,
    /// A colour vector of each of three layers.
    ColourVectors,
    /// A matrix of each of so many layers, for hops backward alone.
    Links(usize),
}

impl Crossing {
    /// Reals of a block, and blocks of a site.
    fn blocks(self) -> (usize, usize) {
        match self {
            Self::HalfSpinor => (12, 1),
            Self::ColourVectors => (6, 3),
            Self::Links(layers) => (18, layers),
        }
    }

    /// Whether integers cross.
    fn is_packed(self, precision: Precision) -> bool {
        precision == Precision::Half && !matches!(self, Self::Links(_))
    }

    /// Bytes of a site and lane: on wires, and in a GPU's ghost zones.
    fn bytes(self, precision: Precision) -> usize {
        let (reals, blocks) = self.blocks();
        match self {
            Self::HalfSpinor if self.is_packed(precision) => 32,
            Self::ColourVectors if self.is_packed(precision) => blocks * 16,
            _ => blocks * reals * precision.bytes(),
        }
    }
}

/// The data to pack, of one parity.
#[derive(Clone, Copy)]
pub(crate) struct FaceSource<'a> {
    /// Their parity.
    pub parity: usize,
    /// What they are.
    pub data: FaceData<'a>,
}

/// What a face is packed from.
#[derive(Clone, Copy)]
pub(crate) enum FaceData<'a> {
    /// Spinors, for the hop of Wilson quarks.
    Spinors {
        /// The fields.
        input: In<'a, Fermions>,
        /// Whether to use the projectors of the adjoint.
        dagger: Dagger,
        /// Slices of the fifth dimension; 1 without one.
        slices: usize,
    },
    /// Colour vectors, for the hop of improved staggered quarks.
    ColourVectors(In<'a, Fermions>),
    /// An operator's own links.
    Links(LinkReals, In<'a, Links>),
    /// Those of a staggered operator.
    StaggeredLinks {
        /// Reals of a link.
        reals: LongReals,
        /// The links.
        links: In<'a, Links>,
        /// The ninth reals of links that have nine.
        ninth: Option<In<'a, Links>>,
    },
}

struct Face {
    mu: usize,
    forward: bool,
    sites: usize,
    ghost: [Buffer; 2],
    outgoing: Buffer,
    /// Where a message comes whose content then goes to its place in the ghost zone; else it comes there at once.
    incoming: Option<Buffer>,
    remote: [Option<Remote>; 2],
    /// How its data leave, and how they come.
    to: Halo,
    from: Halo,
    /// If they pass through host memory, and the device has its own.
    sent: Option<Staging>,
    received: Option<Staging>,
}

/// The ghost zones of one kind of hop.
pub struct Faces {
    domain: Arc<Domain>,
    precision: Precision,
    crossing: Crossing,
    fields: usize,
    faces: Vec<Face>,
    turn: usize,
    /// Between GPUs that open each other's memory.
    signals: Option<Signals>,
    /// Of a hop's sites.
    order: Option<Arc<Order>>,
}

/// What a launch of a hop covers, and the ghost zones that it reads.
pub(crate) struct Reached<'a> {
    /// Its sites.
    pub places: Places<'a>,
    /// Ghost zones; none if the sites need none.
    pub ghost: [Option<In<'a, kernels::Halo>>; 8],
}

impl Face {
    /// A face of the direction `mu`, from forward or backward.
    fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        fields: usize,
        (mu, forward): (usize, bool),
        crossing: Crossing,
    ) -> Result<Self, FieldError> {
        let (device, layout) = (domain.device(), domain.layout(precision));
        let sites = layout.half() / layout.outer()[mu];
        let lanes = layout.lanes().count();
        let edge = lanes / layout.lanes().0[mu];
        let (to, from) = (domain.halo(mu, !forward), domain.halo(mu, forward));
        let (reals, blocks) = crossing.blocks();
        let is_unpacked = !device.nature().is_gpu && crossing.is_packed(precision);
        let lane = if is_unpacked { blocks * reals * precision.bytes() } else { crossing.bytes(precision) };
        let bytes = fields * sites * lanes * lane;
        // All ranks have the same buffers to open, whoever opens them.
        let exports = domain.transports().have_peer();
        let ghost = || if exports { device.buffer_for(Use::Exported, bytes) } else { device.buffer(bytes) };
        let wire_bytes = fields * sites * edge * crossing.bytes(precision);
        let staging =
            |halo: Halo| if halo == Halo::Staged { Staging::new(device, wire_bytes) } else { Ok(None) };
        let lands_apart = edge < lanes || is_unpacked;
        Ok(Self {
            mu,
            forward,
            sites,
            ghost: [ghost()?, ghost()?],
            outgoing: device.buffer(wire_bytes)?,
            incoming: lands_apart.then(|| device.buffer(wire_bytes)).transpose()?,
            remote: [None, None],
            to,
            from,
            sent: staging(to)?,
            received: staging(from)?,
        })
    }
}

impl Faces {
    /// Ghost zones for hops of `fields` fields over `reach` sites; 0 for kernels that do all sites after an exchange. `sides`
    /// has true for what comes from forward neighbours, false for what comes from those before.
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory, or memory runs out.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        fields: usize,
        (crossing, sides): (Crossing, &[bool]),
        reach: usize,
    ) -> Result<Self, FieldError> {
        let _label = domain.device().label("halos");
        let mut faces = Vec::new();
        for mu in domain.cut_directions() {
            for forward in sides {
                faces.push(Face::new(domain, precision, fields, (mu, *forward), crossing)?);
            }
        }
        let order =
            (reach > 0 && !faces.is_empty()).then(|| Order::new(domain, precision, reach)).transpose()?;
        let order = order.map(Arc::new);
        let domain = Arc::clone(domain);
        let mut made = Self { domain, precision, crossing, fields, faces, turn: 0, signals: None, order };
        if made.domain.transports().have_peer() && !made.faces.is_empty() {
            made.open_remote()?;
            let most = made.chunks(fields).into_iter().max().expect("eight faces");
            made.signals = Some(Signals::new(&made.domain, most)?);
        }
        Ok(made)
    }

    /// Opens the neighbours' ghost zones, into which this rank packs.
    fn open_remote(&mut self) -> Result<(), FieldError> {
        let own: Result<Vec<Vec<u8>>, FieldError> = self
            .faces
            .iter()
            .flat_map(|face| &face.ghost)
            .map(|ghost| Ok(ghost.export()?.unwrap_or_default()))
            .collect();
        // The zeroing of new zones must be done before a neighbour writes.
        self.domain.device().synchronize()?;
        let own = agree(self.domain.comm(), own)?;
        let length = own.first().map_or(0, Vec::len);
        let all = self.domain.comm().gather(&own.concat());
        let partition = *self.domain.partition();
        let mut opened = Ok(());
        for (number, face) in self.faces.iter_mut().enumerate() {
            if face.to != Halo::Peer {
                continue;
            }
            // The face for forward hops goes to the rank before this one.
            let peer = partition.neighbour(face.mu, !face.forward);
            for turn in 0..2 {
                let handle = &all[peer][(2 * number + turn) * length..][..length];
                match self.domain.device().open(handle) {
                    Ok(remote) => face.remote[turn] = Some(remote),
                    Err(error) => opened = Err(FieldError::from(error)),
                }
            }
        }
        agree(self.domain.comm(), opened)
    }

    /// The ghost zones in the form that the hop kernel takes; valid until the exchange after the next.
    pub(crate) fn ghosts(&self) -> [Option<In<'_, kernels::Halo>>; 8] {
        let mut ghosts = [None; 8];
        for face in &self.faces {
            ghosts[place(face.mu, face.forward)] = Some(face.ghost[self.turn].input());
        }
        ghosts
    }

    /// The bytes of all ghost zones.
    pub(crate) fn received(&self) -> Result<Vec<Vec<u8>>, FieldError> {
        let of = |face: &Face| {
            let mut bytes = vec![0; face.ghost[self.turn].bytes()];
            face.ghost[self.turn].read(&mut bytes).map(|()| bytes)
        };
        Ok(self.faces.iter().map(of).collect::<Result<_, _>>()?)
    }

    /// The ghost zone of a direction that is cut, of the last exchange.
    pub(super) fn zone(&self, mu: usize, forward: bool) -> Option<&Buffer> {
        let face = self.faces.iter().find(|face| (face.mu, face.forward) == (mu, forward))?;
        Some(&face.ghost[self.turn])
    }

    /// Memory as large as the ghost zones of a side, by direction.
    pub(super) fn like_zones(&self, forward: bool) -> Result<Vec<(usize, Buffer)>, FieldError> {
        let device = self.domain.device();
        let of = |face: &Face| Ok((face.mu, device.buffer(face.ghost[0].bytes())?));
        self.faces.iter().filter(|face| face.forward == forward).map(of).collect()
    }

    /// The ghost zones from forward neighbours, or from those before.
    pub(crate) fn ghosts_of(&self, forward: bool) -> [Option<In<'_, kernels::Halo>>; 4] {
        let ghosts = self.ghosts();
        std::array::from_fn(|mu| ghosts[place(mu, forward)])
    }

    /// Bytes that a rank sends in an exchange of all fields.
    pub(crate) fn bytes_sent(&self) -> usize {
        self.faces.iter().map(|face| face.outgoing.bytes()).sum()
    }

    /// Bit mu is set if direction mu is cut.
    pub fn mask(&self) -> i32 {
        self.domain.cut_directions().map(|mu| 1 << mu).sum()
    }

    /// Chunks of each face with a flag; a face without data has one.
    fn chunks(&self, fields: usize) -> [usize; 8] {
        let mut chunks = [1; 8];
        for face in &self.faces {
            chunks[place(face.mu, face.forward)] = (fields * face.sites).div_ceil(FACE_CHUNK);
        }
        chunks
    }

    /// Fills the ghost zones for the first `fields` fields.
    ///
    /// # Errors
    /// The device is lost.
    pub(crate) fn exchange(&mut self, source: FaceSource<'_>, fields: usize) -> Result<(), FieldError> {
        if self.faces.is_empty() {
            return Ok(());
        }
        self.send(source, fields)?;
        if self.sends_messages() {
            self.receive(fields, || Ok(()))?;
        }
        self.await_signals(fields)
    }

    /// Waits, on the device, for what neighbours pack into its memory.
    fn await_signals(&self, fields: usize) -> Result<(), FieldError> {
        match &self.signals {
            Some(signals) => signals.await_all(&self.domain, self.chunks(fields)),
            None => Ok(()),
        }
    }

    /// Whether any data leave or come in messages.
    fn sends_messages(&self) -> bool {
        self.faces.iter().any(|face| [face.to, face.from] != [Halo::Peer; 2])
    }

    /// Launches a hop on all sites of the parity that the first `fields` fields of `source` do not have: at once if all ranks
    /// around open each other's memory, so that its kernel packs and waits by itself; else sites that need no ghost zones while
    /// messages travel, and then the others.
    ///
    /// # Errors
    /// `launch` failed, or the device is lost.
    pub(crate) fn hop(
        &mut self,
        source: FaceSource<'_>,
        fields: usize,
        mut launch: impl FnMut(Reached<'_>) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let count = self.domain.layout(self.precision).half();
        if self.faces.is_empty() {
            return launch(Reached::all(count));
        }
        let (order, to) = (Arc::clone(self.order.as_ref().expect("of a hop's sites")), 1 - source.parity);
        if !self.sends_messages() {
            return launch(self.swap(&order, to, fields));
        }
        self.send(source, fields)?;
        let inner = order.places(to, [0, order.inner], Swap::none());
        self.receive(fields, || launch(Reached { places: inner, ghost: [None; 8] }))?;
        self.await_signals(fields)?;
        let places = order.places(to, [order.inner, count], Swap::none());
        launch(Reached { places, ghost: self.ghosts() })
    }

    /// All sites of parity `to`, for a launch that packs the first `fields` fields and waits for those of other ranks.
    fn swap<'a>(&'a mut self, order: &'a Order, to: usize, fields: usize) -> Reached<'a> {
        assert!(fields <= self.fields, "ghost zones for {} fields", self.fields);
        self.turn = 1 - self.turn;
        let (turn, chunks) = (self.turn, self.chunks(fields));
        let mut swap = Swap::none();
        (swap.packs.signal, swap.wait) = self.signals.as_mut().expect("of peers").next_and_wait(chunks);
        (swap.packs.fields, swap.packs.chunk) = (int(fields), int(FACE_CHUNK));
        let mut ghost = [None; 8];
        for Face { mu, forward, ghost: zones, outgoing, remote, .. } in &mut self.faces {
            let place = place(*mu, *forward);
            swap.chunks += chunks[place];
            swap.packs.wire[place] = Some(wire(outgoing, &mut remote[turn]));
            ghost[place] = Some(zones[turn].input());
        }
        let count = self.domain.layout(self.precision).half();
        Reached { places: order.places(to, [0, count], swap), ghost }
    }

    /// Packs the faces and sends them on their way.
    fn send(&mut self, source: FaceSource<'_>, fields: usize) -> Result<(), FieldError> {
        assert!(fields <= self.fields, "ghost zones for {} fields", self.fields);
        self.turn = 1 - self.turn;
        self.pack(source, fields)?;
        if self.sends_messages() {
            self.domain.device().backend().mark()?;
        }
        Ok(())
    }

    /// Packs the first `fields` fields for the neighbours, all faces in one launch, which raises their flags.
    fn pack(&mut self, FaceSource { parity, data }: FaceSource<'_>, fields: usize) -> Result<(), FieldError> {
        let Self { domain, precision, faces, turn, signals, .. } = self;
        let g = domain.layout(*precision).geometry();
        let parity = int(parity);
        let chunk = if signals.is_some() { FACE_CHUNK } else { 1 };
        let sites: usize = faces.iter().map(|face| (fields * face.sites).next_multiple_of(chunk)).sum();
        let signal = match signals {
            Some(signals) => signals.next(),
            None => no_signal(),
        };
        let mut to = Outgoing { signal, fields: int(fields), chunk: int(chunk), ..nothing() };
        for face in faces {
            let Face { mu, forward, ghost, outgoing, remote, .. } = face;
            let place = place(*mu, *forward);
            to.ghost[place] = Some(ghost[*turn].output());
            to.wire[place] = Some(wire(outgoing, &mut remote[*turn]));
        }
        match data {
            FaceData::Spinors { input, dagger, slices } => {
                let (dagger, slices) = (dagger as i32, int(slices));
                let face = WilsonFace { g, input, faces: to, parity, dagger, slices };
                domain.launch_as(*precision, &face, sites)
            }
            FaceData::ColourVectors(input) => {
                domain.launch_as(*precision, &StaggeredFace { g, input, faces: to, parity }, sites)
            }
            FaceData::Links(reals, links) => {
                domain.launch_as((*precision, reals), &LinkFace { g, links, faces: to, parity }, sites)
            }
            FaceData::StaggeredLinks { reals, links, ninth } => {
                let layers = int(self.crossing.blocks().1);
                let face = StaggeredLinkFace { g, links, ninth, faces: to, parity, layers };
                domain.launch_as((*precision, reals), &face, sites)
            }
        }
    }
}

/// Where a face is packed: in the neighbour's memory, or to be sent.
fn wire<'a>(outgoing: &'a mut Buffer, remote: &'a mut Option<Remote>) -> Out<'a, kernels::Halo> {
    remote.as_mut().map_or_else(|| outgoing.output(), Remote::output)
}

/// The number of a face.
fn place(mu: usize, forward: bool) -> usize {
    2 * mu + usize::from(!forward)
}

impl Drop for Faces {
    fn drop(&mut self) {
        if self.signals.is_some() {
            // Neighbours' memory is closed when all work on it is done; on a lost device there is nothing left to do.
            let _ = self.domain.device().synchronize();
        }
    }
}

impl Reached<'_> {
    /// All sites, of which none needs ghost zones.
    pub(crate) fn all(count: usize) -> Self {
        let count = int(count);
        let (wait, packs) = (no_wait(), nothing());
        let places = Places { sites: None, wait, packs, packing: 0, from: 0, all: count, first: 0, count };
        Self { places, ghost: [None; 8] }
    }
}
