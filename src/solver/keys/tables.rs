//! The keys, one by one, and their tables.

use super::Wanted;
use crate::config::forms::{FRACTION, ITERATIONS, RESIDUAL};
use crate::config::key::{Absent, Change, Key, Shape, form, integer, words};
use crate::config::reader::{Read, Value, extent, four, one_of, whole};
use crate::config::section::Section;
use crate::device::Precision::{self, Double, Single};
use crate::lattice::Extents;
use crate::solver::method::METHODS;
use crate::solver::mixes::{ALL, PLAIN_OR_SHIFTED};
use toml::de::DeValue;

/// The methods by their words in an input.
const WORDS: &[(&str, Wanted)] = &[
    (METHODS[0].0, Wanted::One(METHODS[0].1)),
    (METHODS[1].0, Wanted::One(METHODS[1].1)),
    (METHODS[2].0, Wanted::One(METHODS[2].1)),
    (METHODS[3].0, Wanted::One(METHODS[3].1)),
    ("auto", Wanted::Auto),
];

/// The methods for domain-wall quarks.
const WALL_WORDS: &[(&str, Wanted)] = &[WORDS[0], WORDS[4]];

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
pub(super) const K_MAX: Key<usize> =
    Key::new("k_max", integer(2, 64), Absent::Is("16"), Change::Tuning, "directions before a restart")
        .settled_as("method")
        .note("only with `gcr-dd` or `multigrid`, or `auto` that tries one of them");
pub(super) const N_MR: Key<usize> = Key::new(
    "n_mr",
    integer(1, 64),
    Absent::Means("`8`; `6` with `multigrid`"),
    Change::Tuning,
    "minimal-residual steps in a block, or after a coarse correction",
)
.settled_as("method")
.note("only with `gcr-dd` or `multigrid`, or `auto` that tries one of them");
pub(super) const SCHWARZ_BLOCK: Key<Option<Extents>> = Key::new(
    "schwarz_block",
    form(
        "`\"rank\"` or 4 even integers",
        Shape::Either(&[Shape::Words(&["rank"]), Shape::List(&Shape::Integer(2, 4096), Some(4))]),
        block,
    ),
    Absent::Is("\"rank\""),
    Change::Tuning,
    "extents x, y, z, t of a block, which divide the box of a rank. `\"rank\"`: that box, and the bits then depend on the \
     grid of ranks; see below",
)
.settled_as("method")
.note("only with `gcr-dd`, or `auto` that tries it");

pub(super) const AGGREGATE: Key<Extents> = Key::new(
    "aggregate",
    form("4 even integers", Shape::List(&Shape::Integer(2, 4096), Some(4)), |value| {
        four("4 even integers [x, y, z, t]", extent)(value)
    }),
    Absent::Is("[4, 4, 4, 4]"),
    Change::Tuning,
    "extents x, y, z, t of an aggregate, which divide the box of a rank; in each direction there is one, or an even number",
)
.settled_as("method")
.note("only with `multigrid`, or `auto` that tries it");
pub(super) const COARSE_AGGREGATE: Key<Option<Extents>> = Key::new(
    "coarse_aggregate",
    form(
        "`\"none\"` or 4 positive integers",
        Shape::Either(&[Shape::Words(&["none"]), Shape::List(&Shape::Integer(1, 4096), Some(4))]),
        |value| match value.get_ref() {
            DeValue::String(text) if text == "none" => Ok(None),
            _ => four("\"none\" or 4 positive integers [x, y, z, t]", whole(1..=4096))(value).map(Some),
        },
    ),
    Absent::Is("\"none\""),
    Change::Tuning,
    "a third level: extents x, y, z, t, in aggregates, of an aggregate of those, with the same conditions. For many aggregates \
     and light quarks; see [performance](performance.md#multigrid)",
)
.settled_as("method")
.note("only with `multigrid`, or `auto` that tries it");
pub(super) const VECTORS: Key<usize> = Key::new(
    "vectors",
    form("a multiple of 8 up to 64", Shape::Integer(8, 64), |value| {
        one_of(&[8, 16, 24, 32, 40, 48, 56, 64], "a multiple of 8 up to 64")(value)
    }),
    Absent::Is("24"),
    Change::Tuning,
    "vectors per aggregate and chirality. More take fewer iterations, of which each takes longer",
)
.settled_as("method")
.note("only with `multigrid`, or `auto` that tries it");

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
        &K_MAX,
        &N_MR,
        &SCHWARZ_BLOCK,
        &AGGREGATE,
        &COARSE_AGGREGATE,
        &VECTORS,
    ],
    tables: &[],
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

/// `"rank"` reads as `None`.
fn block(value: &Value) -> Read<Option<Extents>> {
    match value.get_ref() {
        DeValue::String(text) if text == "rank" => Ok(None),
        _ => four("\"rank\" or 4 even integers [x, y, z, t]", extent)(value).map(Some),
    }
}
