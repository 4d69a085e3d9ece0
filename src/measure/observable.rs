//! What an observable is, the list of all of them, and the measurements that an input asks for.
//!
//! An observable is one file: its keys in `[measure]`, what it needs of the lattice, the measurement, its result as a
//! serde type and how a person reads it. It is registered by the name of its table in [`OBSERVABLES`].

use super::condensate::Noise;
use super::keys::FermionKeys;
use super::{
    MeasureError, Stop, Wanted, condensate, correlator, flow, loops, meson, polyakov, report, wilson_loops,
};
use crate::config::forms::COUNT;
use crate::config::key::{Absent, Change, Key, integer};
use crate::config::raw::Table;
use crate::config::section::{Count, Inner, Section};
use crate::field::MatrixField;
use crate::lattice::Extents;
use crate::quark::Inverse;
use serde::Serialize;
use serde_json::{Map, Value};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The result of one measurement: its fields in the JSON object of a configuration, or in an entry of a list there.
pub type Found = Map<String, Value>;

/// What is measured on a configuration, with its parameters.
///
/// ```
/// use hmc::prelude::*;
///
/// /// By how much the plaquettes of space and time differ.
/// #[derive(Debug)]
/// struct Anisotropy;
///
/// impl Observable for Anisotropy {
///     fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
///         let traces = GaugeLoops::traces(context.links)?;
///         let anisotropy = traces.plaquette_space - traces.plaquette_time;
///         Ok(Found::from_iter([("anisotropy".to_owned(), anisotropy.into())]))
///     }
/// }
///
/// let links = MatrixField::cold(&Domain::local([4; 4])?)?;
/// let found = Anisotropy.measure(&mut Context::new(&links, &mut NoFermions))?;
/// assert_eq!(found["anisotropy"], 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observable: Any + Debug + Send + Sync {
    /// Layers of links that it takes of neighbouring ranks.
    fn border(&self) -> usize {
        1
    }

    /// The list in the JSON object to which its result is added; `None`: the fields of its result are the object's own.
    fn list(&self) -> Option<&'static str> {
        None
    }

    /// Measures it; collective.
    ///
    /// # Errors
    /// A solve failed, the measurement was told to stop, or it does not fit the lattice.
    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError>;

    /// Its result as a person reads it.
    fn table(&self, found: &Found) -> String {
        report::table(self.list(), found)
    }
}

/// What a measurement works on.
pub struct Context<'a> {
    /// The configuration.
    pub links: &'a MatrixField,
    /// The quarks of the input.
    pub fermions: &'a mut dyn Fermions,
    /// By which random sources are drawn.
    pub noise: Noise,
    /// Whether to stop.
    pub stop: Stop<'a>,
}

impl<'a> Context<'a> {
    /// The links of a configuration and its quarks; random sources are those of seed 1, and nothing stops it. Fields may
    /// be set to something else.
    pub fn new(links: &'a MatrixField, fermions: &'a mut dyn Fermions) -> Self {
        Self { links, fermions, noise: Noise { seed: 1, trajectory: 0 }, stop: &|| false }
    }
}

/// A quark as a measurement asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkChoice {
    /// NAME of its `[fermion.NAME]`.
    pub fermion: String,
    /// Its mass, and how well it is solved.
    pub wanted: Wanted,
}

/// The quarks that measurements can name.
pub trait Fermions {
    /// The quark on the links of this configuration, whose `M x = b` is solved.
    ///
    /// # Errors
    /// No room, or an operator that cannot be made on these links.
    fn inverse(&mut self, choice: &QuarkChoice) -> Result<Box<dyn Inverse>, MeasureError>;
}

/// No quarks: for observables of links alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFermions;

impl Fermions for NoFermions {
    fn inverse(&mut self, choice: &QuarkChoice) -> Result<Box<dyn Inverse>, MeasureError> {
        Err(MeasureError::Refused(format!("there is no quark '{}'", choice.fermion)))
    }
}

/// What keys of observables are checked against.
pub(crate) struct Reading<'a> {
    /// The fermions of the input.
    pub fermions: &'a [FermionKeys],
    /// The lattice; `None` where each configuration has its own.
    pub extents: Option<Extents>,
}

/// How an observable is read; `None` only after a mistake.
enum Keys {
    /// The table `[measure.KEY]` has no keys of its own.
    Switch(fn() -> Arc<dyn Observable>),
    /// From `[measure.KEY]`.
    Table(fn(Table, &Reading) -> Option<Arc<dyn Observable>>),
    /// From each `[measure.KEY.NAME]`.
    Named(fn(String, Table, &Reading) -> Option<Arc<dyn Observable>>),
}

/// All observables by the key of their table, in the order in which they are measured and told.
const OBSERVABLES: [(&str, Keys); 7] = [
    ("loops", Keys::Switch(|| Arc::new(loops::Loops))),
    ("polyakov", Keys::Switch(|| Arc::new(polyakov::Polyakov))),
    ("flow", Keys::Table(flow::read)),
    ("correlator", Keys::Named(correlator::read)),
    ("condensate", Keys::Named(condensate::read)),
    ("meson", Keys::Named(meson::read)),
    ("wilson_loops", Keys::Table(wilson_loops::read)),
];

const NOTHING: Section = Section { keys: &[], tables: &[] };
/// `[measure]`, with the tables of [`OBSERVABLES`].
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
        Inner { name: "flow", count: Count::Once, text: "", sections: &[&flow::FLOW] },
        Inner { name: "correlator", count: Count::Named, text: "", sections: &[&correlator::CORRELATOR] },
        Inner { name: "condensate", count: Count::Named, text: "", sections: &[&condensate::CONDENSATE] },
        Inner { name: "meson", count: Count::Named, text: "", sections: &[&meson::MESON] },
        Inner {
            name: "wilson_loops",
            count: Count::Once,
            text: "",
            sections: &[&wilson_loops::WILSON_LOOPS],
        },
    ],
};
/// Trajectories between measurements.
const EVERY: Key<u64> = Key::new(
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

/// `[measure]`: what is measured, and how often.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// In the order in which they are measured.
    pub observables: Vec<Arc<dyn Observable>>,
    /// In a run: trajectories between measurements.
    pub every: u64,
}

/// Equal if all parameters are: they are what `Debug` shows.
impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Measure {
    /// Reads `[measure]`; `None` only after a mistake.
    pub(crate) fn read(mut table: Table, reading: &Reading) -> Option<Self> {
        let every = table.get_or(&EVERY, None);
        let mut found = Vec::new();
        for (key, keys) in OBSERVABLES {
            match keys {
                Keys::Switch(make) => found.extend(table.switch(key).then(|| Some(make()))),
                Keys::Table(read) => {
                    let own = table.table(key);
                    if own.exists() {
                        found.push(read(own, reading));
                    } else {
                        own.finish();
                    }
                }
                Keys::Named(read) => {
                    let all = table.named(key);
                    found.extend(all.into_iter().map(|(name, own)| read(name, own, reading)));
                }
            }
        }
        table.finish();
        Some(Self { observables: found.into_iter().collect::<Option<_>>()?, every })
    }

    /// The same with plaquettes, rectangles and the Polyakov loop, which cost little, before all else.
    #[must_use]
    pub fn with_loops(&self) -> Self {
        let mut observables: Vec<Arc<dyn Observable>> =
            vec![Arc::new(loops::Loops), Arc::new(polyakov::Polyakov)];
        let is_new = |one: &&Arc<dyn Observable>| {
            let any: &dyn Any = &***one;
            !any.is::<loops::Loops>() && !any.is::<polyakov::Polyakov>()
        };
        observables.extend(self.observables.iter().filter(is_new).cloned());
        Self { observables, every: self.every }
    }

    /// The observables of one kind.
    pub fn of_kind<T: Observable>(&self) -> Vec<&T> {
        let any = self.observables.iter().map(|one| -> &dyn Any { &**one });
        any.filter_map(|any| any.downcast_ref()).collect()
    }

    /// Whether a run measures anything after trajectory `number`, counted from 1.
    #[must_use]
    pub fn is_due(&self, number: u64) -> bool {
        !self.observables.is_empty() && self.every != 0 && number.is_multiple_of(self.every)
    }

    /// Layers of links that the measurements take of neighbouring ranks.
    #[must_use]
    pub fn border(&self) -> usize {
        self.observables.iter().map(|one| one.border()).max().unwrap_or(1)
    }

    /// Measures everything; collective.
    ///
    /// # Errors
    /// As [`Observable::measure`].
    pub fn run(&self, context: &mut Context) -> Result<Measured, MeasureError> {
        let one =
            |observable: &Arc<dyn Observable>| Ok((Arc::clone(observable), observable.measure(context)?));
        Ok(Measured { parts: self.observables.iter().map(one).collect::<Result<_, MeasureError>>()? })
    }
}

/// What was measured on one configuration.
#[derive(Debug)]
pub struct Measured {
    parts: Vec<(Arc<dyn Observable>, Found)>,
}

impl Measured {
    /// As JSON.
    #[must_use]
    pub fn object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        for (observable, found) in &self.parts {
            let Some(list) = observable.list() else {
                object.extend(found.clone());
                continue;
            };
            let entries = object.entry(list).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(entries) = entries {
                entries.push(Value::Object(found.clone()));
            }
        }
        object
    }

    /// As a person reads it.
    #[must_use]
    pub fn table(&self) -> String {
        self.parts.iter().map(|(observable, found)| observable.table(found)).collect()
    }
}

/// The fields of a result in their order.
///
/// # Panics
/// A type that is no struct.
pub(super) fn record(found: &impl Serialize) -> Found {
    match serde_json::to_value(found) {
        Ok(Value::Object(found)) => found,
        other => unreachable!("the result of a measurement is a struct: {other:?}"),
    }
}
