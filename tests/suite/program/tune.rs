//! `hmc tune`: what it expects of its proposal is what is found, its trials have the same bits on any ranks, and nothing of
//! a run is written.

use super::{Scratch, contents, objects, on, quickstart, with};
use hmc::input::parse_stored;
use serde_json::Value;
use std::fs;

const LINKS: &str = "ensembles/quickstart/cfg/cfg_000012.h5";

/// Two flavours on 4^4, with steps that are shorter than need be.
fn text(trajectories: u64) -> String {
    let text = with(&with(&quickstart(), "extents", "[4, 4, 4, 4]"), "thermalisation", "8");
    let text = with(&text, "trajectories", &trajectories.to_string());
    // The first of both levels.
    text.replacen("steps = 6", "steps = 9", 1)
}

fn reals(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a real")).collect()
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

/// Tunes on so many ranks, and checks that nothing else was written.
fn tuned(scratch: &Scratch, ranks: usize, out: &str) -> Value {
    let input = scratch.write("run.toml", on(&text(12), ranks));
    let before = contents(scratch.path());
    let options = ["--trajectories", "3", "--acceptance", "0.97", "--json", "--write", out];
    let ended = scratch.run(ranks, &[&["tune", &input, "--links", LINKS], &options[..]].concat());
    ended.succeeded();
    let mut after = contents(scratch.path());
    after.retain(|(path, _)| !path.ends_with(out));
    assert_eq!(before, after);
    let [found] = &objects(&ended.out)[..] else { panic!("one object: {}", ended.out) };
    found.clone()
}

#[test]
fn the_proposal_keeps_what_it_promises() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(&text(12), 0));
    let [one, two] = [(0, "one.toml"), (2, "two.toml")].map(|(ranks, out)| tuned(&scratch, ranks, out));
    // The time decides what is proposed; all else of a trial is the same to the bit.
    let lines = |table: &Value| table["lines"].as_array().expect("the trials").clone();
    let (mut same, mut first) = (0, 0);
    for line in lines(&one) {
        first += usize::from(line["reason"] != "proposal");
        let others = lines(&two);
        let Some(other) = others.iter().find(|other| other["levels"] == line["levels"]) else { continue };
        for key in ["forces", "delta_h", "mean_square", "acceptance"] {
            assert_eq!(line[key], other[key], "{line}");
        }
        same += 1;
    }
    assert!(first == 7 && same >= first, "{first} trials, {same} the same");
    for key in ["term", "forces", "force", "force_max", "iterations", "delta_deviation"] {
        for (a, b) in one["terms"].as_array().unwrap().iter().zip(two["terms"].as_array().unwrap()) {
            assert_eq!(a[key], b[key]);
        }
    }
    for (table, out) in [(&one, "one.toml"), (&two, "two.toml")] {
        let all = lines(table);
        let proposal = &all[table["proposal"].as_u64().expect("a place") as usize];
        assert!(proposal["acceptance"].as_f64() >= Some(0.97), "{proposal}");
        let written = fs::read_to_string(scratch.at(out)).unwrap();
        let levels = parse_stored(&written, out).unwrap().input.hmc.levels;
        let steps: Vec<u64> = levels.iter().map(|level| level.steps.into()).collect();
        let told: Vec<u64> = proposal["levels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|level| level["steps"].as_u64().unwrap())
            .collect();
        assert_eq!(steps, told);
        // Shorter steps than need be are proposed away; rarely the measured times prefer one of the first trials.
        if proposal["expected"].is_null() {
            println!("skipped: one of the first trials is the fastest, of which nothing was expected");
            continue;
        }
        let (found, expected) = (reals(&proposal["delta_h"]), reals(&proposal["expected"]["delta_h"]));
        let misses: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
        // Higher orders: a step is longer than those of the first trials, by 1.3 or one step less.
        assert!(rms(&misses) < 0.7 * rms(&found) + 0.02, "{found:?} {expected:?}");
        let square = proposal["expected"]["mean_square"].as_f64().expect("expected") / rms(&found).powi(2);
        assert!((0.2..5.0).contains(&square), "{square}: {found:?} {expected:?}");
    }
}

/// A change is kept if it is faster with the acceptance wanted, and the written input has what was kept.
#[test]
fn masses_and_levels_that_are_kept_are_faster() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(&text(12), 0));
    // The expensive, small force of the ratio on the level of the cheap, large one.
    let factor =
        "[[fermion.light.hasenbusch]]      # heavy enough\nname = \"heavy\"\nmu = 0.5\n\n[[hmc.level]]";
    let apart = text(12).replacen("[[hmc.level]]", factor, 1).replacen("[\"light\"]", "[\"heavy\"]", 1);
    let apart = apart.replacen("[\"gauge\"]", "[\"light\", \"gauge\"]", 1);
    for (ranks, out) in [(0, "one.toml"), (2, "two.toml")] {
        let input = scratch.write("apart.toml", on(&apart, ranks));
        let options = ["--masses", "--levels", "--trajectories", "2", "--acceptance", "0.9", "--json"];
        let files = ["--links", LINKS, "--write", out];
        let ended = scratch.run(ranks, &[&["tune", &input], &options[..], &files].concat());
        ended.succeeded();
        let [table] = &objects(&ended.out)[..] else { panic!("one object: {}", ended.out) };
        let changes = table["changes"].as_array().expect("what was tried");
        assert!(changes.iter().any(|tried| tried["change"]["to"]["key"] == "mu"));
        assert!(changes.iter().any(|tried| tried["change"]["term"] == "light"), "{changes:?}");
        // Kept is what saves 2% of the best before it, and nothing else.
        let mut best = table["proposal_seconds"].as_f64().expect("its seconds");
        for tried in changes {
            let seconds = tried["seconds"].as_f64().unwrap_or(f64::INFINITY);
            assert_eq!(tried["kept"], seconds < 0.98 * best, "{best} {tried}");
            best = if tried["kept"] == true { seconds } else { best };
        }
        let kept: Vec<&Value> = changes.iter().filter(|tried| tried["kept"] == true).collect();
        println!("{} changes tried, {} kept", changes.len(), kept.len());
        if kept.is_empty() {
            println!("skipped: what was written, as the clocks of a busy machine kept no change");
            continue;
        }
        let written = fs::read_to_string(scratch.at(out)).unwrap();
        assert!(written.contains("# heavy enough"), "{written}");
        let read = parse_stored(&written, out).unwrap().input;
        let last = kept.iter().rfind(|tried| tried["change"]["to"]["key"] == "mu");
        let mu = last.map_or(Some(0.5), |tried| tried["change"]["to"]["value"].as_f64()).unwrap();
        assert!(written.contains(&format!("mu = {mu:?}")), "{mu}: {written}");
        let arranged = &table["arranged"];
        let proposal = &arranged["lines"][arranged["proposal"].as_u64().expect("a place") as usize];
        assert!(proposal["acceptance"].as_f64() >= Some(0.9), "{proposal}");
        assert_eq!(read.hmc.levels.len(), proposal["levels"].as_array().unwrap().len());
    }
}

#[test]
fn what_cannot_be_tuned_is_told() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", on(&text(12), 0));
    for wrong in [&["--acceptance", "1.5"][..], &["--acceptance", "x"], &["--trajectories", "1"]] {
        scratch.run(0, &[&["tune", &input], wrong].concat()).failed(2, &["error: invalid value"]);
    }
    fs::write(scratch.at("there.toml"), "mine").unwrap();
    scratch
        .run(0, &["tune", &input, "--write", "there.toml"])
        .failed(2, &["error: there.toml: exists already; --force overwrites it"]);
    assert_eq!(fs::read_to_string(scratch.at("there.toml")).unwrap(), "mine");
    scratch.run(0, &["tune", &input, "--links", "none.h5"]).failed(1, &["none.h5"]);
    let bad = scratch.write("bad.toml", on(&text(12).replacen("\"2mn\"", "\"2mm\"", 1), 0));
    scratch.run(0, &["tune", &bad]).failed(2, &["bad.toml:", "2mm"]);
}
