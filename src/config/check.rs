//! Builds the checked input; what one key means for another.
//!
//! A builder answers `None` only after a mistake was reported, and reads on after one.

use super::checked::{
    Correlator, DeviceChoice, Flow, FlowKernel, Input, Measure, MeasureInput, Parallel, Run, Start, Transport,
};
use super::fermions::fermions;
use super::raw::Table;
use super::reader::{
    MAX_EXTENT, Read, Value, choice, describe, duration, extent, four, is_name, name, or_auto, positive,
    residual, text, whole,
};
use super::report::hint;
use super::solver::Boxes;
use super::terms::{Term, gauge, hmc};
use crate::lattice::{Extents, LaneGrid, Partition, choose_grid, shape};
use std::path::PathBuf;

/// Largest step of the flow: with the Symanzik kernel, the third-order scheme is stable below
/// about 0.094 (2.51 over the largest eigenvalue 80/3 of the free kernel), Wilson's below 0.157.
const MAX_FLOW_STEP: f64 = 0.15;
const MAX_FLOW_STEP_SYMANZIK: f64 = 0.09;
/// The input of a run on `ranks` ranks; `None`: on any number of them.
pub fn input(root: &mut Table, text: &str, ranks: Option<usize>) -> Option<Input> {
    let run = run(required(root, "run"));
    let (extents, local, parallel) = {
        let mut lattice = required(root, "lattice");
        let mut table = root.table("parallel");
        let extents = lattice.read("extents", four("4 even integers [x, y, z, t]", extent));
        let parallel = parallel(&mut table);
        let local = extents
            .zip(ranks)
            .and_then(|(extents, ranks)| local_box(extents, &parallel, ranks, &lattice, &table));
        lattice.finish();
        table.finish();
        (extents, local, parallel)
    };
    let mut terms = Vec::new();
    let table = required(root, "gauge");
    terms.push(Term { name: "gauge".to_owned(), at: table.at(""), quark: false });
    let gauge = gauge(table);
    let fermions = fermions(root, &mut terms, Boxes { lattice: extents, local });
    let hmc = hmc(required(root, "hmc"), &terms);
    let measure = measure(root.table("measure"), &terms, extents);
    let parts = (run?, extents?, gauge?, fermions?, hmc?, measure?);
    let (run, extents, gauge, fermions, hmc, measure) = parts;
    Some(Input { run, extents, parallel, gauge, fermions, hmc, measure, text: text.to_owned() })
}

/// The input of `hmc measure`, whose lattice is that of each configuration.
pub fn measure_input(root: &mut Table) -> Option<MeasureInput> {
    let mut table = root.table("parallel");
    let parallel = parallel(&mut table);
    table.finish();
    let mut terms = Vec::new();
    let fermions = fermions(root, &mut terms, Boxes::default());
    let table = required(root, "measure");
    if table.has("every") {
        table.warning("every", "every: has no meaning here, each configuration given is measured");
    }
    let measure = measure(table, &terms, None);
    Some(MeasureInput { parallel, fermions: fermions?, measure: measure? })
}

fn required<'a>(root: &mut Table<'a>, key: &'static str) -> Table<'a> {
    root.demand(key);
    root.table(key)
}

fn run(mut table: Table) -> Option<Run> {
    let name = table.read("name", name);
    let seed = table.read("seed", whole(0..=i64::MAX));
    let trajectories = table.read("trajectories", whole(1..=i64::MAX));
    let thermalisation = table.read_or("thermalisation", 0, whole(0..=i64::MAX));
    let start = table.read_or("start", Start::Hot, start);
    let wall_time = table.read_if("wall_time", duration);
    let ensembles = PathBuf::from(table.read_or("ensembles", "ensembles".to_owned(), text));
    let save_every = table.read_or("save_every", 1, whole(1..=i64::MAX));
    let checkpoint_every = table.read_or("checkpoint_every", 1, whole(1..=i64::MAX));
    if let Some(trajectories) = trajectories.filter(|all| thermalisation > *all) {
        let message =
            format!("thermalisation: {thermalisation} is more than all {trajectories} trajectories");
        table.mistake("thermalisation", message);
    }
    table.finish();
    Some(Run {
        name: name?,
        seed: seed?,
        trajectories: trajectories?,
        thermalisation,
        start,
        wall_time,
        ensembles,
        save_every,
        checkpoint_every,
    })
}

/// A word without `/` or `.` is more likely a misspelt `hot` than a file.
fn start(value: &Value) -> Read<Start> {
    let found = text(value)?;
    match found.as_str() {
        "hot" => Ok(Start::Hot),
        "cold" => Ok(Start::Cold),
        path if path.contains(['/', '.']) => Ok(Start::File(PathBuf::from(path))),
        _ => {
            let expected = "expected \"hot\", \"cold\" or a path with a '/' or '.' in it";
            Err(vec![(value.span().start, format!("{expected}, found {}", describe(value)))])
        }
    }
}

fn parallel(table: &mut Table) -> Parallel {
    let ranks = four("\"auto\" or 4 integers [x, y, z, t]", whole(1..=MAX_EXTENT));
    let devices = [("auto", DeviceChoice::Auto), ("cpu", DeviceChoice::Cpu), ("cuda", DeviceChoice::Cuda)];
    let transports = [("auto", Transport::Auto), ("staged", Transport::Staged), ("peer", Transport::Peer)];
    Parallel {
        grid: table.read_or("grid", None, or_auto(ranks)),
        device: table.read_or("device", DeviceChoice::Auto, choice(&devices)),
        threads: table.read_or("threads", None, or_auto(whole(1..=4096))),
        lanes: table.read_or("lanes", None, or_auto(lanes)),
        transport: table.read_or("transport", Transport::Auto, choice(&transports)),
    }
}

fn lanes(value: &Value) -> Read<usize> {
    let lanes = whole(1..=16)(value)?;
    if [1, 4, 8, 16].contains(&lanes) {
        return Ok(lanes);
    }
    Err(vec![(value.span().start, format!("expected 1, 4, 8 or 16 lanes, found {lanes}"))])
}

/// The box of each of `ranks` ranks; `None` after a mistake.
fn local_box(
    extents: Extents,
    parallel: &Parallel,
    ranks: usize,
    lattice: &Table,
    table: &Table,
) -> Option<Extents> {
    let grid = parallel.grid.map_or_else(|| choose_grid(extents, ranks), Ok);
    let partition = match grid.and_then(|grid| Partition::new(extents, grid, ranks, 0)) {
        Ok(partition) => partition,
        Err(error) => {
            match parallel.grid {
                Some(_) => table.mistake("grid", format!("grid: {error}")),
                None => lattice.mistake("extents", format!("extents: {error}")),
            }
            return None;
        }
    };
    let local = partition.local();
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    let lanes = parallel.lanes.filter(|_| parallel.device != DeviceChoice::Cuda);
    if let Some(lanes) = lanes.filter(|lanes| LaneGrid::choose(local, cut, *lanes).is_none()) {
        let local = shape(local);
        table.mistake("lanes", format!("lanes: a rank's box of {local} is too small for {lanes} lanes"));
    }
    Some(local)
}

fn measure(mut table: Table, terms: &[Term], extents: Option<Extents>) -> Option<Measure> {
    let every = table.read_or("every", 1, whole(1..=i64::MAX));
    let loops = table.switch("loops");
    let polyakov = table.switch("polyakov");
    let flow_table = table.table("flow");
    let flow = if flow_table.exists() { flow(flow_table).map(Some) } else { Some(None) };
    let fermions: Vec<&str> = terms.iter().filter(|term| term.quark).map(|term| term.name.as_str()).collect();
    let correlators: Vec<_> = table
        .named_tables("correlator")
        .into_iter()
        .map(|(name, table)| correlator(name, table, &fermions, extents))
        .collect();
    table.finish();
    let correlators = correlators.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Measure { loops, polyakov, flow: flow?, correlators, every })
}

fn flow(mut table: Table) -> Option<Flow> {
    let kernels = [("wilson", FlowKernel::Wilson), ("symanzik", FlowKernel::Symanzik)];
    let kernel = table.read_or("kernel", FlowKernel::Wilson, choice(&kernels));
    let step = table.read_or("step", 0.02, positive);
    let t_max = table.read("t_max", positive);
    let every = table.read_or("every", 1, whole(1..=1_000_000));
    let limit = match kernel {
        FlowKernel::Wilson => MAX_FLOW_STEP,
        FlowKernel::Symanzik => MAX_FLOW_STEP_SYMANZIK,
    };
    if step > limit {
        table.mistake(
            "step",
            format!("step: the integration is unstable at {step}; expected {limit} at most"),
        );
    } else if let Some(t_max) = t_max {
        let steps = t_max / step;
        if steps.round() < 1.0 || (steps - steps.round()).abs() > 1e-6 * steps {
            table.mistake("t_max", format!("t_max: {t_max} is not a whole number of steps of {step}"));
        }
    }
    table.finish();
    Some(Flow { kernel, step, t_max: t_max?, every })
}

fn correlator(
    name: String,
    mut table: Table,
    fermions: &[&str],
    extents: Option<Extents>,
) -> Option<Correlator> {
    if !is_name(&name) {
        table.mistake("", format!("a correlator cannot be named {name:?}: letters, digits, '.', '_', '-'"));
    }
    let fermion = table.read("fermion", text);
    let source = table.read_or("source", [0; 4], four("4 coordinates [x, y, z, t]", whole(0..=MAX_EXTENT)));
    let residual = table.read_or("residual", 1e-12, residual);
    if let Some(unknown) = fermion.as_deref().filter(|name| !fermions.contains(name)) {
        let all = if fermions.is_empty() {
            "; there is no [fermion.NAME]".to_owned()
        } else {
            hint(unknown, fermions)
        };
        table.mistake("fermion", format!("fermion: unknown fermion '{unknown}'{all}"));
    }
    if let Some(extents) = extents.filter(|extents| (0..4).any(|mu| source[mu] >= extents[mu])) {
        let message = format!("source: {source:?} is outside the lattice of {}", shape(extents));
        table.mistake("source", message);
    }
    table.finish();
    Some(Correlator { name, fermion: fermion?, source, residual })
}
