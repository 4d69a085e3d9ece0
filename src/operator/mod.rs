//! Gauge loops, smearing, and the common parts of Dirac operators.
//!
//! - `loops`: plaquettes, rectangles, parallelograms; their action and force
//! - `clover`: the clover term, its inverse and log det, the force through its leaves
//! - `stout`: stout smearing of links, and the force through it
//! - `zeuthen`: the force of the Zeuthen flow
//! - `hopping`: the Wilson hopping term, with its own copy of the links
//! - `slices`: between Dirac spinors and fields of several slices

// No number wraps in silence, however large the lattice.
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod clover;
mod hopping;
mod loops;
mod slices;
mod stout;
#[cfg(test)]
mod tests;
mod zeuthen;

pub(crate) use clover::clover_apply;
pub use clover::{
    CloverBlocks, CloverForm, CloverParams, CloverTerm, Insertion, field_energy, slice_field_energy,
};
pub(crate) use hopping::{Ending, Made, Way, table, team, teams};
pub use hopping::{HopPhases, WilsonLinks};
pub use loops::{GaugeLoops, LoopTraces, WallWeights, slice_energy};
pub use slices::SliceVector;
pub use stout::{Stout, smeared};
pub use zeuthen::Zeuthen;

use crate::device::Stamp;
use crate::field::{Dagger, Domain, FieldError, Kind, Spinor};
use crate::lattice::Extents;
use std::sync::Arc;

/// Why an operator could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The clover term has pivots that are not positive, so its log det is not an action.
    #[error(
        "the clover term is not positive definite: {pivots} pivots of its factorisation are not positive"
    )]
    Clover {
        /// Their number.
        pivots: f64,
    },
}

/// A linear operator M: on spinors on odd sites, or from colour vectors on even sites to odd ones.
pub trait Operator {
    /// This rank's box.
    fn domain(&self) -> &Arc<Domain>;
    /// The precision of its arithmetic.
    fn precision(&self) -> crate::device::Precision;
    /// The kind of fields that it acts on.
    fn kind(&self) -> Kind {
        Kind::Dirac
    }
    /// `out = M x`, or `M^dag x`.
    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError>;
    /// `middle = M x` and `out = M^dag middle`.
    fn apply_both(&mut self, out: &mut Spinor, middle: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        self.apply(middle, x, Dagger::No)?;
        self.apply(out, middle, Dagger::Yes)
    }
    /// `middle = M x` and `out = M^dag middle + shift x`.
    fn apply_normal(
        &mut self,
        out: &mut Spinor,
        middle: &mut Spinor,
        x: &Spinor,
        shift: f64,
    ) -> Result<(), FieldError> {
        self.apply_both(out, middle, x)?;
        if shift == 0.0 { Ok(()) } else { out.axpy_each(&vec![shift; x.fields()], x) }
    }
    /// This operator restricted to Schwarz blocks, if it supports them. The first call with new blocks makes tables,
    /// which are kept.
    fn blocked(&mut self, _: &Blocks) -> Result<Option<&mut dyn SchwarzOperator>, FieldError> {
        Ok(None)
    }
    /// The operator on all sites of which this is the Schur complement, if it was made with it; `blocks` as in
    /// [`Operator::blocked`].
    fn whole(&mut self, _: &Blocks) -> Result<Option<&mut dyn WholeOperator>, FieldError> {
        Ok(None)
    }
}

/// The division of a rank's box into Schwarz blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Extents of a block.
    pub extents: Extents,
    /// Number of this rank's blocks in each direction.
    pub counts: Extents,
    /// Whether the extents are fixed in the input. Otherwise they are those of this rank's box.
    pub fixed: bool,
}

impl Blocks {
    /// Blocks of the given extents, or one block for the whole box.
    ///
    /// # Panics
    /// The blocks do not tile the box.
    pub fn new(local: Extents, block: Option<Extents>) -> Self {
        let extents = block.unwrap_or(local);
        assert!((0..4).all(|mu| local[mu].is_multiple_of(extents[mu])), "{extents:?} do not fill {local:?}");
        Self { extents, counts: std::array::from_fn(|mu| local[mu] / extents[mu]), fixed: block.is_some() }
    }

    /// Number of this rank's blocks.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }
}

/// An operator that can act in each Schwarz block separately, with Dirichlet boundaries and no communication.
pub trait SchwarzOperator: Operator {
    /// As [`Operator::apply`], without hops that leave a block; the blocks are those of the last [`Operator::blocked`].
    fn apply_in_blocks(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError>;
}

/// What M has beside `A - D/2`: `i gamma_5` times these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Twists {
    /// On odd sites: a regulator.
    pub odd: f64,
    /// On all sites: the twisted mass of a doublet.
    pub all: f64,
}

impl Twists {
    /// None.
    pub const NONE: Self = Self { odd: 0.0, all: 0.0 };
}

/// The operator `M = A - D/2` on all sites, in the parts of which a coarse operator is made, with its [`Twists`]. Its Schur complement
/// is `B^-1` times that of M, where B is 1 or A on odd sites. Blocks are those of the last [`Operator::whole`].
pub trait WholeOperator: Operator {
    /// `out = A x - D x / 2` on sites of `parity`, without hops that leave a block.
    fn apply_within(&mut self, out: &mut Spinor, x: [&Spinor; 2], parity: usize) -> Result<(), FieldError>;
    /// `out = - D x / 2` on sites of `parity`, only by hops forward in direction `mu` that leave a block.
    fn apply_across(
        &mut self,
        out: &mut Spinor,
        x: &Spinor,
        parity: usize,
        mu: usize,
    ) -> Result<(), FieldError>;
    /// Even sites from odd ones, where M is to be zero on even ones.
    fn complete(&mut self, even: &mut Spinor, odd: &Spinor) -> Result<(), FieldError>;
    /// `out = B x`
    fn weigh(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError>;
    /// What M has beside `A - D/2`.
    fn twists(&self) -> Twists;
    /// The links that it has adopted.
    ///
    /// # Panics
    /// There are none yet.
    fn adopted(&self) -> Stamp;
    /// All that it depends on besides links and the regulator, in words.
    fn name(&self) -> String;
}
