//! What others do to a chain's folder, its environment and its files: altered inputs, symbolic links, torn lines, numbers without
//! sense, ranks that see different things.

use super::{Scratch, contents, names, on, read_chain, with};
use hmc::io::Form;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const PURE: &str = pure!(
    "trajectories = 6\nsave_every = 2\n",
    "[4, 4, 4, 4]",
    "[hmc]\ntau = 0.5\n",
    6,
    "[measure]\nevery = 1\n[measure.loops]\n"
);
const FOLDER: &str = "ensembles/pure";

/// A chain of six trajectories, the last three with other steps.
fn retuned() -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &on(&with(PURE, "trajectories", "3"), 0));
    scratch.chain(0, &on(&with(PURE, "steps", "5"), 0));
    assert!(scratch.at(FOLDER).join("run_000003.toml").exists());
    scratch
}

/// Removes the line of a trajectory from a file.
fn lose(file: &Path, trajectory: u64) {
    let is_it = |line: &&str| {
        line.starts_with(&format!("{trajectory},")) || line.contains(&format!("\"trajectory\":{trajectory},"))
    };
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().filter(is_it).count(), 1);
    fs::write(
        file,
        text.lines().filter(|line| !is_it(line)).map(|line| format!("{line}\n")).collect::<String>(),
    )
    .unwrap();
}

#[test]
fn inputs_of_the_folder_are_those_that_made_its_links() {
    let reference = retuned();
    let whole = contents(&reference.at(FOLDER).join("cfg"));
    let chain = read_chain(&reference.at(FOLDER));
    let text = |name: &str| fs::read_to_string(reference.at(FOLDER).join(name)).unwrap();
    let kept = [text("run.toml"), text("run_000003.toml")];
    type Damage = fn(&Path);
    let damages: [(Damage, &str, u64); 5] = [
        (
            |folder| fs::write(folder.join("run.toml"), "").unwrap(),
            "run.toml: not the input that made trajectory",
            2,
        ),
        (
            |folder| {
                let cut = fs::read_to_string(folder.join("run.toml")).unwrap().replace("every = 1\n", "");
                fs::write(folder.join("run.toml"), cut).unwrap();
            },
            "run.toml: not the input that made trajectory",
            2,
        ),
        (
            |folder| {
                let path = folder.join("run_000003.toml");
                let other = fs::read_to_string(&path).unwrap().replace("steps = 5", "steps = 9");
                fs::write(path, other).unwrap();
            },
            "run_000003.toml: not the input that made trajectory",
            5,
        ),
        (
            |folder| fs::remove_file(folder.join("run.toml")).unwrap(),
            "run.toml: lost, and made trajectory 2",
            1,
        ),
        (
            |folder| fs::remove_file(folder.join("run_000003.toml")).unwrap(),
            "run_000003.toml: lost, and made trajectory",
            5,
        ),
    ];
    for (damage, told, lost) in damages {
        let scratch = retuned();
        let folder = scratch.at(FOLDER);
        damage(&folder);
        lose(&folder.join("history.csv"), lost);
        lose(&folder.join("measurements.jsonl"), lost);
        // Whoever only asks changes nothing.
        let before = contents(&folder);
        let input = scratch.write("run.toml", on(&with(PURE, "steps", "5"), 0));
        let ended = scratch.run(0, &["--check", &input]);
        assert!(ended.code == Some(0) && ended.err.contains(told), "{ended:?}");
        assert!(contents(&folder) == before);
        let ended = scratch.run(0, &[&input]);
        assert!(ended.code == Some(0) && ended.err.contains(told), "{told}: {ended:?}");
        assert_eq!(read_chain(&folder), chain, "{told}");
        assert!(
            contents(&folder.join("cfg")).iter().map(|file| &file.1).eq(whole.iter().map(|file| &file.1))
        );
        for (name, text) in ["run.toml", "run_000003.toml"].iter().zip(&kept) {
            assert_eq!(&fs::read_to_string(folder.join(name)).unwrap(), text, "{told}: {name}");
        }
    }
}

#[test]
fn ranks_read_one_input_or_end_with_words() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", on(PURE, 2));
    scratch.write("other.toml", on(&with(PURE, "steps", "7"), 2));
    fs::create_dir(scratch.at("elsewhere")).unwrap();
    let program = env!("CARGO_BIN_EXE_hmc");
    // The second rank has another file, none, or another command.
    for second in [&["other.toml"][..], &["nowhere.toml"], &["info", "run.toml"]] {
        let ended = scratch.run(1, &[&[&input, ":", "-n", "1", program], second].concat());
        let told = format!("rank 1 is '{}", concat!("hmc ", env!("CARGO_PKG_VERSION")));
        ended.failed(2, &["all ranks have to be started alike", &told, second[second.len() - 1]]);
    }
    // A node where the file is another one, or is not: only that of rank 0 counts.
    fs::write(scratch.at("elsewhere/run.toml"), "no TOML at all").unwrap();
    for _ in 0..2 {
        let ensembles = scratch.at("ensembles");
        let text = format!("{}\n", on(PURE, 2)).replacen(
            "[run]\n",
            &format!("[run]\nensembles = {ensembles:?}\n"),
            1,
        );
        scratch.write("run.toml", text);
        let ended = scratch.run(1, &[&input, ":", "-n", "1", "-wdir", "elsewhere", program, "run.toml"]);
        ended.succeeded();
        fs::remove_dir_all(ensembles).unwrap();
        let _ = fs::remove_file(scratch.at("elsewhere/run.toml"));
    }
    // An input that is wrong, or is not there, has one message.
    scratch.write("wrong.toml", on(&with(PURE, "beta", "\"high\""), 2));
    for (input, told) in [("wrong.toml", "wrong.toml:"), ("nowhere.toml", "nowhere.toml: No such file")] {
        let ended = scratch.run(2, &[input]);
        ended.failed(2, &[told]);
        assert_eq!(ended.err.matches(told).count(), 1, "{ended:?}");
    }
}

/// A file that is another one on the second rank, as on a node with an old copy.
#[test]
fn ranks_read_one_file_or_end_with_words() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(PURE, 0));
    let convert =
        |to: &str| scratch.run(0, &["convert", &format!("{FOLDER}/cfg/cfg_000006.h5"), to]).succeeded();
    fs::create_dir(scratch.at("elsewhere")).unwrap();
    convert("x.nersc");
    convert("x.ildg");
    fs::rename(scratch.at("x.nersc"), scratch.at("x")).unwrap();
    fs::rename(scratch.at("x.ildg"), scratch.at("elsewhere/x")).unwrap();
    let start = with(&with(&on(PURE, 2), "name", "\"from\""), "seed", "9").replacen(
        "[run]\n",
        "[run]\nstart = \"./x\"\n",
        1,
    );
    scratch.write("from.toml", &start);
    let program = env!("CARGO_BIN_EXE_hmc");
    for command in [&["info", "x"][..], &["compare", "x", "x"], &["convert", "x", "y.h5"], &["from.toml"]] {
        let ended =
            scratch.run(1, &[command, &[":", "-n", "1", "-wdir", "elsewhere", program], command].concat());
        assert_ne!(ended.code, Some(0), "{command:?}");
        assert!(
            ended.err.contains("x: ranks 0 and 1 find other files of this name"),
            "{command:?}: {ended:?}"
        );
    }
}

#[test]
fn files_of_another_chain_are_refused() {
    let scratch = Scratch::new();
    let text = on(PURE, 0);
    scratch.chain(0, &with(&with(&text, "name", "\"other\""), "seed", "4"));
    scratch.chain(0, &text);
    let longer = with(&text, "trajectories", "7");
    let whole = contents(&scratch.at(FOLDER));
    let of_other = |file: &str| {
        fs::copy(scratch.at("ensembles/other").join(file), scratch.at(FOLDER).join(file)).unwrap();
    };
    type Damage<'a> = &'a dyn Fn();
    let damages: [(Damage, &str); 4] = [
        (&|| of_other("history.csv"), "history.csv: the plaquette of trajectory 6 is "),
        (&|| of_other("measurements.jsonl"), "measurements.jsonl: the plaquette of trajectory 6 is "),
        (&|| of_other("cfg/cfg_000004.h5"), "are of two chains (run.seed: was 4, is 3)"),
        (
            &|| {
                let cfg = scratch.at(FOLDER).join("cfg");
                fs::copy(cfg.join("cfg_000002.h5"), cfg.join("cfg_000004.h5")).unwrap();
            },
            "cfg_000004.h5: is of trajectory 2",
        ),
    ];
    let input = scratch.write("run.toml", longer);
    for (damage, told) in damages {
        damage();
        scratch.run(0, &[&input]).failed(2, &[told]);
        for (path, bytes) in &whole {
            fs::write(path, bytes).unwrap();
        }
    }
    // Names of columns in another order are no names of this chain: its rows are made again.
    let history = scratch.at(FOLDER).join("history.csv");
    let rows = fs::read_to_string(&history).unwrap();
    let other = rows.replacen("delta_h,accepted,plaquette", "plaquette,accepted,delta_h", 1);
    assert_ne!(rows, other);
    fs::write(&history, other).unwrap();
    let ended = scratch.run(0, &[&input]);
    ended.succeeded();
    assert!(ended.err.contains("line 1: not the names of this run's columns"), "{ended:?}");
    assert!(fs::read_to_string(&history).unwrap().starts_with("trajectory,delta_h,accepted,plaquette"));
}

#[test]
fn symbolic_links_are_not_written_through() {
    let scratch = Scratch::new();
    let victim = scratch.at("victim");
    fs::write(&victim, "precious").unwrap();
    let input = scratch.write("run.toml", on(PURE, 0));
    let folder = scratch.at(FOLDER);
    fs::create_dir_all(&folder).unwrap();
    for name in ["lock", "jobs.jsonl"] {
        symlink(&victim, folder.join(name)).unwrap();
        scratch
            .run(0, &[&input])
            .failed(1, &[name, "it is a symbolic link, which is not followed here; remove it"]);
        fs::remove_file(folder.join(name)).unwrap();
    }
    // Unfinished files of somebody else's.
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir_all(folder.join("cfg")).unwrap();
    for name in
        ["run.toml.tmp", "history.csv.tmp", "cfg/cfg_000002.h5.tmp", "history.csv", "measurements.jsonl"]
    {
        symlink(&victim, folder.join(name)).unwrap();
    }
    symlink(&victim, scratch.at("a.ildg.tmp")).unwrap();
    symlink(&victim, scratch.at("b.toml.tmp")).unwrap();
    let ended = scratch.run(0, &[&input]);
    // Records that are somebody else's file are no records of this chain.
    if ended.code == Some(2) {
        fs::remove_file(folder.join("history.csv")).unwrap();
        fs::remove_file(folder.join("measurements.jsonl")).unwrap();
        scratch.run(0, &[&input]).succeeded();
    }
    let cfg = format!("{FOLDER}/cfg/cfg_000002.h5");
    scratch.run(0, &["convert", &cfg, "a.ildg"]).succeeded();
    scratch.run(0, &["init", "quickstart", "--write", "b.toml"]).succeeded();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let is_link = |name: &str| fs::symlink_metadata(scratch.at(name)).is_ok_and(|found| found.is_symlink());
    assert!(!["a.ildg", "b.toml", &cfg].iter().any(|name| is_link(name)));
}

#[test]
fn links_to_nothing_and_files_without_end_are_named() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", on(PURE, 0));
    symlink("nowhere", scratch.at("ensembles")).unwrap();
    scratch
        .run(0, &[&input])
        .failed(1, &["cannot make the folder: it is a symbolic link to what is not there"]);
    fs::remove_file(scratch.at("ensembles")).unwrap();
    scratch.run(0, &[&input]).succeeded();
    for name in ["history.csv", "measurements.jsonl", "jobs.jsonl", "run.toml"] {
        let path = scratch.at(FOLDER).join(name);
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        for command in [&["status", FOLDER][..], &["report", FOLDER], &[&input]] {
            let ended = scratch.run(0, command);
            assert!(ended.code.is_some_and(|code| code <= 2), "{name} {command:?}: {ended:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    scratch.run(0, &[&input]).succeeded();
}

#[test]
fn torn_lines_of_jobs_stay_by_themselves() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(&with(PURE, "trajectories", "2"), 0));
    let path = scratch.at(FOLDER).join("jobs.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, &whole[..60]).unwrap();
    let ended = scratch.chain(0, &on(&with(PURE, "trajectories", "4"), 0));
    assert!(ended.err.contains("jobs.jsonl: a line is no job's, and is taken out"), "{ended:?}");
    assert_eq!(fs::read_to_string(scratch.at(FOLDER).join("jobs.jsonl.damaged")).unwrap(), whole[..60]);
    fs::write(&path, b"\x89HDF\r\n\x1a\n\0\0\xff\xfe").unwrap();
    let ended = scratch.chain(0, &on(PURE, 0));
    assert!(ended.err.contains("jobs.jsonl: ") && ended.err.contains("taken out"), "{ended:?}");
    let status = scratch.run(0, &["status", FOLDER]);
    assert!(status.out.contains("last job since "), "{status:?}");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
}

/// The row of a trajectory without its checksum.
fn lines_of(text: &str, trajectory: usize) -> String {
    text.lines().nth(trajectory).and_then(|line| line.rsplit_once(',')).expect("a row").0.to_owned()
}

#[test]
fn numbers_without_sense_end_nothing() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(PURE, 0));
    let input = scratch.write("run.toml", on(&with(PURE, "trajectories", "8"), 0));
    // Times that no row can have, under the right checksum; and a row that is lost.
    let path = scratch.at(FOLDER).join("history.csv");
    let text = fs::read_to_string(&path).unwrap();
    let alter = |line: &str, value: &str| {
        let mut fields: Vec<&str> = line.rsplit_once(',').unwrap().0.split(',').collect();
        fields[5] = value;
        Form::Csv.seal(&fields.join(","))
    };
    let lines = text.lines().enumerate().filter(|(n, _)| *n != 3);
    let altered = lines.map(|(n, line)| match n {
        5 => alter(line, "1e999") + "\n",
        6 => alter(line, "NaN") + "\n",
        _ => format!("{line}\n"),
    });
    let beyond = Form::Csv.seal(&lines_of(&text, 6).replacen("6,", "18446744073709551615,", 1));
    fs::write(&path, altered.collect::<String>() + &beyond + "\n").unwrap();
    let ended = scratch.run(0, &[&input]);
    assert!(ended.code == Some(0) && ended.err.contains("lacks the row of trajectory 3"), "{ended:?}");
    assert!(ended.err.contains("line 7: altered, or not written by this program"), "{ended:?}");
    // The end of another job, and of none.
    for (end, told) in [
        ("1000000000", "this is past, and so of another job"),
        ("9999999999999999999", "no time in seconds since 1970"),
        ("18446744073709551615", "no time in seconds since 1970"),
        ("soon", "no time in seconds since 1970"),
    ] {
        fs::remove_dir_all(scratch.at("ensembles")).unwrap();
        let ended = scratch.start_with(0, &[&input], &[("SLURM_JOB_END_TIME", end)]).wait();
        assert!(ended.err.contains(told) && ended.out.contains("done: 8 trajectories"), "{ended:?}");
    }
}

#[test]
fn a_terminal_sees_no_escape_sequences_of_others() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", "[\"\\u001b[31mred\"]\n");
    let mut said = vec![scratch.run(0, &[&input])];
    scratch.chain(0, &on(PURE, 0));
    let folder = scratch.at(FOLDER);
    let job = "{\"host\":\"\\u001b]0;title\\u0007\",\"since\":\"\\u001b[2J\",\"after\":6}\n";
    fs::write(folder.join("jobs.jsonl"), job).unwrap();
    said.push(scratch.run(0, &["status", FOLDER]));
    let cfg = format!("{FOLDER}/cfg/cfg_000002.h5");
    scratch.run(0, &["convert", &cfg, "a.nersc"]).succeeded();
    let mut bytes = fs::read(scratch.at("a.nersc")).unwrap();
    let place = bytes.windows(7).position(|part| part == b"CREATOR").expect("a NERSC file says who wrote it");
    let value = bytes[place..].iter().position(|byte| *byte == b'=').unwrap() + place + 2;
    bytes[value..value + 3].copy_from_slice(b"\x1b[3");
    fs::write(scratch.at("b.nersc"), bytes).unwrap();
    said.push(scratch.run(0, &["info", "b.nersc"]));
    for ended in said {
        assert!(!ended.out.contains('\x1b') && !ended.err.contains('\x1b'), "{ended:?}");
        assert!(format!("{}{}", ended.out, ended.err).contains("\\u{1b}"), "{ended:?}");
    }
}

#[test]
fn thermalisation_that_runs_away_is_warned_of() {
    let scratch = Scratch::new();
    let text = with(&with(PURE, "steps", "1"), "tau", "1.0");
    let text = with(&text, "extents", "[8, 8, 8, 8]").replace("seed = 3", "seed = 3\nthermalisation = 6");
    let input = scratch.write("run.toml", on(&text, 0));
    let ended = scratch.run(0, &[&input]);
    assert!(
        ended.err.contains("trajectory 5: the last 5 in a row of thermalisation have |dH| above 50"),
        "{ended:?}"
    );
    assert_eq!(names(&scratch.at(FOLDER).join("cfg")).len(), 3);
    // A force that is no number ends the run.
    let away = with(&with(&text, "name", "\"away\""), "seed", "4");
    let input = scratch.write("away.toml", on(&with(&away, "tau", "1e200"), 0));
    let told = "is not finite: molecular dynamics has run away; try more steps or a smaller tau";
    scratch.run(0, &[&input]).failed(1, &[told]);
}
