//! The command line: exit codes, messages, JSON, and that no mistake of a user ends in a hang, a fault
//! or a spoilt chain.
//!
//! Exit codes: 0 done, 2 wrong input or a run that is refused, 1 anything else.

use crate::program::{
    self, Scratch, chain_contents, contents, names, objects, on, parallel, quickstart, read_chain, with,
};
use hmc::device::lane_counts;
use serde_json::Value;
use std::fs;

/// Two configurations of gauge fields alone, in `ensembles/pure/cfg`: made in no time.
const PURE: &str = pure!("trajectories = 2\nthermalisation = 2\n", "[4, 4, 4, 8]", "", 4, "");

const FIRST: &str = "ensembles/pure/cfg/cfg_000001.h5";
const SECOND: &str = "ensembles/pure/cfg/cfg_000002.h5";

const MEASURE: &str = r#"
[fermion.light]
action = "wilson-clover"
kappa = 0.11
c_sw = 1.0
[measure.flow]
step = 0.05
t_max = 0.2
every = 2
[measure.correlator.pion]
fermion = "light"
[measure.correlator.shifted]
fermion = "light"
source = [1, 2, 3, 5]
"#;

/// One rank without mpirun, one with, two.
const STARTS: [usize; 3] = [0, 1, 2];

fn pure() -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &format!("{PURE}{}", parallel([1; 4], 0, 1)));
    scratch
}

/// The quickstart on a lattice that takes little time.
fn small(trajectories: u64) -> String {
    let text = with(&quickstart(), "extents", "[4, 4, 4, 4]");
    let text = with(&with(&text, "thermalisation", "1"), "t_max", "0.1");
    with(&text, "trajectories", &trajectories.to_string())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_command_line_itself() {
    let scratch = Scratch::new();
    for wrong in [&[][..], &["--nonsense"], &["info"], &["measure", "a.h5"]] {
        scratch.run(0, wrong).failed(2, &["Usage: hmc"]);
    }
    scratch.run(0, &["bench", "8x8"]).failed(2, &["extents such as 16x16x16x16, found '8x8'"]);
    for right in ["--help", "--version"] {
        let ended = scratch.run(0, &[right]);
        assert_eq!((ended.code, ended.out.contains("hmc")), (Some(0), true), "{ended:?}");
    }
}

/// A first word that is neither a command nor a file: the nearest command, or what does it here.
#[test]
fn misspelt_commands_are_told() {
    let scratch = Scratch::new();
    for (arguments, told) in [
        (&["stauts", "folder"][..], "there is no command or file 'stauts'; did you mean 'status'?"),
        (&["measrue", "--input", "a"], "did you mean 'measure'?"),
        (&["check", "run.toml"], "say hmc --check RUN.toml"),
        (&["version"], "say hmc --version"),
        (&["xyzzy"], "hmc --help lists the commands"),
    ] {
        scratch.run(0, arguments).failed(2, &[told]);
    }
    scratch.run(0, &["./stauts"]).failed(2, &["./stauts: No such file"]);
    let shells = [("bash", "complete -F"), ("zsh", "#compdef hmc"), ("fish", "complete -c hmc")];
    for (shell, part) in shells {
        let ended = scratch.run(0, &["completions", shell]);
        assert!(ended.code == Some(0) && ended.out.contains(part), "{ended:?}");
    }
    let ended = scratch.run(0, &["man"]);
    assert!(ended.code == Some(0) && ended.out.contains(".TH hmc"), "{ended:?}");
    let help = scratch.run(0, &["--help"]).out;
    assert!(help.contains("Exit codes: 0 done") && help.contains("SLURM_JOB_END_TIME"), "{help}");
}

/// More threads than cores take far longer than one: that is told before the run begins.
#[test]
fn more_threads_than_cores_are_told() {
    let scratch = Scratch::new();
    let cores = std::thread::available_parallelism().unwrap().get();
    let one = with(&with(PURE, "trajectories", "1"), "thermalisation", "1");
    let ended = scratch.chain(0, &format!("{one}{}", parallel([1; 4], 0, cores + 3)));
    let told = format!("{} threads on each of 1 ranks, but only {cores} cores", cores + 3);
    assert!(ended.err.contains(&told), "{ended:?}");
    let input = scratch.write("run.toml", format!("{one}{}", parallel([1; 4], 0, 3)));
    let ended = scratch.run(0, &["--check", &input]);
    assert!(ended.out.contains("3 threads"), "{ended:?}");
}

/// A reader that has enough is no error, and stops no run; a product that cannot be written is one.
#[test]
fn words_that_nobody_takes() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", on(PURE, 0));
    let to = |out: std::process::Stdio, arguments: &[&str]| {
        let mut command = program::command(env!("CARGO_BIN_EXE_hmc"));
        let ended = command.args(arguments).current_dir(scratch.at("")).stdout(out).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    let closed = || std::io::pipe().unwrap().1.into();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into();
    for arguments in [&["--check", &input][..], &[&input]] {
        assert_eq!(to(closed(), arguments), (Some(0), String::new()), "{arguments:?}");
    }
    for arguments in [&["--check", &input][..], &["info", FIRST], &["compare", FIRST, FIRST]] {
        assert_eq!(to(closed(), arguments), (Some(0), String::new()), "{arguments:?}");
        let told = "error: standard output: No space left on device (os error 28)\n";
        assert_eq!(to(full(), arguments), (Some(1), told.into()), "{arguments:?}");
    }
}

#[test]
fn mistakes_in_an_input_are_told_at_once_and_once() {
    let scratch = Scratch::new();
    let text =
        PURE.replace("beta = 5.7", "betta = 5.7").replace("steps = 4", "steps = 0").replace("[4, 4", "[4, 5");
    let input = scratch.write("bad.toml", format!("{text}colour = 3\n"));
    let told = [
        "bad.toml:7:15: extents: expected an even extent, found 5",
        "bad.toml:10:1: unknown key 'betta' in [gauge]; did you mean 'beta'?",
        "bad.toml:13:9: steps: expected an integer from 1 to 1000000, found the integer 0",
        "bad.toml:15:1: unknown key 'colour' in [hmc.level]",
    ];
    for ranks in STARTS {
        for arguments in [&[&input[..]][..], &["run", &input], &["--check", &input]] {
            let ended = scratch.run(ranks, arguments);
            ended.failed(2, &told);
            let lines = ended.err.lines().filter(|line| line.contains("bad.toml:")).count();
            assert_eq!(lines, told.len(), "{ranks} ranks: {ended:?}");
        }
    }
    for ranks in STARTS {
        scratch.run(ranks, &["missing.toml"]).failed(2, &["error: missing.toml: No such file"]);
        let broken = scratch.write("broken.toml", "[run\nname = 3 4\n");
        scratch.run(ranks, &[&broken]).failed(2, &["broken.toml:1:5: not valid TOML"]);
    }
    // A grid that is right, for other ranks.
    let input = scratch.write("grid.toml", on(PURE, 2));
    scratch.run(0, &[&input]).failed(2, &["grid.toml:18:8: grid: the grid 1x1x1x2 holds 2 ranks, but 1 run"]);
    // The lattice of [lattice], too small for three ranks in any direction.
    let input = scratch.write("three.toml", PURE);
    scratch.run(3, &[&input]).failed(2, &["three.toml:7:", ": extents: "]);
    assert!(!scratch.at("ensembles").exists());
}

#[test]
fn check_prints_the_plan_and_writes_nothing() {
    let scratch = Scratch::new();
    for ranks in [0, 2] {
        let input = scratch.write("run.toml", on(&quickstart(), ranks));
        let before = names(&scratch.at(""));
        let ended = scratch.run(ranks, &["--check", &input]);
        ended.succeeded();
        let local = if ranks == 0 { "8x4x4x8" } else { "8x4x4x4" };
        for part in [
            "lattice        8x4x4x8",
            &format!("ranks          {} as 1x1x1x{0}", ranks.max(1)),
            &format!("local lattice  {local}"),
            "trajectories   20 of length 1, 5 of them thermalisation",
            "6 steps: light",
            "1 step: gauge",
            "folder         ensembles/quickstart",
            "configurations 20 of",
            "checkpoints    2 of",
            "records        ",
            "memory         per rank on a CPU ",
            "device         CPU, 1 thread, ",
            &format!(" for {} rank", ranks.max(1)),
            "nothing prevents the start\n",
        ] {
            assert_eq!(ended.out.matches(part).count(), 1, "'{part}' in {}", ended.out);
        }
        assert!(!ended.out.contains('%'), "{ended:?}");
        let ended = scratch.run(ranks, &["--check", "--memory", &input]);
        ended.succeeded();
        for label in ["links", "momenta and force", "light", "measurement"] {
            assert_eq!(ended.out.matches(&format!("%  {label}\n")).count(), 1, "'{label}' in {}", ended.out);
        }
        assert_eq!(ended.out.contains("%  halos\n"), ranks == 2, "{ended:?}");
        assert_eq!(names(&scratch.at("")), before);
    }
}

#[test]
fn other_physics_is_refused_on_resume() {
    let scratch = pure();
    let folder = scratch.at("ensembles/pure");
    let before = contents(&folder);
    let changes = [
        ("beta", "5.8", "gauge.beta: was 5.7, is 5.8"),
        ("seed", "4", "run.seed: was 3, is 4"),
        ("action", "\"iwasaki\"", "gauge.action: was \"wilson\", is \"iwasaki\""),
    ];
    for (key, value, told) in changes {
        for ranks in [0, 2] {
            let text = with(&with(PURE, "trajectories", "3"), key, value);
            let input = scratch.write("other.toml", on(&text, ranks));
            let ended = scratch.run(ranks, &[&input]);
            ended.failed(2, &["ensembles/pure", "other physics", told]);
            assert_eq!(ended.err.matches(": was ").count(), 1, "nothing else is named, and once: {ended:?}");
            assert!(contents(&folder) == before, "files changed");
        }
    }
    // What may change, does: another machine, a longer chain, other measurements.
    let text = with(PURE, "trajectories", "3") + "[measure.loops]\n";
    let ended = scratch.chain(2, &on(&text, 2));
    assert!(ended.out.contains("resumes after 2 of 3"), "{ended:?}");
}

#[test]
fn info_tells_all_fields() {
    let scratch = pure();
    let info = scratch.info(&scratch.at(SECOND));
    let fields: Vec<&String> = info.as_object().unwrap().keys().collect();
    let expected = [
        "file",
        "format",
        "extents",
        "time_boundary",
        "trajectory",
        "plaquette",
        "links_checksum",
        "program",
        "verified",
        "logical_name",
        "notes",
    ];
    assert_eq!(fields, expected);
    assert_eq!(info["verified"], "checksum");
    assert_eq!(info["format"], "HDF5");
    assert_eq!(info["extents"], serde_json::json!([4, 4, 4, 8]));
    assert_eq!(info["trajectory"], 2);
    assert_eq!(info["program"], concat!("hmc ", env!("CARGO_PKG_VERSION")));
    assert!(matches!(&info["links_checksum"], Value::String(text) if text.len() == 16));
    // The same sum as in the history, and so the same text.
    let rows = read_chain(&scratch.at("ensembles/pure")).history;
    assert_eq!(rows[1].split(',').nth(3), Some(&*format!("{:?}", number(&info["plaquette"]))));
    let ended = scratch.run(0, &["info", SECOND]);
    assert_eq!(ended.code, Some(0));
    for part in [
        "HDF5 of 4x4x4x8",
        "trajectory      2",
        "verified by     checksum",
        info["links_checksum"].as_str().unwrap(),
        "beta = 5.7",
    ] {
        assert!(ended.out.contains(part), "no '{part}' in {}", ended.out);
    }
}

#[test]
fn formats_of_double_precision_keep_every_bit() {
    let scratch = pure();
    let checksum = scratch.checksum(&scratch.at(SECOND));
    let convert = |from: &str, to: &str| {
        let ended = scratch.run(0, &["convert", from, to]);
        assert_eq!(ended.code, Some(0), "{from} to {to}: {ended:?}");
    };
    for (ending, format) in [("nersc", "NERSC"), ("openqcd", "openQCD"), ("ildg", "ILDG"), ("h5", "HDF5")] {
        let (there, back) = (format!("there.{ending}"), format!("back-{ending}.h5"));
        convert(SECOND, &there);
        convert(&there, &back);
        let info = scratch.info(&scratch.at(&there));
        assert_eq!(
            (&info["format"], &info["links_checksum"]),
            (&Value::from(format), &Value::from(&*checksum))
        );
        assert_eq!(scratch.checksum(&scratch.at(&back)), checksum, "{ending}");
        let ended = scratch.run(0, &["compare", SECOND, &back]);
        assert_eq!((ended.code, ended.out.trim()), (Some(0), "equal to the bit"));
    }
    // MILC keeps single precision: other bits, the same plaquette to it. Rounding a link's elements
    // changes a plaquette by a few 2^-24 = 6e-8 and the mean of 3072 by less.
    convert(SECOND, "there.milc");
    let (info, original) = (scratch.info(&scratch.at("there.milc")), scratch.info(&scratch.at(SECOND)));
    assert_ne!(info["links_checksum"], original["links_checksum"]);
    assert!((number(&info["plaquette"]) - number(&original["plaquette"])).abs() < 6e-8, "{info} {original}");
    scratch.run(0, &["convert", SECOND, "there.png"]).failed(2, &["'.png' is no format"]);
    scratch.run(0, &["convert", SECOND, "nowhere/there.h5"]).failed(1, &["nowhere"]);
}

#[test]
fn compare_tells_the_first_difference() {
    let scratch = pure();
    scratch.run(0, &["compare", FIRST, FIRST]).succeeded();
    let ended = scratch.run(0, &["compare", FIRST, SECOND]);
    ended.failed(1, &["reals differ; the first: site [0, 0, 0, 0], direction x, row 0, column 0, re: "]);
    let other = Scratch::new();
    other.chain(0, &with(PURE, "extents", "[4, 4, 4, 4]"));
    let there = other.at(FIRST).display().to_string();
    scratch.run(0, &["compare", FIRST, &there]).failed(1, &["the lattices differ: 4x4x4x8 and 4x4x4x4"]);
    scratch.run(0, &["compare", FIRST, "missing.h5"]).failed(1, &["missing.h5", "No such file"]);
}

/// Commands on files are one rank's work, however many are started.
#[test]
fn files_under_mpirun() {
    let scratch = pure();
    let alone = scratch.run(0, &["info", "--json", FIRST]);
    let ended = scratch.run(2, &["info", "--json", FIRST]);
    assert_eq!((ended.code, ended.out), (Some(0), alone.out));
    for name in ["a.nersc", "b.ildg", "c.h5"] {
        let ended = scratch.run(2, &["convert", FIRST, name]);
        ended.succeeded();
        assert_eq!(scratch.run(2, &["compare", FIRST, name]).out.trim(), "equal to the bit");
    }
    let ended = scratch.run(2, &["compare", FIRST, SECOND]);
    ended.failed(1, &["reals differ"]);
    assert_eq!(ended.err.matches("reals differ").count(), 1, "{ended:?}");
    scratch.run(2, &["info", "missing.h5"]).failed(1, &["missing.h5", "No such file"]);
}

#[test]
fn measure_gives_the_same_bits_everywhere() {
    let scratch = pure();
    let measure = |ranks: usize, text: &str| {
        let ended = scratch.measure(ranks, text, &["--json", FIRST, SECOND]);
        ended.succeeded();
        ended
    };
    let reference = measure(0, &format!("{MEASURE}{}", parallel([1; 4], 1, 1)));
    for (ranks, grid, lanes) in
        [(0, [1; 4], 4), (1, [1; 4], 8), (0, [1; 4], 16), (2, [1, 1, 1, 2], 4), (4, [2, 1, 2, 1], 0)]
    {
        if lanes > 0 && !lane_counts().contains(&lanes) {
            println!("skipped: {lanes} lanes are not on this processor");
            continue;
        }
        let found = measure(ranks, &format!("{MEASURE}{}", parallel(grid, lanes, 1)));
        assert_eq!(found.out, reference.out, "{grid:?}, {lanes} lanes");
    }
    let found = objects(&reference.out);
    assert_eq!(found.len(), 2);
    for ((object, file), trajectory) in found.iter().zip([FIRST, SECOND]).zip([1, 2]) {
        assert_eq!((&object["file"], &object["trajectory"]), (&Value::from(file), &Value::from(trajectory)));
        assert_eq!(object["plaquette"], scratch.info(&scratch.at(file))["plaquette"]);
        assert!(number(&object["rectangle"]) < number(&object["plaquette"]));
        let line: Vec<f64> = object["polyakov"].as_array().unwrap().iter().map(number).collect();
        assert!(line.len() == 2 && line.iter().all(|x| x.is_finite()), "{line:?}");
        let flow = object["flow"].as_array().unwrap();
        let keys = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(flow.iter().all(|row| keys(row) == ["t", "e_plaquette", "e_clover", "q"]));
        // Flow times 0, 0.1, 0.2; a sum of steps is right to rounding, 4 steps of at most 2^-53 each.
        assert_eq!(flow.len(), 3);
        assert!(flow.iter().zip([0.0, 0.1, 0.2]).all(|(row, t)| (number(&row["t"]) - t).abs() < 1e-15));
        // The flow is the steepest descent of the action.
        assert!(flow.windows(2).all(|w| number(&w[1]["e_plaquette"]) < number(&w[0]["e_plaquette"])));
        let correlators = object["correlators"].as_array().unwrap();
        let names: Vec<&Value> = correlators.iter().map(|c| &c["name"]).collect();
        assert_eq!(names, ["pion", "shifted"]);
        for correlator in correlators {
            let values: Vec<f64> = correlator["re"].as_array().unwrap().iter().map(number).collect();
            // |S|^2 is positive, and greatest at the source, which `re[0]` is.
            assert_eq!(values.len(), 8);
            assert!(values.iter().all(|c| *c > 0.0 && *c <= values[0]), "{values:?}");
        }
    }
    assert_ne!(found[0]["correlators"], found[1]["correlators"]);
    // Without --json a table.
    let input = scratch.write("measure.toml", MEASURE);
    let table = scratch.run(0, &["measure", "--input", &input, FIRST]).out;
    let plaquette = format!("  {:<16} {:.10}\n", "plaquette", number(&found[0]["plaquette"]));
    assert!(table.starts_with(&format!("{FIRST}\n")) && table.contains(&plaquette), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("  flow ")).count(), 3, "{table}");
}

#[test]
fn measure_tells_what_is_wrong() {
    let scratch = pure();
    let good = scratch.write("good.toml", MEASURE);
    let bad = scratch.write("bad.toml", MEASURE.replace("\"light\"", "\"strange\""));
    let far = scratch.write("far.toml", MEASURE.replace("[1, 2, 3, 5]", "[1, 2, 3, 8]"));
    for ranks in [0, 2] {
        let measure =
            |input: &str, file: &str| scratch.run(ranks, &["measure", "--input", input, "--json", file]);
        measure(&good, "missing.h5").failed(1, &["missing.h5", "No such file"]);
        // The others are measured.
        let ended = scratch.run(ranks, &["measure", "--input", &good, "--json", "missing.h5", FIRST]);
        ended.failed(1, &["missing.h5", "error: 1 of 2 files were not measured"]);
        assert_eq!(objects(&ended.out)[0]["file"], FIRST);
        measure(&bad, FIRST).failed(2, &["bad.toml:11:11: fermion: unknown fermion 'strange'"]);
        measure(&far, FIRST).failed(2, &["[measure.correlator.shifted]", "outside the lattice of 4x4x4x8"]);
    }
}

/// Files that are no configurations, by every command that reads one, and as the start of a chain.
#[test]
fn unreadable_files_are_told_clearly() {
    let scratch = pure();
    let whole = fs::read(scratch.at(SECOND)).unwrap();
    scratch.run(0, &["convert", SECOND, "good.nersc"]).succeeded();
    let nersc = fs::read(scratch.at("good.nersc")).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let files = [
        (scratch.write("cut.h5", &whole[..whole.len() / 2]), "cut.h5"),
        (scratch.write("short.nersc", &nersc[..nersc.len() - 8]), "truncated"),
        (scratch.write("flipped.h5", flipped), "flipped.h5"),
        (scratch.write("text.h5", "nothing"), "no HDF5, ILDG, NERSC, MILC or openQCD configuration"),
        (scratch.write("empty.h5", ""), "empty.h5"),
        ("./missing.h5".to_owned(), "No such file"),
        ("./ensembles".to_owned(), "ensembles"),
    ];
    let measure = scratch.write("measure.toml", "[measure.loops]\n");
    for (file, told) in &files {
        for arguments in [
            &["info", file][..],
            &["info", "--json", file],
            &["compare", SECOND, file],
            &["convert", file, "new.ildg"],
            &["measure", "--input", &measure, file],
        ] {
            let ended = scratch.run(0, arguments);
            ended.failed(1, &["error: ", told]);
            assert!(ended.out.is_empty(), "{ended:?}");
        }
        for ranks in [0, 2] {
            let text = with(&with(PURE, "name", "\"new\""), "seed", &format!("4\nstart = \"./{file}\""));
            let input = scratch.write("new.toml", on(&text, ranks));
            scratch.run(ranks, &[&input]).failed(1, &["error: ", told]);
        }
    }
    assert!(!scratch.at("new.ildg").exists());
    assert!(names(&scratch.at("ensembles/new/cfg")).is_empty());
    assert!(names(&scratch.at("ensembles/new/checkpoint")).is_empty());
}

#[test]
fn a_chain_starts_from_a_file_of_its_lattice() {
    let scratch = pure();
    scratch.run(0, &["convert", SECOND, "good.nersc"]).succeeded();
    let text = with(&with(PURE, "name", "\"new\""), "seed", "3\nstart = \"./good.nersc\"");
    let wrong = with(&text, "extents", "[4, 4, 8, 8]");
    for ranks in [0, 2] {
        let input = scratch.write("new.toml", on(&wrong, ranks));
        let ended = scratch.run(ranks, &[&input]);
        ended.failed(1, &["./good.nersc: holds a lattice of 4x4x4x8, but 4x4x8x8 is asked for"]);
        assert_eq!(ended.err.matches("holds a lattice").count(), 1, "{ended:?}");
    }
    let mut checksums = Vec::new();
    for (name, start, ranks) in [("a", "./good.nersc", 2), ("b", SECOND, 0)] {
        let text = with(PURE, "name", &format!("{name:?}"))
            .replace("seed = 3", &format!("seed = 3\nensembles = \"of-{name}\"\nstart = {start:?}"));
        scratch.chain(ranks, &on(&with(&with(&text, "trajectories", "1"), "thermalisation", "1"), ranks));
        let folder = scratch.at(&format!("of-{name}")).join(name);
        // The links of a file are made special unitary, which theirs are but for rounding: each of the
        // 3072 plaquettes, of four links of nine products, then moves by at most 4 x 9 x 2 x 2^-53.
        let [first, original] =
            [folder.join("checkpoint/ckpt_000000.h5"), scratch.at(SECOND)].map(|f| scratch.info(&f));
        let moved = number(&first["plaquette"]) - number(&original["plaquette"]);
        assert!(moved.abs() < 8e-15, "the plaquette moved by {moved:e}");
        checksums.push(scratch.checksum(&folder.join("cfg/cfg_000001.h5")));
    }
    assert_eq!(checksums[0], checksums[1]);
    assert_ne!(checksums[0], scratch.checksum(&scratch.at(SECOND)), "the chain moves");
}

#[test]
fn folders_that_cannot_be_written() {
    let scratch = Scratch::new();
    // Also root meets these: a folder below a file, and one that the system keeps.
    scratch.write("file", "");
    for folder in ["file/ensembles", "/proc/ensembles"] {
        for ranks in STARTS {
            let text = with(PURE, "seed", &format!("3\nensembles = {folder:?}"));
            let input = scratch.write("run.toml", on(&text, ranks));
            let ended = scratch.run(ranks, &[&input]);
            ended.failed(1, &["error: ", &format!("{folder}/pure: cannot make the folder: ")]);
            assert_eq!(ended.err.matches("error: ").count(), 1, "{ended:?}");
        }
    }
    // A folder in the place of a file that is to be written.
    fs::create_dir_all(scratch.at("ensembles/pure/cfg/cfg_000001.h5")).unwrap();
    for ranks in [0, 2] {
        let input = scratch.write("run.toml", on(PURE, ranks));
        scratch.run(ranks, &[&input]).failed(1, &["error: ", "cfg_000001.h5"]);
    }
}

/// A solve that does not converge ends the job, names its term, and leaves the chain as it was.
#[test]
fn a_solve_that_does_not_converge() {
    let [scratch, other] = [(); 2].map(|()| Scratch::new());
    scratch.chain(0, &on(&small(2), 0));
    let folder = scratch.at("ensembles/quickstart");
    let before = chain_contents(&folder);
    for ranks in [0, 2] {
        let text = on(&small(3), ranks) + "[fermion.light.solver]\nmax_iterations = 3\n";
        let input = scratch.write("few.toml", text);
        let ended = scratch.run(ranks, &[&input]);
        let told = [
            "error: trajectory 3: term 'light': the solver did not converge: residual ",
            "after 3 iterations",
        ];
        ended.failed(1, &told);
        assert_eq!(ended.err.matches("did not converge").count(), 1, "{ended:?}");
        let after = chain_contents(&folder);
        assert!(
            after == before,
            "{:?}",
            after.iter().filter(|file| !before.contains(file)).map(|f| &f.0).collect::<Vec<_>>()
        );
    }
    scratch.chain(2, &on(&small(3), 2));
    other.chain(0, &on(&small(3), 0));
    assert_eq!(read_chain(&folder), read_chain(&other.at("ensembles/quickstart")));
    let last = "ensembles/quickstart/cfg/cfg_000003.h5";
    assert_eq!(scratch.checksum(&scratch.at(last)), other.checksum(&other.at(last)));
}

/// Far beyond the critical kappa, 0.125 for unit links, the operator has eigenvalues of both signs.
#[test]
fn a_kappa_far_beyond_the_critical_one() {
    let scratch = Scratch::new();
    let text = with(&small(2), "kappa", "0.3").replace("seed = 1", "seed = 1\nstart = \"cold\"");
    for ranks in [0, 2] {
        let input =
            scratch.write("run.toml", on(&text, ranks) + "[fermion.light.solver]\nmax_iterations = 40\n");
        let ended = scratch.run(ranks, &[&input]);
        ended.failed(1, &["error: trajectory 1: term 'light': the solver did not converge: residual "]);
        // The second time it resumes, from the start.
        assert_eq!(names(&scratch.at("ensembles/quickstart/checkpoint")), ["ckpt_000000.h5"]);
        assert!(names(&scratch.at("ensembles/quickstart/cfg")).is_empty());
        assert!(read_chain(&scratch.at("ensembles/quickstart")).history.is_empty());
    }
}

#[test]
fn a_second_job_on_a_chain_is_refused() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", on(&with(PURE, "trajectories", "1000000"), 0));
    let mut job = scratch.start(0, &[&input]);
    job.await_words("starts: ");
    for ranks in STARTS {
        let second = scratch.write("second.toml", on(&with(PURE, "trajectories", "1000000"), ranks));
        for arguments in [&[&second[..]][..], &["--check", &second]] {
            let ended = scratch.run(ranks, arguments);
            ended.failed(2, &["ensembles/pure: another job works on this chain: process ", " since 20"]);
            assert_eq!(ended.err.matches("another job").count(), 1, "{ended:?}");
        }
    }
    assert!(job.is_running(), "the first job goes on");
    assert!(job.kill());
    // A kill takes the lock away.
    let done = read_chain(&scratch.at("ensembles/pure")).history.len() as u64;
    let text = with(PURE, "trajectories", &(done + 1).to_string());
    assert!(scratch.chain(0, &on(&text, 0)).out.contains("done: "));
}
