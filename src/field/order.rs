//! The sites of a hop, those first that need no ghost zones.

use super::signals::{no_signal, no_wait};
use super::{Domain, EVEN, FieldError, ODD};
use crate::device::kernels::{HaloWait, Outgoing, Places, int};
use crate::device::{Buffer, Precision};
use crate::lattice::{coordinates, volume};

/// What a launch of hops packs for the neighbours before its own sites, in chunks, and what it waits for.
pub(super) struct Swap<'a> {
    pub packs: Outgoing<'a>,
    pub chunks: usize,
    pub wait: HaloWait<'a>,
}

/// Nothing that is packed.
pub(super) fn nothing() -> Outgoing<'static> {
    let (wire, ghost) = ([const { None }; 8], [const { None }; 8]);
    Outgoing { wire, ghost, signal: no_signal(), fields: 0, chunk: 1 }
}

impl Swap<'_> {
    /// Nothing.
    pub(super) fn none() -> Self {
        Self { packs: nothing(), chunks: 0, wait: no_wait() }
    }
}

impl Places<'_> {
    /// How many sites they are.
    pub(crate) fn number(&self) -> usize {
        usize::try_from(self.count).expect("a number of sites")
    }
}

/// Sites of each parity in an order: those from which a hop needs no ghost zones, then the others.
pub(super) struct Order {
    /// None if only the last direction is cut: the order is that of memory, from site `from` on and round to it.
    sites: Option<[Buffer; 2]>,
    from: usize,
    pub(super) inner: usize,
    all: usize,
}

impl Order {
    /// For a hop over `reach` sites.
    pub(super) fn new(domain: &Domain, precision: Precision, reach: usize) -> Result<Self, FieldError> {
        let (outer, partition) = (domain.layout(precision).outer(), domain.partition());
        let half_row = [outer[0] / 2, outer[1], outer[2], outer[3]];
        let all = volume(half_row);
        if domain.cut_directions().eq([3]) {
            let slice = all / outer[3];
            let inner = slice * outer[3].saturating_sub(2 * reach);
            return Ok(Self { sites: None, from: (slice * reach).min(all), inner, all });
        }
        let inside =
            |mu: usize| if partition.is_cut(mu) { outer[mu].saturating_sub(2 * reach) } else { outer[mu] };
        // Extents of lanes' boxes are even, so there are as many even as odd sites in the part that needs no ghost zones.
        let inner = volume(std::array::from_fn(inside)) / 2;
        let of_parity = |parity| {
            let (within, others): (Vec<usize>, Vec<usize>) = (0..all).partition(|&s| {
                let [xh, y, z, t] = coordinates(half_row, s);
                let x = [2 * xh + ((y + z + t + parity) & 1), y, z, t];
                domain.cut_directions().all(|mu| (reach..outer[mu].saturating_sub(reach)).contains(&x[mu]))
            });
            assert_eq!(within.len(), inner, "sites that need no ghost zones");
            within.iter().chain(&others).copied().map(int).collect::<Vec<i32>>()
        };
        let buffer = |parity| domain.device().table(all, || of_parity(parity));
        Ok(Self { sites: Some([buffer(EVEN)?, buffer(ODD)?]), from: 0, inner, all })
    }

    /// The places `first..end` of a launch on sites of `parity`.
    pub(super) fn places<'a>(
        &'a self,
        parity: usize,
        [first, end]: [usize; 2],
        swap: Swap<'a>,
    ) -> Places<'a> {
        Places {
            sites: self.sites.as_ref().map(|sites| sites[parity].input()),
            wait: swap.wait,
            packs: swap.packs,
            packing: int(swap.chunks),
            from: int(self.from),
            all: int(self.all),
            first: int(first),
            count: int(end - first),
        }
    }
}
