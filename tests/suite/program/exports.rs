//! `save_format`: configurations in other formats, straight from a run.

use crate::program::{Scratch, parallel};
use std::fs;

const PURE: &str = pure!("trajectories = 2\nthermalisation = 1\n", "[4, 4, 4, 4]", "", 2, "");

const FORMATS: [&str; 4] = ["ildg", "nersc", "milc", "openqcd"];

/// The input with other lines in `[run]`, on so many ranks.
fn input(lines: &str, ranks: usize) -> String {
    let text = PURE.replace("seed = 3\n", &format!("seed = 3\n{lines}\n"));
    format!("{text}{}", parallel([1, 1, 1, ranks.max(1)], 0, 1))
}

fn bytes(scratch: &Scratch, name: &str) -> Vec<u8> {
    fs::read(scratch.at(&format!("ensembles/pure/{name}"))).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn names(scratch: &Scratch, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(scratch.at(&format!("ensembles/pure/{folder}"))).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_exports_what_it_saves_with_the_same_bytes_on_any_ranks() {
    let lines = r#"save_format = ["hdf5", "ildg", "nersc", "milc", "openqcd", "ildg"]"#;
    let runs = [0, 2].map(|ranks| {
        let scratch = Scratch::new();
        scratch.chain(ranks, &input(lines, ranks));
        scratch
    });
    for ending in FORMATS {
        for number in [1, 2] {
            let name = format!("{ending}/cfg_{number:06}.{ending}");
            assert!(bytes(&runs[0], &name) == bytes(&runs[1], &name), "{name}");
            // But for the logical name they are what `hmc convert` writes.
            let cfg = format!("ensembles/pure/cfg/cfg_{number:06}.h5");
            let copy = format!("copy.{ending}");
            let name_of = format!("lfn://hmc/pure/cfg_{number:06}.ildg");
            let lfn = if ending == "ildg" { vec!["--lfn", &name_of] } else { Vec::new() };
            runs[0].run(0, &[&["convert", "--force"][..], &lfn, &[&cfg, &copy]].concat()).succeeded();
            assert!(fs::read(runs[0].at(&copy)).unwrap() == bytes(&runs[0], &name), "{name}");
        }
        let expected = [1, 2].map(|number| format!("cfg_{number:06}.{ending}"));
        assert_eq!(names(&runs[1], ending), expected);
    }
    assert_eq!(names(&runs[0], "cfg"), ["cfg_000001.h5", "cfg_000002.h5"]);
    assert!(!runs[0].at("ensembles/pure/h5").exists());
}

/// The links of a chain do not depend on it, so it may change; what is missing or damaged is made again.
#[test]
fn exports_that_are_missing_are_made_when_a_run_resumes() {
    let scratch = Scratch::new();
    scratch.chain(0, &input("", 0));
    assert!(names(&scratch, "ildg").is_empty());
    let lines = "save_format = \"ildg\"\nlfn = \"lfn://LDG/test/pure/\"";
    let longer = |trajectories: usize, ranks| {
        input(lines, ranks).replace("trajectories = 2", &format!("trajectories = {trajectories}"))
    };
    let log = scratch.chain(2, &longer(3, 2)).out;
    assert!(log.contains("ILDG files of 1 configuration that were missing are made"), "{log}");
    let all = [1, 2, 3].map(|number| format!("cfg_{number:06}.ildg"));
    assert_eq!(names(&scratch, "ildg"), all);
    let good = all.clone().map(|name| bytes(&scratch, &format!("ildg/{name}")));
    let info = scratch.info(&scratch.at("ensembles/pure/ildg/cfg_000001.ildg"));
    assert_eq!(info["logical_name"], "lfn://LDG/test/pure/cfg_000001.ildg");
    assert_eq!(info["trajectory"], 1);
    // One is gone, one is cut off, and an unfinished one is left behind; that of the last trajectory has damaged links.
    let at = |name: &str| scratch.at(&format!("ensembles/pure/ildg/{name}"));
    fs::remove_file(at(&all[0])).unwrap();
    fs::write(at(&all[1]), &good[1][..good[1].len() / 2]).unwrap();
    fs::write(at("cfg_000001.ildg.tmp"), "x").unwrap();
    let mut damaged = good[2].clone();
    damaged[good[2].len() / 2] ^= 1;
    fs::write(at(&all[2]), &damaged).unwrap();
    let ended = scratch.chain(0, &longer(3, 0));
    assert!(ended.out.contains("ILDG files of 2 configurations that were missing are made"), "{ended:?}");
    for (name, bytes) in all.iter().zip(&good) {
        assert!(fs::read(at(name)).unwrap() == *bytes, "{name}");
    }
    for (name, why) in [(&all[1], "truncated"), (&all[2], "damaged: checksums")] {
        assert!(at(&format!("{name}.damaged")).exists(), "{name}");
        let told = format!("{name}.damaged, and made again");
        assert!(ended.err.contains(why) && ended.err.contains(&told), "{ended:?}");
    }
    assert!(!at("cfg_000001.ildg.tmp").exists());
    // Of a damaged configuration none is made, and the chain goes on.
    let cfg = scratch.at("ensembles/pure/cfg/cfg_000001.h5");
    let whole = fs::read(&cfg).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&cfg, damaged).unwrap();
    fs::remove_file(at(&all[0])).unwrap();
    let ended = scratch.chain(2, &longer(3, 2));
    assert!(ended.err.contains("no ILDG file is made of configuration 1"), "{ended:?}");
    assert!(!ended.out.contains("missing") && !at(&all[0]).exists(), "{ended:?}");
    fs::write(&cfg, whole).unwrap();
    scratch.chain(0, &longer(3, 0));
    assert!(fs::read(at(&all[0])).unwrap() == good[0]);
    // Once more, nothing is to be done.
    assert!(!scratch.chain(0, &longer(3, 0)).out.contains("missing"));
}

#[test]
fn wrong_formats_and_logical_names_are_refused() {
    let scratch = Scratch::new();
    for (lines, told) in [
        ("save_format = \"ilgd\"", "unknown \"ilgd\"; did you mean 'ildg'?"),
        ("save_format = [\"ildg\", \"scidac\"]", "unknown \"scidac\""),
        ("save_format = 3", "expected"),
        ("lfn = \"LDG/test\"", "expected lfn://GRID/PATH without spaces, found \"LDG/test\""),
        ("lfn = \"lfn://LDG/\"", "expected lfn://GRID/PATH"),
    ] {
        let path = scratch.write("run.toml", input(lines, 0));
        scratch.run(0, &[&path]).failed(2, &[told]);
    }
    let path = scratch.write("run.toml", input("save_format = [\"ildg\", \"milc\"]", 0));
    let plan = scratch.run(0, &["--check", &path]).out;
    // 4^4 sites of 576 bytes: twice, and half of it.
    assert!(plan.contains("configurations 2 of 0.1 MB, and as ILDG, and as MILC, 0.7 MB in all"), "{plan}");
}
