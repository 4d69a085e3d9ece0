//! The trait of observables, and what they work on.
//!
//! An observable is one file: its keys in `[measure]`, what it needs of the lattice, the measurement, its result as a
//! serde type and how a person reads it. It is registered by a line in `register`.

use super::allowed::Allowed;
use super::{MeasureError, Stop, Wanted, report};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::field::MatrixField;
use crate::lattice::{Extents, TimeBoundary};
use crate::quark::{HopDerivative, Inverse, RootError, TwistedInverse};
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

/// The key of a configuration's random sources, which are the same for all quarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// The seed of the run.
    pub seed: u64,
    /// The trajectory of the links.
    pub trajectory: u64,
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

    /// The inverse of its even-odd operator with a twisted mass.
    ///
    /// # Errors
    /// There is none, or as [`Fermions::inverse`].
    fn twisted(&mut self, choice: &QuarkChoice, _mu: f64) -> Result<Box<dyn TwistedInverse>, MeasureError> {
        Err(MeasureError::Refused(format!("'{}' has no twisted mass", choice.fermion)))
    }

    /// What its determinant lacks.
    ///
    /// # Errors
    /// It is not one flavour by rational functions, or as [`Fermions::inverse`].
    fn root_error(&mut self, choice: &QuarkChoice) -> Result<Box<dyn RootError>, MeasureError> {
        Err(MeasureError::Refused(format!("'{}' is not one flavour by rational functions", choice.fermion)))
    }

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

/// A fermion of the input that measurements may refer to.
pub(crate) struct FermionKeys {
    /// NAME of `[fermion.NAME]`.
    pub name: String,
    /// What measurements may set for it; `None` after a mistake in its action.
    pub allowed: Option<Allowed>,
}

/// What the keys of observables are checked against.
pub(crate) struct Reading<'a> {
    /// The fermions of the input.
    pub fermions: &'a [FermionKeys],
    /// The lattice; `None` if each configuration has its own.
    pub extents: Option<Extents>,
    /// How it ends in time.
    pub time: TimeBoundary,
}

/// An observable as the input knows it: what its file says of it to `register`.
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
