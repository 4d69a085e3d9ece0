//! Links of improved staggered quarks, asqtad and HISQ, and the force through them.
//!
//! ```text
//! asqtad:  X = asqtad paths of U,          N_mu(x) = U_mu(x) U_mu(x+mu) U_mu(x+2mu)
//! HISQ:    V = fat7(U),  W = V (V^dag V)^(-1/2),
//!          X = HISQ's paths of W + eps/8 W,  N_mu(x) = W_mu(x) W_mu(x+mu) W_mu(x+2mu)
//! ```
//!
//! (Orginos, Toussaint, Sugar, hep-lat/9903032; Follana et al., hep-lat/0610092; MILC, arXiv:1004.0342.) Links have no
//! phases, and N excludes the coefficient of the Naik term. Everything is in double precision and needs borders of two
//! layers.

use super::staples::{self, Paths};
use super::unitary::{unitary_factor, unitary_gradient};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField};
use std::sync::Arc;

/// The smearing of links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smearing {
    /// Once, with tadpole improvement.
    Asqtad {
        /// The tadpole factor.
        u0: f64,
    },
    /// Twice, projected to U(3) in between.
    Hisq {
        /// Whether the projection is to SU(3).
        special: bool,
    },
}

impl Smearing {
    /// The coefficient of the Naik term: -(1 + eps)/24, for asqtad divided by `u0^2`.
    #[must_use]
    pub fn naik(self, eps: f64) -> f64 {
        let naik = -(1.0 + eps) / 24.0;
        match self {
            Self::Asqtad { u0 } => naik / u0.powi(2),
            Self::Hisq { .. } => naik,
        }
    }

    fn paths(self) -> Paths {
        match self {
            Self::Asqtad { u0 } => Paths::asqtad(u0),
            Self::Hisq { .. } => Paths::hisq(),
        }
    }
}

/// W of HISQ.
struct Projection {
    special: bool,
    unitary: MatrixField,
}

/// Gradients to which a fermion adds: four matrices per site, without borders, `dS = sum Re tr(G^dag dM)`.
pub struct Gradients<'a> {
    /// With respect to X.
    pub fat: &'a mut MatrixField,
    /// With respect to N, without its coefficient.
    pub long: &'a mut MatrixField,
    /// With respect to links that enter directly: W in eps/8 W (U for asqtad); for a quark with nonzero eps.
    pub one: Option<&'a mut MatrixField>,
}

struct Force {
    fat: MatrixField,
    long: MatrixField,
    /// From the first quark with nonzero eps on: often the last of all solves.
    one: Option<MatrixField>,
}

/// X and N, without borders.
struct Smeared {
    fat: MatrixField,
    long: MatrixField,
}

/// X and N on the links of the last [`StaggeredLinks::update`]. Workspace exists while it is used.
pub struct StaggeredLinks {
    smearing: Smearing,
    projection: Option<Projection>,
    smeared: Option<Smeared>,
    /// From [`StaggeredLinks::begin`] to [`StaggeredLinks::add_force`].
    force: Option<Force>,
    small: u64,
}

impl StaggeredLinks {
    /// Memory for the links.
    ///
    /// # Panics
    /// The domain's borders are thinner than two layers.
    pub fn new(domain: &Arc<Domain>, smearing: Smearing) -> Result<Self, FieldError> {
        domain.require_periodic("staggered quarks")?;
        domain.check_border(2);
        let projection = match smearing {
            Smearing::Asqtad { .. } => None,
            Smearing::Hisq { special } => Some(Projection { special, unitary: MatrixField::new(domain, 4)? }),
        };
        Ok(Self { smearing, projection, smeared: None, force: None, small: 0 })
    }

    /// Smears `links`, whose borders must be filled. Returns the number of links of the lattice whose V has a singular
    /// value below [`super::LEAST_SINGULAR_VALUE`]; 0 for asqtad.
    pub fn update(&mut self, links: &MatrixField) -> Result<u64, FieldError> {
        let domain = links.domain();
        let Smeared { mut fat, mut long } = match self.smeared.take() {
            Some(smeared) => smeared,
            None => Smeared { fat: MatrixField::new(domain, 4)?, long: MatrixField::new(domain, 4)? },
        };
        self.small = 0;
        let mut thin = links;
        if let Some(Projection { special, unitary }) = &mut self.projection {
            // V, in the place of X.
            staples::smear(links, Paths::fat7(), &mut fat)?;
            self.small = unitary_factor(&fat, *special, unitary)?;
            thin = unitary;
        }
        staples::smear(thin, self.smearing.paths(), &mut fat)?;
        staples::long_links(thin, &mut long)?;
        self.smeared = Some(Smeared { fat, long });
        Ok(self.small)
    }

    /// Gives back the memory of X and N until the next [`StaggeredLinks::update`], once operators have copied them.
    pub fn release(&mut self) {
        self.smeared = None;
    }

    fn smeared(&self) -> &Smeared {
        self.smeared.as_ref().expect("links that were updated, and not released")
    }

    /// `out = X`, without borders, for a quark whose Naik term has the correction eps.
    ///
    /// # Panics
    /// asqtad with nonzero eps; links that were [released](StaggeredLinks::release).
    pub fn fat(&self, eps: f64, out: &mut MatrixField) -> Result<(), FieldError> {
        let fat = &self.smeared().fat;
        match &self.projection {
            Some(projection) => staples::blend(fat, eps / 8.0, &projection.unitary, out),
            None => {
                assert!(eps == 0.0, "asqtad has no correction of the Naik term");
                out.copy_from(fat)
            }
        }
    }

    /// N without its coefficient (unitary), without borders.
    ///
    /// # Panics
    /// The links were [released](StaggeredLinks::release).
    pub fn long(&self) -> &MatrixField {
        &self.smeared().long
    }

    /// The coefficient of N: -(1 + eps)/24, for asqtad divided by `u0^2`.
    pub fn naik(&self, eps: f64) -> f64 {
        self.smearing.naik(eps)
    }

    /// Begins a force, with gradients of zero.
    pub fn begin(&mut self, domain: &Arc<Domain>) -> Result<(), FieldError> {
        let zero = || MatrixField::new(domain, 4);
        self.force = Some(Force { fat: zero()?, long: zero()?, one: None });
        Ok(())
    }

    /// The gradients, to which a quark with this eps adds between [`StaggeredLinks::begin`] and
    /// [`StaggeredLinks::add_force`].
    ///
    /// # Panics
    /// No force was begun.
    pub fn gradients(&mut self, eps: f64) -> Result<Gradients<'_>, FieldError> {
        let Some(Force { fat, long, one }) = &mut self.force else { panic!("a force that was begun") };
        if eps != 0.0 && one.is_none() {
            *one = Some(MatrixField::new(fat.domain(), 4)?);
        }
        Ok(Gradients { fat, long, one: one.as_mut().filter(|_| eps != 0.0) })
    }

    /// `force_a(x, mu) += d S(e^{i t T_a} U_mu(x)) / dt` from the gradients, which end here. `links` must be those of the
    /// last [`StaggeredLinks::update`]. Returns the number of links of the lattice where the derivative of the projection
    /// is regulated, as counted by `update`.
    ///
    /// # Panics
    /// No force was begun.
    pub fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<u64, FieldError> {
        let Force { mut fat, mut long, one } = self.force.take().expect("a force that was begun");
        let mut one = one.map_or_else(|| MatrixField::new(links.domain(), 4), Ok)?;
        let thin = self.projection.as_ref().map_or(links, |projection| &projection.unitary);
        staples::add_long_gradient(thin, &mut long, &mut one)?;
        drop(long);
        staples::add_gradient(thin, self.smearing.paths(), &mut fat, &mut one)?;
        if let Some(Projection { special, unitary }) = &self.projection {
            // V once more, in the place of a gradient: keeping it would take a sixth of a run's memory.
            staples::smear(links, Paths::fat7(), &mut fat)?;
            unitary_gradient(&fat, *special, unitary, &mut one)?;
            fat.set_zero()?;
            staples::add_gradient(links, Paths::fat7(), &mut one, &mut fat)?;
            staples::add_force(links, &fat, force)?;
        } else {
            staples::add_force(links, &one, force)?;
        }
        Ok(self.small)
    }
}
