//! Matrices and vectors on the fifth dimension, as `kernels/domain_wall.cuh` takes them.

use crate::device::{Buffer, Pointer, Precision, Teams, WallArgs, WallHopArgs};
use crate::field::{Domain, FieldError, Kind, Spinor};
use crate::math::SliceMatrix;
use crate::operator::{HopKind, USUAL_SLICES, Way, WilsonLinks, choices, table};
use std::sync::Arc;

/// Sites of a team, and reals that it shares for each slice, as in `kernels/domain_wall.cuh`.
const TEAM_SITES: usize = 16;
const TEAM_REALS: usize = 25 * TEAM_SITES;
/// Threads of their teams.
pub const USUAL_THREADS: usize = TEAM_SITES * USUAL_SLICES;

/// The choices with which GPUs compile a matrix on slices, one of each order.
pub fn slice_choices() -> Vec<String> {
    [1, 2].map(|reversed| format!("SLICES={USUAL_SLICES} {}", order(reversed))).into()
}

/// The same of a matrix on slices of the hopping term.
pub fn slice_hop_choices() -> Vec<String> {
    let hop = choices(HopKind::Plain, Way::default(), USUAL_SLICES, USUAL_SLICES);
    [1, 2].map(|reversed| format!("{hop} {}", order(reversed))).into()
}

fn order(reversed: i32) -> String {
    format!("REVERSED={reversed}")
}

/// The teams that cover so many sites of all slices in so many fields.
fn teams(domain: &Domain, precision: Precision, slices: usize, sites: usize, fields: usize) -> Teams {
    Teams {
        count: sites.div_ceil(TEAM_SITES) * fields,
        threads: TEAM_SITES * slices,
        shared: slices * TEAM_REALS * precision.bytes() * domain.lanes().count(),
    }
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
        let domain = input.domain();
        let args = self.args(out, input, scale, shifted);
        let name = format!("slice_matrix SLICES={} {}", self.slices, self.order());
        let teams = teams(domain, self.precision, self.slices, domain.half(), input.fields());
        domain.launch_teams(&name, self.precision, &args, teams)
    }

    /// `out = scale T D input + shift x` on sites of `parity`, D the hopping term of `links`.
    ///
    /// # Errors
    /// The device is lost.
    pub(super) fn apply_after_hop(
        &self,
        links: &mut WilsonLinks,
        out: &mut Spinor,
        input: &Spinor,
        (parity, dagger): (usize, bool),
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        let (slices, fields) = (self.slices, input.fields());
        let (domain, precision) = (Arc::clone(links.domain()), self.precision);
        let way = Way { dagger, blocked: false };
        let hop = choices(HopKind::Plain, way, fields * slices, slices);
        let name = format!("slice_matrix_of_hops_{} {hop} {}", links.reals(), self.order());
        let wall = self.args(out, input, scale, shifted);
        links.cover(links.args(input, parity, way), |hop| {
            let teams = teams(&domain, precision, slices, hop.count as usize, fields);
            domain.launch_teams(&name, precision, &WallHopArgs { hop: *hop, wall }, teams)
        })
    }

    /// The arguments of `out = scale T input + shift x`.
    fn args(
        &self,
        out: &mut Spinor,
        input: &Spinor,
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> WallArgs {
        let own = (self.precision, Kind::Wall(self.slices), input.fields());
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!(
            [Some(&*out), Some(input), shifted.map(|(_, x)| x)].into_iter().flatten().all(fit),
            "fields of {} slices in {}, as many in as out",
            self.slices,
            self.precision
        );
        WallArgs {
            x: shifted.map(|(_, x)| x.pointer()).unwrap_or_default(),
            scale,
            shift: shifted.map_or(0.0, |(shift, _)| shift),
            reversed: self.reversed,
            fields: input.fields() as i32,
            ..args(input.domain(), self.slices, out, input, self.table.pointer())
        }
    }

    /// The choice of the order along the slices.
    fn order(&self) -> String {
        order(self.reversed)
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
