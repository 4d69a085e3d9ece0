//! Propagators `S(x) = M^-1 b` from all components of a source, on the device: 12 Dirac spinors (component 3 spin +
//! colour), or 3 colour vectors of staggered quarks.

use super::{MeasureError, Stop};
use crate::field::{EVEN, Kind, ODD};
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
        let components: Vec<usize> = (0..quark.kind().reals() / 2).collect();
        for some in components.chunks(quark.together()) {
            if stop() {
                return Err(MeasureError::Stopped);
            }
            let mut b = fields(&domain, quark.kind(), some.len())?;
            let mut x = fields(&domain, quark.kind(), some.len())?;
            for (n, component) in some.iter().enumerate() {
                set_source(&mut b, n, source, *component)?;
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

/// Sets field number `n` to this component of the source.
fn set_source(b: &mut Fields, n: usize, source: Source, component: usize) -> Result<(), MeasureError> {
    let partition = *b[EVEN][n].domain().partition();
    let (local, offset, reals) = (partition.local(), partition.offset(), b[EVEN][n].kind().reals());
    let mut values = vec![0.0; volume(local) * reals];
    for s in 0..volume(local) {
        let x = coordinates(local, s);
        if source.contains(std::array::from_fn(|mu| x[mu] + offset[mu])) {
            values[s * reals + 2 * component] = 1.0;
        }
    }
    for parity in [EVEN, ODD] {
        b[parity][n].read_host(parity, &values)?;
    }
    Ok(())
}
