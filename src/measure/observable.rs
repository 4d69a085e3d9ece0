//! The trait of observables, the list of all of them, and the measurements of an input.
//!
//! An observable is one file: its keys in `[measure]`, what it needs of the lattice, the measurement, its result as a
//! serde type and how a person reads it. It is registered by a line of [`OBSERVABLES`], from which the input, its
//! documentation and its schema follow.

use super::condensate::Noise;
use super::keys::FermionKeys;
use super::{
    MeasureError, Stop, Wanted, condensate, correlator, flow, loops, meson, mu_derivative, polyakov, report,
    wilson_loops,
};
use crate::config::forms::COUNT;
use crate::config::key::{Absent, Change, Key, integer};
use crate::config::raw::Table;
use crate::config::section::{Count, Inner, Section};
use crate::field::MatrixField;
use crate::lattice::Extents;
use crate::quark::{HopDerivative, Inverse};
use serde::Serialize;
use serde_json::{Map, Value};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The result of one measurement: fields of a configuration's JSON object, or of an entry of a list there.
pub type Found = Map<String, Value>;

/// An observable with its parameters.
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
    /// Layers of links that it needs from neighbouring ranks.
    fn border(&self) -> usize {
        1
    }

    /// The list in the JSON object that receives the result as an entry; `None`: its fields go into the object itself.
    fn list(&self) -> Option<&'static str> {
        None
    }

    /// Measures; collective.
    ///
    /// # Errors
    /// A solve failed, the measurement was told to stop, or it does not fit the lattice.
    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError>;

    /// The result as text.
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
    /// The key of random sources.
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

/// A quark as chosen by a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkChoice {
    /// NAME of its `[fermion.NAME]`.
    pub fermion: String,
    /// Its mass and the residual of its solves.
    pub wanted: Wanted,
}

/// The quarks that measurements may refer to.
pub trait Fermions {
    /// The quark on the links of this configuration, for solving `M x = b`.
    ///
    /// # Errors
    /// The operator cannot be built on these links, or memory runs out.
    fn inverse(&mut self, choice: &QuarkChoice) -> Result<Box<dyn Inverse>, MeasureError>;

    /// The derivative of its operator of this order in the chemical potential.
    ///
    /// # Errors
    /// There is none, or memory runs out.
    fn derivative(
        &mut self,
        choice: &QuarkChoice,
        _order: u32,
    ) -> Result<Box<dyn HopDerivative>, MeasureError> {
        Err(MeasureError::Refused(format!("'{}' has no chemical potential", choice.fermion)))
    }
}

/// No quarks: for observables of links alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFermions;

impl Fermions for NoFermions {
    fn inverse(&mut self, choice: &QuarkChoice) -> Result<Box<dyn Inverse>, MeasureError> {
        Err(MeasureError::Refused(format!("there is no quark '{}'", choice.fermion)))
    }
}

/// What the keys of observables are checked against.
pub(crate) struct Reading<'a> {
    /// The fermions of the input.
    pub fermions: &'a [FermionKeys],
    /// The lattice; `None` if each configuration has its own.
    pub extents: Option<Extents>,
}

/// An observable as the input knows it: what its file says of it to [`OBSERVABLES`].
pub(super) struct Registered {
    /// KEY of `[measure.KEY]`.
    pub key: &'static str,
    /// What it is for; empty if the documentation has a chapter of it.
    pub text: &'static str,
    /// Its keys, and how they are read.
    pub keys: Keys,
}

/// The keys of an observable, and how they are read; `None` only after a mistake.
pub(super) enum Keys {
    /// The table `[measure.KEY]` is empty.
    Switch(fn() -> Arc<dyn Observable>),
    /// From `[measure.KEY]`.
    Table(&'static Section, fn(Table, &Reading) -> Option<Arc<dyn Observable>>),
    /// From each `[measure.KEY.NAME]`.
    Named(&'static Section, fn(String, Table, &Reading) -> Option<Arc<dyn Observable>>),
}

/// All observables, in the order in which they are measured, told and documented.
const OBSERVABLES: &[Registered] = &[
    loops::OBSERVABLE,
    polyakov::OBSERVABLE,
    flow::OBSERVABLE,
    correlator::OBSERVABLE,
    condensate::OBSERVABLE,
    mu_derivative::OBSERVABLE,
    meson::OBSERVABLE,
    wilson_loops::OBSERVABLE,
];

/// `[measure]`
pub(crate) const MEASURE: Section = Section { keys: &[&EVERY, &MEASURE_SEED], tables: &TABLES };

/// The tables of [`OBSERVABLES`].
const TABLES: [Inner; OBSERVABLES.len()] = {
    let mut tables = [const { OBSERVABLES[0].table() }; OBSERVABLES.len()];
    let mut n = 1;
    while n < tables.len() {
        tables[n] = OBSERVABLES[n].table();
        n += 1;
    }
    tables
};

impl Registered {
    /// The table `[measure.KEY]`, for documentation and schema.
    const fn table(&'static self) -> Inner {
        let (count, section) = match &self.keys {
            Keys::Switch(_) => (Count::Once, &&NOTHING),
            Keys::Table(section, _) => (Count::Once, section),
            Keys::Named(section, _) => (Count::Named, section),
        };
        Inner { name: self.key, count, text: self.text, sections: std::slice::from_ref(section) }
    }
}
const NOTHING: Section = Section { keys: &[], tables: &[] };

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
        for Registered { key, keys, .. } in OBSERVABLES {
            match keys {
                Keys::Switch(make) => found.extend(table.switch(key).then(|| Some(make()))),
                Keys::Table(_, read) => {
                    let own = table.table(key);
                    if own.exists() {
                        found.push(read(own, reading));
                    } else {
                        own.finish();
                    }
                }
                Keys::Named(_, read) => {
                    let all = table.named(key);
                    found.extend(all.into_iter().map(|(name, own)| read(name, own, reading)));
                }
            }
        }
        table.finish();
        Some(Self { observables: found.into_iter().collect::<Option<_>>()?, every })
    }

    /// These measurements preceded by plaquettes, rectangles and the Polyakov loop, which cost little.
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

    /// Layers of links that the measurements need from neighbouring ranks.
    #[must_use]
    pub fn border(&self) -> usize {
        self.observables.iter().map(|one| one.border()).max().unwrap_or(1)
    }

    /// Measures everything; collective.
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
    /// The results as JSON.
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

    /// The results as text.
    #[must_use]
    pub fn table(&self) -> String {
        self.parts.iter().map(|(observable, found)| observable.table(found)).collect()
    }
}

/// The fields of a result, in order.
///
/// # Panics
/// `found` is not a struct.
pub(super) fn record(found: &impl Serialize) -> Found {
    match serde_json::to_value(found) {
        Ok(Value::Object(found)) => found,
        other => unreachable!("the result of a measurement is a struct: {other:?}"),
    }
}
