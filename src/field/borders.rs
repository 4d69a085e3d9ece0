//! Communication that fills the borders of matrices: wires that belong to a domain and serve all its fields.
//!
//! In each direction one slab goes to either side. It is packed, sent and unpacked before the next direction's slab, so
//! corners are included. All ranks fill fields in the same order, so their wires grow together.

use super::signals::Signals;
use super::{Domain, FieldError, Halo, LINK_REALS};
use crate::comm::{Message, agree};
use crate::device::kernels::{self, Out, SlabPack, SlabUnpack, int};
use crate::device::{Buffer, Remote, Staging, Use};

/// The layers at both ends of direction mu.
struct Slab {
    mu: usize,
    sites: usize,
    bytes: usize,
}

impl Slab {
    fn new(domain: &Domain, mu: usize, blocks: usize, layers: usize) -> Self {
        let (outer, border) = (domain.outer(), domain.border());
        let extent = |nu: usize| match nu {
            nu if nu == mu => layers,
            nu if nu < mu && border[nu] > 0 => outer[nu] + 2 * layers,
            nu => outer[nu],
        };
        let sites = (0..4).map(extent).product();
        let edge_lanes = domain.lanes().count() / domain.lanes().0[mu];
        Self { mu, sites, bytes: sites * blocks * LINK_REALS * edge_lanes * 8 }
    }
}

/// The buffer into which this rank packs.
enum Packed {
    Own(Buffer),
    /// The buffer in which the neighbour receives.
    Neighbours(Remote),
}

impl Packed {
    fn output(&mut self) -> Out<'_, kernels::Halo> {
        match self {
            Self::Own(buffer) => buffer.output(),
            Self::Neighbours(remote) => remote.output(),
        }
    }

    /// The own buffer, whose content leaves in a message; `None` if the neighbour has it already.
    fn own(&self) -> Option<&Buffer> {
        match self {
            Self::Own(buffer) => Some(buffer),
            Self::Neighbours(_) => None,
        }
    }
}

/// An outgoing slab, and the incoming slab that takes its place.
struct Wire {
    packed: Packed,
    incoming: Buffer,
    /// How the incoming slab comes.
    from: Halo,
    /// Outgoing and incoming staging, for what passes through host memory, if the device has its own.
    staging: [Option<Staging>; 2],
}

/// The wires of a domain, as large as its fills have needed so far.
///
/// With messages alone, one wire per side serves all directions. It is packed again only after its message was sent, and it
/// receives again only after it was unpacked.
///
/// Where GPUs open each other's memory, ranks pack into their neighbours' wires. Each direction has two wires per side, used in alternate
/// fills. A wire of fill n is packed again in fill n + 2, which is safe:
/// 1. In fill n this rank launches the unpacking of the wire.
/// 2. In fill n + 1 it raises the neighbour's flag after its packing, hence also after that unpacking.
/// 3. The neighbour has waited for this flag before it packs in fill n + 2.
#[derive(Default)]
pub(super) struct Wires {
    /// Bytes per slab, for each cut direction.
    room: Vec<usize>,
    /// The wires for the border after the last site, and for the border before the first.
    pairs: Vec<[Wire; 2]>,
    turn: usize,
    /// Between GPUs that open each other's memory.
    signals: Option<Signals>,
}

impl Wires {
    /// Makes wires for the slabs of all cut directions; their content is lost.
    fn make_room(&mut self, domain: &Domain, slabs: &[Slab]) -> Result<(), FieldError> {
        let enough = slabs.iter().zip(&self.room).all(|(slab, room)| slab.bytes <= *room);
        if enough && !self.pairs.is_empty() {
            return Ok(());
        }
        // All flags of the last fill have come, so no rank packs into these buffers any more. All ranks close what they opened
        // before any rank frees memory.
        let quiet = domain.device().synchronize();
        let old: Vec<Buffer> = self.pairs.drain(..).flatten().map(|wire| wire.incoming).collect();
        agree(domain.comm(), quiet.map_err(FieldError::from))?;
        drop(old);
        let _label = domain.device().label("halos");
        self.room.resize(slabs.len(), 0);
        for (room, slab) in self.room.iter_mut().zip(slabs) {
            *room = slab.bytes.max(*room);
        }
        if domain.transports().have_peer() {
            if self.signals.is_none() {
                self.signals = Some(Signals::new(domain, 1)?);
            }
            self.pairs = self.between_gpus(domain)?;
        } else {
            let greatest = self.room.iter().copied().max().unwrap_or(0);
            let wire = || for_messages(domain, greatest);
            let pair = wire().and_then(|first| Ok([first, wire()?]));
            self.pairs = vec![agree(domain.comm(), pair)?];
        }
        Ok(())
    }

    /// Buffers ordered by direction, turn and side, and their handles.
    fn exported(&self, domain: &Domain) -> Result<(Vec<Buffer>, Vec<Vec<u8>>), FieldError> {
        let device = domain.device();
        let (mut buffers, mut handles) = (Vec::new(), Vec::new());
        for bytes in self.room.iter().flat_map(|room| [*room; 4]) {
            let buffer = device.buffer_for(Use::Exported, bytes)?;
            handles.push(buffer.export()?.unwrap_or_default());
            buffers.push(buffer);
        }
        // The zeroing must be done before a neighbour packs.
        device.synchronize()?;
        Ok((buffers, handles))
    }

    /// Two pairs of wires per direction, which the neighbours open.
    fn between_gpus(&self, domain: &Domain) -> Result<Vec<[Wire; 2]>, FieldError> {
        let device = domain.device();
        let (buffers, own) = agree(domain.comm(), self.exported(domain))?;
        let length = own.first().map_or(0, Vec::len);
        let all = domain.comm().gather(&own.concat());
        let opened: Result<Vec<Wire>, FieldError> = buffers
            .into_iter()
            .enumerate()
            .map(|(number, incoming)| {
                let mu = domain.cut_directions().nth(number / 4).expect("four wires per direction");
                let [to, from] = [number % 2 == 1, number % 2 == 0].map(|forward| domain.halo(mu, forward));
                let packed = match to {
                    Halo::Peer => {
                        let handle = &all[receiver(domain, mu, number % 2)][number * length..][..length];
                        Packed::Neighbours(device.open(handle)?)
                    }
                    Halo::Staged | Halo::Nccl => Packed::Own(device.buffer(incoming.bytes())?),
                };
                let staging = |halo: Halo| match halo {
                    Halo::Staged => Staging::new(device, incoming.bytes()),
                    Halo::Peer | Halo::Nccl => Ok(None),
                };
                Ok(Wire { packed, staging: [staging(to)?, staging(from)?], incoming, from })
            })
            .collect();
        let mut wires = agree(domain.comm(), opened)?.into_iter();
        Ok(std::iter::from_fn(|| Some([wires.next()?, wires.next()?])).collect())
    }
}

/// A wire whose content travels in messages.
fn for_messages(domain: &Domain, bytes: usize) -> Result<Wire, FieldError> {
    let device = domain.device();
    let from = domain.transports().messages();
    let staging = || if from == Halo::Staged { Staging::new(device, bytes) } else { Ok(None) };
    Ok(Wire {
        packed: Packed::Own(device.buffer(bytes)?),
        incoming: device.buffer(bytes)?,
        from,
        staging: [staging()?, staging()?],
    })
}

/// The rank that receives a side's slab; the first layers (side 0) go to the rank before.
fn receiver(domain: &Domain, mu: usize, side: usize) -> usize {
    domain.partition().neighbour(mu, side == 1)
}

/// Fills the innermost `layers` of the borders of a field with `blocks` matrices per site.
///
/// # Panics
/// The borders have fewer layers.
pub(super) fn fill(
    domain: &Domain,
    field: &mut Buffer,
    blocks: usize,
    layers: usize,
) -> Result<(), FieldError> {
    domain.check_border(layers);
    let slabs: Vec<Slab> = domain.cut_directions().map(|mu| Slab::new(domain, mu, blocks, layers)).collect();
    if layers == 0 || slabs.is_empty() {
        return Ok(());
    }
    let mut wires = domain.wires().lock().expect("no panic holds it");
    wires.make_room(domain, &slabs)?;
    let Wires { pairs, turn, signals, .. } = &mut *wires;
    *turn = 1 - *turn;
    for (number, slab) in slabs.iter().enumerate() {
        let pair = &mut pairs[if signals.is_some() { 2 * number + *turn } else { 0 }];
        let of_side = |side: usize| kernels::Slab {
            g: domain.geometry(),
            mu: int(slab.mu),
            forward: i32::from(side == 0),
            reals: int(LINK_REALS),
            blocks: int(blocks),
            layers: int(layers),
            sites: int(slab.sites),
        };
        for (side, wire) in pair.iter_mut().enumerate() {
            let (field, wire) = (field.input(), wire.packed.output());
            domain.launch(&SlabPack { slab: of_side(side), field, wire }, slab.sites * blocks)?;
        }
        if let Some(signals) = signals {
            signals.raise(domain)?;
        }
        transport(domain, slab, pair)?;
        if let Some(signals) = signals {
            signals.await_all(domain, [1; 8])?;
        }
        for (side, wire) in pair.iter().enumerate() {
            let (field, wire) = (field.output(), wire.incoming.input());
            domain.launch(&SlabUnpack { slab: of_side(side), field, wire }, slab.sites * blocks)?;
        }
    }
    Ok(())
}

/// Exchanges those packed slabs in messages that the neighbours do not have or get otherwise.
fn transport(domain: &Domain, slab: &Slab, pair: &mut [Wire; 2]) -> Result<(), FieldError> {
    if pair.iter().all(|wire| wire.packed.own().is_none() && wire.from == Halo::Peer) {
        return Ok(());
    }
    let bytes = slab.bytes;
    domain.device().backend().mark()?;
    if domain.transports().messages() == Halo::Nccl {
        return transport_parcels(domain, slab, pair);
    }
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (side, Wire { packed, incoming, from, staging: [sent, received] }) in pair.iter_mut().enumerate() {
        let (to_rank, from_rank) = (receiver(domain, slab.mu, side), receiver(domain, slab.mu, 1 - side));
        let tag = int(side);
        if let Some(own) = packed.own() {
            let bytes = match sent {
                Some(sent) => {
                    let sent = sent.first(bytes);
                    // SAFETY: only the next direction's packing writes the wire.
                    unsafe { own.stage_out(sent)? };
                    sent
                }
                None => &own.host().expect("host memory")[..bytes],
            };
            sends.push(Message { peer: to_rank, tag, bytes });
        }
        if *from == Halo::Staged {
            let bytes = match received {
                Some(received) => received.first(bytes),
                None => &mut incoming.host_mut().expect("host memory")[..bytes],
            };
            receives.push(Message { peer: from_rank, tag, bytes });
        }
    }
    domain.waiting(|| domain.comm().exchange(&sends, &mut receives));
    for Wire { incoming, staging: [_, received], .. } in pair {
        if let Some(received) = received {
            // SAFETY: the wire was unpacked before the mark that `stage_out` waited for.
            unsafe { incoming.stage_in(received.first(bytes))? };
        }
    }
    Ok(())
}

/// The same between the memories of devices.
fn transport_parcels(domain: &Domain, slab: &Slab, pair: &mut [Wire; 2]) -> Result<(), FieldError> {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (side, Wire { packed, incoming, from, .. }) in pair.iter_mut().enumerate() {
        if let Some(own) = packed.own() {
            sends.push(own.parcel_to(receiver(domain, slab.mu, side), 0..slab.bytes));
        }
        if *from == Halo::Nccl {
            receives.push(incoming.parcel_from(receiver(domain, slab.mu, 1 - side), slab.bytes));
        }
    }
    // SAFETY: what is sent was packed, and what is received was unpacked before the mark.
    unsafe { domain.exchange_parcels(&sends, &receives)? };
    domain.await_parcels()
}
