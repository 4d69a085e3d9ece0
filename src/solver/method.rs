//! The register of methods: how a term of the Hamiltonian names its solver, and how that is made.

use super::{BiCgStab, Cg, Gcr, GcrParams, LinearSolver, Schwarz, Solver, TwoSolves};
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
        /// Steps of minimal residuals of the preconditioner.
        n_mr: usize,
        /// Extents of a Schwarz block; `None`: the rank's box.
        block: Option<Extents>,
    },
}

/// The methods by their words in an input. Their own keys replace the numbers of those that have some.
pub(super) const METHODS: &[(&str, Method)] = &[
    ("cg", Method::Cg),
    ("bicgstab", Method::BiCgStab),
    ("gcr-dd", Method::GcrDd { k_max: 0, n_mr: 0, block: None }),
];

/// How a term's systems are solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// Of updates (double, or single for GCR-DD), of the iteration, of the preconditioner.
    pub precisions: [Precision; 3],
    /// The residual falls by this between updates.
    pub delta: f64,
    /// More are an error.
    pub max_iterations: usize,
}

/// What a method makes for `M x = b`.
type Made = Result<Box<dyn LinearSolver>, FieldError>;
type Maker<'a> = Box<dyn Fn(&Arc<Domain>) -> Made + 'a>;

/// A line of the register.
struct Entry<'a> {
    /// Whether fields of a kind are served.
    serves: fn(Kind) -> bool,
    /// The solver of `M x = b`; `None` where the method solves the normal equations at once.
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

    /// The register.
    fn entry(&self) -> Entry<'_> {
        let Self { precisions: [outer, krylov, inner], delta, .. } = *self;
        match self.method {
            Method::Cg => Entry { serves: |_| true, linear: None },
            Method::BiCgStab => Entry {
                serves: |kind| kind == Kind::Dirac,
                linear: Some(Box::new(move |domain| Ok(Box::new(BiCgStab::new(domain, krylov, delta)?)))),
            },
            Method::GcrDd { k_max, n_mr, block } => Entry {
                serves: |kind| kind == Kind::Dirac,
                linear: Some(Box::new(move |domain| {
                    let schwarz = Schwarz::new(domain, inner, n_mr, block)?;
                    let params = GcrParams { precisions: [outer, krylov], k_max, delta };
                    Ok(Box::new(Gcr::new(domain, params, Box::new(schwarz))?))
                })),
            },
        }
    }

    /// The solver of `M^dag M x = b` for fields of a kind.
    ///
    /// # Errors
    /// No memory.
    ///
    /// # Panics
    /// The method does not serve these fields.
    pub fn solver(&self, domain: &Arc<Domain>, kind: Kind) -> Result<Box<dyn Solver>, FieldError> {
        let Entry { serves, linear } = self.entry();
        assert!(serves(kind), "fields of the kind {kind:?} are not solved by {:?}", self.method);
        Ok(match linear {
            None => Box::new(Cg::new(domain, kind, self.precisions[1], self.delta)?),
            Some(linear) => Box::new(TwoSolves::new(domain, linear(domain)?)?),
        })
    }

    /// The solver of `M x = b` for Dirac spinors; `None` where the method solves the normal equations at once.
    ///
    /// # Errors
    /// No memory.
    pub fn linear_solver(&self, domain: &Arc<Domain>) -> Result<Option<Box<dyn LinearSolver>>, FieldError> {
        self.entry().linear.map(|linear| linear(domain)).transpose()
    }
}

/// By how much the residual falls between updates, where nobody says it.
pub fn usual_delta(in_half: bool) -> f64 {
    if in_half { 0.1 } else { 1e-3 }
}
