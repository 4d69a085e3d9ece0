//! 3x3 complex matrices in double precision, several per site, with borders in cut directions.
//!
//! Links are four matrices per site. The borders hold copies of the neighbouring ranks' layers; code that changes a
//! field must fill them again.

use super::{Domain, EVEN, FieldError, HostLinks, LINK_REALS, Layout, ODD, RandomAddress, borders};
use crate::device::kernels::{
    EndLinks, FromNatural, In, LinkDistance, Matrices, Order, Out, RandomLinks, Reunitarise, ToNatural,
    Unitarity, int,
};
use crate::device::{Buffer, Precision, Stamp, Use, product};
use crate::lattice::volume;
use std::sync::Arc;

/// Number of links per site.
const LINKS: usize = 4;

/// Matrices on all sites of the box, both parities.
///
/// ```
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let mut links = MatrixField::hot(&domain, 1)?;
/// assert!(links.unitarity(false)? < 1e-14);
/// let host = links.to_host()?;
/// assert_eq!(MatrixField::from_host(&domain, &host)?.distance(&links)?, 0.0);
/// // The real part of the first element of U_t at the origin, where random links are not 1.
/// assert_ne!(host.link(0, 3)[0], 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MatrixField {
    domain: Arc<Domain>,
    blocks: usize,
    buffer: Buffer,
}

impl MatrixField {
    /// `blocks` zero matrices per site.
    pub fn new(domain: &Arc<Domain>, blocks: usize) -> Result<Self, FieldError> {
        let buffer = domain.device().buffer(bytes(domain, blocks))?;
        Ok(Self { domain: Arc::clone(domain), blocks, buffer })
    }

    /// As [`MatrixField::new`], for matrices that are hardly computed with: those of a GPU are in memory of its host
    /// ([`Use::Aside`]).
    pub fn aside(domain: &Arc<Domain>, blocks: usize) -> Result<Self, FieldError> {
        let buffer = domain.device().buffer_for(Use::Aside, bytes(domain, blocks))?;
        Ok(Self { domain: Arc::clone(domain), blocks, buffer })
    }

    /// Links from host memory.
    pub fn from_host(domain: &Arc<Domain>, links: &HostLinks) -> Result<Self, FieldError> {
        let mut field = Self::new(domain, LINKS)?;
        field.set_host(links)?;
        Ok(field)
    }

    /// This rank's box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The number of its content, borders included.
    pub fn stamp(&self) -> Stamp {
        self.buffer.stamp()
    }

    /// The argument of kernels that read `blocks` matrices per site.
    ///
    /// # Panics
    /// The field has a different number of matrices.
    pub(crate) fn matrices(&self, blocks: usize) -> In<'_, Matrices> {
        assert_eq!(self.blocks, blocks, "matrices of a site");
        self.buffer.input()
    }

    /// The argument of kernels that write `blocks` matrices per site.
    ///
    /// # Panics
    /// The field has a different number of matrices.
    pub(crate) fn matrices_mut(&mut self, blocks: usize) -> Out<'_, Matrices> {
        assert_eq!(self.blocks, blocks, "matrices of a site");
        self.buffer.output()
    }

    /// The argument of kernels that read links.
    ///
    /// # Panics
    /// The field does not have four matrices per site.
    pub(crate) fn links(&self) -> In<'_, Matrices> {
        self.matrices(LINKS)
    }

    /// The argument of kernels that write links.
    ///
    /// # Panics
    /// The field does not have four matrices per site.
    pub(crate) fn links_mut(&mut self) -> Out<'_, Matrices> {
        self.matrices_mut(LINKS)
    }

    /// All reals in a CPU's layout, including borders: `[parity][site][block][real][lane]`, x fastest and halved.
    /// `None` on a GPU.
    pub fn host_mut(&mut self) -> Option<&mut [f64]> {
        self.buffer.host_mut().map(bytemuck::cast_slice_mut)
    }

    /// Sets all matrices to zero.
    pub fn set_zero(&mut self) -> Result<(), FieldError> {
        Ok(self.buffer.zero()?)
    }

    /// Copies another field, including borders.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        self.domain.check([&other.domain]);
        Ok(self.buffer.copy_from(&other.buffer)?)
    }

    fn order(&self, parity: usize) -> Order<'_> {
        Order { bordered: 1, ..order(self.domain.layout(Precision::Double), parity, self.blocks, LINK_REALS) }
    }

    /// The number of reals in the box, without borders.
    fn reals(&self) -> usize {
        volume(self.domain.partition().local()) * self.blocks * LINK_REALS
    }

    /// The links in host memory.
    pub fn to_host(&self) -> Result<HostLinks, FieldError> {
        let natural = self.natural()?;
        let mut reals = vec![0.0; natural.bytes() / 8];
        natural.read(&mut reals)?;
        Ok(HostLinks { local: self.domain.partition().local(), reals })
    }

    /// The matrices in device memory in file order, without borders.
    pub(crate) fn natural(&self) -> Result<Buffer, FieldError> {
        let mut natural = self.domain.device().buffer(self.reals() * 8)?;
        for parity in [EVEN, ODD] {
            let field = self.buffer.input_at(parity * self.buffer.bytes() / 2);
            let kernel = ToNatural { order: self.order(parity), field, natural: natural.output() };
            self.domain.launch_as(Precision::Double, &kernel, self.domain.half())?;
        }
        Ok(natural)
    }

    /// Sets the links from host memory.
    ///
    /// # Panics
    /// The links belong to a box of another size.
    pub fn set_host(&mut self, links: &HostLinks) -> Result<(), FieldError> {
        assert_eq!(links.local, self.domain.partition().local(), "links of this box");
        assert_eq!(links.reals.len(), self.reals(), "the reals of the box");
        self.set_natural(&self.domain.device().buffer_of(&links.reals)?)
    }

    /// Sets the matrices from device memory in file order.
    pub(crate) fn set_natural(&mut self, natural: &Buffer) -> Result<(), FieldError> {
        let half_bytes = self.buffer.bytes() / 2;
        for parity in [EVEN, ODD] {
            let order = Order {
                bordered: 1,
                ..order(self.domain.layout(Precision::Double), parity, self.blocks, LINK_REALS)
            };
            let field = self.buffer.output_at(parity * half_bytes);
            let kernel = FromNatural { order, field, natural: natural.input() };
            self.domain.launch_as(Precision::Double, &kernel, self.domain.half())?;
        }
        self.fill_borders()
    }

    /// Random links from the Haar measure.
    pub fn set_random(&mut self, address: RandomAddress) -> Result<(), FieldError> {
        assert_eq!(self.blocks, LINKS, "random links");
        let (g, sites) = (self.domain.geometry(), 2 * self.domain.half());
        self.domain.launch(&RandomLinks { g, stream: address.stream(), out: self.buffer.output() }, sites)?;
        self.end_at_walls().map(drop)
    }

    /// Unit links, between walls in time as [`MatrixField::end_at_walls`] leaves them.
    pub fn set_unit(&mut self) -> Result<(), FieldError> {
        self.set_host(&HostLinks::unit(self.domain.partition().local()))?;
        self.end_at_walls().map(drop)
    }

    /// Makes links zero that would leave the lattice in time, and gives those of a fixed wall their values; returns the greatest
    /// change of any matrix element.
    pub fn end_at_walls(&mut self) -> Result<f64, FieldError> {
        assert_eq!(self.blocks, LINKS, "links");
        let (g, sites) = (self.domain.geometry(), 2 * self.domain.half());
        let changed = if self.domain.partition().time.has_walls() {
            self.domain.sum(&EndLinks { g, links: self.buffer.output() }, sites)?.max
        } else {
            0.0
        };
        self.fill_borders()?;
        Ok(changed)
    }

    /// The greatest deviation from SU(3): of an element of `U U^dag - 1`, or of the third row. If `project` is true,
    /// projects the links back to SU(3).
    pub fn unitarity(&mut self, project: bool) -> Result<f64, FieldError> {
        assert_eq!(self.blocks, LINKS, "links");
        let (g, sites) = (self.domain.geometry(), 2 * self.domain.half());
        if !project {
            return Ok(self.domain.sum(&Unitarity { g, links: self.links() }, sites)?.max);
        }
        let drift = self.domain.sum(&Reunitarise { g, links: self.buffer.output() }, sites)?.max;
        self.end_at_walls()?;
        Ok(drift)
    }

    /// The greatest |U - V| of any matrix element.
    pub fn distance(&self, other: &Self) -> Result<f64, FieldError> {
        self.domain.check([&other.domain]);
        let g = self.domain.geometry();
        let kernel = LinkDistance { g, links: self.links(), other: other.links() };
        Ok(self.domain.sum(&kernel, 2 * self.domain.half())?.max)
    }

    /// Copies the neighbours' layers into the borders: first x, then y, z, t, so that corners are included.
    pub fn fill_borders(&mut self) -> Result<(), FieldError> {
        self.fill_borders_to(self.domain.border().into_iter().fold(0, usize::max))
    }

    /// Fills the innermost `layers` of the borders, with corners to the same depth. Other layers do not change.
    ///
    /// # Panics
    /// The borders of a cut direction have fewer layers.
    pub fn fill_borders_to(&mut self, layers: usize) -> Result<(), FieldError> {
        borders::fill(&self.domain, &mut self.buffer, self.blocks, layers)
    }
}

/// The memory of `blocks` matrices per site, borders included.
fn bytes(domain: &Domain, blocks: usize) -> usize {
    product([2 * domain.half_bordered() * domain.lanes().count(), blocks, LINK_REALS, 8])
}

/// A parity as kernels take it.
///
/// # Panics
/// It is neither [`EVEN`] nor [`ODD`].
pub(crate) fn number_of(parity: usize) -> i32 {
    assert!(parity <= ODD, "there is no parity {parity}");
    int(parity)
}

/// File order, for sites with `blocks` blocks of `reals` reals.
pub(super) fn order(layout: &Layout, parity: usize, blocks: usize, reals: usize) -> Order<'_> {
    Order {
        g: layout.geometry(),
        parity: number_of(parity),
        slice: 0,
        slices: 1,
        blocks: int(blocks),
        reals: int(reals),
        bordered: 0,
    }
}
