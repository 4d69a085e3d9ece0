//! `[fermion.NAME.solver]` of staggered quarks: conjugate gradients on M^dag M.

use super::RootedSolver;
use crate::config::forms::{FRACTION, RESIDUAL};
use crate::config::key::{Absent, Change, Key, Shape, form, words};
use crate::config::raw::Table;
use crate::config::reader::one_of;
use crate::config::section::Section;
use crate::device::Precision;
use crate::solver::keys::{MAX_ITERATIONS, loose, tight};
use crate::solver::mixes::{PLAIN, PLAIN_OR_SHIFTED, SHIFTED, names};
use crate::solver::usual_delta;

/// Whether to solve all shifts at once.
const STRATEGY: Key<bool> = Key::new(
    "strategy",
    words(&[("multi-shift", true), ("one-by-one", false)]),
    Absent::Is("\"multi-shift\""),
    Change::Tuning,
    "all shifts in one iteration, or each by itself, from the largest to the smallest",
);
const PRECISION: Key<[Precision; 3]> = Key::new(
    "precision",
    words(&PLAIN_OR_SHIFTED),
    Absent::Means("`\"double-double-single\"`; `\"double-single\"` with `\"one-by-one\"`"),
    Change::Tuning,
    "`\"double-half\"` only with `\"one-by-one\"`, three precisions only with `\"multi-shift\"`",
)
.settled_as("precision");
const DELTA: Key<f64> = Key::new(
    "delta",
    FRACTION,
    Absent::Means("`0.1` in half, else `1e-3`"),
    Change::Tuning,
    "as for Wilson quarks",
)
.settled_as("delta");
const LONG_LINK_REALS: Key<usize> = Key::new(
    "long_link_reals",
    form("`18`, `14` or `9`", Shape::Integers(&[18, 14, 9]), |value| {
        one_of(&[18, 14, 9], "18, 14 or 9 reals a long link")(value)
    }),
    Absent::Is("14"),
    Change::Tuning,
    "reals per long link that the operator reads. The rest is rebuilt. Fat links are read whole",
);
const HEAT_BATH_RESIDUAL: Key<f64> = Key::new(
    "heat_bath_residual",
    RESIDUAL,
    Absent::Is("1e-11"),
    Change::Tuning,
    "`\\|b - A x\\| / \\|b\\|` of every shift in the heat bath",
);
const ACTION_RESIDUAL: Key<f64> =
    Key::new("action_residual", RESIDUAL, Absent::Is("1e-11"), Change::Tuning, "the same in the action");
const FORCE_RESIDUAL: Key<f64> =
    Key::new("force_residual", RESIDUAL, Absent::Is("1e-9"), Change::Tuning, "the same in the forces");

/// `[fermion.NAME.solver]` of staggered quarks.
pub(crate) const STAGGERED_SOLVER: Section = Section {
    keys: &[
        &STRATEGY,
        &PRECISION,
        &DELTA,
        &LONG_LINK_REALS,
        &HEAT_BATH_RESIDUAL,
        &ACTION_RESIDUAL,
        &FORCE_RESIDUAL,
        &MAX_ITERATIONS,
    ],
    tables: &[],
};

/// The solver of a term of staggered quarks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaggeredSolver {
    /// The solver of the poles' systems.
    pub settings: RootedSolver,
    /// `|b - A x| / |b|` of every pole in the action.
    pub action_residual: f64,
    /// `|b - A x| / |b|` of every pole in the forces.
    pub force_residual: f64,
}

/// Reads the table.
pub(super) fn solver(mut table: Table) -> StaggeredSolver {
    let strategy = table.get(&STRATEGY);
    let usual = if strategy == Some(false) { PLAIN[0].1 } else { SHIFTED[0].1 };
    let precisions = table.get(&PRECISION).unwrap_or(usual);
    let [_, iteration, refinement] = precisions;
    let half = refinement == Precision::Half;
    let delta = table.get(&DELTA).unwrap_or(usual_delta(half));
    let long_reals = table.get_or(&LONG_LINK_REALS, None);
    let heat_bath_residual = table.get_or(&HEAT_BATH_RESIDUAL, None);
    let (action_residual, force_residual) =
        (table.get_or(&ACTION_RESIDUAL, None), table.get_or(&FORCE_RESIDUAL, None));
    let max_iterations = table.get_or(&MAX_ITERATIONS, None);
    let multi_shift = strategy.unwrap_or(true);
    let settings = RootedSolver {
        precisions: [iteration, refinement],
        delta,
        multi_shift,
        long_reals,
        heat_bath_residual,
        max_iterations,
    };
    let solver = StaggeredSolver { settings, action_residual, force_residual };
    tight(&table, "heat_bath_residual", settings.heat_bath_residual);
    tight(&table, "action_residual", solver.action_residual);
    loose(&table, "action_residual", solver.action_residual);
    tight(&table, "force_residual", solver.force_residual);
    if iteration == Precision::Half && strategy == Some(true) {
        let message = format!(
            "precision: all shifts at once are solved in {}; the strategy \"one-by-one\" has \"double-half\"",
            names(&SHIFTED)
        );
        table.mistake("precision", message);
    } else if iteration != refinement && !multi_shift {
        let message = format!("precision: the strategy \"one-by-one\" has {}", names(&PLAIN));
        table.mistake("precision", message);
    }
    table.keep("precision", &settings.precisions);
    table.keep("delta", &settings.delta);
    table.finish();
    solver
}
