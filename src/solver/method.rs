//! The register of methods: what an input may say of each, and the way from a term's settings to its solver.
//!
//! A method is a file with its own settings ([`Own`]), their keys, its row and its maker; it is registered by a line in
//! `methods!`. Where it has keys, they stand in a table that bears its word.

use super::bicgstab::StabilizedBiCg;
use super::cg::ConjugateGradients;
use super::mixes::{Mix, PLAIN_OR_SHIFTED};
use super::multigrid::GcrMultigrid;
use super::row::{Boxes, Made, Own, Row};
use super::schwarz::GcrDd;
use super::{Cg, LinearSolver, Solver, TwoSolves};
use crate::config::raw::Table;
use crate::config::section::{Count, Inner};
use crate::device::Precision;
use crate::field::{Domain, FieldError, Kind};
use std::fmt::Debug;
use std::sync::Arc;

/// The method of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wanted {
    One(Method),
    /// The fastest in a trial.
    Auto,
}

macro_rules! methods {
    ($($(#[$about:meta])* $name:ident($own:ty),)*) => {
        /// A method with its own settings.
        #[derive(Clone, Copy, PartialEq)]
        pub enum Method {
            $($(#[$about])* $name($own),)*
        }

        /// All, without tables of their own.
        pub(super) const METHODS: &[Method] = &[$(Method::$name(<$own>::DEFAULT)),*];
        const ROWS: &[Row] = &[$(<$own>::ROW),*];
        /// What `method` may be.
        pub(super) const WORDS: &[(&str, Wanted)] =
            &[$((<$own>::ROW.word, Wanted::One(Method::$name(<$own>::DEFAULT))),)* ("auto", Wanted::Auto)];

        impl Method {
            /// What it is.
            pub(crate) fn row(&self) -> &'static Row {
                match self {
                    $(Self::$name(_) => const { &<$own>::ROW },)*
                }
            }

            pub(super) fn read(self, table: &mut Table) -> Self {
                match self {
                    $(Self::$name(own) => Self::$name(own.read(table)),)*
                }
            }

            pub(super) fn check(self, solver: Option<&Table>, own: &Table, boxes: Boxes) {
                match self {
                    $(Self::$name(settings) => settings.check(solver, own, boxes),)*
                }
            }

            fn linear(self, settings: &Settings, domain: &Arc<Domain>, together: usize) -> Option<Made> {
                let Settings { precisions, delta, .. } = *settings;
                match self {
                    $(Self::$name(own) => own.linear(precisions, delta, domain, together),)*
                }
            }
        }

        impl Debug for Method {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$name(own) => own.fmt(f),)*
                }
            }
        }
    };
}

methods! {
    /// Conjugate gradients on the normal equations.
    Cg(ConjugateGradients),
    /// Two solves by BiCGstab.
    BiCgStab(StabilizedBiCg),
    /// Two solves by GCR-DD.
    GcrDd(GcrDd),
    /// Two solves by GCR with aggregation multigrid.
    Multigrid(GcrMultigrid),
}

impl Method {
    /// Conjugate gradients, which have no settings of their own.
    pub const CG: Self = Self::Cg(ConjugateGradients);
    /// BiCGstab, which has none.
    pub const BICGSTAB: Self = Self::BiCgStab(StabilizedBiCg);

    /// Whether both are one method, whatever their settings.
    pub(super) fn is(self, other: Self) -> bool {
        self.row().word == other.row().word
    }

    /// All combinations of its precisions, those for shifts with them.
    pub(super) fn mixes(self) -> &'static [Mix] {
        if self.row().is_linear { self.row().mixes } else { &PLAIN_OR_SHIFTED }
    }

    /// The default factor by which the residual falls between updates.
    pub(crate) fn usual_delta(self, precisions: [Precision; 3]) -> f64 {
        (self.row().delta)(precisions)
    }
}

/// The methods with a table.
const OWN: usize = {
    let (mut count, mut n) = (0, 0);
    while n < ROWS.len() {
        count += !ROWS[n].keys.is_empty() as usize;
        n += 1;
    }
    count
};

/// The tables `[..solver.WORD]`.
pub(super) const TABLES: [Inner; OWN] = {
    let mut tables = [const { Inner { name: "", count: Count::Once, text: "", sections: &[] } }; OWN];
    let (mut place, mut n) = (0, 0);
    while n < ROWS.len() {
        let Row { word, about, keys, .. } = &ROWS[n];
        if !keys.is_empty() {
            tables[place] = Inner { name: word, count: Count::Once, text: about, sections: keys };
            place += 1;
        }
        n += 1;
    }
    tables
};

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

impl Settings {
    /// Conjugate gradients that iterate in `precision`.
    pub fn cg(precision: Precision, max_iterations: usize) -> Self {
        let precisions = [Precision::Double, precision, precision];
        Self { method: Method::CG, precisions, delta: Method::CG.usual_delta(precisions), max_iterations }
    }

    /// How many of `fields` systems the method solves at once: of M for a [linear](Self::is_linear) one, else of `M^dag M`.
    pub(crate) fn together(&self, fields: usize) -> usize {
        fields.min(self.method.row().together)
    }

    /// Whether the method solves `M x = b` without its normal equations.
    pub(crate) fn is_linear(&self) -> bool {
        self.method.row().is_linear
    }

    /// The precision in which the method needs an operator that also acts on all sites.
    pub(crate) fn whole(&self) -> Option<Precision> {
        self.method.row().whole.then_some(self.precisions[2])
    }

    /// The precision in which conjugate gradients solve a single system, also after another method failed; with
    /// precisions for all shifts at once, that of their refinements.
    pub(crate) fn of_one_system(&self) -> Precision {
        self.precisions[2]
    }

    /// The method's solver for fields of one kind. If it solves `M x = b`, it does so for up to `together` systems at once, as far
    /// as the method can.
    ///
    /// # Panics
    /// The method does not serve these fields.
    pub fn solver(
        &self,
        domain: &Arc<Domain>,
        kind: Kind,
        together: usize,
    ) -> Result<MethodSolver, FieldError> {
        let serves = kind == Kind::Dirac || !self.is_linear();
        assert!(serves, "fields of the kind {kind:?} are not solved by {:?}", self.method);
        Ok(match self.linear_solver(domain, together)? {
            None => MethodSolver::Normal(Box::new(Cg::new(domain, kind, self.of_one_system(), self.delta)?)),
            Some(linear) => {
                MethodSolver::Linear(Box::new(TwoSolves::new(domain, linear, self.of_one_system())?))
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
        self.method.linear(self, domain, self.together(together)).transpose()
    }
}

/// A method's solver, which always solves the normal equations.
pub enum MethodSolver {
    /// Those alone.
    Normal(Box<Cg>),
    /// `M x = b` too.
    Linear(Box<TwoSolves>),
}

impl MethodSolver {
    /// The solver of `M^dag M x = b`.
    pub fn normal(&mut self) -> &mut dyn Solver {
        match self {
            Self::Normal(solver) => &mut **solver,
            Self::Linear(solver) => &mut **solver,
        }
    }
}
