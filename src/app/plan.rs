//! What `hmc --check` prints: partition, memory, files, cost.

use super::{assemble, start, terms};
use crate::action::QuarkParams;
use crate::config::{Flavours, Input};
use crate::device::Precision;
use crate::lattice::{LaneGrid, Partition, shape, volume};
use crate::operator::{Schur, WilsonParams};
use crate::solver::{Method, Settings};

/// Poles of one flavour, before its functions are made.
const POLES: usize = 24;

/// Bytes of a rank's fields.
struct Sizes {
    /// Sites of one parity.
    half: usize,
    /// All sites, with borders.
    bordered: usize,
}

impl Sizes {
    fn spinors(&self, count: usize, precision: Precision) -> usize {
        count * self.half * precision.stored(24, 1)
    }

    fn doubles(&self, count: usize) -> usize {
        self.spinors(count, Precision::Double)
    }

    fn matrices(&self, blocks: usize) -> usize {
        self.bordered * blocks * 18 * 8
    }

    fn algebra(&self) -> usize {
        2 * self.half * 32 * 8
    }

    /// Hermitian blocks on one parity.
    fn clover(&self, precision: Precision) -> usize {
        self.half * 2 * precision.stored(36, 1)
    }

    /// Links, spinors on even sites, and the clover term where it is a copy.
    fn operator(&self, params: &WilsonParams, precision: Precision, link_reals: usize) -> usize {
        let spare = usize::from(params.schur == Schur::Symmetric);
        let copies = if params.c_sw != 0.0 && precision != Precision::Double { 2 } else { 0 };
        2 * self.half * precision.stored(4 * link_reals, 0)
            + self.spinors(1 + spare, precision)
            + copies * self.clover(precision)
    }

    /// Operators, clover term, workspace of the solver, past solutions.
    fn quark(&self, quark: &QuarkParams) -> usize {
        let QuarkParams { operator, solver, link_reals, guess } = quark;
        let Settings { method, precisions: [outer, krylov, inner], .. } = *solver;
        let mut bytes = self.operator(operator, Precision::Double, (*link_reals).max(12));
        for lower in [Precision::Single, Precision::Half] {
            if solver.precisions.contains(&lower) {
                bytes += self.operator(operator, lower, *link_reals);
            }
        }
        if operator.c_sw != 0.0 {
            // Both parities, and the inverse on one or both.
            bytes += (3 + usize::from(operator.schur == Schur::Symmetric)) * self.clover(Precision::Double);
        }
        let lower = |precision, count| {
            if precision == Precision::Double { 0 } else { self.spinors(count, precision) }
        };
        bytes += match method {
            Method::Cg => self.doubles(4) + lower(krylov, 5),
            Method::BiCgStab => self.doubles(6) + self.spinors(6, krylov),
            Method::GcrDd { k_max, .. } => {
                // The last: products of sites in blocks.
                let blocks = self.half * 3 * 8;
                let schwarz = self.spinors(3, inner) + blocks;
                self.doubles(6) + lower(outer, 3) + self.spinors(2 * k_max + 2, krylov) + schwarz
            }
        };
        // While a guess is made, a basis and its images are there too.
        bytes + self.doubles(3 * guess)
    }

    /// Of all shifts: solutions; and in the iteration's precision directions, and solutions again where it is lower.
    fn shifts(&self, precision: Precision) -> usize {
        let own = if precision == Precision::Double { POLES } else { 2 * POLES };
        self.doubles(POLES) + self.spinors(3 + own, precision)
    }
}

/// Bytes that a rank's fields take, but for faces.
fn memory(input: &Input, partition: &Partition, border: usize) -> usize {
    let local = partition.local();
    let bordered = (0..4).map(|mu| local[mu] + if partition.is_cut(mu) { 2 * border } else { 0 }).product();
    let sizes = Sizes { half: volume(local) / 2, bordered };
    // Links, saved links, one shifted or host copy; momenta and force.
    let mut bytes = 3 * sizes.matrices(4) + 2 * sizes.algebra();
    for fermion in &input.fermions {
        for factor in terms::factors(fermion) {
            let heavier = factor.heavier.as_ref();
            bytes += sizes.quark(&factor.quark) + heavier.map_or(0, |heavier| sizes.quark(heavier));
            if let Flavours::One(_) = fermion.flavours {
                // The sum over poles, and vectors of the spectrum.
                bytes += sizes.shifts(factor.quark.solver.precisions[1]) + sizes.doubles(5);
            }
            // phi, x, V^dag phi of a ratio, and the pairs of the force.
            bytes += sizes.doubles(6 + usize::from(heavier.is_some()));
            if fermion.c_sw != 0.0 {
                bytes += sizes.matrices(6);
            }
            if let Some(stout) = fermion.stout {
                let level = sizes.matrices(4) + sizes.algebra();
                bytes += (stout.steps + 1) * level;
            }
        }
    }
    bytes
}

fn megabytes(bytes: usize) -> String {
    if bytes < 1 << 30 {
        format!("{:.1} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.2} GB", bytes as f64 / 1e9)
    }
}

/// The plan of a run on `ranks` ranks, as text.
pub fn plan(input: &Input, partition: &Partition, ranks: usize) -> String {
    let border = assemble::border(input);
    let local = partition.local();
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    let lanes = start::lanes(&input.parallel, partition);
    let lane_grid = LaneGrid::choose(local, cut, lanes).map_or_else(|| "-".into(), |grid| shape(grid.0));
    let run = &input.run;
    let configuration = volume(input.extents) * 72 * 8;
    let kept = (run.trajectories / run.save_every.max(1)) as usize;
    let folder = run.ensembles.join(&run.name);
    let mut text = format!(
        "lattice        {}\nranks          {ranks} as {}\nlocal lattice  {}\nlanes (CPU)    {lanes} as {lane_grid}\n",
        shape(input.extents),
        shape(partition.grid),
        shape(local),
    );
    text += &format!("memory a rank  about {}\n", megabytes(memory(input, partition, border)));
    text += &format!(
        "trajectories   {} of length {}, {} of them thermalisation\n",
        run.trajectories, input.hmc.tau, run.thermalisation
    );
    for (n, level) in input.hmc.levels.iter().enumerate() {
        text += &format!(
            "level {n}        {:?}, {} steps: {}\n",
            level.integrator,
            level.steps,
            level.terms.join(", ")
        );
    }
    text += &format!("folder         {}\n", folder.display());
    text += &format!(
        "configurations {kept} of {}, {} in all\n",
        megabytes(configuration),
        megabytes(kept * configuration)
    );
    text + &format!(
        "checkpoints    2 of {}, written every {} trajectories\n",
        megabytes(configuration),
        run.checkpoint_every
    )
}
