//! Dirac spinors and fields of several slices.

use crate::device::kernels::{SliceSpread, SliceSum, int};
use crate::device::{Buffer, Precision};
use crate::field::{Domain, FieldError, Kind, Spinor};

/// One number per slice and chirality, between Dirac spinors and fields of several slices; in double precision.
pub struct SliceVector {
    slices: usize,
    table: Buffer,
}

impl SliceVector {
    /// The numbers of the upper and the lower chirality.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// More numbers for one than for the other.
    pub fn new(domain: &Domain, numbers: [&[f64]; 2]) -> Result<Self, FieldError> {
        assert_eq!(numbers[0].len(), numbers[1].len(), "a number of each slice");
        let table = domain.device().buffer_of(&numbers.concat())?;
        Ok(Self { slices: numbers[0].len(), table })
    }

    /// `out = sum_s c_s input_s`
    pub fn sum(&self, out: &mut Spinor, input: &Spinor) -> Result<(), FieldError> {
        self.check(input, out);
        let (domain, slices) = (input.domain(), int(self.slices));
        let (out, input, table) = (out.fermions_mut(), input.fermions(), self.table.input());
        domain.launch(&SliceSum { out, input, table, half: int(domain.half()), slices }, domain.half())
    }

    /// `out_s = c_s input`
    pub fn spread(&self, out: &mut Spinor, input: &Spinor) -> Result<(), FieldError> {
        self.check(out, input);
        let (domain, slices) = (input.domain(), int(self.slices));
        let (out, input, table) = (out.fermions_mut(), input.fermions(), self.table.input());
        domain.launch(&SliceSpread { out, input, table, half: int(domain.half()), slices }, domain.half())
    }

    fn check(&self, wall: &Spinor, dirac: &Spinor) {
        let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
        assert_eq!(
            [of(wall), of(dirac)],
            [Kind::Wall(self.slices), Kind::Dirac].map(|kind| (Precision::Double, kind, 1)),
            "single fields in double, one of several slices"
        );
        wall.domain().check([dirac.domain()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic = "a number of each slice"]
    fn both_chiralities_have_the_same_slices() {
        let _ = SliceVector::new(&Domain::local([4; 4]).unwrap(), [&[1.0; 4], &[1.0; 2]]);
    }
}
