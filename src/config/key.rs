//! Keys of an input. Each is declared once: name, values, default, text, and the effect of a change on a chain.
//!
//! A declaration gives the reader ([`Table::get`](super::raw::Table::get)), the comparison with the input that began a
//! chain, the tables of `docs/input.md`, and the schema for editors.

pub(crate) use super::reader::Bound;
use super::reader::{Read, Value, choice, number_within, whole};
pub(crate) use super::report::Change;
use serde_json::{Value as Json, json};
use toml::de::{DeTable, DeValue};

/// The form of values, for the schema.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// A number between two ends.
    Number(Bound, Bound),
    /// An integer from the first to the second; `i64::MAX` means no end.
    Integer(i64, i64),
    /// One of these integers.
    Integers(&'static [i64]),
    /// One of these words.
    Words(&'static [&'static str]),
    /// The words of a [`Form`].
    OwnWords,
    /// A text that matches this pattern; empty: any text.
    Text(&'static str),
    /// An array of this length, or of any length.
    List(&'static Shape, Option<usize>),
    /// One of these shapes.
    Either(&'static [Shape]),
}

/// A reader for values of a type.
type Reader<T> = for<'a> fn(&'a Value<'a>) -> Read<T>;

/// The values that a key takes.
pub(crate) struct Form<T: 'static> {
    /// The description in words.
    expected: &'static str,
    shape: Shape,
    words: &'static [(&'static str, T)],
    read: How<T>,
}

enum How<T: 'static> {
    /// By the range or the words of the form.
    Form(for<'a> fn(&Form<T>, &'a Value<'a>) -> Read<T>),
    Reader(Reader<T>),
}

impl<T> Clone for Form<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Form<T> {}

impl<T> Clone for How<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for How<T> {}

/// A number from `low` to `high`; `expected` describes it in words.
pub(crate) const fn number(expected: &'static str, low: Bound, high: Bound) -> Form<f64> {
    let read = How::Form(|form: &Form<f64>, value| {
        let Shape::Number(low, high) = form.shape else { unreachable!("a form of numbers") };
        number_within(form.expected, low, high)(value)
    });
    Form { expected, shape: Shape::Number(low, high), words: &[], read }
}

/// An integer from `least` to `most`; `i64::MAX` means no end.
pub(crate) const fn integer<T: TryFrom<i64>>(least: i64, most: i64) -> Form<T> {
    let read = How::Form(|form: &Form<T>, value| {
        let Shape::Integer(least, most) = form.shape else { unreachable!("a form of integers") };
        whole(least..=most)(value)
    });
    Form { expected: "", shape: Shape::Integer(least, most), words: &[], read }
}

/// One of the `words`, each with its meaning.
pub(crate) const fn words<T: Copy>(words: &'static [(&'static str, T)]) -> Form<T> {
    let read = How::Form(|form: &Form<T>, value| choice(form.words)(value));
    Form { expected: "", shape: Shape::OwnWords, words, read }
}

/// Values with their own reader; `expected` describes them in the documentation.
pub(crate) const fn form<T>(expected: &'static str, shape: Shape, read: Reader<T>) -> Form<T> {
    Form { expected, shape, words: &[], read: How::Reader(read) }
}

impl<T> Form<T> {
    /// Reads a value.
    pub(crate) fn read<'a>(&self, value: &'a Value<'a>) -> Read<T> {
        match self.read {
            How::Form(read) => read(self, value),
            How::Reader(read) => read(value),
        }
    }

    /// The type in the documentation, in Markdown.
    fn kind(&self) -> String {
        if !self.expected.is_empty() {
            return self.expected.trim_start_matches("a ").trim_start_matches("an ").to_owned();
        }
        match self.shape {
            Shape::Integer(least, i64::MAX) => format!("integer, {least} at least"),
            Shape::Integer(least, most) => format!("integer, {least} to {most}"),
            _ => self.words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        }
    }

    fn schema(&self) -> Json {
        match self.shape {
            Shape::OwnWords => {
                json!({ "enum": self.words.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
            }
            shape => shape.schema(),
        }
    }
}

impl Shape {
    fn schema(self) -> Json {
        match self {
            Self::Number(low, high) => {
                let mut schema = json!({ "type": "number" });
                for (bound, with, without) in
                    [(low, "minimum", "exclusiveMinimum"), (high, "maximum", "exclusiveMaximum")]
                {
                    match bound {
                        Bound::Free => {}
                        Bound::With(end) => schema[with] = json!(end),
                        Bound::Without(end) => schema[without] = json!(end),
                    }
                }
                schema
            }
            Self::Integer(least, i64::MAX) => json!({ "type": "integer", "minimum": least }),
            Self::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Integers(all) => json!({ "enum": all }),
            Self::Words(words) => json!({ "enum": words }),
            Self::OwnWords => json!({ "type": "string" }),
            Self::Text("") => json!({ "type": "string", "minLength": 1 }),
            Self::Text(pattern) => json!({ "type": "string", "pattern": pattern }),
            Self::List(of, None) => json!({ "type": "array", "items": of.schema() }),
            Self::List(of, Some(count)) => {
                json!({ "type": "array", "items": of.schema(), "minItems": count, "maxItems": count })
            }
            Self::Either(shapes) => json!({ "anyOf": shapes.iter().map(|s| s.schema()).collect::<Vec<_>>() }),
        }
    }
}

/// What an absent key means.
#[derive(Clone, Copy)]
pub(crate) enum Absent {
    /// A mistake.
    Refused,
    /// This value, written as in the file.
    Is(&'static str),
    /// What the documentation describes in these words.
    Means(&'static str),
}

/// A key of a table.
pub(crate) struct Key<T: 'static> {
    pub(super) name: &'static str,
    pub(super) form: Form<T>,
    pub(super) absent: Absent,
    pub(super) change: Change,
    /// The name of a record that the builder makes of several keys, see [`Key::settled_as`].
    pub(super) settled: Option<&'static str>,
    unit: &'static str,
    note: &'static str,
    text: &'static str,
}

impl<T> Key<T> {
    /// The key `name`; `text` is its meaning, in Markdown.
    pub(crate) const fn new(
        name: &'static str,
        form: Form<T>,
        absent: Absent,
        change: Change,
        text: &'static str,
    ) -> Self {
        Self { name, form, absent, change, settled: None, unit: "", note: "", text }
    }

    /// The value matters only together with other keys: the table's builder must record their joint meaning as `name`
    /// with [`Table::keep`](super::raw::Table::keep). Keys of one name have one effect of a change.
    pub(crate) const fn settled_as(mut self, name: &'static str) -> Self {
        self.settled = Some(name);
        self
    }

    /// Its unit.
    pub(crate) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// A note that follows the default in the documentation.
    pub(crate) const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    /// The key's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The values that it takes.
    pub(crate) const fn form(&self) -> Form<T> {
        self.form
    }

    /// The words that it takes, with their meanings.
    pub(crate) const fn words(&self) -> &'static [(&'static str, T)] {
        self.form.words
    }

    /// The default, if the key has one.
    ///
    /// # Panics
    /// The declared default is not a value of the key; a test reads all defaults.
    pub(super) fn default(&self) -> Option<T> {
        let Absent::Is(text) = self.absent else { return None };
        let line = format!("x = {text}");
        let table = DeTable::parse(&line).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let value = table.get_ref().get("x").expect("it was written");
        Some(self.form.read(value).unwrap_or_else(|mistakes| panic!("{}: {mistakes:?}", self.name)))
    }
}

impl<T: PartialEq + std::fmt::Debug> Key<T> {
    /// A value as shown in comparisons: its word, or all its digits.
    pub(super) fn show(&self, value: &T) -> String {
        let word = self.form.words.iter().find(|(_, meaning)| meaning == value);
        word.map_or_else(|| format!("{value:?}"), |(word, _)| format!("{word:?}"))
    }
}

/// A key of any type.
pub(crate) trait Entry: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether the table must have it.
    fn is_required(&self) -> bool;
    /// Its row of a table in the documentation; `prefix` precedes the name.
    fn row(&self, prefix: &str) -> String;
    /// Its schema.
    fn schema(&self) -> Json;
    /// Reads the default; panics if it is wrong.
    fn try_default(&self);
}

impl<T: Sync> Entry for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_required(&self) -> bool {
        matches!(self.absent, Absent::Refused)
    }

    fn row(&self, prefix: &str) -> String {
        let default = match self.absent {
            Absent::Refused => "required".to_owned(),
            Absent::Is(text) => format!("`{text}`"),
            Absent::Means(words) => words.to_owned(),
        };
        let note = if self.note.is_empty() { String::new() } else { format!("; {}", self.note) };
        let kind = self.form.kind();
        let unit = if self.unit.is_empty() { String::new() } else { format!(", in {}", self.unit) };
        let change = match self.change {
            Change::Fixed => "fixed",
            Change::Tuning => "tuning",
            Change::Free => "free",
        };
        let row =
            format!("`{prefix}{}` | {kind}{unit} | {default}{note} | {change} | {}", self.name, self.text);
        format!("| {row} |")
    }

    fn schema(&self) -> Json {
        let mut schema = self.form.schema();
        let change = match self.change {
            Change::Fixed => " Fixed once a chain has begun.",
            Change::Tuning => " A chain may go on with another value, which is recorded.",
            Change::Free => "",
        };
        // Bars are escaped only in tables of Markdown.
        schema["description"] = json!(format!("{}.{change}", self.text.replace("\\|", "|")));
        if let Absent::Is(text) = self.absent {
            let line = format!("x = {text}");
            let table = DeTable::parse(&line).expect("a default");
            schema["default"] = as_json(table.get_ref().get("x").expect("it was written").get_ref());
        }
        schema
    }

    fn try_default(&self) {
        let _ = self.default();
    }
}

/// A value of the file as JSON.
fn as_json(value: &DeValue) -> Json {
    match value {
        DeValue::String(text) => json!(text.as_ref()),
        DeValue::Integer(number) => json!(number.as_str().parse::<i64>().unwrap_or_default()),
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().unwrap_or_default()),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Array(items) => items.iter().map(|item| as_json(item.get_ref())).collect(),
        DeValue::Datetime(_) | DeValue::Table(_) => Json::Null,
    }
}
