//! Faces of fermion fields that cross ranks: pack, transport and merge, overlapped with work.
//!
//! Face number 2 mu comes from the next rank in direction mu (for forward hops), and 2 mu + 1 from the rank before.
//! Only lanes at the rank's edge travel; the pack kernel puts the others in place. GPUs that open each other's memory pack
//! into it, and wait for each other by flags: the host launches and goes on.
//!
//! Messages of half precision may be rounded to 16-bit integers with norms ([`HaloPrecision`](super::HaloPrecision)): the pack
//! kernel rounds, and a kernel restores what came.

use super::order::Order;
use super::signals::{Signals, no_signal, no_wait};
use super::{Dagger, Domain, FieldError, Halo};
use crate::comm::{Message, agree};
use crate::device::kernels::{
    self, FACE_CHUNK, FaceMerge, FaceRestore, Fermions, Half, In, LinkReals, Links, LongReals, Outgoing,
    Places, StaggeredFace, WilsonFace, int,
};
use crate::device::{Buffer, Precision, Remote, Staging, Use};
use std::sync::Arc;
use std::time::Instant;

type Sends<'a> = Vec<Message<&'a [u8]>>;
type Receives<'a> = Vec<Message<&'a mut [u8]>>;

/// Reals per face site that a hop needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaceReals {
    /// From the forward neighbour: 12 of a half spinor, or 6 of each colour vector.
    pub forward: usize,
    /// From the backward neighbour; 0: nothing travels.
    pub backward: usize,
}

/// The data to pack: fermion fields of one parity, and links of the same parity for backward hops.
#[derive(Clone, Copy)]
pub(crate) struct FaceSource<'a> {
    /// Fermion fields.
    pub input: In<'a, Fermions>,
    /// Their parity.
    pub parity: usize,
    /// The hop that they are packed for.
    pub hop: FaceHop<'a>,
}

/// The hop that a face is packed for.
#[derive(Clone, Copy)]
pub(crate) enum FaceHop<'a> {
    /// The hop of Wilson quarks.
    Wilson {
        /// Reals per link.
        reals: LinkReals,
        /// The links; `None` if only forward hops are needed.
        links: Option<In<'a, Links>>,
        /// Whether to use the projectors of the adjoint.
        dagger: Dagger,
        /// Slices of the fifth dimension; 1 without one.
        slices: usize,
    },
    /// The hop of improved staggered quarks.
    Staggered {
        /// Reals per long link.
        reals: LongReals,
        /// Fat links, long links and their ninth reals; `None` if only forward hops are needed.
        links: [Option<In<'a, Links>>; 3],
    },
}

/// Bytes that a lane of a face's site takes on a wire with rounded reals: 16-bit integers, and a norm for each half spinor or
/// colour vector.
fn rounded_bytes(reals: usize) -> usize {
    let norms = if reals == 12 { 1 } else { reals / 6 };
    2 * reals + 4 * norms
}

struct Face {
    mu: usize,
    forward: bool,
    reals: usize,
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
    /// Whether messages are rounded.
    rounded: bool,
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

/// Whether messages with halos of this precision are rounded.
fn rounded(domain: &Domain, precision: Precision) -> bool {
    precision == Precision::Half && domain.transports().round()
}

impl Face {
    /// A face of the direction `mu`, from forward or backward, with so many reals a site.
    fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        fields: usize,
        (mu, forward): (usize, bool),
        reals: usize,
    ) -> Result<Self, FieldError> {
        let (device, layout) = (domain.device(), domain.layout(precision));
        let sites = layout.half() / layout.outer()[mu];
        let lanes = layout.lanes().count();
        let edge = lanes / layout.lanes().0[mu];
        let (to, from) = (domain.halo(mu, !forward), domain.halo(mu, forward));
        let bytes = fields * sites * lanes * reals * precision.bytes();
        // All ranks have the same buffers to open, whoever opens them.
        let exports = domain.transports().have_peer();
        let ghost = || if exports { device.buffer_for(Use::Exported, bytes) } else { device.buffer(bytes) };
        let is_rounded = |halo: Halo| rounded(domain, precision) && halo != Halo::Peer;
        let wire_bytes = |halo: Halo| {
            let lane = if is_rounded(halo) { rounded_bytes(reals) } else { reals * precision.bytes() };
            fields * sites * edge * lane
        };
        let staging = |halo: Halo| {
            if halo == Halo::Staged { Staging::new(device, wire_bytes(halo)) } else { Ok(None) }
        };
        let lands_apart = edge < lanes || is_rounded(from);
        Ok(Self {
            mu,
            forward,
            reals,
            sites,
            ghost: [ghost()?, ghost()?],
            outgoing: device.buffer(wire_bytes(to))?,
            incoming: lands_apart.then(|| device.buffer(wire_bytes(from))).transpose()?,
            remote: [None, None],
            to,
            from,
            sent: staging(to)?,
            received: staging(from)?,
        })
    }
}

impl Faces {
    /// Ghost zones for hops of `fields` fields over `reach` sites; 0 for kernels that do all sites after an exchange.
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory, or memory runs out.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        fields: usize,
        reals: FaceReals,
        reach: usize,
    ) -> Result<Self, FieldError> {
        let _label = domain.device().label("halos");
        let mut faces = Vec::new();
        for mu in domain.cut_directions() {
            for (forward, reals) in [(true, reals.forward), (false, reals.backward)] {
                if reals == 0 {
                    continue;
                }
                faces.push(Face::new(domain, precision, fields, (mu, forward), reals)?);
            }
        }
        let order =
            (reach > 0 && !faces.is_empty()).then(|| Order::new(domain, precision, reach)).transpose()?;
        let order = order.map(Arc::new);
        let domain = Arc::clone(domain);
        let rounded = rounded(&domain, precision);
        let mut made = Self { domain, precision, rounded, fields, faces, turn: 0, signals: None, order };
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

    /// The ghost zones from forward neighbours.
    pub(crate) fn forward_ghosts(&self) -> [Option<In<'_, kernels::Halo>>; 4] {
        let ghosts = self.ghosts();
        std::array::from_fn(|mu| ghosts[2 * mu])
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
        match &self.signals {
            Some(signals) => signals.await_all(&self.domain, self.chunks(fields)),
            None => Ok(()),
        }
    }

    /// Whether any data leave or come in messages.
    fn sends_messages(&self) -> bool {
        self.faces.iter().any(|face| [face.to, face.from] != [Halo::Peer; 2])
    }

    /// Launches a hop on all sites of the parity that the first `fields` fields of `source` do not have: at once if its
    /// kernel waits for all ghost zones by itself, else sites that need none while messages travel, and then the others.
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
        self.send(source, fields)?;
        let (order, to) = (Arc::clone(self.order.as_ref().expect("of a hop's sites")), 1 - source.parity);
        let mut first = 0;
        if self.sends_messages() {
            first = order.inner;
            let places = order.places(to, [0, first], no_wait());
            self.receive(fields, || launch(Reached { places, ghost: [None; 8] }))?;
        }
        let wait = self.signals.as_ref().map_or(no_wait(), |signals| signals.wait(self.chunks(fields)));
        launch(Reached { places: order.places(to, [first, count], wait), ghost: self.ghosts() })
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

    /// Receives messages with the faces, and runs `meanwhile` while they travel.
    fn receive(
        &mut self,
        fields: usize,
        meanwhile: impl FnOnce() -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        if self.domain.device().backend().stager().is_none() {
            self.exchange_host(fields, meanwhile)?;
        } else if self.domain.transports().messages() == Halo::Nccl {
            self.exchange_parcels(fields, meanwhile)?;
        } else {
            meanwhile()?;
            self.exchange_staged(fields)?;
        }
        self.merge(fields)
    }

    /// Of the bytes of a message with all fields, those of the first `fields` fields.
    fn bytes_of(&self, fields: usize) -> impl Fn(usize) -> usize + use<> {
        let all = self.fields;
        move |bytes| bytes / all * fields
    }

    /// Packs the first `fields` fields for the neighbours, all faces in one launch, which raises their flags.
    fn pack(
        &mut self,
        FaceSource { input, parity, hop }: FaceSource<'_>,
        fields: usize,
    ) -> Result<(), FieldError> {
        let Self { domain, precision, rounded, faces, turn, signals, .. } = self;
        let g = domain.layout(*precision).geometry();
        let parity = int(parity);
        let chunk = if signals.is_some() { FACE_CHUNK } else { 1 };
        let sites: usize = faces.iter().map(|face| (fields * face.sites).next_multiple_of(chunk)).sum();
        let signal = match signals {
            Some(signals) => signals.next(),
            None => no_signal(),
        };
        let (wire, ghost) = ([const { None }; 8], [const { None }; 8]);
        let (fields, chunk) = (int(fields), int(chunk));
        let mut to = Outgoing { wire, ghost, signal, fields, chunk, rounded: 0 };
        for face in faces {
            let Face { mu, forward, ghost, outgoing, remote, to: halo, .. } = face;
            let place = place(*mu, *forward);
            to.rounded |= i32::from(*rounded && *halo != Halo::Peer) << place;
            to.ghost[place] = Some(ghost[*turn].output());
            to.wire[place] = Some(match &mut remote[*turn] {
                Some(remote) => remote.output(),
                None => outgoing.output(),
            });
        }
        match hop {
            FaceHop::Wilson { reals, links, dagger, slices } => {
                let (dagger, slices) = (dagger as i32, int(slices));
                let face = WilsonFace { g, input, links, faces: to, parity, dagger, slices };
                domain.launch_as((*precision, reals), &face, sites)
            }
            FaceHop::Staggered { reals, links: [links, long_links, ninth] } => {
                let face = StaggeredFace { g, input, links, long_links, ninth, faces: to, parity };
                domain.launch_as((*precision, reals), &face, sites)
            }
        }
    }

    fn exchange_host(
        &mut self,
        fields: usize,
        meanwhile: impl FnOnce() -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let part = self.bytes_of(fields);
        let (mut sends, mut receives): (Sends, Receives) = (Vec::new(), Vec::new());
        for Face { mu, forward, outgoing, incoming, ghost, .. } in &mut self.faces {
            let (to, from, tag) = route(&self.domain, *mu, *forward);
            let bytes = outgoing.host().expect("host memory");
            sends.push(Message { peer: to, tag, bytes: &bytes[..part(bytes.len())] });
            let bytes = incoming.as_mut().unwrap_or(&mut ghost[self.turn]).host_mut().expect("host memory");
            let length = part(bytes.len());
            receives.push(Message { peer: from, tag, bytes: &mut bytes[..length] });
        }
        let mut work = Some(meanwhile);
        let (mut done, mut worked) = (Ok(()), Instant::now());
        self.domain.comm().exchange_while(&sends, &mut receives, &mut || {
            if let Some(work) = work.take() {
                done = work();
            }
            worked = Instant::now();
        });
        self.domain.waited_since(worked);
        done
    }

    fn exchange_parcels(
        &mut self,
        fields: usize,
        meanwhile: impl FnOnce() -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let part = self.bytes_of(fields);
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for Face { mu, forward, outgoing, incoming, ghost, to, from, .. } in &mut self.faces {
            let (to_rank, from_rank, _) = route(&self.domain, *mu, *forward);
            if *to == Halo::Nccl {
                sends.push(outgoing.parcel_to(to_rank, 0..part(outgoing.bytes())));
            }
            if *from == Halo::Nccl {
                let received = incoming.as_mut().unwrap_or(&mut ghost[self.turn]);
                let bytes = part(received.bytes());
                receives.push(received.parcel_from(from_rank, bytes));
            }
        }
        // SAFETY: as in `exchange_staged`, and inner sites neither read ghost zones nor write wires.
        unsafe { self.domain.exchange_parcels(&sends, &receives)? };
        meanwhile()?;
        self.domain.await_parcels()
    }

    fn exchange_staged(&mut self, fields: usize) -> Result<(), FieldError> {
        let part = self.bytes_of(fields);
        let domain = Arc::clone(&self.domain);
        let (mut sends, mut receives): (Sends, Receives) = (Vec::new(), Vec::new());
        for Face { mu, forward, outgoing, sent, received, .. } in &mut self.faces {
            let (to, from, tag) = route(&domain, *mu, *forward);
            if let Some(sent) = sent {
                let length = part(sent.len());
                let sent = &mut sent[..length];
                // SAFETY: no longer than the wire, which only later exchanges write.
                unsafe { outgoing.stage_out(sent)? };
                sends.push(Message { peer: to, tag, bytes: sent });
            }
            if let Some(received) = received {
                let length = part(received.len());
                receives.push(Message { peer: from, tag, bytes: &mut received[..length] });
            }
        }
        // The zones are not read any more when all work before the mark is done, for which what was sent has waited.
        if sends.is_empty() {
            domain.device().synchronize()?;
        }
        domain.waiting(|| domain.comm().exchange(&sends, &mut receives));
        for Face { ghost, incoming, received, .. } in &mut self.faces {
            if let Some(received) = received {
                let landing = incoming.as_mut().unwrap_or(&mut ghost[self.turn]);
                // SAFETY: as long as the message, and work launched so far does not touch it.
                unsafe { landing.stage_in(&received[..part(received.len())])? };
            }
        }
        Ok(())
    }

    /// Brings to their places what has come apart from the ghost zones.
    fn merge(&mut self, fields: usize) -> Result<(), FieldError> {
        if self.rounded {
            return self.restore(fields);
        }
        for Face { mu, forward, reals, sites, ghost, incoming, .. } in &mut self.faces {
            let Some(incoming) = incoming else { continue };
            let kernel = FaceMerge {
                g: self.domain.layout(self.precision).geometry(),
                wire: incoming.input(),
                ghost: ghost[self.turn].output(),
                mu: int(*mu),
                forward: i32::from(*forward),
                reals: int(*reals),
                sites: int(*sites),
            };
            self.domain.launch_as(self.precision, &kernel, fields * *sites)?;
        }
        Ok(())
    }

    /// Restores the reals of rounded messages, of all faces in one launch.
    fn restore(&mut self, fields: usize) -> Result<(), FieldError> {
        let g = self.domain.layout(self.precision).geometry();
        let (wire, ghost) = ([None; 8], [const { None }; 8]);
        let mut kernel = FaceRestore { g, wire, ghost, fields: int(fields), reals: [0; 2] };
        let mut count = 0;
        for Face { mu, forward, reals, sites, ghost, incoming, .. } in &mut self.faces {
            let Some(incoming) = incoming else { continue };
            let place = place(*mu, *forward);
            kernel.wire[place] = Some(incoming.input());
            kernel.ghost[place] = Some(ghost[self.turn].output());
            kernel.reals[place % 2] = int(*reals);
            count += fields * *sites;
        }
        self.domain.launch_as(Half, &kernel, count)
    }
}

/// The number of a face.
fn place(mu: usize, forward: bool) -> usize {
    2 * mu + usize::from(!forward)
}

/// The rank that a face goes to, the rank that it comes from, and its tag.
fn route(domain: &Domain, mu: usize, forward: bool) -> (usize, usize, i32) {
    let neighbour = |forward| domain.partition().neighbour(mu, forward);
    (neighbour(!forward), neighbour(forward), int(place(mu, forward)))
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
        let places = Places { sites: None, wait: no_wait(), from: 0, all: count, first: 0, count };
        Self { places, ghost: [None; 8] }
    }
}
