//! Where a solve starts: the combination of past solutions with the least residual in the norm of
//! `M^dag M` (Brower, Ivanenko, Levi, Orginos, hep-lat/9509012).
//!
//! A guess from the past spoils reversibility unless solves are tight. It is forgotten when a
//! trajectory starts, so that a resumed run goes on with the same bits.

use crate::device::Precision;
use crate::field::{Domain, FieldError, Spinor};
use crate::operator::Operator;
use num_complex::Complex64;
use std::sync::Arc;

/// Past solutions, the latest last.
pub struct Guess {
    keep: usize,
    past: Vec<Spinor>,
    /// Room for an orthonormal basis of them, and for its images.
    basis: Vec<Spinor>,
    images: Vec<Spinor>,
}

impl Guess {
    /// Keeps up to `keep` solutions; 0: every solve starts from zero.
    pub fn new(keep: usize) -> Self {
        Self { keep, past: Vec::new(), basis: Vec::new(), images: Vec::new() }
    }

    /// Drops the past.
    pub fn forget(&mut self) {
        self.past.clear();
    }

    /// Remembers a solution.
    ///
    /// # Errors
    /// No room.
    pub fn remember(&mut self, domain: &Arc<Domain>, x: &Spinor) -> Result<(), FieldError> {
        if self.keep == 0 {
            return Ok(());
        }
        let spinor = || Spinor::of(domain, x.kind(), Precision::Double, 1);
        let mut room = if self.past.len() == self.keep { self.past.remove(0) } else { spinor()? };
        if self.basis.len() <= self.past.len() {
            self.basis.push(spinor()?);
            self.images.push(spinor()?);
        }
        room.copy_from(x)?;
        self.past.push(room);
        Ok(())
    }

    /// Sets `x` to the guess for `M^dag M x = b`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn start(
        &mut self,
        operator: &mut dyn Operator,
        x: &mut Spinor,
        b: &Spinor,
    ) -> Result<(), FieldError> {
        x.set_zero()?;
        // Orthonormal basis of the past, the latest first; what depends on it is left out.
        let mut n = 0;
        for past in self.past.iter().rev() {
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
        let (basis, images) = (&self.basis[..n], &mut self.images[..n]);
        for (image, v) in images.iter_mut().zip(basis) {
            operator.apply(image, v, false)?;
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
}

/// Solves the hermitian positive system `[A | b]` by Gauss without pivoting.
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
