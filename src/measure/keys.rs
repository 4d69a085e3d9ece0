//! Keys that several observables share: the quark, its source, the name.

use super::observable::{QuarkChoice, Reading};
use super::propagator::Source;
use super::{Allowed, MassOf, Noise, Wanted};
use crate::config::doubts::{heavy, tight};
use crate::config::forms::{EPSILON, MASS, RESIDUAL, TEXT};
use crate::config::key::{Absent, Bound, Change, Key, Shape, form, integer, number, words};
use crate::config::raw::Table;
use crate::config::reader::{MAX_EXTENT, four, is_name, whole};
use crate::config::report::hint;
use crate::config::section::{Count, Inner, Section};
use crate::field::Purpose;
use crate::lattice::{Extents, shape};

/// The quark.
pub(super) const FERMION: Key<String> = Key::new(
    "fermion",
    TEXT,
    Absent::Refused,
    Change::Free,
    "the quark, by its name in `[fermion.*]`, see below",
);
/// Its mass, if the family allows one.
pub(super) const QUARK_MASS: Key<f64> = Key::new(
    "mass",
    MASS,
    Absent::Means(
        "required with staggered quarks, that of `[fermion.NAME]` with domain-wall quarks, refused with Wilson's",
    ),
    Change::Free,
    "m of M = 2 m + D, or of D(m): from 0 to below 1",
);
/// Its twisted mass, of a doublet.
pub(super) const QUARK_TWIST: Key<f64> = Key::new(
    "twisted_mass",
    number("a number", Bound::Free, Bound::Free),
    Absent::Means("that of `[fermion.NAME]`"),
    Change::Free,
    "mu of D + i mu gamma_5, of either sign; only for a doublet of equal masses with `twisted_mass`",
);
/// The correction to its Naik term.
pub(super) const QUARK_EPSILON: Key<f64> =
    Key::new("naik_epsilon", EPSILON, Absent::Is("0.0"), Change::Free, "correction to the Naik term")
        .note("only with `\"hisq\"`");
/// The second quark.
const OTHER_FERMION: Key<String> = Key::new(
    "fermion",
    TEXT,
    Absent::Means("that of the first quark"),
    Change::Free,
    "the second quark, by its name in `[fermion.*]`",
);
const OTHER: Section =
    Section { keys: &[&OTHER_FERMION, &QUARK_MASS, &QUARK_TWIST, &QUARK_EPSILON], tables: &[] };
/// `other` as a table of another section.
pub(super) const OTHER_TABLE: Inner = Inner {
    name: "other",
    count: Count::Once,
    text: "a second quark, for mesons of two different ones: `{ fermion = \"strange\" }`, with staggered and domain-wall quarks \
           `{ mass = 0.05 }`, or with doublets `{ twisted_mass = -0.0025 }`. Its residual is that of the first",
    sections: &[&OTHER],
};
/// The sites of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SourceKind {
    Point,
    CornerWall,
    Slice,
}
/// What the source is.
pub(super) const SOURCE_KIND: Key<SourceKind> = Key::new(
    "source_kind",
    words(&[
        ("point", SourceKind::Point),
        ("corner-wall", SourceKind::CornerWall),
        ("slice", SourceKind::Slice),
    ]),
    Absent::Is("\"point\""),
    Change::Free,
    "`\"corner-wall\"`, with staggered quarks only: the sites of a time slice with even x, y and z. `\"slice\"`: all sites of a time \
     slice with random phases, for correlators at rest",
);
/// The number of random slices.
pub(super) const SLICES: Key<usize> = Key::new(
    "sources",
    integer(1, Purpose::SOURCES as i64),
    Absent::Is("1"),
    Change::Free,
    "random sources of a slice, of which the correlator is the mean, per site of the slice",
)
.note("refused without `\"slice\"`");
/// The position of the source.
pub(super) const SOURCE: Key<Extents> = Key::new(
    "source",
    form("4 integers", Shape::List(&Shape::Integer(0, MAX_EXTENT), Some(4)), |value| {
        four("4 coordinates [x, y, z, t]", whole(0..=MAX_EXTENT))(value)
    }),
    Absent::Is("[0, 0, 0, 0]"),
    Change::Free,
    "the point source, inside the lattice; for a corner wall or a slice `[0, 0, 0, t]`",
);
/// The solver's residual.
pub(super) const SOURCE_RESIDUAL: Key<f64> = Key::new(
    "residual",
    RESIDUAL,
    Absent::Is("1e-12"),
    Change::Free,
    "of every solve: with Wilson quarks `\\|b - A x\\| / \\|b\\|`, A = Mhat^dag Mhat of the even-odd form with \
     `cg`, Mhat with other methods; with \
     domain-wall quarks A = C C^dag; with staggered quarks `\\|b - M x\\| / \\|b\\|` on all sites",
);

/// Reports an invalid NAME.
pub(super) fn check_name(what: &str, name: &str, table: &Table) {
    if !is_name(name) {
        table.mistake("", format!("{what} cannot be named {name:?}: letters, digits, '.', '_', '-'"));
    }
}

/// As [`quark_of_mesons`], of a quark whose operator does not mix flavours.
pub(super) fn quark(table: &mut Table, reading: &Reading) -> (Option<QuarkChoice>, Option<Allowed>) {
    let (choice, allowed) = quark_of_mesons(table, reading);
    let mixed = "fermion: two flavours of different masses are measured by [measure.meson.NAME] alone";
    refuse_mixed(table, allowed, mixed);
    (choice, allowed)
}

fn refuse_mixed(table: &mut Table, allowed: Option<Allowed>, message: &str) {
    if allowed.is_some_and(|allowed| allowed.is_mixed) {
        table.mistake("fermion", message);
    }
}

/// The keys `fermion`, `mass`, `twisted_mass`, `naik_epsilon` and `residual`, and what may be set for the quark; `None` after mistakes.
pub(super) fn quark_of_mesons(
    table: &mut Table,
    reading: &Reading,
) -> (Option<QuarkChoice>, Option<Allowed>) {
    let (fermion, allowed) = fermion(table, &FERMION, reading);
    let residual = table.get_or(&SOURCE_RESIDUAL, None);
    tight(table, "residual", residual);
    (with_mass(table, (fermion, allowed), residual), allowed)
}

/// The quark of a measurement whose even-odd operator takes a twisted mass.
pub(super) fn twisted_fermion(table: &mut Table, reading: &Reading) -> (Option<String>, Option<Allowed>) {
    let (fermion, allowed) = fermion(table, &FERMION, reading);
    if let Some(allowed) = allowed.filter(|allowed| !allowed.twisted_mass) {
        let quarks = allowed.quarks;
        table.mistake("fermion", format!("fermion: this is not for {quarks} quarks"));
    }
    (fermion, allowed)
}

/// The table `other`: a second quark beside the first. `Some(None)` without the table, `None` after a mistake.
pub(super) fn other(
    mut table: Table,
    reading: &Reading,
    (first, of_first): (Option<&QuarkChoice>, Option<Allowed>),
) -> Option<Option<QuarkChoice>> {
    if !table.exists() {
        return Some(None);
    }
    let own = table.has("fermion");
    let found = fermion(&mut table, &OTHER_FERMION, reading);
    let (fermion, allowed) = if own { found } else { (first.map(|first| first.fermion.clone()), of_first) };
    refuse_mixed(
        &mut table,
        allowed,
        "fermion: two flavours of different masses are the first quark, not `other`",
    );
    if allowed.zip(of_first).is_some_and(|(own, first)| own.has_spin != first.has_spin) {
        table.mistake("fermion", "fermion: one of the two quarks has spin, the other one has not");
    }
    let residual = first.map_or(0.0, |first| first.wanted.residual);
    let choice = with_mass(&mut table, (fermion, allowed), residual);
    table.finish();
    choice.filter(|_| first.is_some()).map(Some)
}

/// The keys `mass`, `twisted_mass` and `naik_epsilon` of a fermion; `None` after mistakes.
fn with_mass(
    table: &mut Table,
    (fermion, allowed): (Option<String>, Option<Allowed>),
    residual: f64,
) -> Option<QuarkChoice> {
    let mass = quark_mass(table, allowed);
    let own = allowed.and_then(|allowed| allowed.twist);
    let twisted_mass = table.get(&QUARK_TWIST).or(own);
    if table.has("twisted_mass") && allowed.is_some() && own.is_none() {
        let message =
            "twisted_mass: only a doublet of equal masses with 'twisted_mass' in its [fermion.NAME] has it";
        table.mistake("twisted_mass", message);
    }
    let naik_epsilon = table.get(&QUARK_EPSILON);
    if table.has("naik_epsilon") && allowed.is_some_and(|allowed| !allowed.naik_epsilon) {
        table.mistake("naik_epsilon", "naik_epsilon: only the action \"hisq\" has it");
    }
    Some(QuarkChoice {
        fermion: fermion?,
        wanted: Wanted { mass: mass?, twisted_mass, naik_epsilon: naik_epsilon?, residual },
    })
}

/// `[quark]` in a text of a program that calls the library; `None` after a mistake.
pub(crate) fn chosen_quark(mut table: Table, reading: &Reading) -> Option<QuarkChoice> {
    let (choice, _) = quark(&mut table, reading);
    table.finish();
    choice
}

/// The measurement's mass; `Some(None)` if the fermion has it, `None` after a mistake.
fn quark_mass(table: &mut Table, allowed: Option<Allowed>) -> Option<Option<f64>> {
    let key = &QUARK_MASS;
    match allowed.map(|allowed| (allowed.mass, allowed.quarks)) {
        Some((MassOf::Either(form, own), _)) => {
            let found = table.get_by(key, |value| form.read(value));
            return if table.has("mass") { found } else { own }.map(Some);
        }
        Some((MassOf::Measurement(form), _)) => {
            let found = table.get_by(key, |value| form.read(value));
            table.demand("mass");
            heavy(table, found);
            return found.map(Some);
        }
        Some((MassOf::Fermion, quarks)) if table.has("mass") => {
            table.mistake("mass", format!("mass: that of {quarks} quarks is in their [fermion.NAME]"));
            let _ = table.get_by(key, |_| Ok(0.0));
        }
        _ => {
            let found = table.get(key);
            heavy(table, found);
        }
    }
    Some(None)
}

/// The fermion that a measurement names, and what may be set for it, which is `None` after a mistake.
pub(super) fn fermion(
    table: &mut Table,
    key: &Key<String>,
    reading: &Reading,
) -> (Option<String>, Option<Allowed>) {
    let Some(name) = table.get(key) else { return (None, None) };
    if let Some(known) = reading.fermions.iter().find(|fermion| fermion.name == name) {
        return (Some(name), known.allowed);
    }
    let words: Vec<&str> = reading.fermions.iter().map(|fermion| fermion.name.as_str()).collect();
    let all = if words.is_empty() { "; there is no [fermion.NAME]".to_owned() } else { hint(&name, &words) };
    table.mistake("fermion", format!("fermion: unknown fermion '{name}'{all}"));
    (None, None)
}

/// The keys `source`, `source_kind` and `sources`: the source, and the number of those; `None` after a mistake.
pub(super) fn source(
    table: &mut Table,
    reading: &Reading,
    allowed: Option<Allowed>,
) -> Option<(Source, usize)> {
    let kind = table.get(&SOURCE_KIND);
    let at = point(table, reading);
    let sources = table.get_or(&SLICES, None);
    if kind.is_some_and(|kind| kind != SourceKind::Point) && at[..3] != [0; 3] {
        table.mistake("source", "source: a wall or a slice has only a t; x, y and z must be 0");
    }
    if kind.is_some_and(|kind| kind != SourceKind::Slice) && table.has("sources") {
        table.mistake("sources", "sources: only a slice has several");
    }
    let wall = kind == Some(SourceKind::CornerWall);
    if let Some(allowed) = allowed.filter(|allowed| wall && !allowed.corner_wall) {
        let quarks = allowed.quarks;
        table.mistake("source_kind", format!("source_kind: {quarks} quarks have no \"corner-wall\""));
    }
    let source = match kind? {
        SourceKind::Point => Source::Point(at),
        SourceKind::CornerWall => Source::CornerWall(at[3]),
        SourceKind::Slice => Source::Slice { t: at[3], noise: Noise { seed: 0, trajectory: 0 }, number: 0 },
    };
    Some((source, sources))
}

/// The key `source`: coordinates on the lattice.
pub(super) fn point(table: &mut Table, reading: &Reading) -> [usize; 4] {
    let at = table.get_or(&SOURCE, None);
    if let Some(extents) = reading.extents.filter(|extents| (0..4).any(|mu| at[mu] >= extents[mu])) {
        let message = format!("source: {at:?} is outside the lattice of {}", shape(extents));
        table.mistake("source", message);
    }
    if let Some(extents) = reading.extents.filter(|extents| reading.time.is_wall(at[3], extents[3])) {
        let last = reading.time.length(extents[3]) - 1;
        table.mistake(
            "source",
            format!("source: quark fields are zero on walls in time; take t from 1 to {last}"),
        );
    }
    at
}
