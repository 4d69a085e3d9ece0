//! A rank's box of a dataset of complex numbers.

use super::chunks::{Chunk, Grid};
use super::fields::Fields;
use super::filters::{Filter, filters, is_possible, undone};
use super::kind::{Kind, Shape, kind, shape};
use super::object::{DATASPACE, DATATYPE, EXTERNAL, FILTERS, LAYOUT, Object};
use super::{IoError, NOWHERE, Reader};
use crate::io::bytes::zeros;
use crate::lattice::{Extents, Partition};

/// Bytes of a complex number.
const BYTES: usize = 16;
/// Bytes that are read at once where there are no chunks.
const PIECE: usize = 1 << 22;

/// A box of elements, the slowest direction first.
#[derive(Clone, Debug)]
pub(in crate::io) struct Slab {
    start: Vec<usize>,
    count: Vec<usize>,
}

impl Slab {
    /// A rank's box where the sites hold `tail`.
    pub(in crate::io) fn new(partition: &Partition, tail: &[usize]) -> Self {
        let ([x, y, z, t], [lx, ly, lz, lt]) = (partition.offset(), partition.local());
        Self {
            start: [&[t, z, y, x], &vec![0; tail.len()][..]].concat(),
            count: [&[lt, lz, ly, lx], tail].concat(),
        }
    }

    fn elements(&self) -> usize {
        self.count.iter().product()
    }

    /// The elements that both boxes have, in runs that follow each other in both: places in either, and lengths.
    fn common(&self, other: &Self) -> Vec<(usize, usize, usize)> {
        let all = self.start.len();
        let low: Vec<usize> = (0..all).map(|k| self.start[k].max(other.start[k])).collect();
        let ends = |k: usize| (self.start[k] + self.count[k]).min(other.start[k] + other.count[k]);
        let counts: Vec<usize> = (0..all).map(|k| ends(k).saturating_sub(low[k])).collect();
        // Directions of which both have the same whole are one with the next slower one.
        let is_same = |k: usize| self.start[k] == other.start[k] && self.count[k] == other.count[k];
        let inner = (1..all).rev().find(|&k| !is_same(k)).unwrap_or(0);
        let place =
            |of: &Self, x: &[usize]| (0..all).fold(0, |place, k| place * of.count[k] + x[k] - of.start[k]);
        let (outer, length) = (counts[..inner].iter().product(), counts[inner..].iter().product());
        if length == 0 {
            return Vec::new();
        }
        let run = |mut n: usize| {
            let mut x = low.clone();
            for k in (0..inner).rev() {
                x[k] += n % counts[k];
                n /= counts[k];
            }
            (place(self, &x), place(other, &x), length)
        };
        (0..outer).map(run).collect()
    }
}

/// Where the elements are.
enum Place {
    /// In the header.
    Header(Vec<u8>),
    /// From a byte of the file on.
    Row(u64),
    Chunks(Grid, Vec<Option<Chunk>>, Vec<Filter>),
}

/// A dataset of complex numbers.
pub(in crate::io) struct Dataset<'a> {
    reader: &'a Reader<'a>,
    name: &'a str,
    shape: Vec<usize>,
    place: Place,
}

impl Reader<'_> {
    /// A dataset of complex numbers of the shape `[t, z, y, x]` and `tail`. Before memory is asked for, all of it is found in
    /// the file: what is compressed at the least size that deflate has.
    pub(in crate::io) fn dataset<'a>(
        &'a self,
        name: &'a str,
        [x, y, z, t]: Extents,
        tail: &[usize],
    ) -> Result<Dataset<'a>, IoError> {
        let missing = || IoError::malformed(self.path, format!("there is no /{name}"));
        let object = self.find(name)?.ok_or_else(missing)?;
        let need = |number, what| {
            object.one(self, number, what)?.ok_or_else(|| self.refused(format!("/{name} has no {what}")))
        };
        let expected = [&[t, z, y, x], tail].concat();
        match shape(need(DATASPACE, "shape")?) {
            Some(Shape::Of(found)) if found.iter().copied().eq(expected.iter().map(|&n| n as u64)) => {}
            found => {
                let found = match found {
                    Some(Shape::Of(found)) => format!("shape {found:?}"),
                    _ => "no values".into(),
                };
                let what = format!("/{name} has {found}, but {expected:?} is expected");
                return Err(IoError::malformed(self.path, what));
            }
        }
        if kind(need(DATATYPE, "type")?) != Some(Kind::Complex) {
            return Err(self.refused(format!("/{name} does not hold pairs r, i of doubles")));
        }
        if object.all(EXTERNAL).next().is_some() {
            return Err(self.refused(format!("/{name} is in another file (external storage)")));
        }
        let place = self.place(&object, need(LAYOUT, "layout")?, name, &expected)?;
        Ok(Dataset { reader: self, name, shape: expected, place })
    }

    fn place(&self, object: &Object, layout: &[u8], name: &str, shape: &[usize]) -> Result<Place, IoError> {
        let broken = || self.broken("layout", 0);
        let size = shape.iter().try_fold(BYTES, |size, &n| size.checked_mul(n)).ok_or_else(broken)?;
        let filters = object.one(self, FILTERS, "list of filters")?.map_or(Some(Ok(Vec::new())), filters);
        let filters = filters.ok_or_else(broken)?.map_err(|number| {
            self.refused(format!("/{name} has filter {number}; shuffle, deflate and Fletcher-32 are read"))
        })?;
        let mut fields = Fields(layout);
        let (version, class) = fields.byte().zip(fields.byte()).ok_or_else(broken)?;
        if !(3..=5).contains(&version) {
            return Err(self.refused(format!("/{name} has a layout of version {version}")));
        }
        match class {
            0 => {
                let data = fields.length(2).and_then(|length| fields.take(length));
                let data = data.filter(|data| data.len() == size).ok_or_else(broken)?;
                Ok(Place::Header(data.to_vec()))
            }
            1 => {
                let [address, length] = fields.addresses().ok_or_else(broken)?;
                if address == NOWHERE {
                    return Err(IoError::damaged(self.path, format!("/{name} was never written")));
                }
                if length != size as u64 {
                    return Err(broken());
                }
                self.require(address, length)?;
                Ok(Place::Row(address))
            }
            2 => self.chunked(fields, version, filters, shape).and_then(|place| self.complete(place, name)),
            3 => Err(self.refused(format!("/{name} is a virtual dataset"))),
            _ => Err(broken()),
        }
    }

    /// The layout of chunks, from behind its class on.
    fn chunked(
        &self,
        mut fields: Fields,
        version: u8,
        filters: Vec<Filter>,
        shape: &[usize],
    ) -> Result<Place, IoError> {
        let broken = || self.broken("layout", 0);
        let directions = shape.len();
        let mut read = || {
            let flags = if version > 3 { fields.byte()? } else { 0 };
            let count = fields.byte()?;
            let mut tree = NOWHERE;
            let mut width = 4;
            if version > 3 {
                width = usize::from(fields.byte()?);
            } else {
                tree = fields.address()?;
            }
            let chunk = (0..directions).map(|_| fields.length(width)).collect::<Option<Vec<_>>>()?;
            let element = fields.length(width)?;
            let is_inside = chunk.iter().zip(shape).all(|(one, all)| (1..=*all).contains(one));
            (usize::from(count) == directions + 1 && element == BYTES && is_inside)
                .then_some((flags, tree, chunk))
        };
        let (flags, tree, chunk) = read().ok_or_else(broken)?;
        let bytes = chunk.iter().product::<usize>() * BYTES;
        let grid =
            Grid { shape: shape.to_vec(), chunk, bytes: bytes as u64, is_filtered: !filters.is_empty() };
        // An index has some bytes of each chunk.
        let count = grid.count().filter(|&count| count as u64 <= self.size / 8).ok_or_else(broken)?;
        let chunks = if version == 3 {
            self.chunks_of_tree(tree, &grid, count)?
        } else {
            self.chunks_of_index(fields, flags & 2 != 0, &grid, count)?
        };
        Ok(Place::Chunks(grid, chunks, filters))
    }

    /// Refuses chunks that are not all there, or hold more than can be in them.
    fn complete(&self, place: Place, name: &str) -> Result<Place, IoError> {
        let Place::Chunks(grid, chunks, filters) = &place else { return Ok(place) };
        let length = usize::try_from(grid.bytes).unwrap_or(usize::MAX);
        let mut stored = 0_u64;
        for chunk in chunks {
            let chunk = chunk.filter(|chunk| chunk.address != NOWHERE);
            let chunk = chunk.ok_or_else(|| {
                IoError::damaged(self.path, format!("a chunk of /{name} was never written"))
            })?;
            self.require(chunk.address, chunk.length)?;
            stored = stored.saturating_add(chunk.length);
            if !is_possible(filters, chunk.length, length) || stored > self.size {
                let what =
                    format!("a chunk of /{name} has {} bytes in the file, {length} in memory", chunk.length);
                return Err(IoError::damaged(self.path, what));
            }
        }
        Ok(place)
    }
}

impl Dataset<'_> {
    /// The reals of a box.
    pub(in crate::io) fn read(&self, slab: &Slab) -> Result<Vec<f64>, IoError> {
        let path = self.reader.path;
        let mut reals = zeros(path, 2 * slab.elements())?;
        match &self.place {
            Place::Header(data) => copy(&self.whole(), data, slab, &mut reals),
            Place::Row(address) => {
                let mut bytes = Vec::new();
                for (from, to, length) in self.whole().common(slab) {
                    let (mut from, to) =
                        (address + (from * BYTES) as u64, &mut reals[2 * to..][..2 * length]);
                    for piece in to.chunks_mut(PIECE / 8) {
                        bytes.resize(8 * piece.len(), 0);
                        self.reader.read(from, &mut bytes)?;
                        decode(&bytes, piece);
                        from += bytes.len() as u64;
                    }
                }
            }
            Place::Chunks(grid, chunks, filters) => {
                let length = grid.chunk.iter().product::<usize>() * BYTES;
                for (n, chunk) in chunks.iter().enumerate() {
                    let here = Slab { start: grid.start(n), count: grid.chunk.clone() };
                    let Some(chunk) = chunk.filter(|_| !here.common(slab).is_empty()) else { continue };
                    let mut bytes = zeros(path, usize::try_from(chunk.length).unwrap_or(usize::MAX))?;
                    self.reader.read(chunk.address, &mut bytes)?;
                    let bytes = undone(filters, chunk.skipped, bytes, length)
                        .map_err(|what| IoError::damaged(path, format!("/{}: {what}", self.name)))?;
                    copy(&here, &bytes, slab, &mut reals);
                }
            }
        }
        Ok(reals)
    }

    fn whole(&self) -> Slab {
        Slab { start: vec![0; self.shape.len()], count: self.shape.clone() }
    }
}

/// Copies what a box of bytes and a box of reals have in common.
fn copy(from: &Slab, bytes: &[u8], to: &Slab, reals: &mut [f64]) {
    for (a, b, length) in from.common(to) {
        decode(&bytes[a * BYTES..][..length * BYTES], &mut reals[2 * b..][..2 * length]);
    }
}

/// Little-endian reals.
fn decode(bytes: &[u8], reals: &mut [f64]) {
    for (real, bytes) in reals.iter_mut().zip(bytes.as_chunks().0) {
        *real = f64::from_le_bytes(*bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_share_runs() {
        let slab = |start: &[usize], count: &[usize]| Slab { start: start.into(), count: count.into() };
        // Rows of a box that is cut in the last but one direction; the last is one with it.
        let all = slab(&[0, 0, 0], &[2, 4, 3]);
        assert_eq!(all.common(&slab(&[0, 1, 0], &[2, 2, 3])), [(3, 0, 6), (15, 6, 6)]);
        assert_eq!(all.common(&all), [(0, 0, 24)]);
        assert_eq!(
            all.common(&slab(&[1, 0, 1], &[1, 4, 1])),
            [(13, 0, 1), (16, 1, 1), (19, 2, 1), (22, 3, 1)]
        );
        // A chunk beyond the end, and one that is elsewhere.
        assert_eq!(slab(&[1, 3, 0], &[1, 3, 3]).common(&all), [(0, 21, 3)]);
        assert_eq!(slab(&[2, 0, 0], &[1, 4, 3]).common(&all), []);
    }
}
