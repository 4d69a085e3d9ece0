//! What `hmc --check` prints: partition, memory, files, cost.

use super::{assemble, start};
use crate::config::{Input, Real};
use crate::lattice::{LaneGrid, Partition, shape, volume};

/// Bytes that a rank's fields take.
fn memory(input: &Input, partition: &Partition, border: usize) -> usize {
    let local = partition.local();
    let bordered: usize =
        (0..4).map(|mu| local[mu] + if partition.is_cut(mu) { 2 * border } else { 0 }).product();
    let (sites, half) = (volume(local), volume(local) / 2);
    let matrix = |blocks: usize| bordered * blocks * 18 * 8;
    // Links, saved links, one shifted copy; momenta and force.
    let mut bytes = 3 * matrix(4) + 2 * sites * 32 * 8;
    for fermion in &input.fermions {
        let spinor = |reals: usize| half * 24 * reals;
        // One term of the Hamiltonian for the fermion and one for each Hasenbusch factor.
        let factors = fermion.hasenbusch.iter().map(|factor| &factor.solver);
        for solver in std::iter::once(&fermion.solver).chain(factors) {
            let links = sites * 4 * solver.link_reals;
            // X, Y on both parities, phi, solver's vectors, the operator's own; past solutions.
            bytes += spinor(8) * (10 + 3 * solver.guess) + links * 8;
            if fermion.c_sw != 0.0 {
                bytes += matrix(6) + sites * 72 * 8 * 2;
            }
            if solver.precision[1] != Real::Double {
                bytes += spinor(4) * 6 + links * 4 + sites * 72 * 4;
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
