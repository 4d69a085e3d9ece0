//! The unitary factor of matrices, `W = V (V^dag V)^(-1/2)`, and its gradient (`kernels/unitary.cuh`).

use crate::device::kernels::{UnitaryFactor, UnitaryGradient};
use crate::field::{FieldError, MatrixField};

/// Singular values of V below this are small. The gradient through W contains `1 / (s_i + s_j)`; a sum below twice this
/// value is replaced by twice this value. Its square is MILC's cutoff for eigenvalues of `V^dag V` in the force
/// (`HISQ_FORCE_FILTER`), 5e-5.
pub const LEAST_SINGULAR_VALUE: f64 = 7.071_067_811_865_475e-3;

/// `factor = W`, with borders, for four matrices V per site. If `special`, `W det(W)^(-1/3)` in SU(3) with the root
/// nearest to 1. Returns the number of V on the lattice with a singular value below [`LEAST_SINGULAR_VALUE`].
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
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of links below 2^53"
    )]
    let count = sums[0].value() as u64;
    Ok(count)
}

/// Transforms the gradient with respect to the factors from [`unitary_factor`] into that with respect to `matrices`, in
/// place and without borders: `dS = sum Re tr(G^dag dW)` becomes `sum Re tr(G^dag dV)`. Exact except for the V that
/// [`unitary_factor`] counts.
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
