//! `hmc report` and `hmc status`: what they say of a chain is what its files hold.

use crate::program::{Scratch, chain_contents, on, with};
use hmc::io::History;
use hmc::math::ChainMean;
use serde_json::Value;
use std::fs;

const FOLDER: &str = "ensembles/pure";

const PURE: &str = r#"[run]
name = "pure"
seed = 3
trajectories = 40
thermalisation = 5
save_every = 10
start = "cold"
[lattice]
extents = [4, 4, 4, 4]
[gauge]
action = "wilson"
beta = 5.7
[hmc]
reversibility_every = 20
verify_every = 15
[[hmc.level]]
integrator = "2mn"
steps = 6
terms = ["gauge"]
[measure]
every = 2
[measure.polyakov]
[measure.flow]
step = 0.1
t_max = 0.2
"#;

/// A chain of two tunings.
fn chain() -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &on(PURE, 0));
    scratch.chain(0, &on(&with(&with(PURE, "steps", "5"), "trajectories", "60"), 0));
    scratch
}

#[test]
fn a_report_says_what_the_files_hold() {
    let scratch = chain();
    let before = chain_contents(&scratch.at(FOLDER));
    let ended = scratch.run(0, &["report", "--json", "--from", "10", FOLDER]);
    ended.succeeded();
    let found: Value = serde_json::from_str(&ended.out).unwrap();
    let history = History::read(&scratch.at(FOLDER)).unwrap();
    let expected = ChainMean::of(&history.reals("plaquette")[10..]);
    let plaquette = &found["observables"][0];
    assert_eq!(plaquette["name"], "plaquette");
    for (key, value) in [("mean", expected.mean), ("error", expected.error), ("tau", expected.tau)] {
        assert_eq!(plaquette[key], value, "{key}");
    }
    // Every second trajectory was measured, so times are twice those of the series.
    let lines = fs::read_to_string(scratch.at(FOLDER).join("measurements.jsonl")).unwrap();
    let charges: Vec<f64> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["trajectory"].as_u64().unwrap() > 10)
        .map(|line| line["flow"].as_array().unwrap().last().unwrap()["q"].as_f64().unwrap())
        .collect();
    let expected = ChainMean::of(&charges);
    let observables = found["observables"].as_array().unwrap();
    let charge = observables.iter().find(|one| one["name"] == "topological charge, flow time 0.2").unwrap();
    assert_eq!((&charge["mean"], &charge["tau"]), (&expected.mean.into(), &(2.0 * expected.tau).into()));
    assert_eq!((&charge["count"], &charge["spacing"]), (&25.into(), &2.into()));
    assert_eq!((&found["done"], &found["from"], &found["running"]), (&60.into(), &10.into(), &Value::Null));
    let tunings = found["tunings"].as_array().unwrap();
    assert_eq!(tunings.len(), 2);
    assert_eq!(tunings[1]["changes"][0], "hmc.level 0 steps: was 6, is 5");
    assert_eq!((&tunings[0]["trajectories"], &tunings[1]["trajectories"]), (&40.into(), &20.into()));
    assert_eq!(found["verification"]["walked_twice"], 4);
    assert_eq!(found["verification"]["reversibility"], 3);
    assert!(found["verification"]["delta_h"].as_f64().unwrap() < 1e-9);
    assert_eq!(found["terms"][0]["name"], "gauge");
    // Nothing but the page is written.
    scratch.run(0, &["report", FOLDER]).succeeded();
    let page = fs::read_to_string(scratch.at(FOLDER).join("report.html")).unwrap();
    fs::remove_file(scratch.at(FOLDER).join("report.html")).unwrap();
    assert!(chain_contents(&scratch.at(FOLDER)) == before);
    assert!(page.matches("<svg").count() >= 7, "{} plots", page.matches("<svg").count());
    // It needs no network: the only addresses are names of XML.
    let rest = page.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xlink", "");
    assert!(!rest.contains("http"), "no address");
    for part in [
        "hmc.level 0 steps: was 6, is 5",
        "hep-lat/0306017",
        "&lt;exp(-dH)&gt;",
        "4 trajectories were walked twice",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // A page of one's own is not overwritten.
    scratch.run(0, &["report", "--out", "page.html", FOLDER]).succeeded();
    scratch.run(0, &["report", "--out", "page.html", FOLDER]).failed(2, &["page.html: exists already"]);
}

#[test]
fn a_status_has_five_lines_also_of_a_chain_that_runs() {
    let scratch = chain();
    let ended = scratch.run(0, &["status", FOLDER]);
    ended.succeeded();
    let lines: Vec<&str> = ended.out.lines().collect();
    let starts = [
        "pure: 60 of 60 trajectories on 4x4x4x4",
        "stopped   last job since ",
        "numbers   acceptance ",
        "time      ",
        "files     newest ",
    ];
    assert_eq!(lines.len(), starts.len(), "{ended:?}");
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{ended:?}");
    let input = scratch.write("run.toml", on(&with(&with(PURE, "steps", "5"), "trajectories", "100000"), 0));
    let mut job = scratch.start(0, &[&input]);
    job.await_words("61/100000");
    let ended = scratch.run(0, &["status", FOLDER]);
    assert!(ended.out.contains("\nrunning   process ") && ended.out.contains(" left\n"), "{ended:?}");
    job.kill();
    job.wait();
    // A folder of ensembles has no streams.
    scratch.run(0, &["status", "ensembles"]).failed(2, &["no folder of an ensemble"]);
    scratch.run(0, &["report", "nothere"]).failed(2, &["nothere: no folder of an ensemble"]);
}

/// A folder in which no trajectory is done yet has a report, too.
#[test]
fn a_chain_without_a_trajectory_has_a_status_and_a_report() {
    let scratch = Scratch::new();
    let text = PURE.replace("steps = 6", "steps = 100000");
    let input = scratch.write("run.toml", on(&text, 0));
    let mut job = scratch.start(0, &[&input]);
    job.await_words("trajectories to go");
    job.wait_until(|_| scratch.at(FOLDER).join("run.toml").exists());
    scratch.run(0, &["status", FOLDER]).succeeded();
    scratch.run(0, &["report", FOLDER]).succeeded();
    job.kill();
    job.wait();
}
