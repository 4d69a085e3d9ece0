//! The register of methods: from a term's settings to its solver.

use super::{
    BiCgStab, Cg, Gcr, GcrParams, LinearSolver, Multigrid, MultigridParams, Schwarz, Solver, TwoSolves,
};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind};
use crate::lattice::Extents;
use std::sync::Arc;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Conjugate gradients on the normal equations.
    Cg,
    /// Two solves by BiCGstab.
    BiCgStab,
    /// Two solves by GCR-DD.
    GcrDd {
        /// The greatest size of the Krylov space.
        k_max: usize,
        /// Minimal-residual steps of the preconditioner.
        n_mr: usize,
        /// Extents of a Schwarz block; `None`: the rank's box.
        block: Option<Extents>,
    },
    /// Two solves by GCR with aggregation multigrid.
    Multigrid {
        /// The greatest size of the Krylov space.
        k_max: usize,
        /// The preconditioner.
        params: MultigridParams,
    },
}

/// The methods by their words in an input. Their own keys replace the numbers of those that have some.
pub(super) const METHODS: &[(&str, Method)] = &[
    ("cg", Method::Cg),
    ("bicgstab", Method::BiCgStab),
    ("gcr-dd", Method::GcrDd { k_max: 0, n_mr: 0, block: None }),
    (
        "multigrid",
        Method::Multigrid {
            k_max: 0,
            params: MultigridParams { block: [0; 4], coarse_block: None, vectors: 0, steps: 0 },
        },
    ),
];

/// Settings of a term's solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// The precisions of updates (double), of the iteration, and of the preconditioner.
    pub precisions: [Precision; 3],
    /// The factor by which the residual falls between updates.
    pub delta: f64,
    /// The maximum number of iterations; more are an error.
    pub max_iterations: usize,
}

/// A method's solver of `M x = b`.
type Made = Result<Box<dyn LinearSolver>, FieldError>;
type Maker<'a> = Box<dyn Fn(&Arc<Domain>, usize) -> Made + 'a>;

/// An entry of the register.
struct Entry<'a> {
    /// Whether the method serves fields of a kind.
    serves: fn(Kind) -> bool,
    /// The solver of `M x = b`, for so many systems at once if it can; `None` if the method solves the normal equations directly.
    linear: Option<Maker<'a>>,
}

impl Settings {
    /// Conjugate gradients that iterate in `precision`.
    pub fn cg(precision: Precision, max_iterations: usize) -> Self {
        Self {
            method: Method::Cg,
            precisions: [Precision::Double, precision, precision],
            delta: usual_delta(precision == Precision::Half),
            max_iterations,
        }
    }

    /// The entry of this method.
    fn entry(&self) -> Entry<'_> {
        let Self { precisions: [_, precision, inner], delta, .. } = *self;
        match self.method {
            Method::Cg => Entry { serves: |_| true, linear: None },
            Method::BiCgStab => Entry {
                serves: |kind| kind == Kind::Dirac,
                linear: Some(Box::new(move |domain, _| {
                    Ok(Box::new(BiCgStab::new(domain, precision, delta)?))
                })),
            },
            Method::GcrDd { k_max, n_mr, block } => Entry {
                serves: |kind| kind == Kind::Dirac,
                linear: Some(Box::new(move |domain, _| {
                    let schwarz = Schwarz::new(domain, inner, n_mr, block)?;
                    let params = GcrParams { precision, k_max, delta };
                    Ok(Box::new(Gcr::new(domain, params, Box::new(schwarz), 1)?))
                })),
            },
            Method::Multigrid { k_max, params } => Entry {
                serves: |kind| kind == Kind::Dirac,
                linear: Some(Box::new(move |domain, together| {
                    let together = together.min(Multigrid::TOGETHER);
                    let multigrid = Multigrid::new(domain, inner, params, together)?;
                    let params = GcrParams { precision, k_max, delta };
                    Ok(Box::new(Gcr::new(domain, params, Box::new(multigrid), together)?))
                })),
            },
        }
    }

    /// How many of `fields` systems the method solves at once: of M for a [linear](Self::is_linear) one, else of `M^dag M`.
    pub(crate) fn together(&self, fields: usize) -> usize {
        match self.method {
            Method::Cg => fields,
            Method::Multigrid { .. } => fields.min(Multigrid::TOGETHER),
            _ => 1,
        }
    }

    /// Whether the method solves `M x = b` without its normal equations.
    pub(crate) fn is_linear(&self) -> bool {
        self.entry().linear.is_some()
    }

    /// The precision in which the method needs an operator that also acts on all sites.
    pub(crate) fn whole(&self) -> Option<Precision> {
        matches!(self.method, Method::Multigrid { .. }).then_some(self.precisions[2])
    }

    /// The precision in which conjugate gradients solve a single system, also after another method failed; with
    /// precisions for all shifts at once, that of their refinements.
    pub(crate) fn of_one_system(&self) -> Precision {
        self.precisions[2]
    }

    /// The solver of `M^dag M x = b` for fields of one kind. If it also solves `M x = b`, it does so for up to `together` systems at
    /// once, as far as the method can.
    ///
    /// # Panics
    /// The method does not serve these fields.
    pub fn solver(
        &self,
        domain: &Arc<Domain>,
        kind: Kind,
        together: usize,
    ) -> Result<Box<dyn Solver>, FieldError> {
        let Entry { serves, linear } = self.entry();
        assert!(serves(kind), "fields of the kind {kind:?} are not solved by {:?}", self.method);
        Ok(match linear {
            None => Box::new(Cg::new(domain, kind, self.of_one_system(), self.delta)?),
            Some(linear) => {
                Box::new(TwoSolves::new(domain, linear(domain, together)?, self.of_one_system())?)
            }
        })
    }

    /// The solver of `M x = b` for Dirac spinors, for up to `together` at once as far as the method can; `None` if it solves the
    /// normal equations directly.
    pub fn linear_solver(
        &self,
        domain: &Arc<Domain>,
        together: usize,
    ) -> Result<Option<Box<dyn LinearSolver>>, FieldError> {
        self.entry().linear.map(|linear| linear(domain, together)).transpose()
    }
}

/// The default factor by which the residual falls between updates.
pub fn usual_delta(in_half: bool) -> f64 {
    if in_half { 0.1 } else { 1e-3 }
}
