//! Improved staggered quarks whose `M x = b` is solved on all sites, in double with links of 18 reals.

use super::{Smearing, Staggered, StaggeredLinks};
use crate::device::Precision;
use crate::field::{Domain, EVEN, FieldError, Kind, MatrixField, ODD, Spinor};
use crate::measure::{Fields, MeasureError, Quark, fields};
use crate::operator::Operator;
use crate::solver::{BlockCg, Params};
use std::sync::Arc;

/// A staggered quark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredParams {
    /// How its links are made.
    pub smearing: Smearing,
    /// m of `M = 2 m + D`.
    pub mass: f64,
    /// Correction to the Naik term; 0 with asqtad.
    pub naik_epsilon: f64,
    /// Phase of a hop that crosses the boundary, a direction, in units of pi.
    pub boundary: [f64; 4],
}

/// Colour vectors that are solved at once.
const TOGETHER: usize = 4;

/// Improved staggered quarks: M = 2 m + D.
///
/// `x = M^dag y` with `(4 m^2 - D^2) y = b` solved on each parity by itself. So `|b - M x|` is the residual of these
/// solves, for any mass; a Schur complement, with its division by 2 m, would give up as many digits as m is small.
pub struct StaggeredQuark {
    operator: Staggered,
    mass: f64,
    solver: BlockCg,
    wanted: Params,
}

impl StaggeredQuark {
    /// The quark on `links`, which are smeared here. `wanted`: of `|b - M x| / |b|`, and of iterations on either parity.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// Where the lattice is cut, borders of links are thinner than two layers, or a lane's box than
    /// [`REACH`](crate::family::REACH); asqtad with a correction to its Naik term.
    pub fn new(links: &MatrixField, params: StaggeredParams, wanted: Params) -> Result<Self, MeasureError> {
        let domain = links.domain();
        let mut smeared = StaggeredLinks::new(domain, params.smearing, false)?;
        smeared.update(links)?;
        let mut fat = MatrixField::new(domain, 4)?;
        smeared.fat(params.naik_epsilon, &mut fat)?;
        let mut operator = Staggered::new(domain, Precision::Double, 18, TOGETHER, params.boundary)?;
        operator.update(&fat, smeared.long(), smeared.naik(params.naik_epsilon))?;
        let solver = BlockCg::new(domain, Kind::Colour, Precision::Double, 1e-3);
        Ok(Self { operator, mass: params.mass, solver, wanted })
    }
}

impl Quark for StaggeredQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.operator.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn together(&self) -> usize {
        TOGETHER
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<(), MeasureError> {
        let count = b[EVEN].len();
        assert!(count <= TOGETHER, "{count} right-hand sides at once");
        let mass = 2.0 * self.mass;
        let mut y = fields(&Arc::clone(self.domain()), Kind::Colour, count)?;
        for parity in [EVEN, ODD] {
            let mut normal = Normal { operator: &mut self.operator, parity };
            self.solver.solve(&mut normal, None, &mut y[parity], &b[parity], mass * mass, self.wanted)?;
        }
        for parity in [EVEN, ODD] {
            for (n, x) in x[parity].iter_mut().enumerate() {
                self.operator.hop(x, &y[1 - parity][n], parity, -1.0, Some((mass, &y[parity][n])))?;
            }
        }
        Ok(())
    }
}

/// D from `parity` to the other sites, and its adjoint.
struct Normal<'a> {
    operator: &'a mut Staggered,
    parity: usize,
}

impl Operator for Normal<'_> {
    fn domain(&self) -> &Arc<Domain> {
        self.operator.domain()
    }

    fn precision(&self) -> Precision {
        Precision::Double
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        let (to, sign) = if dagger { (self.parity, -1.0) } else { (1 - self.parity, 1.0) };
        self.operator.hop(out, x, to, sign, None)
    }

    fn apply_adjoint_plus(
        &mut self,
        out: &mut Spinor,
        x: &Spinor,
        shift: f64,
        y: &Spinor,
    ) -> Result<(), FieldError> {
        self.operator.hop(out, x, self.parity, -1.0, (shift != 0.0).then_some((shift, y)))
    }
}
