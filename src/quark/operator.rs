//! The requirements on an even-odd preconditioned operator W from which a [`Quark`](super::Quark) is built.

use crate::device::Precision;
use crate::field::{Domain, FieldError, MatrixField, Spinor};
use crate::operator::{CloverTerm, Operator};
use crate::solver::{Past, Settings};
use std::sync::Arc;

/// The format of an operator's links and spinors, and the number of fields it has memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The precision of links and spinors.
    pub precision: Precision,
    /// Reals per link.
    pub link_reals: usize,
    /// Maximum number of right-hand sides at once.
    pub fields: usize,
    /// Whether it is also to act [on all sites](crate::operator::WholeOperator), if it can; it then has memory for as many fields as a
    /// multigrid takes at once.
    pub whole: bool,
}

/// An operator W on odd sites, obtained from an operator M on all sites by elimination of the even ones.
pub trait QuarkOperator: Operator + Sized {
    /// Its parameters.
    type Params: OperatorParams<Operator = Self>;
    /// Flavours that it acts on: the determinants of A count for each.
    const FLAVOURS: u8 = 1;

    /// Allocates the operator.
    fn make(domain: &Arc<Domain>, storage: Storage, params: &Self::Params) -> Result<Self, FieldError>;

    /// The clover term, if the operator needs one.
    fn clover_term(_: &Arc<Domain>, _: &Self::Params) -> Result<Option<CloverTerm>, FieldError> {
        Ok(None)
    }

    /// Adopts new links, with a clover term that is up to date with them.
    fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError>;

    /// Whether two quarks have the same determinants of A, so that these cancel in a ratio.
    ///
    /// # Panics
    /// The quarks do not form a ratio.
    fn determinants_cancel(_: &Self::Params, _: &Self::Params) -> bool {
        true
    }

    /// Eliminates the even sites of `M x = b`; `rhs` is then that of the returned system on odd sites. `spare` is overwritten.
    fn eliminate(
        &mut self,
        rhs: &mut Spinor,
        b: [&Spinor; 2],
        spare: &mut Spinor,
    ) -> Result<Eliminated, FieldError>;

    /// Computes the solution on even and odd sites from y. `spare` is overwritten.
    fn reconstruct(
        &mut self,
        x: [&mut Spinor; 2],
        y: &Spinor,
        b_even: &Spinor,
        spare: &mut Spinor,
    ) -> Result<(), FieldError>;
}

/// The system on odd sites that is left of `M x = b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eliminated {
    /// `W y = rhs`
    Linear,
    /// `W^dag W y = rhs`
    Normal,
}

/// Parameters of an operator; their type selects it.
pub trait OperatorParams: Clone + std::fmt::Debug + PartialEq {
    /// The operator.
    type Operator: QuarkOperator<Params = Self>;
}

/// Parameters of a quark.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkParams<P> {
    /// The operator.
    pub operator: P,
    /// The solver's settings.
    pub solver: Settings,
    /// Reals per link in the operator: 18, 12 or 8; with 8, the operator in double precision has 12. For staggered
    /// quarks, reals per long link: 18, 14 or 9.
    pub link_reals: usize,
    /// The past solutions of which the next one is guessed.
    pub guess: Past,
}

impl<P> QuarkParams<P> {
    /// Conjugate gradients in double precision with links of 18 reals, starting from zero.
    pub fn in_double(operator: P, max_iterations: usize) -> Self {
        Self {
            operator,
            solver: Settings::cg(Precision::Double, max_iterations),
            link_reals: 18,
            guess: Past::NONE,
        }
    }
}
