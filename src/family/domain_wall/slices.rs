//! Matrices and vectors in the fifth dimension, in the form of `kernels/domain_wall.cuh`.

use crate::device::kernels::{
    MOST_SLICES, SliceMatrix as Apply, SliceMatrixOfHops, SliceReflect, WALL_COEFFICIENTS, Wall, int,
};
use crate::device::{Buffer, Precision};
use crate::field::{Dagger, Domain, FieldError, Kind, Spinor};
use crate::math::{SliceMatrix, single};
use crate::operator::{Way, WilsonLinks, table, team, teams};
use std::sync::Arc;

/// A matrix on slices for each chirality, in one precision.
pub struct OnSlices {
    precision: Precision,
    slices: usize,
    reversed: i32,
    /// In double precision.
    table: Option<Buffer>,
    coefficients: [f32; WALL_COEFFICIENTS],
}

impl OnSlices {
    /// The matrices of the upper and the lower chirality.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// They are on different numbers of slices, or on more than 48.
    pub fn new(
        domain: &Domain,
        precision: Precision,
        matrices: &[SliceMatrix; 2],
    ) -> Result<Self, FieldError> {
        let [upper, lower] = [0, 1].map(|n| matrices[n].slices());
        assert!(upper == lower && upper <= MOST_SLICES, "matrices on {upper} and {lower} slices");
        let reals: Vec<f64> = matrices.iter().flat_map(SliceMatrix::coefficients).collect();
        let mut coefficients = [0.0; WALL_COEFFICIENTS];
        coefficients.iter_mut().zip(&reals).for_each(|(to, real)| *to = single(*real));
        let is_double = precision == Precision::Double;
        Ok(Self {
            precision,
            slices: matrices[0].slices(),
            reversed: matrices.iter().zip([1, 2]).map(|(m, bit)| if m.reversed { bit } else { 0 }).sum(),
            table: is_double.then(|| table(domain, precision, &reals)).transpose()?,
            coefficients,
        })
    }

    /// `out = scale T input + shift x`
    ///
    /// # Panics
    /// The fields have other slices or another precision.
    pub fn apply(
        &self,
        out: &mut Spinor,
        input: &Spinor,
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        let domain = Arc::clone(input.domain());
        let (count, team) =
            (teams(input.layout().half(), input.fields()), team(&domain, self.precision, self.slices));
        let kernel = Apply { wall: self.wall(out, input, scale, shifted), input: input.fermions() };
        domain.launch_teams(self.precision, &kernel, count, team)
    }

    /// `out = scale T D input + shift x` on sites of `parity`, where D is the hopping term of `links`.
    pub(super) fn apply_after_hop(
        &self,
        links: &mut WilsonLinks,
        out: &mut Spinor,
        input: &Spinor,
        (parity, dagger): (usize, Dagger),
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        let (slices, fields) = (self.slices, input.fields());
        let (domain, precision) = (Arc::clone(links.domain()), self.precision);
        let (form, team) = ((precision, links.reals()), team(&domain, precision, slices));
        links.cover(input, parity, Way::all(dagger), |hop| {
            let count = teams(hop.places.number(), fields);
            let wall = self.wall(out, input, scale, shifted);
            domain.launch_teams(form, &SliceMatrixOfHops { wall, hop }, count, team)
        })
    }

    /// `out = scale T (..) + shift x`, where (..) comes from `input`.
    fn wall<'a>(
        &'a self,
        out: &'a mut Spinor,
        input: &Spinor,
        scale: f64,
        shifted: Option<(f64, &'a Spinor)>,
    ) -> Wall<'a> {
        let own = (self.precision, Kind::Wall(self.slices), input.fields());
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!(
            [Some(&*out), Some(input), shifted.map(|(_, x)| x)].into_iter().flatten().all(fit),
            "fields of {} slices in {}, as many in as out",
            self.slices,
            self.precision
        );
        let x = shifted.map(|(_, x)| x);
        input.domain().check([Some(&*out), x].into_iter().flatten().map(Spinor::domain));
        Wall {
            half: int(input.layout().half()),
            out: out.fermions_mut(),
            x: x.map(Spinor::fermions),
            table: self.table.as_ref().map(Buffer::input),
            coefficients: self.coefficients,
            slices: int(self.slices),
            reversed: self.reversed,
            fields: int(input.fields()),
            scale,
            shift: shifted.map_or(0.0, |(shift, _)| shift),
        }
    }
}

/// `out = scale gamma_5 R input`, where R reflects the fifth dimension; in double precision.
///
/// # Panics
/// The fields are not single ones of one kind in double precision.
pub fn reflect(out: &mut Spinor, input: &Spinor, scale: f64) -> Result<(), FieldError> {
    let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
    assert_eq!([of(out), of(input)], [(Precision::Double, input.kind(), 1); 2], "single fields in double");
    assert_eq!(input.kind().reals(), Kind::Dirac.reals(), "fields of Dirac spinors");
    let (domain, slices) = (input.domain(), input.kind().slices());
    domain.check([out.domain()]);
    let (out, input, half) = (out.fermions_mut(), input.fermions(), int(domain.half()));
    let kernel = SliceReflect { out, input, half, slices: int(slices), scale };
    domain.launch(&kernel, domain.half() * slices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::TwoTerms;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn refused<T>(work: impl FnOnce() -> T) {
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    }

    #[test]
    fn tables_are_as_long_as_kernels_read_them() {
        let domain = Domain::local([4; 4]).unwrap();
        let matrix = |chirality, slices| {
            let (p, q) = (vec![1.0; slices], vec![0.5; slices]);
            let terms = TwoTerms { p: &p, q: &q };
            SliceMatrix::quotient(chirality, terms, terms, 0.1)
        };
        let new = |slices: [usize; 2]| {
            OnSlices::new(&domain, Precision::Double, &[matrix(0, slices[0]), matrix(1, slices[1])])
        };
        assert!(new([4, 4]).is_ok());
        refused(|| new([4, 2]));
        refused(|| new([64, 64]));
        let colour = || Spinor::colour(&domain, Precision::Double).unwrap();
        refused(|| reflect(&mut colour(), &colour(), 1.0));
    }
}
