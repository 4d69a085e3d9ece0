//! `hmc init` and `hmc branch`: inputs to start from.

use crate::program::{Scratch, read_chain};
use hmc::input::parse_stored;
use std::fs;

#[test]
fn every_input_of_the_list_can_be_had_and_changed() {
    let scratch = Scratch::new();
    let list = scratch.run(0, &["init"]);
    list.succeeded();
    let names: Vec<&str> = list.out.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() >= 12 && names.contains(&"hisq-2p1p1-physical-64c96"), "{list:?}");
    for name in names {
        let ended = scratch.run(0, &["init", name, "--set", "run.name=own", "--set", "run.seed=77"]);
        ended.succeeded();
        let input = parse_stored(&ended.out, name).unwrap().input;
        assert_eq!((input.run.name.as_str(), input.run.seed), ("own", 77));
        let shipped =
            fs::read_to_string(format!("{}/inputs/{name}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let other = |text: &str| {
            text.lines()
                .filter(|l| !l.starts_with("name") && !l.starts_with("seed"))
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(other(&ended.out), other(shipped.trim_end()), "comments and all else stay");
    }
    // The schema has the tables of every input.
    let ended = scratch.run(0, &["init", "--schema"]);
    ended.succeeded();
    let schema: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert!(schema["properties"]["run"]["properties"]["seed"]["description"].is_string(), "{schema}");
    // Inputs of other names have other seeds, the same ones each time.
    let seed = |set: &[&str]| {
        let ended = scratch.run(0, &[&["init", "quickstart"], set].concat());
        parse_stored(&ended.out, "one").unwrap().input.run.seed
    };
    let seeds =
        [&[][..], &["--set", "run.name=a"], &["--set", "run.name=b"], &["--set", "run.stream=a"]].map(seed);
    assert!((0..4).all(|n| !seeds[..n].contains(&seeds[n])), "{seeds:?}");
    assert_eq!(seed(&["--set", "run.name=a"]), seeds[1]);
    let set =
        ["--set", "hmc.level.1.steps=3", "--set", "lattice.extents=[4, 4, 4, 4]", "--write", "run.toml"];
    scratch.run(0, &[&["init", "quickstart"], &set[..]].concat()).succeeded();
    let input = parse_stored(&fs::read_to_string(scratch.at("run.toml")).unwrap(), "").unwrap().input;
    assert_eq!((input.extents, input.hmc.levels[1].steps), ([4; 4], 3));
    scratch.run(0, &[&["init", "quickstart"], &set[..]].concat()).failed(2, &["run.toml: exists already"]);
    scratch
        .run(0, &["init", "quickstar"])
        .failed(2, &["there is no input 'quickstar'; there are quickstart, "]);
    scratch
        .run(0, &["init", "quickstart", "--set", "gauge.bta=5"])
        .failed(2, &["unknown key 'bta' in [gauge]; did you mean 'beta'?"]);
    scratch.run(0, &["init", "quickstart", "--set", "gage.beta=5"]).failed(2, &["gage", "did you mean"]);
    scratch.run(0, &[&["init", "quickstart"], &set[..], &["--force"]].concat()).succeeded();
    scratch.run(0, &["init", "quickstart", "--force"]).failed(2, &["--write"]);
}

/// Tables that an input does not have can be set, key by key or at once.
#[test]
fn tables_can_be_set() {
    let scratch = Scratch::new();
    let of = |changes: &[&str]| {
        let set: Vec<&str> = changes.iter().flat_map(|change| ["--set", *change]).collect();
        let ended = scratch.run(0, &[&["init", "quickstart"], &set[..]].concat());
        ended.succeeded();
        parse_stored(&ended.out, "").unwrap().input
    };
    assert_eq!(of(&["parallel.threads=1", "parallel.device=cpu"]).parallel.threads, Some(1));
    assert_eq!(of(&["parallel={threads=3}"]).parallel.threads, Some(3));
    assert!(
        of(&["measure.wilson_loops.r_max=2", "measure.wilson_loops.t_max=2"])
            .text
            .contains("[measure.wilson_loops]")
    );
    assert!(of(&["measure.flow.t_max=1"]).text.contains("t_max = 1\n"));
    scratch.run(0, &["init", "quickstart", "--set", "threads=1"]).failed(2, &["a key with its table"]);
}

#[test]
fn a_branch_is_another_chain_from_a_configuration() {
    let scratch = Scratch::new();
    let small = [
        "--set",
        "lattice.extents=[4, 4, 4, 4]",
        "--set",
        "run.trajectories=3",
        "--set",
        "run.thermalisation=0",
        "--set",
        "hmc.level.0.steps=2",
    ];
    scratch.run(0, &[&["init", "quickstart"], &small[..], &["--write", "run.toml"]].concat()).succeeded();
    scratch.run(0, &["run.toml"]).succeeded();
    let from = "ensembles/quickstart/cfg/cfg_000002.h5";
    let set = ["--name", "twig", "--write", "twig.toml"];
    scratch.run(0, &[&["branch", from], &set[..]].concat()).succeeded();
    let text = fs::read_to_string(scratch.at("twig.toml")).unwrap();
    let sum = scratch.checksum(&scratch.at(from));
    let origin = format!(
        "# A branch of the chain 'quickstart' after trajectory 2: links_checksum {sum}, written by hmc "
    );
    assert!(text.starts_with(&origin), "{text}");
    let input = parse_stored(&text, "").unwrap().input;
    assert_eq!((input.run.name.as_str(), input.extents), ("twig", [4; 4]));
    // Every branch has a seed of its own, and the same one whenever it is made.
    let seed = |branch: &[&str]| {
        let ended = scratch.run(0, &[&["branch"], branch].concat());
        parse_stored(&ended.out, "").unwrap_or_else(|error| panic!("{error}")).input.run.seed
    };
    let branches = [[from, "--name", "twig"], [from, "--name", "other"], [from, "--stream", "a"]];
    let mut seeds: Vec<u64> = branches.iter().map(|branch| seed(branch)).collect();
    assert_eq!(seeds[0], input.run.seed);
    let first = "ensembles/quickstart/cfg/cfg_000001.h5";
    seeds.extend([1, seed(&[first, "--name", "twig"])]);
    for (n, seed) in seeds.iter().enumerate() {
        assert!(!seeds[..n].contains(seed), "{seeds:?}");
    }
    // A stream beside a chain without one: its run would be refused, and that is said at once.
    let ended = scratch.run(0, &["branch", from, "--stream", "a"]);
    let told = "warning: a run would be refused: ensembles/quickstart holds a chain without a stream";
    assert!(ended.code == Some(0) && ended.err.contains(told), "{ended:?}");
    scratch.run(0, &["twig.toml"]).succeeded();
    // It starts from those links, and is another chain from there on.
    assert_eq!(scratch.checksum(&scratch.at("ensembles/twig/checkpoint/ckpt_000002.h5")).len(), 16);
    let [chain, twig] = ["quickstart", "twig"].map(|name| read_chain(&scratch.at("ensembles").join(name)));
    assert_ne!(chain.history[2].split(',').nth(1), twig.history[0].split(',').nth(1));
    // What the stored input says of files and folders is told.
    let twig = "ensembles/twig/cfg/cfg_000001.h5";
    let elsewhere =
        ["--set", "run.ensembles=\"elsewhere\"", "--set", "run.lfn=\"lfn://a/b\"", "--write", "away.toml"];
    scratch.run(0, &[&["branch", twig, "--name", "away"], &elsewhere[..]].concat()).succeeded();
    scratch.run(0, &["away.toml"]).succeeded();
    let ended = scratch.run(0, &["branch", "elsewhere/away/cfg/cfg_000001.h5", "--name", "more"]);
    for told in ["run.ensembles = \"elsewhere\" is what the stored input says", "run.lfn = \"lfn://a/b\" is"]
    {
        assert!(ended.err.contains(told), "{ended:?}");
    }
    // A chain of the same action with a seed that is taken is refused, unless it is there already.
    let taken = text.replace("name = \"twig\"", "name = \"third\"");
    fs::write(scratch.at("third.toml"), &taken).unwrap();
    let told = format!("run.seed = {} is also that of ensembles/twig", input.run.seed);
    scratch.run(0, &["third.toml"]).failed(2, &[&told]);
    scratch.run(0, &["--check", "third.toml"]).failed(2, &[&told]);
    // With another mass it is warned.
    let other = ["--set", &format!("run.seed={}", input.run.seed), "--set", "fermion.light.kappa=0.11"]
        .map(String::from);
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    scratch
        .run(0, &[&["branch", from, "--name", "light", "--write", "light.toml"], &other[..]].concat())
        .succeeded();
    let ended = scratch.run(0, &["--check", "light.toml"]);
    assert!(ended.code == Some(0) && ended.err.contains(&told), "{ended:?}");
    // Its files tell where it comes from.
    let info = scratch.run(0, &["info", "ensembles/twig/cfg/cfg_000001.h5"]);
    assert!(info.out.contains(&origin), "{info:?}");
    scratch.run(0, &["convert", from, "cfg.nersc"]).succeeded();
    scratch.run(0, &["branch", "cfg.nersc", "--name", "twig"]).failed(2, &["cfg.nersc: it has no input"]);
}
