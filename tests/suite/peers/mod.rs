//! The numbers of other programs.

mod ensembles;
mod milc_trajectory;
mod program;
mod rationals;
mod seeds;
mod tmlqcd;
mod walls;

use crate::reference::data;
use crate::reference::gauge::{Gauge, LinkField};
use crate::reference::su3;
use crate::terms::whole;
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::read_links;
use hmc::lattice::Partition;
use std::f64::consts::SQRT_2;

/// Links and momenta of MILC's asqtad sample on 6^4, as we have them.
pub fn milc_start() -> Option<[HostLinks; 2]> {
    let lattice = data::find("configs/lat.sample.l6666b650m010m050")?;
    let momenta = data::find("milc_asqtad_trajectory/momenta.f64")?;
    let extents = [6; 4];
    let (host, _) = read_links(&lattice, &Partition::whole(extents).unwrap(), &Solo).unwrap();
    let mut links = whole(&host);
    links.unitarity(true).unwrap();
    // P_MILC = i sqrt(2) P
    let ours = |p: &su3::M3| su3::scale(-su3::I / SQRT_2, p);
    let field: LinkField = data::link_field(&momenta).iter().map(|site| site.each_ref().map(ours)).collect();
    Some([links.to_host().unwrap(), Gauge { extents, links: field }.to_host()])
}
