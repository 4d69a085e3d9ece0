//! Additive Schwarz: a few minimal-residual steps in each block separately (Babich, Clark, Joo, Shi, Brower, Gottlieb,
//! SC11, section 8.1). Nothing crosses blocks: no halos, no sums over ranks.
//!
//! The operator must be able to act in blocks ([`SchwarzOperator`](crate::operator::SchwarzOperator)). If the only
//! block is this rank's box (the paper's choice), the result depends on the grid of ranks; with blocks of fixed extents
//! it does not.

use super::gcr::K_MAX;
use super::mixes::SCHWARZ;
use super::row::{Boxes, Made, Own, Row};
use super::{Gcr, GcrParams, Info, LinearSolver, Operators, Preconditioner, Setup, SolverError};
use crate::config::key::{Absent, Change, Key, Shape, form, integer};
use crate::config::raw::Table;
use crate::config::reader::{Read, Value, extent, four};
use crate::config::section::Section;
use crate::device::kernels::{BlockGrid, BlockLength, BlockPart, BlockProducts, BlockStep, PART, int};
use crate::device::{Buffer, Precision};
use crate::field::{Dagger, Domain, FieldError, Kind, ODD, Spinor, least_length};
use crate::lattice::{Extents, shape, volume};
use crate::operator::Blocks;
use std::sync::Arc;
use toml::de::DeValue;

/// The method "gcr-dd": GCR with this preconditioner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrDd {
    /// The greatest size of the Krylov space.
    pub k_max: usize,
    /// Minimal-residual steps of the preconditioner.
    pub n_mr: usize,
    /// Extents of a block; `None`: the rank's box.
    pub block: Option<Extents>,
}

const N_MR: Key<usize> =
    Key::new("n_mr", integer(1, 64), Absent::Is("8"), Change::Tuning, "minimal-residual steps in a block")
        .settled_as("method");
const BLOCK: Key<Option<Extents>> = Key::new(
    "block",
    form(
        "`\"rank\"` or 4 even integers",
        Shape::Either(&[Shape::Words(&["rank"]), Shape::List(&Shape::Integer(2, 4096), Some(4))]),
        block,
    ),
    Absent::Is("\"rank\""),
    Change::Tuning,
    "extents x, y, z, t of a block, which divide the box of a rank. `\"rank\"`: that box, and the bits then depend on the \
     grid of ranks; see below",
)
.settled_as("method");
const KEYS: Section = Section { keys: &[&K_MAX, &N_MR, &BLOCK], tables: &[] };

/// `"rank"` reads as `None`.
fn block(value: &Value) -> Read<Option<Extents>> {
    match value.get_ref() {
        DeValue::String(text) if text == "rank" => Ok(None),
        _ => four("\"rank\" or 4 even integers [x, y, z, t]", extent)(value).map(Some),
    }
}

impl Own for GcrDd {
    const ROW: Row = Row {
        word: "gcr-dd",
        about: "the Schwarz preconditioner of `\"gcr-dd\"`; with `\"auto\"`, that this method is tried",
        keys: &[&KEYS],
        mixes: &SCHWARZ,
        tries: &[SCHWARZ[0], SCHWARZ[1]],
        is_linear: true,
        together: 1,
        whole: false,
        has_set_up: false,
        delta: |_| 0.1,
    };
    const DEFAULT: Self = Self { k_max: 16, n_mr: 8, block: None };

    fn read(self, table: &mut Table) -> Self {
        Self {
            k_max: table.get_or(&K_MAX, Some(self.k_max)),
            n_mr: table.get_or(&N_MR, Some(self.n_mr)),
            block: table.get_or(&BLOCK, Some(self.block)),
        }
    }

    fn check(self, _: Option<&Table>, own: &Table, boxes: Boxes) {
        let Some(block) = self.block.filter(|_| own.has("block")) else { return };
        let cuts = |whole: &Extents| (0..4).all(|mu| whole[mu].is_multiple_of(block[mu]));
        let lattice = boxes.lattice.map(|extents| ("the lattice", extents));
        let local = boxes.partition.map(|partition| ("a rank's box", partition.local()));
        if let Some((what, extents)) = lattice.into_iter().chain(local).find(|(_, all)| !cuts(all)) {
            let (block, extents) = (shape(block), shape(extents));
            own.mistake("block", format!("block: blocks of {block} do not divide {what} of {extents}"));
        }
    }

    fn linear(self, precisions: [Precision; 3], delta: f64, domain: &Arc<Domain>, _: usize) -> Option<Made> {
        let [_, precision, lowest] = precisions;
        let make = || -> Made {
            let schwarz = Schwarz::new(domain, lowest, self.n_mr, self.block)?;
            let params = GcrParams { precision, k_max: self.k_max, delta };
            let solver: Box<dyn LinearSolver> = Box::new(Gcr::new(domain, params, Box::new(schwarz), 1)?);
            Ok(solver)
        };
        Some(make())
    }
}

/// The preconditioner's vectors.
pub struct Schwarz {
    blocks: Blocks,
    steps: usize,
    residual: Spinor,
    product: Spinor,
    solution: Spinor,
    /// For blocks of fixed extents: products per site, then step lengths. Their order of summation does not depend on
    /// the number of blocks. The sum over a rank's whole box has another order, and differs by rounding.
    tables: Option<[Buffer; 2]>,
}

impl Schwarz {
    /// Workspace for `steps` steps in `precision`, in blocks of these extents; `None`: this rank's box.
    ///
    /// # Panics
    /// The blocks do not tile the box.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        steps: usize,
        block: Option<Extents>,
    ) -> Result<Self, FieldError> {
        let blocks = Blocks::new(domain.partition().local(), block);
        assert!(blocks.extents[0].is_multiple_of(2), "blocks with as many even as odd sites in each row");
        let own = || Spinor::new(domain, precision);
        let sites = volume(domain.partition().local()) / 2;
        let tables = blocks
            .fixed
            .then(|| {
                Ok::<_, FieldError>([
                    domain.device().buffer(sites * 3 * 8)?,
                    domain.device().buffer(blocks.count() * 2 * 8)?,
                ])
            })
            .transpose()?;
        Ok(Self { blocks, steps, residual: own()?, product: own()?, solution: own()?, tables })
    }
}

impl Preconditioner for Schwarz {
    fn apply(
        &mut self,
        operators: &mut Operators,
        out: &mut [&mut Spinor],
        x: &[&Spinor],
        dagger: Dagger,
        _: &mut Info,
    ) -> Result<(), FieldError> {
        out.iter_mut().zip(x).try_for_each(|(out, x)| self.apply_to_one(operators, out, x, dagger))
    }
}

impl Schwarz {
    fn apply_to_one(
        &mut self,
        operators: &mut Operators,
        out: &mut Spinor,
        x: &Spinor,
        dagger: Dagger,
    ) -> Result<(), FieldError> {
        let Self { blocks, steps, residual, product, solution, tables } = self;
        let operator = operators.at(solution.precision()).blocked(blocks)?;
        let operator = operator.expect("an operator that acts in Schwarz blocks");
        residual.copy_from(x)?;
        solution.set_zero()?;
        for _ in 0..*steps {
            operator.apply_in_blocks(product, residual, dagger)?;
            if let Some(tables) = tables {
                block_step(blocks, tables, solution, residual, product)?;
            } else {
                let (overlap, norm) = product.dot_norm2_here(residual)?;
                solution.mr_step(least_length(overlap, norm), residual, product)?;
            }
        }
        out.copy_from(solution)
    }
}

impl Setup for Schwarz {
    /// Lets the operator build its tables for the blocks.
    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        operators.at(self.solution.precision()).blocked(&self.blocks)?;
        Ok(())
    }
}

fn block_step(
    blocks: &Blocks,
    [products, lengths]: &mut [Buffer; 2],
    solution: &mut Spinor,
    residual: &mut Spinor,
    product: &Spinor,
) -> Result<(), FieldError> {
    let domain = Arc::clone(solution.domain());
    domain.check([residual.domain(), product.domain()]);
    // Whoever filled the product may have put another field in its place.
    let of = |s: &Spinor| (s.precision(), s.kind(), s.fields());
    let own = (solution.precision(), Kind::Dirac, 1);
    assert!(
        [&*solution, residual, product].into_iter().all(|s| of(s) == own),
        "single spinors in one precision"
    );
    let ints = |x: Extents| x.map(int);
    let grid = BlockGrid { block: ints(blocks.extents), blocks: ints(blocks.counts) };
    let (parity, precision) = (int(ODD), solution.precision());
    let layout = domain.layout(precision);
    let g = layout.geometry();
    let (x, y) = (residual.fermions(), product.fermions());
    let kernel = BlockProducts { g, grid, x, y, products: products.output(), parity };
    domain.launch_as(precision, &kernel, layout.half())?;
    let parts = (blocks.extents.iter().product::<usize>() / 2).div_ceil(PART);
    let kernel = BlockPart { grid, products: products.output() };
    domain.launch_as(precision, &kernel, parts * blocks.count())?;
    let kernel = BlockLength { grid, products: products.input(), lengths: lengths.output() };
    domain.launch_as(precision, &kernel, blocks.count())?;
    let (x, y, z) = (residual.fermions_mut(), product.fermions(), solution.fermions_mut());
    let kernel = BlockStep { g, grid, x, y, z, lengths: lengths.input(), parity };
    domain.launch_as(precision, &kernel, layout.half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "in each row")]
    fn blocks_of_single_sites_are_refused() {
        let _ = Schwarz::new(&Domain::local([4; 4]).unwrap(), Precision::Single, 4, Some([1; 4]));
    }
}
