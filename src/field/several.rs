//! Several fermion fields, one after the other in memory: access to single ones, and linear algebra with one number per
//! field.

use super::number::{Quotient, number};
use super::{FieldError, Spinor};
use crate::device::kernels::{
    CG_STEPS, CgSteps, Fermions, FieldsAxpy, FieldsAxpyNorm2, FieldsDot, FieldsXpay, In, MAX_SUMS, Out,
    SHIFT_GROUP, SHIFT_NUMBERS, Scale, ShiftSteps as LateSteps, int,
};

/// One shift of [`Spinor::shift_steps`].
pub struct ShiftSteps<'a> {
    /// The solution ([`Precision::of_solution`](crate::device::Precision::of_solution)).
    pub x: &'a mut Spinor,
    /// The direction.
    pub p: &'a mut Spinor,
    /// For each iteration the step along `p`, and the coefficient of `p` in the next direction.
    pub steps: &'a [[f64; 2]],
}

/// `x += a p`, then `p = r + b p`.
struct Step<'a> {
    x: Out<'a, Fermions>,
    a: Quotient<'a>,
    p: Out<'a, Fermions>,
    r: In<'a, Fermions>,
    b: Quotient<'a>,
}

impl Spinor {
    /// Replaces field number `n`.
    pub fn set_field(&mut self, n: usize, field: &Self) -> Result<(), FieldError> {
        self.check(field);
        assert_eq!(field.fields, 1, "one field");
        self.copy_field(n, field, 0)
    }

    /// Copies field number `n` to `field`.
    pub fn field(&self, n: usize, field: &mut Self) -> Result<(), FieldError> {
        self.check(field);
        assert_eq!(field.fields, 1, "one field");
        field.copy_field(0, self, n)
    }

    /// Makes later calls act on the first `fields` of the fields in memory.
    ///
    /// # Panics
    /// There are fewer fields in memory.
    pub fn set_active(&mut self, fields: usize) {
        let room = self.room();
        assert!(fields <= room, "there is memory for {room} fields");
        self.fields = fields;
    }

    /// How many fields there is memory for.
    pub(super) fn room(&self) -> usize {
        self.buffer.bytes() / self.bytes_of_one()
    }

    /// The steps of several iterations of conjugate gradients with many shifts: `x += a p`, then `p = r + b p`, one after
    /// the other with the `residuals` r after each iteration. A shift may have fewer steps.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// There are more steps than residuals, or more residuals than one launch takes.
    pub fn shift_steps(residuals: &[Self], shifts: &mut [ShiftSteps]) -> Result<(), FieldError> {
        let [first, ..] = residuals else { return Ok(()) };
        assert!(residuals.len() <= SHIFT_GROUP, "a group of iterations");
        residuals.iter().for_each(|r| first.check(r));
        for some in shifts.chunks_mut(CG_STEPS) {
            let mut kernel = LateSteps {
                r: [None; SHIFT_GROUP],
                x: [const { None }; CG_STEPS],
                p: [const { None }; CG_STEPS],
                half: int(first.sites()),
                residuals: int(residuals.len()),
                count: int(some.len()),
                steps: [0; CG_STEPS],
                a: [0.0; SHIFT_NUMBERS],
                b: [0.0; SHIFT_NUMBERS],
            };
            for (place, r) in kernel.r.iter_mut().zip(residuals) {
                *place = Some(r.fermions());
            }
            for (n, ShiftSteps { x, p, steps }) in some.iter_mut().enumerate() {
                assert!(steps.len() <= residuals.len(), "a residual for each step");
                x.check_solution(first);
                first.check(p);
                (kernel.x[n], kernel.p[n]) = (Some(x.fermions_mut()), Some(p.fermions_mut()));
                kernel.steps[n] = int(steps.len());
                for (m, [a, b]) in steps.iter().enumerate() {
                    (kernel.a[n * SHIFT_GROUP + m], kernel.b[n * SHIFT_GROUP + m]) = (*a, *b);
                }
            }
            first.domain.launch_as(first.form(), &kernel, first.sites())?;
        }
        Ok(())
    }

    /// The end of a step of conjugate gradients: `self_n += a_n p_n`, then `p_n = r_n + b_n p_n`, unless a number is not
    /// finite. `self` holds the solutions ([`Precision::of_solution`](crate::device::Precision::of_solution)).
    pub fn cg_step_each(
        &mut self,
        a: &[Quotient],
        p: &mut Self,
        r: &Self,
        b: &[Quotient],
    ) -> Result<(), FieldError> {
        self.check_solution(r);
        r.check_several(p);
        assert_eq!([self.fields, a.len(), b.len()], [r.fields; 3], "numbers and a solution per field");
        let (of_x, of_p) = (self.bytes_of_one(), p.bytes_of_one());
        let fields = self.buffer.outputs(of_x).zip(p.buffer.outputs(of_p)).take(r.fields).enumerate();
        let step = |(n, (x, p))| Step { x, a: a[n], p, r: r.fermions_of(n), b: b[n] };
        r.cg_steps(fields.map(step).collect())
    }

    fn cg_steps(&self, steps: Vec<Step>) -> Result<(), FieldError> {
        let mut steps = steps.into_iter().peekable();
        while steps.peek().is_some() {
            let mut kernel = CgSteps {
                r: [None; CG_STEPS],
                x: [const { None }; CG_STEPS],
                p: [const { None }; CG_STEPS],
                half: int(self.sites()),
                count: 0,
                a: [number(0.0); CG_STEPS],
                b: [number(0.0); CG_STEPS],
            };
            for (n, Step { x, a, p, r, b }) in steps.by_ref().take(CG_STEPS).enumerate() {
                (kernel.x[n], kernel.p[n], kernel.r[n]) = (Some(x), Some(p), Some(r));
                (kernel.a[n], kernel.b[n]) = (a.argument()?, b.argument()?);
                kernel.count += 1;
            }
            self.domain.launch_as(self.form(), &kernel, self.sites())?;
        }
        Ok(())
    }

    pub(super) fn check_several(&self, other: &Self) {
        self.check(other);
        assert_eq!(self.fields, other.fields, "as many fields in both");
    }

    /// Copies every field of `other`, which has the same precision.
    pub fn copy_each(&mut self, other: &Self) -> Result<(), FieldError> {
        self.check_several(other);
        Ok(self.buffer.copy_part(0, &other.buffer, 0, self.fields * self.bytes_of_one())?)
    }

    /// `self_n *= a_n` for every field.
    pub fn scale_each(&mut self, a: &[f64]) -> Result<(), FieldError> {
        assert_eq!(a.len(), self.fields, "one number per field");
        let (form, sites, bytes) = (self.form(), self.sites(), self.bytes_of_one());
        a.iter().enumerate().try_for_each(|(n, a)| {
            let kernel = Scale { y: self.buffer.output_at(n * bytes), half: int(sites), a: *a };
            self.domain.launch_as(form, &kernel, sites)
        })
    }

    /// `Re (self_n, y_n)` for every field.
    pub fn dot_each(&self, y: &Self) -> Result<Vec<f64>, FieldError> {
        self.check_several(y);
        let mut all = Vec::with_capacity(self.fields);
        for first in (0..self.fields).step_by(MAX_SUMS) {
            let count = MAX_SUMS.min(self.fields - first);
            let (x, y) = (self.fermions_of(first), y.fermions_of(first));
            let kernel = FieldsDot { x, y, half: int(self.sites()), fields: int(count) };
            let sums = self.domain.sum_as(self.form(), &kernel, self.sites())?.sums;
            all.extend(sums[..count].iter().map(|sum| sum.value()));
        }
        Ok(all)
    }

    /// `self_n += a_n x_n` for every field.
    pub fn axpy_each(&mut self, a: &[f64], x: &Self) -> Result<(), FieldError> {
        self.check_numbers(a, x);
        let (form, sites, bytes) = (self.form(), self.sites(), self.bytes_of_one());
        for (n, some) in a.chunks(MAX_SUMS).enumerate() {
            let (y, x) = (self.buffer.output_at(n * MAX_SUMS * bytes), x.fermions_of(n * MAX_SUMS));
            let kernel = FieldsAxpy { y, x, half: int(sites), fields: int(some.len()), a: filled(some) };
            self.domain.launch_as(form, &kernel, sites)?;
        }
        Ok(())
    }

    /// `self_n = x_n + a_n self_n` for every field.
    pub fn xpay_each(&mut self, x: &Self, a: &[f64]) -> Result<(), FieldError> {
        self.check_numbers(a, x);
        let (form, sites, bytes) = (self.form(), self.sites(), self.bytes_of_one());
        for (n, some) in a.chunks(MAX_SUMS).enumerate() {
            let (y, x) = (self.buffer.output_at(n * MAX_SUMS * bytes), x.fermions_of(n * MAX_SUMS));
            let kernel = FieldsXpay { y, x, half: int(sites), fields: int(some.len()), a: filled(some) };
            self.domain.launch_as(form, &kernel, sites)?;
        }
        Ok(())
    }

    fn check_numbers(&self, a: &[f64], x: &Self) {
        self.check_several(x);
        assert_eq!(a.len(), self.fields, "one number per field");
    }

    /// `self_n += a_n x_n`; returns `|self_n|^2` for every field.
    pub fn axpy_norm2_each(&mut self, a: &[f64], x: &Self) -> Result<Vec<f64>, FieldError> {
        self.check_numbers(a, x);
        let (form, sites, bytes) = (self.form(), self.sites(), self.bytes_of_one());
        let mut all = Vec::with_capacity(self.fields);
        for (n, some) in a.chunks(MAX_SUMS).enumerate() {
            let (y, x) = (self.buffer.output_at(n * MAX_SUMS * bytes), x.fermions_of(n * MAX_SUMS));
            let fields = int(some.len());
            let kernel = FieldsAxpyNorm2 { y, x, half: int(sites), fields, a: filled(some) };
            let sums = self.domain.sum_as(form, &kernel, sites)?.sums;
            all.extend(sums[..some.len()].iter().map(|sum| sum.value()));
        }
        Ok(all)
    }
}

/// The numbers of a launch, padded to the length that kernels take.
fn filled(numbers: &[f64]) -> [f64; MAX_SUMS] {
    std::array::from_fn(|n| numbers.get(n).copied().unwrap_or_default())
}
