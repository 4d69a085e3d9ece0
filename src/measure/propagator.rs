//! Propagators `S(x) = M^-1 b` from all components of a source, on the device: 12 Dirac spinors (component 3 spin +
//! colour), or 3 colour vectors of staggered quarks.

use super::{MeasureError, Noise, Stop};
use crate::device::Buffer;
use crate::field::{Domain, EVEN, FieldError, Kind, ODD, Purpose, RandomAddress, Spinor};
use crate::lattice::{Extents, Lattice, shape, site, volume};
use crate::quark::{Fields, Inverse, fields};
use rand::RngExt;
use std::sync::Arc;

/// The sites where a source is 1, or has a phase; it is 0 elsewhere. There is one source per component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// One site.
    Point(Extents),
    /// The sites of this time slice with even x, y and z.
    CornerWall(usize),
    /// The sites of this time slice, with random phases `(+-1 +- i) / sqrt 2`, the same for all components: the mean of
    /// products of two propagators is that of all points (Foster, Michael, hep-lat/9810021).
    Slice {
        /// The slice.
        t: usize,
        /// The key of the phases.
        noise: Noise,
        /// Their number among a configuration's random sources.
        number: usize,
    },
}

impl Source {
    /// The source's site; for a wall, the one with x = y = z = 0. Momenta and times are counted from it.
    pub fn origin(self) -> Extents {
        match self {
            Self::Point(at) => at,
            Self::CornerWall(t) | Self::Slice { t, .. } => [0, 0, 0, t],
        }
    }

    /// Whether its sites have the coordinate `x` in direction `mu`, whatever the others are.
    fn has(self, mu: usize, x: usize) -> bool {
        match self {
            Self::Point(at) => x == at[mu],
            Self::CornerWall(t) | Self::Slice { t, .. } if mu == 3 => x == t,
            Self::CornerWall(_) => x.is_multiple_of(2),
            Self::Slice { .. } => true,
        }
    }

    /// Its value on a site, re and im.
    fn phase(self, site: u64) -> [f64; 2] {
        let Self::Slice { noise: Noise { seed, trajectory }, number, .. } = self else { return [1.0, 0.0] };
        let address = RandomAddress { seed, trajectory, purpose: Purpose::Source(number as u16) };
        let bits: u32 = address.rng_of(site).random();
        [bits >> 31, bits >> 30 & 1].map(|bit| if bit == 0 { 0.5_f64.sqrt() } else { -0.5_f64.sqrt() })
    }

    /// The mean of what `measure` finds from the first `count` sources of its kind, per site of a slice.
    pub(super) fn mean(
        self,
        count: usize,
        noise: Noise,
        extents: Extents,
        mut measure: impl FnMut(Self) -> Result<Vec<Vec<f64>>, MeasureError>,
    ) -> Result<Vec<Vec<f64>>, MeasureError> {
        let Self::Slice { t, .. } = self else { return measure(self) };
        let mut mean: Vec<Vec<f64>> = Vec::new();
        for number in 0..count {
            let found = measure(Self::Slice { t, noise, number })?;
            mean.resize_with(found.len(), Vec::new);
            for (sum, found) in mean.iter_mut().zip(found) {
                sum.resize(found.len(), 0.0);
                sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
            }
        }
        let sites = (volume(extents) / extents[3] * count) as f64;
        mean.iter_mut().flatten().for_each(|value| *value /= sites);
        Ok(mean)
    }

    /// Checks that the source lies on the lattice, and not on a wall in time.
    ///
    /// # Errors
    /// It does not. The message names the measurement by its `table` in the input.
    pub fn require_inside(self, lattice: Lattice, table: &str) -> Result<(), MeasureError> {
        let (at, Lattice { extents, time }) = (self.origin(), lattice);
        if time.is_wall(at[3], extents[3]) {
            let message =
                format!("[{table}]: the source {at:?} lies on a wall in time, where quark fields are zero");
            return Err(MeasureError::Refused(message));
        }
        if (0..4).all(|mu| at[mu] < extents[mu]) {
            return Ok(());
        }
        let extents = shape(extents);
        Err(MeasureError::Refused(format!(
            "[{table}]: the source {at:?} lies outside the lattice of {extents}"
        )))
    }
}

/// A quark's propagator from one source.
pub struct Propagator {
    /// The source.
    pub source: Source,
    /// One field per component of the source.
    pub columns: Fields,
    /// For a quark with a fifth dimension: x and y of [`Inverse::midpoint`], one field per component.
    pub midpoint: Option<[Fields; 2]>,
}

/// What is kept of a propagator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The propagator itself.
    Columns,
    /// Also its parts at the midpoint of the fifth dimension, if there is one.
    Midpoint,
}

impl Propagator {
    /// The propagator of a quark from `source`.
    ///
    /// # Panics
    /// The quark mixes flavours.
    pub fn new(
        quark: &mut dyn Inverse,
        source: Source,
        keep: Keep,
        stop: Stop,
    ) -> Result<Self, MeasureError> {
        let [found] = <[Self; 1]>::try_from(Self::from_flavour(quark, source, 0, keep, stop)?)
            .unwrap_or_else(|all| panic!("a propagator of {} flavours", all.len()));
        Ok(found)
    }

    /// The propagators to each flavour that a quark mixes, from `flavour` at `source`.
    pub fn from_flavour(
        quark: &mut dyn Inverse,
        source: Source,
        flavour: usize,
        keep: Keep,
        stop: Stop,
    ) -> Result<Vec<Self>, MeasureError> {
        let (domain, flavours) = (Arc::clone(quark.domain()), quark.flavours());
        let none = || Self { source, columns: [vec![], vec![]], midpoint: None };
        let mut found: Vec<Self> = (0..flavours).map(|_| none()).collect();
        let components: Vec<usize> = (0..quark.kind().reals() / 2).collect();
        for some in components.chunks(quark.together()) {
            if stop() {
                return Err(MeasureError::Stopped);
            }
            let mut b = fields(&domain, quark.kind(), flavours * some.len())?;
            let mut x = fields(&domain, quark.kind(), flavours * some.len())?;
            let [even, odd] = &mut b;
            let of_flavour = even.iter_mut().zip(odd).skip(flavour).step_by(flavours);
            for (component, b) in some.iter().zip(of_flavour) {
                let values = values(&domain, quark.kind(), source, *component)?;
                Spinor::read_natural([b.0, b.1], &values)?;
            }
            quark.solve(&mut x, &b)?;
            for (parity, x) in x.into_iter().enumerate() {
                x.into_iter().enumerate().for_each(|(n, x)| found[n % flavours].columns[parity].push(x));
            }
            if keep == Keep::Midpoint
                && let Some(parts) = quark.midpoint(&b)?
            {
                let all = found[0].midpoint.get_or_insert_with(|| [(); 2].map(|()| [vec![], vec![]]));
                all.iter_mut().zip(parts).for_each(|(all, part)| append(all, part));
            }
        }
        Ok(found)
    }

    /// The kind of its fields.
    pub fn kind(&self) -> Kind {
        self.columns[EVEN][0].kind()
    }
}

fn append(all: &mut Fields, [even, odd]: Fields) {
    all[EVEN].extend(even);
    all[ODD].extend(odd);
}

/// A component of a source in the order of files: its values on sites of this rank's box, 0 elsewhere.
fn values(domain: &Domain, kind: Kind, source: Source, component: usize) -> Result<Buffer, FieldError> {
    let partition = domain.partition();
    let (local, offset) = (partition.local(), partition.offset());
    let inside = |mu: usize| (0..local[mu]).filter(move |x| source.has(mu, x + offset[mu]));
    let mut row = vec![0.0; local[0] * kind.reals()];
    let mut values = domain.device().buffer(volume(local) * kind.reals() * 8)?;
    if inside(0).next().is_none() {
        return Ok(values);
    }
    for (t, z) in inside(3).flat_map(|t| inside(2).map(move |z| (t, z))) {
        for y in inside(1) {
            for x in inside(0) {
                let at = [x, y, z, t];
                let whole = site(partition.global, std::array::from_fn(|mu| at[mu] + offset[mu]));
                row[x * kind.reals() + 2 * component..][..2].copy_from_slice(&source.phase(whole as u64));
            }
            values.write_part(site(local, [0, y, z, t]) * kind.reals() * 8, &row)?;
        }
    }
    Ok(values)
}
