//! Wilson(-clover) quarks, for solving `M x = b` on all sites.

use super::doublet::FLAVOURS;
use super::{Doublet, DoubletParams, Wilson, WilsonParams};
use crate::field::{Domain, Kind, MatrixField};
use crate::operator::SliceVector;
use crate::quark::{Fields, FullInverse, Inverse, QuarkError, QuarkParams, fields};
use crate::solver::Info;
use std::sync::Arc;

/// Spinors solved at once.
const TOGETHER: usize = 4;

/// Wilson(-clover) quarks: M with `kappa`, `c_sw` and `boundary`, and `twisted_mass`, without the regulator.
pub type WilsonQuark = FullInverse<Wilson>;

impl WilsonQuark {
    /// The quark on `links`. `residual` is that of the even-odd normal equations `Mhat^dag Mhat x_o = ..`.
    ///
    /// # Errors
    /// The clover term cannot be inverted, or memory runs out.
    pub fn new(
        links: &MatrixField,
        params: &QuarkParams<WilsonParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let operator = WilsonParams { mu: 0.0, ..params.operator };
        Self::on(links, &QuarkParams { operator, ..params.clone() }, TOGETHER, residual)
    }
}

/// A doublet of two masses, with Dirac spinors of each flavour.
pub struct DoubletQuark {
    inverse: FullInverse<Doublet>,
    /// 1 on a flavour's slice.
    flavours: [SliceVector; FLAVOURS],
    rhs: Fields,
    solution: Fields,
}

impl DoubletQuark {
    /// The doublet on `links`. `residual` is that of the even-odd normal equations.
    ///
    /// # Errors
    /// As [`WilsonQuark::new`].
    pub fn new(
        links: &MatrixField,
        params: &QuarkParams<DoubletParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let inverse = FullInverse::on(links, params, TOGETHER / FLAVOURS, residual)?;
        let several = || fields(domain, inverse.kind(), inverse.together());
        let (rhs, solution) = (several()?, several()?);
        let on = |numbers: &[f64; FLAVOURS]| SliceVector::new(domain, [numbers; 2]);
        let flavours = [on(&[1.0, 0.0])?, on(&[0.0, 1.0])?];
        Ok(Self { inverse, flavours, rhs, solution })
    }
}

impl Inverse for DoubletQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.inverse.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Dirac
    }

    fn together(&self) -> usize {
        self.inverse.together()
    }

    fn flavours(&self) -> usize {
        FLAVOURS
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError> {
        assert!(b[0].len().is_multiple_of(FLAVOURS), "a right-hand side of each flavour");
        let Self { inverse, flavours, rhs, solution } = self;
        // Room for a flavour of a right-hand side.
        let [own, _] = solution;
        for (rhs, b) in rhs.iter_mut().zip(b) {
            for (rhs, b) in rhs.iter_mut().zip(b.chunks_exact(FLAVOURS)) {
                flavours[0].spread(rhs, &b[0])?;
                flavours[1].spread(&mut own[0], &b[1])?;
                rhs.axpy(1.0, &own[0])?;
            }
        }
        let info = inverse.solve_some(solution, rhs, b[0].len() / FLAVOURS)?;
        for (x, solution) in x.iter_mut().zip(solution) {
            let flavours = x.iter_mut().zip(flavours.iter().cycle());
            for (n, (x, flavour)) in flavours.enumerate() {
                flavour.sum(x, &solution[n / FLAVOURS])?;
            }
        }
        Ok(info)
    }
}
