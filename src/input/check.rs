//! Builds the checked input from all tables.
//!
//! A builder returns `None` only after a mistake was reported, and keeps reading after one.

use super::gauge::gauge;
use super::hmc::hmc;
use super::measure::{measure, quark};
use super::run::{extents, parallel, partition, run};
use super::{Gauge, GridChoice, Input, MeasureInput, Parallel, QuarkInput};
use crate::config::Change;
use crate::config::raw::Table;
use crate::family::fermions;
use crate::family::keys::{Context, Purpose, Term};
use crate::lattice::{Extents, volume};
use crate::measure::MEASURE_SEED;
use crate::solver::keys::{Boxes, TermSolver};
use crate::solver::{Choices, Method};

/// The ranks on which an input is to run.
#[derive(Clone, Copy)]
pub(super) enum On {
    /// Any number.
    Any,
    /// So many.
    Ranks(usize),
    /// Those of a grid, in place of the input's own.
    Grid(Extents),
}

/// The input of a run on these ranks. Terms with "auto" have what is in `choices`.
pub(super) fn input(root: &mut Table, text: &str, on: On, choices: &Choices) -> Option<Input> {
    let run = run(required(root, "run"));
    let (boxes, parallel, at_grid) = {
        let mut lattice = required(root, "lattice");
        let mut table = root.table("parallel");
        let extents = extents(&mut lattice);
        let mut parallel = parallel(&mut table);
        let ranks = match on {
            On::Any => None,
            On::Ranks(count) => Some(count),
            On::Grid(grid) => {
                parallel.grid = GridChoice::Of(grid);
                Some(volume(grid))
            }
        };
        let partition = extents
            .zip(ranks)
            .and_then(|(extents, ranks)| partition(extents, &parallel, ranks, &lattice, &table));
        let at_grid = table.at("grid");
        lattice.finish();
        table.finish();
        (Boxes { lattice: extents, partition }, parallel, at_grid)
    };
    let table = required(root, "gauge");
    let term = Term { name: "gauge".to_owned(), at: table.at(""), is_fermion: false, allowed: None };
    let gauge = gauge(table);
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
    if parallel.grid == GridChoice::Tuned {
        let by_rank = |solver: &TermSolver| {
            matches!(solver.settings.method, Method::GcrDd { block: None, .. })
                || solver.candidates.iter().any(|choice| choice.method == "gcr-dd")
        };
        let mut all = fermions.iter().flatten().flat_map(|fermion| fermion.solvers());
        if let Some((term, _)) = all.find(|(_, solver)| by_rank(solver)) {
            root.mistake_at(
                at_grid,
                format!(
                    "grid: with GCR-DD in ranks' boxes, or tried by \"auto\", the bits of term '{term}' may depend on the \
                     grid, which must not follow from times then: name one"
                ),
            );
        }
    }
    let hmc = hmc(required(root, "hmc"), &context.terms);
    let measure = measure(root.table("measure"), &context.terms, boxes.lattice);
    let parts = (run?, boxes.lattice?, gauge?, fermions?, hmc?, measure?);
    let (run, extents, gauge, fermions, hmc, measure) = parts;
    let (kept, text) = (root.kept(), text.to_owned());
    Some(Input { run, extents, parallel, gauge, fermions, hmc, measure, kept, text })
}

/// The input of `hmc measure`; the lattice is that of each configuration. The input of a run is checked as such, for
/// any number of ranks; its seed keys the random sources.
pub(super) fn measure_input(root: &mut Table, text: &str) -> Option<MeasureInput> {
    if ["run", "lattice", "gauge", "hmc"].iter().any(|table| root.has(table)) {
        let Input { run, parallel, fermions, measure, .. } = input(root, text, On::Any, &Choices::new())?;
        return Some(MeasureInput { parallel, fermions, measure, seed: run.seed });
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
    let measure = measure(table, &context.terms, None);
    Some(MeasureInput { parallel, fermions: fermions?, measure: measure?, seed })
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
    gauge(required(root, "gauge"))
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
