//! Fermion fields on the sites of one parity. Dirac spinors have 24 reals per site in the DeGrand-Rossi basis;
//! domain-wall quarks have one spinor per slice of the fifth dimension. Colour vectors of staggered quarks have 6 reals
//! per site.
//!
//! Products are summed exactly over sites, so they do not depend on ranks and lanes. `(x, y)` is antilinear in x.

use super::matrix::{number_of, order};
use super::number::{Quotient, Sum, complex};
use super::{Domain, EVEN, FieldError, Layout, ODD, RandomAddress};
use crate::device::kernels::{
    AddToDouble, AddToSingle, Axpy, AxpyNorm2, Caxpy, Dot, Fermions, FromDouble, FromNatural, FromSingle,
    Half, In, Norm2, Order, Out, RandomField, RealDot, Scale, SiteReals, ToDouble, ToNatural, TwoNorms, Xpay,
    XpayNorm2, int,
};
use crate::device::{Buffer, Count, DeviceError, Precision, product};
use crate::lattice::volume;
use crate::math::ExactSum;
use num_complex::Complex64;
use std::sync::Arc;

/// The content of a fermion field on a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Dirac spinor: four spins of three colours.
    Dirac,
    /// This number of Dirac spinors: the slices of a fifth dimension, or flavours.
    Wall(usize),
    /// A colour vector of staggered quarks.
    Colour,
}

impl Kind {
    /// Reals per site and slice.
    pub const fn reals(self) -> usize {
        match self {
            Self::Dirac | Self::Wall(_) => 24,
            Self::Colour => 6,
        }
    }

    /// Reals per site and slice, in the form that kernels take.
    pub(crate) const fn site_reals(self) -> SiteReals {
        match self {
            Self::Dirac | Self::Wall(_) => SiteReals::Dirac,
            Self::Colour => SiteReals::Colour,
        }
    }

    /// Slices of the fifth dimension; 1 if there is none.
    pub const fn slices(self) -> usize {
        match self {
            Self::Wall(slices) => slices,
            Self::Dirac | Self::Colour => 1,
        }
    }
}

/// A fermion field of one parity.
///
/// Operators also take several fields at once (several right-hand sides). Linear algebra acts on single fields, which
/// [`Spinor::set_field`] and [`Spinor::field`] copy in and out.
pub struct Spinor {
    pub(super) domain: Arc<Domain>,
    pub(super) kind: Kind,
    pub(super) precision: Precision,
    pub(super) fields: usize,
    pub(super) buffer: Buffer,
}

impl Spinor {
    /// A spinor, zero everywhere.
    pub fn new(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        Self::of(domain, Kind::Dirac, precision, 1)
    }

    /// A colour vector, zero everywhere.
    pub fn colour(domain: &Arc<Domain>, precision: Precision) -> Result<Self, FieldError> {
        Self::of(domain, Kind::Colour, precision, 1)
    }

    /// `fields` spinors, one after the other in memory, zero everywhere.
    pub fn several(domain: &Arc<Domain>, precision: Precision, fields: usize) -> Result<Self, FieldError> {
        Self::of(domain, Kind::Dirac, precision, fields)
    }

    /// `fields` of a kind one behind the other, zero everywhere.
    ///
    /// # Errors
    /// No room, or more sites in all fields and slices than kernels count.
    pub fn of(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        fields: usize,
    ) -> Result<Self, FieldError> {
        let layout = domain.layout(precision);
        let (half, lanes, of_site) =
            (layout.half(), layout.lanes().count(), precision.stored(kind.reals(), 1));
        let sites = product([fields, half, kind.slices()]);
        if Count::new(sites).is_none() {
            return Err(DeviceError::TooMany {
                kernel: format!("a kernel on {fields} fields"),
                count: sites,
            }
            .into());
        }
        // Kernels that take one field find the room for it.
        let bytes = product([fields.max(1), half, kind.slices(), lanes, of_site]);
        let buffer = domain.device().buffer(bytes)?;
        Ok(Self { domain: Arc::clone(domain), kind, precision, fields, buffer })
    }

    /// How it lies in memory.
    pub(crate) fn layout(&self) -> &Layout {
        self.domain.layout(self.precision)
    }

    /// Outer sites, times slices.
    pub(super) fn sites(&self) -> usize {
        self.layout().half() * self.kind.slices()
    }

    /// The content of a site.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn bytes_of_one(&self) -> usize {
        self.sites() * self.layout().lanes().count() * self.precision.stored(self.kind.reals(), 1)
    }

    /// Number of active fields.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// The argument of kernels that read it.
    pub(crate) fn fermions(&self) -> In<'_, Fermions> {
        self.buffer.input()
    }

    /// The argument of kernels that write it.
    pub(crate) fn fermions_mut(&mut self) -> Out<'_, Fermions> {
        self.buffer.output()
    }

    /// The argument of kernels that read field number `n`.
    pub(crate) fn fermions_of(&self, n: usize) -> In<'_, Fermions> {
        self.buffer.input_at(n * self.bytes_of_one())
    }

    /// The argument of kernels that write field number `n`.
    pub(crate) fn fermions_of_mut(&mut self, n: usize) -> Out<'_, Fermions> {
        let offset = n * self.bytes_of_one();
        self.buffer.output_at(offset)
    }

    /// The precision in memory.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// This rank's box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The instance of kernels for this kind of field.
    pub(super) fn form(&self) -> (Precision, SiteReals) {
        (self.precision, self.kind.site_reals())
    }

    /// As `check`, for a solution and a field of its iteration.
    pub(super) fn check_solution(&self, other: &Self) {
        let of = (other.kind, other.precision.of_solution());
        assert_eq!((self.kind, self.precision), of, "a solution and its iteration");
        self.domain.check([&other.domain]);
    }

    pub(super) fn check(&self, other: &Self) {
        let of = |field: &Self| (field.kind, field.precision);
        assert_eq!(of(self), of(other), "linear algebra of fields of one kind, in one precision");
        self.domain.check([&other.domain]);
    }

    /// As `check`, for single fields.
    pub(super) fn check_single<'a>(&'a self, others: impl IntoIterator<Item = &'a Self>) {
        assert_eq!(self.fields, 1, "linear algebra of single fields");
        for other in others {
            self.check(other);
            assert_eq!(other.fields, 1, "linear algebra of single fields");
        }
    }

    /// Sets all fields to zero.
    pub fn set_zero(&mut self) -> Result<(), FieldError> {
        Ok(self.buffer.zero()?)
    }

    /// Every real `scale` times a unit Gaussian, on sites of `parity`.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// A parity that is neither even nor odd.
    pub fn set_random(
        &mut self,
        parity: usize,
        scale: f64,
        address: RandomAddress,
    ) -> Result<(), FieldError> {
        let (form, sites, slices) = (self.form(), self.layout().half(), self.kind.slices());
        (0..slices).try_for_each(|slice| {
            let kernel = RandomField {
                g: self.domain.layout(self.precision).geometry(),
                stream: address.stream(),
                out: self.buffer.output(),
                parity: number_of(parity),
                slice: int(slice),
                slices: int(slices),
                scale,
            };
            self.domain.launch_as(form, &kernel, sites)
        })
    }

    /// Copies a single field, rounded if it has a higher precision.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), FieldError> {
        self.check_pair(other);
        if self.precision == other.precision {
            return Ok(self.buffer.copy_from(&other.buffer)?);
        }
        self.copy_field(0, other, 0)
    }

    /// Field number `n` becomes number `m` of `other`, rounded if that has a higher precision.
    ///
    /// # Panics
    /// Fields of different kinds, or there is no memory for a field number `n` or `m`.
    pub fn copy_field(&mut self, n: usize, other: &Self, m: usize) -> Result<(), FieldError> {
        assert_eq!(self.kind, other.kind, "fields of one kind");
        assert!(n < self.room() && m < other.room(), "fields with a place in memory");
        self.domain.check([&other.domain]);
        let (sites, reals, half) = (self.sites(), self.kind.site_reals(), int(self.sites()));
        let (bytes, x) = (self.bytes_of_one(), other.fermions_of(m));
        match (self.precision, other.precision) {
            (to, from) if to == from => {
                Ok(self.buffer.copy_part(n * bytes, &other.buffer, m * bytes, bytes)?)
            }
            (to, Precision::Double) => {
                let g = self.domain.layout(to).geometry();
                let kernel = FromDouble { g, y: self.buffer.output_at(n * bytes), x, half };
                self.domain.launch_as((to, reals), &kernel, sites)
            }
            (Precision::Double, from) => {
                let (g, sites) = (other.layout().geometry(), other.sites());
                let kernel = ToDouble { g, y: self.buffer.output_at(n * bytes), x, half: int(sites) };
                self.domain.launch_as((from, reals), &kernel, sites)
            }
            (Precision::Half, _) => {
                let kernel = FromSingle { y: self.buffer.output_at(n * bytes), x, half };
                self.domain.launch_as((Half, reals), &kernel, sites)
            }
            _ => {
                self.buffer.zero_part(n * bytes, bytes)?;
                let kernel = AddToSingle { y: self.buffer.output_at(n * bytes), x, half };
                self.domain.launch_as((Half, reals), &kernel, sites)
            }
        }
    }

    /// `self += x`, where x has the same or a lower precision.
    pub fn add(&mut self, x: &Self) -> Result<(), FieldError> {
        self.check_pair(x);
        let (sites, reals, half) = (x.sites(), self.kind.site_reals(), int(x.sites()));
        match (self.precision, x.precision) {
            (to, from) if to == from => self.axpy(1.0, x),
            (Precision::Double, from) => {
                let g = x.layout().geometry();
                let kernel = AddToDouble { g, y: self.buffer.output(), x: x.fermions(), half };
                self.domain.launch_as((from, reals), &kernel, sites)
            }
            (Precision::Single, Precision::Half) => {
                let kernel = AddToSingle { y: self.buffer.output(), x: x.fermions(), half };
                self.domain.launch_as((Half, reals), &kernel, sites)
            }
            (to, from) => unreachable!("a sum in {to} of {from}"),
        }
    }

    /// Checks for single fields of one kind, of any precision.
    fn check_pair(&self, other: &Self) {
        let of = |field: &Self| (field.kind, field.fields);
        assert_eq!([of(self), of(other)], [(self.kind, 1); 2], "single fields of one kind");
        self.domain.check([&other.domain]);
    }

    /// `self += a x`
    pub fn axpy(&mut self, a: f64, x: &Self) -> Result<(), FieldError> {
        self.check_single([x]);
        let (form, sites) = (self.form(), self.sites());
        let kernel = Axpy { y: self.buffer.output(), x: x.fermions(), half: int(sites), a };
        self.domain.launch_as(form, &kernel, sites)
    }

    /// `self += a x`; returns `|self|^2`. If a is not finite, `self` stays and the sum is NaN.
    pub fn axpy_norm2<'a>(&mut self, a: impl Into<Quotient<'a>>, x: &Self) -> Result<Sum, FieldError> {
        self.check_single([x]);
        let (form, sites, a) = (self.form(), self.sites(), a.into().argument()?);
        let kernel = AxpyNorm2 { y: self.buffer.output(), x: x.fermions(), half: int(sites), a };
        Ok(Sum::first(self.domain.sum_later_as(form, &kernel, sites)?))
    }

    /// `self += a x`, with complex a.
    pub fn caxpy(&mut self, a: Complex64, x: &Self) -> Result<(), FieldError> {
        self.check_single([x]);
        let (form, sites) = (self.form(), self.sites());
        let kernel = Caxpy { y: self.buffer.output(), x: x.fermions(), half: int(sites), a: a.re, b: a.im };
        self.domain.launch_as(form, &kernel, sites)
    }

    /// `self = x + a self`
    pub fn xpay(&mut self, x: &Self, a: f64) -> Result<(), FieldError> {
        self.check_single([x]);
        let (form, sites) = (self.form(), self.sites());
        let kernel = Xpay { y: self.buffer.output(), x: x.fermions(), half: int(sites), a };
        self.domain.launch_as(form, &kernel, sites)
    }

    /// `self = x + a self`; returns `|self|^2`. If a is not finite, `self` stays and the sum is NaN.
    pub fn xpay_norm2<'a>(&mut self, x: &Self, a: impl Into<Quotient<'a>>) -> Result<Sum, FieldError> {
        self.check_single([x]);
        let (form, sites, a) = (self.form(), self.sites(), a.into().argument()?);
        let kernel = XpayNorm2 { y: self.buffer.output(), x: x.fermions(), half: int(sites), a };
        Ok(Sum::first(self.domain.sum_later_as(form, &kernel, sites)?))
    }

    /// `self *= a`
    pub fn scale(&mut self, a: f64) -> Result<(), FieldError> {
        self.check_single([]);
        let (form, sites) = (self.form(), self.sites());
        self.domain.launch_as(form, &Scale { y: self.buffer.output(), half: int(sites), a }, sites)
    }

    /// `|self|^2`
    pub fn norm2(&self) -> Result<ExactSum, FieldError> {
        self.check_single([]);
        let kernel = Norm2 { x: self.fermions(), half: int(self.sites()) };
        Ok(self.domain.sum_as(self.form(), &kernel, self.sites())?.sums[0])
    }

    /// `Re (self, y)`
    pub fn real_dot(&self, y: &Self) -> Result<ExactSum, FieldError> {
        self.check_single([y]);
        let kernel = RealDot { x: self.fermions(), y: y.fermions(), half: int(self.sites()) };
        Ok(self.domain.sum_as(self.form(), &kernel, self.sites())?.sums[0])
    }

    /// `(self, y)`
    pub fn dot(&self, y: &Self) -> Result<Complex64, FieldError> {
        self.check_single([y]);
        let kernel = Dot { x: self.fermions(), y: y.fermions(), half: int(self.sites()) };
        Ok(complex(&self.domain.sum_as(self.form(), &kernel, self.sites())?))
    }

    /// `|self|^2`, which the device may still be making.
    pub fn deferred_norm2(&self) -> Result<Sum, FieldError> {
        self.weighted_norms(0.0, self)
    }

    /// `|self|^2 + weight |y|^2`, which the device may still be making.
    pub fn weighted_norms(&self, weight: f64, y: &Self) -> Result<Sum, FieldError> {
        self.check_single([y]);
        self.weighted_norms_of(0, weight, y)
    }

    /// As [`Spinor::weighted_norms`], of fields number `n`.
    ///
    /// # Panics
    /// There are fewer fields.
    pub fn weighted_norms_of(&self, n: usize, weight: f64, y: &Self) -> Result<Sum, FieldError> {
        self.check(y);
        assert!(n < self.fields.min(y.fields), "field {n}");
        let (x, half) = (self.fermions_of(n), int(self.sites()));
        if weight == 0.0 {
            let sum = self.domain.sum_later_as(self.form(), &Norm2 { x, half }, self.sites())?;
            return Ok(Sum::first(sum));
        }
        let kernel = TwoNorms { x, y: y.fermions_of(n), half };
        Ok(Sum::weighted(self.domain.sum_later_as(self.form(), &kernel, self.sites())?, weight))
    }

    /// The number of reals in the box, of both parities and all slices.
    fn reals(&self) -> usize {
        volume(self.domain.partition().local()) * self.kind.slices() * self.kind.reals()
    }

    /// The file order of one slice.
    fn order(&self, parity: usize, slice: usize) -> Order<'_> {
        let (slice, slices) = (int(slice), int(self.kind.slices()));
        Order { slice, slices, ..order(self.layout(), parity, 1, self.kind.reals()) }
    }

    /// Writes the sites of `parity` into `reals`: `[t][z][y][x][spin][colour][re, im]` of the box. Colour vectors have
    /// no `[spin]`; slices of a fifth dimension follow each other.
    ///
    /// # Panics
    /// The number of reals is not that of the box.
    pub fn write_host(&self, parity: usize, reals: &mut [f64]) -> Result<(), FieldError> {
        let mut natural = self.domain.device().buffer_of(reals)?;
        self.to_natural(parity, &mut natural)?;
        Ok(natural.read(reals)?)
    }

    /// As [`Spinor::write_host`], all sites from a field of even and one of odd ones.
    pub fn write_all([even, odd]: [&Self; 2], reals: &mut [f64]) -> Result<(), FieldError> {
        let mut natural = even.domain.device().buffer(size_of_val(reals))?;
        even.to_natural(EVEN, &mut natural)?;
        odd.to_natural(ODD, &mut natural)?;
        Ok(natural.read(reals)?)
    }

    /// Reads the sites of `parity` from `reals`.
    ///
    /// # Panics
    /// The number of reals is not that of the box.
    pub fn read_host(&mut self, parity: usize, reals: &[f64]) -> Result<(), FieldError> {
        let natural = self.domain.device().buffer_of(reals)?;
        self.of_natural(parity, &natural)?;
        Ok(self.domain.device().synchronize()?)
    }

    /// As [`Spinor::read_host`], all sites into a field of even and one of odd ones.
    pub fn read_all(fields: [&mut Self; 2], reals: &[f64]) -> Result<(), FieldError> {
        let natural = fields[EVEN].domain.device().buffer_of(reals)?;
        Self::read_natural(fields, &natural)
    }

    /// As [`Spinor::read_all`], from device memory.
    pub(crate) fn read_natural([even, odd]: [&mut Self; 2], natural: &Buffer) -> Result<(), FieldError> {
        even.of_natural(EVEN, natural)?;
        odd.of_natural(ODD, natural)?;
        Ok(even.domain.device().synchronize()?)
    }

    fn to_natural(&self, parity: usize, natural: &mut Buffer) -> Result<(), FieldError> {
        assert_eq!(natural.bytes(), 8 * self.reals(), "the reals of the box");
        let slices = self.kind.slices();
        let of_slice = natural.bytes() / slices;
        for slice in 0..slices {
            let natural = natural.output_at(slice * of_slice);
            let kernel = ToNatural { order: self.order(parity, slice), field: self.buffer.input(), natural };
            self.domain.launch_as(self.precision, &kernel, self.layout().half())?;
        }
        Ok(())
    }

    fn of_natural(&mut self, parity: usize, natural: &Buffer) -> Result<(), FieldError> {
        assert_eq!(natural.bytes(), 8 * self.reals(), "the reals of the box");
        let slices = self.kind.slices();
        for slice in 0..slices {
            let layout = self.domain.layout(self.precision);
            let order = order(layout, parity, 1, self.kind.reals());
            let order = Order { slice: int(slice), slices: int(slices), ..order };
            let natural = natural.input_at(slice * (natural.bytes() / slices));
            let kernel = FromNatural { order, field: self.buffer.output(), natural };
            self.domain.launch_as(self.precision, &kernel, layout.half())?;
        }
        Ok(())
    }
}
