//! Additive Schwarz: a few minimal-residual steps in each block separately (Babich, Clark, Joo, Shi, Brower, Gottlieb,
//! SC11, section 8.1). Nothing crosses blocks: no halos, no sums over ranks.
//!
//! The operator must be able to act in blocks ([`SchwarzOperator`](crate::operator::SchwarzOperator)). If the only
//! block is this rank's box (the paper's choice), the result depends on the grid of ranks; with blocks of fixed extents
//! it does not.

use super::{Info, Operators, Preconditioner, Setup, SolverError};
use crate::device::kernels::{BlockGrid, BlockLength, BlockPart, BlockProducts, BlockStep, PART, int};
use crate::device::{Buffer, Precision};
use crate::field::{Dagger, Domain, FieldError, Kind, ODD, Spinor, least_length};
use crate::lattice::{Extents, volume};
use crate::operator::Blocks;
use std::sync::Arc;

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
