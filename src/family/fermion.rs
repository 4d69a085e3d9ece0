//! A fermion of a checked input, of any family. A family is a folder with its types, and a line in [`families`].

use super::keys::Context;
use super::qcdml::InQcdml;
use super::{DomainWallFermion, StaggeredFermion, WilsonFermion};
use crate::action::{Action, ActionError};
use crate::config::key::Key;
use crate::config::raw::Table;
use crate::config::reader::{choice, is_name};
use crate::config::section::Section;
use crate::field::{Domain, FieldError, MatrixField};
use crate::lattice::shape;
use crate::measure::{Allowed, MeasureError, Wanted};
use crate::quark::{FullOperator, HopDerivative, Inverse, RootError, TwistedInverse};
use crate::solver::TermSolver;
use std::sync::Arc;

/// The interface of a fermion to a run, for all families.
pub trait Family {
    /// NAME of `[fermion.NAME]`.
    fn name(&self) -> &str;

    /// Whether its terms have rational functions in the weight.
    fn is_rational(&self) -> bool;

    /// Its action in ILDG's metadata.
    ///
    /// # Errors
    /// What QCDml 2.0 has no words for.
    fn qcdml(&self) -> InQcdml;

    /// The number of its terms' pseudofermions.
    fn pseudofermions(&self) -> usize;

    /// Layers of links that its smearing and its force need around a box.
    fn border(&self) -> usize {
        1
    }

    /// Layers of neighbouring sites that its hops reach.
    fn reach(&self) -> usize {
        1
    }

    /// The terms whose solver may choose its method, with their names.
    fn solvers(&self) -> Vec<(&str, &TermSolver)> {
        Vec::new()
    }

    /// Its terms of the Hamiltonian, the lightest first; their pseudofermions are numbered from `number`.
    ///
    /// # Errors
    /// A rational function does not exist, or memory runs out.
    fn terms(&self, domain: &Arc<Domain>, number: u8) -> Result<Vec<Box<dyn Action>>, FamilyError>;

    /// The inverse of its operator on `links`, for measurements. A family uses those settings of `wanted` that it
    /// allows.
    ///
    /// # Errors
    /// The clover term cannot be inverted, or memory runs out.
    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError>;

    /// M on all sites of `links`, in double precision.
    ///
    /// # Errors
    /// Memory runs out.
    fn full_operator(
        &self,
        links: &MatrixField,
        wanted: Wanted,
    ) -> Result<Box<dyn FullOperator>, MeasureError>;

    /// The inverse of [`Family::full_operator`]. That of domain-wall quarks has all slices; for others it is
    /// [`Family::inverse`].
    ///
    /// # Errors
    /// As [`Family::inverse`].
    fn full_inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError> {
        self.inverse(links, wanted)
    }

    /// The inverse of its even-odd operator with a twisted mass mu; `None` where there is none.
    ///
    /// # Errors
    /// As [`Family::inverse`].
    fn twisted(
        &self,
        _links: &MatrixField,
        _wanted: Wanted,
        _mu: f64,
    ) -> Result<Option<Box<dyn TwistedInverse>>, MeasureError> {
        Ok(None)
    }

    /// What the determinant of one flavour by rational functions lacks; `None` for others.
    ///
    /// # Errors
    /// Memory runs out.
    fn root_error(
        &self,
        _links: &MatrixField,
        _wanted: Wanted,
    ) -> Result<Option<Box<dyn RootError>>, MeasureError> {
        Ok(None)
    }

    /// The derivative of the same operator of this order in the chemical potential; `None` where there is none.
    ///
    /// # Errors
    /// Memory runs out.
    fn derivative(
        &self,
        _links: &MatrixField,
        _wanted: Wanted,
        _order: u32,
    ) -> Result<Option<Box<dyn HopDerivative>>, MeasureError> {
        Ok(None)
    }

    /// Lines of `hmc --check`, each with its title.
    fn notes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Why the terms of a fermion could not be made.
#[derive(Debug, thiserror::Error)]
pub enum FamilyError {
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A term failed.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// The input is valid but cannot be satisfied.
    #[error("{0}")]
    Refused(String),
}

impl FamilyError {
    /// Converts the error of a term. The error of a rational function becomes a refusal that names the `fermion`.
    pub(super) fn of_term(fermion: &str, error: ActionError) -> Self {
        match error {
            ActionError::Rational(why) => Self::Refused(format!("[fermion.{fermion}.rational]: {why}")),
            other => Self::Action(other),
        }
    }
}

/// How a family is read from `[fermion.NAME]`.
pub(super) trait Keys: Family + Sized {
    /// The key `action` with this family's words. It is settled as `action`.
    const ACTION: &'static Key<&'static str>;
    /// The keys and tables.
    const SECTION: Section;
    /// Keys of this family only: they reveal the family if `action` has a mistake.
    const SIGNS: &'static [&'static str];
    /// Its tables in `docs/input.md`, each with the name of its place there.
    const PLACES: &'static [(&'static str, &'static Section)];
    /// The greatest possible reach of its hops, in layers.
    const REACH: usize = 1;
    /// Whether its operator knows of walls in time.
    const KNOWS_WALLS: bool = false;

    /// What measurements may set for quarks with this `action`; `None`: only the table determines it.
    fn allowed(action: &'static str) -> Option<Allowed>;

    /// Reads the table; `action` is `None` after a mistake, and so is the result.
    fn read(name: String, table: Table, action: Option<&'static str>, context: &mut Context) -> Option<Self>;
}

/// A family's keys without its type.
struct Entry {
    action: &'static Key<&'static str>,
    signs: &'static [&'static str],
    reach: usize,
    knows_walls: bool,
    allowed: fn(&'static str) -> Option<Allowed>,
    read: fn(String, Table, Option<&'static str>, &mut Context) -> Option<Fermion>,
}

/// Makes `Fermion` and its reader from the list of families, with one variant per family.
macro_rules! families {
    ($($(#[doc = $doc:literal])* $family:ident($fermion:ty),)*) => {
        /// `[fermion.NAME]`
        #[derive(Clone, Debug, PartialEq)]
        pub enum Fermion {
            $($(#[doc = $doc])* $family($fermion),)*
        }

        impl std::ops::Deref for Fermion {
            type Target = dyn Family;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$family(fermion) => fermion,)*
                }
            }
        }

        const FAMILIES: &[Entry] = &[$(Entry {
            action: <$fermion as Keys>::ACTION,
            signs: <$fermion as Keys>::SIGNS,
            reach: <$fermion as Keys>::REACH,
            knows_walls: <$fermion as Keys>::KNOWS_WALLS,
            allowed: <$fermion as Keys>::allowed,
            read: |name, table, action, context| {
                <$fermion as Keys>::read(name, table, action, context).map(Fermion::$family)
            },
        },)*];

        /// The keys of each family.
        pub(crate) const SECTIONS: &[&Section] = &[$(&<$fermion as Keys>::SECTION,)*];

        /// The places of each family's tables in the documentation.
        pub(crate) const PLACES: &[&[(&str, &Section)]] = &[$(<$fermion as Keys>::PLACES,)*];
    };
}

families! {
    /// Wilson and clover quarks.
    Wilson(WilsonFermion),
    /// Domain-wall quarks.
    DomainWall(DomainWallFermion),
    /// Improved staggered quarks.
    Staggered(StaggeredFermion),
}

/// All fermions, in the order of the file. Their terms and those of their factors are added to the context.
pub(crate) fn fermions(root: &mut Table, context: &mut Context) -> Option<Vec<Fermion>> {
    let tables = root.named("fermion");
    for (name, table) in &tables {
        if name == "gauge" || !is_name(name) {
            let message = format!(
                "a fermion cannot be named {name:?}: letters, digits, '.', '_', '-', and not 'gauge'"
            );
            table.mistake("", message);
        }
        context.add_fermion(name, table.at(""));
    }
    let fermions: Vec<_> = tables.into_iter().map(|(name, table)| fermion(name, table, context)).collect();
    fermions.into_iter().collect()
}

fn fermion(name: String, mut table: Table, context: &mut Context) -> Option<Fermion> {
    let words: Vec<_> = FAMILIES.iter().flat_map(|family| family.action.words()).copied().collect();
    let action = table.get_by(FAMILIES[0].action, |value| choice(&words)(value));
    let named = action.and_then(|action| {
        let is_own = |family: &&Entry| family.action.words().iter().any(|(word, _)| *word == action);
        Some((FAMILIES.iter().find(is_own)?, action))
    });
    if let Some((family, action)) = named {
        context.allow(&name, (family.allowed)(action));
        if context.boxes.time.has_walls() && !family.knows_walls {
            let message = format!(
                "action: {action:?} is for periodic time, and 'time_boundary' in [lattice] is {}",
                context.boxes.time
            );
            table.mistake("action", message);
        }
        let partition = context.boxes.partition;
        let thin = partition.filter(|p| (0..4).any(|mu| p.is_cut(mu) && p.local()[mu] < family.reach));
        if let Some(partition) = thin {
            let (local, reach) = (shape(partition.local()), family.reach);
            let message = format!(
                "action: long links reach {reach} layers, and a rank's box of {local} is thinner where it is \
                 cut: take fewer ranks or another grid"
            );
            table.mistake("action", message);
        }
    }
    let by_signs = || FAMILIES.iter().find(|family| family.signs.iter().any(|key| table.has(key)));
    let family = named.map(|(family, _)| family).or_else(by_signs).unwrap_or(&FAMILIES[0]);
    (family.read)(name, table, action, context)
}
