//! Starting points of a program: a lattice on this process alone, and initial links.

use super::{Domain, FieldError, Halo, MatrixField, Purpose, RandomAddress};
use crate::comm::Solo;
use crate::device::{Cpu, Device, fastest_lanes};
use crate::lattice::{Extents, LaneGrid, Partition};
use std::sync::Arc;

impl Domain {
    /// A lattice of `extents` on this process's threads, with as many SIMD lanes as fit.
    ///
    /// ```
    /// use hmc::prelude::*;
    /// let domain = Domain::local([4, 4, 4, 8])?;
    /// assert_eq!(domain.global_volume(), 512.0);
    /// assert!(Domain::local([4, 4, 4, 7]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An extent is odd, or memory runs out.
    pub fn local(extents: Extents) -> Result<Arc<Self>, FieldError> {
        let partition = Partition::whole(extents)?;
        let lanes = fastest_lanes(|lanes| LaneGrid::choose(extents, [false; 4], lanes).is_some());
        let device = Device::new(Cpu::new(lanes)?);
        Self::new(partition, device, Arc::new(Solo), 2, Halo::Staged)
    }
}

impl MatrixField {
    /// Unit links.
    pub fn cold(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        let mut links = Self::new(domain, 4)?;
        links.set_unit()?;
        Ok(links)
    }

    /// Random links from the Haar measure.
    pub fn hot(domain: &Arc<Domain>, seed: u64) -> Result<Self, FieldError> {
        let mut links = Self::new(domain, 4)?;
        links.set_random(RandomAddress { seed, trajectory: 0, purpose: Purpose::Start })?;
        Ok(links)
    }
}
