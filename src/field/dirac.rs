//! Linear algebra that exists only for Dirac spinors, with or without a fifth dimension: for BiCGstab, minimal
//! residuals and twisted masses.

use super::number::{StabNumbers, complex, least_length};
use super::{FieldError, Spinor};
use crate::device::kernels::{
    AddTwist, BicgstabDirection, BicgstabHalf, BicgstabStep, CaxpyDot, CaxpyNorm2, Dot, DotNorm2, MrStep,
    SiteReals, int,
};
use num_complex::Complex64;

/// Whether an operator or its adjoint acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dagger {
    /// M
    #[default]
    No,
    /// M^dag
    Yes,
}

impl From<bool> for Dagger {
    fn from(adjoint: bool) -> Self {
        if adjoint { Self::Yes } else { Self::No }
    }
}

impl std::ops::Not for Dagger {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Yes => Self::No,
        }
    }
}

impl Spinor {
    /// As `check_single`, for functions that exist only for Dirac spinors, with or without a fifth dimension.
    fn check_dirac<'a>(&'a self, others: impl IntoIterator<Item = &'a Self>) {
        assert_eq!(self.kind.site_reals(), SiteReals::Dirac, "linear algebra of Dirac spinors");
        self.check_single(others);
    }

    /// `(self, y)` and `|self|^2`
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn dot_norm2(&self, y: &Self) -> Result<(Complex64, f64), FieldError> {
        self.check_dirac([y]);
        let kernel = DotNorm2 { x: self.fermions(), y: y.fermions(), half: int(self.sites()) };
        let sums = self.domain.sum_as(self.precision, &kernel, self.sites())?;
        Ok((complex(&sums), sums.sums[2].value()))
    }

    /// [`Spinor::dot_norm2`] over this rank's sites only.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn dot_norm2_here(&self, y: &Self) -> Result<(Complex64, f64), FieldError> {
        self.check_dirac([y]);
        let kernel = DotNorm2 { x: self.fermions(), y: y.fermions(), half: int(self.sites()) };
        let sums = self.domain.device().sum(self.precision, &kernel, self.sites())?;
        Ok((complex(&sums), sums.sums[2].value()))
    }

    /// `self += a x`; returns `|self|^2`.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn caxpy_norm2(&mut self, a: Complex64, x: &Self) -> Result<f64, FieldError> {
        self.check_dirac([x]);
        let (precision, sites) = (self.precision, self.sites());
        let (y, x, half) = (self.buffer.output(), x.fermions(), int(sites));
        let kernel = CaxpyNorm2 { y, x, half, a: a.re, b: a.im };
        Ok(self.domain.sum_as(precision, &kernel, sites)?.sums[0].value())
    }

    /// `self += a x`; returns `(z, self)`.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn caxpy_dot(&mut self, a: Complex64, x: &Self, z: &Self) -> Result<Complex64, FieldError> {
        self.check_dirac([x, z]);
        let (precision, sites) = (self.precision, self.sites());
        let (y, x, z, half) = (self.buffer.output(), x.fermions(), z.fermions(), int(sites));
        let kernel = CaxpyDot { y, x, z, half, a: a.re, b: a.im };
        Ok(complex(&self.domain.sum_as(precision, &kernel, sites)?))
    }

    /// `self += i a gamma_5 x`, on each of several fields.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn add_twist(&mut self, a: f64, x: &Self) -> Result<(), FieldError> {
        assert_eq!(self.kind.site_reals(), SiteReals::Dirac, "linear algebra of Dirac spinors");
        self.check(x);
        assert_eq!(self.fields, x.fields, "as many fields in both");
        let (precision, sites, bytes) = (self.precision, self.sites(), self.bytes_of_one());
        (0..self.fields).try_for_each(|n| {
            let (y, x) = (self.buffer.output_at(n * bytes), x.fermions_of(n));
            self.domain.launch_as(precision, &AddTwist { y, x, half: int(sites), a }, sites)
        })
    }

    /// The first half of a step of BiCGstab: `self -= alpha v` with `alpha = rho / (shadow, v)`; `self` is the residual.
    ///
    /// What has numbers that are not finite is not done, here and in the rest of the step.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn bicgstab_half(
        &mut self,
        rho: Complex64,
        shadow: &Self,
        v: &Self,
    ) -> Result<StabNumbers, FieldError> {
        self.check_dirac([shadow, v]);
        let (precision, sites) = (self.precision, self.sites());
        let dot = Dot { x: shadow.fermions(), y: v.fermions(), half: int(sites) };
        let numbers = StabNumbers::new(rho, self.domain.sum_later_as(self.form(), &dot, sites)?);
        let (y, z, half) = (self.buffer.output(), v.fermions(), int(sites));
        let kernel = BicgstabHalf { y, z, half, numbers: numbers.argument()? };
        self.domain.launch_as(precision, &kernel, sites)?;
        Ok(numbers)
    }

    /// The second half of a step of BiCGstab: `self += alpha p + omega r`, `r -= omega t`, with the `omega` that makes
    /// the residual r least.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn bicgstab_step(
        &mut self,
        numbers: &mut StabNumbers,
        p: &Self,
        r: &mut Self,
        t: &Self,
        shadow: &Self,
    ) -> Result<(), FieldError> {
        self.check_dirac([p, r, t, shadow]);
        let (precision, sites) = (self.precision, self.sites());
        let overlap = DotNorm2 { x: t.fermions(), y: r.fermions(), half: int(sites) };
        numbers.set_overlap(self.domain.sum_later_as(precision, &overlap, sites)?);
        let kernel = BicgstabStep {
            x: self.buffer.output(),
            y: r.fermions_mut(),
            z: p.fermions(),
            w: t.fermions(),
            v: shadow.fermions(),
            half: int(sites),
            numbers: numbers.argument()?,
        };
        let next = self.domain.sum_later_as(precision, &kernel, sites)?;
        numbers.set_next(next);
        Ok(())
    }

    /// The next direction of BiCGstab: `self = r + beta (self - omega v)`.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn bicgstab_direction(
        &mut self,
        numbers: &StabNumbers,
        r: &Self,
        v: &Self,
    ) -> Result<(), FieldError> {
        self.check_dirac([r, v]);
        let (precision, sites) = (self.precision, self.sites());
        let kernel = BicgstabDirection {
            y: self.buffer.output(),
            x: r.fermions(),
            z: v.fermions(),
            half: int(sites),
            numbers: numbers.argument()?,
        };
        self.domain.launch_as(precision, &kernel, sites)
    }

    /// A step of minimal residuals: `self += a r`, `r -= a q`.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn mr_step(&mut self, a: Complex64, r: &mut Self, q: &Self) -> Result<(), FieldError> {
        self.check_dirac([&*r, q]);
        let (precision, sites) = (self.precision, self.sites());
        let (y, x, z) = (self.buffer.output(), r.fermions_mut(), q.fermions());
        let kernel = MrStep { y, x, z, half: int(sites), length: [a.re, a.im], overlap: None };
        self.domain.launch_as(precision, &kernel, sites)
    }

    /// A step of minimal residuals on each of several fields: `self += a r`, `r -= a q` with the `a = (q, r) / |q|^2` that
    /// makes r least, or 0 where q is zero. The host does not wait where the device keeps the sums.
    ///
    /// # Panics
    /// The fields are colour vectors.
    pub fn least_mr_step_each(&mut self, r: &mut Self, q: &Self) -> Result<(), FieldError> {
        assert_eq!(self.kind.site_reals(), SiteReals::Dirac, "linear algebra of Dirac spinors");
        self.check_several(r);
        self.check_several(q);
        let (precision, sites) = (self.precision, self.sites());
        let half = int(sites);
        (0..self.fields).try_for_each(|n| {
            let overlap = DotNorm2 { x: q.fermions_of(n), y: r.fermions_of(n), half };
            let sums = self.domain.sum_later_as(precision, &overlap, sites)?;
            let overlap = sums.on_device();
            let length = match overlap {
                Some(_) => Complex64::default(),
                None => {
                    let sums = sums.wait()?;
                    least_length(complex(&sums), sums.sums[2].value())
                }
            };
            let length = [length.re, length.im];
            let (x, z) = (r.fermions_of_mut(n), q.fermions_of(n));
            let y = self.buffer.output_at(n * q.bytes_of_one());
            self.domain.launch_as(precision, &MrStep { y, x, z, half, length, overlap }, sites)
        })
    }
}
