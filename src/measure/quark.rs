//! Quarks whose `M x = b` is solved on all sites, in double with links of 18 reals.

use super::MeasureError;
use crate::device::Precision;
use crate::field::{Domain, EVEN, FieldError, Kind, MatrixField, ODD, Spinor};
use crate::operator::{CloverTerm, Operator, Smearing, Staggered, StaggeredLinks, Wilson, WilsonParams};
use crate::solver::{BlockCg, Cg, Params};
use std::sync::Arc;

/// Fields on all sites: `[parity][number]`, as many on even sites as on odd ones.
pub type Fields = [Vec<Spinor>; 2];

/// `count` fields of a kind, zero everywhere.
///
/// # Errors
/// No room.
pub fn fields(domain: &Arc<Domain>, kind: Kind, count: usize) -> Result<Fields, FieldError> {
    let several = || (0..count).map(|_| Spinor::of(domain, kind, Precision::Double, 1)).collect();
    let [even, odd]: [Result<_, FieldError>; 2] = [several(), several()];
    Ok([even?, odd?])
}

/// A quark on the links of one configuration.
pub trait Quark {
    /// The box.
    fn domain(&self) -> &Arc<Domain>;
    /// What its fields hold on a site.
    fn kind(&self) -> Kind;
    /// The most right-hand sides that are solved at once.
    fn together(&self) -> usize;
    /// Solves `M x_n = b_n`, on even and odd sites. What `x` held is lost.
    ///
    /// # Errors
    /// No convergence.
    ///
    /// # Panics
    /// More right-hand sides than are solved at once.
    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<(), MeasureError>;
    /// Of a quark with a fifth dimension, from the one right-hand side `b` that was solved last: x and y of which `Re y^dag x`
    /// is the density of J5q, the pseudoscalar at the midpoint, with the source's.
    ///
    /// # Errors
    /// No convergence.
    fn midpoint(&mut self, _b: &Fields) -> Result<Option<[Fields; 2]>, MeasureError> {
        Ok(None)
    }
}

/// Wilson(-clover) quarks: M of `kappa`, `c_sw` and `boundary`, without the twisted mass.
pub struct WilsonQuark {
    operator: Wilson,
    /// The operator reads from it.
    _clover: Option<CloverTerm>,
    solver: Cg,
    wanted: Params,
    rhs: Spinor,
    normal: Spinor,
}

impl WilsonQuark {
    /// The quark on `links`. `wanted`: of the normal equations `Mhat^dag Mhat x_o = ..` of the even-odd form.
    ///
    /// # Errors
    /// No room, or a clover term that cannot be inverted.
    pub fn new(links: &MatrixField, params: WilsonParams, wanted: Params) -> Result<Self, MeasureError> {
        let domain = links.domain();
        let params = WilsonParams { mu: 0.0, ..params };
        let mut clover = Wilson::clover_term(domain, &params)?;
        if let Some(clover) = &mut clover {
            clover.update(links)?;
        }
        let mut operator = Wilson::new(domain, Precision::Double, 18, params)?;
        operator.update(links, clover.as_ref())?;
        let spinor = || Spinor::new(domain, Precision::Double);
        let solver = Cg::new(domain, Kind::Dirac, Precision::Double, 1e-3)?;
        Ok(Self { operator, _clover: clover, solver, wanted, rhs: spinor()?, normal: spinor()? })
    }
}

impl Quark for WilsonQuark {
    fn domain(&self) -> &Arc<Domain> {
        self.operator.domain()
    }

    fn kind(&self) -> Kind {
        Kind::Dirac
    }

    fn together(&self) -> usize {
        1
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<(), MeasureError> {
        let ([x_even, x_odd], [b_even, b_odd]) = (x, b);
        for n in 0..b_even.len() {
            // Mhat x_o = rhs, by its normal equations; then x_e = A_ee^-1 (b_e + D_eo x_o / 2).
            self.operator.prepare(&mut self.rhs, &b_even[n], &b_odd[n])?;
            self.operator.apply(&mut self.normal, &self.rhs, true)?;
            x_odd[n].set_zero()?;
            self.solver.solve(&mut self.operator, None, &mut x_odd[n], &self.normal, self.wanted)?;
            self.operator.complete(&mut x_even[n], &x_odd[n], false)?;
            self.operator.even_inverse(&mut self.rhs, &b_even[n])?;
            x_even[n].axpy(1.0, &self.rhs)?;
        }
        Ok(())
    }
}

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
    /// [`REACH`](crate::operator::REACH); asqtad with a correction to its Naik term.
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
