//! Streams of one ensemble: chains that share a folder, with equal physics and other seeds; one report over all of them.

use crate::program::{Scratch, contents, names, on, read_chain, with};
use hmc::input::parse_stored;
use hmc::io::History;
use hmc::math::ChainMean;
use serde_json::Value;
use std::fs;

const ENSEMBLE: &str = "ensembles/pure";

const PURE: &str = pure!(
    "trajectories = 40\nthermalisation = 5\nsave_every = 10\nstart = \"cold\"\n",
    "[4, 4, 4, 4]",
    "",
    6,
    "[measure]\nevery = 2\n[measure.polyakov]\n"
);

/// The chain of this seed as a stream.
fn stream(name: &str, seed: u64) -> String {
    let text = with(PURE, "seed", &seed.to_string());
    text.replacen("[lattice]", &format!("stream = \"{name}\"\n[lattice]"), 1)
}

/// The second is shorter, with other steps: that is for each stream to choose.
fn second() -> String {
    with(&with(&stream("b", 4), "trajectories", "26"), "steps", "5")
}

fn ensemble() -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &on(&stream("a", 3), 0));
    scratch.chain(0, &on(&second(), 0));
    scratch
}

fn refused(scratch: &Scratch, text: &str, parts: &[&str]) {
    let input = scratch.write("refused.toml", on(text, 0));
    let before = names(&scratch.at(ENSEMBLE));
    scratch.run(0, &[&input]).failed(2, parts);
    scratch.run(0, &["--check", &input]).failed(2, parts);
    assert_eq!(names(&scratch.at(ENSEMBLE)), before, "nothing is made");
}

#[test]
fn a_stream_is_a_chain_in_a_folder_of_its_own() {
    let scratch = ensemble();
    assert_eq!(names(&scratch.at(ENSEMBLE)), ["a", "b"]);
    // It has the bits of the chain that is alone.
    let alone = Scratch::new();
    alone.chain(0, &on(PURE, 0));
    let [own, other] = [scratch.at(ENSEMBLE).join("a"), alone.at(ENSEMBLE)];
    assert_eq!(read_chain(&own), read_chain(&other));
    assert_eq!(
        scratch.checksum(&own.join("cfg/cfg_000040.h5")),
        alone.checksum(&other.join("cfg/cfg_000040.h5"))
    );
    // It goes on by itself, and its neighbour is left alone.
    let before = contents(&scratch.at(ENSEMBLE).join("b"));
    let ended = scratch.chain(0, &on(&with(&stream("a", 3), "trajectories", "42"), 0));
    assert!(
        ended.out.contains("pure/a: 4x4x4x4") && ended.out.contains("resumes after 40 of 42"),
        "{ended:?}"
    );
    assert!(contents(&scratch.at(ENSEMBLE).join("b")) == before);
}

#[test]
fn streams_of_other_physics_or_equal_seeds_are_refused() {
    let scratch = ensemble();
    refused(
        &scratch,
        &with(&stream("c", 5), "beta", "5.8"),
        &["the stream 'c' has other physics than 'a'", "\n  gauge.beta: 5.7 in 'a', 5.8 in 'c'"],
    );
    refused(
        &scratch,
        &with(&stream("c", 5), "extents", "[4, 4, 4, 6]"),
        &["lattice.extents: [4, 4, 4, 4] in 'a', [4, 4, 4, 6] in 'c'"],
    );
    refused(&scratch, &stream("c", 4), &["the streams 'b' and 'c' have the same run.seed = 4"]);
    refused(&scratch, &PURE.replace("seed = 3", "seed = 9"), &["pure holds the streams 'a', 'b'; name one"]);
    // A stream that has only begun counts.
    let long = with(&stream("d", 6), "steps", "100000");
    let input = scratch.write("d.toml", on(&long, 0));
    let mut job = scratch.start(0, &[&input]);
    job.await_words("trajectories to go");
    job.wait_until(|_| scratch.at(ENSEMBLE).join("d/run.toml").exists());
    refused(&scratch, &stream("e", 6), &["the streams 'd' and 'e' have the same run.seed = 6"]);
    job.kill();
    job.wait();
}

/// As jobs of an array do that were given one seed.
#[test]
fn of_two_streams_that_begin_at_once_one_sees_the_other() {
    let scratch = Scratch::new();
    let jobs = ["a", "b"].map(|name| {
        let input = scratch.write(&format!("{name}.toml"), on(&stream(name, 3), 0));
        scratch.start(0, &[&input])
    });
    let ended = jobs.map(|job| job.wait());
    let refused: Vec<_> = ended.iter().filter(|ended| ended.code != Some(0)).collect();
    assert!(!refused.is_empty(), "{ended:?}");
    refused.iter().for_each(|ended| ended.failed(2, &["have the same run.seed = 3"]));
}

#[test]
fn a_chain_without_a_stream_becomes_one_by_moving_its_files() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(PURE, 0));
    refused(
        &scratch,
        &stream("b", 4),
        &["pure holds a chain without a stream; give the run another name, or make that chain a stream"],
    );
    let folder = scratch.at(ENSEMBLE);
    let files = names(&folder);
    fs::create_dir(folder.join("a")).unwrap();
    files.iter().for_each(|name| fs::rename(folder.join(name), folder.join("a").join(name)).unwrap());
    let ended = scratch.chain(0, &on(&with(&stream("a", 3), "trajectories", "41"), 0));
    assert!(ended.out.contains("resumes after 40 of 41"), "{ended:?}");
    scratch.chain(0, &on(&second(), 0));
}

#[test]
fn a_report_is_over_all_streams() {
    let scratch = ensemble();
    let folders = ["a", "b"].map(|name| format!("{ENSEMBLE}/{name}"));
    let json = |arguments: &[&str]| -> Value {
        let ended = scratch.run(0, arguments);
        ended.succeeded();
        serde_json::from_str(&ended.out).unwrap()
    };
    let found = json(&["report", "--json", "--from", "8", ENSEMBLE]);
    let plaquettes: Vec<Vec<f64>> = folders
        .iter()
        .map(|folder| History::read(&scratch.at(folder)).unwrap().reals("plaquette")[8..].to_vec())
        .collect();
    let expected = ChainMean::of_replicas(&plaquettes.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let plaquette = &found["observables"][0];
    assert_eq!((&plaquette["name"], &plaquette["count"]), (&"plaquette".into(), &50.into()));
    for (key, value) in [
        ("mean", expected.mean),
        ("error", expected.error),
        ("tau", expected.tau),
        ("tau_error", expected.tau_error),
        ("q", expected.q),
    ] {
        assert_eq!(plaquette[key], value, "{key}");
    }
    // Measured after every second trajectory.
    let loops = &found["observables"][1];
    assert_eq!((&loops["count"], &loops["spacing"]), (&25.into(), &2.into()));
    assert_eq!((&found["name"], &found["done"], &found["planned"]), (&"pure".into(), &66.into(), &66.into()));
    // The numbers of a stream are those of its own report.
    for (number, folder) in folders.iter().enumerate() {
        assert_eq!(found["streams"][number], json(&["report", "--json", "--from", "8", folder]));
    }
    assert_eq!(found["streams"][1]["stream"], "b");
    assert_eq!(json(&["status", "--json", ENSEMBLE]), json(&["report", "--json", ENSEMBLE]));
    // By default each stream has a cut of its own.
    let cuts = json(&["report", "--json", ENSEMBLE]);
    for number in 0..2 {
        assert_eq!(cuts["streams"][number]["from"], cuts["streams"][number]["proposed_cut"]);
    }
    let page = |folder: &str| {
        scratch.run(0, &["report", folder]).succeeded();
        fs::read_to_string(scratch.at(folder).join("report.html")).unwrap()
    };
    let all = page(ENSEMBLE);
    assert!(all.matches("<svg").count() >= 4, "{} plots", all.matches("<svg").count());
    for part in ["<h1>pure</h1>", "<h1>Stream a</h1>", "<h1>Stream b</h1>", "<th>Q</th>", "2 streams"] {
        assert!(all.contains(part), "{part}");
    }
    assert!(page(&folders[0]).contains("<h1>pure/a</h1>"));
    let ended = scratch.run(0, &["status", ENSEMBLE]);
    let starts = [
        "pure: 2 streams, 66 of 66 trajectories on 4x4x4x4",
        "a    40 of 40, stopped",
        "b    26 of 26, stopped",
        "all  acceptance ",
    ];
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), starts.len(), "{ended:?}");
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{ended:?}");
    assert!(scratch.run(0, &["status", &folders[0]]).out.starts_with("pure/a: 40 of 40 trajectories"));
}

#[test]
fn histories_are_one_table() {
    let scratch = ensemble();
    let history = |folder: &str| {
        let ended = scratch.run(0, &["report", "--history", folder]);
        ended.succeeded();
        ended.out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let merged = history(ENSEMBLE);
    let mut expected = Vec::new();
    for name in ["a", "b"] {
        let folder = format!("{ENSEMBLE}/{name}");
        let own = history(&folder);
        // The file has a checksum behind each row.
        let file = fs::read_to_string(scratch.at(&folder).join("history.csv")).unwrap();
        let rows = file.lines().map(|row| row.rsplit_once(',').unwrap().0.to_owned());
        assert_eq!(own, rows.collect::<Vec<_>>());
        assert_eq!(merged[0], format!("stream,{}", own[0]));
        expected.extend(own[1..].iter().map(|row| format!("{name},{row}")));
    }
    assert_eq!(merged[1..], expected);
}

/// Where the others stand is told; means without it are not.
#[test]
fn a_stream_that_cannot_be_read_hides_no_other() {
    let scratch = ensemble();
    fs::write(scratch.at(ENSEMBLE).join("b").join("run.toml"), "what\n").unwrap();
    for file in ["cfg", "checkpoint"] {
        fs::remove_dir_all(scratch.at(ENSEMBLE).join("b").join(file)).unwrap();
    }
    let ended = scratch.run(0, &["status", ENSEMBLE]);
    ended.succeeded();
    assert!(ended.out.contains("\na    40 of 40, stopped"), "{ended:?}");
    let told = format!("warning: left out: {ENSEMBLE}/b: no folder of an ensemble");
    assert!(ended.err.starts_with(&told), "{ended:?}");
    scratch.run(0, &["report", ENSEMBLE]).failed(2, &["/b: no folder of an ensemble"]);
}

/// Streams that were made apart and put together later are looked at as well.
#[test]
fn folders_that_do_not_belong_together_have_no_report() {
    let scratch = ensemble();
    for name in ["run.toml", "history.csv"] {
        fs::create_dir_all(scratch.at(ENSEMBLE).join("c")).unwrap();
        let from = scratch.at(ENSEMBLE).join("a").join(name);
        fs::copy(from, scratch.at(ENSEMBLE).join("c").join(name)).unwrap();
    }
    scratch.run(0, &["report", ENSEMBLE]).failed(2, &["the streams 'a' and 'c' have the same run.seed = 3"]);
}

#[test]
fn a_branch_may_be_another_stream() {
    let scratch = ensemble();
    let from = format!("{ENSEMBLE}/a/cfg/cfg_000020.h5");
    scratch
        .run(0, &["branch", &from])
        .failed(2, &["--name NAME is wanted for another ensemble, or --stream STREAM"]);
    let few = ["--set", "run.trajectories=6", "--write", "c.toml"];
    scratch.run(0, &[&["branch", &from, "--stream", "c"], &few[..]].concat()).succeeded();
    let text = fs::read_to_string(scratch.at("c.toml")).unwrap();
    assert!(
        text.starts_with("# A branch of the chain 'pure/a' after trajectory 20: links_checksum "),
        "{text}"
    );
    let run = parse_stored(&text, "").unwrap().input.run;
    assert_eq!((run.name.as_str(), run.stream.as_deref()), ("pure", Some("c")));
    assert!(![3, 4].contains(&run.seed), "a seed that no stream has");
    scratch.run(0, &["c.toml"]).succeeded();
    let ended = scratch.run(0, &["status", ENSEMBLE]);
    assert!(ended.out.starts_with("pure: 3 streams, 72 of 72 trajectories"), "{ended:?}");
}

#[test]
fn streams_are_series_of_a_catalogue() {
    let scratch = Scratch::new();
    let text = stream("a", 3).replacen("save_every = 10", "save_every = 2\nsave_format = \"ildg\"", 1);
    scratch.chain(0, &on(&with(&text, "trajectories", "5"), 0));
    let told = |folder: &str| {
        let words = "qcdml --uri mc://LDG/test/pure --collaboration c --project p --participant n --institution i --license l";
        scratch.run(0, &[&words.split(' ').collect::<Vec<_>>()[..], &[folder]].concat())
    };
    told(ENSEMBLE)
        .failed(2, &["holds the streams 'a'; hmc qcdml takes the folder of one, such as ensembles/pure/a"]);
    told(&format!("{ENSEMBLE}/a")).succeeded();
    let xml = fs::read_to_string(scratch.at(ENSEMBLE).join("a/qcdml/cfg_000004.xml")).unwrap();
    for part in ["<series>a</series>", "<dataLFN>lfn://hmc/pure/a/cfg_000004.ildg</dataLFN>"] {
        assert!(xml.contains(part), "{part} in {xml}");
    }
}
