//! Matrices and vectors on the fifth dimension, as `kernels/domain_wall.cuh` takes them.

use super::hopping::table;
use crate::device::{Buffer, Pointer, Precision, WallArgs};
use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::math::SliceMatrix;

/// The choices with which GPUs compile a matrix on slices, one of each order.
pub fn slice_choices() -> Vec<String> {
    [1, 2].map(|reversed| choices(16, reversed)).into()
}

fn choices(slices: usize, reversed: i32) -> String {
    format!("SLICES={slices} REVERSED={reversed}")
}

/// A matrix on slices for each chirality, in one precision.
pub struct OnSlices {
    precision: Precision,
    slices: usize,
    reversed: i32,
    table: Buffer,
}

impl OnSlices {
    /// The matrices of the upper and the lower chirality.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Domain,
        precision: Precision,
        matrices: &[SliceMatrix; 2],
    ) -> Result<Self, FieldError> {
        let reals: Vec<f64> = matrices.iter().flat_map(SliceMatrix::coefficients).collect();
        Ok(Self {
            precision,
            slices: matrices[0].slices(),
            reversed: matrices.iter().zip([1, 2]).map(|(m, bit)| if m.reversed { bit } else { 0 }).sum(),
            table: table(domain, precision, &reals)?,
        })
    }

    /// `out = scale T input + shift x`
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Panics
    /// The fields are not of these slices in this precision.
    pub fn apply(
        &self,
        out: &mut Spinor,
        input: &Spinor,
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        let fields = input.fields();
        let own = (self.precision, Kind::Wall(self.slices), fields);
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!(
            [Some(&*out), Some(input), shifted.map(|(_, x)| x)].into_iter().flatten().all(fit),
            "fields of {} slices in {}, as many in as out",
            self.slices,
            self.precision
        );
        let domain = input.domain();
        let args = WallArgs {
            x: shifted.map(|(_, x)| x.pointer()).unwrap_or_default(),
            scale,
            shift: shifted.map_or(0.0, |(shift, _)| shift),
            reversed: self.reversed,
            ..args(domain, self.slices, out, input, self.table.pointer())
        };
        // Threads that share a spinor: as in the kernel.
        let parts = if domain.device().backend().is_host() { 1 } else { 24 * self.precision.bytes() / 16 };
        let name = format!("slice_matrix {}", choices(self.slices, self.reversed));
        domain.launch(&name, self.precision, &args, domain.half() * parts * fields)
    }
}

/// A number for each slice and chirality, between Dirac spinors and fields with a fifth dimension; in double.
pub struct SliceVector {
    slices: usize,
    table: Buffer,
}

impl SliceVector {
    /// The numbers of the upper and the lower chirality.
    ///
    /// # Errors
    /// No room.
    pub fn new(domain: &Domain, numbers: [&[f64]; 2]) -> Result<Self, FieldError> {
        let table = domain.device().buffer_of(&numbers.concat())?;
        Ok(Self { slices: numbers[0].len(), table })
    }

    /// `out = sum_s c_s input_s`
    ///
    /// # Errors
    /// The device is lost.
    pub fn sum(&self, out: &mut Spinor, input: &Spinor) -> Result<(), FieldError> {
        self.check(input, out);
        let args = args(input.domain(), self.slices, out, input, self.table.pointer());
        input.domain().launch("slice_sum", Precision::Double, &args, input.domain().half())
    }

    /// `out_s = c_s input`
    ///
    /// # Errors
    /// The device is lost.
    pub fn spread(&self, out: &mut Spinor, input: &Spinor) -> Result<(), FieldError> {
        self.check(out, input);
        let args = args(input.domain(), self.slices, out, input, self.table.pointer());
        input.domain().launch("slice_spread", Precision::Double, &args, input.domain().half())
    }

    fn check(&self, wall: &Spinor, dirac: &Spinor) {
        let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
        assert_eq!(
            [of(wall), of(dirac)],
            [Kind::Wall(self.slices), Kind::Dirac].map(|kind| (Precision::Double, kind, 1)),
            "single fields in double, one with a fifth dimension"
        );
    }
}

/// `out = scale gamma_5 R input`, R the reflection of the fifth dimension; in double.
///
/// # Errors
/// The device is lost.
pub fn reflect(out: &mut Spinor, input: &Spinor, scale: f64) -> Result<(), FieldError> {
    let slices = input.kind().slices();
    let args = WallArgs { scale, ..args(input.domain(), slices, out, input, Pointer::default()) };
    input.domain().launch("slice_reflect", Precision::Double, &args, input.domain().half() * slices)
}

fn args(domain: &Domain, slices: usize, out: &Spinor, input: &Spinor, table: Pointer) -> WallArgs {
    WallArgs {
        out: out.pointer(),
        input: input.pointer(),
        table,
        half: domain.half() as i32,
        slices: slices as i32,
        ..Default::default()
    }
}
