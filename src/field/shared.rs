//! What operators have in common: memory whose content follows from links, and workspace.
//!
//! Terms of a chain work one after the other, each with operators of its own, and each adopts the links before it works.
//! So operators with the same content share its memory, and the content that is that of the links already is not made
//! again: links are equal if their [stamps](Stamp) are.

use super::domain::Domain;
use super::{FieldError, Kind, Spinor};
use crate::device::{Precision, Stamp};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// What is alive, by type and name.
#[derive(Default)]
pub(super) struct Known {
    /// The number of [`Sharing`]s.
    open: usize,
    all: HashMap<(TypeId, String), Weak<dyn Any + Send + Sync>>,
}

impl Known {
    fn find<T: Any + Send + Sync>(
        &mut self,
        name: String,
        make: impl FnOnce() -> Result<T, FieldError>,
    ) -> Result<Arc<T>, FieldError> {
        let open = self.open > 0;
        self.find_if(open, name, make)
    }

    /// `shares`: whether to look for what is known, and to make it known.
    fn find_if<T: Any + Send + Sync>(
        &mut self,
        shares: bool,
        name: String,
        make: impl FnOnce() -> Result<T, FieldError>,
    ) -> Result<Arc<T>, FieldError> {
        let key = (TypeId::of::<T>(), name);
        let known = self.all.get(&key).filter(|_| shares).and_then(Weak::upgrade);
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        if shares {
            let made: Arc<dyn Any + Send + Sync> = made.clone();
            self.all.insert(key, Arc::downgrade(&made));
        }
        Ok(made)
    }
}

/// While it lives, operators that are made on the domain share memory with those that were made while another lived. Each
/// adopts links before it is used, or its use panics.
pub struct Sharing(Arc<Domain>);

impl Domain {
    /// Begins to share memory between operators.
    pub fn share(self: &Arc<Self>) -> Sharing {
        self.known().open += 1;
        Sharing(Arc::clone(self))
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        self.0.known().open -= 1;
    }
}

/// `update` writes what owners share, so none of them leaves its thread.
type OneThread = PhantomData<*const ()>;

/// An owner of memory whose content follows from links.
pub(crate) struct Shared<T> {
    common: Arc<Common<T>>,
    /// The links that this owner has adopted.
    of: Option<Stamp>,
    one_thread: OneThread,
}

struct Common<T> {
    content: T,
    /// The links of the content.
    of: Mutex<Option<Stamp>>,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { common: Arc::clone(&self.common), of: self.of, one_thread: PhantomData }
    }
}

impl<T> Shared<T> {
    fn of(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.common.of.lock().expect("no panic holds it")
    }

    /// Adopts links; `make` makes the content, unless it is theirs already.
    pub(crate) fn adopt<E>(&mut self, links: Stamp, make: impl FnOnce(&T) -> Result<(), E>) -> Result<(), E> {
        if *self.of() != Some(links) {
            *self.of() = None;
            make(&self.common.content)?;
            *self.of() = Some(links);
        }
        self.of = Some(links);
        Ok(())
    }

    /// The adopted links.
    pub(crate) fn adopted(&self) -> Option<Stamp> {
        self.of
    }

    /// The content.
    ///
    /// # Panics
    /// Another owner has adopted other links since.
    pub(crate) fn get(&self) -> &T {
        assert!(self.is_current(), "links that another operator has replaced: adopt them again");
        &self.common.content
    }

    fn is_current(&self) -> bool {
        *self.of() == self.of
    }
}

impl<T: Any + Send + Sync> Shared<T> {
    /// The memory called `name`, made with `make` if there is none. The name tells all that the content depends on besides
    /// the links.
    pub(crate) fn new(
        domain: &Domain,
        name: String,
        make: impl FnOnce() -> Result<T, FieldError>,
    ) -> Result<Self, FieldError> {
        let common = domain.known().find(name, || Ok(Common { content: make()?, of: Mutex::new(None) }))?;
        Ok(Self { common, of: None, one_thread: PhantomData })
    }
}

/// What all owners on a domain share under a name, also those that are made while no [`Sharing`] lives: each sees to it that
/// the content serves its links.
pub(crate) fn common<T: Any + Send>(
    domain: &Domain,
    name: String,
    make: impl FnOnce() -> Result<T, FieldError>,
) -> Result<Arc<Mutex<T>>, FieldError> {
    domain.known().find_if(true, name, || Ok(Mutex::new(make()?)))
}

/// A field that operators overwrite while they are applied.
#[derive(Clone)]
pub(crate) struct Workspace(Arc<Mutex<Spinor>>);

impl Workspace {
    /// Number `number` of those of a kind; an operator that needs several at once gives them different numbers.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        kind: Kind,
        precision: Precision,
        fields: usize,
        number: usize,
    ) -> Result<Self, FieldError> {
        let name = format!("workspace {number}: {fields} of {kind:?} in {precision:?}");
        let make = || Ok(Mutex::new(Spinor::of(domain, kind, precision, fields)?));
        Ok(Self(domain.known().find(name, make)?))
    }

    /// As many fields as `x` has, until the guard is dropped.
    pub(crate) fn like(&self, x: &Spinor) -> MutexGuard<'_, Spinor> {
        let mut room = self.0.lock().expect("no panic holds it");
        room.set_active(x.fields());
        room
    }
}
