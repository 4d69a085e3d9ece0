//! One element of su(3) a link, `P = sum_a p_a T_a` with `tr T_a T_b = delta_ab / 2`: momenta, forces.

use super::matrix::random_args;
use super::{Domain, EVEN, FieldError, HostLinks, LINK_REALS, MatrixField, ODD, RandomAddress};
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

    fn transpose(&self, natural: &Buffer, to_natural: bool) -> Result<(), FieldError> {
        for parity in [EVEN, ODD] {
            let args = TransposeArgs {
                g: self.domain.geometry(),
                field: self.buffer.at(parity * self.buffer.bytes() / 2),
                natural: natural.pointer(),
                parity: parity as i32,
                slice: 0,
                slices: 1,
                blocks: 4,
                reals: REALS as i32,
                bordered: 0,
                to_natural: i32::from(to_natural),
                pad: 0,
            };
            self.domain.launch("transpose", Precision::Double, &args, self.domain.half())?;
        }
        Ok(())
    }

    /// The elements in the order of files: `[t][z][y][x][mu][a]` of the box.
    ///
    /// # Errors
    /// The device is lost.
    pub fn to_host(&self) -> Result<Vec<f64>, FieldError> {
        let mut reals = vec![0.0; volume(self.domain.partition().local()) * 4 * REALS];
        let natural = self.domain.device().buffer(reals.len() * 8)?;
        self.transpose(&natural, true)?;
        natural.read(&mut reals)?;
        Ok(reals)
    }

    /// Takes elements in the order of files.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_host(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        let natural = self.domain.device().buffer_of(reals)?;
        self.transpose(&natural, false)?;
        Ok(self.domain.device().synchronize()?)
    }

    /// The matrices P, laid out as links are.
    ///
    /// # Errors
    /// The device is lost.
    pub fn to_matrices(&self) -> Result<HostLinks, FieldError> {
        let reals = self.to_host()?.chunks_exact(REALS).flat_map(matrix).collect();
        Ok(HostLinks { local: self.domain.partition().local(), reals })
    }

    /// Takes matrices P, hermitian and traceless: `p_a = 2 tr T_a P`. Rounding apart, the inverse of
    /// [`AlgebraField::to_matrices`].
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_matrices(&mut self, matrices: &HostLinks) -> Result<(), FieldError> {
        let components: Vec<f64> = matrices.reals.chunks_exact(LINK_REALS).flat_map(components).collect();
        self.set_host(&components)
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

/// `P = sum_a p_a T_a`, T_a half the Gell-Mann matrices.
fn matrix(p: &[f64]) -> [f64; LINK_REALS] {
    let d = p[7] / 3f64.sqrt();
    let [re, im] = [[p[0], p[3], p[5]], [-p[1], -p[4], -p[6]]].map(|part| part.map(|x| 0.5 * x));
    [
        0.5 * (d + p[2]),
        0.0,
        re[0],
        im[0],
        re[1],
        im[1], //
        re[0],
        -im[0],
        0.5 * (d - p[2]),
        0.0,
        re[2],
        im[2], //
        re[1],
        -im[1],
        re[2],
        -im[2],
        -d,
        0.0,
    ]
}

/// `p_a = 2 tr T_a P`
fn components(m: &[f64]) -> [f64; REALS] {
    let diagonal = m[0] + m[8] - 2.0 * m[16];
    [
        m[2] + m[6],
        m[7] - m[3],
        m[0] - m[8],
        m[4] + m[12],
        m[13] - m[5],
        m[10] + m[14],
        m[15] - m[11],
        diagonal / 3f64.sqrt(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_come_back() {
        let p = [0.3, -1.2, 0.7, 2.1, -0.4, 0.9, 1.1, -0.6];
        let m = matrix(&p);
        let norm: f64 = m.iter().map(|x| x * x).sum();
        let expected: f64 = p.iter().map(|x| 0.5 * x * x).sum();
        assert!((norm - expected).abs() < 1e-14, "tr P^2 = {norm}, expected {expected}");
        for (found, expected) in components(&m).iter().zip(p) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
    }
}
