//! The sites of a hop, those first that need no ghost zones.

use super::{Domain, EVEN, FieldError, ODD};
use crate::device::kernels::{HaloWait, Places};
use crate::device::{Buffer, Precision};
use crate::lattice::{coordinates, volume};

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
        let outer = domain.layout(precision).outer();
        let half_row = [outer[0] / 2, outer[1], outer[2], outer[3]];
        let all = volume(half_row);
        if domain.cut_directions().eq([3]) {
            let slice = all / outer[3];
            let inner = slice * outer[3].saturating_sub(2 * reach);
            return Ok(Self { sites: None, from: (slice * reach).min(all), inner, all });
        }
        let of_parity = |parity| {
            let (mut sites, others): (Vec<i32>, Vec<i32>) = (0..all as i32).partition(|&s| {
                let [xh, y, z, t] = coordinates(half_row, s as usize);
                let x = [2 * xh + ((y + z + t + parity) & 1), y, z, t];
                domain.cut_directions().all(|mu| (reach..outer[mu].saturating_sub(reach)).contains(&x[mu]))
            });
            let inner = sites.len();
            sites.extend(others);
            (sites, inner)
        };
        let ((even, inner), (odd, _)) = (of_parity(EVEN), of_parity(ODD));
        let buffer = |sites: &[i32]| domain.device().buffer_of(sites);
        Ok(Self { sites: Some([buffer(&even)?, buffer(&odd)?]), from: 0, inner, all })
    }

    /// The places `first..end` of a launch on sites of `parity`, which waits for what they need.
    pub(super) fn places<'a>(
        &'a self,
        parity: usize,
        [first, end]: [usize; 2],
        wait: HaloWait<'a>,
    ) -> Places<'a> {
        Places {
            sites: self.sites.as_ref().map(|sites| sites[parity].input()),
            wait,
            from: self.from as i32,
            all: self.all as i32,
            first: first as i32,
            count: (end - first) as i32,
        }
    }
}
