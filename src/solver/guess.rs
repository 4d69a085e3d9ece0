//! A first guess: the combination of other solutions with the least error in the norm of `M^dag M` (Brower, Ivanenko,
//! Levi, Orginos, hep-lat/9509012). The others are those of the past, or of similar systems on the same links.
//!
//! Guesses from the past violate reversibility unless solves are tight. They are forgotten at the start of a
//! trajectory, so that a resumed run gives the same bits.

use crate::device::Precision;
use crate::field::{Dagger, Domain, FieldError, Kind, Spinor};
use crate::operator::Operator;
use num_complex::Complex64;
use std::sync::Arc;

/// The past solutions of which a guess is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Their number; 0: every solve starts from zero.
    pub solutions: usize,
    /// Double or single, in which they take half the memory, and a guess two thirds less.
    pub precision: Precision,
}

impl Past {
    /// No solution.
    pub const NONE: Self = Self { solutions: 0, precision: Precision::Double };
}

/// Past solutions. Memory is taken for those that are known, and for a basis of them while a guess is made.
pub struct Guess {
    keep: Past,
    /// Oldest first.
    past: Vec<Spinor>,
}

impl Guess {
    /// Keeps past solutions.
    pub fn new(keep: Past) -> Self {
        Self { keep, past: Vec::new() }
    }

    /// Drops all past solutions.
    pub fn forget(&mut self) {
        self.past.clear();
    }

    /// Remembers a solution.
    pub fn remember(&mut self, x: &Spinor) -> Result<(), FieldError> {
        if self.past.len() < self.keep.solutions {
            self.past.push(Spinor::of(x.domain(), x.kind(), self.keep.precision, 1)?);
        } else if !self.past.is_empty() {
            self.past.rotate_left(1);
        }
        self.past.last_mut().map_or(Ok(()), |last| last.copy_from(x))
    }

    /// Sets `x` to the guess for `M^dag M x = b`.
    pub fn start(&self, operator: &mut dyn Operator, x: &mut Spinor, b: &Spinor) -> Result<(), FieldError> {
        if self.past.is_empty() {
            return x.set_zero();
        }
        if self.keep.precision != Precision::Double {
            let mut basis = Forecast::new(x.domain(), x.kind(), self.past.len())?;
            self.past.iter().rev().try_for_each(|past| basis.remember(past))?;
            return basis.start(operator, x, b);
        }
        x.set_zero()?;
        let basis = self.orthonormal()?;
        let n = basis.len();
        let mut images = Vec::with_capacity(n);
        for v in &basis {
            let mut image = Spinor::of(x.domain(), x.kind(), Precision::Double, 1)?;
            operator.apply(&mut image, v, Dagger::No)?;
            images.push(image);
        }
        let mut matrix = vec![vec![Complex64::default(); n + 1]; n];
        for i in 0..n {
            for j in 0..n {
                matrix[i][j] = images[i].dot(&images[j])?;
            }
            matrix[i][n] = basis[i].dot(b)?;
        }
        for (v, a) in basis.iter().zip(eliminate(matrix)) {
            x.caxpy(a, v)?;
        }
        Ok(())
    }

    /// An orthonormal basis of the past solutions, the latest first, without linearly dependent ones.
    fn orthonormal(&self) -> Result<Vec<Spinor>, FieldError> {
        let mut basis: Vec<Spinor> = Vec::new();
        for past in self.past.iter().rev() {
            let mut v = Spinor::of(past.domain(), past.kind(), Precision::Double, 1)?;
            v.copy_from(past)?;
            let before = v.norm2()?.value();
            for u in &basis {
                let overlap = u.dot(&v)?;
                v.caxpy(-overlap, u)?;
            }
            let after = v.norm2()?.value();
            if after > 1e-20 * before {
                v.scale(1.0 / after.sqrt())?;
                basis.push(v);
            }
        }
        Ok(basis)
    }
}

/// Solutions of similar systems, as those for the poles of a function, or for links a moment ago. They are kept in
/// single precision, and images are computed one by one: a field of half the size per solution.
pub struct Forecast {
    /// Orthonormal to single precision.
    basis: Vec<Spinor>,
    /// The number of known ones.
    known: usize,
    /// Workspace in double precision.
    room: [Spinor; 3],
}

impl Forecast {
    /// Keeps the first `keep` solutions.
    pub fn new(domain: &Arc<Domain>, kind: Kind, keep: usize) -> Result<Self, FieldError> {
        let single = || Spinor::of(domain, kind, Precision::Single, 1);
        let double = || Spinor::of(domain, kind, Precision::Double, 1);
        let basis = (0..keep).map(|_| single()).collect::<Result<_, _>>()?;
        Ok(Self { basis, known: 0, room: [double()?, double()?, double()?] })
    }

    /// Drops all solutions.
    pub fn forget(&mut self) {
        self.known = 0;
    }

    /// Remembers a solution, if there is room and if it is not a combination of others.
    pub fn remember(&mut self, x: &Spinor) -> Result<(), FieldError> {
        if self.known == self.basis.len() {
            return Ok(());
        }
        let [v, u, _] = &mut self.room;
        v.copy_from(x)?;
        let before = v.norm2()?.value();
        for basis in &self.basis[..self.known] {
            u.copy_from(basis)?;
            let overlap = u.dot(v)?;
            v.caxpy(-overlap, u)?;
        }
        let after = v.norm2()?.value();
        // Below this, a vector in single precision is noise.
        if after > 1e-12 * before {
            v.scale(1.0 / after.sqrt())?;
            self.basis[self.known].copy_from(v)?;
            self.known += 1;
        }
        Ok(())
    }

    /// Sets `x` to the guess for `M^dag M x = b`.
    pub fn start(
        &mut self,
        operator: &mut dyn Operator,
        x: &mut Spinor,
        b: &Spinor,
    ) -> Result<(), FieldError> {
        let (basis, [v, middle, image]) = (&self.basis[..self.known], &mut self.room);
        let n = basis.len();
        let mut matrix = vec![vec![Complex64::default(); n + 1]; n];
        for (j, right) in basis.iter().enumerate() {
            v.copy_from(right)?;
            matrix[j][n] = v.dot(b)?;
            operator.apply_normal(image, middle, v, 0.0)?;
            for (i, left) in basis[..=j].iter().enumerate() {
                v.copy_from(left)?;
                matrix[i][j] = v.dot(image)?;
                matrix[j][i] = matrix[i][j].conj();
            }
        }
        x.set_zero()?;
        for (basis, a) in basis.iter().zip(eliminate(matrix)) {
            v.copy_from(basis)?;
            x.caxpy(a, v)?;
        }
        Ok(())
    }
}

/// Solves the hermitian positive system `[A | b]` by Gaussian elimination without pivoting.
fn eliminate(mut m: Vec<Vec<Complex64>>) -> Vec<Complex64> {
    let n = m.len();
    for i in 0..n {
        for k in i + 1..n {
            let factor = m[k][i] / m[i][i];
            let above = m[i].clone();
            m[k].iter_mut().zip(above).skip(i).for_each(|(entry, above)| *entry -= factor * above);
        }
    }
    let mut x = vec![Complex64::default(); n];
    for i in (0..n).rev() {
        let known: Complex64 = (i + 1..n).map(|j| m[i][j] * x[j]).sum();
        x[i] = (m[i][n] - known) / m[i][i];
    }
    x
}
