//! Smearing of staggered quarks' links by staples, and the gradient through it:
//!
//! ```text
//! X_mu = c1 U_mu + c3 sum_nu S_nu U_mu + c5 sum_nu D_nu U_mu + c7 sum_nu S_nu D_nu U_mu
//!      + cL sum_nu (S_nu S_nu - 2) U_mu,   D_nu = S_rho S_sigma + S_sigma S_rho,
//! ```
//!
//! mu, nu, rho and sigma all different, `S_nu B` the two staples in nu around B (`kernels/staples.cuh`). The paths are
//! those of Orginos, Toussaint, Sugar, hep-lat/9903032, and Lepage, hep-lat/9809157; links are without phases.
//!
//! A gradient G of a real function S of matrices M is one matrix a link, `dS = sum Re tr(G^dag dM)`.

use crate::device::{Precision, StapleArgs};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use std::sync::Arc;

/// What each kind of path beside mu is multiplied by, for all transverse directions and signs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paths {
    /// `U_mu`.
    pub one: f64,
    /// The 6 of nu, mu, -nu.
    pub three: f64,
    /// The 24 of nu, rho, mu, -rho, -nu.
    pub five: f64,
    /// The 48 of nu, rho, sigma, mu, -sigma, -rho, -nu.
    pub seven: f64,
    /// The 6 of nu, nu, mu, -nu, -nu.
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

    /// The second smearing of HISQ, without a correction of the Naik term.
    pub fn hisq() -> Self {
        Self { one: 1.0, lepage: -1.0 / 8.0, ..Self::fat7() }
    }
}

/// Staples of one field, for one mu at a time: three matrices a site each.
struct Pair {
    single: MatrixField,
    twice: MatrixField,
}

impl Pair {
    fn new(domain: &Arc<Domain>) -> Result<Self, FieldError> {
        Ok(Self { single: MatrixField::new(domain, 3)?, twice: MatrixField::new(domain, 3)? })
    }

    /// Staples of `middle`, with a layer of borders, which is all that the kernels reach.
    fn build(
        &mut self,
        links: &MatrixField,
        middle: &MatrixField,
        mu: i32,
    ) -> Result<StapleArgs, FieldError> {
        let args = StapleArgs {
            links: links.pointer(),
            middle: middle.pointer(),
            single: self.single.pointer(),
            twice: self.twice.pointer(),
            mu,
            ..arguments(links)
        };
        launch("staple_single", links, &args)?;
        self.single.fill_borders_to(1)?;
        launch("staple_twice", links, &args)?;
        self.twice.fill_borders_to(1)?;
        Ok(args)
    }
}

/// Room to smear links: 6 matrices a site, 12 with the gradient.
pub(super) struct Staples {
    links: Pair,
    gradient: Option<Pair>,
}

impl Staples {
    pub(super) fn new(domain: &Arc<Domain>, gradient: bool) -> Result<Self, FieldError> {
        let gradient = gradient.then(|| Pair::new(domain)).transpose()?;
        Ok(Self { links: Pair::new(domain)?, gradient })
    }

    /// `out = X` of unitary links with borders; those of `out` are left alone.
    pub(super) fn smear(
        &mut self,
        links: &MatrixField,
        paths: Paths,
        out: &mut MatrixField,
    ) -> Result<(), FieldError> {
        for mu in 0..4 {
            let staples = self.links.build(links, links, mu)?;
            launch("staple_sum", links, &StapleArgs { out: out.pointer(), ..with(paths, staples) })?;
        }
        Ok(())
    }

    /// From the gradient on X, whose borders are filled here, to that on `links`: adds to `out`, without borders.
    pub(super) fn add_gradient(
        &mut self,
        links: &MatrixField,
        paths: Paths,
        gradient: &mut MatrixField,
        out: &mut MatrixField,
    ) -> Result<(), FieldError> {
        let Some(pair) = &mut self.gradient else { panic!("made without room for the gradient") };
        gradient.fill_borders_to(1)?;
        for mu in 0..4 {
            let middle = with(paths, pair.build(links, gradient, mu)?);
            launch("staple_sum", links, &StapleArgs { out: out.pointer(), add: 1, ..middle })?;
            let sides = StapleArgs {
                gradient: gradient.pointer(),
                gradient_single: pair.single.pointer(),
                gradient_twice: pair.twice.pointer(),
                out: out.pointer(),
                ..with(paths, self.links.build(links, links, mu)?)
            };
            launch("staple_sides", links, &sides)?;
        }
        Ok(())
    }
}

fn arguments(field: &MatrixField) -> StapleArgs {
    StapleArgs { g: field.domain().geometry(), ..Default::default() }
}

fn with(paths: Paths, args: StapleArgs) -> StapleArgs {
    let Paths { one, three, five, seven, lepage } = paths;
    StapleArgs { one, three, five, seven, lepage, ..args }
}

fn launch(kernel: &str, field: &MatrixField, args: &StapleArgs) -> Result<(), FieldError> {
    let domain = field.domain();
    domain.launch(kernel, Precision::Double, args, 2 * domain.half())
}

/// `out = U_mu(x) U_mu(x+mu) U_mu(x+2mu)`, without borders.
pub(super) fn long_links(links: &MatrixField, out: &mut MatrixField) -> Result<(), FieldError> {
    let args = StapleArgs { links: links.pointer(), out: out.pointer(), ..arguments(links) };
    launch("long_links", links, &args)
}

/// From the gradient on long links, whose borders are filled here, to that on `links`: adds to `out`.
pub(super) fn add_long_gradient(
    links: &MatrixField,
    gradient: &mut MatrixField,
    out: &mut MatrixField,
) -> Result<(), FieldError> {
    gradient.fill_borders_to(2)?;
    let (gradient, out) = (gradient.pointer(), out.pointer());
    launch("long_gradient", links, &StapleArgs { links: links.pointer(), gradient, out, ..arguments(links) })
}

/// `out = x + scale y`, without borders.
pub(super) fn blend(
    x: &MatrixField,
    scale: f64,
    y: &MatrixField,
    out: &mut MatrixField,
) -> Result<(), FieldError> {
    let args = StapleArgs {
        links: y.pointer(),
        middle: x.pointer(),
        out: out.pointer(),
        one: scale,
        ..arguments(x)
    };
    launch("blend_links", x, &args)
}

/// `force_a += Re tr(i T_a U G^dag)`, the gradient G on links U.
pub(super) fn add_force(
    links: &MatrixField,
    gradient: &MatrixField,
    force: &mut AlgebraField,
) -> Result<(), FieldError> {
    let args = StapleArgs {
        links: links.pointer(),
        gradient: gradient.pointer(),
        out: force.pointer(),
        ..arguments(links)
    };
    launch("gradient_force", links, &args)
}
