//! 3x3 complex matrices, some a site, in double, with borders where directions are cut.
//!
//! Links have four a site. The borders hold copies of the neighbouring ranks' layers; whoever
//! changes a field fills them again.

use super::{Domain, EVEN, FieldError, HostLinks, LINK_REALS, ODD, RandomAddress, borders};
use crate::device::{Buffer, LinkArgs, Pointer, Precision, RandomArgs, TransposeArgs};
use crate::lattice::volume;
use std::sync::Arc;

/// Matrices on every site of the box, both parities.
pub struct MatrixField {
    domain: Arc<Domain>,
    blocks: usize,
    buffer: Buffer,
}

impl MatrixField {
    /// `blocks` null matrices a site.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, blocks: usize) -> Result<Self, FieldError> {
        let sites = 2 * domain.geometry().half_bordered as usize * domain.lanes().count();
        let buffer = domain.device().buffer(sites * blocks * LINK_REALS * 8)?;
        Ok(Self { domain: Arc::clone(domain), blocks, buffer })
    }

    /// Links from the host's.
    ///
    /// # Errors
    /// No room, or the device is lost.
    pub fn from_host(domain: &Arc<Domain>, links: &HostLinks) -> Result<Self, FieldError> {
        let mut field = Self::new(domain, 4)?;
        field.set_host(links)?;
        Ok(field)
    }

    /// The box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// For kernels.
    pub fn pointer(&self) -> Pointer {
        self.buffer.pointer()
    }

    /// All matrices null.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_zero(&mut self) -> Result<(), FieldError> {
        Ok(self.buffer.zero()?)
    }

    /// Replaces the content, borders too.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        Ok(self.buffer.copy_from(&other.buffer)?)
    }

    fn transpose(&self, natural: &Buffer, to_natural: bool) -> Result<(), FieldError> {
        let g = self.domain.geometry();
        let half_bytes = self.buffer.bytes() / 2;
        for parity in [EVEN, ODD] {
            let args = TransposeArgs {
                g,
                field: self.buffer.at(parity * half_bytes),
                natural: natural.pointer(),
                parity: parity as i32,
                slice: 0,
                slices: 1,
                blocks: self.blocks as i32,
                reals: LINK_REALS as i32,
                bordered: 1,
                to_natural: i32::from(to_natural),
                pad: 0,
            };
            self.domain.launch("transpose", Precision::Double, &args, self.domain.half())?;
        }
        Ok(())
    }

    /// Links as files hold them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn to_host(&self) -> Result<HostLinks, FieldError> {
        let natural = self.natural()?;
        let mut reals = vec![0.0; natural.bytes() / 8];
        natural.read(&mut reals)?;
        Ok(HostLinks { local: self.domain.partition().local(), reals })
    }

    /// The matrices on the device in the order of files, without borders.
    ///
    /// # Errors
    /// No room.
    pub(crate) fn natural(&self) -> Result<Buffer, FieldError> {
        let reals = volume(self.domain.partition().local()) * self.blocks * LINK_REALS;
        let natural = self.domain.device().buffer(reals * 8)?;
        self.transpose(&natural, true)?;
        Ok(natural)
    }

    /// Takes links as files hold them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_host(&mut self, links: &HostLinks) -> Result<(), FieldError> {
        let natural = self.domain.device().buffer_of(&links.reals)?;
        self.transpose(&natural, false)?;
        self.fill_borders()
    }

    /// Links by the Haar measure.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_random(&mut self, address: RandomAddress) -> Result<(), FieldError> {
        let args = random_args(&self.domain, self.pointer(), address);
        self.domain.launch("random_links", Precision::Double, &args, 2 * self.domain.half())?;
        self.fill_borders()
    }

    /// Projects links back to SU(3) if asked; returns how far from it they were (greatest element of
    /// `U U^dag - 1`, or of the third row's defect).
    ///
    /// # Errors
    /// The device is lost.
    pub fn unitarity(&mut self, project: bool) -> Result<f64, FieldError> {
        let args = LinkArgs {
            g: self.domain.geometry(),
            links: self.pointer(),
            scale: f64::from(u8::from(project)),
            ..Default::default()
        };
        let drift = self.domain.sum("unitarity", Precision::Double, &args, 2 * self.domain.half())?.max;
        if project {
            self.fill_borders()?;
        }
        Ok(drift)
    }

    /// The greatest |U - V| of an element.
    ///
    /// # Errors
    /// The device is lost.
    pub fn distance(&self, other: &Self) -> Result<f64, FieldError> {
        let args = LinkArgs {
            g: self.domain.geometry(),
            links: self.pointer(),
            force: other.pointer(),
            ..Default::default()
        };
        Ok(self.domain.sum("link_distance", Precision::Double, &args, 2 * self.domain.half())?.max)
    }

    /// Copies the neighbours' layers into the borders: x, then y, z, t, so that corners come along.
    ///
    /// # Errors
    /// The device is lost.
    pub fn fill_borders(&mut self) -> Result<(), FieldError> {
        let border = self.domain.geometry().border;
        self.fill_borders_to(border.into_iter().fold(0, i32::max) as usize)
    }

    /// Fills the innermost `layers` of the borders, corners to the same depth; the rest is left alone.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// More layers than there are, where directions are cut.
    pub fn fill_borders_to(&mut self, layers: usize) -> Result<(), FieldError> {
        borders::fill(&self.domain, &self.buffer, self.blocks, layers)
    }
}

/// Arguments of a random kernel.
pub(super) fn random_args(domain: &Domain, out: Pointer, address: RandomAddress) -> RandomArgs {
    let block = address.block();
    RandomArgs {
        g: domain.geometry(),
        out,
        key: address.key(),
        counter_low: block as u32 as i32,
        counter_high: (block >> 32) as u32 as i32,
        parity: 0,
        slice: 0,
        slices: 1,
        pad: 0,
        scale: 1.0,
    }
}
