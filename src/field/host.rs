//! Links in host memory, in file order.

use crate::lattice::{Extents, volume};

/// Reals per link.
pub const LINK_REALS: usize = 18;

/// The links of one rank's box: reals in the order `[t][z][y][x][mu][row][column][re, im]`, mu = x, y, z, t.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLinks {
    /// Extents of the box.
    pub local: Extents,
    /// `volume(local) * 4 * 18` reals.
    pub reals: Vec<f64>,
}

impl HostLinks {
    /// Unit links.
    pub fn unit(local: Extents) -> Self {
        let mut reals = vec![0.0; volume(local) * 4 * LINK_REALS];
        for link in reals.chunks_exact_mut(LINK_REALS) {
            for row in 0..3 {
                link[8 * row] = 1.0;
            }
        }
        Self { local, reals }
    }

    /// The reals of link `mu` of the site with natural index `site`.
    pub fn link(&self, site: usize, mu: usize) -> &[f64] {
        &self.reals[(site * 4 + mu) * LINK_REALS..][..LINK_REALS]
    }
}
