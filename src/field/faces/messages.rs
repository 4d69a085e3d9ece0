//! Faces that travel in messages: through MPI from the host's memory, staged through it, or by NCCL.

use super::{Face, Faces, place};
use crate::comm::Message;
use crate::device::kernels::{FaceMerge, FaceUnpack, Half, int};
use crate::field::{Domain, FieldError, Halo};
use std::sync::Arc;
use std::time::Instant;

type Sends<'a> = Vec<Message<&'a [u8]>>;
type Receives<'a> = Vec<Message<&'a mut [u8]>>;

impl Faces {
    /// Receives messages with the faces, and runs `meanwhile` while they travel.
    pub(super) fn receive(
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
        let (reals, blocks) = self.crossing.blocks();
        if self.crossing.is_packed(self.precision) {
            return self.unpack(fields);
        }
        for Face { mu, forward, sites, ghost, incoming, .. } in &mut self.faces {
            let Some(incoming) = incoming else { continue };
            let kernel = FaceMerge {
                g: self.domain.layout(self.precision).geometry(),
                wire: incoming.input(),
                ghost: ghost[self.turn].output(),
                mu: int(*mu),
                forward: i32::from(*forward),
                reals: int(blocks * reals),
                sites: int(*sites),
            };
            self.domain.launch_as(self.precision, &kernel, fields * *sites)?;
        }
        Ok(())
    }

    /// Unpacks the integers that came, of all faces in one launch.
    fn unpack(&mut self, fields: usize) -> Result<(), FieldError> {
        let g = self.domain.layout(self.precision).geometry();
        let (reals, blocks) = self.crossing.blocks();
        let (wire, ghost) = ([None; 8], [const { None }; 8]);
        let (reals, blocks) = (int(reals), int(blocks));
        let mut kernel = FaceUnpack { g, wire, ghost, fields: int(fields), blocks, reals };
        let mut count = 0;
        for Face { mu, forward, sites, ghost, incoming, .. } in &mut self.faces {
            let Some(incoming) = incoming else { continue };
            let place = place(*mu, *forward);
            kernel.wire[place] = Some(incoming.input());
            kernel.ghost[place] = Some(ghost[self.turn].output());
            count += fields * *sites;
        }
        if count == 0 { Ok(()) } else { self.domain.launch_as(Half, &kernel, count) }
    }
}

/// The rank that a face goes to, the rank that it comes from, and its tag.
fn route(domain: &Domain, mu: usize, forward: bool) -> (usize, usize, i32) {
    let neighbour = |forward| domain.partition().neighbour(mu, forward);
    (neighbour(!forward), neighbour(forward), int(place(mu, forward)))
}
