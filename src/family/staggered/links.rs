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

use super::staples::{self, Paths, Staples};
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
    /// Matrices per site, of 144 bytes each, that [`StaggeredLinks`] keeps: 14 (asqtad) or 18 (HISQ); with memory for
    /// the force, 32 or 40.
    pub fn matrices(self, force: bool) -> usize {
        let asqtad = 8 + 6 + if force { 6 + 12 } else { 0 };
        match self {
            Self::Asqtad { .. } => asqtad,
            Self::Hisq { .. } => asqtad + if force { 8 } else { 4 },
        }
    }

    fn paths(self) -> Paths {
        match self {
            Self::Asqtad { u0 } => Paths::asqtad(u0),
            Self::Hisq { .. } => Paths::hisq(),
        }
    }
}

/// V and W of HISQ.
struct Projection {
    special: bool,
    /// `None` without the force; V is then in the memory of X.
    fat7: Option<MatrixField>,
    unitary: MatrixField,
}

/// Gradients to which a fermion adds: four matrices per site, without borders, `dS = sum Re tr(G^dag dM)`.
pub struct Gradients<'a> {
    /// With respect to X.
    pub fat: &'a mut MatrixField,
    /// With respect to N, without its coefficient.
    pub long: &'a mut MatrixField,
    /// With respect to links that enter directly: W in eps/8 W (U for asqtad).
    pub one: &'a mut MatrixField,
}

struct Force {
    fat: MatrixField,
    long: MatrixField,
    one: MatrixField,
}

/// X and N on the links of the last [`StaggeredLinks::update`].
pub struct StaggeredLinks {
    smearing: Smearing,
    staples: Staples,
    projection: Option<Projection>,
    fat: MatrixField,
    long: MatrixField,
    force: Option<Force>,
    small: u64,
}

impl StaggeredLinks {
    /// Memory for the links, and optionally for the force through them.
    ///
    /// # Panics
    /// The domain's borders are thinner than two layers.
    pub fn new(domain: &Arc<Domain>, smearing: Smearing, force: bool) -> Result<Self, FieldError> {
        domain.check_border(2);
        let links = || MatrixField::new(domain, 4);
        let projection = match smearing {
            Smearing::Asqtad { .. } => None,
            Smearing::Hisq { special } => {
                Some(Projection { special, fat7: force.then(links).transpose()?, unitary: links()? })
            }
        };
        let gradients = || Ok::<_, FieldError>(Force { fat: links()?, long: links()?, one: links()? });
        Ok(Self {
            smearing,
            staples: Staples::new(domain, force)?,
            projection,
            fat: links()?,
            long: links()?,
            force: force.then(gradients).transpose()?,
            small: 0,
        })
    }

    /// Smears `links`, whose borders must be filled. Returns the number of links of the lattice whose V has a singular
    /// value below [`super::LEAST_SINGULAR_VALUE`]; 0 for asqtad.
    pub fn update(&mut self, links: &MatrixField) -> Result<u64, FieldError> {
        self.small = 0;
        let mut thin = links;
        if let Some(Projection { special, fat7, unitary }) = &mut self.projection {
            let fat7 = fat7.as_mut().unwrap_or(&mut self.fat);
            self.staples.smear(links, Paths::fat7(), fat7)?;
            self.small = unitary_factor(fat7, *special, unitary)?;
            thin = unitary;
        }
        self.staples.smear(thin, self.smearing.paths(), &mut self.fat)?;
        staples::long_links(thin, &mut self.long)?;
        Ok(self.small)
    }

    /// `out = X`, without borders, for a quark whose Naik term has the correction eps.
    ///
    /// # Panics
    /// asqtad with nonzero eps.
    pub fn fat(&self, eps: f64, out: &mut MatrixField) -> Result<(), FieldError> {
        match &self.projection {
            Some(projection) => staples::blend(&self.fat, eps / 8.0, &projection.unitary, out),
            None => {
                assert!(eps == 0.0, "asqtad has no correction of the Naik term");
                out.copy_from(&self.fat)
            }
        }
    }

    /// N without its coefficient (unitary), without borders.
    pub fn long(&self) -> &MatrixField {
        &self.long
    }

    /// The coefficient of N: -(1 + eps)/24, for asqtad divided by `u0^2`.
    pub fn naik(&self, eps: f64) -> f64 {
        let naik = -(1.0 + eps) / 24.0;
        match self.smearing {
            Smearing::Asqtad { u0 } => naik / u0.powi(2),
            Smearing::Hisq { .. } => naik,
        }
    }

    /// Sets the gradients to zero.
    ///
    /// # Panics
    /// The links were made without the force.
    pub fn begin(&mut self) -> Result<(), FieldError> {
        let Gradients { fat, long, one } = self.gradients();
        fat.set_zero()?;
        long.set_zero()?;
        one.set_zero()
    }

    /// The gradients, to which fermions add between [`StaggeredLinks::begin`] and [`StaggeredLinks::add_force`].
    ///
    /// # Panics
    /// The links were made without the force.
    pub fn gradients(&mut self) -> Gradients<'_> {
        let Some(Force { fat, long, one }) = &mut self.force else { panic!("links made without the force") };
        Gradients { fat, long, one }
    }

    /// `force_a(x, mu) += d S(e^{i t T_a} U_mu(x)) / dt` from the gradients, which are overwritten. `links` must be
    /// those of the last [`StaggeredLinks::update`]. Returns the number of links of the lattice where the derivative of
    /// the projection is regulated, as counted by `update`.
    ///
    /// # Panics
    /// The links were made without the force.
    pub fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<u64, FieldError> {
        let Some(Force { fat, long, one }) = &mut self.force else { panic!("links made without the force") };
        let thin = self.projection.as_ref().map_or(links, |projection| &projection.unitary);
        staples::add_long_gradient(thin, long, one)?;
        self.staples.add_gradient(thin, self.smearing.paths(), fat, one)?;
        if let Some(Projection { special, fat7: Some(fat7), unitary }) = &self.projection {
            unitary_gradient(fat7, *special, unitary, one)?;
            fat.set_zero()?;
            self.staples.add_gradient(links, Paths::fat7(), one, fat)?;
            staples::add_force(links, fat, force)?;
        } else {
            staples::add_force(links, one, force)?;
        }
        Ok(self.small)
    }
}
