//! The part of `hmc --check` that depends only on the input: partition, integrator, files.

use super::assemble;
use super::assemble::Layers;
use super::resume::columns;
use crate::app::machine::start;
use crate::app::output::megabytes;
use crate::hmc::Scheme;
use crate::input::Input;
use crate::io::Format;
use crate::lattice::{Partition, shape, volume};

/// Bytes of a configuration or checkpoint.
pub(in crate::app) fn configuration(input: &Input) -> usize {
    volume(input.extents) * 72 * 8
}

/// Bytes of a configuration in all formats in which it is kept.
pub(in crate::app) fn in_all_formats(input: &Input) -> usize {
    let one = configuration(input);
    let of = |format: &Format| one / 8 * format.precision().bytes();
    one + input.run.save_formats.iter().map(of).sum::<usize>()
}

/// An integrator's name in the input.
fn integrator(scheme: &Scheme) -> String {
    match scheme {
        Scheme::Leapfrog => "leapfrog".to_owned(),
        Scheme::Omelyan2 { lambda } => format!("2mn (lambda {lambda:.6})"),
        Scheme::Omelyan2Position { lambda } => format!("2mn-position (lambda {lambda:.6})"),
        Scheme::Omelyan4 => "omf4".to_owned(),
        Scheme::ForceGradient => "force-gradient".to_owned(),
        Scheme::ThreeToOne => "3g1f".to_owned(),
    }
}

/// Bytes of the history of so many trajectories, about.
pub(in crate::app) fn history(input: &Input, trajectories: u64) -> usize {
    const FIELD: usize = 20;
    (FIELD * columns(&input.hmc).len()).saturating_mul(trajectories as usize)
}

/// The plan of a run on `ranks` ranks, as text.
pub(in crate::app) fn plan(input: &Input, partition: &Partition, ranks: usize) -> String {
    let Layers { reach, .. } = assemble::layers(input, [&input.measure]);
    let local = partition.local();
    let lanes = start::lanes(&input.parallel, partition, reach);
    let lane_grid =
        start::lane_grid(partition, lanes.double, reach).map_or_else(|| "-".into(), |grid| shape(grid.0));
    let of_lower = if lanes.lower == lanes.double {
        String::new()
    } else {
        format!(", {} in single and half", lanes.lower)
    };
    let half_empty = if lanes.lower == 1 {
        "; extents of multiples of 4 fill the processor's vectors, a site of 6^4 takes four times that of 8^4"
    } else {
        ""
    };
    let lanes = lanes.double;
    let run = &input.run;
    let configuration = configuration(input);
    let kept = (run.trajectories / run.save_every.max(1)) as usize;
    let folder = run.folder();
    let mut text = format!(
        "lattice        {}\nranks          {ranks} as {}\nlocal lattice  {}\nlanes (CPU)    {lanes} as {lane_grid}{of_lower}{half_empty}\n",
        shape(input.extents),
        shape(partition.grid),
        shape(local),
    );
    text += &format!(
        "trajectories   {} of length {}, {} of them thermalisation\n",
        run.trajectories, input.hmc.tau, run.thermalisation
    );
    for (n, (level, terms)) in input.hmc.levels.iter().zip(&input.hmc.terms).enumerate() {
        text += &format!(
            "level {n}        {}, {} step{}: {}\n",
            integrator(&level.scheme),
            level.steps,
            if level.steps == 1 { "" } else { "s" },
            terms.join(", ")
        );
    }
    for fermion in &input.fermions {
        for (title, note) in fermion.notes() {
            text += &format!("{title:<14} {note}\n");
        }
    }
    text += &format!("folder         {}\n", folder.display());
    text += &format!(
        "configurations {kept} of {}{}, {} in all\n",
        megabytes(configuration),
        run.save_formats.iter().map(|format| format!(", and as {format}")).collect::<String>(),
        megabytes(kept.saturating_mul(in_all_formats(input)))
    );
    text + &format!(
        "checkpoints    2 of {}, written every {}\nrecords        {} of the history, and measurements\n",
        megabytes(configuration),
        if run.checkpoint_every == 1 {
            "trajectory".to_owned()
        } else {
            format!("{} trajectories", run.checkpoint_every)
        },
        megabytes(history(input, run.trajectories))
    )
}
