//! Additive Schwarz: in every block alone, a few steps of minimal residuals (Babich, Clark, Joo, Shi, Brower,
//! Gottlieb, SC11, section 8.1). Nothing crosses blocks: no halos, no sums over ranks.
//!
//! With this rank's box as its one block (the paper's choice) the result depends on the cut; with blocks
//! of fixed extents it does not.

use crate::device::kernels::{BlockGrid, BlockLength, BlockPart, BlockProducts, BlockStep, PART};
use crate::device::{Buffer, Precision};
use crate::field::{Domain, FieldError, ODD, Spinor};
use crate::operator::{Blocks, SchwarzOperator};
use std::sync::Arc;

/// The preconditioner's vectors.
pub(super) struct Schwarz {
    steps: usize,
    residual: Spinor,
    product: Spinor,
    solution: Spinor,
    /// Of blocks of fixed extents: products of sites, then step lengths. They are summed in one order however many
    /// blocks this rank has; the sum over its whole box is another one, and differs by rounding.
    tables: Option<[Buffer; 2]>,
}

impl Schwarz {
    /// Room for `steps` steps in `precision` and the blocks given.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        steps: usize,
        blocks: &Blocks,
    ) -> Result<Self, FieldError> {
        let own = || Spinor::new(domain, precision);
        let sites = domain.half() * domain.lanes().count();
        let tables = blocks
            .fixed
            .then(|| {
                Ok::<_, FieldError>([
                    domain.device().buffer(sites * 3 * 8)?,
                    domain.device().buffer(blocks.count() * 2 * 8)?,
                ])
            })
            .transpose()?;
        Ok(Self { steps, residual: own()?, product: own()?, solution: own()?, tables })
    }

    /// `out ~ M^-1 x` block by block.
    ///
    /// # Errors
    /// The device is lost.
    pub fn apply(
        &mut self,
        operator: &mut dyn SchwarzOperator,
        out: &mut Spinor,
        x: &Spinor,
        dagger: bool,
    ) -> Result<(), FieldError> {
        let Self { residual, product, solution, tables, .. } = self;
        residual.copy_from(x)?;
        solution.set_zero()?;
        for _ in 0..self.steps {
            operator.apply_in_blocks(product, residual, dagger)?;
            if let Some(tables) = tables {
                block_step(operator, tables, solution, residual, product)?;
            } else {
                let (overlap, norm) = product.dot_norm2_here(residual)?;
                let length = if norm > 0.0 { overlap / norm } else { num_complex::Complex64::default() };
                solution.mr_step(length, residual, product)?;
            }
        }
        out.copy_from(solution)
    }
}

fn block_step(
    operator: &dyn SchwarzOperator,
    [products, lengths]: &mut [Buffer; 2],
    solution: &mut Spinor,
    residual: &mut Spinor,
    product: &Spinor,
) -> Result<(), FieldError> {
    let (domain, blocks) = (operator.domain(), operator.blocks());
    domain.check([solution.domain(), residual.domain(), product.domain()]);
    let ints = |x: [usize; 4]| x.map(|n| n as i32);
    let grid = BlockGrid { block: ints(blocks.extents), blocks: ints(blocks.counts) };
    let (g, parity, precision) = (domain.geometry(), ODD as i32, solution.precision());
    let (x, y) = (residual.fermions(), product.fermions());
    let kernel = BlockProducts { g, grid, x, y, products: products.output(), parity };
    domain.launch_as(precision, &kernel, domain.half())?;
    let parts = (blocks.extents.iter().product::<usize>() / 2).div_ceil(PART);
    let kernel = BlockPart { grid, products: products.output() };
    domain.launch_as(precision, &kernel, parts * blocks.count())?;
    let kernel = BlockLength { grid, products: products.input(), lengths: lengths.output() };
    domain.launch_as(precision, &kernel, blocks.count())?;
    let (x, y, z) = (residual.fermions_mut(), product.fermions(), solution.fermions_mut());
    let kernel = BlockStep { g, grid, x, y, z, lengths: lengths.input(), parity };
    domain.launch_as(precision, &kernel, domain.half())
}
