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

/// Past solutions, oldest first.
pub struct Guess {
    /// The number of known solutions in `past`.
    known: usize,
    past: Vec<Spinor>,
    /// Workspace: an orthonormal basis of the past solutions, and its images under M.
    basis: Vec<Spinor>,
    images: Vec<Spinor>,
}

impl Guess {
    /// Keeps up to `keep` solutions in double precision; 0: every solve starts from zero.
    pub fn new(domain: &Arc<Domain>, kind: Kind, keep: usize) -> Result<Self, FieldError> {
        let fields = || (0..keep).map(|_| Spinor::of(domain, kind, Precision::Double, 1)).collect();
        let [past, basis, images]: [Result<_, FieldError>; 3] = [fields(), fields(), fields()];
        Ok(Self { known: 0, past: past?, basis: basis?, images: images? })
    }

    /// Drops all past solutions.
    pub fn forget(&mut self) {
        self.known = 0;
    }

    /// Remembers a solution.
    pub fn remember(&mut self, x: &Spinor) -> Result<(), FieldError> {
        if self.past.is_empty() {
            return Ok(());
        }
        if self.known == self.past.len() {
            self.past.rotate_left(1);
        } else {
            self.known += 1;
        }
        self.past[self.known - 1].copy_from(x)
    }

    /// Sets `x` to the guess for `M^dag M x = b`.
    pub fn start(
        &mut self,
        operator: &mut dyn Operator,
        x: &mut Spinor,
        b: &Spinor,
    ) -> Result<(), FieldError> {
        x.set_zero()?;
        let n = self.orthonormalise()?;
        let (basis, images) = (&self.basis[..n], &mut self.images[..n]);
        for (image, v) in images.iter_mut().zip(basis) {
            operator.apply(image, v, Dagger::No)?;
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

    /// Makes an orthonormal basis of the past solutions, the latest first, without linearly dependent ones. Returns its
    /// size.
    fn orthonormalise(&mut self) -> Result<usize, FieldError> {
        let mut n = 0;
        for past in self.past[..self.known].iter().rev() {
            let (basis, rest) = self.basis.split_at_mut(n);
            let v = &mut rest[0];
            v.copy_from(past)?;
            let before = v.norm2()?.value();
            for u in &*basis {
                let overlap = u.dot(v)?;
                v.caxpy(-overlap, u)?;
            }
            let after = v.norm2()?.value();
            if after > 1e-20 * before {
                v.scale(1.0 / after.sqrt())?;
                n += 1;
            }
        }
        Ok(n)
    }
}

/// Solutions of similar systems, as those for the poles of a function. They are kept in single precision, and images
/// are computed one by one: a field of half the size per solution.
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
            operator.apply(middle, v, Dagger::No)?;
            operator.apply(image, middle, Dagger::Yes)?;
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
