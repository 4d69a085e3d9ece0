//! A chain that goes on with another tuning: reported, recorded with its trajectory, made again where a record is lost; other
//! physics is refused.

use crate::program::{Scratch, names, on, read_chain, with};
use hmc::device::has_emulation;
use hmc::input::{Difference, compare, parse_stored};
use hmc::io::History;
use serde_json::Value;
use std::fs;

const FOLDER: &str = "ensembles/chain";

const FIRST: &str = r#"[run]
name = "chain"
seed = 5
trajectories = 2
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.6
[fermion.light]
action = "wilson-clover"
kappa = 0.12
c_sw = 1.5
[[hmc.level]]
integrator = "2mn"
steps = 3
terms = ["light"]
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge"]
[measure]
every = 1
[measure.loops]
"#;

/// With a Hasenbusch factor on a level of its own, and other solvers.
fn second(trajectories: u64) -> String {
    let factor = "[[fermion.light.hasenbusch]]\nname = \"heavy\"\nkappa = 0.11\n";
    let text = FIRST.replacen(
        "[[hmc.level]]",
        &format!("[fermion.light.solver]\nprecision = \"double\"\n{factor}[[hmc.level]]\nintegrator = \"omf4\"\nsteps = 1\nterms = [\"light\"]\n[[hmc.level]]"),
        1,
    );
    let text =
        text.replacen("2mn\"\nsteps = 3\nterms = [\"light\"]", "2mn\"\nsteps = 2\nterms = [\"heavy\"]", 1);
    with(&text, "trajectories", &trajectories.to_string())
}

/// Longer trajectories of the first kind.
fn third() -> String {
    let text = FIRST.replacen("[[hmc.level]]", "[hmc]\ntau = 1.5\n[[hmc.level]]", 1).replacen(
        "steps = 3",
        "steps = 5",
        1,
    );
    with(&text, "trajectories", "6")
}

/// The chain of all three, in jobs on so many ranks.
fn retuned(ranks: [usize; 3]) -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(ranks[0], &on(FIRST, ranks[0]));
    let ended = scratch.chain(ranks[1], &on(&second(4), ranks[1]));
    for told in ["other tuning from trajectory 3 on:", "  fermion.light.hasenbusch: was [], is [\"heavy\"]\n"]
    {
        assert!(ended.out.contains(told), "'{told}': {ended:?}");
    }
    let ended = scratch.chain(ranks[2], &on(&third(), ranks[2]));
    assert!(ended.out.contains("other tuning from trajectory 5 on:\n"), "{ended:?}");
    assert!(ended.out.contains("  hmc.tau: was 1.0, is 1.5\n"), "{ended:?}");
    scratch
}

fn checksums(scratch: &Scratch) -> Vec<String> {
    let folder = scratch.at(FOLDER).join("cfg");
    names(&folder).iter().map(|name| scratch.checksum(&folder.join(name))).collect()
}

#[test]
fn a_chain_goes_on_with_another_tuning() {
    let scratch = retuned([0, 0, 0]);
    let folder = scratch.at(FOLDER);
    // The history tells what was in force, and has the columns of all terms.
    let table = History::read(&folder).unwrap();
    assert_eq!(table.reals("tuning"), [0.0, 0.0, 2.0, 2.0, 4.0, 4.0]);
    let has = |name: &str| table.reals(name).iter().map(|value| !value.is_nan()).collect::<Vec<_>>();
    assert_eq!(has("dS_of_heavy"), [false, false, true, true, false, false]);
    assert_eq!(has("force_2"), has("dS_of_heavy"));
    assert_eq!(has("dS_of_light"), [true; 6]);
    // Each tuning is kept with its trajectory; configurations have the one that made them.
    let kept: Vec<String> = names(&folder).into_iter().filter(|name| name.ends_with(".toml")).collect();
    assert_eq!(kept, ["run.toml", "run_000002.toml", "run_000004.toml"]);
    for (number, has_factor) in [(2, false), (3, true), (4, true), (5, false)] {
        let info = scratch.run(0, &["info", &format!("{FOLDER}/cfg/cfg_{number:06}.h5")]);
        assert_eq!(info.out.contains("heavy"), has_factor, "{info:?}");
    }
    let jobs = fs::read_to_string(folder.join("jobs.jsonl")).unwrap();
    let jobs: Vec<Value> = jobs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(jobs[0].get("retuned").is_none());
    let told = |job: &Value| {
        job["retuned"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    };
    let expected = |a: &str, b: &str| -> Vec<String> {
        let [a, b] = [a, b].map(|text| parse_stored(text, "").unwrap().input);
        compare(&a, &b).iter().map(Difference::to_string).collect()
    };
    let found: Vec<String> = told(&jobs[2]);
    assert_eq!(found, expected(&second(4), &third()));
    // The same input again is no other tuning.
    let again = scratch.chain(0, &on(&with(&third(), "trajectories", "7"), 0));
    assert!(!again.out.contains("tuning"), "{again:?}");
    assert_eq!(History::read(&folder).unwrap().reals("tuning")[6], 4.0);
    // `--check` tells a change, and makes none.
    let input = scratch.write("other.toml", on(&with(&second(9), "precision", "\"double-half\""), 0));
    let before = fs::read(folder.join("history.csv")).unwrap();
    let checked = scratch.run(0, &["--check", &input]);
    checked.succeeded();
    assert!(checked.out.contains("other tuning from trajectory 8 on:"), "{checked:?}");
    assert!(fs::read(folder.join("history.csv")).unwrap() == before);
    // Other physics is refused as ever, whatever else changes.
    for (key, told) in [
        ("kappa", "fermion.light.kappa: was 0.12, is 0.121"),
        ("c_sw", "fermion.light.c_sw: was 1.5, is 0.121"),
    ] {
        let input = scratch.write("other.toml", on(&with(&third(), key, "0.121"), 0));
        let ended = scratch.run(0, &[&input]);
        ended.failed(2, &["other physics", told]);
        assert!(!ended.err.contains("precision"), "only what is to be taken back: {ended:?}");
    }
}

/// On other ranks, on an emulated GPU in between, and in jobs of one trajectory.
#[test]
fn retuned_chains_have_the_same_bits() {
    let reference = retuned([0, 0, 0]);
    let other = retuned([2, 0, 2]);
    assert_eq!(read_chain(&other.at(FOLDER)), read_chain(&reference.at(FOLDER)));
    assert_eq!(checksums(&other), checksums(&reference));
    let moved = Scratch::new();
    moved.chain(0, &on(FIRST, 0));
    moved.chain(0, &on(&second(3), 0));
    if has_emulation() {
        moved.chain(0, &format!("{}[parallel]\ndevice = \"emulated\"\n", second(4)));
    } else {
        println!("skipped: an emulated GPU: this build has none");
        moved.chain(0, &on(&second(4), 0));
    }
    moved.chain(0, &on(&third(), 0));
    assert_eq!(read_chain(&moved.at(FOLDER)), read_chain(&reference.at(FOLDER)));
    assert_eq!(checksums(&moved), checksums(&reference));
}

/// Lost records are made again by the tuning of their time.
#[test]
fn records_of_every_tuning_are_made_again() {
    let scratch = retuned([0, 0, 0]);
    let folder = scratch.at(FOLDER);
    let reference = read_chain(&folder);
    let columns = |name: &str| History::read(&folder).unwrap().reals(name);
    let heavy = columns("dS_of_heavy");
    let links = checksums(&scratch);
    for lost in [["history.csv", "cfg/cfg_000003.h5"], ["measurements.jsonl", "cfg/cfg_000005.h5"]] {
        lost.iter().for_each(|name| fs::remove_file(folder.join(name)).unwrap());
        let input = scratch.write("run.toml", on(&third(), 0));
        let ended = scratch.run(0, &[&input]);
        ended.succeeded();
        assert_eq!(read_chain(&folder), reference, "{ended:?}");
    }
    let found = columns("dS_of_heavy");
    assert!(
        found.iter().zip(&heavy).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())),
        "{found:?} for {heavy:?}"
    );
    assert_eq!(columns("tuning"), [0.0, 0.0, 2.0, 2.0, 4.0, 4.0]);
    let last = checksums(&scratch);
    assert_eq!(last.last(), links.last());
    // So is the newest configuration, with the input that made it, though the job has another one.
    fs::remove_file(folder.join("cfg/cfg_000006.h5")).unwrap();
    scratch.chain(0, &on(&with(&second(7), "trajectories", "6"), 0));
    let info = scratch.run(0, &["info", &format!("{FOLDER}/cfg/cfg_000006.h5")]);
    assert!(info.out.contains("tau = 1.5") && !info.out.contains("heavy"), "{info:?}");
}

/// A tuning whose only trajectories are lost has never been in force.
#[test]
fn a_tuning_without_a_trajectory_leaves_no_trace() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(FIRST, 0));
    scratch.chain(0, &on(&second(3), 0));
    let folder = scratch.at(FOLDER);
    for name in ["cfg/cfg_000003.h5", "checkpoint/ckpt_000003.h5"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let ended = scratch.chain(0, &on(&with(FIRST, "trajectories", "4"), 0));
    assert!(ended.out.contains("resumes after 2 of 4") && !ended.out.contains("other tuning"), "{ended:?}");
    let ended = scratch.chain(0, &on(&with(FIRST, "trajectories", "5"), 0));
    assert!(!ended.out.contains("other tuning"), "{ended:?}");
    assert_eq!(History::read(&folder).unwrap().reals("tuning"), [0.0; 5]);
    let reference = Scratch::new();
    reference.chain(0, &on(&with(FIRST, "trajectories", "5"), 0));
    assert_eq!(read_chain(&folder), read_chain(&reference.at(FOLDER)));
}
