//! One element of su(3) per link, `P = sum_a p_a T_a` with `tr T_a T_b = delta_ab / 2`: momenta and forces.

use super::matrix::order;
use super::{Domain, EVEN, FieldError, HostLinks, LINK_REALS, MatrixField, ODD, RandomAddress};
use crate::device::kernels::{Algebra, Drift, FromNatural, In, Kick, Kinetic, Out, RandomMomenta, ToNatural};
use crate::device::{Buffer, Precision, Sums};
use crate::lattice::volume;
use crate::math::ExactSum;
use std::sync::Arc;

/// Reals per element.
const REALS: usize = 8;

/// Eight doubles per link.
pub struct AlgebraField {
    domain: Arc<Domain>,
    buffer: Buffer,
}

impl AlgebraField {
    /// Zero on every link.
    pub fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        let bytes = 2 * domain.half() * domain.lanes().count() * 4 * REALS * 8;
        Ok(Self { domain: Arc::clone(domain), buffer: domain.device().buffer(bytes)? })
    }

    /// The argument of kernels that read it.
    pub(crate) fn algebra(&self) -> In<'_, Algebra> {
        self.buffer.input()
    }

    /// The argument of kernels that write it.
    pub(crate) fn algebra_mut(&mut self) -> Out<'_, Algebra> {
        self.buffer.output()
    }

    /// This rank's box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Sets all links to zero.
    pub fn set_zero(&mut self) -> Result<(), FieldError> {
        Ok(self.buffer.zero()?)
    }

    /// Replaces the content.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        self.domain.check([&other.domain]);
        Ok(self.buffer.copy_from(&other.buffer)?)
    }

    /// Sets all components to unit Gaussians.
    pub fn set_random(&mut self, address: RandomAddress) -> Result<(), FieldError> {
        let (g, sites) = (self.domain.geometry(), 2 * self.domain.half());
        let kernel = RandomMomenta { g, stream: address.stream(), out: self.buffer.output() };
        self.domain.launch(&kernel, sites)
    }

    /// `sum_a p_a^2 / 2` over all links.
    pub fn kinetic(&self) -> Result<ExactSum, FieldError> {
        Ok(self.squares()?.sums[0])
    }

    /// `|F|^2` summed over links and the greatest |F|, with `|F|^2 = sum_a F_a^2`.
    pub fn norms(&self) -> Result<(f64, f64), FieldError> {
        let squares = self.squares()?;
        Ok((2.0 * squares.sums[0].value(), squares.max))
    }

    fn squares(&self) -> Result<Sums, FieldError> {
        let kernel = Kinetic { g: self.domain.geometry(), momenta: self.algebra() };
        self.domain.sum(&kernel, 2 * self.domain.half())
    }

    /// `self <- shift self + scale force`. Returns |F|^2 summed over links and the greatest |F|, with
    /// `|F|^2 = sum_a F_a^2`.
    pub fn combine(&mut self, shift: f64, scale: f64, force: &Self) -> Result<(f64, f64), FieldError> {
        self.domain.check([&force.domain]);
        let (g, sites) = (self.domain.geometry(), 2 * self.domain.half());
        let kernel = Kick { g, momenta: self.buffer.output(), force: force.algebra(), scale, shift };
        let sums = self.domain.sum(&kernel, sites)?;
        Ok((sums.sums[0].value(), sums.max))
    }

    /// The number of reals in the box.
    fn reals(&self) -> usize {
        volume(self.domain.partition().local()) * 4 * REALS
    }

    /// The elements in file order: `[t][z][y][x][mu][a]` of the box.
    pub fn to_host(&self) -> Result<Vec<f64>, FieldError> {
        let mut reals = vec![0.0; self.reals()];
        let mut natural = self.domain.device().buffer(reals.len() * 8)?;
        for parity in [EVEN, ODD] {
            let order = order(self.domain.layout(Precision::Double), parity, 4, REALS);
            let field = self.buffer.input_at(parity * self.buffer.bytes() / 2);
            let kernel = ToNatural { order, field, natural: natural.output() };
            self.domain.launch_as(Precision::Double, &kernel, self.domain.half())?;
        }
        natural.read(&mut reals)?;
        Ok(reals)
    }

    /// Sets the elements from reals in file order.
    ///
    /// # Panics
    /// The number of reals is not that of the box.
    pub fn set_host(&mut self, reals: &[f64]) -> Result<(), FieldError> {
        assert_eq!(reals.len(), self.reals(), "the reals of the box");
        let natural = self.domain.device().buffer_of(reals)?;
        let half_bytes = self.buffer.bytes() / 2;
        for parity in [EVEN, ODD] {
            let order = order(self.domain.layout(Precision::Double), parity, 4, REALS);
            let field = self.buffer.output_at(parity * half_bytes);
            let kernel = FromNatural { order, field, natural: natural.input() };
            self.domain.launch_as(Precision::Double, &kernel, self.domain.half())?;
        }
        Ok(self.domain.device().synchronize()?)
    }

    /// The matrices P, in the layout of links.
    pub fn to_matrices(&self) -> Result<HostLinks, FieldError> {
        let reals = self.to_host()?.chunks_exact(REALS).flat_map(matrix).collect();
        Ok(HostLinks { local: self.domain.partition().local(), reals })
    }

    /// Sets the elements from matrices P, hermitian and traceless: `p_a = 2 tr T_a P`. Up to rounding, the inverse of
    /// [`AlgebraField::to_matrices`].
    pub fn set_matrices(&mut self, matrices: &HostLinks) -> Result<(), FieldError> {
        let components: Vec<f64> = matrices.reals.chunks_exact(LINK_REALS).flat_map(components).collect();
        self.set_host(&components)
    }

    /// `U <- exp(i eps P) U`
    pub fn drift(&self, links: &mut MatrixField, eps: f64) -> Result<(), FieldError> {
        self.domain.check([links.domain()]);
        let (g, momenta) = (self.domain.geometry(), self.algebra());
        let kernel = Drift { g, links: links.links_mut(), momenta, scale: eps };
        self.domain.launch(&kernel, 2 * self.domain.half())?;
        links.fill_borders()
    }
}

/// `P = sum_a p_a T_a`, where T_a is half a Gell-Mann matrix.
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
