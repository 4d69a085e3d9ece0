//! The text of an input with other steps and schemes.

use crate::hmc::{Level, Scheme};
use crate::input::{self, Input, SCHEMES};
use std::fmt::Write;
use std::mem::discriminant;

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

/// `integrator`, `lambda` if it is not the usual one, and `steps` of a level, as lines of TOML.
fn keys(levels: &[Level], place: usize) -> String {
    let Level { scheme, steps } = levels[place];
    let mut lines = format!("integrator = \"{}\"\n", word(scheme));
    if let Some(lambda) = own_lambda(scheme) {
        let _ = writeln!(lines, "lambda = {lambda:?}");
    }
    // The inner level of 3G1F has no choice.
    let is_beside = place > 0 && levels[place - 1..=place].iter().all(|l| l.scheme == Scheme::ThreeToOne);
    if !is_beside {
        let _ = writeln!(lines, "steps = {steps}");
    }
    lines
}

/// The levels as tables of TOML.
pub(super) fn tables(levels: &[Level], terms: &[Vec<String>]) -> String {
    let table = |(place, terms): (usize, &Vec<String>)| {
        format!("[[hmc.level]]\n{}terms = {terms:?}\n", keys(levels, place))
    };
    terms.iter().enumerate().map(table).collect::<Vec<_>>().join("\n")
}

/// The text of `input` with these levels and everything else as it was; `None` if its levels are not written as
/// `[[hmc.level]]` with a key a line.
pub(super) fn with_levels(input: &Input, levels: &[Level]) -> Option<String> {
    let mut places = 0..levels.len();
    let (mut text, mut inside) = (String::new(), false);
    for line in input.text.lines() {
        let code = line.trim_start();
        if code.starts_with('[') {
            inside = code.starts_with("[[hmc.level]]");
            text += line;
            text.push('\n');
            if inside {
                text += &keys(levels, places.next()?);
            }
            continue;
        }
        let key = code.split('=').next().unwrap_or_default().trim();
        if !(inside && ["integrator", "lambda", "steps"].contains(&key)) {
            text += line;
            text.push('\n');
        }
    }
    let read = input::parse_stored(&text, "").ok()?.input;
    let mut hmc = input.hmc.clone();
    hmc.levels = levels.to_vec();
    (read.hmc == hmc && read.fermions == input.fermions && read.gauge == input.gauge).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../../inputs/clover-nf2p1-8x16.toml");

    #[test]
    fn levels_change_and_nothing_else() {
        let input = input::parse_stored(TEXT, "").unwrap().input;
        let levels = [
            Level { scheme: Scheme::ForceGradient, steps: 3 },
            Level { scheme: Scheme::Omelyan2 { lambda: 0.2 }, steps: 1 },
            Level { scheme: SCHEMES[2].1, steps: 5 },
        ];
        let text = with_levels(&input, &levels).unwrap();
        let read = input::parse_stored(&text, "").unwrap().input;
        assert_eq!(read.hmc.levels, levels);
        assert_eq!(read.hmc.terms, input.hmc.terms);
        assert!(text.contains("lambda = 0.2\n") && text.contains("# outermost: the ratio's small force"));
        // Its own levels give the same input again.
        let same = input::parse_stored(&with_levels(&input, &input.hmc.levels).unwrap(), "").unwrap().input;
        assert_eq!(same.fixed, input.fixed);
        assert!(tables(&levels, &read.hmc.terms).ends_with("steps = 5\nterms = [\"gauge\"]\n"));
    }

    #[test]
    fn the_inner_level_of_3g1f_has_no_steps() {
        let text = include_str!("../../../inputs/hisq-2p1-6x6.toml");
        let input = input::parse_stored(text, "").unwrap().input;
        assert!(with_levels(&input, &input.hmc.levels).unwrap().contains("\"3g1f\"\nterms = [\"gauge\"]"));
        let apart = [Scheme::ForceGradient, Scheme::Omelyan4].map(|scheme| Level { scheme, steps: 2 });
        assert!(with_levels(&input, &apart).unwrap().contains("\"omf4\"\nsteps = 2\nterms = [\"gauge\"]"));
    }

    /// Levels in one line of `[hmc]` are left to the user.
    #[test]
    fn other_forms_are_not_edited() {
        let (before, after) = TEXT.split_once("[[hmc.level]]").unwrap();
        let measured = after.split_once("[measure.loops]").unwrap().1;
        let line = "[hmc]\nlevel = [{ integrator = \"2mn\", steps = 4, terms = [\"light\", \"heavy\", \"strange\", \"gauge\"] }]\n";
        let text = format!("{before}{line}[measure.loops]{measured}");
        let input = input::parse_stored(&text, "").unwrap().input;
        assert_eq!(with_levels(&input, &[Level { scheme: Scheme::Omelyan4, steps: 2 }]), None);
    }
}
