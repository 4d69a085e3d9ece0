//! The smearing of staggered quarks' links by staples, and its gradient:
//!
//! ```text
//! X_mu = c1 U_mu + c3 sum_nu S_nu U_mu + c5 sum_nu D_nu U_mu + c7 sum_nu S_nu D_nu U_mu
//!      + cL sum_nu (S_nu S_nu - 2) U_mu,   D_nu = S_rho S_sigma + S_sigma S_rho,
//! ```
//!
//! mu, nu, rho and sigma are all different. `S_nu B` is the sum of the two staples in nu around B
//! (`kernels/staples.cuh`). The paths are those of Orginos, Toussaint, Sugar, hep-lat/9903032, and Lepage,
//! hep-lat/9809157. Links have no phases.
//!
//! The gradient G of a real function S of matrices M is one matrix per link, `dS = sum Re tr(G^dag dM)`.

use crate::device::kernels::{
    BlendLinks, GradientForce, LongGradient, LongLinks, PathWeights, StapleSides, StapleSingle, StapleSum,
    StapleTwice,
};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use std::sync::Arc;

/// The coefficient of each kind of path, for all transverse directions and signs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paths {
    /// `U_mu`.
    pub one: f64,
    /// The 6 paths nu, mu, -nu.
    pub three: f64,
    /// The 24 paths nu, rho, mu, -rho, -nu.
    pub five: f64,
    /// The 48 paths nu, rho, sigma, mu, -sigma, -rho, -nu.
    pub seven: f64,
    /// The 6 paths nu, nu, mu, -nu, -nu.
    pub lepage: f64,
}

impl Paths {
    /// The first smearing of HISQ (Follana et al., hep-lat/0610092).
    pub fn fat7() -> Self {
        Self { one: 1.0 / 8.0, three: 1.0 / 16.0, five: 1.0 / 64.0, seven: 1.0 / 384.0, lepage: 0.0 }
    }

    /// asqtad: a path of n links is divided by `u0^(n-1)`.
    pub fn asqtad(u0: f64) -> Self {
        let fat7 = Self::fat7();
        Self {
            one: 5.0 / 8.0,
            three: fat7.three / u0.powi(2),
            five: fat7.five / u0.powi(4),
            seven: fat7.seven / u0.powi(6),
            lepage: -1.0 / 16.0 / u0.powi(4),
        }
    }

    /// The coefficients in the form that kernels take.
    fn weights(self) -> PathWeights {
        let Self { one, three, five, seven, lepage } = self;
        PathWeights { one, three, five, seven, lepage }
    }

    /// The second smearing of HISQ, without a correction to the Naik term.
    pub fn hisq() -> Self {
        Self { one: 1.0, lepage: -1.0 / 8.0, ..Self::fat7() }
    }
}

/// Staples of one field, for one mu at a time: two fields of three matrices per site, which exist while they are used.
struct Pair {
    single: MatrixField,
    twice: MatrixField,
}

impl Pair {
    fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        Ok(Self { single: MatrixField::new(domain, 3)?, twice: MatrixField::new(domain, 3)? })
    }

    /// Builds the staples of `middle`, including one layer of borders, which is what the kernels need.
    fn build(&mut self, links: &MatrixField, middle: &MatrixField, mu: i32) -> Result<(), FieldError> {
        let Self { single, twice } = self;
        let (domain, links) = (links.domain(), links.links());
        let (g, parts) = (domain.geometry(), 3 * 2 * domain.half());
        let kernel = StapleSingle { g, links, middle: middle.links(), single: single.matrices_mut(3), mu };
        domain.launch(&kernel, parts)?;
        single.fill_borders_to(1)?;
        let kernel = StapleTwice { g, links, single: single.matrices(3), twice: twice.matrices_mut(3), mu };
        domain.launch(&kernel, parts)?;
        twice.fill_borders_to(1)
    }

    /// `out = F middle`, or `out += F middle`, with the staples that were built last.
    fn sum(
        &self,
        (links, middle): (&MatrixField, &MatrixField),
        (mu, paths): (i32, Paths),
        sum: Sum,
        out: &mut MatrixField,
    ) -> Result<(), FieldError> {
        let domain = links.domain();
        let kernel = StapleSum {
            g: domain.geometry(),
            links: links.links(),
            middle: middle.links(),
            single: self.single.matrices(3),
            twice: self.twice.matrices(3),
            out: out.links_mut(),
            mu,
            add: i32::from(sum == Sum::Add),
            weights: paths.weights(),
        };
        domain.launch(&kernel, 2 * domain.half())
    }
}

/// Whether to replace or to add to the output.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    Replace,
    Add,
}

/// `out = X` for unitary links with borders; the borders of `out` do not change.
pub(super) fn smear(links: &MatrixField, paths: Paths, out: &mut MatrixField) -> Result<(), FieldError> {
    let domain = links.domain();
    domain.check([out.domain()]);
    let mut staples = Pair::new(domain)?;
    for mu in 0..4 {
        staples.build(links, links, mu)?;
        staples.sum((links, links), (mu, paths), Sum::Replace, out)?;
    }
    Ok(())
}

/// Adds the gradient with respect to `links` to `out`, without borders, given that with respect to X. Fills the borders
/// of `gradient`.
pub(super) fn add_gradient(
    links: &MatrixField,
    paths: Paths,
    gradient: &mut MatrixField,
    out: &mut MatrixField,
) -> Result<(), FieldError> {
    let domain = links.domain();
    domain.check([gradient.domain(), out.domain()]);
    let [mut own, mut pair] = [Pair::new(domain)?, Pair::new(domain)?];
    gradient.fill_borders_to(1)?;
    for mu in 0..4 {
        pair.build(links, gradient, mu)?;
        pair.sum((links, gradient), (mu, paths), Sum::Add, out)?;
        own.build(links, links, mu)?;
        let kernel = StapleSides {
            g: domain.geometry(),
            links: links.links(),
            middle: links.links(),
            single: own.single.matrices(3),
            twice: own.twice.matrices(3),
            gradient: gradient.links(),
            gradient_single: pair.single.matrices(3),
            gradient_twice: pair.twice.matrices(3),
            out: out.links_mut(),
            mu,
            weights: paths.weights(),
        };
        domain.launch(&kernel, 3 * 2 * domain.half())?;
    }
    Ok(())
}

/// `out = U_mu(x) U_mu(x+mu) U_mu(x+2mu)`, without borders.
pub(super) fn long_links(links: &MatrixField, out: &mut MatrixField) -> Result<(), FieldError> {
    let domain = links.domain();
    domain.check([out.domain()]);
    let kernel = LongLinks { g: domain.geometry(), links: links.links(), out: out.links_mut() };
    domain.launch(&kernel, 2 * domain.half())
}

/// Adds the gradient with respect to `links` to `out`, given that with respect to long links. Fills the borders of
/// `gradient`.
pub(super) fn add_long_gradient(
    links: &MatrixField,
    gradient: &mut MatrixField,
    out: &mut MatrixField,
) -> Result<(), FieldError> {
    gradient.fill_borders_to(2)?;
    let domain = links.domain();
    domain.check([gradient.domain(), out.domain()]);
    let (g, links, gradient) = (domain.geometry(), links.links(), gradient.links());
    domain.launch(&LongGradient { g, links, gradient, out: out.links_mut() }, 2 * domain.half())
}

/// `out = x + scale y`, without borders.
pub(super) fn blend(
    x: &MatrixField,
    scale: f64,
    y: &MatrixField,
    out: &mut MatrixField,
) -> Result<(), FieldError> {
    let domain = x.domain();
    domain.check([y.domain(), out.domain()]);
    let (g, x, y) = (domain.geometry(), x.links(), y.links());
    domain.launch(&BlendLinks { g, x, y, out: out.links_mut(), scale }, 2 * domain.half())
}

/// `force_a += Re tr(i T_a U G^dag)`, where G is the gradient with respect to links U.
pub(super) fn add_force(
    links: &MatrixField,
    gradient: &MatrixField,
    force: &mut AlgebraField,
) -> Result<(), FieldError> {
    let domain = links.domain();
    domain.check([gradient.domain(), force.domain()]);
    let (g, links, gradient) = (domain.geometry(), links.links(), gradient.links());
    domain.launch(&GradientForce { g, links, gradient, force: force.algebra_mut() }, 2 * domain.half())
}
