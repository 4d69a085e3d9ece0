//! What an even-odd preconditioned operator W must provide, so that a [`Quark`](super::Quark) can be made of it.

use crate::device::Precision;
use crate::field::{Domain, FieldError, MatrixField, Spinor};
use crate::operator::{CloverTerm, Operator};
use crate::solver::Settings;
use std::sync::Arc;

/// How an operator keeps its links, and for how many fields it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Of links and spinors.
    pub precision: Precision,
    /// Reals of a link.
    pub link_reals: usize,
    /// Right-hand sides at once.
    pub fields: usize,
}

/// An operator W on odd sites, which comes from an operator M on all sites by elimination of the even ones.
pub trait QuarkOperator: Operator + Sized {
    /// Its parameters.
    type Params: OperatorParams<Operator = Self>;

    /// Memory for the operator.
    ///
    /// # Errors
    /// No memory.
    fn make(domain: &Arc<Domain>, storage: Storage, params: &Self::Params) -> Result<Self, FieldError>;

    /// The clover term that it needs; `None` without one.
    ///
    /// # Errors
    /// No memory.
    fn clover_term(_: &Arc<Domain>, _: &Self::Params) -> Result<Option<CloverTerm>, FieldError> {
        Ok(None)
    }

    /// Takes over new links and the clover term that was updated on them.
    ///
    /// # Errors
    /// The device is lost.
    fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError>;

    /// Whether the determinants of A are the same for two quarks, and cancel in a ratio of them.
    ///
    /// # Panics
    /// They are no quarks of one ratio.
    fn determinants_cancel(_: &Self::Params, _: &Self::Params) -> bool {
        true
    }

    /// Eliminates the even sites of `M x = b`: what is left on odd sites is `W^dag W y = rhs`. `spare` is overwritten.
    ///
    /// # Errors
    /// The device is lost.
    fn eliminate(&mut self, rhs: &mut Spinor, b: [&Spinor; 2], spare: &mut Spinor) -> Result<(), FieldError>;

    /// Makes the solution on even and odd sites of y. `spare` is overwritten.
    ///
    /// # Errors
    /// The device is lost.
    fn reconstruct(
        &mut self,
        x: [&mut Spinor; 2],
        y: &Spinor,
        b_even: &Spinor,
        spare: &mut Spinor,
    ) -> Result<(), FieldError>;
}

/// Parameters of an operator, which they choose.
pub trait OperatorParams: Clone + std::fmt::Debug + PartialEq {
    /// The operator.
    type Operator: QuarkOperator<Params = Self>;
}

/// What a quark needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkParams<P> {
    /// The operator.
    pub operator: P,
    /// How its systems are solved.
    pub solver: Settings,
    /// Reals of a link in the operator: 18, 12 or 8; with 8, the operator in double has 12. Of a long link of staggered
    /// quarks: 18, 14 or 9.
    pub link_reals: usize,
    /// The number of past solutions from which the next is guessed.
    pub guess: usize,
}

impl<P> QuarkParams<P> {
    /// Conjugate gradients in double with links of 18 reals, from zero.
    pub fn in_double(operator: P, max_iterations: usize) -> Self {
        Self { operator, solver: Settings::cg(Precision::Double, max_iterations), link_reals: 18, guess: 0 }
    }
}
