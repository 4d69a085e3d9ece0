//! Several fermion fields one behind the other: in and out of them, and linear algebra with a number for each.

use super::{FieldError, Spinor};
use crate::device::{BlasArgs, CgArgs, Pointer};

/// Fields that a kernel on several takes at once.
const GROUP: usize = 4;
/// Steps that a kernel takes at once.
const STEPS: usize = 16;

/// One shift of [`Spinor::shift_steps`].
pub struct ShiftStep<'a> {
    /// Its solution ([`Precision::of_solution`](crate::device::Precision::of_solution)).
    pub x: &'a mut Spinor,
    /// The step along `p`.
    pub a: f64,
    /// Its direction.
    pub p: &'a mut Spinor,
    /// The part of `p` in the next direction.
    pub b: f64,
}

/// `x += a p`, then `p = r + b p`.
struct Step {
    x: Pointer,
    a: f64,
    p: Pointer,
    r: Pointer,
    b: f64,
}

impl Spinor {
    /// Replaces field number `n`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn set_field(&mut self, n: usize, field: &Self) -> Result<(), FieldError> {
        self.check(field);
        let bytes = self.bytes_of_one();
        assert!(
            field.fields == 1 && (n + 1) * bytes <= self.buffer.bytes(),
            "one field, in the room there is"
        );
        Ok(self.buffer.copy_part(n * bytes, &field.buffer, 0, bytes)?)
    }

    /// Copies field number `n` out.
    ///
    /// # Errors
    /// The device is lost.
    pub fn field(&self, n: usize, field: &mut Self) -> Result<(), FieldError> {
        self.check(field);
        let bytes = self.bytes_of_one();
        assert!(
            field.fields == 1 && (n + 1) * bytes <= self.buffer.bytes(),
            "one field, in the room there is"
        );
        Ok(field.buffer.copy_part(0, &self.buffer, n * bytes, bytes)?)
    }

    /// Lets what follows act on the first `fields` of those that there is room for.
    ///
    /// # Panics
    /// There is not as much room.
    pub fn set_active(&mut self, fields: usize) {
        let room = self.buffer.bytes() / self.bytes_of_one();
        assert!(fields <= room, "there is room for {room} fields");
        self.fields = fields;
    }

    /// The end of a step of conjugate gradients with shifts: for each of them `x += a p`, then `p = self + b p`.
    ///
    /// # Errors
    /// The device is lost.
    pub fn shift_steps(&self, steps: &mut [ShiftStep]) -> Result<(), FieldError> {
        let step = |ShiftStep { x, a, p, b }: &mut ShiftStep| {
            x.check_solution(self);
            self.check(p);
            Step { x: x.pointer(), a: *a, p: p.pointer(), r: self.pointer(), b: *b }
        };
        self.cg_steps(&steps.iter_mut().map(step).collect::<Vec<_>>())
    }

    /// The end of a step of conjugate gradients: `self_n += a_n p_n`, then `p_n = r_n + b_n p_n`. `self` are solutions
    /// ([`Precision::of_solution`](crate::device::Precision::of_solution)).
    ///
    /// # Errors
    /// The device is lost.
    pub fn cg_step_each(&mut self, a: &[f64], p: &mut Self, r: &Self, b: &[f64]) -> Result<(), FieldError> {
        self.check_solution(r);
        r.check_several(p);
        assert_eq!([self.fields, a.len(), b.len()], [r.fields; 3], "numbers and a solution for each field");
        let step = |n: usize| Step {
            x: self.pointer_of(n),
            a: a[n],
            p: p.pointer_of(n),
            r: r.pointer_of(n),
            b: b[n],
        };
        r.cg_steps(&(0..r.fields).map(step).collect::<Vec<_>>())
    }

    fn cg_steps(&self, steps: &[Step]) -> Result<(), FieldError> {
        for some in steps.chunks(STEPS) {
            let mut args =
                CgArgs { half: self.sites() as i32, count: some.len() as i32, ..Default::default() };
            for (n, step) in some.iter().enumerate() {
                (args.x[n], args.p[n], args.r[n]) = (step.x, step.p, step.r);
                (args.a[n], args.b[n]) = (step.a, step.b);
            }
            self.domain.launch(&self.own("cg_steps"), self.precision, &args, self.sites())?;
        }
        Ok(())
    }

    /// Arguments of the kernels on several fields, from field `first` on, with a number each.
    fn group(&self, first: usize, numbers: &[f64]) -> BlasArgs {
        let number = |n: usize| numbers.get(n).copied().unwrap_or_default();
        BlasArgs {
            y: self.pointer_of(first),
            half: self.sites() as i32,
            fields: numbers.len() as i32,
            a: number(0),
            b: number(1),
            c: number(2),
            d: number(3),
            ..Default::default()
        }
    }

    fn check_several(&self, other: &Self) {
        self.check(other);
        assert_eq!(self.fields, other.fields, "as many fields in both");
    }

    /// Replaces the content of every field, in the same precision.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_each(&mut self, other: &Self) -> Result<(), FieldError> {
        self.check_several(other);
        Ok(self.buffer.copy_part(0, &other.buffer, 0, self.fields * self.bytes_of_one())?)
    }

    /// `Re (self_n, y_n)` of every field.
    ///
    /// # Errors
    /// The device is lost.
    pub fn dot_each(&self, y: &Self) -> Result<Vec<f64>, FieldError> {
        self.check_several(y);
        let mut all = Vec::with_capacity(self.fields);
        for first in (0..self.fields).step_by(GROUP) {
            let count = GROUP.min(self.fields - first);
            let args = BlasArgs { x: self.pointer_of(first), ..y.group(first, &vec![0.0; count]) };
            let sums = self.sum(&self.own("fields_dot"), &args)?.sums;
            all.extend(sums[..count].iter().map(|sum| sum.value()));
        }
        Ok(all)
    }

    /// `self_n += a_n x_n` of every field.
    ///
    /// # Errors
    /// The device is lost.
    pub fn axpy_each(&mut self, a: &[f64], x: &Self) -> Result<(), FieldError> {
        self.on_each("fields_axpy", a, x)
    }

    /// `self_n = x_n + a_n self_n` of every field.
    ///
    /// # Errors
    /// The device is lost.
    pub fn xpay_each(&mut self, x: &Self, a: &[f64]) -> Result<(), FieldError> {
        self.on_each("fields_xpay", a, x)
    }

    fn on_each(&mut self, kernel: &str, a: &[f64], x: &Self) -> Result<(), FieldError> {
        self.check_several(x);
        assert_eq!(a.len(), self.fields, "a number for each field");
        for (n, some) in a.chunks(GROUP).enumerate() {
            let args = BlasArgs { x: x.pointer_of(n * GROUP), ..self.group(n * GROUP, some) };
            self.launch(&self.own(kernel), self.precision, &args)?;
        }
        Ok(())
    }

    /// `self_n += a_n x_n`; returns `|self_n|^2` of every field.
    ///
    /// # Errors
    /// The device is lost.
    pub fn axpy_norm2_each(&mut self, a: &[f64], x: &Self) -> Result<Vec<f64>, FieldError> {
        self.check_several(x);
        assert_eq!(a.len(), self.fields, "a number for each field");
        let mut all = Vec::with_capacity(self.fields);
        for (n, some) in a.chunks(GROUP).enumerate() {
            let args = BlasArgs { x: x.pointer_of(n * GROUP), ..self.group(n * GROUP, some) };
            let sums = self.sum(&self.own("fields_axpy_norm2"), &args)?.sums;
            all.extend(sums[..some.len()].iter().map(|sum| sum.value()));
        }
        Ok(all)
    }
}
