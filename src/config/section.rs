//! Tables of an input as data: their keys and tables, with documentation and schema.

use super::key::Entry;
use serde_json::{Map, Value as Json, json};

/// The keys and tables of a table.
pub(crate) struct Section {
    /// The keys, in the order of the documentation.
    pub keys: &'static [&'static dyn Entry],
    /// The tables inside.
    pub tables: &'static [Inner],
}

/// How often a table may occur.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Count {
    /// At most once.
    Once,
    /// Exactly once.
    Always,
    /// `[table.NAME]`, for any number of names.
    Named,
    /// `[[table]]`, any number of times.
    Listed,
}

/// A table inside a table.
pub(crate) struct Inner {
    /// Its name.
    pub name: &'static str,
    /// How often it may occur.
    pub count: Count,
    /// Its purpose; empty if the documentation has a chapter about it.
    pub text: &'static str,
    /// Its content: one of these.
    pub sections: &'static [&'static Section],
}

impl Section {
    /// The keys as rows of a Markdown table. Inner tables with a `text` are rows as well, followed by their keys.
    pub(crate) fn document(&self) -> String {
        let mut text = "| key | type | default | change | meaning |\n|---|---|---|---|---|\n".to_owned();
        for key in self.keys {
            text += &format!("{}\n", key.row(""));
        }
        for inner in self.tables.iter().filter(|inner| !inner.text.is_empty()) {
            text += &format!("| `{}` | table | none | | {} |\n", inner.name, inner.text);
            for key in inner.sections.iter().flat_map(|section| section.keys) {
                text += &format!("{}\n", key.row(&format!("{}.", inner.name)));
            }
        }
        text
    }

    /// The JSON schema; unknown keys are mistakes.
    pub(crate) fn schema(&self) -> Json {
        let mut properties = Map::new();
        let mut required: Vec<&str> =
            self.keys.iter().filter(|key| key.is_required()).map(|key| key.name()).collect();
        for key in self.keys {
            properties.insert(key.name().to_owned(), key.schema());
        }
        for inner in self.tables {
            properties.insert(inner.name.to_owned(), inner.schema());
            if inner.count == Count::Always {
                required.push(inner.name);
            }
        }
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Reads all defaults; panics if one is wrong.
    pub(crate) fn try_defaults(&self) {
        self.keys.iter().for_each(|key| key.try_default());
        self.tables.iter().flat_map(|inner| inner.sections).for_each(|section| section.try_defaults());
    }
}

impl Inner {
    fn schema(&self) -> Json {
        let all: Vec<Json> = self.sections.iter().map(|section| section.schema()).collect();
        let one = if let [one] = &all[..] { one.clone() } else { json!({ "anyOf": all }) };
        match self.count {
            Count::Once | Count::Always => one,
            Count::Named => json!({ "type": "object", "additionalProperties": one }),
            Count::Listed => json!({ "type": "array", "items": one }),
        }
    }
}
