//! Builds the checked input from all tables.
//!
//! A builder returns `None` only after a mistake was reported, and keeps reading after one.

use super::gauge::gauge;
use super::hmc::hmc;
use super::measure::{measure, quark};
use super::run::{extents, parallel, partition, run, time_boundary};
use super::{Gauge, Input, MeasureInput, Parallel, QuarkInput};
use crate::config::Change;
use crate::config::raw::Table;
use crate::family::fermions;
use crate::family::keys::{Context, Purpose, Term};
use crate::lattice::TimeBoundary;
use crate::measure::MEASURE_SEED;
use crate::solver::Choices;
use crate::solver::keys::Boxes;

/// The input of a run on so many ranks, `None`: on any. Terms with "auto" have what is in `choices`.
pub(super) fn input(root: &mut Table, text: &str, ranks: Option<usize>, choices: &Choices) -> Option<Input> {
    let run = run(required(root, "run"));
    let (boxes, parallel) = {
        let mut lattice = required(root, "lattice");
        let mut table = root.table("parallel");
        let extents = extents(&mut lattice);
        let time = time_boundary(&mut lattice);
        if time.has_walls() && extents.is_some_and(|extents| extents[3] < 4) {
            lattice.mistake("extents", "extents: between walls in time, t needs 4 or more");
        }
        let parallel = parallel(&mut table);
        let partition = extents
            .zip(ranks)
            .and_then(|(extents, ranks)| partition(extents, &parallel, ranks, &lattice, &table));
        lattice.finish();
        table.finish();
        (Boxes { lattice: extents, time, partition }, parallel)
    };
    let table = required(root, "gauge");
    let term = Term { name: "gauge".to_owned(), at: table.at(""), is_fermion: false, allowed: None };
    let gauge = gauge(table, boxes.time);
    let mut context = Context { terms: vec![term], boxes, purpose: Purpose::Run, choices: choices.clone() };
    let fermions = fermions(root, &mut context);
    if let Some(fermions) = &fermions {
        // The order of fermions fixes the pseudofermions' random streams.
        root.keep_as(
            "fermion",
            Change::Fixed,
            &fermions.iter().map(|fermion| fermion.name()).collect::<Vec<_>>(),
        );
    }
    let hmc = hmc(required(root, "hmc"), &context.terms);
    let measure = measure(root.table("measure"), &context.terms, boxes.lattice, boxes.time);
    let parts = (run?, boxes.lattice?, gauge?, fermions?, hmc?, measure?);
    let (run, extents, gauge, fermions, hmc, measure) = parts;
    let time = boxes.time;
    let (kept, text) = (root.kept(), text.to_owned());
    Some(Input { run, extents, time, parallel, gauge, fermions, hmc, measure, kept, text })
}

/// The input of `hmc measure`; the lattice is that of each configuration. The input of a run is checked as such, for
/// any number of ranks; its seed keys the random sources.
pub(super) fn measure_input(root: &mut Table, text: &str) -> Option<MeasureInput> {
    if ["run", "lattice", "gauge", "hmc"].iter().any(|table| root.has(table)) {
        let Input { run, time, parallel, fermions, measure, .. } = input(root, text, None, &Choices::new())?;
        return Some(MeasureInput { parallel, fermions, measure, time, seed: run.seed });
    }
    let mut table = root.table("parallel");
    let parallel = parallel(&mut table);
    table.finish();
    let (boxes, purpose) = (Boxes::default(), Purpose::Measurement);
    let mut context = Context { terms: Vec::new(), boxes, purpose, choices: Choices::new() };
    let fermions = fermions(root, &mut context);
    let mut table = required(root, "measure");
    if table.has("every") {
        table.warning("every", "every: has no effect here; every given configuration is measured");
    }
    let seed = table.get_or(&MEASURE_SEED, None);
    let time = TimeBoundary::Periodic;
    let measure = measure(table, &context.terms, None, time);
    Some(MeasureInput { parallel, fermions: fermions?, measure: measure?, time, seed })
}

/// What to know of a quark: its `[fermion.NAME]`, and in `[quark]` what a measurement would set.
pub(super) fn quark_input(root: &mut Table) -> Option<QuarkInput> {
    let mut context = Context {
        terms: Vec::new(),
        boxes: Boxes::default(),
        purpose: Purpose::Measurement,
        choices: Choices::new(),
    };
    let fermions = fermions(root, &mut context);
    let quark = quark(required(root, "quark"), &context.terms);
    Some(QuarkInput { fermions: fermions?, quark: quark? })
}

/// `[gauge]` alone.
pub(super) fn gauge_input(root: &mut Table) -> Option<Gauge> {
    gauge(required(root, "gauge"), TimeBoundary::Periodic)
}

/// `[parallel]` alone, which may be missing.
pub(super) fn parallel_input(root: &mut Table) -> Option<Parallel> {
    let mut table = root.table("parallel");
    let parallel = parallel(&mut table);
    table.finish();
    Some(parallel)
}

fn required<'a>(root: &mut Table<'a>, key: &'static str) -> Table<'a> {
    root.demand(key);
    root.table(key)
}
