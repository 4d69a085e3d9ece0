//! Commands on files: what is doubted, what is not known, and what is not overwritten.

use crate::files::strangers::repack;
use crate::program::{self, Ended, Scratch, parallel, with};
use std::fs;
use std::process::Stdio;

const PURE: &str = pure!("trajectories = 1\nthermalisation = 1\n", "[4, 4, 4, 4]", "", 2, "");

const FIRST: &str = "ensembles/pure/cfg/cfg_000001.h5";

fn pure() -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &format!("{PURE}{}", parallel([1; 4], 0, 1)));
    scratch
}

#[test]
fn convert_overwrites_only_where_that_is_asked_for() {
    let scratch = pure();
    let checkpoint = "ensembles/pure/checkpoint/ckpt_000001.h5";
    let before = fs::read(scratch.at(checkpoint)).unwrap();
    scratch.run(0, &["convert", FIRST, "a.milc"]).succeeded();
    for ranks in [0, 2] {
        for there in [checkpoint, FIRST, "a.milc"] {
            let told = format!("error: {there}: exists already; --force overwrites it");
            let ended = scratch.run(ranks, &["convert", FIRST, there]);
            ended.failed(2, &[&told]);
            assert_eq!(ended.err.matches("exists already").count(), 1, "{ended:?}");
        }
    }
    assert!(fs::read(scratch.at(checkpoint)).unwrap() == before);
    scratch.run(0, &["convert", "--force", FIRST, "a.milc"]).succeeded();
    // A link to nothing is somebody's, too.
    std::os::unix::fs::symlink("nowhere", scratch.at("b.nersc")).unwrap();
    scratch.run(0, &["convert", FIRST, "b.nersc"]).failed(2, &["b.nersc: exists already"]);
}

/// All ranks write, each its box: the files of every format are those of one rank, to the byte.
#[test]
fn files_of_many_ranks_are_those_of_one() {
    let scratch = Scratch::new();
    // In four ranks, x and t are cut; in two and in three, t.
    let text = with(PURE, "extents", "[8, 4, 4, 6]");
    scratch.chain(0, &format!("{text}{}", parallel([1; 4], 0, 1)));
    for (ending, ranks) in [("nersc", 2), ("ildg", 3), ("milc", 4), ("openqcd", 4), ("h5", 3)] {
        let [one, many] = ["one", "many"].map(|name| format!("{name}/a.{ending}"));
        for (ranks, file) in [(0, &one), (ranks, &many)] {
            fs::create_dir_all(scratch.at(file).parent().unwrap()).unwrap();
            scratch.run(ranks, &["convert", FIRST, file]).succeeded();
        }
        assert!(fs::read(scratch.at(&one)).unwrap() == fs::read(scratch.at(&many)).unwrap(), "{many}");
        let [alone, all] = [0, ranks].map(|ranks| scratch.run(ranks, &["info", &many]).out);
        assert_eq!(alone, all);
        // Back from a foreign file.
        let back = format!("many/{ending}.h5");
        scratch.run(ranks, &["convert", &many, &back]).succeeded();
        let [alone, all] = [0, ranks].map(|ranks| scratch.run(ranks, &["compare", FIRST, &back]));
        // `mpirun` adds its own words to an error, before or behind it.
        let error =
            |ended: &Ended| ended.err.lines().find(|line| line.starts_with("error")).map(String::from);
        assert_eq!((alone.code, &alone.out, error(&alone)), (all.code, &all.out, error(&all)));
        assert_eq!(all.code, Some(i32::from(ending == "milc")), "{all:?}");
    }
}

fn warns(ended: &Ended, of: &str, times: usize) {
    ended.succeeded();
    assert_eq!(ended.err.matches(&format!("warning: {of}: has no checksum; ")).count(), times, "{ended:?}");
    assert_eq!(ended.err.matches("has no checksum").count(), times, "{ended:?}");
}

#[test]
fn a_file_without_a_checksum_is_told_by_all_that_read_one() {
    let scratch = pure();
    warns(&scratch.run(0, &["convert", FIRST, "a.openqcd"]), "a.openqcd", 0);
    warns(&scratch.run(0, &["convert", FIRST, "a.ildg"]), "a.ildg", 0);
    let whole = fs::read(scratch.at("a.ildg")).unwrap();
    let record = b"scidac-checksum";
    let end = whole.windows(record.len()).position(|window| window == record).unwrap() - 16;
    scratch.write("bare.ildg", &whole[..end]);
    let measure = scratch.write("measure.toml", "[measure.loops]\n");
    for (file, verified) in [("a.openqcd", "plaquette"), ("bare.ildg", "plaquette")] {
        assert_eq!(scratch.info(&scratch.at(file))["verified"], verified);
        let ended = scratch.run(0, &["info", file]);
        warns(&ended, file, 1);
        assert!(ended.out.contains(&format!("verified by     {verified}\n")), "{ended:?}");
        // Cut off with the checksum: the flag of the message's end. Told once, with the file.
        let flags = format!("warning: {file}: LIME records at the end of the file without the flag");
        assert_eq!(ended.err.matches(&flags).count(), usize::from(file == "bare.ildg"), "{ended:?}");
        warns(&scratch.run(0, &["convert", "--force", file, "new.h5"]), file, 1);
        warns(&scratch.run(0, &["compare", FIRST, file]), file, 1);
        for ranks in [0, 2] {
            warns(&scratch.run(ranks, &["measure", "--input", &measure, file]), file, 1);
            let text = with(PURE, "name", &format!("\"from-{ranks}-{file}\""));
            let seed = 4 + ranks + 10 * usize::from(file == "bare.ildg");
            let text = text.replace("seed = 3", &format!("seed = {seed}\nstart = \"./{file}\""));
            let grid = parallel([1, 1, 1, ranks.max(1)], 0, 1);
            warns(&scratch.chain(ranks, &format!("{text}{grid}")), &format!("./{file}"), 1);
        }
    }
    warns(&scratch.run(0, &["info", "a.ildg"]), "a.ildg", 0);
}

#[test]
fn a_trajectory_that_no_file_says_stays_unknown() {
    let scratch = pure();
    scratch.run(0, &["convert", FIRST, "a.milc"]).succeeded();
    for (from, to) in [("a.milc", "b.h5"), ("b.h5", "c.nersc"), ("c.nersc", "d.h5")] {
        scratch.run(0, &["convert", from, to]).succeeded();
        assert!(scratch.info(&scratch.at(to))["trajectory"].is_null(), "{to}");
        assert!(!scratch.run(0, &["info", to]).out.contains("trajectory "), "{to}");
    }
    for to in ["e.h5", "e.nersc"] {
        scratch.run(0, &["convert", FIRST, to]).succeeded();
        assert_eq!(scratch.info(&scratch.at(to))["trajectory"], 1, "{to}");
    }
}

#[test]
fn hdf5_files_of_other_kinds_are_told() {
    let scratch = pure();
    let history = "ensembles/pure/history.h5";
    let told = format!("error: {history}: an HDF5 file, but no configuration: there is no /gauge/U\n");
    for arguments in [&["info", history][..], &["compare", FIRST, history], &["convert", history, "a.milc"]] {
        let ended = scratch.run(0, arguments);
        ended.failed(1, &[]);
        assert_eq!(ended.err, told);
    }
    let ended = scratch.run(0, &["replay", "nothere"]);
    ended.failed(1, &["error: nothere: cannot open: No such file or directory"]);
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
}

#[test]
fn logical_names_are_those_of_ildg() {
    let scratch = pure();
    scratch.run(0, &["convert", FIRST, "a.ildg"]).succeeded();
    assert_eq!(scratch.info(&scratch.at("a.ildg"))["logical_name"], "lfn://hmc/a.ildg");
    let name = "lfn://LDG/hmc/pure/cfg_000001.ildg";
    for ranks in [0, 2] {
        scratch.run(ranks, &["convert", "--force", "--lfn", name, FIRST, "b.ildg"]).succeeded();
        let info = scratch.info(&scratch.at("b.ildg"));
        assert_eq!((&info["logical_name"], &info["trajectory"]), (&name.into(), &1.into()));
        assert_eq!(info["notes"], serde_json::json!([]));
    }
    assert!(scratch.run(0, &["info", "b.ildg"]).out.contains(&format!("logical name    {name}\n")));
    assert!(scratch.info(&scratch.at(FIRST))["logical_name"].is_null());
    for (name, to, told) in [
        (name, "c.nersc", "--lfn: only .ildg files have a logical name, not NERSC files"),
        ("LDG/hmc", "c.ildg", "--lfn: expected lfn://GRID/PATH without spaces, found 'LDG/hmc'"),
        ("lfn://LDG/a b", "c.ildg", "--lfn: expected lfn://GRID/PATH"),
        ("lfn://", "c.ildg", "--lfn: expected lfn://GRID/PATH"),
    ] {
        scratch.run(0, &["convert", "--lfn", name, FIRST, to]).failed(2, &[told]);
        assert!(!scratch.at(to).exists());
    }
}

#[test]
fn a_chain_goes_on_from_files_that_were_packed() {
    let (plain, packed) = (pure(), pure());
    for folder in ["cfg", "checkpoint"] {
        for entry in fs::read_dir(packed.at("ensembles/pure").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let size = fs::metadata(&path).unwrap().len();
            repack(&path);
            assert_ne!(fs::metadata(&path).unwrap().len(), size);
        }
    }
    let text = format!("{}{}", with(PURE, "trajectories", "2"), parallel([1; 4], 0, 1));
    let ended = packed.chain(0, &text);
    assert!(!ended.err.contains("warning"), "{ended:?}");
    plain.chain(0, &text);
    let [a, b] =
        [&plain, &packed].map(|scratch| scratch.checksum(&scratch.at("ensembles/pure/cfg/cfg_000002.h5")));
    assert_eq!(a, b);
    assert!(fs::read_dir(packed.at("ensembles/pure/cfg")).unwrap().count() == 2);
}

#[test]
fn the_sign_of_a_boundary_and_extents_are_for_the_user_to_tell() {
    let scratch = pure();
    scratch.run(0, &["convert", FIRST, "a.openqcd"]).succeeded();
    scratch.run(0, &["convert", FIRST, "a.ildg"]).succeeded();
    let whole = fs::read(scratch.at("a.ildg")).unwrap();
    let data = b"ildg-binary-data";
    let start = whole.windows(data.len()).position(|window| window == data).unwrap() + 128;
    let mut links = whole[start..start + 256 * 576].to_vec();
    scratch.write("plain.bin", &links);
    // The links in t from the last time slice, big-endian.
    for link in links.chunks_exact_mut(144).skip(192 * 4).skip(3).step_by(4) {
        link.iter_mut().step_by(8).for_each(|byte| *byte ^= 0x80);
    }
    scratch.write("signed.bin", &links);
    for ranks in [0, 2] {
        scratch.run(ranks, &["info", "plain.bin"]).failed(1, &["no HDF5, ILDG, NERSC, MILC or openQCD"]);
        scratch.run(ranks, &["info", "--extents", "4x4x4x4", "plain.bin"]).succeeded();
        let signed = ["convert", "--force", "--extents", "4x4x4x4", "signed.bin", "b.h5"];
        let told = "from t = 3: the sign of an antiperiodic boundary is in the links; `hmc convert --remove-boundary-sign`";
        scratch.run(ranks, &signed).failed(1, &[told]);
        scratch.run(ranks, &[&["convert", "--remove-boundary-sign"], &signed[1..]].concat()).succeeded();
        scratch.run(ranks, &["compare", FIRST, "b.h5"]).succeeded();
        let told = "a.ildg: --remove-boundary-sign: its links do not have the sign of an antiperiodic boundary in time";
        scratch.run(ranks, &["convert", "--remove-boundary-sign", "a.ildg", "c.h5"]).failed(1, &[told]);
    }
}

/// With SIGXFSZ ignored, as batch systems may leave it, the limit is an error of the system.
#[test]
fn a_limit_on_file_sizes_is_told() {
    let scratch = pure();
    for (to, told) in
        [("a.h5", "larger than the limit on file sizes (ulimit -f)"), ("a.milc", "File too large")]
    {
        let script =
            format!("trap '' XFSZ; ulimit -f 8; exec '{}' convert {FIRST} {to}", env!("CARGO_BIN_EXE_hmc"));
        let mut command = program::command("sh");
        let output =
            command.args(["-c", &script]).current_dir(scratch.at("")).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains(told) && err.contains(to), "{err}");
        assert!(!scratch.at(to).exists() && !scratch.at(&format!("{to}.tmp")).exists());
    }
}

#[test]
fn the_plot_of_residual_masses_is_overwritten_only_where_that_is_asked_for() {
    let Some(python) = program::python() else { return };
    let scratch = Scratch::new();
    let entry = r#"{"correlators":[{"name":"shamir-8","re":[2,2,2,2],"midpoint":[1,1,1,1]}]}"#;
    scratch.write("m.jsonl", entry);
    scratch.write("m.svg", "mine");
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/m_res.py");
    let mut command = program::command(python);
    command.args([tool, "m.jsonl", "m.svg"]).current_dir(scratch.at(""));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("m.svg: exists already"), "{output:?}");
    assert_eq!(fs::read(scratch.at("m.svg")).unwrap(), b"mine");
    assert!(command.arg("--force").output().unwrap().status.success());
    assert!(fs::read_to_string(scratch.at("m.svg")).unwrap().contains("<svg"));
}
