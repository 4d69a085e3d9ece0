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
}

impl Guess {
    /// Keeps up to `keep` solutions; 0: every solve starts from zero.
    pub fn new(keep: usize) -> Self {
        Self { keep, past: Vec::new() }
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
        let mut room = if self.past.len() == self.keep {
            self.past.remove(0)
        } else {
            Spinor::of(domain, x.kind(), Precision::Double, 1)?
        };
        room.copy_from(x)?;
        self.past.push(room);
        Ok(())
    }

    /// Sets `x` to the guess for `M^dag M x = b`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn start(&self, operator: &mut dyn Operator, x: &mut Spinor, b: &Spinor) -> Result<(), FieldError> {
        x.set_zero()?;
        let domain = Arc::clone(operator.domain());
        // Orthonormal basis of the past, the latest first; what depends on it is left out.
        let mut basis: Vec<Spinor> = Vec::new();
        for past in self.past.iter().rev() {
            let mut v = Spinor::of(&domain, x.kind(), Precision::Double, 1)?;
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
        let n = basis.len();
        let images = basis
            .iter()
            .map(|v| {
                let mut image = Spinor::of(&domain, x.kind(), Precision::Double, 1)?;
                operator.apply(&mut image, v, false)?;
                Ok(image)
            })
            .collect::<Result<Vec<_>, FieldError>>()?;
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
