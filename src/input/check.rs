//! Builds the checked input; what one key means for another.
//!
//! A builder answers `None` only after a mistake was reported, and reads on after one.

use super::checked::{DeviceChoice, Input, MeasureInput, Parallel, Run, Start, Transport};
use super::fermions::{Purpose, fermions};
use super::measure::measure;
use super::solver::Boxes;
use super::terms::{Term, gauge, hmc};
use crate::config::raw::Table;
use crate::config::reader::{
    MAX_EXTENT, Read, Value, choice, describe, duration, extent, four, name, or_auto, text, whole,
};
use crate::lattice::{Extents, LaneGrid, Partition, choose_grid, shape};
use std::path::PathBuf;

/// The input of a run on `ranks` ranks; `None`: on any number of them.
pub fn input(root: &mut Table, text: &str, ranks: Option<usize>) -> Option<Input> {
    let run = run(required(root, "run"));
    let (boxes, parallel) = {
        let mut lattice = required(root, "lattice");
        let mut table = root.table("parallel");
        let extents = lattice.read("extents", four("4 even integers [x, y, z, t]", extent));
        let parallel = parallel(&mut table);
        let partition = extents
            .zip(ranks)
            .and_then(|(extents, ranks)| partition(extents, &parallel, ranks, &lattice, &table));
        lattice.finish();
        table.finish();
        (Boxes { lattice: extents, partition }, parallel)
    };
    let mut terms = Vec::new();
    let table = required(root, "gauge");
    terms.push(Term { name: "gauge".to_owned(), at: table.at(""), quark: None });
    let gauge = gauge(table);
    let fermions = fermions(root, &mut terms, boxes, Purpose::Run);
    let hmc = hmc(required(root, "hmc"), &terms);
    let measure = measure(root.table("measure"), &terms, boxes.lattice);
    let parts = (run?, boxes.lattice?, gauge?, fermions?, hmc?, measure?);
    let (run, extents, gauge, fermions, hmc, measure) = parts;
    Some(Input { run, extents, parallel, gauge, fermions, hmc, measure, text: text.to_owned() })
}

/// The input of `hmc measure`, whose lattice is that of each configuration. That of a run is checked as such, for any
/// number of ranks, and random sources are by the run's seed.
pub fn measure_input(root: &mut Table, text: &str) -> Option<MeasureInput> {
    if ["run", "lattice", "gauge", "hmc"].iter().any(|table| root.has(table)) {
        let Input { run, parallel, fermions, measure, .. } = input(root, text, None)?;
        return Some(MeasureInput { parallel, fermions, measure, seed: run.seed });
    }
    let mut table = root.table("parallel");
    let parallel = parallel(&mut table);
    table.finish();
    let mut terms = Vec::new();
    let fermions = fermions(root, &mut terms, Boxes::default(), Purpose::Measurement);
    let mut table = required(root, "measure");
    if table.has("every") {
        table.warning("every", "every: has no meaning here, each configuration given is measured");
    }
    let seed = table.read_or("seed", 1, whole(0..=i64::MAX));
    let measure = measure(table, &terms, None);
    Some(MeasureInput { parallel, fermions: fermions?, measure: measure?, seed })
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
    let many = trajectories.is_some_and(|all| all > 10_000_000);
    table.doubt("trajectories", many, "more than 10 million: chains have some thousands");
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
    let devices = [
        ("auto", DeviceChoice::Auto),
        ("cpu", DeviceChoice::Cpu),
        ("cuda", DeviceChoice::Cuda),
        ("emulated", DeviceChoice::Emulated),
    ];
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

/// How the lattice is cut over `ranks` ranks; `None` after a mistake.
fn partition(
    extents: Extents,
    parallel: &Parallel,
    ranks: usize,
    lattice: &Table,
    table: &Table,
) -> Option<Partition> {
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
    let has_lanes = matches!(parallel.device, DeviceChoice::Auto | DeviceChoice::Cpu);
    let lanes = parallel.lanes.filter(|_| has_lanes);
    if let Some(lanes) = lanes.filter(|lanes| LaneGrid::choose(local, cut, *lanes).is_none()) {
        let local = shape(local);
        table.mistake("lanes", format!("lanes: a rank's box of {local} is too small for {lanes} lanes"));
    }
    Some(partition)
}
