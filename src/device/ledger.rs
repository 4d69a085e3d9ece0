//! The memory that a device has allocated: bytes by label.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// The most memory that was held at once, on the device and aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Total bytes.
    pub bytes: u64,
    /// Bytes by label, the largest first.
    pub by: Vec<(String, u64)>,
    /// Bytes of the host that are page-locked for a GPU ([`Device::buffer_aside`](super::Device::buffer_aside)).
    pub aside: u64,
}

/// The accounts of a device.
pub struct Ledger(Mutex<Books>);

struct Books {
    label: Arc<str>,
    /// What was allocated: label and bytes, by address.
    taken: HashMap<u64, (Arc<str>, u64)>,
    by: BTreeMap<Arc<str>, u64>,
    bytes: u64,
    /// `by` and `bytes` at their maximum.
    most: (BTreeMap<Arc<str>, u64>, u64),
    aside: Aside,
}

/// Memory of the host.
#[derive(Default)]
struct Aside {
    taken: HashMap<u64, u64>,
    bytes: u64,
    most: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Self(Mutex::new(Books {
            label: "other".into(),
            taken: HashMap::new(),
            by: BTreeMap::new(),
            bytes: 0,
            most: (BTreeMap::new(), 0),
            aside: Aside::default(),
        }))
    }
}

impl Ledger {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().expect("no panic holds it")
    }

    /// Counts allocations from now on under `label`; returns the label before.
    pub(super) fn set_label(&self, label: Arc<str>) -> Arc<str> {
        std::mem::replace(&mut self.books().label, label)
    }

    /// Counts an allocation.
    pub(super) fn take(&self, at: u64, bytes: u64) {
        let books = &mut *self.books();
        books.taken.insert(at, (Arc::clone(&books.label), bytes));
        *books.by.entry(Arc::clone(&books.label)).or_default() += bytes;
        books.bytes += bytes;
        if books.bytes > books.most.1 {
            books.most = (books.by.clone(), books.bytes);
        }
    }

    /// Counts freed memory.
    pub(super) fn give(&self, at: u64) {
        let books = &mut *self.books();
        if let Some((label, bytes)) = books.taken.remove(&at) {
            books.bytes -= bytes;
            if let Some(held) = books.by.get_mut(&label) {
                *held -= bytes;
            }
        }
    }

    /// Counts memory of the host.
    pub(super) fn take_aside(&self, at: u64, bytes: u64) {
        let aside = &mut self.books().aside;
        aside.taken.insert(at, bytes);
        aside.bytes += bytes;
        aside.most = aside.most.max(aside.bytes);
    }

    /// Counts freed memory of the host. Returns whether it was that.
    pub(super) fn give_aside(&self, at: u64) -> bool {
        let aside = &mut self.books().aside;
        let bytes = aside.taken.remove(&at);
        aside.bytes -= bytes.unwrap_or(0);
        bytes.is_some()
    }

    /// The most memory that was held at once so far.
    pub fn most(&self) -> Held {
        let books = self.books();
        let mut by: Vec<(String, u64)> =
            books.most.0.iter().filter(|(_, b)| **b > 0).map(|(l, b)| (l.to_string(), *b)).collect();
        by.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        Held { bytes: books.most.1, by, aside: books.aside.most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_kept_by_label() {
        let ledger = Ledger::default();
        let before = ledger.set_label("links".into());
        ledger.take(1, 100);
        ledger.set_label("light".into());
        ledger.take(2, 50);
        ledger.give(1);
        ledger.take(3, 60);
        ledger.set_label(before);
        ledger.take(4, 10);
        let by = |rows: &[(&str, u64)]| rows.iter().map(|(l, b)| ((*l).to_string(), *b)).collect();
        let most = ledger.most();
        assert_eq!(most, Held { bytes: 150, by: by(&[("links", 100), ("light", 50)]), aside: 0 });
        ledger.take(5, 100);
        ledger.take_aside(6, 70);
        assert_eq!([5, 6].map(|at| ledger.give_aside(at)), [false, true]);
        ledger.take_aside(6, 30);
        let most = ledger.most();
        assert_eq!(most, Held { bytes: 220, by: by(&[("light", 110), ("other", 110)]), aside: 70 });
    }
}
