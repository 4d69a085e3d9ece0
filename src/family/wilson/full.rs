//! M = A - D/2 of Wilson and clover quarks on all sites, and the twist of a doublet.

use super::WilsonParams;
use crate::device::Precision;
use crate::field::{Dagger, Domain, EVEN, Kind, LINK_REALS, MatrixField, ODD, Spinor};
use crate::operator::{CloverTerm, WilsonLinks};
use crate::quark::{Fields, FullOperator, QuarkError};
use std::sync::Arc;

/// `M = A + i twist gamma_5 - D/2`, without the twisted mass of the even-odd form.
pub struct WilsonOnAllSites {
    hops: WilsonLinks,
    diagonal: f64,
    twist: f64,
    clover: Option<CloverTerm>,
}

impl WilsonOnAllSites {
    /// M on `links`.
    pub fn new(links: &MatrixField, params: &WilsonParams) -> Result<Self, QuarkError> {
        let (domain, diagonal) = (links.domain(), params.diagonal());
        let mut hops = WilsonLinks::new(domain, Precision::Double, LINK_REALS, 1, params.boundary)?;
        hops.update(links)?;
        let mut clover =
            params.clover_params().map(|clover| CloverTerm::new(domain, clover, [false; 2])).transpose()?;
        clover.iter_mut().try_for_each(|clover| clover.build(links))?;
        Ok(Self { hops, diagonal, twist: params.twisted_mass, clover })
    }
}

impl FullOperator for WilsonOnAllSites {
    fn domain(&self) -> &Arc<Domain> {
        self.hops.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Dirac
    }

    fn apply(&mut self, out: &mut Fields, x: &Fields, dagger: Dagger) -> Result<(), QuarkError> {
        for parity in [EVEN, ODD] {
            for (n, out) in out[parity].iter_mut().enumerate() {
                self.hops.hop(out, &x[1 - parity][n], parity, dagger)?;
                let own = &x[parity][n];
                match &self.clover {
                    Some(clover) => {
                        let mut hopped = Spinor::new(own.domain(), Precision::Double)?;
                        hopped.copy_from(out)?;
                        clover.apply(out, own, parity)?;
                        out.axpy(-0.5, &hopped)?;
                    }
                    None => {
                        out.scale(-0.5)?;
                        out.axpy(self.diagonal, own)?;
                    }
                }
                if self.twist != 0.0 {
                    out.add_twist(if dagger == Dagger::Yes { -self.twist } else { self.twist }, own)?;
                }
            }
        }
        Ok(())
    }
}
