//! One element of su(3) a link, `P = sum_a p_a T_a` with `tr T_a T_b = delta_ab / 2`: momenta, forces.

use super::matrix::random_args;
use super::{Domain, EVEN, FieldError, MatrixField, ODD, RandomAddress};
use crate::device::{Buffer, LinkArgs, Pointer, Precision, TransposeArgs};
use crate::lattice::volume;
use crate::math::ExactSum;
use std::sync::Arc;

/// Reals of an element.
const REALS: usize = 8;

/// Eight doubles a link.
pub struct AlgebraField {
    domain: Arc<Domain>,
    buffer: Buffer,
}

impl AlgebraField {
    /// Zero on every link.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        let bytes = 2 * domain.half() * domain.lanes().count() * 4 * REALS * 8;
        Ok(Self { domain: Arc::clone(domain), buffer: domain.device().buffer(bytes)? })
    }

    /// For kernels.
    pub fn pointer(&self) -> Pointer {
        self.buffer.pointer()
    }

    /// The box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Zero on every link.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_zero(&mut self) -> Result<(), FieldError> {
        Ok(self.buffer.zero()?)
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        Ok(self.buffer.copy_from(&other.buffer)?)
    }

    /// Unit Gaussians.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_random(&mut self, address: RandomAddress) -> Result<(), FieldError> {
        let args = random_args(&self.domain, self.pointer(), address);
        self.domain.launch("random_momenta", Precision::Double, &args, 2 * self.domain.half())
    }

    fn args(&self) -> LinkArgs {
        LinkArgs { g: self.domain.geometry(), momenta: self.pointer(), ..Default::default() }
    }

    /// `sum_a p_a^2 / 2` over all links.
    ///
    /// # Errors
    /// The device is lost.
    pub fn kinetic(&self) -> Result<ExactSum, FieldError> {
        Ok(self.domain.sum("kinetic", Precision::Double, &self.args(), 2 * self.domain.half())?.sums[0])
    }

    /// `self <- shift self + scale force`. Returns |F|^2 summed over links and the greatest |F|, with
    /// `|F|^2 = sum_a F_a^2`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn combine(&mut self, shift: f64, scale: f64, force: &Self) -> Result<(f64, f64), FieldError> {
        let args = LinkArgs { force: force.pointer(), shift, scale, ..self.args() };
        let sums = self.domain.sum("kick", Precision::Double, &args, 2 * self.domain.half())?;
        Ok((sums.sums[0].value(), sums.max))
    }

    /// The elements in the order of files: `[t][z][y][x][mu][a]` of the box.
    ///
    /// # Errors
    /// The device is lost.
    pub fn to_host(&self) -> Result<Vec<f64>, FieldError> {
        let mut reals = vec![0.0; volume(self.domain.partition().local()) * 4 * REALS];
        let natural = self.domain.device().buffer(reals.len() * 8)?;
        for parity in [EVEN, ODD] {
            let args = TransposeArgs {
                g: self.domain.geometry(),
                field: self.buffer.at(parity * self.buffer.bytes() / 2),
                natural: natural.pointer(),
                parity: parity as i32,
                blocks: 4,
                reals: REALS as i32,
                bordered: 0,
                to_natural: 1,
                pad: 0,
            };
            self.domain.launch("transpose", Precision::Double, &args, self.domain.half())?;
        }
        natural.read(&mut reals)?;
        Ok(reals)
    }

    /// `U <- exp(i eps P) U`
    ///
    /// # Errors
    /// The device is lost.
    pub fn drift(&self, links: &mut MatrixField, eps: f64) -> Result<(), FieldError> {
        let args = LinkArgs { links: links.pointer(), scale: eps, ..self.args() };
        self.domain.launch("drift", Precision::Double, &args, 2 * self.domain.half())?;
        links.fill_borders()
    }
}
