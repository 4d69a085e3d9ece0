//! The list of all observables, from which the input, its documentation and its schema follow, and the measurements of an input.

use super::observable::{Context, Found, Keys, Observable, Reading, Registered};
use super::{
    MeasureError, condensate, correlator, flow, loops, meson, mu_derivative, polyakov, reweighting, spectrum,
    wilson_loops,
};
use crate::config::forms::COUNT;
use crate::config::key::{Absent, Change, Key, integer};
use crate::config::raw::Table;
use crate::config::section::{Count, Inner, Section};
use serde_json::{Map, Value};
use std::any::Any;
use std::sync::Arc;

/// All observables, in the order in which they are measured, told and documented.
const OBSERVABLES: &[Registered] = &[
    loops::OBSERVABLE,
    polyakov::OBSERVABLE,
    flow::OBSERVABLE,
    correlator::OBSERVABLE,
    condensate::OBSERVABLE,
    mu_derivative::OBSERVABLE,
    meson::OBSERVABLE,
    reweighting::OBSERVABLE,
    spectrum::OBSERVABLE,
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
