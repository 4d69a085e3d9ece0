//! The Wilson(-clover) operator, even-odd preconditioned, on odd sites:
//!
//! ```text
//! M = A - D/2,  asymmetric: Mhat = A_oo - D_oe A_ee^-1 D_eo / 4,
//!               symmetric:  Mhat = 1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4.
//! ```
//!
//! D as in `kernels/wilson.cuh`, A = 4 + m0 + clover. A twisted mass mu adds `i mu gamma_5` to the asymmetric form,
//! `i mu A_oo^-1 gamma_5` to the symmetric one. An operator keeps its own copy of the links, in its
//! precision, with 18, 12 or 8 reals a link; boundary phases multiply hops, never links.

use super::{Blocks, CloverTerm, Operator, SchwarzOperator};
use crate::device::{BlasArgs, Buffer, HopArgs, ImportArgs, Pointer, Precision};
use crate::field::{Domain, EVEN, FaceSource, Faces, FieldError, MatrixField, ODD, Spinor};
use crate::lattice::{Extents, coordinates, volume};
use std::sync::Arc;

/// Which Schur complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schur {
    /// `A_oo - D_oe A_ee^-1 D_eo / 4`
    Asymmetric,
    /// `1 - A_oo^-1 D_oe A_ee^-1 D_eo / 4`
    Symmetric,
}

/// The operator's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonParams {
    /// kappa = 1 / (2 (4 + m0))
    pub kappa: f64,
    /// Twisted mass of the even-odd form.
    pub mu: f64,
    /// Clover coefficient; 0: no clover term.
    pub c_sw: f64,
    /// Phase of a hop that crosses the boundary, a direction, in units of pi.
    pub boundary: [f64; 4],
    /// Which Schur complement.
    pub schur: Schur,
}

impl WilsonParams {
    /// `4 + m0`
    pub fn diagonal(&self) -> f64 {
        0.5 / self.kappa
    }
}

/// The hopping term's own links and ghost zones, in one precision.
pub struct WilsonLinks {
    domain: Arc<Domain>,
    precision: Precision,
    reals: usize,
    fields: usize,
    links: [Buffer; 2],
    phases: Buffer,
    phase_mask: i32,
    keep: Option<Keep>,
    faces: Faces,
    interior: [Buffer; 2],
    boundary: [Buffer; 2],
    interior_sites: usize,
}

/// Which hops stay in their Schwarz block, as the kernel takes it.
struct Keep {
    table: Buffer,
    stride: usize,
}

/// What is done with the hopping term (`kernels/wilson.cuh`).
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Clover,
    CloverMinus,
    MinusClover,
    Shift,
}

struct Epilogue<'a> {
    kind: Kind,
    clover: Pointer,
    x: Option<&'a Spinor>,
    scale: f64,
    shift: f64,
    twist: f64,
}

impl Epilogue<'_> {
    fn plain(scale: f64) -> Self {
        Epilogue { kind: Kind::Plain, clover: Pointer::default(), x: None, scale, shift: 0.0, twist: 0.0 }
    }
}

/// How a hop is taken.
#[derive(Clone, Copy)]
struct Way {
    dagger: bool,
    /// Within Schwarz blocks alone.
    blocked: bool,
}

/// The choices with which GPUs compile the hopping term, one of each epilogue.
pub fn hop_choices() -> Vec<String> {
    [Kind::Plain, Kind::Clover, Kind::CloverMinus, Kind::MinusClover, Kind::Shift]
        .map(|kind| choices(kind, Way { dagger: false, blocked: false }, 1))
        .into()
}

fn choices(kind: Kind, way: Way, fields: usize) -> String {
    let (dagger, blocked) = (u8::from(way.dagger), u8::from(way.blocked));
    format!("EPILOGUE={} DAGGER={dagger} BLOCKED={blocked} FIELDS={fields}", kind as i32)
}

/// A table of reals in an operator's own precision.
fn table(domain: &Domain, precision: Precision, reals: &[f64]) -> Result<Buffer, FieldError> {
    Ok(match precision {
        Precision::Double => domain.device().buffer_of(reals)?,
        _ => domain.device().buffer_of(&reals.iter().map(|&x| x as f32).collect::<Vec<_>>())?,
    })
}

impl WilsonLinks {
    /// Room for links of `reals` (18, 12 or 8) in `precision`, and hops of `fields` spinors at once.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        boundary: [f64; 4],
    ) -> Result<Self, FieldError> {
        let device = domain.device();
        let bytes = domain.half() * domain.lanes().count() * precision.stored(4 * reals, 0);
        let (phases, phase_mask) = phase_table(domain, boundary);
        let (even, odd) = (regions(domain, EVEN), regions(domain, ODD));
        Ok(Self {
            domain: Arc::clone(domain),
            precision,
            reals,
            fields,
            links: [device.buffer(bytes)?, device.buffer(bytes)?],
            phases: table(domain, precision, &phases)?,
            phase_mask,
            keep: None,
            faces: Faces::new(domain, precision, fields, false)?,
            interior_sites: even.0.len(),
            interior: [device.buffer_of(&even.0)?, device.buffer_of(&odd.0)?],
            boundary: [device.buffer_of(&even.1)?, device.buffer_of(&odd.1)?],
        })
    }

    /// Takes over new links.
    ///
    /// # Errors
    /// The device is lost.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        for parity in [EVEN, ODD] {
            let args = ImportArgs {
                g: self.domain.geometry(),
                links: links.pointer(),
                out: self.links[parity].pointer(),
                parity: parity as i32,
                pad: 0,
            };
            self.domain.launch(
                &format!("import_{}", self.reals),
                self.precision,
                &args,
                self.domain.half(),
            )?;
        }
        Ok(())
    }

    /// Phases as kernels take them, and the mask of hops that meet one on this rank.
    pub fn phases(&self) -> (Pointer, i32) {
        (self.phases.pointer(), self.phase_mask)
    }

    /// `out = D input` on sites of `parity`, `input` on the others.
    ///
    /// # Errors
    /// The device is lost.
    pub fn hop(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        dagger: bool,
    ) -> Result<(), FieldError> {
        self.run(out, input, parity, Way { dagger, blocked: false }, &Epilogue::plain(1.0))
    }

    fn run(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        way: Way,
        epilogue: &Epilogue,
    ) -> Result<(), FieldError> {
        assert!(
            [&*out, input].iter().all(|s| s.precision() == self.precision && s.fields() == self.fields),
            "spinors in the operator's precision, and as many as it takes"
        );
        let domain = Arc::clone(&self.domain);
        let (half, fields) = (domain.half(), self.fields);
        let name = format!("hop_{} {}", self.reals, choices(epilogue.kind, way, fields));
        let args = HopArgs {
            g: domain.geometry(),
            out: out.pointer(),
            input: input.pointer(),
            x: epilogue.x.map(Spinor::pointer).unwrap_or_default(),
            clover: epilogue.clover,
            links_out: self.links[parity].pointer(),
            links_in: self.links[1 - parity].pointer(),
            ghost: [Pointer::default(); 8],
            phases: self.phases.pointer(),
            sites: Pointer::default(),
            keep: self.keep.as_ref().map(|keep| keep.table.pointer()).unwrap_or_default(),
            parity: parity as i32,
            ghost_mask: self.faces.mask(),
            phase_mask: self.phase_mask,
            epilogue: epilogue.kind as i32,
            dagger: i32::from(way.dagger),
            blocked: i32::from(way.blocked),
            fields: fields as i32,
            count: half as i32,
            keep_stride: self.keep.as_ref().map_or(0, |keep| keep.stride as i32),
            pad: 0,
            scale: epilogue.scale,
            shift: epilogue.shift,
            twist: epilogue.twist,
        };
        if self.faces.mask() == 0 || way.blocked {
            return domain.launch(&name, self.precision, &args, half * fields);
        }
        let source = FaceSource {
            input: input.pointer(),
            parity: 1 - parity,
            links: self.links[1 - parity].pointer(),
            reals: self.reals,
            dagger: way.dagger,
        };
        let (precision, interior) = (self.precision, self.interior_sites);
        let inner = HopArgs { sites: self.interior[parity].pointer(), count: interior as i32, ..args };
        self.faces.exchange(source, || domain.launch(&name, precision, &inner, interior * fields))?;
        let rest = half - interior;
        let sites = self.boundary[parity].pointer();
        let outer = HopArgs { sites, ghost: self.faces.ghosts(), count: rest as i32, ..args };
        domain.launch(&name, self.precision, &outer, rest * fields)
    }
}

/// Outer sites of one parity that need no ghost, and those that do.
fn regions(domain: &Domain, parity: usize) -> (Vec<i32>, Vec<i32>) {
    let outer = domain.geometry().outer.map(|x| x as usize);
    let half_row = [outer[0] / 2, outer[1], outer[2], outer[3]];
    (0..volume(half_row) as i32).partition(|&s| {
        let [xh, y, z, t] = coordinates(half_row, s as usize);
        let x = [2 * xh + ((y + z + t + parity) & 1), y, z, t];
        domain.cut_directions().all(|mu| x[mu] != 0 && x[mu] != outer[mu] - 1)
    })
}

/// For each hop, forward and backward in x, y, z, t, the phase in every lane (re of all lanes, then im);
/// and the mask of hops with a phase that is not 1 on this rank.
fn phase_table(domain: &Domain, boundary: [f64; 4]) -> (Vec<f64>, i32) {
    let (lanes, partition) = (domain.lanes(), domain.partition());
    let (mut table, mut mask) = (Vec::new(), 0);
    for (mu, phase) in boundary.into_iter().enumerate() {
        for forward in [true, false] {
            let angle = std::f64::consts::PI * phase * if forward { 1.0 } else { -1.0 };
            // Whole multiples of pi are exact signs.
            let (re, im) = match phase.rem_euclid(2.0) {
                0.0 => (1.0, 0.0),
                1.0 => (-1.0, 0.0),
                _ => (angle.cos(), angle.sin()),
            };
            let rank_at_edge = partition.place[mu] == if forward { partition.grid[mu] - 1 } else { 0 };
            let crosses: Vec<bool> = (0..lanes.count())
                .map(|lane| {
                    rank_at_edge
                        && coordinates(lanes.0, lane)[mu] == if forward { lanes.0[mu] - 1 } else { 0 }
                })
                .collect();
            table.extend(crosses.iter().map(|&c| if c { re } else { 1.0 }));
            table.extend(crosses.iter().map(|&c| if c { im } else { 0.0 }));
            if rank_at_edge && (re, im) != (1.0, 0.0) {
                mask |= 1 << (2 * mu + usize::from(!forward));
            }
        }
    }
    (table, mask)
}

/// For each hop, forward and backward in x, y, z, t, and each coordinate of a lane's box: 1 in the lanes where
/// it stays in its block, else 0.
fn keep_table(domain: &Domain, blocks: &Blocks) -> (Vec<f64>, usize) {
    let (lanes, partition) = (domain.lanes(), domain.partition());
    let local = partition.local();
    let outer = lanes.outer(local);
    let stride = outer.into_iter().max().unwrap_or(1);
    let mut table = Vec::new();
    for mu in 0..4 {
        for forward in [true, false] {
            for x in 0..stride {
                for lane in 0..lanes.count() {
                    let here = coordinates(lanes.0, lane)[mu] * outer[mu] + x;
                    let there = (here + if forward { 1 } else { local[mu] - 1 }) % local[mu];
                    let leaves = partition.is_cut(mu) && here == if forward { local[mu] - 1 } else { 0 };
                    let same = here / blocks.extents[mu] == there / blocks.extents[mu];
                    table.push(if x < outer[mu] && same && !leaves { 1.0 } else { 0.0 });
                }
            }
        }
    }
    (table, stride)
}

/// The preconditioned operator in one precision.
pub struct Wilson {
    params: WilsonParams,
    links: WilsonLinks,
    blocks: Option<Blocks>,
    /// In lower precisions: the term on odd sites or (symmetric) its inverse there, and the inverse on even sites.
    own: Option<[Buffer; 2]>,
    odd: Pointer,
    odd_inverse: Pointer,
    even_inverse: Pointer,
    even: Spinor,
    spare: Option<Spinor>,
}

impl Wilson {
    /// Room for the operator with links of `reals` (18, 12 or 8), for `fields` spinors at once.
    ///
    /// # Errors
    /// No room.
    pub fn several(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        let bytes = domain.half() * domain.lanes().count() * 2 * precision.stored(36, 1);
        let own = (precision != Precision::Double && params.c_sw != 0.0)
            .then(|| Ok::<_, FieldError>([domain.device().buffer(bytes)?, domain.device().buffer(bytes)?]))
            .transpose()?;
        let symmetric = params.schur == Schur::Symmetric;
        Ok(Self {
            params,
            links: WilsonLinks::new(domain, precision, reals, fields, params.boundary)?,
            blocks: None,
            own,
            odd: Pointer::default(),
            odd_inverse: Pointer::default(),
            even_inverse: Pointer::default(),
            even: Spinor::several(domain, precision, fields)?,
            spare: if symmetric { Some(Spinor::several(domain, precision, fields)?) } else { None },
        })
    }

    /// Room for the operator on single spinors.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        params: WilsonParams,
    ) -> Result<Self, FieldError> {
        Self::several(domain, precision, reals, 1, params)
    }

    /// Lets it act within Schwarz blocks too: those given, or this rank's box.
    ///
    /// # Errors
    /// No room.
    ///
    /// # Panics
    /// The blocks do not fill the box.
    pub fn with_blocks(mut self, block: Option<Extents>) -> Result<Self, FieldError> {
        let domain = Arc::clone(&self.links.domain);
        let blocks = Blocks::new(domain.partition().local(), block);
        let (reals, stride) = keep_table(&domain, &blocks);
        self.links.keep = Some(Keep { table: table(&domain, self.links.precision, &reals)?, stride });
        self.blocks = Some(blocks);
        Ok(self)
    }

    /// The clover term that this operator needs; `None` without one.
    ///
    /// # Errors
    /// No room.
    pub fn clover_term(
        domain: &Arc<Domain>,
        params: &WilsonParams,
    ) -> Result<Option<CloverTerm>, FieldError> {
        if params.c_sw == 0.0 {
            return Ok(None);
        }
        let inverted = [true, params.schur == Schur::Symmetric];
        CloverTerm::new(domain, params.diagonal(), params.c_sw, inverted).map(Some)
    }

    /// The hopping term.
    pub fn links(&mut self) -> &mut WilsonLinks {
        &mut self.links
    }

    /// Takes over new links and the clover term that was updated on them.
    ///
    /// # Errors
    /// The device is lost.
    pub fn update(&mut self, links: &MatrixField, clover: Option<&CloverTerm>) -> Result<(), FieldError> {
        self.links.update(links)?;
        let Some(clover) = clover else { return Ok(()) };
        let even_inverse = clover.inverse(EVEN).unwrap_or_default();
        let odd = match self.params.schur {
            Schur::Asymmetric => clover.term(ODD),
            Schur::Symmetric => clover.inverse(ODD).unwrap_or_default(),
        };
        let [even_inverse, odd] = match &self.own {
            None => [even_inverse, odd],
            Some(own) => {
                for (from, to) in [even_inverse, odd].into_iter().zip(own) {
                    let domain = &self.links.domain;
                    let args = BlasArgs {
                        x: from,
                        y: to.pointer(),
                        half: domain.half() as i32,
                        ..Default::default()
                    };
                    domain.launch("clover_from_double", self.links.precision, &args, domain.half())?;
                }
                [own[0].pointer(), own[1].pointer()]
            }
        };
        self.even_inverse = even_inverse;
        (self.odd, self.odd_inverse) = match self.params.schur {
            Schur::Asymmetric => (odd, Pointer::default()),
            Schur::Symmetric => (Pointer::default(), odd),
        };
        Ok(())
    }

    fn has_clover(&self) -> bool {
        self.params.c_sw != 0.0
    }

    /// The epilogue that makes `A_ee^-1 D_eo / 2`.
    fn first(&self) -> Epilogue<'static> {
        if self.has_clover() {
            Epilogue { kind: Kind::Clover, clover: self.even_inverse, ..Epilogue::plain(0.5) }
        } else {
            Epilogue::plain(0.5 / self.params.diagonal())
        }
    }

    /// `out_e = A_ee^-1 D_eo x_o / 2`: what completes a solution on odd sites to all sites.
    ///
    /// # Errors
    /// The device is lost.
    pub fn complete(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        let epilogue = self.first();
        self.links.run(out, x, EVEN, Way { dagger, blocked: false }, &epilogue)
    }

    /// `out_o = A_oo^-1 x_o`, with the symmetric form alone.
    ///
    /// # Errors
    /// The device is lost.
    pub fn odd_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        if !self.has_clover() {
            out.copy_from(x)?;
            return out.scale(1.0 / self.params.diagonal());
        }
        self.clover_apply(out, x, self.odd_inverse)
    }

    /// `out = C x` on one parity, field by field, C a packed clover field in this operator's precision.
    fn clover_apply(&self, out: &mut Spinor, x: &Spinor, clover: Pointer) -> Result<(), FieldError> {
        let domain = &self.links.domain;
        (0..x.fields()).try_for_each(|n| {
            let args = HopArgs {
                g: domain.geometry(),
                out: out.pointer_of(n),
                x: x.pointer_of(n),
                clover,
                ..Default::default()
            };
            domain.launch("clover_apply", self.links.precision, &args, domain.half())
        })
    }

    /// `out_e = A_ee^-1 x_e`
    ///
    /// # Errors
    /// The device is lost.
    pub fn even_inverse(&self, out: &mut Spinor, x: &Spinor) -> Result<(), FieldError> {
        if !self.has_clover() {
            out.copy_from(x)?;
            return out.scale(1.0 / self.params.diagonal());
        }
        self.clover_apply(out, x, self.even_inverse)
    }

    /// The right-hand side on odd sites of `M x = b` after elimination of the even ones:
    /// `b_o + D_oe A_ee^-1 b_e / 2`, times `A_oo^-1` in the symmetric form.
    ///
    /// # Errors
    /// The device is lost.
    pub fn prepare(&mut self, out: &mut Spinor, b_even: &Spinor, b_odd: &Spinor) -> Result<(), FieldError> {
        let mut even = Spinor::new(&self.links.domain.clone(), self.links.precision)?;
        self.even_inverse(&mut even, b_even)?;
        // shift x - scale D in, with scale -1/2
        let epilogue = Epilogue { kind: Kind::Shift, x: Some(b_odd), shift: 1.0, ..Epilogue::plain(-0.5) };
        let way = Way { dagger: false, blocked: false };
        if self.params.schur == Schur::Asymmetric {
            return self.links.run(out, &even, ODD, way, &epilogue);
        }
        let mut odd = Spinor::new(&self.links.domain.clone(), self.links.precision)?;
        self.links.run(&mut odd, &even, ODD, way, &epilogue)?;
        self.odd_inverse(out, &odd)
    }
}

impl Wilson {
    fn apply_on(&mut self, out: &mut Spinor, x: &Spinor, way: Way) -> Result<(), FieldError> {
        let (clover, diagonal) = (self.has_clover(), self.params.diagonal());
        let mu = if way.dagger { -self.params.mu } else { self.params.mu };
        let first = self.first();
        let last = |kind: Kind, clover: Pointer, shift: f64, scale: f64, twist: f64| Epilogue {
            kind,
            clover,
            x: Some(x),
            scale,
            shift,
            twist,
        };
        if way.dagger && clover && self.params.schur == Schur::Symmetric {
            let mut spare = self.spare.take().expect("the symmetric form has a spare spinor");
            let end = last(Kind::Shift, Pointer::default(), 1.0, 0.5, 0.0);
            let mut done = self
                .odd_inverse(&mut spare, x)
                .and_then(|()| self.links.run(&mut self.even, &spare, EVEN, way, &first))
                .and_then(|()| self.links.run(out, &self.even, ODD, way, &end));
            if mu != 0.0 {
                done = done.and_then(|()| out.add_twist(mu, &spare));
            }
            self.spare = Some(spare);
            return done;
        }
        self.links.run(&mut self.even, x, EVEN, way, &first)?;
        let last = match (self.params.schur, clover) {
            (Schur::Asymmetric, true) => last(Kind::CloverMinus, self.odd, 0.0, 0.5, mu),
            // x - A^-1 (D in / 2 - i mu gamma_5 x)
            (Schur::Symmetric, true) => last(Kind::MinusClover, self.odd_inverse, 0.0, 0.5, -2.0 * mu),
            (Schur::Asymmetric, false) => last(Kind::Shift, Pointer::default(), diagonal, 0.5, mu),
            (Schur::Symmetric, false) => {
                last(Kind::Shift, Pointer::default(), 1.0, 0.5 / diagonal, mu / diagonal)
            }
        };
        self.links.run(out, &self.even, ODD, way, &last)
    }
}

impl Operator for Wilson {
    fn domain(&self) -> &Arc<Domain> {
        &self.links.domain
    }

    fn precision(&self) -> Precision {
        self.links.precision
    }

    fn apply(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        self.apply_on(out, x, Way { dagger, blocked: false })
    }
}

impl SchwarzOperator for Wilson {
    fn blocks(&self) -> &Blocks {
        self.blocks.as_ref().expect("an operator made with blocks")
    }

    fn apply_in_blocks(&mut self, out: &mut Spinor, x: &Spinor, dagger: bool) -> Result<(), FieldError> {
        self.apply_on(out, x, Way { dagger, blocked: true })
    }
}
