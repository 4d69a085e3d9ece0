//! An operator's own links in the order in which a device's hops read them.
//!
//! A hop forward takes the link that begins at its site, a hop backward the one that ends there. A GPU reads both where they
//! begin. A CPU has the second ones once more, by the sites where they end: its cores fetch ahead what follows in memory,
//! and nothing else as fast.

use super::{Domain, EVEN, FieldError, ODD};
use crate::device::kernels::{GatherLinks, In, Links, Out, int};
use crate::device::{Buffer, Precision};
use std::sync::Arc;

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
