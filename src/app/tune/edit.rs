//! The text of an input with other levels and masses; comments and all else stay as they are.

use crate::hmc::{Level, Scheme};
use crate::input::SCHEMES;
use serde::Serialize;
use std::mem::discriminant;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

/// The input's word for a scheme.
pub(super) fn word(scheme: Scheme) -> &'static str {
    let same = |other: &&(&str, Scheme)| discriminant(&other.1) == discriminant(&scheme);
    SCHEMES.iter().find(same).expect("every scheme has a word").0
}

/// The weight of a scheme that has one, if it is not the usual one.
pub(super) fn own_lambda(scheme: Scheme) -> Option<f64> {
    match scheme {
        Scheme::Omelyan2 { lambda } | Scheme::Omelyan2Position { lambda } => {
            SCHEMES.iter().all(|(_, usual)| *usual != scheme).then_some(lambda)
        }
        _ => None,
    }
}

/// A Hasenbusch mass of an input: a key of a factor, and what it is for the quark itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Mass {
    /// The quark, and the place among its factors.
    fermion: String,
    factor: usize,
    /// The factor's term.
    pub term: String,
    /// `mu`, `kappa` or `mass`.
    pub key: &'static str,
    /// As it stands in the input.
    pub value: f64,
    /// The mass that belongs to the value, and that of the quark.
    mass: f64,
    quark: f64,
}

impl Mass {
    /// The same further from the quark, by `factor`. Values have three digits, those of kappa six.
    pub(super) fn times(&self, factor: f64) -> Self {
        let mass = self.quark + factor * (self.mass - self.quark);
        let value = match self.key {
            "kappa" => rounded(0.5 / (mass + 4.0), 6),
            _ => rounded(mass, 3),
        };
        Self { value, mass, ..self.clone() }
    }
}

fn rounded(x: f64, digits: usize) -> f64 {
    format!("{x:.*e}", digits - 1).parse().expect("a number")
}

fn document(text: &str) -> DocumentMut {
    text.parse().expect("text that was read before")
}

/// Tables `[[of.them]]`, or in one line.
fn listed(item: Option<&mut Item>) -> Vec<&mut dyn TableLike> {
    match item {
        Some(Item::ArrayOfTables(tables)) => tables.iter_mut().map(|table| table as _).collect(),
        Some(Item::Value(Value::Array(values))) => {
            values.iter_mut().filter_map(Value::as_inline_table_mut).map(|table| table as _).collect()
        }
        _ => Vec::new(),
    }
}

fn levels_of(document: &mut DocumentMut) -> Vec<&mut dyn TableLike> {
    listed(document["hmc"].get_mut("level"))
}

fn factors_of<'a>(document: &'a mut DocumentMut, fermion: &str) -> Vec<&'a mut dyn TableLike> {
    listed(document["fermion"][fermion].get_mut("hasenbusch"))
}

/// Sets a key; what stands beside it stays.
fn set(table: &mut dyn TableLike, key: &str, value: impl Into<Value>) {
    let mut value = value.into();
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

/// Sets `integrator`, `lambda` if it is not the usual one, and `steps` of a level.
fn set_level(table: &mut dyn TableLike, levels: &[Level], place: usize) {
    let Level { scheme, steps } = levels[place];
    set(table, "integrator", word(scheme));
    match own_lambda(scheme) {
        Some(lambda) => set(table, "lambda", lambda),
        None => drop(table.remove("lambda")),
    }
    // The inner level of 3G1F has no choice.
    if place > 0 && levels[place - 1..=place].iter().all(|l| l.scheme == Scheme::ThreeToOne) {
        table.remove("steps");
    } else {
        set(table, "steps", i64::from(steps));
    }
}

/// The levels as tables of TOML.
pub(super) fn tables(levels: &[Level], terms: &[Vec<String>]) -> String {
    let table = |(place, terms): (usize, &Vec<String>)| {
        let mut table = Table::new();
        set_level(&mut table, levels, place);
        set(&mut table, "terms", terms.iter().collect::<Array>());
        format!("[[hmc.level]]\n{table}")
    };
    terms.iter().enumerate().map(table).collect::<Vec<_>>().join("\n")
}

/// The text with these levels.
pub(super) fn with_levels(text: &str, levels: &[Level]) -> String {
    let mut document = document(text);
    for (place, table) in levels_of(&mut document).into_iter().enumerate() {
        set_level(table, levels, place);
    }
    document.to_string()
}

/// The text with a term on another level; a level without terms is no more.
pub(super) fn with_term(text: &str, term: &str, to: usize) -> String {
    let mut document = document(text);
    for (place, table) in levels_of(&mut document).into_iter().enumerate() {
        let Some(terms) = table.get_mut("terms").and_then(Item::as_array_mut) else { continue };
        terms.retain(|other| other.as_str() != Some(term));
        if place == to {
            terms.push(term);
        }
    }
    let has_terms = |table: &dyn TableLike| {
        table.get("terms").and_then(Item::as_array).is_some_and(|terms| !terms.is_empty())
    };
    match document["hmc"].get_mut("level") {
        Some(Item::ArrayOfTables(tables)) => tables.retain(|table| has_terms(table)),
        Some(Item::Value(Value::Array(tables))) => {
            tables.retain(|table| table.as_inline_table().is_some_and(|table| has_terms(table)));
        }
        _ => {}
    }
    document.to_string()
}

/// The Hasenbusch masses of an input.
pub(super) fn masses(text: &str) -> Vec<Mass> {
    let mut document = document(text);
    let names = |table: &dyn TableLike| table.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let fermions = document.get("fermion").and_then(Item::as_table_like).map(names);
    let mut masses = Vec::new();
    for fermion in fermions.unwrap_or_default() {
        let own = |key| number(document["fermion"][&fermion].get(key));
        let quark = [own("mu").or(Some(0.0)), own("kappa").map(bare).or(own("mass"))];
        for (factor, table) in factors_of(&mut document, &fermion).into_iter().enumerate() {
            let term = table.get("name").and_then(Item::as_str).unwrap_or_default().to_owned();
            let found =
                ["mu", "kappa", "mass"].into_iter().find_map(|key| Some((key, number(table.get(key))?)));
            let Some((key, value)) = found else { continue };
            let mass = if key == "kappa" { bare(value) } else { value };
            if let Some(quark) = quark[usize::from(key != "mu")] {
                masses.push(Mass { fermion: fermion.clone(), factor, term, key, value, mass, quark });
            }
        }
    }
    masses
}

/// The text with this mass.
pub(super) fn with_mass(text: &str, mass: &Mass) -> String {
    let mut document = document(text);
    set(factors_of(&mut document, &mass.fermion).swap_remove(mass.factor), mass.key, mass.value);
    document.to_string()
}

fn number(item: Option<&Item>) -> Option<f64> {
    let value = item?.as_value()?;
    value.as_float().or(value.as_integer().map(|n| n as f64))
}

/// m0 of a kappa.
fn bare(kappa: f64) -> f64 {
    0.5 / kappa - 4.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Input, parse_stored};

    const TEXT: &str = include_str!("../../../inputs/clover-nf2p1-8x16.toml");
    const WALLS: &str = include_str!("../../../inputs/dwf-2p1-16c32.toml");

    fn read(text: &str) -> Input {
        parse_stored(text, "").unwrap().input
    }

    #[test]
    fn levels_change_and_nothing_else() {
        let levels = [
            Level { scheme: Scheme::ForceGradient, steps: 3 },
            Level { scheme: Scheme::Omelyan2 { lambda: 0.2 }, steps: 1 },
            Level { scheme: SCHEMES[2].1, steps: 5 },
        ];
        let (text, before) = (with_levels(TEXT, &levels), read(TEXT));
        let read = read(&text);
        assert_eq!(read.hmc.levels, levels);
        assert_eq!((&read.hmc.terms, &read.fermions), (&before.hmc.terms, &before.fermions));
        assert!(text.contains("lambda = 0.2\n") && text.contains("# outermost: the ratio's small force"));
        assert_eq!(with_levels(&text, &before.hmc.levels), TEXT);
        assert!(tables(&levels, &read.hmc.terms).ends_with("steps = 5\nterms = [\"gauge\"]\n"));
    }

    #[test]
    fn the_inner_level_of_3g1f_has_no_steps() {
        let text = include_str!("../../../inputs/hisq-2p1-6x6.toml");
        assert_eq!(with_levels(text, &read(text).hmc.levels), text);
        let apart = [Scheme::ForceGradient, Scheme::Omelyan4].map(|scheme| Level { scheme, steps: 2 });
        assert_eq!(read(&with_levels(text, &apart)).hmc.levels, apart);
    }

    #[test]
    fn levels_in_one_line_change_too() {
        let (before, after) = TEXT.split_once("[[hmc.level]]").unwrap();
        let measured = after.split_once("[measure.loops]").unwrap().1;
        let line = "[hmc]\nlevel = [{ integrator = \"2mn\", steps = 4, terms = [\"light\", \"heavy\", \"strange\", \"gauge\"] }]\n";
        let text = format!("{before}{line}[measure.loops]{measured}");
        let levels = [Level { scheme: Scheme::Omelyan4, steps: 2 }];
        assert_eq!(read(&with_levels(&text, &levels)).hmc.levels, levels);
    }

    #[test]
    fn masses_move_away_from_the_quark() {
        let [heavy] = &masses(TEXT)[..] else { panic!("one factor") };
        assert_eq!((heavy.term.as_str(), heavy.key, heavy.value), ("heavy", "kappa", 0.122));
        let twice = heavy.times(2.0);
        let distance = |kappa| bare(kappa) - bare(0.130);
        assert!((distance(twice.value) / distance(0.122) - 2.0).abs() < 1e-3, "{twice:?}");
        let text = with_mass(TEXT, &twice);
        assert_eq!(text, TEXT.replacen("kappa = 0.122", &format!("kappa = {}", twice.value), 1));
        assert_eq!(masses(&text)[0].value, twice.value);
        let found = masses(WALLS);
        let named: Vec<_> = found.iter().map(|mass| (mass.term.as_str(), mass.key, mass.value)).collect();
        assert_eq!(named, [("light-1", "mass", 0.06), ("light-2", "mass", 0.3)]);
        // 0.01 + 2 (0.06 - 0.01)
        assert_eq!(found[0].times(2.0).value, 0.11);
        assert_eq!(with_mass(WALLS, &found[0].times(2.0)), WALLS.replacen("mass = 0.06", "mass = 0.11", 1));
    }

    #[test]
    fn a_term_changes_its_level() {
        let text = with_term(TEXT, "heavy", 0);
        let terms = read(&text).hmc.terms;
        assert_eq!(terms, [vec!["light", "heavy"], vec!["strange"], vec!["gauge"]]);
        assert!(text.contains("# outermost: the ratio's small force"));
        let terms = read(&with_term(TEXT, "light", 1)).hmc.terms;
        assert_eq!(terms, [vec!["heavy", "strange", "light"], vec!["gauge"]]);
    }
}
