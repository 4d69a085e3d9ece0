//! An operator's own links in the order in which a device's hops read them.
//!
//! A hop forward takes the link that begins at its site, a hop backward the one that ends there. A GPU reads both where they
//! begin. A CPU has the second ones once more, by the sites where they end: its cores fetch ahead what follows in memory,
//! and nothing else as fast. A link that ends here and begins on the rank before is in a border ([`GhostLinks`]).

use super::faces::{Crossing, FaceData, FaceSource, Faces};
use super::shared::common;
use super::{Domain, EVEN, FieldError, ODD};
use crate::device::kernels::{GatherLinks, Halo, In, Links, Out, int};
use crate::device::{Buffer, Precision};
use std::sync::{Arc, Mutex, MutexGuard};

/// Numbers per link, for four links of each site.
pub(crate) struct HopLinks {
    domain: Arc<Domain>,
    precision: Precision,
    reals: usize,
    /// By the parity of the sites where they begin.
    from: [Buffer; 2],
    /// By the parity of the sites where they end.
    to: Option<[Buffer; 2]>,
}

impl HopLinks {
    /// Room for links of `reals` reals.
    pub(crate) fn new(domain: &Arc<Domain>, precision: Precision, reals: usize) -> Result<Self, FieldError> {
        let (device, layout) = (domain.device(), domain.layout(precision));
        let bytes = layout.half() * layout.lanes().count() * precision.stored(4 * reals, 0);
        let room = || Ok::<_, FieldError>([device.buffer(bytes)?, device.buffer(bytes)?]);
        let to = (!device.nature().is_gpu).then(room).transpose()?;
        Ok(Self { domain: Arc::clone(domain), precision, reals, from: room()?, to })
    }

    /// Those that begin at sites of `parity`, by these sites.
    pub(crate) fn from(&self, parity: usize) -> In<'_, Links> {
        self.from[parity].input()
    }

    /// As [`HopLinks::from`], to be filled; [`HopLinks::gather`] follows.
    pub(crate) fn fill(&self, parity: usize) -> Out<'_, Links> {
        self.from[parity].shared_output()
    }

    /// Those that end at sites of `parity`, as the kernels take them.
    pub(crate) fn to(&self, parity: usize) -> In<'_, Links> {
        self.to.as_ref().map_or_else(|| self.from(1 - parity), |to| to[parity].input())
    }

    /// Puts links over `steps` sites where they end, as far as that is on this rank.
    pub(crate) fn gather(&self, steps: usize) -> Result<(), FieldError> {
        let Some(to) = &self.to else { return Ok(()) };
        let layout = self.domain.layout(self.precision);
        let bytes = int(layout.lanes().count() * self.precision.stored(self.reals, 0));
        [EVEN, ODD].into_iter().try_for_each(|parity| {
            let (links, out) = (self.from(1 - parity), to[parity].shared_output());
            let (g, parity, steps) = (layout.geometry(), int(parity), int(steps));
            let kernel = GatherLinks { g, links, out, parity, steps, bytes };
            self.domain.launch_as(self.precision, &kernel, layout.half())
        })
    }
}

/// What operators with links of one precision and so many layers bring those of the rank before by.
#[derive(Clone)]
pub(crate) struct LinkFaces(Arc<Mutex<Faces>>);

impl LinkFaces {
    /// Those of the domain. All ranks call it together.
    pub(crate) fn new(domain: &Arc<Domain>, precision: Precision, layers: usize) -> Result<Self, FieldError> {
        let name = format!("faces of {layers} layers of links in {precision:?}");
        let make = || Faces::new(domain, precision, 1, (Crossing::Links(layers), &[false]), 0);
        Ok(Self(common(domain, name, make)?))
    }

    fn get(&self) -> MutexGuard<'_, Faces> {
        self.0.lock().expect("no panic holds it")
    }
}

/// Links of the rank before in each cut direction, which hops backward need: as whole matrices.
pub(crate) struct GhostLinks {
    faces: LinkFaces,
    /// By the parity of the sites where they begin: the direction, and the links.
    of: [Vec<(usize, Buffer)>; 2],
}

impl GhostLinks {
    /// Room for them.
    pub(crate) fn new(faces: &LinkFaces) -> Result<Self, FieldError> {
        let room = || faces.get().like_zones(false);
        Ok(Self { faces: faces.clone(), of: [room()?, room()?] })
    }

    /// Brings them from the other ranks; `own` are this rank's of a parity.
    pub(crate) fn exchange<'a>(&self, own: impl Fn(usize) -> FaceData<'a>) -> Result<(), FieldError> {
        let mut faces = self.faces.get();
        for (parity, zones) in self.of.iter().enumerate() {
            faces.exchange(FaceSource { parity, data: own(parity) }, 1)?;
            for (mu, zone) in zones {
                zone.shared_copy_from(faces.zone(*mu, false).expect("a cut direction"))?;
            }
        }
        Ok(())
    }

    /// Those that end at sites of `parity`, by direction.
    pub(crate) fn to(&self, parity: usize) -> [Option<In<'_, Halo>>; 4] {
        let mut links = [None; 4];
        for (mu, zone) in &self.of[1 - parity] {
            links[*mu] = Some(zone.input());
        }
        links
    }
}
