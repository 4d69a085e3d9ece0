//! Point-source pseudoscalar correlators: `C(t) = sum_{x at t} sum_{spins, colours} |M^-1(x, source)|^2`.

use super::MeasureError;
use crate::device::Precision;
use crate::field::{EVEN, MatrixField, ODD, Spinor};
use crate::lattice::{Extents, coordinates, site, volume};
use crate::math::ExactSum;
use crate::operator::{Operator, Wilson, WilsonParams};
use crate::solver::{Cg, Params};
use std::sync::Arc;

/// What a correlator needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorParams {
    /// The quark.
    pub operator: WilsonParams,
    /// Coordinates of the source.
    pub source: Extents,
    /// Relative residual of each solve on the normal equations.
    pub residual: f64,
    /// More iterations are an error.
    pub max_iterations: usize,
}

/// Reals of a site.
const REALS: usize = 24;

/// C(t) for t from 0 to Lt - 1, counted from the source.
///
/// # Errors
/// A solve failed.
pub fn pion(links: &MatrixField, params: &CorrelatorParams) -> Result<Vec<f64>, MeasureError> {
    let domain = links.domain();
    let mut clover = Wilson::clover_term(domain, &params.operator)?;
    if let Some(clover) = &mut clover {
        clover.update(links)?;
    }
    let mut operator = Wilson::new(domain, Precision::Double, 18, params.operator)?;
    operator.update(links, clover.as_ref())?;
    let mut solver = Cg::new(domain, Precision::Double, 1e-3)?;
    let spinor = || Spinor::new(domain, Precision::Double);
    let (mut b, mut x) = ([spinor()?, spinor()?], [spinor()?, spinor()?]);
    let (mut rhs, mut normal) = (spinor()?, spinor()?);

    let partition = *domain.partition();
    let (local, offset) = (partition.local(), partition.offset());
    let mut sums = vec![ExactSum::default(); partition.global[3]];
    let mut reals = vec![0.0; volume(local) * REALS];
    let inside = (0..4).all(|mu| (offset[mu]..offset[mu] + local[mu]).contains(&params.source[mu]));
    for component in 0..12 {
        reals.fill(0.0);
        if inside {
            let at = site(local, std::array::from_fn(|mu| params.source[mu] - offset[mu]));
            reals[at * REALS + 2 * component] = 1.0;
        }
        b[EVEN].read_host(EVEN, &reals)?;
        b[ODD].read_host(ODD, &reals)?;
        // Mhat x_o = rhs, by its normal equations; then x_e = A_ee^-1 (b_e + D_eo x_o / 2).
        operator.prepare(&mut rhs, &b[EVEN], &b[ODD])?;
        operator.apply(&mut normal, &rhs, true)?;
        x[ODD].set_zero()?;
        let wanted = Params { residual: params.residual, max_iterations: params.max_iterations };
        solver.solve(&mut operator, None, &mut x[ODD], &normal, wanted)?;
        let [x_even, x_odd] = &mut x;
        operator.complete(x_even, x_odd, false)?;
        operator.even_inverse(&mut rhs, &b[EVEN])?;
        x_even.axpy(1.0, &rhs)?;
        x_even.write_host(EVEN, &mut reals)?;
        x_odd.write_host(ODD, &mut reals)?;
        for (s, psi) in reals.chunks_exact(REALS).enumerate() {
            let t = offset[3] + coordinates(local, s)[3] + partition.global[3] - params.source[3];
            sums[t % partition.global[3]].push(psi.iter().map(|r| r * r).sum());
        }
    }
    let mut words: Vec<i64> = sums.iter().flat_map(|s| s.words()).collect();
    Arc::clone(domain).comm().sum(&mut words);
    Ok(words
        .chunks_exact(6)
        .map(|w| ExactSum::from_words(w.try_into().expect("six words")).value())
        .collect())
}
