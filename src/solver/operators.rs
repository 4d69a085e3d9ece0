//! Linear systems: an operator in its precisions, and the matrix made of it.

use super::Info;
use crate::device::Precision;
use crate::field::{Dagger, FieldError, Spinor};
use crate::operator::Operator;

/// An operator in the precisions that a solve may use.
pub struct Operators<'a> {
    /// In double precision, which decides about residuals.
    pub double: &'a mut dyn Operator,
    /// In single precision.
    pub single: Option<&'a mut dyn Operator>,
    /// In half precision.
    pub half: Option<&'a mut dyn Operator>,
}

impl<'a> Operators<'a> {
    /// The operator in double precision, and in a lower one if available.
    pub fn new(double: &'a mut dyn Operator, lower: Option<&'a mut dyn Operator>) -> Self {
        match lower {
            Some(half) if half.precision() == Precision::Half => {
                Self { double, single: None, half: Some(half) }
            }
            single => Self { double, single, half: None },
        }
    }

    /// The operator in `precision`.
    ///
    /// # Panics
    /// There is no operator in that precision.
    pub fn at(&mut self, precision: Precision) -> &mut dyn Operator {
        match precision {
            Precision::Double => self.double,
            Precision::Single => *self.single.as_mut().expect("an operator in single"),
            Precision::Half => *self.half.as_mut().expect("an operator in half"),
        }
    }

    /// The operator in `precision`, if that is lower than double and available.
    pub(super) fn lower(&mut self, precision: Precision) -> Option<&mut dyn Operator> {
        match precision {
            Precision::Double => None,
            Precision::Single => self.single.as_mut().map(|o| &mut **o as &mut dyn Operator),
            Precision::Half => self.half.as_mut().map(|o| &mut **o as &mut dyn Operator),
        }
    }
}

/// An operator in double precision, and in the lower ones that its solver uses.
pub struct Mixed<O> {
    /// In double precision.
    pub double: O,
    lower: Vec<O>,
}

impl<O: Operator> Mixed<O> {
    /// What `make` makes in double precision, and in each lower one that is `wanted`.
    pub fn new<E>(
        wanted: impl Fn(Precision) -> bool,
        mut make: impl FnMut(Precision) -> Result<O, E>,
    ) -> Result<Self, E> {
        let double = make(Precision::Double)?;
        let lower = [Precision::Single, Precision::Half].into_iter().filter(|lower| wanted(*lower));
        Ok(Self { double, lower: lower.map(make).collect::<Result<_, E>>()? })
    }

    /// Each of them.
    pub fn all(&mut self) -> impl Iterator<Item = &mut O> {
        std::iter::once(&mut self.double).chain(&mut self.lower)
    }

    /// As solvers take them.
    pub fn operators(&mut self) -> Operators<'_> {
        let mut operators = Operators::new(&mut self.double, None);
        for lower in &mut self.lower {
            match lower.precision() {
                Precision::Half => operators.half = Some(lower),
                _ => operators.single = Some(lower),
            }
        }
        operators
    }
}

/// A matrix made of an operator M.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Matrix {
    /// `M^dag M + shift`
    Normal {
        /// Not negative.
        shift: f64,
    },
    /// `M`, or `M^dag`
    Linear(Dagger),
}

/// The matrix of a linear system.
pub struct System<'a, 'b> {
    /// M in its precisions.
    pub operators: &'a mut Operators<'b>,
    /// The matrix made of M.
    pub matrix: Matrix,
}

impl System<'_, '_> {
    /// Whether the matrix is `M^dag`.
    pub(super) fn dagger(&self) -> Dagger {
        match self.matrix {
            Matrix::Linear(dagger) => dagger,
            Matrix::Normal { .. } => Dagger::No,
        }
    }

    /// `out = A x` in `precision`, with statistics. For the normal equations `middle` becomes M x.
    ///
    /// # Panics
    /// There is no `middle` for the normal equations.
    pub(super) fn apply(
        &mut self,
        precision: Precision,
        out: &mut Spinor,
        middle: Option<&mut Spinor>,
        x: &Spinor,
        info: &mut Info,
    ) -> Result<(), FieldError> {
        let dagger = self.dagger();
        let operator = self.operators.at(precision);
        let Matrix::Normal { shift } = self.matrix else { return info.apply(operator, out, x, dagger) };
        let middle = middle.expect("workspace for the normal equations");
        info.apply_normal(operator, out, middle, x, shift)
    }
}
