//! What a method says of itself: its row in the register, and its own settings.

use super::LinearSolver;
use super::mixes::Mix;
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::device::Precision;
use crate::field::{Domain, FieldError};
use crate::lattice::{Extents, Partition, TimeBoundary};
use std::fmt::Debug;
use std::sync::Arc;

/// The lattice and its partition, if they are known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Boxes {
    pub lattice: Option<Extents>,
    /// How it ends in time.
    pub time: TimeBoundary,
    pub partition: Option<Partition>,
}

/// What a method is.
pub(crate) struct Row {
    /// Its word in an input, and the name of the table of its keys.
    pub word: &'static str,
    /// What that table is for.
    pub about: &'static str,
    /// The keys; none: there is no such table. "auto" tries a method with keys where the input has their table.
    pub keys: &'static [&'static Section],
    /// The combinations of its precisions; the first is the default.
    pub mixes: &'static [Mix],
    /// Those that "auto" tries.
    pub tries: &'static [Mix],
    /// Whether it solves `M x = b`, of Dirac spinors. Others solve `M^dag M x = b` of any fields, with shifts too.
    pub is_linear: bool,
    /// The most systems that it solves at once.
    pub together: usize,
    /// Whether it has an operator that also acts on all sites, in the precision of its preconditioner.
    pub whole: bool,
    /// Whether it makes something in each trajectory before its first solve.
    pub has_set_up: bool,
    /// The default factor by which the residual falls between updates.
    pub delta: fn([Precision; 3]) -> f64,
}

/// A method's solver of `M x = b`.
pub(super) type Made = Result<Box<dyn LinearSolver>, FieldError>;

/// The settings of a method alone.
pub(super) trait Own: Copy + Debug + PartialEq {
    /// What the method is.
    const ROW: Row;
    /// Without its table.
    const DEFAULT: Self;

    /// Reads its table; keys that are not there are those of `self`.
    #[must_use]
    fn read(self, _: &mut Table) -> Self {
        self
    }

    /// Checks what `own`, their table, says against the boxes of the lattice; and the defaults, if the `solver` names the method.
    fn check(self, _solver: Option<&Table>, _own: &Table, _: Boxes) {}

    /// The solver of `M x = b` with these precisions and this factor between updates, for so many systems at once if it can;
    /// `None` if it solves the normal equations directly.
    fn linear(self, _: [Precision; 3], _delta: f64, _: &Arc<Domain>, _together: usize) -> Option<Made> {
        None
    }
}

/// The default factor by which the residual falls between updates.
pub fn usual_delta(in_half: bool) -> f64 {
    if in_half { 0.1 } else { 1e-3 }
}
