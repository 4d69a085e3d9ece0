//! openQCD's configurations (openQCD 2.4, `modules/archive/archive.c`, `export_cnfg`).
//!
//! Four `int32` N0 N1 N2 N3 (t, x, y, z), the average of Re tr P as a double, then for every odd point,
//! t slowest and z fastest, the eight links that touch it: U(x, mu), U(x - mu, mu) for mu = t, x, y, z,
//! as doubles. Little-endian by definition; a file of the other order is read as well.
//!
//! There is no checksum: the plaquette and the unitarity of every link say whether they are what was written.

use super::bytes::{
    Endian, Pen, checked_extents, create, eight, extents_in_words, four, head, open, read_at, same_lattice,
    zeros,
};
use super::format::{Row, Writes};
use super::verify::{Claim, Quantity};
use super::{Format, Header, IoError, Meta, Precision, Read, Verified, whole};
use crate::comm::{Comm, Message, agree};
use crate::field::{HostLinks, LINK_REALS};
use crate::lattice::{Extents, Partition, coordinates, site, volume};
use std::path::Path;

pub(super) const ROW: Row = Row {
    format: Format::OpenQcd,
    name: "openQCD",
    ending: "openqcd",
    has_mark: |bytes| byte_order(bytes).is_some(),
    header: |path, _| header(path).map(|(header, _)| header),
    read: |path, partition, comm, _| read(path, partition, comm),
    writes: Writes::Links { precision: Precision::Double, write },
};

const HEADER_BYTES: u64 = 24;
const LINK_BYTES: usize = 8 * LINK_REALS;
/// openQCD's directions 0 to 3 in ours: t, x, y, z.
const DIRECTION: [usize; 4] = [3, 0, 1, 2];

/// Extents (x to t) and plaquette (0 to 1) in one byte order.
fn numbers(bytes: &[u8], endian: Endian) -> Option<([u64; 4], f64)> {
    let n = |k: usize| four(bytes, 4 * k).map(|b| u64::from(endian.u32(b)));
    Some(([n(1)?, n(2)?, n(3)?, n(0)?], endian.f64(eight(bytes, 16)?) / 3.0))
}

/// The byte order in which the first 24 bytes make sense; there is no magic number.
fn byte_order(bytes: &[u8]) -> Option<Endian> {
    [Endian::Little, Endian::Big].into_iter().find(|&endian| {
        numbers(bytes, endian).is_some_and(|(extents, plaquette)| {
            extents.iter().all(|n| n % 2 == 0 && (2..=1 << 14).contains(n)) && plaquette.abs() <= 1.0 + 1e-9
        })
    })
}

/// Reads and checks the header.
fn header(path: &Path) -> Result<(Header, Endian), IoError> {
    let (bytes, size) = head(path, 24)?;
    let (endian, (extents, plaquette)) = byte_order(&bytes)
        .and_then(|endian| Some((endian, numbers(&bytes, endian)?)))
        .ok_or_else(|| IoError::malformed(path, "no openQCD file"))?;
    let extents = checked_extents(path, extents)?;
    let expected = HEADER_BYTES + volume(extents) as u64 * 4 * LINK_BYTES as u64;
    if size < expected {
        return Err(IoError::Truncated { path: path.into(), expected, found: size });
    }
    if size > expected {
        return Err(IoError::malformed(path, format!("{size} bytes, {expected} expected")));
    }
    let header = Header {
        plaquette: Some(plaquette),
        verified: Verified::Plaquette,
        ..Header::new(Format::OpenQcd, extents, Precision::Double)
    };
    Ok((header, endian))
}

/// The odd points of the row of z at (x, y, t): as many as even ones, for the extent is even.
fn odd_points(global: Extents, [x, y, t]: [usize; 3]) -> impl Iterator<Item = Extents> {
    (0..global[2] / 2).map(move |k| [x, y, 2 * k + (x + y + t + 1) % 2, t])
}

/// The eight links of a point: the site each starts from, and our direction.
fn links_of(global: Extents, x: Extents) -> impl Iterator<Item = (Extents, usize)> {
    DIRECTION.into_iter().flat_map(move |mu| {
        let mut back = x;
        back[mu] = (x[mu] + global[mu] - 1) % global[mu];
        [(x, mu), (back, mu)]
    })
}

/// Reads this rank's box.
fn read(path: &Path, partition: &Partition, comm: &dyn Comm) -> Result<Read, IoError> {
    let (header, endian) = agree(comm, header(path))?;
    same_lattice(path, header.extents, partition)?;
    let links = agree(comm, read_box(path, partition, endian))?;
    let value = header.plaquette.unwrap_or(f64::NAN);
    let claim =
        Claim::exact(Quantity::OpenQcdPlaquette, "plaquette", value, Precision::Double, header.extents);
    Ok(Read { links, header, claims: vec![claim] })
}

/// Reads the rows of z that touch this rank's box, and keeps the links that start inside.
fn read_box(path: &Path, partition: &Partition, endian: Endian) -> Result<HostLinks, IoError> {
    let file = open(path)?;
    let (global, local, offset) = (partition.global, partition.local(), partition.offset());
    let mut links = HostLinks { local, reals: zeros(path, volume(local) * 4 * LINK_REALS)? };
    // The box and one step beyond: a link that leaves the box may belong to the point outside.
    let range = |mu: usize| -> Vec<usize> {
        let count = (local[mu] + 1).min(global[mu]);
        (0..count).map(|k| (offset[mu] + k) % global[mu]).collect()
    };
    let point_bytes = 8 * LINK_BYTES;
    let mut bytes = vec![0; global[2] / 2 * point_bytes];
    let mut reals = Vec::with_capacity(LINK_REALS);
    for t in range(3) {
        for x in range(0) {
            for y in range(1) {
                let row = ((t * global[0] + x) * global[1] + y) as u64;
                read_at(&file, path, HEADER_BYTES + row * bytes.len() as u64, &mut bytes)?;
                for (point, block) in odd_points(global, [x, y, t]).zip(bytes.chunks_exact(point_bytes)) {
                    let blocks = block.chunks_exact(LINK_BYTES);
                    for ((start, mu), link) in links_of(global, point).zip(blocks) {
                        let inside =
                            (0..4).all(|nu| (offset[nu]..offset[nu] + local[nu]).contains(&start[nu]));
                        if inside {
                            let own = std::array::from_fn(|nu| start[nu] - offset[nu]);
                            let place = (site(local, own) * 4 + mu) * LINK_REALS;
                            reals.clear();
                            endian.decode(Precision::Double, link, &mut reals);
                            links.reals[place..place + LINK_REALS].copy_from_slice(&reals);
                        }
                    }
                }
            }
        }
    }
    Ok(links)
}

/// The last layer of links in each direction of the neighbours behind: `[mu][site of the layer]`, link mu alone; where the
/// lattice is not cut, of this rank itself. Collective.
fn layers_behind(links: &HostLinks, partition: &Partition, comm: &dyn Comm) -> [HostLinks; 4] {
    let local = links.local;
    let layer = |mu: usize| {
        let mut extents = local;
        extents[mu] = 1;
        let last = |n| {
            let mut x = coordinates(extents, n);
            x[mu] = local[mu] - 1;
            links.link(site(local, x), mu).to_vec()
        };
        HostLinks { local: extents, reals: (0..volume(extents)).flat_map(last).collect() }
    };
    let mut all: [HostLinks; 4] = std::array::from_fn(layer);
    let cut: Vec<usize> = (0..4).filter(|&mu| partition.is_cut(mu)).collect();
    let mut own: Vec<Vec<u8>> = vec![Vec::new(); cut.len()];
    for (bytes, &mu) in own.iter_mut().zip(&cut) {
        Endian::Little.encode(Precision::Double, &all[mu].reals, bytes);
    }
    let mut theirs: Vec<Vec<u8>> = own.iter().map(|bytes| vec![0; bytes.len()]).collect();
    let sends = (0..).zip(cut.iter().zip(&own)).map(|(tag, (&mu, bytes))| Message {
        peer: partition.neighbour(mu, true),
        tag,
        bytes: &bytes[..],
    });
    let receives = (0..).zip(cut.iter().zip(&mut theirs)).map(|(tag, (&mu, bytes))| Message {
        peer: partition.neighbour(mu, false),
        tag,
        bytes: &mut bytes[..],
    });
    comm.exchange(&sends.collect::<Vec<_>>(), &mut receives.collect::<Vec<_>>());
    for (mu, bytes) in cut.into_iter().zip(theirs) {
        all[mu].reals.clear();
        Endian::Little.decode(Precision::Double, &bytes, &mut all[mu].reals);
    }
    all
}

/// Writes all links, little-endian; each rank the points of its box. Collective.
fn write(
    path: &Path,
    links: &HostLinks,
    partition: &Partition,
    comm: &dyn Comm,
    _: (&Meta, &Path),
) -> Result<(), IoError> {
    let (global, local, offset) = (partition.global, partition.local(), partition.offset());
    let [nx, ny, nz, _] = global;
    let behind = layers_behind(links, partition, comm);
    let plaquette = 3.0 * whole::means(links, partition, comm).openqcd_plaquette;
    let [x, y, z, t] = extents_in_words(path, global)?;
    let mut head: Vec<u8> = [t, x, y, z].into_iter().flat_map(u32::to_le_bytes).collect();
    head.extend(plaquette.to_le_bytes());
    let point_bytes = 8 * LINK_BYTES as u64;
    create(path, comm, HEADER_BYTES + volume(global) as u64 / 2 * point_bytes, &[(0, &head)])?;
    let write = || {
        let mut pen = Pen::new(path)?;
        let mut bytes = Vec::new();
        // y fastest, then x, then t.
        for row in 0..local[3] * local[0] * local[1] {
            let [y, x, t, _] = coordinates([local[1], local[0], local[3], 1], row);
            let at = [x + offset[0], y + offset[1], t + offset[3]];
            let points = odd_points(global, at).enumerate();
            let inside = points.filter(|(_, point)| (offset[2]..offset[2] + local[2]).contains(&point[2]));
            for (place, point) in inside {
                bytes.clear();
                let own: Extents = std::array::from_fn(|mu| point[mu] - offset[mu]);
                for mu in DIRECTION {
                    Endian::Little.encode(Precision::Double, links.link(site(local, own), mu), &mut bytes);
                    let mut back = own;
                    let link = if own[mu] > 0 {
                        back[mu] -= 1;
                        links.link(site(local, back), mu)
                    } else {
                        let layer = &behind[mu];
                        &layer.reals[site(layer.local, own) * LINK_REALS..][..LINK_REALS]
                    };
                    Endian::Little.encode(Precision::Double, link, &mut bytes);
                }
                let row = ((at[2] * nx + at[0]) * ny + at[1]) * (nz / 2) + place;
                pen.write(HEADER_BYTES + row as u64 * point_bytes, &bytes)?;
            }
        }
        pen.finish()
    };
    agree(comm, write())
}
