//! The operator D of improved staggered quarks, of `kernels/staggered.cuh`, on links of its own:
//!
//! ```text
//! D chi(x) = sum_mu eta_mu(x) { X_mu(x) chi(x+mu) - X_mu(x-mu)^dag chi(x-mu)
//!                             + N_mu(x) chi(x+3mu) - N_mu(x-3mu)^dag chi(x-3mu) },   M = 2m + D,
//! ```
//!
//! `eta_t = 1, eta_x = (-1)^t, eta_y = (-1)^(t+x), eta_z = (-1)^(t+x+y)`: MILC's phases and normalisation (Naik, Nucl.
//! Phys. B 316 (1989) 238; Orginos, Toussaint, Sugar, hep-lat/9903032). D is antihermitian and couples even to odd sites, so
//! `M^dag M = 4 m^2 - D_eo D_oe` on even ones. As an [`Operator`] it is `D_oe`, from even to odd sites, and its adjoint
//! `-D_eo` back: the solvers' `M^dag M + s` is `s - D_eo D_oe`, with masses as shifts.

use crate::device::{Buffer, LinkArgs, Pointer, Precision, StaggeredArgs, StaggeredImportArgs};
use crate::field::{Domain, EVEN, FaceReals, FaceSource, Faces, FieldError, Kind, MatrixField, ODD, Spinor};
use crate::operator::{Operator, regions};
use std::sync::Arc;

/// Layers of a neighbour's sites that D reaches.
pub const REACH: usize = 3;

/// The operator, in one precision, on so many colour vectors at once.
pub struct Staggered {
    domain: Arc<Domain>,
    precision: Precision,
    long_reals: usize,
    /// As an [`Operator`] it acts on fields of these sites.
    from: usize,
    fat: [Buffer; 2],
    long: [Buffer; 2],
    /// The ninth reals of long links of nine.
    ninth: Option<[Buffer; 2]>,
    phases: Buffer,
    /// In which the stored fat links are given: 1, or the greatest real of any where integers hold them.
    fat_unit: f64,
    naik: f64,
    faces: Faces,
    interior: [Buffer; 2],
    boundary: [Buffer; 2],
    interior_sites: usize,
}

/// Phases of the boundary as kernels take them: for each direction, of a hop that passes it 0 to 3 times.
///
/// # Errors
/// No room.
pub fn boundary_phases(domain: &Domain, boundary: [f64; 4]) -> Result<Buffer, FieldError> {
    let phase = |angle: f64| match angle.rem_euclid(2.0) {
        // Whole multiples of pi are exact signs.
        0.0 => [1.0, 0.0],
        1.0 => [-1.0, 0.0],
        _ => [(std::f64::consts::PI * angle).cos(), (std::f64::consts::PI * angle).sin()],
    };
    let table: Vec<f64> = boundary
        .into_iter()
        .flat_map(|theta| (0..4).flat_map(move |passes| phase(f64::from(passes) * theta)))
        .collect();
    Ok(domain.device().buffer_of(&table)?)
}

/// The choices with which GPUs compile the operator for `fields` colour vectors.
pub fn staggered_choices(fields: usize) -> String {
    format!("FIELDS={fields} EACH={}", each(fields, false))
}

/// Colour vectors that share a link in registers.
fn each(fields: usize, host: bool) -> usize {
    match fields {
        1 => 1,
        _ if host => 4,
        _ if fields.is_multiple_of(4) => 4,
        _ if fields.is_multiple_of(2) => 2,
        _ => 1,
    }
}

impl Staggered {
    /// Room for long links of `long_reals` (18, 14 or 9), and `fields` colour vectors at once. `boundary`: a phase a
    /// direction, in units of pi.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// A lane's box is thinner than [`REACH`] where it is cut.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        long_reals: usize,
        fields: usize,
        boundary: [f64; 4],
    ) -> Result<Self, FieldError> {
        let (device, outer) = (domain.device(), domain.geometry().outer);
        assert!(
            domain.cut_directions().all(|mu| outer[mu] as usize >= REACH),
            "a box of {outer:?} is thinner than {REACH} layers"
        );
        let sites = domain.half() * domain.lanes().count();
        let room = |reals: usize| -> Result<[Buffer; 2], FieldError> {
            let bytes = sites * precision.stored(4 * reals, 0);
            Ok([device.buffer(bytes)?, device.buffer(bytes)?])
        };
        let (even, odd) = (regions(domain, EVEN, REACH), regions(domain, ODD, REACH));
        let nine = long_reals == 9;
        Ok(Self {
            domain: Arc::clone(domain),
            precision,
            long_reals,
            from: EVEN,
            fat: room(18)?,
            long: room(if nine { 8 } else { long_reals })?,
            ninth: if nine { Some(room(1)?) } else { None },
            phases: boundary_phases(domain, boundary)?,
            fat_unit: 1.0,
            naik: 0.0,
            faces: Faces::new(domain, precision, fields, FaceReals { forward: 18, backward: 24 })?,
            interior_sites: even.0.len(),
            interior: [device.buffer_of(&even.0)?, device.buffer_of(&odd.0)?],
            boundary: [device.buffer_of(&even.1)?, device.buffer_of(&odd.1)?],
        })
    }

    /// Takes over fat links X, and long links: `naik` times the unitary `long`. All without signs and phases.
    ///
    /// # Errors
    /// The device is lost.
    pub fn update(&mut self, fat: &MatrixField, long: &MatrixField, naik: f64) -> Result<(), FieldError> {
        let domain = Arc::clone(&self.domain);
        self.naik = naik;
        if self.precision == Precision::Half {
            let args = LinkArgs { g: domain.geometry(), links: fat.pointer(), ..Default::default() };
            let greatest = domain.sum("greatest_real", Precision::Double, &args, 2 * domain.half())?.max;
            // With a phase that is no sign, both parts of an element may meet in one. What is no number stays one.
            self.fat_unit = if greatest == 0.0 { 1.0 } else { greatest * std::f64::consts::SQRT_2 };
        }
        for parity in [EVEN, ODD] {
            let args = |links: &MatrixField, out: &Buffer| StaggeredImportArgs {
                g: domain.geometry(),
                links: links.pointer(),
                out: out.pointer(),
                ninth: self.ninth.as_ref().map(|ninth| ninth[parity].pointer()).unwrap_or_default(),
                phases: self.phases.pointer(),
                parity: parity as i32,
                pad: 0,
                scale: 1.0 / self.fat_unit,
            };
            let launch = |kernel: &str, args: StaggeredImportArgs| {
                domain.launch(kernel, self.precision, &args, domain.half())
            };
            launch("import_fat", args(fat, &self.fat[parity]))?;
            launch(&format!("import_long_{}", self.long_reals), args(long, &self.long[parity]))?;
        }
        Ok(())
    }

    /// Lets it act as an [`Operator`] on fields of `parity`: it is D from there to the other sites. At first those are
    /// the even ones.
    pub fn act_on(&mut self, parity: usize) {
        self.from = parity;
    }

    /// The phases, for the force.
    pub fn phases(&self) -> Pointer {
        self.phases.pointer()
    }

    /// `out = scale D input + shift x` on sites of `parity`, `input` on the others; x of `parity`. As many colour vectors
    /// as the fields hold.
    ///
    /// # Errors
    /// The device is lost.
    pub fn hop(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        let fields = input.fields();
        let fit =
            |s: &Spinor| (s.precision(), s.kind(), s.fields()) == (self.precision, Kind::Colour, fields);
        assert!(
            [Some(&*out), Some(input), shifted.map(|(_, x)| x)].into_iter().flatten().all(fit),
            "colour vectors in the operator's precision, as many in as out"
        );
        let domain = Arc::clone(&self.domain);
        let half = domain.half();
        let each = each(fields, domain.device().backend().is_host());
        let name = format!("staggered_hop_{} FIELDS={fields} EACH={each}", self.long_reals);
        let ninth = |parity: usize| self.ninth.as_ref().map(|n| n[parity].pointer()).unwrap_or_default();
        let args = StaggeredArgs {
            g: domain.geometry(),
            out: out.pointer(),
            input: input.pointer(),
            x: shifted.map(|(_, x)| x.pointer()).unwrap_or_default(),
            fat_out: self.fat[parity].pointer(),
            fat_in: self.fat[1 - parity].pointer(),
            long_out: self.long[parity].pointer(),
            long_in: self.long[1 - parity].pointer(),
            ninth_out: ninth(parity),
            ninth_in: ninth(1 - parity),
            ghost: [Pointer::default(); 8],
            sites: Pointer::default(),
            parity: parity as i32,
            ghost_mask: self.faces.mask(),
            fields: fields as i32,
            each: each as i32,
            count: half as i32,
            pad: 0,
            fat_scale: scale * self.fat_unit,
            long_scale: scale * self.naik,
            shift: shifted.map_or(0.0, |(shift, _)| shift),
        };
        let groups = fields.div_ceil(each);
        if self.faces.mask() == 0 {
            return domain.launch(&name, self.precision, &args, half * groups);
        }
        let source = FaceSource {
            kernel: &format!("staggered_face_{}", self.long_reals),
            input: input.pointer(),
            parity: 1 - parity,
            links: self.fat[1 - parity].pointer(),
            long_links: [self.long[1 - parity].pointer(), ninth(1 - parity)],
            ..Default::default()
        };
        let (precision, interior) = (self.precision, self.interior_sites);
        let inner = StaggeredArgs { sites: self.interior[parity].pointer(), count: interior as i32, ..args };
        self.faces.exchange(source, fields, || domain.launch(&name, precision, &inner, interior * groups))?;
        let rest = half - interior;
        let sites = self.boundary[parity].pointer();
        let outer = StaggeredArgs { sites, ghost: self.faces.ghosts(), count: rest as i32, ..args };
        domain.launch(&name, self.precision, &outer, rest * groups)
    }
}

impl Operator for Staggered {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        let (to, sign) = if dagger { (self.from, -1.0) } else { (1 - self.from, 1.0) };
        self.hop(out, x, to, sign, None)
    }

    fn apply_adjoint_plus(
        &mut self,
        out: &mut Spinor,
        x: &Spinor,
        shift: f64,
        y: &Spinor,
    ) -> Result<(), FieldError> {
        self.hop(out, x, self.from, -1.0, (shift != 0.0).then_some((shift, y)))
    }
}
