//! Faces of fermion fields that cross ranks: pack, transport and merge, overlapped with work.
//!
//! Face number 2 mu comes from the next rank in direction mu (for forward hops), and 2 mu + 1 from the rank before.
//! Only lanes at the rank's edge travel; the pack kernel puts the others in place.

use super::Dagger;
use super::{Domain, FieldError, Halo};
use crate::comm::{Message, agree};
use crate::device::kernels::{
    self, FaceMerge, Fermions, In, LinkReals, Links, LongReals, StaggeredFace, WilsonFace,
};
use crate::device::{Buffer, Precision, Remote, Staging};
use std::sync::Arc;
use std::time::Instant;

type Outgoing<'a> = Vec<Message<&'a [u8]>>;
type Incoming<'a> = Vec<Message<&'a mut [u8]>>;

/// Reals per face site that a hop needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaceReals {
    /// From the forward neighbour.
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

struct Face {
    mu: usize,
    forward: bool,
    reals: usize,
    sites: usize,
    ghost: [Buffer; 2],
    outgoing: Buffer,
    incoming: Option<Buffer>,
    remote: [Option<Remote>; 2],
    /// Outgoing and incoming staging, if halos pass through host memory and the device has its own memory.
    staging: Option<[Staging; 2]>,
}

/// The ghost zones of one kind of hop.
pub struct Faces {
    domain: Arc<Domain>,
    precision: Precision,
    fields: usize,
    faces: Vec<Face>,
    turn: usize,
}

impl Faces {
    /// Ghost zones for hops of `fields` fields.
    ///
    /// # Errors
    /// The GPUs cannot access each other's memory, or memory runs out.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        fields: usize,
        reals: FaceReals,
    ) -> Result<Self, FieldError> {
        let _label = domain.device().label("halos");
        let mut faces = Vec::new();
        for mu in domain.cut_directions() {
            for (forward, reals) in [(true, reals.forward), (false, reals.backward)] {
                if reals == 0 {
                    continue;
                }
                let layout = domain.layout(precision);
                let sites = layout.half() / layout.outer()[mu];
                let lanes = layout.lanes().count();
                let bytes = |lanes: usize| fields * sites * lanes * reals * precision.bytes();
                let edge = lanes / layout.lanes().0[mu];
                let buffer = |lanes| domain.device().buffer(bytes(lanes));
                let ghost = || match domain.halo() {
                    Halo::Peer => domain.device().buffer_for_export(bytes(lanes)),
                    Halo::Staged => buffer(lanes),
                };
                let staged = domain.halo() == Halo::Staged && !domain.device().backend().is_host();
                let staging = || Staging::new(domain.device(), bytes(edge));
                faces.push(Face {
                    mu,
                    forward,
                    reals,
                    sites,
                    ghost: [ghost()?, ghost()?],
                    outgoing: buffer(edge)?,
                    incoming: if edge == lanes { None } else { Some(buffer(edge)?) },
                    remote: [None, None],
                    staging: if staged { Some([staging()?, staging()?]) } else { None },
                });
            }
        }
        let mut made = Self { domain: Arc::clone(domain), precision, fields, faces, turn: 0 };
        if domain.halo() == Halo::Peer {
            made.open_remote()?;
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
            ghosts[2 * face.mu + usize::from(!face.forward)] = Some(face.ghost[self.turn].input());
        }
        ghosts
    }

    /// The ghost zones from forward neighbours.
    pub(crate) fn forward_ghosts(&self) -> [Option<In<'_, kernels::Halo>>; 4] {
        let ghosts = self.ghosts();
        std::array::from_fn(|mu| ghosts[2 * mu])
    }

    /// Bit mu is set if direction mu is cut.
    pub fn mask(&self) -> i32 {
        self.domain.cut_directions().map(|mu| 1 << mu).sum()
    }

    /// Fills the ghost zones for the first `fields` fields, and runs `meanwhile` while messages travel.
    ///
    /// # Errors
    /// `meanwhile` failed, or the device is lost.
    pub(crate) fn exchange(
        &mut self,
        source: FaceSource<'_>,
        fields: usize,
        meanwhile: impl FnOnce() -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        assert!(fields <= self.fields, "ghost zones for {} fields", self.fields);
        if self.faces.is_empty() {
            return meanwhile();
        }
        self.turn = 1 - self.turn;
        let domain = Arc::clone(&self.domain);
        let backend = domain.device().backend();
        for face in &mut self.faces {
            face.pack(&domain, self.precision, self.turn, source, fields)?;
        }
        backend.mark()?;
        if domain.halo() == Halo::Peer {
            meanwhile()?;
            domain.waiting(|| {
                backend.wait_for_mark()?;
                self.tokens();
                Ok::<_, FieldError>(())
            })?;
        } else if backend.is_host() {
            self.exchange_host(meanwhile)?;
        } else {
            meanwhile()?;
            self.exchange_staged()?;
        }
        self.merge(fields)
    }

    /// Notifies the neighbours that their ghost zones are written.
    fn tokens(&self) {
        let partition = self.domain.partition();
        let token = [0u8];
        let mut room = [[0u8]; 8];
        let pairs = || self.domain.cut_directions().flat_map(|mu| [(mu, true), (mu, false)]);
        let sends: Vec<_> = pairs()
            .map(|(mu, forward)| Message {
                peer: partition.neighbour(mu, !forward),
                tag: (2 * mu + usize::from(!forward)) as i32,
                bytes: &token[..],
            })
            .collect();
        let mut receives: Vec<_> = pairs()
            .zip(&mut room)
            .map(|((mu, forward), room)| Message {
                peer: partition.neighbour(mu, forward),
                tag: (2 * mu + usize::from(!forward)) as i32,
                bytes: &mut room[..],
            })
            .collect();
        self.domain.comm().exchange(&sends, &mut receives);
    }

    fn exchange_host(
        &mut self,
        meanwhile: impl FnOnce() -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let (mut sends, mut receives): (Outgoing, Incoming) = (Vec::new(), Vec::new());
        for Face { mu, forward, outgoing, incoming, ghost, .. } in &mut self.faces {
            let (to, from, tag) = route(&self.domain, *mu, *forward);
            let bytes = outgoing.host().expect("host memory");
            sends.push(Message { peer: to, tag, bytes });
            let bytes = incoming.as_mut().unwrap_or(&mut ghost[self.turn]).host_mut().expect("host memory");
            receives.push(Message { peer: from, tag, bytes });
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

    fn exchange_staged(&mut self) -> Result<(), FieldError> {
        let domain = Arc::clone(&self.domain);
        let mut staging: Vec<[Staging; 2]> = self
            .faces
            .iter_mut()
            .map(|face| face.staging.take().expect("staging of a staged halo"))
            .collect();
        for (face, [sent, _]) in self.faces.iter().zip(&mut staging) {
            // SAFETY: as long as the wire, which only later exchanges write.
            unsafe { face.outgoing.stage_out(sent)? };
        }
        let (mut sends, mut receives): (Outgoing, Incoming) = (Vec::new(), Vec::new());
        for (face, [sent, received]) in self.faces.iter().zip(&mut staging) {
            let (to, from, tag) = route(&domain, face.mu, face.forward);
            sends.push(Message { peer: to, tag, bytes: sent });
            receives.push(Message { peer: from, tag, bytes: received });
        }
        domain.waiting(|| domain.comm().exchange(&sends, &mut receives));
        for (face, [_, received]) in self.faces.iter_mut().zip(&staging) {
            // SAFETY: as long as the zone, which work launched so far does not touch.
            unsafe { face.ghost[self.turn].stage_in(received)? };
        }
        for (face, staging) in self.faces.iter_mut().zip(staging) {
            face.staging = Some(staging);
        }
        Ok(())
    }

    fn merge(&mut self, fields: usize) -> Result<(), FieldError> {
        for Face { mu, forward, reals, sites, ghost, incoming, .. } in &mut self.faces {
            let Some(incoming) = incoming else { continue };
            let kernel = FaceMerge {
                g: self.domain.layout(self.precision).geometry(),
                wire: incoming.input(),
                ghost: ghost[self.turn].output(),
                mu: *mu as i32,
                forward: i32::from(*forward),
                reals: *reals as i32,
                sites: *sites as i32,
            };
            self.domain.launch_as(self.precision, &kernel, fields * *sites)?;
        }
        Ok(())
    }
}

/// The rank that a face goes to, the rank that it comes from, and its tag.
fn route(domain: &Domain, mu: usize, forward: bool) -> (usize, usize, i32) {
    let neighbour = |forward| domain.partition().neighbour(mu, forward);
    (neighbour(!forward), neighbour(forward), (2 * mu + usize::from(!forward)) as i32)
}

impl Face {
    /// Packs the first `fields` fields for the neighbour.
    fn pack(
        &mut self,
        domain: &Domain,
        precision: Precision,
        turn: usize,
        FaceSource { input, parity, hop }: FaceSource<'_>,
        fields: usize,
    ) -> Result<(), FieldError> {
        let wire = match &mut self.remote[turn] {
            Some(remote) => remote.output(),
            None => self.outgoing.output(),
        };
        let g = domain.layout(precision).geometry();
        let (ghost, parity) = (self.ghost[turn].output(), parity as i32);
        let (mu, forward, sites) = (self.mu as i32, i32::from(self.forward), fields * self.sites);
        match hop {
            FaceHop::Wilson { reals, links, dagger, slices } => {
                let (dagger, slices) = (dagger as i32, slices as i32);
                let face = WilsonFace { g, input, links, wire, ghost, parity, mu, forward, dagger, slices };
                domain.launch_as((precision, reals), &face, sites)
            }
            FaceHop::Staggered { reals, links: [links, long_links, ninth] } => {
                let face =
                    StaggeredFace { g, input, links, long_links, ninth, wire, ghost, parity, mu, forward };
                domain.launch_as((precision, reals), &face, sites)
            }
        }
    }
}
