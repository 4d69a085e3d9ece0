//! What fermion fields hold on the sites of one parity: Dirac spinors, 24 reals a site in the basis of DeGrand and
//! Rossi, one or, of domain-wall quarks, as many as the fifth dimension is long; or colour vectors of staggered
//! quarks, 6 reals a site.
//!
//! Products are summed exactly over sites, so they are the same on any cut. `(x, y)` is antilinear
//! in x.

use super::matrix::random_args;
use super::{Domain, FieldError, RandomAddress};
use crate::device::{BlasArgs, Buffer, Pointer, Precision, RandomArgs, TransposeArgs};
use num_complex::Complex64;
use std::sync::Arc;

/// What a fermion field holds on a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Dirac spinor: four spins of three colours.
    Dirac,
    /// So many Dirac spinors, the slices of a fifth dimension.
    Wall(usize),
    /// A colour vector of staggered quarks.
    Colour,
}

impl Kind {
    /// Reals of a site and slice.
    pub const fn reals(self) -> usize {
        match self {
            Self::Dirac | Self::Wall(_) => 24,
            Self::Colour => 6,
        }
    }

    /// Slices of the fifth dimension; 1 without one.
    pub const fn slices(self) -> usize {
        match self {
            Self::Wall(slices) => slices,
            Self::Dirac | Self::Colour => 1,
        }
    }
}

/// A fermion field of one parity.
///
/// With more than one field in it (several right-hand sides) it is what operators take; linear
/// algebra is on single ones, which [`Spinor::set_field`] and [`Spinor::field`] move in and out.
pub struct Spinor {
    pub(super) domain: Arc<Domain>,
    pub(super) kind: Kind,
    pub(super) precision: Precision,
    pub(super) fields: usize,
    pub(super) buffer: Buffer,
}

impl Spinor {
    /// A spinor, zero everywhere.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        Self::of(domain, Kind::Dirac, precision, 1)
    }

    /// A colour vector, zero everywhere.
    ///
    /// # Errors
    /// No room.
    pub fn colour(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        Self::of(domain, Kind::Colour, precision, 1)
    }

    /// `fields` spinors one behind the other, zero everywhere.
    ///
    /// # Errors
    /// No room.
    pub fn several(domain: &Arc<Domain>, precision: Precision, fields: usize) -> Result<Self, FieldError> {
        Self::of(domain, Kind::Dirac, precision, fields)
    }

    /// `fields` of a kind one behind the other, zero everywhere.
    ///
    /// # Errors
    /// No room.
    pub fn of(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        fields: usize,
    ) -> Result<Self, FieldError> {
        let sites = domain.half() * kind.slices() * domain.lanes().count();
        let buffer = domain.device().buffer(fields * sites * precision.stored(kind.reals(), 1))?;
        Ok(Self { domain: Arc::clone(domain), kind, precision, fields, buffer })
    }

    /// Outer sites of all slices.
    pub(super) fn sites(&self) -> usize {
        self.domain.half() * self.kind.slices()
    }

    /// What it holds on a site.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn bytes_of_one(&self) -> usize {
        self.sites() * self.domain.lanes().count() * self.precision.stored(self.kind.reals(), 1)
    }

    /// How many there are; of those that are active.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// For kernels.
    pub fn pointer(&self) -> Pointer {
        self.buffer.pointer()
    }

    /// Field number `n`, for kernels that take single ones.
    pub fn pointer_of(&self, n: usize) -> Pointer {
        self.buffer.at(n * self.bytes_of_one())
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
        assert_eq!(self.fields, 1, "linear algebra of single fields");
        BlasArgs { y: self.pointer(), half: self.sites() as i32, ..Default::default() }
    }

    pub(super) fn launch(
        &self,
        kernel: &str,
        precision: Precision,
        args: &BlasArgs,
    ) -> Result<(), FieldError> {
        self.domain.launch(kernel, precision, args, self.sites())
    }

    /// The kernel for this kind of field.
    pub(super) fn own(&self, kernel: &str) -> String {
        format!("{kernel}_{}", self.kind.reals())
    }

    pub(super) fn sum(&self, kernel: &str, args: &BlasArgs) -> Result<crate::device::Sums, FieldError> {
        self.domain.sum(kernel, self.precision, args, self.sites())
    }

    /// As `check`, of a solution and what belongs to its iteration.
    pub(super) fn check_solution(&self, other: &Self) {
        let of = (other.kind, other.precision.of_solution());
        assert_eq!((self.kind, self.precision), of, "a solution and its iteration");
    }

    pub(super) fn check(&self, other: &Self) {
        let of = |field: &Self| (field.kind, field.precision);
        assert_eq!(of(self), of(other), "linear algebra of fields of one kind, in one precision");
    }

    /// Zero everywhere, in all fields.
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
        let slices = self.kind.slices();
        (0..slices).try_for_each(|slice| {
            let args = RandomArgs {
                parity: parity as i32,
                slice: slice as i32,
                slices: slices as i32,
                scale,
                ..random_args(&self.domain, self.pointer(), address)
            };
            self.domain.launch(&self.own("random"), self.precision, &args, self.domain.half())
        })
    }

    /// Replaces the content, rounded where it comes from a higher precision; of several fields, one by one.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        let args = BlasArgs { x: other.pointer(), ..self.args() };
        match (self.precision, other.precision) {
            (to, from) if to == from => Ok(self.buffer.copy_from(&other.buffer)?),
            (to, Precision::Double) => self.launch(&self.own("from_double"), to, &args),
            (Precision::Half, _) => self.launch(&self.own("from_single"), Precision::Half, &args),
            _ => {
                self.set_zero()?;
                self.add(other)
            }
        }
    }

    /// `self += x`, x in a lower precision, or the same.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add(&mut self, x: &Self) -> Result<(), FieldError> {
        let args = BlasArgs { x: x.pointer(), ..self.args() };
        match (self.precision, x.precision) {
            (to, from) if to == from => self.axpy(1.0, x),
            (Precision::Double, from) => self.launch(&self.own("add_to_double"), from, &args),
            (Precision::Single, Precision::Half) => {
                self.launch(&self.own("add_to_single"), Precision::Half, &args)
            }
            (to, from) => unreachable!("a sum in {to} of {from}"),
        }
    }

    /// `self += a x`
    ///
    /// # Errors
    /// The device is lost.
    pub fn axpy(&mut self, a: f64, x: &Self) -> Result<(), FieldError> {
        self.check(x);
        self.launch(&self.own("axpy"), self.precision, &BlasArgs { a, x: x.pointer(), ..self.args() })
    }

    /// `self += a x`; returns `|self|^2`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn axpy_norm2(&mut self, a: f64, x: &Self) -> Result<f64, FieldError> {
        self.check(x);
        let args = BlasArgs { a, x: x.pointer(), ..self.args() };
        Ok(self.sum(&self.own("axpy_norm2"), &args)?.sums[0].value())
    }

    /// `self += a x`, complex a.
    ///
    /// # Errors
    /// The device is lost.
    pub fn caxpy(&mut self, a: Complex64, x: &Self) -> Result<(), FieldError> {
        self.check(x);
        self.launch(
            &self.own("caxpy"),
            self.precision,
            &BlasArgs { a: a.re, b: a.im, x: x.pointer(), ..self.args() },
        )
    }

    /// `self = x + a self`
    ///
    /// # Errors
    /// The device is lost.
    pub fn xpay(&mut self, x: &Self, a: f64) -> Result<(), FieldError> {
        self.check(x);
        self.launch(&self.own("xpay"), self.precision, &BlasArgs { a, x: x.pointer(), ..self.args() })
    }

    /// `self *= a`
    ///
    /// # Errors
    /// The device is lost.
    pub fn scale(&mut self, a: f64) -> Result<(), FieldError> {
        self.launch(&self.own("scale"), self.precision, &BlasArgs { a, x: self.pointer(), ..self.args() })
    }

    /// `|self|^2`
    ///
    /// # Errors
    /// The device is lost.
    pub fn norm2(&self) -> Result<crate::math::ExactSum, FieldError> {
        Ok(self.sum(&self.own("norm2"), &BlasArgs { x: self.pointer(), ..self.args() })?.sums[0])
    }

    /// `Re (self, y)`
    ///
    /// # Errors
    /// The device is lost.
    pub fn real_dot(&self, y: &Self) -> Result<crate::math::ExactSum, FieldError> {
        self.check(y);
        Ok(self
            .sum(&self.own("real_dot"), &BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() })?
            .sums[0])
    }

    /// `(self, y)`
    ///
    /// # Errors
    /// The device is lost.
    pub fn dot(&self, y: &Self) -> Result<Complex64, FieldError> {
        self.check(y);
        let sums =
            self.sum(&self.own("dot"), &BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() })?.sums;
        Ok(Complex64::new(sums[0].value(), sums[1].value()))
    }

    /// `(self, y)` and `|self|^2`
    ///
    /// # Errors
    /// The device is lost.
    pub fn dot_norm2(&self, y: &Self) -> Result<(Complex64, f64), FieldError> {
        self.check(y);
        let args = BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() };
        let sums = self.sum("dot_norm2", &args)?.sums;
        Ok((Complex64::new(sums[0].value(), sums[1].value()), sums[2].value()))
    }

    /// [`Spinor::dot_norm2`] over the sites of this rank alone.
    ///
    /// # Errors
    /// The device is lost.
    pub fn dot_norm2_here(&self, y: &Self) -> Result<(Complex64, f64), FieldError> {
        self.check(y);
        let args = BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() };
        let sums = self.domain.device().sum("dot_norm2", self.precision, &args, self.sites())?.sums;
        Ok((Complex64::new(sums[0].value(), sums[1].value()), sums[2].value()))
    }

    /// `self += a x`; returns `|self|^2`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn caxpy_norm2(&mut self, a: Complex64, x: &Self) -> Result<f64, FieldError> {
        self.check(x);
        let args = BlasArgs { a: a.re, b: a.im, x: x.pointer(), ..self.args() };
        Ok(self.sum("caxpy_norm2", &args)?.sums[0].value())
    }

    /// `self += a x`; returns `(z, self)`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn caxpy_dot(&mut self, a: Complex64, x: &Self, z: &Self) -> Result<Complex64, FieldError> {
        self.check(x);
        let args = BlasArgs { a: a.re, b: a.im, x: x.pointer(), z: z.pointer(), ..self.args() };
        let sums = self.sum("caxpy_dot", &args)?.sums;
        Ok(Complex64::new(sums[0].value(), sums[1].value()))
    }

    /// `self += i a gamma_5 x`, on each of several fields.
    ///
    /// # Errors
    /// The device is lost.
    pub fn add_twist(&mut self, a: f64, x: &Self) -> Result<(), FieldError> {
        self.check(x);
        let half = self.sites() as i32;
        (0..self.fields).try_for_each(|n| {
            let args = BlasArgs { a, x: x.pointer_of(n), y: self.pointer_of(n), half, ..Default::default() };
            self.launch("add_twist", self.precision, &args)
        })
    }

    /// The second half of a step of BiCGstab: `self += alpha p + omega r`, `r -= omega t`; returns
    /// `(shadow, r)` and `|r|^2`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn bicgstab_step(
        &mut self,
        (alpha, p): (Complex64, &Self),
        omega: Complex64,
        r: &mut Self,
        t: &Self,
        shadow: &Self,
    ) -> Result<(Complex64, f64), FieldError> {
        let args = BlasArgs {
            x: self.pointer(),
            y: r.pointer(),
            z: p.pointer(),
            w: t.pointer(),
            v: shadow.pointer(),
            a: alpha.re,
            b: alpha.im,
            c: omega.re,
            d: omega.im,
            ..self.args()
        };
        let sums = self.sum("bicgstab_step", &args)?.sums;
        Ok((Complex64::new(sums[0].value(), sums[1].value()), sums[2].value()))
    }

    /// The next direction of BiCGstab: `self = r + beta (self - omega v)`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn bicgstab_direction(
        &mut self,
        r: &Self,
        beta: Complex64,
        omega: Complex64,
        v: &Self,
    ) -> Result<(), FieldError> {
        let args = BlasArgs {
            x: r.pointer(),
            z: v.pointer(),
            a: beta.re,
            b: beta.im,
            c: omega.re,
            d: omega.im,
            ..self.args()
        };
        self.launch("bicgstab_direction", self.precision, &args)
    }

    /// A step of minimal residuals: `self += a r`, `r -= a q`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn mr_step(&mut self, a: Complex64, r: &mut Self, q: &Self) -> Result<(), FieldError> {
        let args = BlasArgs { x: r.pointer(), z: q.pointer(), a: a.re, b: a.im, ..self.args() };
        self.launch("mr_step", self.precision, &args)
    }

    /// `|self|^2` and `|y|^2`
    ///
    /// # Errors
    /// The device is lost.
    pub fn two_norms(&self, y: &Self) -> Result<(f64, f64), FieldError> {
        self.check(y);
        let args = BlasArgs { x: self.pointer(), y: y.pointer(), ..self.args() };
        let sums = self.sum(&self.own("two_norms"), &args)?.sums;
        Ok((sums[0].value(), sums[1].value()))
    }

    fn transpose(&self, natural: &Buffer, parity: usize, to_natural: bool) -> Result<(), FieldError> {
        let slices = self.kind.slices();
        (0..slices).try_for_each(|slice| {
            let args = TransposeArgs {
                g: self.domain.geometry(),
                field: self.pointer(),
                natural: natural.at(slice * (natural.bytes() / slices)),
                parity: parity as i32,
                slice: slice as i32,
                slices: slices as i32,
                blocks: 1,
                reals: self.kind.reals() as i32,
                bordered: 0,
                to_natural: i32::from(to_natural),
                pad: 0,
            };
            self.domain.launch("transpose", self.precision, &args, self.domain.half())
        })
    }

    /// Writes the sites of `parity` into `reals`: `[t][z][y][x][spin][colour][re, im]` of the box, without
    /// `[spin]` for colour vectors, slice by slice where there are some.
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
