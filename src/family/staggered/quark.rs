//! Improved staggered quarks, for solving `M x = b` on all sites.

use super::{Smearing, Staggered, StaggeredLinks};
use crate::device::Precision;
use crate::field::{Domain, EVEN, Kind, LINK_REALS, MatrixField, ODD};
use crate::lattice::Boundary;
use crate::operator::Operator;
use crate::quark::{
    Fields, HopDerivative, Inverse, QuarkError, QuarkParams, apply_derivative, fields, links_in_time,
};
use crate::solver::{BlockCg, Info, Mixed, Params, Settings};
use std::sync::Arc;

/// A staggered quark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredParams {
    /// The smearing of its links.
    pub smearing: Smearing,
    /// m of `M = 2 m + D`.
    pub mass: f64,
    /// Correction to the Naik term; 0 with asqtad.
    pub naik_epsilon: f64,
    /// Factors of hops over the edge of the lattice.
    pub boundary: Boundary,
}

/// Colour vectors solved at once.
const TOGETHER: usize = 4;

/// Improved staggered quarks: M = 2 m + D.
///
/// `x = M^dag y`, where `(4 m^2 - D^2) y = b` is solved on each parity separately. So `|b - M x|` is the residual of
/// these solves for any mass. A Schur complement, which divides by 2 m, would lose digits at small m.
pub struct StaggeredQuark {
    w: Mixed<Staggered>,
    mass: f64,
    solver: BlockCg,
    goal: Params,
    y: Fields,
}

impl StaggeredQuark {
    /// The quark on `links`, which are smeared here. `residual` is that of `|b - M x| / |b|` on each parity. The
    /// systems are always solved by conjugate gradients.
    ///
    /// # Panics
    /// In a cut direction, borders of links are thinner than two layers, or a lane's box is thinner than
    /// [`REACH`](crate::family::REACH); asqtad with a correction to the Naik term.
    pub fn new(
        links: &MatrixField,
        params: &QuarkParams<StaggeredParams>,
        residual: f64,
    ) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let StaggeredParams { smearing, mass, naik_epsilon, boundary } = params.operator;
        let mut smeared = StaggeredLinks::new(domain, smearing)?;
        smeared.update(links)?;
        let mut fat = MatrixField::new(domain, 4)?;
        smeared.fat(naik_epsilon, &mut fat)?;
        let operator = |precision| {
            let mut made = Staggered::new(domain, precision, params.link_reals, TOGETHER, boundary)?;
            made.update(&fat, smeared.long(), smeared.naik(naik_epsilon))?;
            Ok::<_, QuarkError>(made)
        };
        let Settings { precisions: [_, inner, _], delta, max_iterations, .. } = params.solver;
        Ok(Self {
            w: Mixed::new(|precision| precision == inner, operator)?,
            mass,
            solver: BlockCg::new(domain, Kind::Colour, inner, delta, TOGETHER)?,
            goal: Params { residual, max_iterations },
            y: fields(domain, Kind::Colour, TOGETHER)?,
        })
    }
}

impl Inverse for StaggeredQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.w.double.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn together(&self) -> usize {
        TOGETHER
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError> {
        let count = b[EVEN].len();
        assert!(count <= TOGETHER, "{count} right-hand sides at once");
        let Self { w, solver, y, .. } = self;
        let mass = 2.0 * self.mass;
        let mut total = Info::default();
        for parity in [EVEN, ODD] {
            w.all().for_each(|w| w.act_on(parity));
            let y = &mut y[parity][..count];
            for y in &mut *y {
                y.set_zero()?;
            }
            total.add(&solver.solve(&mut w.operators(), mass * mass, y, &b[parity], self.goal)?.total);
        }
        for parity in [EVEN, ODD] {
            for (n, x) in x[parity].iter_mut().enumerate() {
                w.double.hop(x, &y[1 - parity][n], parity, -1.0, Some((mass, &y[parity][n])))?;
            }
        }
        Ok(total)
    }
}

/// `d^n M / d mu^n`: Naik hops, over three sites, have the factor 3^n.
pub struct StaggeredDerivative {
    hops: Staggered,
    order: u32,
}

impl StaggeredDerivative {
    /// That of quarks with this smearing, on `links`.
    ///
    /// # Panics
    /// As [`StaggeredQuark::new`].
    pub fn new(
        links: &MatrixField,
        smearing: Smearing,
        naik_epsilon: f64,
        boundary: Boundary,
        order: u32,
    ) -> Result<Self, QuarkError> {
        let domain = links.domain();
        let mut smeared = StaggeredLinks::new(domain, smearing)?;
        smeared.update(links)?;
        let mut fat = MatrixField::new(domain, 4)?;
        smeared.fat(naik_epsilon, &mut fat)?;
        let naik = smeared.naik(naik_epsilon) * 3f64.powi(order.try_into().expect("a small order"));
        let mut hops = Staggered::new(domain, Precision::Double, LINK_REALS, 1, boundary)?;
        hops.update(&links_in_time(&fat, order)?, &links_in_time(smeared.long(), order)?, naik)?;
        Ok(Self { hops, order })
    }
}

impl HopDerivative for StaggeredDerivative {
    fn apply(&mut self, out: &mut Fields, x: &Fields) -> Result<(), QuarkError> {
        let Self { hops, order } = self;
        apply_derivative(out, x, (*order, 1.0), |out, x, parity| hops.hop(out, x, parity, 1.0, None))
    }
}
