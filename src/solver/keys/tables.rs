//! The keys, one by one, and their tables.

use crate::config::forms::{FRACTION, ITERATIONS, RESIDUAL};
use crate::config::key::{Absent, Change, Key, Shape, form, integer, words};
use crate::config::reader::one_of;
use crate::config::section::Section;
use crate::device::Precision::{self, Double, Single};
use crate::solver::Method;
use crate::solver::cg::ConjugateGradients;
use crate::solver::method::{TABLES, WORDS, Wanted};
use crate::solver::mixes::{ALL, PLAIN_OR_SHIFTED};
use crate::solver::row::Own;

/// The methods for domain-wall quarks.
const WALL_WORDS: &[(&str, Wanted)] =
    &[(ConjugateGradients::ROW.word, Wanted::One(Method::CG)), ("auto", Wanted::Auto)];

pub(super) const METHOD: Key<Wanted> = Key::new(
    "method",
    words(WORDS),
    Absent::Is("\"cg\""),
    Change::Tuning,
    "conjugate gradients, BiCGstab, GCR with a Schwarz preconditioner or with multigrid, or the fastest in a trial; see below",
)
.settled_as("method");
pub(super) const PRECISION: Key<[Precision; 3]> = Key::new(
    "precision",
    words(ALL),
    Absent::Means(
        "`\"double-single\"`; `\"double-single-half\"` with `gcr-dd` and `multigrid`; `\"double-double-single\"` with rational functions",
    ),
    Change::Tuning,
    "see below",
)
.settled_as("precision");
pub(super) const DELTA: Key<f64> = Key::new(
    "delta",
    FRACTION,
    Absent::Means("`0.1` in half and with `gcr-dd`, else `1e-3`"),
    Change::Tuning,
    "the true residual is computed each time that the residual of the iteration has fallen by this factor: a reliable \
     update, with `gcr-dd` and `multigrid` a restart. Without meaning in `\"double\"`",
)
.settled_as("delta");
pub(super) const LINK_REALS: Key<usize> = Key::new(
    "link_reals",
    form("`18`, `12` or `8`", Shape::Integers(&[18, 12, 8]), |value| {
        one_of(&[18, 12, 8], "18, 12 or 8 reals per link")(value)
    }),
    Absent::Is("12"),
    Change::Tuning,
    "reals stored per link: 18 (all), 12 (the third row is reconstructed) or 8 (reconstructed from 8 parameters)",
)
.settled_as("link_reals");
pub(super) const ACTION_RESIDUAL: Key<f64> = Key::new(
    "action_residual",
    RESIDUAL,
    Absent::Is("1e-11"),
    Change::Tuning,
    "`\\|b - A x\\| / \\|b\\|`, A = W^dag W, of the action at the end of a trajectory, and of the heat bath if it needs a \
     solve",
)
.settled_as("action_residual");
pub(super) const FORCE_RESIDUAL: Key<f64> =
    Key::new("force_residual", RESIDUAL, Absent::Is("1e-9"), Change::Tuning, "the same in the forces")
        .settled_as("force_residual");
/// The maximum number of iterations; a solve that needs more is an error.
pub(crate) const MAX_ITERATIONS: Key<usize> = Key::new(
    "max_iterations",
    ITERATIONS,
    Absent::Is("10000"),
    Change::Free,
    "a solve, or a measurement of a spectrum, that needs more ends the job. The chain stays at its last checkpoint and can \
     be resumed with a larger number. With one flavour the iterations for all shifts together are counted, then those of \
     each shift that is refined",
);
pub(super) const GUESS: Key<usize> = Key::new(
    "guess",
    integer(0, 12),
    Absent::Is("0"),
    Change::Tuning,
    "past solutions from which the next one is guessed. Above 0, `force_residual` should be 1e-9 or smaller, for \
     reversibility. Refused above 0 with rational functions",
)
.settled_as("guess");
pub(super) const GUESS_PRECISION: Key<Precision> = Key::new(
    "guess_precision",
    words(&[("double", Double), ("single", Single)]),
    Absent::Is("\"double\""),
    Change::Tuning,
    "of past solutions; `\"single\"` takes less than half the memory, and guesses as well",
)
.settled_as("guess_precision");
/// `[fermion.NAME.solver]` of Wilson and domain-wall quarks.
pub(crate) const SOLVER: Section = Section {
    keys: &[
        &METHOD,
        &PRECISION,
        &DELTA,
        &LINK_REALS,
        &ACTION_RESIDUAL,
        &FORCE_RESIDUAL,
        &MAX_ITERATIONS,
        &GUESS,
        &GUESS_PRECISION,
    ],
    tables: &TABLES,
};

pub(super) const WALL_METHOD: Key<Wanted> = Key::new(
    "method",
    words(WALL_WORDS),
    Absent::Is("\"cg\""),
    Change::Tuning,
    "conjugate gradients; with `\"auto\"` in the faster precision",
)
.settled_as("method");
pub(super) const WALL_PRECISION: Key<[Precision; 3]> = Key::new(
    "precision",
    words(&PLAIN_OR_SHIFTED),
    Absent::Means("`\"double-single\"`; `\"double-double-single\"` with rational functions"),
    Change::Tuning,
    "iterations in the second precision, corrected in the first. Three precisions only with `one_flavour = \"rational\"`, \
     which is not solved in `\"double-half\"`",
)
.settled_as("precision");

/// `[fermion.NAME.solver]` of domain-wall quarks.
pub(crate) const WALL_SOLVER: Section = Section {
    keys: &[
        &WALL_METHOD,
        &WALL_PRECISION,
        &DELTA,
        &LINK_REALS,
        &ACTION_RESIDUAL,
        &FORCE_RESIDUAL,
        &MAX_ITERATIONS,
        &GUESS,
        &GUESS_PRECISION,
    ],
    tables: &[],
};
