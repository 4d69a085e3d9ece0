//! The tables of `docs/input.md` and the JSON schema for editors, from the declared keys.

use super::{gauge, hmc, run};
use crate::config::section::{Count, Inner, Section};
use crate::family::{self, SECTIONS};
use crate::measure;
use serde_json::{Value, json};

/// The whole file.
const INPUT: Section = Section {
    keys: &[],
    tables: &[
        Inner { name: "run", count: Count::Once, text: "", sections: &[&run::RUN] },
        Inner { name: "lattice", count: Count::Once, text: "", sections: &[&run::LATTICE] },
        Inner { name: "parallel", count: Count::Once, text: "", sections: &[&run::PARALLEL] },
        Inner { name: "gauge", count: Count::Once, text: "", sections: &[&gauge::GAUGE] },
        Inner { name: "fermion", count: Count::Named, text: "", sections: SECTIONS },
        Inner { name: "hmc", count: Count::Once, text: "", sections: &[&hmc::HMC] },
        Inner { name: "measure", count: Count::Once, text: "", sections: &[&measure::MEASURE] },
    ],
};

/// The tables of the documentation, by the names of their places in the text; those of observables by their keys.
fn places() -> impl Iterator<Item = (&'static str, &'static Section)> {
    let own: [(_, &Section); 8] = [
        ("run", &run::RUN),
        ("lattice", &run::LATTICE),
        ("parallel", &run::PARALLEL),
        ("gauge", &gauge::GAUGE),
        ("hmc", &hmc::HMC),
        ("level", &hmc::LEVEL),
        ("smd", &hmc::SMD),
        ("measure", &measure::MEASURE),
    ];
    let families = family::PLACES.iter().copied().flatten().copied();
    let chapters = measure::MEASURE.tables.iter().filter(|inner| inner.text.is_empty());
    own.into_iter().chain(families).chain(chapters.map(|inner| (inner.name, inner.sections[0])))
}

/// The names of all tables of the documentation. Reads the default of every key, and panics if one is wrong.
pub fn sections() -> Vec<&'static str> {
    INPUT.try_defaults();
    places().map(|(place, _)| place).collect()
}

/// The `text` of `docs/input.md` with its tables of keys regenerated. Each is between `<!-- keys of PLACE -->` and
/// `<!-- end -->`.
#[must_use]
pub fn document(text: &str) -> String {
    let mut made = String::new();
    let mut skip = false;
    for line in text.lines() {
        skip &= line != "<!-- end -->";
        if !skip {
            made += line;
            made.push('\n');
        }
        let place = line.strip_prefix("<!-- keys of ").and_then(|rest| rest.strip_suffix(" -->"));
        if let Some((_, section)) = place.and_then(|place| places().find(|(other, _)| *other == place)) {
            made += &format!("\n{}\n", section.document());
            skip = true;
        }
    }
    made
}

/// The JSON schema of inputs, for TOML editors.
#[must_use]
pub fn schema() -> Value {
    let mut schema = INPUT.schema();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Input of hmc");
    schema
}
