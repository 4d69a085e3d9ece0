//! The folder of an ensemble: never taken over, never silently short of a record, one job at a time.

use crate::program::{self, Scratch, chain_contents, contents, names, on, read_chain, with};
use hmc::io::Form;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Gauge fields alone, measured a little: made in no time.
pub(super) const PURE: &str = pure!(
    "trajectories = 6\n",
    "[4, 4, 4, 4]",
    "",
    6,
    "[measure]\nevery = 2\n[measure.loops]\n[measure.flow]\nstep = 0.1\nt_max = 0.2\n"
);

pub(super) const FOLDER: &str = "ensembles/pure";

pub(super) fn long(trajectories: u64) -> String {
    on(&with(PURE, "trajectories", &trajectories.to_string()), 0)
}

/// A chain of six trajectories.
pub(super) fn pure() -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &on(PURE, 0));
    scratch
}

fn checksums(scratch: &Scratch) -> Vec<String> {
    let folder = scratch.at(FOLDER).join("cfg");
    names(&folder).iter().map(|name| scratch.checksum(&folder.join(name))).collect()
}

/// That the chain is the one that nothing happened to.
pub(super) fn same(scratch: &Scratch, reference: &Scratch) {
    assert_eq!(read_chain(&scratch.at(FOLDER)), read_chain(&reference.at(FOLDER)));
    assert_eq!(checksums(scratch), checksums(reference));
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        let _ = fs::remove_file(path);
        let _ = fs::remove_dir_all(path);
    }
}

/// F1: a chain without checkpoints goes on from its newest configuration.
#[test]
fn a_folder_without_checkpoints_goes_on_from_its_configurations() {
    let reference = Scratch::new();
    reference.chain(0, &long(8));
    for ranks in [0, 2] {
        let scratch = pure();
        let folder = scratch.at(FOLDER);
        remove(&[folder.join("checkpoint")]);
        let before = contents(&folder.join("cfg"));
        // Another chain is refused, and touches nothing; not even what a killed job left unfinished.
        let unfinished = folder.join("cfg/cfg_000007.h5.tmp");
        fs::write(&unfinished, "half a configuration").unwrap();
        let all = chain_contents(&folder);
        for (key, value) in [("beta", "6.0"), ("seed", "99"), ("extents", "[4, 4, 4, 8]")] {
            let input =
                scratch.write("other.toml", on(&with(&with(PURE, "name", "\"pure\""), key, value), ranks));
            let ended = scratch.run(ranks, &[&input]);
            ended.failed(2, &["ensembles/pure holds a chain of other physics", &format!("{key}: was ")]);
            assert!(chain_contents(&folder) == all, "{key}: files changed");
        }
        let ended = scratch.chain(ranks, &on(&with(PURE, "trajectories", "8"), ranks));
        assert!(ended.out.contains("resumes after 6 of 8"), "{ended:?}");
        assert!(!unfinished.exists(), "a job that goes on tidies up");
        let after = contents(&folder.join("cfg"));
        assert!(before.iter().all(|file| after.contains(file)), "a configuration was written anew");
        same(&scratch, &reference);
    }
}

/// F1: with neither checkpoint nor configuration there is nothing to go on from, and nothing is wiped.
#[test]
fn records_without_links_are_not_wiped() {
    let scratch = pure();
    let folder = scratch.at(FOLDER);
    remove(&[folder.join("checkpoint"), folder.join("cfg")]);
    let before = read_chain(&folder);
    for ranks in [0, 2] {
        let input = scratch.write("run.toml", on(PURE, ranks));
        scratch.run(ranks, &[&input]).failed(2, &["neither a checkpoint nor a configuration to go on from"]);
        assert_eq!(read_chain(&folder), before);
        scratch.run(ranks, &["--check", &input]).failed(2, &["neither a checkpoint nor a configuration"]);
    }
    // Nor are files of which no line can be read.
    fs::remove_file(folder.join("measurements.jsonl")).unwrap();
    fs::write(folder.join("history.csv"), "?\n?\n").unwrap();
    let input = scratch.write("run.toml", on(PURE, 0));
    scratch.run(0, &[&input]).failed(2, &["neither a checkpoint nor a configuration to go on from"]);
    assert_eq!(fs::read_to_string(folder.join("history.csv")).unwrap(), "?\n?\n");
}

/// F2: `run.toml` is of the chain that ran; later inputs stand beside it.
#[test]
fn the_input_is_kept_when_the_chain_has_begun() {
    let scratch = Scratch::new();
    let folder = scratch.at(FOLDER);
    let bad = with(PURE, "seed", "3\nstart = \"./none.h5\"");
    let input = scratch.write("bad.toml", on(&bad, 0));
    scratch.run(0, &[&input]).failed(1, &["none.h5"]);
    assert!(!folder.join("run.toml").exists());
    let first = on(PURE, 0);
    // One that somebody left there, of no chain.
    fs::write(folder.join("run.toml"), &bad).unwrap();
    let ended = scratch.chain(0, &first);
    assert!(
        ended.err.contains("run.toml: not of this chain any more; moved aside as *.superseded"),
        "{ended:?}"
    );
    assert_eq!(fs::read_to_string(folder.join("run.toml")).unwrap(), first);
    scratch.chain(0, &long(8));
    assert_eq!(fs::read_to_string(folder.join("run.toml")).unwrap(), first);
    assert_eq!(fs::read_to_string(folder.join("run_000006.toml")).unwrap(), long(8));
    let jobs = fs::read_to_string(folder.join("jobs.jsonl")).unwrap();
    let after: Vec<Value> =
        jobs.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["after"].clone()).collect();
    assert_eq!(after, [0, 6]);
}

/// A chain that died before its first trajectory locks nothing: another physics starts again, without a word of the old input.
#[test]
fn a_chain_without_a_trajectory_can_be_corrected() {
    for ranks in [0, 2] {
        let scratch = Scratch::new();
        let folder = scratch.at(FOLDER);
        let start = |text: &str| {
            let input = scratch.write("run.toml", on(text, ranks));
            let mut job = scratch.start(ranks, &[&input]);
            job.await_words("trajectories to go");
            assert!(
                job.wait_until(|_| folder.join("run.toml").exists() && folder.join("jobs.jsonl").exists())
            );
            job.kill();
            job.wait();
        };
        start(&with(&with(PURE, "steps", "100000"), "beta", "1.3"));
        assert!(folder.join("checkpoint/ckpt_000000.h5").exists());
        let good = on(PURE, ranks);
        let input = scratch.write("run.toml", &good);
        let ended = scratch.run(ranks, &["--check", &input]);
        assert!(ended.out.contains("no trajectory was done there: the chain starts again"), "{ended:?}");
        let ended = scratch.chain(ranks, &good);
        assert!(ended.err.contains("gauge.beta: was 1.3, is 5.7"), "{ended:?}");
        assert!(!ended.err.contains("superseded"), "{ended:?}");
        assert_eq!(fs::read_to_string(folder.join("run.toml")).unwrap(), good);
        let reference = Scratch::new();
        reference.chain(ranks, &good);
        same(&scratch, &reference);
        // A chain with a trajectory is as safe as ever.
        let input = scratch.write("run.toml", on(&with(PURE, "beta", "5.8"), ranks));
        scratch.run(ranks, &[&input]).failed(2, &["holds a chain of other physics", "hmc branch"]);
        // Another tuning alone goes without a warning, too.
        let scratch = Scratch::new();
        let folder = scratch.at(FOLDER);
        let input = scratch.write("slow.toml", on(&with(PURE, "steps", "100000"), ranks));
        let mut job = scratch.start(ranks, &[&input]);
        job.await_words("trajectories to go");
        assert!(job.wait_until(|_| folder.join("jobs.jsonl").exists()));
        job.kill();
        job.wait();
        let ended = scratch.chain(ranks, &good);
        assert!(!ended.err.contains("superseded"), "{ended:?}");
        assert_eq!(fs::read_to_string(folder.join("run.toml")).unwrap(), good);
    }
}

/// F3: rows and lines that are missing, doubled or altered are told and made again, to the same bits.
#[test]
fn damaged_records_are_made_again() {
    let reference = Scratch::new();
    reference.chain(0, &long(7));
    type Damage = fn(Vec<String>) -> Vec<String>;
    let damages: [(&str, &str, Damage, &str); 9] = [
        ("history.csv", "the last two rows gone", |l| l[..5].to_vec(), "lacks the row of trajectory 5, 6"),
        ("history.csv", "a row gone", |l| [&l[..3], &l[4..]].concat(), "lacks the row of trajectory 3"),
        ("history.csv", "a row twice", |l| [&l[..3], &l[2..]].concat(), "line 4: trajectory 2 again"),
        (
            "history.csv",
            "a digit",
            |mut l| {
                l[4] = l[4].replacen("0.", "1.", 1);
                l
            },
            "line 5: altered",
        ),
        (
            "history.csv",
            "another header",
            |mut l| {
                l[0] = l[0].replace("delta_h", "delta_g");
                l
            },
            "line 1: not the names",
        ),
        ("history.csv", "empty", |_| vec![], "lacks the row of trajectory 1, 2, 3, 4, 5 and 1 more"),
        ("measurements.jsonl", "a line gone", |l| l[1..].to_vec(), "lacks the line of trajectory 2"),
        (
            "measurements.jsonl",
            "no JSON",
            |mut l| {
                l[1] = l[1].replace(':', "\u{7}");
                l
            },
            "line 2: altered",
        ),
        (
            "measurements.jsonl",
            "a number",
            |mut l| {
                l[2] = l[2].replacen("0.", "1.", 1);
                l
            },
            "line 3: altered",
        ),
    ];
    for (number, (file, what, damage, told)) in damages.into_iter().enumerate() {
        let scratch = pure();
        let path = scratch.at(FOLDER).join(file);
        let text = fs::read_to_string(&path).unwrap();
        let lines = damage(text.lines().map(str::to_owned).collect());
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let ranks = 2 * (number % 2);
        let ended = scratch.chain(ranks, &on(&with(PURE, "trajectories", "7"), ranks));
        assert!(ended.err.contains(told), "{what}: {ended:?}");
        // What is no record any more is not thrown away.
        let kept = names(&scratch.at(FOLDER)).contains(&format!("{file}.damaged"));
        assert_eq!(kept, ended.err.contains(&format!("{file}: line ")), "{what}: {ended:?}");
        same(&scratch, &reference);
    }
    // Gone altogether, or a link to nowhere; and gaps that are to be left.
    for file in ["history.csv", "measurements.jsonl"] {
        let scratch = pure();
        let path = scratch.at(FOLDER).join(file);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(scratch.chain(0, &long(7)).err.contains(&format!("{file} lacks")));
        same(&scratch, &reference);
        fs::remove_file(&path).unwrap();
        let input = scratch.write("run.toml", long(7));
        let ended = scratch.run(0, &["--gaps", "leave", &input]);
        ended.succeeded();
        assert!(ended.err.contains("left so, as asked for"), "{ended:?}");
        // It is not asked again.
        assert!(!scratch.chain(0, &long(7)).err.contains("lacks"));
    }
}

/// The history of a version without columns for terms goes on with them; its rows stay.
#[test]
fn a_history_without_terms_goes_on_with_them() {
    let reference = Scratch::new();
    reference.chain(0, &long(7));
    let scratch = pure();
    let path = scratch.at(FOLDER).join("history.csv");
    let text = fs::read_to_string(&path).unwrap();
    // Six columns of the trajectory, and after those of 0.2.0 four of its only level.
    let old = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        [&fields[..6], &fields[10..14]].concat().join(",")
    };
    let rows: Vec<String> = text.lines().skip(1).map(old).collect();
    let header = format!("{},crc32\n", old(text.lines().next().unwrap()));
    fs::write(&path, rows.iter().fold(header, |all, row| all + &Form::Csv.seal(row) + "\n")).unwrap();
    let ended = scratch.chain(0, &long(7));
    assert!(
        ended.out.contains("history.csv has new columns, empty in the rows so far: tuning, reversibility, "),
        "{ended:?}"
    );
    same(&scratch, &reference);
    assert!(!names(&scratch.at(FOLDER)).iter().any(|name| name.contains("damaged")));
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].contains("seconds_0,tuning,reversibility,reversibility_dh,verified,dS_of_gauge,"),
        "{}",
        lines[0]
    );
    for (line, row) in lines[1..].iter().zip(&rows) {
        assert!(line.starts_with(&format!("{row},,,,,,")), "{line}");
    }
    let new: Vec<&str> = lines[7].split(',').skip(10).collect();
    assert!(lines.len() == 8 && new[..4] == ["0", "", "", "0"] && !new[4..].contains(&""), "{}", lines[7]);
    // It is told once.
    assert!(!scratch.chain(0, &long(8)).out.contains("new columns"));
}

/// What takes long is not done unasked.
#[test]
fn many_trajectories_are_walked_again_when_asked_only() {
    let scratch = Scratch::new();
    let folder = scratch.at(FOLDER);
    scratch.chain(0, &long(24));
    fs::remove_file(folder.join("history.csv")).unwrap();
    let input = scratch.write("run.toml", long(25));
    scratch.run(0, &[&input]).failed(2, &["takes 24 trajectories", "--gaps repair", "--gaps leave"]);
    assert!(!folder.join("history.csv").exists());
    scratch.run(0, &["--gaps", "repair", &input]).succeeded();
    let reference = Scratch::new();
    reference.chain(0, &long(25));
    same(&scratch, &reference);
    // Neither are rows given up for an old state.
    for name in names(&folder.join("cfg")).iter().filter(|name| *name > &"cfg_000002.h5".to_owned()) {
        fs::remove_file(folder.join("cfg").join(name)).unwrap();
    }
    remove(&[folder.join("checkpoint")]);
    let before = read_chain(&folder);
    scratch.run(0, &[&input]).failed(
        2,
        &["the history has 23 rows, and the measurements 11 lines, after the newest", "--gaps repair"],
    );
    assert_eq!(read_chain(&folder), before);
    scratch.run(0, &["--gaps", "repair", &input]).succeeded();
    same(&scratch, &reference);
}

/// F5: a chain of a version that this program does not know is refused, and recorded where it is not.
#[test]
fn another_version_is_refused_until_it_is_accepted() {
    let scratch = pure();
    let folder = scratch.at(FOLDER);
    let Some(python) = program::python() else { return };
    // The CRC of the attributes is of their texts as the writer formats them: what another version would have written.
    let script = r#"
import sys, zlib, h5py, struct
for name in sys.argv[1:]:
    with h5py.File(name, "r+") as f:
        a = f.attrs
        bits, = struct.unpack("<Q", struct.pack("<d", a["plaquette"]))
        extents = "[" + ", ".join(str(n) for n in a["extents"]) + "]"
        numbers = f"({a['format_version']}, {extents}, Some({a['trajectory']}), Some({bits}), Some({int(a['links_checksum'], 16)}))"
        def debug(s): return "Some(\"" + s.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\")"
        def crc(program):
            state = debug(a["state"]) if "state" in a else "None"
            return zlib.crc32((numbers + f"({debug(program)}, {debug(a['input'])}, {state})").encode())
        assert crc(a["program"]) == a["attributes_crc32"], "the text of the checksum"
        a.modify("program", "hmc 0.0.3")
        a.modify("attributes_crc32", crc("hmc 0.0.3"))
"#;
    let files: Vec<PathBuf> = ["checkpoint", "cfg"]
        .iter()
        .flat_map(|place| names(&folder.join(place)).into_iter().map(move |name| (place, name)))
        .map(|(place, name)| folder.join(place).join(name))
        .collect();
    let output = program::command(python).arg("-c").arg(script).args(&files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let before = contents(&folder.join("cfg"));
    for ranks in [0, 2] {
        let input = scratch.write("run.toml", on(&with(PURE, "trajectories", "7"), ranks));
        let told = ["written by hmc 0.0.3", "does not know hmc 0.0.3", "--accept-version"];
        scratch.run(ranks, &[&input]).failed(2, &told);
        scratch.run(ranks, &["--check", &input]).failed(2, &told);
        assert!(contents(&folder.join("cfg")) == before);
    }
    let input = scratch.write("run.toml", long(7));
    let ended = scratch.run(0, &["--accept-version", &input]);
    ended.succeeded();
    assert!(ended.err.contains("version hmc 0.0.3"), "{ended:?}");
    let jobs = fs::read_to_string(folder.join("jobs.jsonl")).unwrap();
    assert!(jobs.lines().last().unwrap().contains(r#""accepted":["version hmc 0.0.3"]"#), "{jobs}");
}

/// F7, F8: what vanishes under a run is noticed at the next trajectory.
#[test]
fn files_that_vanish_under_a_run_are_noticed() {
    let scratch = Scratch::new();
    let folder = scratch.at(FOLDER);
    let input = scratch.write("run.toml", long(1_000_000));
    let mut job = scratch.start(0, &[&input]);
    job.await_words("3/1000000 ");
    fs::remove_file(folder.join("history.csv")).unwrap();
    fs::remove_file(folder.join("lock")).unwrap();
    assert!(job.wait_until(|_| folder.join("history.csv").exists() && folder.join("lock").exists()));
    // A second job finds the lock taken again.
    scratch.run(0, &[&input]).failed(2, &["another job works on this chain: process "]);
    assert!(job.is_running());
    // Another job took the folder: this one stops before it writes.
    fs::write(folder.join("lock"), "{\"host\":\"elsewhere\",\"pid\":7,\"since\":\"yesterday\"}\n").unwrap();
    let ended = job.wait();
    ended.failed(
        2,
        &[
            "history.csv: was removed under the run; it is written again",
            "lock: was removed under the run; taken again",
            "another job works on this chain: process 7 on elsewhere since yesterday",
        ],
    );
    let rows = read_chain(&folder).history.len() as u64;
    let ended = scratch.chain(0, &long(rows + 2));
    assert!(!ended.err.contains("lacks"), "{ended:?}");
    let reference = Scratch::new();
    reference.chain(0, &long(rows + 2));
    same(&scratch, &reference);
}

/// D4: a file system without locks is told as such, and is no other job.
#[test]
fn a_file_system_without_locks_is_told() {
    let scratch = Scratch::new();
    let source = scratch
        .write("none.c", "#include <errno.h>\nint flock(int f, int o) { errno = ENOLCK; return -1; }\n");
    let library = scratch.at("none.so");
    let built = program::command("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(scratch.at(&source))
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler to stand in for such a file system");
        return;
    }
    let run = |trajectories: u64| {
        let input = scratch.write("run.toml", long(trajectories));
        let output = program::command(env!("CARGO_BIN_EXE_hmc"))
            .arg(&input)
            .env("LD_PRELOAD", &library)
            .current_dir(scratch.at(""))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let lock = scratch.at(FOLDER).join("lock");
    let (code, told) = run(2);
    assert!(code == Some(0) && told.contains("this file system has no locks"), "{told}");
    assert!(told.contains("mount option 'flock'") && !told.contains("another job works"), "{told}");
    assert_eq!(fs::read_to_string(&lock).unwrap(), "", "a job that ends says so");
    // What a job on another node left, or holds.
    let other = "{\"host\":\"elsewhere\",\"pid\":7,\"since\":\"yesterday\",\"batch\":\"4711\"}\n";
    fs::write(&lock, other).unwrap();
    let (code, told) = run(4);
    assert!(
        code == Some(2) && told.contains("names process 7 on elsewhere since yesterday, job 4711"),
        "{told}"
    );
    assert!(
        told.contains("this file system has no locks") && told.contains("lock and start again"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&lock).unwrap(), other);
    assert_eq!(read_chain(&scratch.at(FOLDER)).history.len(), 2);
    // What a process of this node left that is no more.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    fs::write(&lock, other.replace("elsewhere", host.trim()).replace(":7,", ":4294967295,")).unwrap();
    let (code, told) = run(4);
    assert!(code == Some(0) && told.contains("was killed, and its lock is taken over"), "{told}");
    fs::write(&lock, other).unwrap();
    fs::remove_file(&lock).unwrap();
    assert_eq!(run(5).0, Some(0));
    // Two at once.
    let input = scratch.write("run.toml", long(1_000_000));
    let mut job = scratch.start_with(0, &[&input], &[("LD_PRELOAD", library.to_str().unwrap())]);
    job.await_words("6/1000000 ");
    let (code, told) = run(1_000_000);
    assert!(code == Some(2) && told.contains("no locks") && told.contains("names process "), "{told}");
    assert!(job.is_running(), "the first job goes on");
    assert!(job.kill());
}

/// F10: exit codes; F11: limits of the system.
#[test]
fn limits_of_the_system_are_told() {
    let scratch = pure();
    let input = scratch.write("run.toml", on(&with(PURE, "trajectories", "7"), 0));
    let under = |limit: &str| {
        let script = format!("{limit}; exec {} {input}", env!("CARGO_BIN_EXE_hmc"));
        let output =
            program::command("sh").args(["-c", &script]).current_dir(scratch.at("")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let before = contents(&scratch.at(FOLDER).join("cfg"));
    let (code, told) = under("ulimit -f 40");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("error: ") && told.contains("cfg_000007.h5"), "{told}");
    let (code, told) = under("ulimit -v 60000");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("error: "), "{told}");
    assert!(contents(&scratch.at(FOLDER).join("cfg")) == before);
    // It goes on where it was.
    assert!(scratch.chain(0, &long(7)).out.contains("resumes after"));
}

/// A chain that does not move is told, with what to change; every line has the time left.
#[test]
fn the_log_speaks_to_a_person() {
    let scratch = Scratch::new();
    let ended = scratch.chain(
        2,
        &on(&with(PURE, "trajectories", "12").replace("seed = 3", "seed = 3\nthermalisation = 2"), 2),
    );
    assert_eq!(ended.out.lines().filter(|line| line.contains("/12 therm ")).count(), 2, "{ended:?}");
    assert_eq!(ended.out.lines().filter(|line| line.ends_with(" left")).count(), 11, "{ended:?}");
    assert!(ended.out.lines().all(|line| line.len() <= 130), "{ended:?}");
    assert!(ended.out.contains("after thermalisation: acceptance "), "{ended:?}");
    let rough = with(&with(&with(PURE, "steps", "1"), "trajectories", "12"), "seed", "4\nstart = \"cold\"");
    let rough = with(&rough, "name", "\"rough\"").replace("[[hmc.level]]", "[hmc]\ntau = 3.0\n[[hmc.level]]");
    let ended = scratch.chain(0, &on(&rough, 0));
    assert!(ended.err.contains("the last 10 were rejected; try more 'steps'"), "{ended:?}");
    assert!(ended.err.contains("the integration goes astray"), "{ended:?}");
    let input = scratch.write("run.toml", with(&with(&long(2), "name", "\"verbose\""), "seed", "5"));
    let verbose = scratch.run(0, &["--verbose", &input]);
    assert!(verbose.out.contains("  level 0: |F| "), "{verbose:?}");
}
