//! Propagators `S(x) = M^-1 b` from all components of a source, on the device: 12 Dirac spinors (component 3 spin +
//! colour), or 3 colour vectors of staggered quarks.

use super::{MeasureError, Stop};
use crate::field::{Domain, EVEN, Kind, ODD, Spinor};
use crate::lattice::{Extents, coordinates, shape, volume};
use crate::quark::{Fields, Inverse, fields};
use std::sync::Arc;

/// The sites where a source is 1; it is 0 elsewhere. There is one source per component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// One site.
    Point(Extents),
    /// The sites of this time slice with even x, y and z.
    CornerWall(usize),
}

impl Source {
    /// The source's site; for a wall, the one with x = y = z = 0. Momenta and times are counted from it.
    pub fn origin(self) -> Extents {
        match self {
            Self::Point(at) => at,
            Self::CornerWall(t) => [0, 0, 0, t],
        }
    }

    fn contains(self, x: Extents) -> bool {
        match self {
            Self::Point(at) => x == at,
            Self::CornerWall(t) => x[3] == t && x[..3].iter().all(|x| x.is_multiple_of(2)),
        }
    }

    /// Checks that the source lies on the lattice of `extents`.
    ///
    /// # Errors
    /// It does not. The message names the measurement by its `table` in the input.
    pub fn require_inside(self, extents: Extents, table: &str) -> Result<(), MeasureError> {
        let at = self.origin();
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
    pub fn new(
        quark: &mut dyn Inverse,
        source: Source,
        keep: Keep,
        stop: Stop,
    ) -> Result<Self, MeasureError> {
        let domain = Arc::clone(quark.domain());
        let mut found = Self { source, columns: [vec![], vec![]], midpoint: None };
        let mut values = SourceValues::new(&domain, quark.kind(), source);
        let components: Vec<usize> = (0..quark.kind().reals() / 2).collect();
        for some in components.chunks(quark.together()) {
            if stop() {
                return Err(MeasureError::Stopped);
            }
            let mut b = fields(&domain, quark.kind(), some.len())?;
            let mut x = fields(&domain, quark.kind(), some.len())?;
            let [even, odd] = &mut b;
            for (component, b) in some.iter().zip(even.iter_mut().zip(odd)) {
                values.set(*component);
                Spinor::read_all([b.0, b.1], &values.reals)?;
            }
            quark.solve(&mut x, &b)?;
            append(&mut found.columns, x);
            if keep == Keep::Midpoint
                && let Some(parts) = quark.midpoint(&b)?
            {
                let all = found.midpoint.get_or_insert_with(|| [(); 2].map(|()| [vec![], vec![]]));
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

/// A component of a source in host memory: 1 on its sites of this rank's box, 0 elsewhere.
struct SourceValues {
    reals: Vec<f64>,
    /// Where the first component of these sites is.
    sites: Vec<usize>,
    component: usize,
}

impl SourceValues {
    fn new(domain: &Domain, kind: Kind, source: Source) -> Self {
        let partition = domain.partition();
        let (local, offset) = (partition.local(), partition.offset());
        let inside = |s: &usize| {
            let x = coordinates(local, *s);
            source.contains(std::array::from_fn(|mu| x[mu] + offset[mu]))
        };
        let sites = (0..volume(local)).filter(inside).map(|s| s * kind.reals()).collect();
        Self { reals: vec![0.0; volume(local) * kind.reals()], sites, component: 0 }
    }

    fn set(&mut self, component: usize) {
        for site in &self.sites {
            self.reals[site + 2 * self.component] = 0.0;
            self.reals[site + 2 * component] = 1.0;
        }
        self.component = component;
    }
}
