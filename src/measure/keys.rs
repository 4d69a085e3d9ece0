//! `[measure]`: the keys of what is measured.

use super::FlowKernel;
use crate::config::forms::{COUNT, EPSILON, MASS, POSITIVE, RESIDUAL, TEXT};
use crate::config::key::{Absent, Change, Key, Shape, form, integer, words};
use crate::config::reader::{MAX_EXTENT, four, whole};
use crate::config::section::{Count, Inner, Section};
use crate::field::Purpose;
use crate::lattice::Extents;

/// Trajectories between measurements.
pub(crate) const EVERY: Key<u64> = Key::new(
    "every",
    COUNT,
    Absent::Is("1"),
    Change::Free,
    "trajectories between measurements; without meaning for `hmc measure`",
);
/// Keys the random sources of `hmc measure`.
pub(crate) const MEASURE_SEED: Key<u64> = Key::new(
    "seed",
    integer(0, i64::MAX),
    Absent::Is("1"),
    Change::Free,
    "keys the random sources; in a run, and with its input, that is the `seed` of `[run]`",
)
.note("only for `hmc measure`, without `[run]`");

/// The action that drives the flow.
pub(crate) const FLOW_KERNEL: Key<FlowKernel> = Key::new(
    "kernel",
    words(&[("wilson", FlowKernel::Wilson), ("symanzik", FlowKernel::Symanzik)]),
    Absent::Is("\"wilson\""),
    Change::Free,
    "the action that drives the flow; `\"symanzik\"` at tree level",
);
/// The step.
pub(crate) const FLOW_STEP: Key<f64> = Key::new(
    "step",
    POSITIVE,
    Absent::Is("0.02"),
    Change::Free,
    "step in flow time; at most 0.15 (`wilson`) or 0.09 (`symanzik`), above which the integration is unstable",
)
.unit("a^2");
/// The end.
pub(crate) const FLOW_T_MAX: Key<f64> =
    Key::new("t_max", POSITIVE, Absent::Refused, Change::Free, "last flow time, a whole number of steps")
        .unit("a^2");
/// Steps between measurements.
pub(crate) const FLOW_EVERY: Key<usize> =
    Key::new("every", integer(1, 1_000_000), Absent::Is("1"), Change::Free, "steps between measurements");

/// The quark.
pub(crate) const FERMION: Key<String> = Key::new(
    "fermion",
    TEXT,
    Absent::Refused,
    Change::Free,
    "the quark, by its name in `[fermion.*]`, see below",
);
/// Its mass, if the family allows one.
pub(crate) const QUARK_MASS: Key<f64> = Key::new(
    "mass",
    MASS,
    Absent::Means(
        "required with staggered quarks, that of `[fermion.NAME]` with domain-wall quarks, refused with Wilson's",
    ),
    Change::Free,
    "m of M = 2 m + D, or of D(m): from 0 to below 1",
);
/// The correction to its Naik term.
pub(crate) const QUARK_EPSILON: Key<f64> =
    Key::new("naik_epsilon", EPSILON, Absent::Is("0.0"), Change::Free, "correction to the Naik term")
        .note("only with `\"hisq\"`");
/// Whether the source is a corner wall.
pub(crate) const SOURCE_KIND: Key<bool> = Key::new(
    "source_kind",
    words(&[("point", false), ("corner-wall", true)]),
    Absent::Is("\"point\""),
    Change::Free,
    "`\"corner-wall\"`, with staggered quarks only: the sites of a time slice with even x, y and z",
);
/// Where the source is.
pub(crate) const SOURCE: Key<Extents> = Key::new(
    "source",
    form("4 integers", Shape::List(&Shape::Integer(0, MAX_EXTENT), Some(4)), |value| {
        four("4 coordinates [x, y, z, t]", whole(0..=MAX_EXTENT))(value)
    }),
    Absent::Is("[0, 0, 0, 0]"),
    Change::Free,
    "the point source, inside the lattice; for a corner wall `[0, 0, 0, t]`",
);
/// How well is solved.
pub(crate) const SOURCE_RESIDUAL: Key<f64> = Key::new(
    "residual",
    RESIDUAL,
    Absent::Is("1e-12"),
    Change::Free,
    "of every solve: with Wilson quarks `\\|b - A x\\| / \\|b\\|`, A = Mhat^dag Mhat of the even-odd form; with \
     domain-wall quarks A = C C^dag; with staggered quarks `\\|b - M x\\| / \\|b\\|` on all sites",
);
/// Random sources.
pub(crate) const SOURCES: Key<usize> =
    Key::new("sources", integer(1, Purpose::SOURCES as i64), Absent::Is("1"), Change::Free, "random sources");

const NOTHING: Section = Section { keys: &[], tables: &[] };
/// `[measure.flow]`
pub(crate) const FLOW: Section =
    Section { keys: &[&FLOW_KERNEL, &FLOW_STEP, &FLOW_T_MAX, &FLOW_EVERY], tables: &[] };
/// `[measure.correlator.NAME]`
pub(crate) const CORRELATOR: Section = Section {
    keys: &[&FERMION, &QUARK_MASS, &QUARK_EPSILON, &SOURCE_KIND, &SOURCE, &SOURCE_RESIDUAL],
    tables: &[],
};
/// `[measure.condensate.NAME]`
pub(crate) const CONDENSATE: Section =
    Section { keys: &[&FERMION, &QUARK_MASS, &QUARK_EPSILON, &SOURCES, &SOURCE_RESIDUAL], tables: &[] };
/// `[measure]`
pub(crate) const MEASURE: Section = Section {
    keys: &[&EVERY, &MEASURE_SEED],
    tables: &[
        Inner {
            name: "loops",
            count: Count::Once,
            text: "empty; plaquette and rectangle",
            sections: &[&NOTHING],
        },
        Inner {
            name: "polyakov",
            count: Count::Once,
            text: "empty; Polyakov loop in t",
            sections: &[&NOTHING],
        },
        Inner { name: "flow", count: Count::Once, text: "", sections: &[&FLOW] },
        Inner { name: "correlator", count: Count::Named, text: "", sections: &[&CORRELATOR] },
        Inner { name: "condensate", count: Count::Named, text: "", sections: &[&CONDENSATE] },
    ],
};
