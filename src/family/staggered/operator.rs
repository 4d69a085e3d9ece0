//! The operator D of improved staggered quarks (`kernels/staggered.cuh`), with its own copy of the links:
//!
//! ```text
//! D chi(x) = sum_mu eta_mu(x) { X_mu(x) chi(x+mu) - X_mu(x-mu)^dag chi(x-mu)
//!                             + N_mu(x) chi(x+3mu) - N_mu(x-3mu)^dag chi(x-3mu) },   M = 2m + D,
//! ```
//!
//! `eta_t = 1, eta_x = (-1)^t, eta_y = (-1)^(t+x), eta_z = (-1)^(t+x+y)`: MILC's phases and normalisation (Naik, Nucl.
//! Phys. B 316 (1989) 238; Orginos, Toussaint, Sugar, hep-lat/9903032). D is antihermitian and couples even to odd
//! sites, so `M^dag M = 4 m^2 - D_eo D_oe` on even sites. As an [`Operator`], M is `D_oe`, from even to odd sites, and
//! its adjoint is `-D_eo`. The solvers' `M^dag M + s` is then `s - D_eo D_oe`, with masses as shifts.

use crate::device::kernels::{
    Doubles, Enumerated, GreatestReal, ImportFat, ImportLong, In, LongReals, StaggeredHop, int,
};
use crate::device::{Buffer, Precision};
use crate::field::{
    Crossing, Dagger, Domain, EVEN, FaceData, FaceSource, Faces, FieldError, GhostLinks, HopLinks, Kind,
    LinkFaces, MatrixField, ODD, Reached, Shared, Spinor,
};
use crate::lattice::Boundary;
use crate::operator::Operator;
use std::sync::Arc;

/// Layers of neighbouring sites that D reaches.
pub const REACH: usize = 3;

/// The operator in one precision, for several colour vectors at once.
pub struct Staggered {
    /// The parity of the fields on which it acts as an [`Operator`].
    from: usize,
    own: Own,
    faces: Faces,
}

/// The input of a hop besides colour vectors and ghost zones.
struct Own {
    domain: Arc<Domain>,
    precision: Precision,
    long_reals: LongReals,
    /// While the operator is in use.
    fat: Option<HopLinks>,
    ghost_fat: GhostLinks,
    long: Shared<Long>,
    phases: Buffer,
    /// The unit of the stored fat links: 1, or with integers a bound on every real.
    fat_unit: f64,
    naik: f64,
}

impl Own {
    /// What a hop from `input` to `parity` packs.
    fn faces_of(input: &Spinor, parity: usize) -> FaceSource<'_> {
        FaceSource { parity: 1 - parity, data: FaceData::ColourVectors(input.fermions()) }
    }

    fn fat(&self) -> &HopLinks {
        self.fat.as_ref().expect("links that were adopted, and not released")
    }
}

/// Unitary long links with the signs and phases of hops.
struct Long {
    links: HopLinks,
    /// The ninth reals, for links of nine reals.
    ninth: Option<HopLinks>,
    ghosts: GhostLinks,
}

/// The number of colour vectors that share a link in registers.
fn each(fields: usize, on_gpu: bool) -> usize {
    match fields {
        1 => 1,
        _ if !on_gpu => 4,
        _ if fields.is_multiple_of(4) => 4,
        _ if fields.is_multiple_of(2) => 2,
        _ => 1,
    }
}

impl Staggered {
    /// Room for long links of `long_reals` (18, 14 or 9), and `fields` colour vectors at once.
    ///
    /// # Panics
    /// Another number of reals; a lane's box is thinner than [`REACH`] in a cut direction.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        long_reals: usize,
        fields: usize,
        boundary: Boundary,
    ) -> Result<Self, FieldError> {
        let layout = domain.layout(precision);
        let (device, outer) = (domain.device(), layout.outer());
        let (stored, long_reals) = (long_reals, LongReals::of(long_reals));
        let long_reals = long_reals.expect("long links of 18, 14 or 9 reals");
        assert!(
            domain.cut_directions().all(|mu| outer[mu] >= REACH),
            "a box of {outer:?} is thinner than {REACH} layers"
        );
        let room = |reals| HopLinks::new(domain, precision, reals);
        let nine = long_reals == LongReals::Long9;
        let name = format!("long links of {long_reals:?} in {precision:?}, {boundary:?}");
        let long_faces = LinkFaces::new(domain, precision, REACH)?;
        let long = || {
            let links = room(if nine { 8 } else { stored })?;
            let ninth = if nine { Some(room(1)?) } else { None };
            Ok(Long { links, ninth, ghosts: GhostLinks::new(&long_faces)? })
        };
        let own = Own {
            domain: Arc::clone(domain),
            precision,
            long_reals,
            fat: None,
            ghost_fat: GhostLinks::new(&LinkFaces::new(domain, precision, 1)?)?,
            long: Shared::new(domain, name, long)?,
            phases: device.buffer_of(&boundary.of_passes())?,
            fat_unit: 1.0,
            naik: 0.0,
        };
        Ok(Self {
            from: EVEN,
            own,
            faces: Faces::new(domain, precision, fields, (Crossing::ColourVectors, &[true, false]), REACH)?,
        })
    }

    /// Adopts fat links X, and long links `naik` times the unitary `long`. None of them have signs and phases.
    pub fn update(&mut self, fat: &MatrixField, long: &MatrixField, naik: f64) -> Result<(), FieldError> {
        let Own {
            domain,
            precision,
            long_reals,
            fat: own_fat,
            ghost_fat,
            long: own_long,
            phases,
            fat_unit,
            ..
        } = &mut self.own;
        domain.check([fat.domain(), long.domain()]);
        if *precision == Precision::Half {
            let (g, links) = (domain.geometry(), fat.links());
            let greatest = domain.sum(&GreatestReal { g, links }, 2 * domain.half())?.max;
            // With a phase that is no sign, both parts of an element may meet in one. NaN stays NaN.
            *fat_unit = if greatest == 0.0 { 1.0 } else { greatest * std::f64::consts::SQRT_2 };
        }
        let scale = 1.0 / *fat_unit;
        let own_fat = match own_fat {
            Some(fat) => fat,
            None => own_fat.insert(HopLinks::new(domain, *precision, 18)?),
        };
        let layout = domain.layout(*precision);
        let (g, half) = (layout.geometry(), layout.half());
        for parity in [EVEN, ODD] {
            let (links, out, phases) = (fat.links(), own_fat.fill(parity), phases.input());
            let kernel = ImportFat { g, links, out, phases, parity: int(parity), scale };
            domain.launch_as(*precision, &kernel, half)?;
        }
        own_fat.gather(1)?;
        ghost_fat.exchange(|parity| FaceData::StaggeredLinks {
            reals: LongReals::Long18,
            links: own_fat.from(parity),
            ninth: None,
        })?;
        own_long.adopt(long.stamp(), |own| {
            for parity in [EVEN, ODD] {
                let (links, out) = (long.links(), own.links.fill(parity));
                let ninth = own.ninth.as_ref().map(|ninth| ninth.fill(parity));
                let kernel = ImportLong { g, links, out, ninth, phases: phases.input(), parity: int(parity) };
                domain.launch_as((*precision, *long_reals), &kernel, half)?;
            }
            own.links.gather(REACH)?;
            own.ninth.as_ref().map_or(Ok(()), |ninth| ninth.gather(REACH))?;
            own.ghosts.exchange(|parity| FaceData::StaggeredLinks {
                reals: *long_reals,
                links: own.links.from(parity),
                ninth: own.ninth.as_ref().map(|ninth| ninth.from(parity)),
            })
        })?;
        self.own.naik = naik;
        Ok(())
    }

    /// Gives back the memory of the fat links until the next update.
    pub(super) fn release(&mut self) {
        self.own.fat = None;
    }

    /// Makes it act as an [`Operator`] on fields of `parity`, so that it is D from there to the other sites. The
    /// default is even.
    pub fn act_on(&mut self, parity: usize) {
        self.from = parity;
    }

    /// The phases, for the force.
    pub(super) fn phases(&self) -> In<'_, Doubles> {
        self.own.phases.input()
    }

    /// The exchange of a hop alone: what D reads of other ranks for sites of `parity` comes from them.
    pub fn exchange(&mut self, input: &Spinor, parity: usize) -> Result<(), FieldError> {
        self.faces.exchange(Own::faces_of(input, parity), input.fields())
    }

    /// Bytes that a rank sends for a hop of as many fields as there is memory for.
    pub fn bytes_sent(&self) -> usize {
        self.faces.bytes_sent()
    }

    /// `out = scale D input + shift x` on sites of `parity`; `input` is on the other parity, x on `parity`. All fields
    /// hold equally many colour vectors.
    pub fn hop(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        scale: f64,
        shifted: Option<(f64, &Spinor)>,
    ) -> Result<(), FieldError> {
        let fields = input.fields();
        let Self { own, faces, .. } = self;
        let x = shifted.map(|(_, x)| x);
        let all = || [Some(&*out), Some(input), x].into_iter().flatten();
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == (own.precision, Kind::Colour, fields);
        assert!(all().all(fit), "colour vectors in the operator's precision, as many in as out");
        own.domain.check(all().map(Spinor::domain));
        let (domain, form) = (&own.domain, (own.precision, own.long_reals));
        let long = own.long.get();
        let fat = own.fat();
        let each = each(fields, domain.device().nature().is_gpu);
        let groups = fields.div_ceil(each);
        let source = Own::faces_of(input, parity);
        let ghost_mask = faces.mask();
        faces.hop(source, fields, |Reached { places, ghost }| {
            let sites = places.number() * groups;
            let hop = StaggeredHop {
                g: input.layout().geometry(),
                out: out.fermions_mut(),
                input: input.fermions(),
                x: x.map(Spinor::fermions),
                fat_out: fat.from(parity),
                fat_in: fat.to(parity),
                long_out: long.links.from(parity),
                long_in: long.links.to(parity),
                ninth_out: long.ninth.as_ref().map(|ninth| ninth.from(parity)),
                ninth_in: long.ninth.as_ref().map(|ninth| ninth.to(parity)),
                ghost,
                ghost_fat: own.ghost_fat.to(parity),
                ghost_long: long.ghosts.to(parity),
                places,
                parity: int(parity),
                ghost_mask,
                fields: int(fields),
                each: int(each),
                fat_scale: scale * own.fat_unit,
                long_scale: scale * own.naik,
                shift: shifted.map_or(0.0, |(shift, _)| shift),
            };
            domain.launch_as(form, &hop, sites)
        })
    }
}

impl Operator for Staggered {
    fn domain(&self) -> &Arc<Domain> {
        &self.own.domain
    }

    fn precision(&self) -> Precision {
        self.own.precision
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: Dagger) -> Result<(), FieldError> {
        let (to, sign) = match dagger {
            Dagger::No => (1 - self.from, 1.0),
            Dagger::Yes => (self.from, -1.0),
        };
        self.hop(out, x, to, sign, None)
    }

    fn apply_normal(
        &mut self,
        out: &mut Spinor,
        middle: &mut Spinor,
        x: &Spinor,
        shift: f64,
    ) -> Result<(), FieldError> {
        self.apply(middle, x, Dagger::No)?;
        self.hop(out, middle, self.from, -1.0, (shift != 0.0).then_some((shift, x)))
    }
}
