//! The force of the Zeuthen flow (Ramos, Sint, arXiv:1508.05552): that of the tree-level improved action with its
//! covariant second derivative, `F_mu + D_mu D_mu^* F_mu / 12`, so that the flow has no errors of order a^2 at tree level.

use crate::device::kernels::{AlgebraMatrices, ZeuthenForce};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use std::sync::Arc;

/// Memory for it.
pub struct Zeuthen {
    matrices: MatrixField,
}

impl Zeuthen {
    /// # Errors
    /// There are walls in time, where the second derivative is not defined, or memory runs out.
    pub fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        domain.require_periodic("the Zeuthen flow")?;
        Ok(Self { matrices: MatrixField::new(domain, 4)? })
    }

    /// `force_mu += D_mu D_mu^* force_mu / 12`, with `links` in the covariant derivatives.
    pub fn improve(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<(), FieldError> {
        let domain = Arc::clone(links.domain());
        domain.check([self.matrices.domain(), force.domain()]);
        let (g, count) = (domain.geometry(), 4 * 2 * domain.half());
        let out = self.matrices.links_mut();
        domain.launch(&AlgebraMatrices { g, out, algebra: force.algebra() }, count)?;
        self.matrices.fill_borders_to(1)?;
        let (links, matrices) = (links.links(), self.matrices.links());
        let kernel = ZeuthenForce { g, links, matrices, force: force.algebra_mut(), scale: 1.0 / 12.0 };
        domain.launch(&kernel, count)
    }
}
