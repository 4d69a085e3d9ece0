//! The ladder of docs/tutorial.md towards light quarks, on a small lattice: each chain starts from the last configuration of the
//! one before, with a lighter quark.

use super::{Scratch, read_chain};
use hmc::input::parse_stored;
use std::collections::BTreeSet;
use std::fs;

const MASSES: [&str; 3] = ["0.065", "0.0217", "0.0065"];
/// The first rung in short. Its checkpoint of the start stays.
const FIRST: [&str; 7] = [
    "run.name=ladder-1",
    "run.trajectories=4",
    "run.thermalisation=2",
    "run.save_every=4",
    "run.checkpoint_every=100",
    "lattice.extents=[4, 4, 4, 4]",
    "hmc.level.0.steps=3",
];
/// |dH| is 0.01 at most with these steps. With links or forces that are not those of the action it is far above 1.
const GREATEST: f64 = 0.1;

#[test]
fn each_rung_starts_from_the_one_before() {
    let scratch = Scratch::new();
    let mut seeds = BTreeSet::new();
    let mut last: Option<String> = None;
    for (rung, mass) in (1..).zip(MASSES) {
        let name = format!("ladder-{rung}");
        let (input, folder) = (format!("{name}.toml"), format!("ensembles/{name}"));
        let masses = ["fermion.sea.pseudofermion.0.factors.0.mass", "measure.correlator.pion.mass"]
            .map(|key| format!("{key}={mass}"));
        let mut arguments = match &last {
            None => vec!["init", "hisq-2p1p1-16c32"],
            Some(last) => vec!["branch", last, "--name", &name],
        };
        let first = FIRST.iter().copied().filter(|_| last.is_none());
        arguments.extend(first.chain(masses.iter().map(String::as_str)).flat_map(|change| ["--set", change]));
        scratch.run(0, &[&arguments[..], &["--write", &input]].concat()).succeeded();
        let text = fs::read_to_string(scratch.at(&input)).unwrap();
        assert!(text.contains(&format!("{{ mass = {mass}, power = [2, 4] }}")), "{text}");
        assert!(seeds.insert(parse_stored(&text, &input).unwrap().input.run.seed), "{text}");

        scratch.run(0, &[&input]).succeeded();
        let rows = read_chain(&scratch.at(&folder)).history;
        assert_eq!(rows.len(), 4);
        for row in rows {
            let delta_h: f64 = row.split(',').nth(1).expect("dH").parse().unwrap();
            assert!(delta_h.abs() < GREATEST, "{name}: {row}");
        }
        let plaquette = |file: &str| scratch.info(&scratch.at(file))["plaquette"].as_f64().expect("a number");
        let start = plaquette(&format!("{folder}/checkpoint/ckpt_000000.h5"));
        if let Some(last) = &last {
            // A start makes the links of a file special unitary again: they move by rounding.
            assert!((start - plaquette(last)).abs() < 1e-12, "{name}");
        }
        let end = format!("{folder}/cfg/cfg_000004.h5");
        assert!((start - plaquette(&end)).abs() > 1e-3, "{name}");
        last = Some(end);
    }
}
