//! The Wilson hopping term D of `kernels/wilson.cuh`, with the epilogues of even-odd preconditioning, on links of its
//! own: in one precision, with 18, 12 or 8 reals a link. Boundary phases multiply hops, never links.

use super::Blocks;
use crate::device::{Buffer, HopArgs, ImportArgs, Pointer, Precision};
use crate::field::{Domain, EVEN, FaceReals, FaceSource, Faces, FieldError, MatrixField, ODD, Spinor};
use crate::lattice::{coordinates, volume};
use std::sync::Arc;

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
    blocks: Blocks,
    table: Buffer,
    stride: usize,
}

/// What is done with the hopping term (`kernels/wilson.cuh`).
#[derive(Clone, Copy)]
pub(crate) enum HopKind {
    Plain,
    Clover,
    CloverMinus,
    MinusClover,
    Shift,
}

pub(crate) struct Epilogue<'a> {
    pub kind: HopKind,
    pub clover: Pointer,
    pub x: Option<&'a Spinor>,
    pub scale: f64,
    pub shift: f64,
    pub twist: f64,
}

impl Epilogue<'_> {
    pub fn plain(scale: f64) -> Self {
        Epilogue { kind: HopKind::Plain, clover: Pointer::default(), x: None, scale, shift: 0.0, twist: 0.0 }
    }
}

/// How a hop is taken.
#[derive(Clone, Copy, Default)]
pub(crate) struct Way {
    pub dagger: bool,
    /// Within Schwarz blocks alone.
    pub blocked: bool,
}

/// Slices of the kernels that are compiled ahead.
pub(crate) const USUAL_SLICES: usize = 16;

/// The choices with which GPUs compile the hopping term, one of each epilogue.
pub fn hop_choices() -> Vec<String> {
    let way = Way::default();
    [HopKind::Plain, HopKind::Clover, HopKind::CloverMinus, HopKind::MinusClover, HopKind::Shift]
        .map(|kind| choices(kind, way, 1, 1))
        .into_iter()
        .chain([choices(HopKind::Plain, way, USUAL_SLICES, USUAL_SLICES)])
        .collect()
}

pub(crate) fn choices(kind: HopKind, way: Way, spinors: usize, slices: usize) -> String {
    let (dagger, blocked) = (u8::from(way.dagger), u8::from(way.blocked));
    format!("EPILOGUE={} DAGGER={dagger} BLOCKED={blocked} FIELDS={spinors} SLICES={slices}", kind as i32)
}

/// A table of reals in an operator's own precision.
pub(crate) fn table(domain: &Domain, precision: Precision, reals: &[f64]) -> Result<Buffer, FieldError> {
    Ok(match precision {
        Precision::Double => domain.device().buffer_of(reals)?,
        _ => domain.device().buffer_of(&reals.iter().map(|&x| x as f32).collect::<Vec<_>>())?,
    })
}

impl WilsonLinks {
    /// Room for links of `reals` (18, 12 or 8) in `precision`, and hops of so many spinors at once: of fields with a
    /// fifth dimension, each slice counts.
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
        let (even, odd) = (regions(domain, EVEN, 1), regions(domain, ODD, 1));
        Ok(Self {
            domain: Arc::clone(domain),
            precision,
            reals,
            fields,
            links: [device.buffer(bytes)?, device.buffer(bytes)?],
            phases: table(domain, precision, &phases)?,
            phase_mask,
            keep: None,
            faces: Faces::new(domain, precision, fields, FaceReals { forward: 12, backward: 12 })?,
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

    /// The box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Reals of a link.
    pub(crate) fn reals(&self) -> usize {
        self.reals
    }

    /// The precision of links and spinors.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Knows the Schwarz blocks within which hops may be asked to stay.
    pub(crate) fn set_blocks(&mut self, blocks: &Blocks) -> Result<(), FieldError> {
        if self.keep.as_ref().is_some_and(|keep| keep.blocks == *blocks) {
            return Ok(());
        }
        let (reals, stride) = keep_table(&self.domain, blocks);
        let table = table(&self.domain, self.precision, &reals)?;
        self.keep = Some(Keep { blocks: *blocks, table, stride });
        Ok(())
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

    /// `D input` on sites of `parity` with an epilogue.
    pub(crate) fn run(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        way: Way,
        epilogue: &Epilogue,
    ) -> Result<(), FieldError> {
        let slices = input.kind().slices();
        let fields = input.fields() * slices;
        let fit = |s: &Spinor| {
            (s.precision(), s.kind(), s.fields()) == (self.precision, input.kind(), input.fields())
        };
        assert!(
            [Some(&*out), epilogue.x].into_iter().flatten().all(fit),
            "spinors of one kind in the operator's precision"
        );
        let (domain, precision) = (Arc::clone(&self.domain), self.precision);
        let name = format!("hop_{} {}", self.reals, choices(epilogue.kind, way, fields, slices));
        let args = HopArgs {
            out: out.pointer(),
            x: epilogue.x.map(Spinor::pointer).unwrap_or_default(),
            clover: epilogue.clover,
            epilogue: epilogue.kind as i32,
            scale: epilogue.scale,
            shift: epilogue.shift,
            twist: epilogue.twist,
            ..self.args(input, parity, way)
        };
        self.cover(args, |args| domain.launch(&name, precision, args, args.count as usize * fields))
    }

    /// The arguments of `D input` on all sites of `parity`, without what becomes of it.
    pub(crate) fn args(&self, input: &Spinor, parity: usize, way: Way) -> HopArgs {
        let slices = input.kind().slices();
        let fields = input.fields() * slices;
        assert!(
            input.precision() == self.precision && fields <= self.fields,
            "spinors in the operator's precision, no more than there is room for"
        );
        HopArgs {
            g: self.domain.geometry(),
            input: input.pointer(),
            links_out: self.links[parity].pointer(),
            links_in: self.links[1 - parity].pointer(),
            phases: self.phases.pointer(),
            keep: self.keep.as_ref().map(|keep| keep.table.pointer()).unwrap_or_default(),
            parity: parity as i32,
            ghost_mask: self.faces.mask(),
            phase_mask: self.phase_mask,
            dagger: i32::from(way.dagger),
            blocked: i32::from(way.blocked),
            fields: fields as i32,
            slices: slices as i32,
            count: self.domain.half() as i32,
            keep_stride: self.keep.as_ref().map_or(0, |keep| keep.stride as i32),
            ..Default::default()
        }
    }

    /// Launches on all sites of `args`; where halos are needed, on those that need none while the halos travel.
    pub(crate) fn cover(
        &mut self,
        args: HopArgs,
        launch: impl Fn(&HopArgs) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        if self.faces.mask() == 0 || args.blocked != 0 {
            return launch(&args);
        }
        let parity = args.parity as usize;
        let source = FaceSource {
            kernel: &format!("face_{}", self.reals),
            input: args.input,
            parity: 1 - parity,
            links: args.links_in,
            dagger: args.dagger != 0,
            slices: args.slices as usize,
            ..Default::default()
        };
        let interior = self.interior_sites as i32;
        let inner = HopArgs { sites: self.interior[parity].pointer(), count: interior, ..args };
        self.faces.exchange(source, args.fields as usize, || launch(&inner))?;
        let (sites, ghost) = (self.boundary[parity].pointer(), self.faces.ghosts());
        launch(&HopArgs { sites, ghost, count: args.count - interior, ..args })
    }
}

/// Outer sites of one parity from which `reach` steps need no ghost, and those from which they do.
pub(crate) fn regions(domain: &Domain, parity: usize, reach: usize) -> (Vec<i32>, Vec<i32>) {
    let outer = domain.geometry().outer.map(|x| x as usize);
    let half_row = [outer[0] / 2, outer[1], outer[2], outer[3]];
    (0..volume(half_row) as i32).partition(|&s| {
        let [xh, y, z, t] = coordinates(half_row, s as usize);
        let x = [2 * xh + ((y + z + t + parity) & 1), y, z, t];
        domain.cut_directions().all(|mu| (reach..outer[mu].saturating_sub(reach)).contains(&x[mu]))
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
