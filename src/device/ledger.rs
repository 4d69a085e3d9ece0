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
    /// Bytes of the host that are page-locked for a GPU ([`Use::Aside`](super::Use::Aside),
    /// [`Staging`](super::Staging)).
    pub aside: u64,
    /// Other bytes of a GPU's host ([`HostRoom`](super::HostRoom)); those of a CPU's are among `bytes`.
    pub host: u64,
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
    /// What of the host is page-locked and has an address, and its bytes.
    locked: HashMap<u64, u64>,
    aside: Total,
    host: Total,
}

/// Bytes of the host of a GPU.
#[derive(Default)]
struct Total {
    bytes: u64,
    most: u64,
}

impl Total {
    fn take(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.most = self.most.max(self.bytes);
    }
}

impl Books {
    fn take(&mut self, label: Arc<str>, bytes: u64) {
        *self.by.entry(label).or_default() += bytes;
        self.bytes += bytes;
        if self.bytes > self.most.1 {
            self.most = (self.by.clone(), self.bytes);
        }
    }

    fn give(&mut self, label: &str, bytes: u64) {
        self.bytes -= bytes;
        if let Some(held) = self.by.get_mut(label) {
            *held -= bytes;
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self(Mutex::new(Books {
            label: "other".into(),
            taken: HashMap::new(),
            by: BTreeMap::new(),
            bytes: 0,
            most: (BTreeMap::new(), 0),
            locked: HashMap::new(),
            aside: Total::default(),
            host: Total::default(),
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
        let label = Arc::clone(&books.label);
        books.taken.insert(at, (Arc::clone(&label), bytes));
        books.take(label, bytes);
    }

    /// Counts freed memory.
    pub(super) fn give(&self, at: u64) {
        let books = &mut *self.books();
        if let Some((label, bytes)) = books.taken.remove(&at) {
            books.give(&label, bytes);
        }
    }

    /// Counts an allocation of page-locked memory of the host.
    pub(super) fn take_aside(&self, at: u64, bytes: u64) {
        self.books().locked.insert(at, bytes);
        self.lock(bytes);
    }

    /// Counts freed memory of the host. Returns whether it was that.
    pub(super) fn give_aside(&self, at: u64) -> bool {
        let bytes = self.books().locked.remove(&at);
        bytes.inspect(|bytes| self.unlock(*bytes)).is_some()
    }

    /// Counts memory of the host that is page-locked.
    pub(super) fn lock(&self, bytes: u64) {
        self.books().aside.take(bytes);
    }

    /// Counts what is page-locked no more.
    pub(super) fn unlock(&self, bytes: u64) {
        self.books().aside.bytes -= bytes;
    }

    /// Counts other memory of the host: where that is the device's `own`, under a label, which is returned.
    pub(super) fn take_host(&self, bytes: u64, own: bool) -> Option<Arc<str>> {
        let books = &mut *self.books();
        if !own {
            books.host.take(bytes);
            return None;
        }
        let label = Arc::clone(&books.label);
        books.take(Arc::clone(&label), bytes);
        Some(label)
    }

    /// Counts such memory that is given back.
    pub(super) fn give_host(&self, bytes: u64, label: Option<&str>) {
        let books = &mut *self.books();
        match label {
            Some(label) => books.give(label, bytes),
            None => books.host.bytes -= bytes,
        }
    }

    /// The most memory that was held at once so far.
    pub fn most(&self) -> Held {
        let books = self.books();
        let mut by: Vec<(String, u64)> =
            books.most.0.iter().filter(|(_, b)| **b > 0).map(|(l, b)| (l.to_string(), *b)).collect();
        by.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        Held { bytes: books.most.1, by, aside: books.aside.most, host: books.host.most }
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
        assert_eq!(most, Held { bytes: 150, by: by(&[("links", 100), ("light", 50)]), aside: 0, host: 0 });
        ledger.take(5, 100);
        ledger.take_aside(6, 70);
        assert_eq!([5, 6].map(|at| ledger.give_aside(at)), [false, true]);
        ledger.take_aside(6, 30);
        ledger.lock(50);
        let most = ledger.most();
        assert_eq!(most, Held { bytes: 220, by: by(&[("light", 110), ("other", 110)]), aside: 80, host: 0 });
        let [own, other] = [true, false].map(|own| ledger.take_host(40, own));
        ledger.give_host(40, own.as_deref());
        ledger.give_host(40, other.as_deref());
        ledger.take(7, 0);
        let most = ledger.most();
        assert_eq!(most, Held { bytes: 260, by: by(&[("other", 150), ("light", 110)]), aside: 80, host: 40 });
    }
}
