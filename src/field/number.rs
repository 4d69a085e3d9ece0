//! Numbers of linear algebra that follow from sums over the lattice. A GPU makes what needs them without the host, which
//! reads the sums later: it would wait 5 to 20 us for each. `kernels/number.cuh` has the same formulas, with the same bits.

use super::FieldError;
use crate::device::kernels::{BicgstabNumbers, MAX_SUMS, Number};
use crate::device::{Deferred, Sums};
use num_complex::Complex64;
use std::ops::{Div, Neg};

/// One or two sums over the lattice, `s_0` or `s_0 + weight s_1`, that the device may still be making.
///
/// ```
/// use hmc::field::{Kind, ODD, Purpose, RandomAddress};
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let mut x = Spinor::new(&domain, Precision::Double)?;
/// x.set_random(ODD, 1.0, RandomAddress { seed: 1, trajectory: 0, purpose: Purpose::Probe(0) })?;
/// let mut y = Spinor::new(&domain, Precision::Double)?;
/// y.copy_from(&x)?;
/// let xx = x.deferred_norm2()?;
/// // y = x - (|x|^2 / |x|^2) x, without waiting for |x|^2
/// let yy = y.axpy_norm2(-(x.norm2()?.value() / &xx), &x)?;
/// assert_eq!(yy.value()?, 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sum {
    sums: Deferred,
    weight: f64,
}

impl Sum {
    /// The first sum.
    pub(crate) fn first(sums: Deferred) -> Self {
        Self::weighted(sums, 0.0)
    }

    /// `s_0 + weight s_1`; a weight of 0 leaves the second out.
    pub(super) fn weighted(sums: Deferred, weight: f64) -> Self {
        Self { sums, weight }
    }

    /// The value, when the device has made it.
    pub fn value(&self) -> Result<f64, FieldError> {
        let Sums { sums, .. } = self.sums.wait()?;
        let first = sums[0].value();
        Ok(if self.weight == 0.0 { first } else { first + self.weight * sums[1].value() })
    }
}

/// All sums of a launch as arguments of a kernel; zero beyond them.
pub(crate) fn numbers_of(sums: &Deferred) -> Result<[Number<'_>; MAX_SUMS], FieldError> {
    if sums.on_device().is_some() {
        let nth = |n| Number { value: 1.0, weight: 0.0, above: sums.on_device_at(n), below: None };
        return Ok(std::array::from_fn(nth));
    }
    let Sums { sums, .. } = sums.wait()?;
    Ok(std::array::from_fn(|n| number(sums.get(n).map_or(0.0, |sum| sum.value()))))
}

/// A number, or the quotient of a number and a sum, which the device may still be making.
#[derive(Clone, Copy)]
pub enum Quotient<'a> {
    /// A number.
    Number(f64),
    /// A number divided by a sum.
    By(f64, &'a Sum),
    /// A sum, of weight 0, divided by a number.
    Of(&'a Sum, f64),
}

impl From<f64> for Quotient<'_> {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl<'a> Div<&'a Sum> for f64 {
    type Output = Quotient<'a>;

    fn div(self, sum: &'a Sum) -> Quotient<'a> {
        Quotient::By(self, sum)
    }
}

impl<'a> Div<f64> for &'a Sum {
    type Output = Quotient<'a>;

    fn div(self, number: f64) -> Quotient<'a> {
        assert_eq!(self.weight, 0.0, "one sum above");
        Quotient::Of(self, number)
    }
}

impl Neg for Quotient<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        match self {
            Self::Number(value) => Self::Number(-value),
            Self::By(value, sum) => Self::By(-value, sum),
            Self::Of(sum, value) => Self::Of(sum, -value),
        }
    }
}

impl<'a> Quotient<'a> {
    /// The value, when the device has made the sum.
    pub fn value(self) -> Result<f64, FieldError> {
        Ok(match self {
            Self::Number(value) => value,
            Self::By(value, sum) => value / sum.value()?,
            Self::Of(sum, value) => sum.value()? / value,
        })
    }

    /// The argument of a kernel.
    pub(crate) fn argument(self) -> Result<Number<'a>, FieldError> {
        let (value, weight, above, below) = match self {
            Self::Number(value) => (value, 0.0, None, None),
            Self::By(value, sum) => (value, sum.weight, None, sum.sums.on_device()),
            Self::Of(sum, value) => (value, 0.0, sum.sums.on_device(), None),
        };
        Ok(if above.is_none() && below.is_none() {
            number(self.value()?)
        } else {
            Number { value, weight, above, below }
        })
    }
}

/// A number that the host knows.
pub(super) fn number(value: f64) -> Number<'static> {
    Number { value, weight: 0.0, above: None, below: None }
}

/// The numbers of an iteration of BiCGstab, as far as their sums were asked for: `alpha = rho / (shadow, v)`,
/// `omega = (t, r) / |t|^2`, and `beta = rho' / rho (alpha / omega)` with the next `rho' = (shadow, r)`.
pub struct StabNumbers {
    rho: Complex64,
    /// `(shadow, v)`
    dot: Deferred,
    /// `(t, r)` and `|t|^2`
    overlap: Option<Deferred>,
    /// `rho'` and `|r|^2`
    next: Option<Deferred>,
}

impl StabNumbers {
    pub(super) fn new(rho: Complex64, dot: Deferred) -> Self {
        Self { rho, dot, overlap: None, next: None }
    }

    pub(super) fn set_overlap(&mut self, sums: Deferred) {
        self.overlap = Some(sums);
    }

    pub(super) fn set_next(&mut self, sums: Deferred) {
        self.next = Some(sums);
    }

    /// `alpha`, when the device has made its sum.
    pub fn alpha(&self) -> Result<Complex64, FieldError> {
        Ok(self.rho / complex(&self.dot.wait()?))
    }

    /// `omega`, when the device has made its sums.
    ///
    /// # Panics
    /// They were not asked for.
    pub fn omega(&self) -> Result<Complex64, FieldError> {
        let sums = self.overlap.as_ref().expect("(t, r)").wait()?;
        Ok(complex(&sums) / sums.sums[2].value())
    }

    /// `rho'` and `|r|^2`, when the device has made them.
    ///
    /// # Panics
    /// They were not asked for.
    pub fn next(&self) -> Result<(Complex64, f64), FieldError> {
        let sums = self.next.as_ref().expect("(shadow, r)").wait()?;
        Ok((complex(&sums), sums.sums[2].value()))
    }

    /// `beta`, when the device has made its sums.
    ///
    /// # Panics
    /// They were not asked for.
    pub fn beta(&self) -> Result<Complex64, FieldError> {
        Ok(self.next()?.0 / self.rho * (self.alpha()? / self.omega()?))
    }

    /// The argument of a kernel.
    pub(super) fn argument(&self) -> Result<BicgstabNumbers<'_>, FieldError> {
        let pair = |z: Complex64| [z.re, z.im];
        let mut numbers = BicgstabNumbers {
            rho: pair(self.rho),
            alpha: [0.0; 2],
            omega: [0.0; 2],
            beta: [0.0; 2],
            dot: self.dot.on_device(),
            overlap: self.overlap.as_ref().and_then(Deferred::on_device),
            next: self.next.as_ref().and_then(Deferred::on_device),
        };
        if numbers.dot.is_none() {
            numbers.alpha = pair(self.alpha()?);
        }
        if self.overlap.is_some() && numbers.overlap.is_none() {
            numbers.omega = pair(self.omega()?);
        }
        if self.next.is_some() && numbers.next.is_none() {
            numbers.beta = pair(self.beta()?);
        }
        Ok(numbers)
    }
}

/// The length of a step of minimal residuals along r, for `q = M r`: `(q, r) / |q|^2`, or 0 where q is zero.
pub(crate) fn least_length(overlap: Complex64, norm2: f64) -> Complex64 {
    if norm2 > 0.0 { overlap / norm2 } else { Complex64::default() }
}

/// The first two sums as a complex number.
pub(super) fn complex(Sums { sums, .. }: &Sums) -> Complex64 {
    Complex64::new(sums[0].value(), sums[1].value())
}
