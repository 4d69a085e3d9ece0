//! Vectors of faces that cross ranks: pack, transport, merge, with work in between.
//!
//! Face number 2 mu comes from the next rank in direction mu (for forward hops), 2 mu + 1 from the one
//! before. Lanes at the rank's edge travel; the others are put in place by the pack kernel.

use super::{Domain, FieldError, Halo};
use crate::comm::{Message, agree};
use crate::device::{Buffer, FaceArgs, LaneArgs, Pointer, Precision, Remote, Staging};
use std::sync::Arc;
use std::time::Instant;

type Outgoing<'a> = Vec<Message<&'a [u8]>>;
type Incoming<'a> = Vec<Message<&'a mut [u8]>>;

/// Reals that a hop needs of a face site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaceReals {
    /// From forward neighbours.
    pub forward: usize,
    /// From backward ones; 0: nothing travels there.
    pub backward: usize,
}

/// What is packed.
#[derive(Clone, Copy, Default)]
pub struct FaceSource<'a> {
    /// The kernel that packs.
    pub kernel: &'a str,
    /// Fermion fields.
    pub input: Pointer,
    /// Their parity.
    pub parity: usize,
    /// The operator's links of the same parity.
    pub links: Pointer,
    /// Its long links, and their ninth reals.
    pub long_links: [Pointer; 2],
    /// Projectors of the adjoint.
    pub dagger: bool,
    /// Slices of the fifth dimension, where the fields have one.
    pub slices: usize,
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
    /// Out and in, where halos go through host memory that is not the device's.
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
    /// Ghost zones of hops of `fields` fields.
    ///
    /// # Errors
    /// No room; no way between the GPUs.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        fields: usize,
        reals: FaceReals,
    ) -> Result<Self, FieldError> {
        let _label = domain.device().label("halos");
        let g = domain.geometry();
        let mut faces = Vec::new();
        for mu in domain.cut_directions() {
            for (forward, reals) in [(true, reals.forward), (false, reals.backward)] {
                if reals == 0 {
                    continue;
                }
                let sites = domain.half() / g.outer[mu] as usize;
                let lanes = domain.lanes().count();
                let bytes = |lanes: usize| fields * sites * lanes * reals * precision.bytes();
                let edge = lanes / domain.lanes().0[mu];
                let buffer = |lanes| domain.device().buffer(bytes(lanes));
                let staged = domain.halo() == Halo::Staged && !domain.device().backend().is_host();
                let staging = || Staging::new(domain.device(), bytes(edge));
                faces.push(Face {
                    mu,
                    forward,
                    reals,
                    sites,
                    ghost: [buffer(lanes)?, buffer(lanes)?],
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

    /// Opens the ghost zones of the neighbours, into which this rank packs.
    fn open_remote(&mut self) -> Result<(), FieldError> {
        let backend = self.domain.device().backend();
        let own: Result<Vec<Vec<u8>>, FieldError> = self
            .faces
            .iter()
            .flat_map(|face| face.ghost.iter().map(Buffer::pointer))
            .map(|pointer| Ok(backend.export(pointer)?.unwrap_or_default()))
            .collect();
        // New zones are zeroed in the order of the device's work: before a neighbour may write.
        self.domain.device().synchronize()?;
        let own = agree(self.domain.comm(), own)?;
        let length = own.first().map_or(0, Vec::len);
        let all = self.domain.comm().gather(&own.concat());
        let partition = *self.domain.partition();
        let mut opened = Ok(());
        for (number, face) in self.faces.iter_mut().enumerate() {
            // What leaves by the face for forward hops goes to the rank before this one.
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

    /// The ghost zones as the hop kernel takes them; valid until the next exchange but one.
    pub fn ghosts(&self) -> [Pointer; 8] {
        let mut ghosts = [Pointer::default(); 8];
        for face in &self.faces {
            ghosts[2 * face.mu + usize::from(!face.forward)] = face.ghost[self.turn].pointer();
        }
        ghosts
    }

    /// Bit mu: direction mu is cut.
    pub fn mask(&self) -> i32 {
        self.domain.cut_directions().map(|mu| 1 << mu).sum()
    }

    /// Fills the ghost zones for the first `fields` fields, and runs `meanwhile` while messages travel.
    ///
    /// # Errors
    /// The device is lost, or `meanwhile` failed.
    pub fn exchange(
        &mut self,
        source: FaceSource<'_>,
        fields: usize,
        meanwhile: impl FnOnce() -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        assert!(fields <= self.fields, "room for {} fields", self.fields);
        if self.faces.is_empty() {
            return meanwhile();
        }
        self.turn = 1 - self.turn;
        let domain = Arc::clone(&self.domain);
        let backend = domain.device().backend();
        for face in &self.faces {
            let wire = match &face.remote[self.turn] {
                Some(remote) => remote.pointer(),
                None => face.outgoing.pointer(),
            };
            let args = FaceArgs {
                g: domain.geometry(),
                input: source.input,
                links: source.links,
                long_links: source.long_links[0],
                ninth: source.long_links[1],
                wire,
                ghost: face.ghost[self.turn].pointer(),
                parity: source.parity as i32,
                mu: face.mu as i32,
                forward: i32::from(face.forward),
                dagger: i32::from(source.dagger),
                slices: source.slices.max(1) as i32,
                pad: 0,
            };
            domain.launch(source.kernel, self.precision, &args, fields * face.sites)?;
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

    /// Tells the neighbours that their ghost zones are written.
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

    /// The messages of all faces, from and to the given bytes.
    fn messages<'a>(&self, sent: Vec<&'a [u8]>, received: Vec<&'a mut [u8]>) -> (Outgoing<'a>, Incoming<'a>) {
        let partition = self.domain.partition();
        let tag = |face: &Face| (2 * face.mu + usize::from(!face.forward)) as i32;
        let sends = self.faces.iter().zip(sent);
        let sends = sends.map(|(face, bytes)| Message {
            peer: partition.neighbour(face.mu, !face.forward),
            tag: tag(face),
            bytes,
        });
        let receives = self.faces.iter().zip(received);
        let receives = receives.map(|(face, bytes)| Message {
            peer: partition.neighbour(face.mu, face.forward),
            tag: tag(face),
            bytes,
        });
        (sends.collect(), receives.collect())
    }

    fn exchange_host(&self, meanwhile: impl FnOnce() -> Result<(), FieldError>) -> Result<(), FieldError> {
        // SAFETY: pack kernels are done (a CPU's launches return when they are), and `meanwhile` touches
        // neither wires nor ghost zones.
        let bytes = |buffer: &Buffer| unsafe {
            std::slice::from_raw_parts_mut(buffer.host_pointer().expect("host memory"), buffer.bytes())
        };
        let sent = self.faces.iter().map(|face| &*bytes(&face.outgoing)).collect();
        let received = self
            .faces
            .iter()
            .map(|face| bytes(face.incoming.as_ref().unwrap_or(&face.ghost[self.turn])))
            .collect();
        let (sends, mut receives) = self.messages(sent, received);
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
        let backend = domain.device().backend();
        let mut staging: Vec<[Staging; 2]> = self
            .faces
            .iter_mut()
            .map(|face| face.staging.take().expect("staging of a staged halo"))
            .collect();
        for (face, [sent, _]) in self.faces.iter().zip(&mut staging) {
            // SAFETY: as long as the wire, which only later exchanges write.
            unsafe { backend.stage_out(sent, face.outgoing.pointer())? };
        }
        let (sent, received) =
            staging.iter_mut().map(|[sent, received]| (&sent[..], &mut received[..])).unzip();
        let (sends, mut receives) = self.messages(sent, received);
        domain.waiting(|| domain.comm().exchange(&sends, &mut receives));
        for (face, [_, received]) in self.faces.iter().zip(&staging) {
            // SAFETY: as long as the zone, which the work asked for so far does not touch.
            unsafe { backend.stage_in(face.ghost[self.turn].pointer(), received)? };
        }
        for (face, staging) in self.faces.iter_mut().zip(staging) {
            face.staging = Some(staging);
        }
        Ok(())
    }

    fn merge(&self, fields: usize) -> Result<(), FieldError> {
        for face in &self.faces {
            let Some(incoming) = &face.incoming else { continue };
            let args = LaneArgs {
                g: self.domain.geometry(),
                wire: incoming.pointer(),
                ghost: face.ghost[self.turn].pointer(),
                mu: face.mu as i32,
                forward: i32::from(face.forward),
                reals: face.reals as i32,
                sites: face.sites as i32,
            };
            self.domain.launch("face_merge", self.precision, &args, fields * face.sites)?;
        }
        Ok(())
    }
}
