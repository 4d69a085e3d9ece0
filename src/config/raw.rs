//! The tables of a parsed file, with positions. Unknown keys are refused.
//!
//! A key becomes known when it is read; [`Table::finish`] reports all others. A table that is absent reads as an empty
//! one; only a present table reports missing keys.
//!
//! A key whose change matters to a resumed chain is recorded with its value when it is read. If several keys have a joint
//! meaning, the builder of their table records it ([`Table::keep`]); [`Table::finish`] panics if the record is missing.

use super::key::{Absent, Change, Key};
use super::reader::{Read, Value, describe};
use super::report::{Record, Report, hint, nearest};
use std::fmt::Debug;
use toml::de::{DeTable, DeValue};

/// A table of the file, and the keys read from it.
pub(crate) struct Table<'a> {
    report: &'a Report<'a>,
    /// The name in its header, without brackets; empty for the file itself.
    path: String,
    /// The prefix of a key's name in records.
    label: String,
    /// The byte at which its header begins.
    header: usize,
    entries: Option<&'a DeTable<'a>>,
    known: Vec<&'static str>,
    missing: Vec<&'static str>,
    /// Joint meanings of keys, and whether they are still to be recorded.
    joint: Vec<(&'static str, Change, bool)>,
}

impl<'a> Table<'a> {
    /// The whole file.
    pub(crate) fn root(entries: &'a DeTable<'a>, report: &'a Report<'a>) -> Self {
        Self {
            report,
            path: String::new(),
            label: String::new(),
            header: 0,
            entries: Some(entries),
            known: Vec::new(),
            missing: Vec::new(),
            joint: Vec::new(),
        }
    }

    /// A table inside this one; it may be absent.
    fn inner(&self, name: &str, header: usize, entries: Option<&'a DeTable<'a>>) -> Self {
        let path = self.path_of(name);
        let label = format!("{}{name}.", self.label);
        let (known, missing, joint) = (Vec::new(), Vec::new(), Vec::new());
        Self { report: self.report, path, label, header, entries, known, missing, joint }
    }

    fn value(&mut self, key: &'static str) -> Option<&'a Value<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.entries?.get(key)
    }

    /// All records so far, of the whole file.
    pub(crate) fn kept(&self) -> Vec<Record> {
        self.report.kept()
    }

    /// Whether the file has this table.
    pub(crate) fn exists(&self) -> bool {
        self.entries.is_some()
    }

    /// Whether the table has `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// The byte of the value of `key`, or of the table's header if the key is absent.
    pub(crate) fn at(&self, key: &str) -> usize {
        self.entries.and_then(|entries| entries.get(key)).map_or(self.header, |value| value.span().start)
    }

    /// Reports a mistake in the value of `key`.
    pub(crate) fn mistake(&self, key: &str, message: impl Into<String>) {
        self.report.mistake(self.at(key), message);
    }

    /// Reports a mistake at a byte of the file.
    pub(crate) fn mistake_at(&self, at: usize, message: impl Into<String>) {
        self.report.mistake(at, message);
    }

    /// Reports that the value of `key` is allowed but unwise.
    pub(crate) fn warning(&self, key: &str, message: impl Into<String>) {
        self.report.warning(self.at(key), message);
    }

    /// Warns about the value of `key` if it is `senseless`, and states why.
    pub(crate) fn doubt(&self, key: &str, senseless: bool, why: &str) {
        if senseless && self.has(key) {
            self.warning(key, format!("{key}: {why}"));
        }
    }

    /// The value of `key`, or its default; `None` if it is absent without a default, or after a mistake.
    pub(crate) fn get<T: Debug + PartialEq>(&mut self, key: &Key<T>) -> Option<T> {
        self.get_by(key, |value| key.form().read(value))
    }

    /// As [`Table::get`], by a reader that depends on other keys.
    pub(crate) fn get_by<T: Debug + PartialEq>(
        &mut self,
        key: &Key<T>,
        reader: impl Fn(&'a Value<'a>) -> Read<T>,
    ) -> Option<T> {
        if matches!(key.absent, Absent::Refused) {
            self.demand(key.name);
        }
        let found = self.read_if(key.name, reader);
        let value = if self.has(key.name) { found } else { key.default() };
        match key.settled {
            Some(settled) => match self.joint.iter().find(|(name, ..)| *name == settled) {
                Some((_, change, _)) => assert!(*change == key.change, "{settled}: one effect of a change"),
                None => self.joint.push((settled, key.change, true)),
            },
            None if key.change != Change::Free => {
                if let Some(value) = &value {
                    self.record(key.name, key.show(value), key.change);
                }
            }
            None => {}
        }
        value
    }

    /// The value of `key`, else `inherited`, else its default; after a mistake also the default.
    ///
    /// # Panics
    /// The key has no default.
    pub(crate) fn get_or<T: Debug + PartialEq>(&mut self, key: &Key<T>, inherited: Option<T>) -> T {
        let found = self.get(key);
        let inherited = if self.has(key.name) { None } else { inherited };
        inherited.or(found).unwrap_or_else(|| key.default().expect("a key with a default"))
    }

    fn read_if<T>(&mut self, key: &'static str, reader: impl Fn(&'a Value<'a>) -> Read<T>) -> Option<T> {
        let read = reader(self.value(key)?);
        read.map_err(|mistakes| {
            for (at, message) in mistakes {
                self.report.mistake(at, format!("{key}: {message}"));
            }
        })
        .ok()
    }

    /// Records the joint meaning of the keys that are settled as `name`.
    ///
    /// # Panics
    /// No key was read that is settled so.
    pub(crate) fn keep(&mut self, name: &'static str, value: &impl Debug) {
        let joint = self.joint.iter_mut().find(|(joint, ..)| *joint == name);
        let (_, change, owed) = joint.unwrap_or_else(|| panic!("no key is settled as {name}"));
        *owed = false;
        let change = *change;
        self.keep_as(name, change, value);
    }

    /// Records what is no key's own meaning, as the order of tables.
    pub(crate) fn keep_as(&self, name: &str, change: Change, value: &impl Debug) {
        self.record(name, format!("{value:?}"), change);
    }

    /// Declares that the joint meanings of this table's keys are recorded elsewhere.
    pub(crate) fn kept_elsewhere(&mut self) {
        self.joint.iter_mut().for_each(|(.., owed)| *owed = false);
    }

    /// Names this table of a list `name` in records.
    pub(crate) fn call(&mut self, name: &str) {
        self.label = format!("{} {name} ", self.label.trim_end_matches(['.', ' ']));
    }

    /// Records a value under this table's name.
    fn record(&self, key: &str, value: String, change: Change) {
        self.report.keep(Record { key: format!("{}{key}", self.label), value, change });
    }

    /// Makes [`Table::finish`] report `key` if it is missing.
    pub(crate) fn demand(&mut self, key: &'static str) {
        if self.exists() && !self.has(key) {
            self.missing.push(key);
        }
    }

    /// The table `key` inside this one.
    pub(crate) fn table(&mut self, key: &'static str) -> Self {
        match self.value(key) {
            None => self.inner(key, self.header, None),
            Some(value) => self.child(key, value),
        }
    }

    /// The tables `[key.NAME]` with their names, in the order of the file.
    pub(crate) fn named(&mut self, key: &'static str) -> Vec<(String, Self)> {
        let parent = self.table(key);
        let mut entries: Vec<_> = parent.entries.into_iter().flatten().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let named = entries.into_iter().map(|(name, value)| {
            let name = name.get_ref().to_string();
            let table = parent.child(&name, value);
            (name, table)
        });
        named.collect()
    }

    /// The tables `[[key]]`.
    pub(crate) fn list(&mut self, key: &'static str) -> Vec<Self> {
        let Some(value) = self.value(key) else { return Vec::new() };
        if let DeValue::Array(items) = value.get_ref() {
            return items.iter().map(|item| self.child(key, item)).collect();
        }
        self.mistake(key, format!("expected [[{}]], found {}", self.path_of(key), describe(value)));
        Vec::new()
    }

    /// Whether the table `key`, which has no keys, exists.
    pub(crate) fn switch(&mut self, key: &'static str) -> bool {
        let table = self.table(key);
        let on = table.exists();
        table.finish();
        on
    }

    fn child(&self, name: &str, value: &'a Value<'a>) -> Self {
        let header = value.span().start;
        if let DeValue::Table(entries) = value.get_ref() {
            return self.inner(name, header, Some(entries));
        }
        let path = self.path_of(name);
        self.report.mistake(header, format!("expected a table [{path}], found {}", describe(value)));
        self.inner(name, header, None)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports unknown keys. Also reports missing keys, unless an unknown key was likely meant for them.
    ///
    /// # Panics
    /// A joint meaning of keys was not recorded.
    pub(crate) fn finish(mut self) {
        let place = if self.path.is_empty() { "the file".to_owned() } else { format!("[{}]", self.path) };
        for (key, value) in self.entries.into_iter().flatten() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let kind = if matches!(value.get_ref(), DeValue::Table(_)) { "table" } else { "key" };
            let message = format!("unknown {kind} '{name}' in {place}{}", hint(name, &self.known));
            self.report.mistake(key.span().start, message);
            let meant = nearest(name, &self.known);
            self.missing.retain(|missing| Some(*missing) != meant);
        }
        for key in &self.missing {
            self.report.mistake(self.header, format!("missing '{key}' in {place}"));
        }
        let owed: Vec<_> = self.joint.iter().filter(|(.., owed)| *owed).map(|(name, ..)| name).collect();
        let forgotten = self.exists() && !self.report.has_mistakes() && !owed.is_empty();
        assert!(!forgotten, "[{}]: {owed:?} must be recorded", self.path);
    }
}
