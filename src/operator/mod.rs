//! What acts on fields: gauge loops, smearing, and what Dirac operators have in common.
//!
//! - `loops`: plaquettes, rectangles, parallelograms; their action and force
//! - `clover`: the clover term, its inverse and log det, the force through its leaves
//! - `stout`: stout smearing of links, and the force through it
//! - `hopping`: the Wilson hopping term on links of its own

mod clover;
mod hopping;
mod loops;
mod stout;
#[cfg(test)]
mod tests;

pub(crate) use clover::clover_apply;
pub use clover::{CloverBlocks, CloverTerm, field_energy};
pub(crate) use hopping::{Ending, Way, regions, table};
pub use hopping::{HopPhases, WilsonLinks};
pub use loops::{GaugeLoops, LoopTraces};
pub use stout::{Stout, smeared};

use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::lattice::Extents;
use std::sync::Arc;

/// Why an operator could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The clover term has pivots that are not positive, so its log det is no action.
    #[error(
        "the clover term is not positive definite: {pivots} pivots of its factorisation are not positive"
    )]
    Clover {
        /// How many.
        pivots: f64,
    },
}

/// A linear operator M: on spinors of odd sites, or from colour vectors of even sites to those of odd ones.
pub trait Operator {
    /// The box.
    fn domain(&self) -> &Arc<Domain>;
    /// The precision in which it works.
    fn precision(&self) -> crate::device::Precision;
    /// What it acts on.
    fn kind(&self) -> Kind {
        Kind::Dirac
    }
    /// `out = M x`, or `M^dag x`.
    ///
    /// # Errors
    /// The device is lost.
    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError>;
    /// `out = M^dag x + shift y`
    ///
    /// # Errors
    /// The device is lost.
    fn apply_adjoint_plus(
        &mut self,
        out: &mut Spinor,
        x: &Spinor,
        shift: f64,
        y: &Spinor,
    ) -> Result<(), FieldError> {
        self.apply(out, x, true)?;
        if shift == 0.0 { Ok(()) } else { out.axpy_each(&vec![shift; y.fields()], y) }
    }
    /// Its side that acts in these Schwarz blocks, if it has one. Tables of the blocks are made at the first call with
    /// them, and kept.
    ///
    /// # Errors
    /// No memory.
    fn blocked(&mut self, _: &Blocks) -> Result<Option<&mut dyn SchwarzOperator>, FieldError> {
        Ok(None)
    }
}

/// How a rank's box is divided into Schwarz blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Of a block.
    pub extents: Extents,
    /// Blocks of this rank in each direction.
    pub counts: Extents,
    /// Whether the extents are given, and not those of this rank's box, which depend on the cut.
    pub fixed: bool,
}

impl Blocks {
    /// Blocks of the given extents, or the whole box as one.
    ///
    /// # Panics
    /// They do not fill the box.
    pub fn new(local: Extents, block: Option<Extents>) -> Self {
        let extents = block.unwrap_or(local);
        assert!((0..4).all(|mu| local[mu].is_multiple_of(extents[mu])), "{extents:?} do not fill {local:?}");
        Self { extents, counts: std::array::from_fn(|mu| local[mu] / extents[mu]), fixed: block.is_some() }
    }

    /// Blocks of this rank.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }
}

/// An operator that also acts in each Schwarz block alone, with Dirichlet boundaries and no communication.
pub trait SchwarzOperator: Operator {
    /// As [`Operator::apply`], without the hops that leave one of the blocks of the last [`Operator::blocked`].
    ///
    /// # Errors
    /// The device is lost.
    fn apply_in_blocks(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError>;
}
