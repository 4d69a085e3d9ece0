//! The Wilson hopping term D of `kernels/wilson.cuh`, with the epilogues of even-odd preconditioning. It has its own
//! copy of the links, in one precision, with 18, 12 or 8 reals per link. Boundary phases multiply hops, never links.

use super::Blocks;
use crate::device::kernels::{
    Clover, Enumerated, Epilogue, HopSet, Hopping, ImportLinks, In, LinkReals, Reals, TEAM_REALS, TEAM_SITES,
    WilsonHop, int,
};
use crate::device::{Buffer, Precision, Stamp, Team};
use crate::field::{
    Crossing, Dagger, Domain, EVEN, FaceData, FaceSource, Faces, FieldError, GhostLinks, HopLinks, Kind,
    LinkFaces, MatrixField, ODD, Reached, Shared, Spinor,
};
use crate::lattice::{Boundary, coordinates};
use crate::math::single;
use std::sync::Arc;

/// The hopping term's links and ghost zones, in one precision.
pub struct WilsonLinks {
    own: Own,
    faces: Faces,
}

/// The input of a hop besides spinors and ghost zones.
struct Own {
    domain: Arc<Domain>,
    precision: Precision,
    reals: LinkReals,
    fields: usize,
    links: Shared<(HopLinks, GhostLinks)>,
    phases: HopPhases,
    keep: Option<Keep>,
}

/// Phases of hops that cross the boundary, in the form that kernels take.
#[derive(Clone)]
pub struct HopPhases {
    table: Arc<Buffer>,
    /// The hops with a phase on this rank.
    mask: i32,
}

impl HopPhases {
    pub(crate) fn table(&self) -> In<'_, Reals> {
        self.table.input()
    }

    pub(crate) fn mask(&self) -> i32 {
        self.mask
    }

    /// # Panics
    /// They are not those of an operator in `precision` on boxes like this one.
    pub(crate) fn check(&self, domain: &Domain, precision: Precision) {
        let bytes = 4 * 2 * 2 * domain.layout(precision).lanes().count() * precision.bytes();
        assert_eq!(self.table.bytes(), bytes, "phases of an operator in {precision}");
    }
}

/// Which hops stay in their block, and which leave it forward in x, y, z, t, in the form that the kernel takes.
struct Keep {
    blocks: Blocks,
    table: Buffer,
    stride: usize,
}

impl Keep {
    /// The table of hops that stay, or of those that leave the block in this direction.
    fn table(&self, leaving: Option<usize>) -> In<'_, Reals> {
        self.table.input_at(leaving.map_or(0, |mu| 1 + mu) * self.table.bytes() / 5)
    }
}

/// The hops to make.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Made {
    #[default]
    All,
    /// Those within blocks.
    Within,
    /// Those forward in this direction that leave a block.
    Across(usize),
}

/// The epilogue of the hopping term (`kernels/args.h`), and its arguments.
pub(crate) struct Ending<'a> {
    pub epilogue: Epilogue,
    pub clover: Option<In<'a, Clover>>,
    pub term: Option<In<'a, Clover>>,
    pub x: Option<&'a Spinor>,
    pub scale: f64,
    pub shift: f64,
    pub twist: f64,
}

impl Ending<'_> {
    pub(crate) fn plain(scale: f64) -> Self {
        Ending { epilogue: Epilogue::Plain, clover: None, term: None, x: None, scale, shift: 0.0, twist: 0.0 }
    }
}

/// Variants of a hop.
#[derive(Clone, Copy, Default)]
pub(crate) struct Way {
    pub dagger: Dagger,
    pub made: Made,
}

impl Way {
    /// All hops.
    pub(crate) fn all(dagger: Dagger) -> Self {
        Self { dagger, made: Made::All }
    }
}

/// A table of reals in the operator's precision.
pub(crate) fn table(domain: &Domain, precision: Precision, reals: &[f64]) -> Result<Buffer, FieldError> {
    Ok(match precision {
        Precision::Double => domain.device().buffer_of(reals)?,
        _ => domain.device().buffer_of(&reals.iter().copied().map(single).collect::<Vec<_>>())?,
    })
}

impl WilsonLinks {
    /// Memory for links of `reals` (18, 12 or 8) in `precision`, and for hops of `fields` spinors at once. Every slice
    /// of a fifth dimension counts as a spinor.
    ///
    /// # Panics
    /// Another number of reals.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        reals: usize,
        fields: usize,
        boundary: Boundary,
    ) -> Result<Self, FieldError> {
        if reals == 8 {
            // They cannot tell a zero matrix.
            domain.require_periodic("links of 8 reals")?;
        }
        let layout = domain.layout(precision);
        let link_faces = LinkFaces::new(domain, precision, 1)?;
        let links = || Ok((HopLinks::new(domain, precision, reals)?, GhostLinks::new(&link_faces)?));
        let reals = LinkReals::of(reals).expect("links of 18, 12 or 8 reals");
        let (phases, mask) = boundary.of_hops(domain.partition(), layout.lanes());
        let phases = HopPhases { table: Arc::new(table(domain, precision, &phases)?), mask };
        let name = format!("links of {reals:?} in {precision:?}");
        let links = Shared::new(domain, name, links)?;
        let own = Own { domain: Arc::clone(domain), precision, reals, fields, links, phases, keep: None };
        let faces = Faces::new(domain, precision, fields, (Crossing::HalfSpinor, &[true, false]), 1)?;
        Ok(Self { own, faces })
    }

    /// Adopts new links.
    pub fn update(&mut self, links: &MatrixField) -> Result<(), FieldError> {
        let Own { domain, precision, reals, links: own, .. } = &mut self.own;
        domain.check([links.domain()]);
        own.adopt(links.stamp(), |(own, ghosts)| {
            let layout = domain.layout(*precision);
            for parity in [EVEN, ODD] {
                let (g, links, out) = (layout.geometry(), links.links(), own.fill(parity));
                let kernel = ImportLinks { g, links, out, parity: int(parity) };
                domain.launch_as((*precision, *reals), &kernel, layout.half())?;
            }
            own.gather(1)?;
            ghosts.exchange(|parity| FaceData::Links(*reals, own.from(parity)))
        })
    }

    /// The links that it has adopted.
    pub(crate) fn adopted(&self) -> Option<Stamp> {
        self.own.links.adopted()
    }

    /// The boundary phases.
    pub fn phases(&self) -> HopPhases {
        self.own.phases.clone()
    }

    /// This rank's box.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.own.domain
    }

    /// Reals per link.
    pub(crate) fn reals(&self) -> LinkReals {
        self.own.reals
    }

    /// The precision of links and spinors.
    pub fn precision(&self) -> Precision {
        self.own.precision
    }

    /// Sets the blocks for hops within blocks and across their faces.
    pub(crate) fn set_blocks(&mut self, blocks: &Blocks) -> Result<(), FieldError> {
        let Own { domain, precision, keep, .. } = &mut self.own;
        if keep.as_ref().is_some_and(|keep| keep.blocks == *blocks) {
            return Ok(());
        }
        let leaving = std::iter::once(None).chain((0..4).map(Some));
        let tables: Vec<_> = leaving.map(|mu| keep_table(domain, *precision, blocks, mu)).collect();
        let stride = tables[0].1;
        let reals: Vec<f64> = tables.into_iter().flat_map(|(reals, _)| reals).collect();
        *keep = Some(Keep { blocks: *blocks, table: table(domain, *precision, &reals)?, stride });
        Ok(())
    }

    /// `out = D input` on sites of `parity`; `input` is on the other parity.
    pub fn hop(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        self.run(out, input, parity, Way::all(dagger), &Ending::plain(1.0))
    }

    /// `D input` on sites of `parity`, followed by the epilogue.
    pub(crate) fn run(
        &mut self,
        out: &mut Spinor,
        input: &Spinor,
        parity: usize,
        way: Way,
        end: &Ending,
    ) -> Result<(), FieldError> {
        self.run_with(out, None, input, parity, way, end)
    }

    /// The same; `also` becomes the clover blocks times `out`, for [`Epilogue::MinusClover`].
    pub(crate) fn run_with(
        &mut self,
        out: &mut Spinor,
        mut also: Option<&mut Spinor>,
        input: &Spinor,
        parity: usize,
        way: Way,
        end: &Ending,
    ) -> Result<(), FieldError> {
        let own = (self.own.precision, input.kind(), input.fields());
        let fit = |s: &Spinor| (s.precision(), s.kind(), s.fields()) == own;
        assert!(
            [Some(&*out), also.as_deref(), end.x].into_iter().flatten().all(fit),
            "spinors of one kind in the operator's precision"
        );
        let (domain, form) = (Arc::clone(&self.own.domain), (self.own.precision, self.own.reals));
        let all = [Some(&*out), also.as_deref(), Some(input), end.x];
        domain.check(all.into_iter().flatten().map(Spinor::domain));
        let Ending { epilogue, clover, term, x, scale, shift, twist } = *end;
        let multiplies = matches!(epilogue, Epilogue::Clover | Epilogue::CloverMinus | Epilogue::MinusClover);
        let adds = matches!(epilogue, Epilogue::CloverMinus | Epilogue::MinusClover | Epilogue::Shift);
        assert!(clover.is_some() || !multiplies, "blocks of an operator that was updated");
        assert!(x.is_some() || !adds, "a spinor for an epilogue that takes one");
        assert!(
            also.is_none() || epilogue == Epilogue::MinusClover,
            "a second result only of an epilogue that multiplies by the blocks last"
        );
        let fields = input.fields() * input.kind().slices();
        self.cover(input, parity, way, |hop| {
            let sites = hop.places.number() * fields;
            let (out, also) = (out.fermions_mut(), also.as_mut().map(|also| also.fermions_mut()));
            let x = x.map(Spinor::fermions);
            let kernel = WilsonHop { hop, out, also, x, clover, term, epilogue, scale, shift, twist };
            domain.launch_as(form, &kernel, sites)
        })
    }

    /// The exchange of a hop alone: what `D input` on sites of `parity` reads of other ranks comes from them.
    pub fn exchange(&mut self, input: &Spinor, parity: usize, dagger: Dagger) -> Result<(), FieldError> {
        let fields = input.fields() * input.kind().slices();
        self.faces.exchange(Own::faces_of(input, parity, dagger), fields)
    }

    /// Bytes that a rank sends for a hop of as many fields as there is memory for.
    pub fn bytes_sent(&self) -> usize {
        self.faces.bytes_sent()
    }

    /// Launches `D input` on all sites of `parity`, in one or more launches ([`Faces::hop`]).
    pub(crate) fn cover(
        &mut self,
        input: &Spinor,
        parity: usize,
        way: Way,
        mut launch: impl FnMut(Hopping) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let Self { own, faces } = self;
        let hop = own.hopping(input, parity, way, faces.mask());
        let fields = input.fields() * input.kind().slices();
        match way.made {
            Made::Within => return launch(hop),
            // Not all faces are read, but all must have come: whoever goes on writes the next ones.
            Made::Across(_) => {
                faces.exchange(Own::faces_of(input, parity, way.dagger), fields)?;
                return launch(Hopping { ghost: faces.ghosts(), ..hop });
            }
            Made::All => {}
        }
        faces.hop(Own::faces_of(input, parity, way.dagger), fields, |Reached { ghost, places }| {
            launch(Hopping { ghost, places, ..hop })
        })
    }
}

impl Own {
    /// What a hop from `input` to `parity` packs.
    fn faces_of(input: &Spinor, parity: usize, dagger: Dagger) -> FaceSource<'_> {
        let (input, slices) = (input.fermions(), input.kind().slices());
        FaceSource { parity: 1 - parity, data: FaceData::Spinors { input, dagger, slices } }
    }

    /// `D input` on all sites of `parity`.
    fn hopping<'a>(&'a self, input: &'a Spinor, parity: usize, way: Way, ghost_mask: i32) -> Hopping<'a> {
        let slices = input.kind().slices();
        let fields = input.fields() * slices;
        assert!(
            input.precision() == self.precision && fields <= self.fields,
            "spinors in the operator's precision, no more than it has memory for"
        );
        assert!(input.kind().reals() == Kind::Dirac.reals(), "hops of Dirac spinors");
        self.domain.check([input.domain()]);
        assert!(self.keep.is_some() || way.made == Made::All, "hops in blocks of links that know them");
        let (hops, leaving) = match way.made {
            Made::All => (HopSet::Every, None),
            Made::Within => (HopSet::Within, None),
            Made::Across(mu) => (HopSet::Across, Some(mu)),
        };
        let ((links, ghosts), all) = (self.links.get(), Reached::all(input.layout().half()));
        Hopping {
            g: input.layout().geometry(),
            input: input.fermions(),
            links_out: links.from(parity),
            links_in: links.to(parity),
            ghost: all.ghost,
            ghost_links: ghosts.to(parity),
            phases: self.phases.table(),
            places: all.places,
            keep: self.keep.as_ref().map(|keep| keep.table(leaving)),
            parity: int(parity),
            ghost_mask,
            phase_mask: self.phases.mask,
            dagger: way.dagger as i32,
            hops,
            fields: int(fields),
            slices: int(slices),
            keep_stride: self.keep.as_ref().map_or(0, |keep| int(keep.stride)),
        }
    }
}

/// The number of teams that cover `sites` sites of `fields` fields (`kernels/slices.cuh`).
pub(crate) fn teams(sites: usize, fields: usize) -> usize {
    sites.div_ceil(TEAM_SITES) * fields
}

/// Such a team, which has all slices of its sites.
pub(crate) fn team(domain: &Domain, precision: Precision, slices: usize) -> Team {
    Team {
        threads: TEAM_SITES * slices,
        shared: slices * TEAM_REALS * precision.bytes() * domain.layout(precision).lanes().count(),
    }
}

/// For each hop, forward and backward in x, y, z, t, and each coordinate of a lane's box: 1 in the lanes where the hop
/// stays in its block, else 0. With a direction: 1 where the hop goes forward in it and leaves the block.
fn keep_table(
    domain: &Domain,
    precision: Precision,
    blocks: &Blocks,
    leaving: Option<usize>,
) -> (Vec<f64>, usize) {
    let (lanes, partition) = (domain.layout(precision).lanes(), domain.partition());
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
                    let made = match leaving {
                        None => same && !leaves,
                        Some(direction) => direction == mu && forward && (leaves || !same),
                    };
                    table.push(if x < outer[mu] && made { 1.0 } else { 0.0 });
                }
            }
        }
    }
    (table, stride)
}
