//! M = 2 m + D of improved staggered quarks on all sites.

use super::{Staggered, StaggeredLinks, StaggeredParams};
use crate::device::Precision;
use crate::field::{Dagger, Domain, EVEN, Kind, LINK_REALS, MatrixField, ODD};
use crate::operator::Operator;
use crate::quark::{Fields, FullOperator, QuarkError};
use std::sync::Arc;

/// `M = 2 m + D`. D is antihermitian.
pub struct StaggeredOnAllSites {
    hops: Staggered,
    mass: f64,
}

impl StaggeredOnAllSites {
    /// M on `links`, which are smeared here.
    ///
    /// # Panics
    /// As [`StaggeredQuark::new`](super::StaggeredQuark::new).
    pub fn new(links: &MatrixField, params: &StaggeredParams) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let &StaggeredParams { smearing, mass, naik_epsilon, boundary } = params;
        let mut smeared = StaggeredLinks::new(domain, smearing)?;
        smeared.update(links)?;
        let mut fat = MatrixField::new(domain, 4)?;
        smeared.fat(naik_epsilon, &mut fat)?;
        let mut hops = Staggered::new(domain, Precision::Double, LINK_REALS, 1, boundary)?;
        hops.update(&fat, smeared.long(), smeared.naik(naik_epsilon))?;
        Ok(Self { hops, mass })
    }
}

impl FullOperator for StaggeredOnAllSites {
    fn domain(&self) -> &Arc<Domain> {
        self.hops.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn apply(&mut self, out: &mut Fields, x: &Fields, dagger: Dagger) -> Result<(), QuarkError> {
        let sign = if dagger == Dagger::Yes { -1.0 } else { 1.0 };
        for parity in [EVEN, ODD] {
            for (n, out) in out[parity].iter_mut().enumerate() {
                let own = Some((2.0 * self.mass, &x[parity][n]));
                self.hops.hop(out, &x[1 - parity][n], parity, sign, own)?;
            }
        }
        Ok(())
    }
}
