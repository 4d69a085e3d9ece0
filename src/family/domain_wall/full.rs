//! `D_5(m) = D_w Y + 1 - L` of domain-wall quarks on all sites and slices, and its inverse.

use super::{DomainWall, DomainWallParams, OnSlices};
use crate::device::Precision;
use crate::field::{Dagger, Domain, EVEN, Kind, LINK_REALS, MatrixField, ODD, Spinor};
use crate::math::SliceMatrix;
use crate::operator::WilsonLinks;
use crate::quark::{Fields, FullInverse, FullOperator, Inverse, QuarkError, QuarkParams, fields};
use crate::solver::Info;
use std::sync::Arc;

/// Right-hand sides solved at once.
const TOGETHER: usize = 2;

/// `D_5 = X - D Y / 2`, where `X = (4 - M5) Y + 1 - L` and `Y = omega + sigma L` act on slices.
pub struct WallOnAllSites {
    kind: Kind,
    hops: WilsonLinks,
    /// X and Y, and their transposes.
    x: [OnSlices; 2],
    y: [OnSlices; 2],
}

impl WallOnAllSites {
    /// D_5 on `links`.
    pub fn new(links: &MatrixField, params: &DomainWallParams) -> Result<Self, QuarkError> {
        let (domain, slices) = (links.domain(), params.slices());
        let mut hops = WilsonLinks::new(domain, Precision::Double, LINK_REALS, slices, params.boundary)?;
        hops.update(links)?;
        let both = |matrices: [SliceMatrix; 2]| {
            let transposed = matrices.clone().map(SliceMatrix::transposed);
            let made = |matrices| OnSlices::new(domain, Precision::Double, matrices);
            Ok::<_, QuarkError>([made(&matrices)?, made(&transposed)?])
        };
        let [x, y] = params.factors();
        Ok(Self { kind: params.kind(), hops, x: both(x)?, y: both(y)? })
    }
}

impl FullOperator for WallOnAllSites {
    fn domain(&self) -> &Arc<Domain> {
        self.hops.domain()
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn apply(&mut self, out: &mut Fields, x: &Fields, dagger: Dagger) -> Result<(), QuarkError> {
        let one = || Spinor::of(self.hops.domain(), self.kind, Precision::Double, 1);
        let [mut before, mut hopped] = [one()?, one()?];
        let [own, across] = [&self.x[dagger as usize], &self.y[dagger as usize]];
        for parity in [EVEN, ODD] {
            for (n, out) in out[parity].iter_mut().enumerate() {
                let (here, there) = (&x[parity][n], &x[1 - parity][n]);
                if dagger == Dagger::Yes {
                    // (D Y)^dag = Y^T D^dag
                    self.hops.hop(&mut before, there, parity, dagger)?;
                    across.apply(&mut hopped, &before, 1.0, None)?;
                } else {
                    across.apply(&mut before, there, 1.0, None)?;
                    self.hops.hop(&mut hopped, &before, parity, dagger)?;
                }
                own.apply(out, here, 1.0, Some((-0.5, &hopped)))?;
            }
        }
        Ok(())
    }
}

/// The inverse of D_5: with `D_5 = omega^1/2 K omega^-1/2 Y`, x is `Y^-1 omega^1/2 z`, where `K z = omega^-1/2 b`.
pub struct WallInverse {
    inverse: FullInverse<DomainWall>,
    below: OnSlices,
    to_quark: OnSlices,
    rhs: Fields,
    solution: Fields,
}

impl WallInverse {
    /// That on `links`. `residual` is that of the even-odd system `C C^dag y = b`.
    pub fn new(
        links: &MatrixField,
        quark: &QuarkParams<DomainWallParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let (domain, params) = (links.domain(), &quark.operator);
        let inverse = FullInverse::on(links, quark, TOGETHER, residual)?;
        let on_slices = |matrices: [SliceMatrix; 2]| OnSlices::new(domain, Precision::Double, &matrices);
        let several = || fields(domain, params.kind(), inverse.together());
        let (rhs, solution) = (several()?, several()?);
        Ok(Self {
            below: on_slices(params.diagonal(&params.omega(-0.5)))?,
            to_quark: on_slices(params.to_quark())?,
            inverse,
            rhs,
            solution,
        })
    }
}

impl Inverse for WallInverse {
    fn domain(&self) -> &Arc<Domain> {
        self.inverse.domain()
    }

    fn kind(&self) -> Kind {
        self.inverse.kind()
    }

    fn together(&self) -> usize {
        self.inverse.together()
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError> {
        let Self { inverse, below, to_quark, rhs, solution } = self;
        for parity in [EVEN, ODD] {
            b[parity].iter().zip(&mut rhs[parity]).try_for_each(|(b, rhs)| below.apply(rhs, b, 1.0, None))?;
        }
        let info = inverse.solve_some(solution, rhs, b[EVEN].len())?;
        for parity in [EVEN, ODD] {
            let all = x[parity].iter_mut().zip(&solution[parity]);
            all.into_iter().try_for_each(|(x, z)| to_quark.apply(x, z, 1.0, None))?;
        }
        Ok(info)
    }
}
