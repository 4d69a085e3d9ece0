//! Dirac spinors on the sites of one parity, 24 reals a site in the basis of DeGrand and Rossi.
//!
//! Products are summed exactly over sites, so they are the same on any cut. `(x, y)` is antilinear
//! in x.

use super::matrix::random_args;
use super::{Domain, FieldError, RandomAddress};
use crate::device::{BlasArgs, Buffer, Pointer, Precision, RandomArgs, TransposeArgs};
use num_complex::Complex64;
use std::sync::Arc;

/// Reals of a site.
const REALS: usize = 24;

/// A spinor field of one parity.
pub struct Spinor {
    domain: Arc<Domain>,
    precision: Precision,
    buffer: Buffer,
}

impl Spinor {
    /// Zero everywhere.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        let bytes = domain.half() * domain.lanes().count() * REALS * precision.bytes();
        Ok(Self { domain: Arc::clone(domain), precision, buffer: domain.device().buffer(bytes)? })
    }

    /// For kernels.
    pub fn pointer(&self) -> Pointer {
        self.buffer.pointer()
    }

    /// In what it is stored.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn args(&self) -> BlasArgs {
        BlasArgs { y: self.pointer(), half: self.domain.half() as i32, ..Default::default() }
    }

    fn launch(&self, kernel: &str, precision: Precision, args: &BlasArgs) -> Result<(), FieldError> {
        self.domain.launch(kernel, precision, args, self.domain.half())
    }

    fn sum(&self, kernel: &str, args: &BlasArgs) -> Result<crate::device::Sums, FieldError> {
        self.domain.sum(kernel, self.precision, args, self.domain.half())
    }

    fn check(&self, other: &Self) {
        assert_eq!(self.precision, other.precision, "linear algebra of spinors in one precision");
    }

    /// Zero everywhere.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_zero(&mut self) -> Result<(), FieldError> {
        Ok(self.buffer.zero()?)
    }

    /// Every real `scale` times a unit Gaussian.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_random(
        &mut self,
        parity: usize,
        scale: f64,
        address: RandomAddress,
    ) -> Result<(), FieldError> {
        let args =
            RandomArgs { parity: parity as i32, scale, ..random_args(&self.domain, self.pointer(), address) };
        self.domain.launch("random_spinor", self.precision, &args, self.domain.half())
    }

    /// Replaces the content; single is rounded from double.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        if self.precision == other.precision {
            return Ok(self.buffer.copy_from(&other.buffer)?);
        }
        match self.precision {
            Precision::Single => {
                self.launch("from_double", Precision::Single, &BlasArgs { x: other.pointer(), ..self.args() })
            }
            Precision::Double => {
                self.set_zero()?;
                self.add(other)
            }
        }
    }

    /// `self += x`, x in single and self in double.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add(&mut self, x: &Self) -> Result<(), FieldError> {
        assert_eq!((self.precision, x.precision), (Precision::Double, Precision::Single), "a sum in double");
        self.launch("add_to_double", Precision::Single, &BlasArgs { x: x.pointer(), ..self.args() })
    }

    /// `self += a x`
    ///
    /// # Errors
    /// The device is lost.
    pub fn axpy(&mut self, a: f64, x: &Self) -> Result<(), FieldError> {
        self.check(x);
        self.launch("axpy", self.precision, &BlasArgs { a, x: x.pointer(), ..self.args() })
    }

    /// `self += a x`, complex a.
    ///
    /// # Errors
    /// The device is lost.
    pub fn caxpy(&mut self, a: Complex64, x: &Self) -> Result<(), FieldError> {
        self.check(x);
        self.launch("caxpy", self.precision, &BlasArgs { a: a.re, b: a.im, x: x.pointer(), ..self.args() })
    }

    /// `self = x + a self`
    ///
    /// # Errors
    /// The device is lost.
    pub fn xpay(&mut self, x: &Self, a: f64) -> Result<(), FieldError> {
        self.check(x);
        self.launch("xpay", self.precision, &BlasArgs { a, x: x.pointer(), ..self.args() })
    }

    /// `self *= a`
    ///
    /// # Errors
    /// The device is lost.
    pub fn scale(&mut self, a: f64) -> Result<(), FieldError> {
        self.launch("scale", self.precision, &BlasArgs { a, x: self.pointer(), ..self.args() })
    }

    /// `|self|^2`
    ///
    /// # Errors
    /// The device is lost.
    pub fn norm2(&self) -> Result<crate::math::ExactSum, FieldError> {
        Ok(self.sum("norm2", &BlasArgs { x: self.pointer(), ..self.args() })?.sums[0])
    }

    /// `Re (self, y)`
    ///
    /// # Errors
    /// The device is lost.
    pub fn real_dot(&self, y: &Self) -> Result<crate::math::ExactSum, FieldError> {
        self.check(y);
        Ok(self.sum("real_dot", &BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() })?.sums[0])
    }

    /// `(self, y)`
    ///
    /// # Errors
    /// The device is lost.
    pub fn dot(&self, y: &Self) -> Result<Complex64, FieldError> {
        self.check(y);
        let sums = self.sum("dot", &BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() })?.sums;
        Ok(Complex64::new(sums[0].value(), sums[1].value()))
    }

    /// One step of conjugate gradients: `self += a p`, `r -= a q`; returns `|r|^2`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn cg_step(&mut self, a: f64, p: &Self, r: &mut Self, q: &Self) -> Result<f64, FieldError> {
        let args =
            BlasArgs { x: self.pointer(), y: r.pointer(), z: p.pointer(), w: q.pointer(), a, ..self.args() };
        Ok(self.sum("cg_step", &args)?.sums[0].value())
    }

    fn transpose(&self, natural: &Buffer, parity: usize, to_natural: bool) -> Result<(), FieldError> {
        let args = TransposeArgs {
            g: self.domain.geometry(),
            field: self.pointer(),
            natural: natural.pointer(),
            parity: parity as i32,
            blocks: 1,
            reals: REALS as i32,
            bordered: 0,
            to_natural: i32::from(to_natural),
            pad: 0,
        };
        self.domain.launch("transpose", self.precision, &args, self.domain.half())
    }

    /// Writes the sites of `parity` into `reals`: `[t][z][y][x][spin][colour][re, im]` of the box.
    ///
    /// # Errors
    /// The device is lost.
    pub fn write_host(&self, parity: usize, reals: &mut [f64]) -> Result<(), FieldError> {
        let natural = self.domain.device().buffer_of(reals)?;
        self.transpose(&natural, parity, true)?;
        Ok(natural.read(reals)?)
    }

    /// Takes the sites of `parity` out of `reals`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn read_host(&mut self, parity: usize, reals: &[f64]) -> Result<(), FieldError> {
        let natural = self.domain.device().buffer_of(reals)?;
        self.transpose(&natural, parity, false)?;
        Ok(self.domain.device().synchronize()?)
    }
}
