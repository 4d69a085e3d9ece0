//! `method = "auto"`: a chain that has chosen is the chain of an input that names what it chose, also where it was resumed,
//! on other ranks, or made again. Which method is the fastest is for the machine to say, not for these tests.

use crate::program::{Scratch, names, on, read_chain, with};
use hmc::solver::{Choice, Choices};
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "ensembles/chain";

/// A light quark that may take any method, over a heavy one of which some precision is known; also one flavour, which has
/// no choice. `LIGHT` and `HEAVY` stand for keys of their solvers.
const CLOVER: &str = r#"
[run]
name = "chain"
seed = 5
trajectories = 3
thermalisation = 1
save_every = 1
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.6
[fermion.light]
action = "wilson-clover"
kappa = 0.12
c_sw = 1.5
[fermion.light.solver]
LIGHT
gcr-dd = { block = [4, 2, 2, 4] }
multigrid = { aggregate = [2, 2, 2, 4], vectors = 8 }
guess = 2
[[fermion.light.hasenbusch]]
name = "heavy"
mu = 0.4
[fermion.light.hasenbusch.solver]
HEAVY
[fermion.strange]
action = "wilson-clover"
flavours = 1
kappa = 0.11
c_sw = 1.5
[fermion.strange.rational]
range = [0.02, 8.0]
[fermion.strange.solver]
method = "auto"
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["light"]
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["heavy", "strange", "gauge"]
[hmc]
tau = 0.2
[measure.correlator.pion]
fermion = "light"
"#;

/// Domain walls, which choose a precision.
const WALLS: &str = r#"
[run]
name = "chain"
seed = 5
trajectories = 2
thermalisation = 1
save_every = 1
[lattice]
extents = [4, 4, 4, 4]
[gauge]
action = "iwasaki"
beta = 2.2
[fermion.light]
action = "domain-wall"
weights = "shamir"
n_s = 4
m5 = 1.8
mass = 0.1
[fermion.light.solver]
LIGHT
[[fermion.light.hasenbusch]]
name = "heavy"
mass = 0.4
[fermion.light.hasenbusch.solver]
HEAVY
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["light", "heavy", "gauge"]
[hmc]
tau = 0.2
"#;

const AUTO: [&str; 2] = ["method = \"auto\"", "precision = \"double\""];

/// The input with these keys of the solvers.
fn keys(text: &str, [light, heavy]: [&str; 2]) -> String {
    let text = text.replacen("LIGHT", light, 1).replacen("HEAVY", heavy, 1);
    // Other methods have no blocks or aggregates.
    let serves = |method| light.contains("auto") || light.contains(method);
    let text = if serves("gcr-dd") { text } else { text.replace("gcr-dd = { block = [4, 2, 2, 4] }\n", "") };
    if serves("multigrid") {
        text
    } else {
        text.replace("multigrid = { aggregate = [2, 2, 2, 4], vectors = 8 }\n", "")
    }
}

/// The keys that name a choice.
fn named(Choice { method, precision }: &Choice) -> String {
    format!("method = \"{method}\"\nprecision = \"{precision}\"")
}

/// The input that names what a chain of `text` has chosen.
fn explicit(text: &str, choices: &Choices) -> String {
    let of = |term: &str| choices.get(term).map_or_else(|| named(&choice("cg", "double")), named);
    keys(text, [&of("light"), &of("heavy")])
}

fn choice(method: &str, precision: &str) -> Choice {
    Choice { method: method.into(), precision: precision.into() }
}

/// The choices in a file.
fn choices_in(path: &Path) -> Choices {
    let text = hmc::io::header(path).unwrap().solvers.expect("choices");
    serde_json::from_str(&text).unwrap()
}

/// The choices of a chain, which every file of it has.
fn choices(scratch: &Scratch) -> Choices {
    let folders = ["cfg", "checkpoint"].map(|place| scratch.at(FOLDER).join(place));
    let files =
        |folder: &PathBuf| names(folder).into_iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    let all: Vec<PathBuf> = folders.iter().flat_map(files).collect();
    let found = choices_in(&all[0]);
    assert!(all.iter().all(|path| choices_in(path) == found));
    found
}

/// That two chains have the same history, measurements and configurations.
fn same(one: &Scratch, other: &Scratch) {
    let [a, b] = [one, other].map(|scratch| read_chain(&scratch.at(FOLDER)));
    assert_eq!(a, b);
    let cfgs = |scratch: &Scratch| -> Vec<String> {
        let folder = scratch.at(FOLDER).join("cfg");
        names(&folder).iter().map(|name| scratch.checksum(&folder.join(name))).collect()
    };
    assert_eq!(cfgs(one), cfgs(other));
    assert!(!cfgs(one).is_empty());
}

/// Whether a log has trials.
fn has_trials(out: &str) -> bool {
    out.contains(", chosen")
}

/// The law: on one rank and on two.
#[test]
fn a_chain_with_auto_has_the_bits_of_what_it_chose() {
    let auto = keys(CLOVER, ["method = \"auto\"", "method = \"auto\""]);
    for ranks in [0, 2] {
        let (own, other) = (Scratch::new(), Scratch::new());
        let ended = own.chain(ranks, &on(&auto, ranks));
        let found = choices(&own);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["heavy", "light"]);
        for (term, Choice { method, precision }) in &found {
            let title = format!("solver of {term}, \"auto\":");
            assert!(ended.out.contains(&title), "{}", ended.out);
            let is_row = |line: &str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.starts_with(&[method, precision]) && line.ends_with(", chosen")
            };
            assert!(ended.out.lines().any(is_row), "{}", ended.out);
        }
        // Each factor inherits the block and the aggregates: three methods in two precisions, and multigrid.
        assert_eq!(ended.out.matches(" iterations ").count(), 14, "{}", ended.out);
        assert_eq!(ended.out.matches(" once in 7 solves").count(), 1, "{}", ended.out);
        assert_eq!(ended.out.matches(" once in 19 solves").count(), 1, "{}", ended.out);
        let ended = other.chain(0, &on(&explicit(CLOVER, &found), 0));
        assert!(!has_trials(&ended.out));
        same(&own, &other);
    }
}

#[test]
fn domain_walls_choose_a_precision() {
    let (own, other) = (Scratch::new(), Scratch::new());
    own.chain(0, &on(&keys(WALLS, ["method = \"auto\"", ""]), 0));
    let found = choices(&own);
    assert!(found.values().all(|choice| choice.method == "cg"), "{found:?}");
    assert_eq!(found.len(), 2);
    other.chain(0, &on(&explicit(WALLS, &found), 0));
    same(&own, &other);
}

/// The strange quark of [`WALLS`] by the exact action: its forces choose, and its heat bath takes the same.
#[test]
fn an_exact_one_flavour_term_chooses_too() {
    let strange = "[fermion.strange]\naction = \"domain-wall\"\nweights = \"shamir\"\nn_s = 4\nm5 = 1.8\nmass = 0.3\nflavours = 1\n\
                   one_flavour = \"eofa\"\n[fermion.strange.solver]\nKEYS\n[fermion.strange.rational]\nrange = [0.5, 10.0]\n";
    let text = keys(WALLS, ["precision = \"double\""; 2])
        .replace("\"heavy\", \"gauge\"", "\"heavy\", \"strange\", \"gauge\"");
    let with_strange = |keys: &str| {
        on(&text.replacen("[[hmc.level]]", &(strange.replace("KEYS", keys) + "[[hmc.level]]"), 1), 0)
    };
    let (own, other) = (Scratch::new(), Scratch::new());
    own.chain(0, &with_strange("method = \"auto\""));
    let found = choices(&own);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["strange"]);
    other.chain(0, &with_strange(&named(&found["strange"])));
    same(&own, &other);
}

/// Also from a configuration, and with records that are made again.
#[test]
fn a_resumed_chain_keeps_its_choice() {
    let text = keys(CLOVER, AUTO);
    let own = Scratch::new();
    let folder = own.at(FOLDER);
    assert!(has_trials(&own.chain(0, &on(&with(&text, "trajectories", "1"), 0)).out));
    let found = choices(&own);
    let resumes = |ranks, trajectories: &str| {
        let ended = own.chain(ranks, &on(&with(&text, "trajectories", trajectories), ranks));
        assert!(!has_trials(&ended.out), "{}", ended.out);
        let told = format!("solver of light, \"auto\": {}, as the chain has chosen", found["light"]);
        assert!(ended.out.contains(&told), "{}", ended.out);
        assert_eq!(choices(&own), found);
    };
    resumes(2, "2");
    fs::remove_dir_all(folder.join("checkpoint")).unwrap();
    // Only the head of the history and no measurements: all of it is made again.
    let history = fs::read_to_string(folder.join("history.csv")).unwrap();
    fs::write(folder.join("history.csv"), format!("{}\n", history.lines().next().unwrap())).unwrap();
    fs::write(folder.join("measurements.jsonl"), "").unwrap();
    resumes(0, "3");
    let other = Scratch::new();
    other.chain(0, &on(&explicit(CLOVER, &found), 0));
    same(&own, &other);
}

/// "auto" is what the chain has had so far, chosen or named.
#[test]
fn auto_and_its_choice_may_replace_each_other() {
    for light in [choice("bicgstab", "double-half"), choice("gcr-dd", "double-single-half")] {
        let named = keys(CLOVER, [&named(&light), "method = \"cg\"\nprecision = \"double\""]);
        let auto = keys(CLOVER, ["method = \"auto\"", "method = \"auto\"\nprecision = \"double\""]);
        let (own, other) = (Scratch::new(), Scratch::new());
        for (text, number) in [(&named, "1"), (&auto, "2"), (&named, "3")] {
            let ended = own.chain(0, &on(&with(text, "trajectories", number), 0));
            assert!(!has_trials(&ended.out), "{}", ended.out);
        }
        other.chain(0, &on(&named, 0));
        same(&own, &other);
    }
    let scratch = Scratch::new();
    scratch.chain(0, &on(&with(&keys(CLOVER, AUTO), "trajectories", "1"), 0));
    let found = choices(&scratch);
    let other = if found["light"].method == "cg" { "bicgstab" } else { "cg" };
    let input = scratch.write("run.toml", keys(CLOVER, [&format!("method = \"{other}\""), AUTO[1]]));
    let ended = scratch.run(0, &[&input]);
    ended.succeeded();
    assert!(
        ended.out.contains("other tuning from trajectory 2 on:\n  fermion.light.solver.method: was "),
        "{ended:?}"
    );
}

#[test]
fn without_a_method_that_converges_there_is_no_chain() {
    let scratch = Scratch::new();
    let light = "method = \"auto\"\nmax_iterations = 2";
    let input = scratch.write("run.toml", keys(CLOVER, [light, AUTO[1]]));
    let ended = scratch.run(0, &[&input]);
    ended.failed(2, &["no method of \"auto\" solves the systems of term 'light'"]);
    assert_eq!(ended.out.matches("out: the solver did not converge").count(), 7, "{}", ended.out);
    assert!(names(&scratch.at(FOLDER).join("checkpoint")).is_empty());
}

/// What takes an input without a chain: trials for what walks, the first candidate for measurements, none for states.
#[test]
fn other_commands_take_auto() {
    let scratch = Scratch::new();
    let text = on(&keys(CLOVER, AUTO), 0);
    let input = scratch.write("run.toml", &text);
    let ended = scratch.run(0, &[&input, "--check"]);
    ended.succeeded();
    assert!(
        ended.out.contains("light: the fastest of cg in double-single, cg in double-half, "),
        "{}",
        ended.out
    );
    for command in [
        &["bench", "trajectory", &input, "--trajectories", "1"][..],
        &["tune", &input, "--trajectories", "2"],
    ] {
        let ended = scratch.run(0, command);
        ended.succeeded();
        assert!(has_trials(&ended.err), "{ended:?}");
    }
    scratch.chain(0, &with(&text, "trajectories", "1"));
    let ended = scratch.run(0, &[&input, "--check"]);
    ended.succeeded();
    let told = format!("light: {}, as the chain has chosen", choices(&scratch)["light"]);
    assert!(ended.out.contains(&told), "{}", ended.out);
    let file = scratch.at(FOLDER).join("cfg/cfg_000001.h5").display().to_string();
    let [auto, named] =
        [text.clone(), on(&keys(CLOVER, [&named(&choice("cg", "double-single")), AUTO[1]]), 0)]
            .map(|text| scratch.measure(0, &text, &["--json", &file]));
    auto.succeeded();
    assert_eq!(auto.out, named.out);
    let info = scratch.run(0, &["info", &file]);
    assert!(
        info.out.contains("\nsolvers         {\"heavy\":{\"method\":")
            || info.out.contains("\nsolvers         {\"light\":")
    );
    // A converted configuration has them too.
    scratch.run(0, &["convert", &file, "copy.h5"]).succeeded();
    assert_eq!(choices_in(&scratch.at("copy.h5")), choices(&scratch));
}
