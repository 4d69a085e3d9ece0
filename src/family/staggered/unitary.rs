//! The unitary factor of matrices, `W = V (V^dag V)^(-1/2)`, and the gradient through it (`kernels/unitary.cuh`).

use crate::device::kernels::{UnitaryFactor, UnitaryGradient};
use crate::field::{FieldError, MatrixField};

/// A singular value of V below this is small. The gradient through W goes as `1 / (s_i + s_j)`: where the sum is
/// less than twice this, twice this stands for it. Its square is MILC's cutoff for eigenvalues of `V^dag V` in the
/// force (`HISQ_FORCE_FILTER`), 5e-5.
pub const LEAST_SINGULAR_VALUE: f64 = 7.071_067_811_865_475e-3;

/// `factor = W`, with borders, of four matrices V a site; if `special`, `W det(W)^(-1/3)` in SU(3) with the root
/// that is nearest to 1. Returns how many V of the lattice have a singular value below [`LEAST_SINGULAR_VALUE`].
///
/// # Errors
/// The device is lost.
pub fn unitary_factor(
    matrices: &MatrixField,
    special: bool,
    factor: &mut MatrixField,
) -> Result<u64, FieldError> {
    let domain = matrices.domain();
    domain.check([factor.domain()]);
    let kernel = UnitaryFactor {
        g: domain.geometry(),
        links: matrices.links(),
        unitary: factor.links_mut(),
        special: i32::from(special),
        least: LEAST_SINGULAR_VALUE,
    };
    let sums = domain.sum(&kernel, 2 * domain.half())?.sums;
    factor.fill_borders()?;
    Ok(sums[0].value() as u64)
}

/// From the gradient on the factors that [`unitary_factor`] made of `matrices` to that on the matrices, in place
/// and without borders: `dS = sum Re tr(G^dag dW)` becomes `sum Re tr(G^dag dV)`. Exact but for the V that
/// [`unitary_factor`] counts.
///
/// # Errors
/// The device is lost.
pub fn unitary_gradient(
    matrices: &MatrixField,
    special: bool,
    factor: &MatrixField,
    gradient: &mut MatrixField,
) -> Result<(), FieldError> {
    let domain = matrices.domain();
    domain.check([factor.domain(), gradient.domain()]);
    let kernel = UnitaryGradient {
        g: domain.geometry(),
        links: matrices.links(),
        unitary: factor.links(),
        gradient: gradient.links_mut(),
        special: i32::from(special),
        least: LEAST_SINGULAR_VALUE,
    };
    domain.launch(&kernel, 2 * domain.half())
}
