//! A walker over a parsed file that remembers positions and refuses unknown keys.
//!
//! Every key that is asked for becomes a known one; [`Table::finish`] reports the others. A table
//! that is absent reads as an empty one, and only a present table can miss a key.

use super::reader::{Read, Value, describe};
use super::report::{Report, hint, nearest};
use toml::de::{DeTable, DeValue};

/// A table of the file, and what was asked of it.
pub struct Table<'a> {
    report: &'a Report<'a>,
    /// As its header says, without brackets; empty for the file itself.
    path: String,
    /// The byte of its header.
    header: usize,
    entries: Option<&'a DeTable<'a>>,
    known: Vec<&'static str>,
    missing: Vec<&'static str>,
}

impl<'a> Table<'a> {
    /// The file itself.
    pub fn root(entries: &'a DeTable<'a>, report: &'a Report<'a>) -> Self {
        Self::new(report, String::new(), 0, Some(entries))
    }

    fn new(report: &'a Report<'a>, path: String, header: usize, entries: Option<&'a DeTable<'a>>) -> Self {
        Self { report, path, header, entries, known: Vec::new(), missing: Vec::new() }
    }

    fn value(&mut self, key: &'static str) -> Option<&'a Value<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.entries?.get(key)
    }

    /// Whether the file has this table.
    pub fn exists(&self) -> bool {
        self.entries.is_some()
    }

    /// Whether the table has `key`.
    pub fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// The byte of the value of `key`, or else of the table's header.
    pub fn at(&self, key: &str) -> usize {
        self.entries.and_then(|entries| entries.get(key)).map_or(self.header, |value| value.span().start)
    }

    /// Reports a mistake in the value of `key`.
    pub fn mistake(&self, key: &str, message: impl Into<String>) {
        self.report.mistake(self.at(key), message);
    }

    /// Reports a mistake at a byte of the file.
    pub fn mistake_at(&self, at: usize, message: impl Into<String>) {
        self.report.mistake(at, message);
    }

    /// Reports that the value of `key` is allowed but unwise.
    pub fn warning(&self, key: &str, message: impl Into<String>) {
        self.report.warning(self.at(key), message);
    }

    /// Warns of the value of `key` where it is allowed but makes no sense, and says why.
    pub fn doubt(&self, key: &str, senseless: bool, why: &str) {
        if senseless && self.has(key) {
            self.warning(key, format!("{key}: {why}"));
        }
    }

    /// The value of a key that may be absent. A mistake is reported and reads as absent.
    pub fn read_if<T>(&mut self, key: &'static str, reader: impl Fn(&'a Value<'a>) -> Read<T>) -> Option<T> {
        let read = reader(self.value(key)?);
        read.map_err(|mistakes| {
            for (at, message) in mistakes {
                self.report.mistake(at, format!("{key}: {message}"));
            }
        })
        .ok()
    }

    /// The value of a key that must be there.
    pub fn read<T>(&mut self, key: &'static str, reader: impl Fn(&'a Value<'a>) -> Read<T>) -> Option<T> {
        self.demand(key);
        self.read_if(key, reader)
    }

    /// The value of a key that has a default.
    pub fn read_or<T>(
        &mut self,
        key: &'static str,
        default: T,
        reader: impl Fn(&'a Value<'a>) -> Read<T>,
    ) -> T {
        self.read_if(key, reader).unwrap_or(default)
    }

    /// The value of a key that has a default; `None` only after a mistake.
    pub fn read_known<T>(
        &mut self,
        key: &'static str,
        default: T,
        reader: impl Fn(&'a Value<'a>) -> Read<T>,
    ) -> Option<T> {
        let found = self.read_if(key, reader);
        if self.has(key) { found } else { Some(default) }
    }

    /// Reports at the end that `key` is missing, if it is.
    pub fn demand(&mut self, key: &'static str) {
        if self.exists() && !self.has(key) {
            self.missing.push(key);
        }
    }

    /// The table `key` inside this one.
    pub fn table(&mut self, key: &'static str) -> Self {
        let path = self.path_of(key);
        match self.value(key) {
            None => Self::new(self.report, path, self.header, None),
            Some(value) => self.child(path, value),
        }
    }

    /// The tables `[key.NAME]` with their names, in the order of the file.
    pub fn named_tables(&mut self, key: &'static str) -> Vec<(String, Self)> {
        let parent = self.table(key);
        let mut entries: Vec<_> = parent.entries.into_iter().flatten().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let named = entries.into_iter().map(|(name, value)| {
            let name = name.get_ref().to_string();
            let table = self.child(parent.path_of(&name), value);
            (name, table)
        });
        named.collect()
    }

    /// The tables `[[key]]`.
    pub fn list(&mut self, key: &'static str) -> Vec<Self> {
        let path = self.path_of(key);
        let Some(value) = self.value(key) else { return Vec::new() };
        if let DeValue::Array(items) = value.get_ref() {
            return items.iter().map(|item| self.child(path.clone(), item)).collect();
        }
        self.mistake(key, format!("expected [[{path}]], found {}", describe(value)));
        Vec::new()
    }

    /// Whether the table `key`, which has no keys of its own, is there.
    pub fn switch(&mut self, key: &'static str) -> bool {
        let table = self.table(key);
        let on = table.exists();
        table.finish();
        on
    }

    fn child(&self, path: String, value: &'a Value<'a>) -> Self {
        let header = value.span().start;
        if let DeValue::Table(entries) = value.get_ref() {
            return Self::new(self.report, path, header, Some(entries));
        }
        self.report.mistake(header, format!("expected a table [{path}], found {}", describe(value)));
        Self::new(self.report, path, header, None)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports unknown keys, and missing ones unless an unknown key was likely meant for them.
    pub fn finish(mut self) {
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
    }
}
