//! `hmc report` and `hmc status`: what they say of a chain is what its files hold.

use crate::program::{Scratch, chain_contents, on, with};
use hmc::io::History;
use hmc::math::ChainMean;
use serde_json::Value;
use std::fs;

const FOLDER: &str = "ensembles/pure";

const PURE: &str = pure!(
    "trajectories = 40\nthermalisation = 5\nsave_every = 10\nstart = \"cold\"\n",
    "[4, 4, 4, 4]",
    "[hmc]\nreversibility_every = 20\nverify_every = 15\n",
    6,
    "[measure]\nevery = 2\n[measure.polyakov]\n[measure.flow]\nstep = 0.1\nt_max = 0.2\n"
);

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
        ">trajectory</text>",
        "prefers-color-scheme:dark",
        "class=\"scroll\"",
        "<h3>t^2 E</h3>",
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
    let told = "no folder of an ensemble: it has no run.toml that this version can read; it holds the ensembles pure";
    scratch.run(0, &["status", "ensembles"]).failed(2, &[told]);
    // However far the job came before it was killed.
    let told = "there is no trajectory after 200000: ";
    scratch.run(0, &["report", "--from", "200000", FOLDER]).failed(2, &[told]);
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
    let ended = scratch.run(0, &["status", FOLDER]);
    ended.succeeded();
    assert!(ended.out.contains("\ntime      no trajectory yet\n"), "{ended:?}");
    scratch.run(0, &["report", FOLDER]).succeeded();
    assert!(!page(&scratch).contains("NaN"));
    job.kill();
    job.wait();
}

fn page(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.at(FOLDER).join("report.html")).unwrap()
}

fn digest(scratch: &Scratch, options: &[&str]) -> Value {
    let ended = scratch.run(0, &[&["report", "--json"], options, &[FOLDER]].concat());
    ended.succeeded();
    serde_json::from_str(&ended.out).unwrap()
}

/// Before thermalisation is over there are means over what there is, marked, and no NaN.
#[test]
fn in_thermalisation_nothing_is_nan() {
    let scratch = Scratch::new();
    let text = with(&with(PURE, "trajectories", "5000"), "thermalisation", "5000");
    let input = scratch.write("run.toml", on(&text, 0));
    let mut job = scratch.start(0, &[&input]);
    job.await_words(" 7/5000 ");
    job.kill();
    job.wait();
    let done = History::read(&scratch.at(FOLDER)).unwrap().reals("trajectory").len();
    let state = format!("in thermalisation, {done} of 5000");
    let ended = scratch.run(0, &["status", FOLDER]);
    ended.succeeded();
    assert!(ended.out.contains(&format!("numbers   {state}; plaquette 0.")), "{ended:?}");
    scratch.run(0, &["report", FOLDER]).succeeded();
    let page = page(&scratch);
    assert!(page.contains(&state), "{page}");
    let found = digest(&scratch, &[]);
    assert_eq!((&found["in_thermalisation"], &found["from"]), (&state.into(), &0.into()));
    assert_eq!((&found["acceptance"], &found["observables"][0]["count"]), (&Value::Null, &done.into()));
    for text in [&ended.out, &page] {
        assert!(!text.contains("NaN") && !text.contains("0.50000000"), "{text}");
    }
}

/// t0 and w0 of a configuration are found on the flow's own steps, however often the flow is looked at.
#[test]
fn t0_does_not_depend_on_every() {
    let scratch = Scratch::new();
    let text = with(&with(&with(PURE, "trajectories", "6"), "start", "\"hot\""), "beta", "5.3");
    scratch.chain(0, &on(&text, 0));
    let of = |every: usize| -> [f64; 2] {
        let tables = format!("[measure.flow]\nstep = 0.02\nt_max = 2.0\nevery = {every}\n");
        let ended = scratch.measure(0, &tables, &["--json", &format!("{FOLDER}/checkpoint/ckpt_000006.h5")]);
        ended.succeeded();
        let found: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(found["flow"].as_array().unwrap().len(), 1 + 100 / every);
        ["t0", "w0"].map(|name| found[name].as_f64().unwrap_or(f64::NAN))
    };
    let [t0, w0] = of(1);
    assert!(t0 > 0.1 && t0 < 2.0, "{t0} {w0}");
    for every in [5, 25, 50] {
        let [a, b] = of(every);
        assert!(a == t0 && (b == w0 || w0.is_nan()), "every = {every}: {a} {b} for {t0} {w0}");
    }
}

/// t0 is where t^2 times the mean of E is 0.3, whether a configuration alone gets there or not.
#[test]
fn t0_is_that_of_the_mean_of_e() {
    let scratch = Scratch::new();
    let text = with(&with(&with(PURE, "t_max", "1.2"), "trajectories", "24"), "thermalisation", "4");
    scratch.chain(0, &on(&text.replace("beta = 5.7", "beta = 6.1"), 0));
    let path = scratch.at(FOLDER).join("measurements.jsonl");
    let lines: Vec<Value> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["trajectory"].as_u64().unwrap() > 4)
        .collect();
    let alone = lines.iter().filter(|line| !line["t0"].is_null()).count();
    let found = digest(&scratch, &["--from", "4"]);
    let all = found["observables"].as_array().unwrap();
    let t0 = all.iter().find(|one| one["name"] == "t0");
    let mean = |n: usize| -> f64 {
        let of = |line: &Value| line["flow"][n]["e_clover"].as_f64().unwrap();
        lines.iter().map(of).sum::<f64>() / lines.len() as f64
    };
    let curve: Vec<(f64, f64)> = (0..=12).map(|n| (0.1 * n as f64, mean(n))).collect();
    let expected = hmc::measure::reference_scales(&curve).0;
    println!("{alone} of {} reach t0 alone: {t0:?}", lines.len());
    let advice = found["advice"].to_string();
    match expected {
        Some(expected) => {
            let t0 = t0.unwrap();
            assert!((t0["mean"].as_f64().unwrap() - expected).abs() < 1e-9, "{t0} {expected}");
            assert!(t0["error"].as_f64().unwrap() > 0.0, "{t0}");
            assert_eq!((&t0["count"], &t0["reached"]), (&lines.len().into(), &alone.into()));
        }
        None => {
            let missing = lines.len() - alone;
            let told = format!(
                "No t0: {missing} of {} configurations do not reach t0 before t_max = 1.2; raise it",
                lines.len()
            );
            assert!(t0.is_none() && advice.contains(&told), "{advice}");
        }
    }
    // The same of a flow that ends before any t0.
    let short = Scratch::new();
    short.chain(0, &on(&with(PURE, "trajectories", "10"), 0));
    let found = digest(&short, &["--from", "4"]);
    let told = "No t0: 3 of 3 configurations do not reach t0 before t_max = 0.2; raise it in [measure.flow].";
    assert!(found["advice"].to_string().contains(told), "{found}");
    assert!(found["observables"].as_array().unwrap().iter().all(|one| one["name"] != "t0"));
    let curves = found["curves"].as_array().unwrap();
    assert_eq!((&curves[0]["title"], curves[0]["points"].as_array().unwrap().len()), (&"t^2 E".into(), 3));
}

/// What was measured is in the report: mesons with effective masses, and V(R).
#[test]
fn a_report_has_what_was_measured() {
    let scratch = Scratch::new();
    let text = with(&with(&with(PURE, "trajectories", "12"), "thermalisation", "2"), "steps", "2");
    let text = text.replace("[4, 4, 4, 4]", "[4, 4, 4, 8]").replace("[\"gauge\"]", "[\"gauge\", \"light\"]");
    let tables = "[fermion.light]\naction = \"wilson-clover\"\nkappa = 0.11\nc_sw = 1.0\n[measure.wilson_loops]\nr_max = 2\nt_max = 3\n\
                  [measure.meson.light]\nfermion = \"light\"\nchannels = [\"pion\", \"rho\"]\n[measure.correlator.pion]\nfermion = \"light\"\n";
    scratch.chain(0, &on(&format!("{text}{tables}"), 0));
    let found = digest(&scratch, &["--from", "2"]);
    let titles: Vec<&str> =
        found["curves"].as_array().unwrap().iter().map(|curve| curve["title"].as_str().unwrap()).collect();
    for title in ["t^2 E", "correlators C(t)", "effective masses", "static potential"] {
        assert!(titles.contains(&title), "no {title} in {titles:?}");
    }
}
