//! States and records of a chain: what a damaged, altered or missing one costs, and that it is told.

use crate::program::Scratch;
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{self, Column, Form, History, IoError, Journal, Meta, Records, Value, write_history_h5};
use hmc::lattice::Partition;
use std::fs;
use std::path::{Path, PathBuf};

fn whole() -> Partition {
    Partition::whole([2, 2, 2, 4]).unwrap()
}

/// Links that tell trajectories apart: those in x have phases, the same everywhere, so that plaquettes are one.
fn links(number: u64) -> HostLinks {
    let mut links = HostLinks::unit(whole().local());
    let (sine, cosine) = (number as f64).sin_cos();
    for site in links.reals.chunks_exact_mut(72) {
        site[..2].copy_from_slice(&[cosine, sine]);
        site[8..10].copy_from_slice(&[cosine, -sine]);
    }
    links
}

fn meta(number: u64) -> Meta {
    Meta {
        trajectory: Some(number),
        plaquette: 1.0,
        input: "an input".into(),
        solvers: None,
        logical_name: None,
    }
}

fn save(folder: &Path, number: u64) -> PathBuf {
    io::save(folder, &links(number), &whole(), &Solo, &meta(number), "{}").unwrap()
}

fn keep(folder: &Path, number: u64, links: &HostLinks) -> Result<Option<String>, IoError> {
    fs::create_dir_all(folder.join("cfg")).unwrap();
    io::save_configuration(folder, links, &whole(), &Solo, &meta(number))
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    fs::write(path, bytes).unwrap();
}

/// The trajectory and the warnings of the newest state.
fn newest(folder: &Path) -> Result<Option<(u64, Vec<String>)>, IoError> {
    let loaded = io::load_newest(folder, &whole(), &Solo, |_, _| Ok::<_, IoError>(()))?;
    Ok(loaded.map(|loaded| {
        assert_eq!(loaded.links, links(loaded.trajectory));
        (loaded.trajectory, loaded.warnings)
    }))
}

#[test]
fn the_newest_whole_state_is_taken() {
    let folder = Scratch::new();
    assert_eq!(newest(folder.path()).unwrap(), None);
    let paths: Vec<PathBuf> = (8..=10).map(|n| save(folder.path(), n)).collect();
    assert!(!paths[0].exists() && paths[1].exists());
    assert!(paths[2].ends_with("checkpoint/ckpt_000010.h5"));
    keep(folder.path(), 9, &links(9)).unwrap();
    assert_eq!(newest(folder.path()).unwrap(), Some((10, vec![])));
    let told = |found: Option<(u64, Vec<String>)>, number: u64, names: &[&str]| {
        let (found, warnings) = found.unwrap();
        assert_eq!((found, warnings.len()), (number, names.len()), "{warnings:?}");
        assert!(warnings.iter().zip(names).all(|(warning, name)| warning.contains(name)), "{warnings:?}");
    };
    flip(&paths[2]);
    told(newest(folder.path()).unwrap(), 9, &["ckpt_000010.h5"]);
    fs::write(&paths[1], b"").unwrap();
    told(newest(folder.path()).unwrap(), 9, &["ckpt_000010.h5", "ckpt_000009.h5"]);
    // A configuration newer than any checkpoint; one under another's name.
    keep(folder.path(), 11, &links(11)).unwrap();
    assert_eq!(newest(folder.path()).unwrap(), Some((11, vec![])));
    fs::rename(folder.at("cfg/cfg_000011.h5"), folder.at("cfg/cfg_000012.h5")).unwrap();
    told(newest(folder.path()).unwrap(), 9, &["its trajectory is 11", "ckpt_000010.h5", "ckpt_000009.h5"]);
    flip(&folder.at("cfg/cfg_000009.h5"));
    assert!(matches!(newest(folder.path()), Err(IoError::NoState { reasons, .. }) if reasons.len() == 4));
}

/// Its header is judged before its links are read.
#[test]
fn a_state_that_is_refused_ends_the_search() {
    let folder = Scratch::new();
    save(folder.path(), 1);
    let other = Partition::whole([4; 4]).unwrap();
    let judge = |path: &Path, header: &io::Header| {
        assert_eq!(header.extents, [2, 2, 2, 4]);
        Err(IoError::UnknownFormat { path: path.into() })
    };
    let found = io::load_newest(folder.path(), &other, &Solo, judge);
    assert!(matches!(found, Err(IoError::UnknownFormat { .. })), "{found:?}");
}

#[test]
fn a_configuration_is_never_overwritten() {
    let folder = Scratch::new();
    let path = folder.at("cfg/cfg_000003.h5");
    assert_eq!(keep(folder.path(), 3, &links(3)).unwrap(), None);
    let before = fs::read(&path).unwrap();
    assert_eq!(keep(folder.path(), 3, &links(3)).unwrap(), None);
    let error = keep(folder.path(), 3, &links(4)).unwrap_err().to_string();
    assert!(error.contains("cfg_000003.h5: is there already, with other links"), "{error}");
    assert!(fs::read(&path).unwrap() == before);
    // A damaged one makes way, and stays.
    flip(&path);
    let damaged = fs::read(&path).unwrap();
    let warning = keep(folder.path(), 3, &links(3)).unwrap().unwrap();
    assert!(warning.contains("moved aside as") && warning.contains("cfg_000003.h5.damaged"), "{warning}");
    assert!(fs::read(&path).unwrap() == before);
    assert!(fs::read(folder.at("cfg/cfg_000003.h5.damaged")).unwrap() == damaged);
}

#[test]
fn history_survives_a_crash_and_a_restart() {
    let folder = Scratch::new();
    let columns = ["trajectory", "accepted", "delta_h"];
    let value = |n: u64| 0.1 * n as f64 - 1e-17;
    let row = |n: u64| [Value::Count(n), Value::Count(n % 2), Value::Real(value(n))];
    let records = || History::records(folder.path(), &columns, &[]).unwrap();
    let mut history = History::open(folder.path(), &columns, &records()).unwrap();
    for n in 1..7 {
        assert_eq!(history.append(&row(n)).unwrap(), None);
    }
    assert!(history.append(&row(7)[..2]).is_err());
    drop(history);
    let path = folder.at("history.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}7,0,1.2")).unwrap();

    let mut kept = records();
    assert_eq!((kept.keep_up_to(4), kept.faults.len()), (2, 0));
    let mut history = History::open(folder.path(), &columns, &kept).unwrap();
    history.append(&row(5)).unwrap();
    let table = History::read(folder.path()).unwrap();
    let expected = [
        ("trajectory".to_owned(), Column::Counts((1..6).collect())),
        ("accepted".to_owned(), Column::Counts((1..6).map(|n| n % 2).collect())),
        ("delta_h".to_owned(), Column::Reals((1..6).map(value).collect())),
    ];
    assert_eq!(table.columns, expected);
    write_history_h5(folder.path()).unwrap();
    assert!(fs::read(folder.at("history.h5")).unwrap().starts_with(b"\x89HDF"));
}

/// A chain that goes on with other terms: all rows stay, each with empty fields where it has no such term.
#[test]
fn a_history_grows_by_columns() {
    let folder = Scratch::new();
    let columns = ["trajectory", "delta_h", "dS_of_light", "dS_of_part"];
    let old = ["trajectory", "dS_of_old", "delta_h"];
    let records = History::records(folder.path(), &old, &[]).unwrap();
    let mut history = History::open(folder.path(), &old, &records).unwrap();
    for n in 1..3 {
        history.append(&[Value::Count(n), Value::Real(0.25), Value::Real(0.5)]).unwrap();
    }
    drop(history);
    let text = fs::read(folder.at("history.csv")).unwrap();
    let read = |known: &[&str]| History::records(folder.path(), &columns, known).unwrap();
    // A name that no input of the chain has; then rows cannot be told.
    let unknown = read(&[]);
    assert_eq!((unknown.faults.len(), unknown.lines().count()), (3, 0), "{unknown:?}");
    let mut records = read(&old);
    assert_eq!((&records.faults, records.lines().count()), (&vec![], 2));
    assert!(fs::read(folder.at("history.csv")).unwrap() == text, "read only");
    // A row of the earlier input that is made again.
    let line = History::line(&mut records, &old, &[Value::Count(2), Value::Real(0.125), Value::Real(0.5)]);
    records.insert(2, line);
    let mut history = History::open(folder.path(), &columns, &records).unwrap();
    history.append(&[Value::Count(3), Value::Real(0.5), Value::Real(2.0), Value::Empty]).unwrap();
    assert!(history.append(&[Value::Count(4)]).is_err(), "a row of too few values");
    assert_eq!((read(&old).faults.len(), read(&old).lines().count()), (0, 3));
    let table = History::read(folder.path()).unwrap();
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["trajectory", "dS_of_old", "delta_h", "dS_of_light", "dS_of_part"]);
    assert_eq!(table.reals("delta_h"), [0.5; 3]);
    let empty = |name: &str| table.reals(name).iter().map(|value| value.is_nan()).collect::<Vec<_>>();
    assert_eq!(table.reals("dS_of_old")[..2], [0.25, 0.125]);
    assert_eq!(table.reals("dS_of_light")[2], 2.0);
    assert_eq!(
        ["dS_of_old", "dS_of_light", "dS_of_part"].map(empty),
        [[false, false, true], [true, true, false], [true; 3]]
    );
    write_history_h5(folder.path()).unwrap();
}

/// The lines of a file that each damage leaves, and the words that tell of it.
#[test]
fn every_damaged_line_is_found() {
    let folder = Scratch::new();
    let path = folder.at("records");
    for form in [Form::Csv, Form::Json] {
        let names = if form == Form::Csv { "trajectory,x" } else { "" };
        let line = |n: u64| match form {
            Form::Csv => format!("{n},{}.5", n * n),
            Form::Json => format!("{{\"trajectory\":{n},\"x\":{}.5}}", n * n),
        };
        let read = || Records::read(&path, form, names, &[]).unwrap();
        let mut records = Records::read(&folder.at("none"), form, names, &[]).unwrap();
        assert!(records.is_empty() && records.faults.is_empty());
        (1..=6).for_each(|n| records.insert(n, line(n)));
        drop(Journal::open(&path, &records).unwrap());
        assert_eq!(read(), records);
        let good = fs::read_to_string(&path).unwrap();
        let sealed = |n: u64| form.seal(&line(n)) + "\n";
        let other = form.seal(&line(4).replace(".5", ".25")) + "\n";
        let after_names = if form == Form::Csv { good.find('\n').unwrap() + 1 } else { 0 };
        let check = |what: &str, text: String, missing: &[u64], told: &[&str]| {
            fs::write(&path, text).unwrap();
            let found = read();
            let lacks: Vec<u64> = (1..=6).filter(|n| !found.has(*n)).collect();
            assert_eq!(lacks, missing, "{what}: {found:?}");
            assert_eq!(found.faults.len(), told.len(), "{what}: {found:?}");
            assert!(found.faults.iter().zip(told).all(|(fault, told)| fault.contains(told)), "{found:?}");
            assert!(found.lines().all(|l| (1..=6).any(|n| l == line(n))), "{what}: {found:?}");
        };
        check("last gone", good.replace(&sealed(6), ""), &[6], &[]);
        check("one gone", good.replace(&sealed(3), ""), &[3], &[]);
        check("cut", good[..good.len() - 9].into(), &[6], &[]);
        check("a digit", good.replace(&sealed(4), &sealed(4).replace("16.5", "16.6")), &[4], &["altered"]);
        check("twice", good.replace(&sealed(4), &(sealed(4) + &sealed(4))), &[], &["4 again"]);
        check("two", good.replace(&sealed(4), &(sealed(4) + &other)), &[4], &["4 again, with other numbers"]);
        check("garbage", good.replace(&sealed(5), "{\"traj\n"), &[5], &["altered"]);
        check(
            "out of order",
            good[..after_names].to_owned() + &good[after_names..].replace(&sealed(1), "") + &sealed(1),
            &[],
            &["trajectory 1 after 6"],
        );
        let altered: String = (1..=6).map(|n| sealed(n).replace(".5", ".6")).collect();
        let all = [1, 2, 3, 4, 5, 6];
        check("all", good[..after_names].to_owned() + &altered, &all, &["altered"; 6]);
        check("nothing", good[..after_names].into(), &[1, 2, 3, 4, 5, 6], &[]);
        if form == Form::Csv {
            check("names", good.replacen("trajectory", "trajektory", 1), &[], &["line 1"]);
            check("empty", String::new(), &[1, 2, 3, 4, 5, 6], &["line 1"]);
        }
        // A file of an older version has no checksums.
        let old: String = (1..=6).map(|n| line(n) + "\n").collect();
        let names = if form == Form::Csv { "trajectory,x\n" } else { "" };
        check("old", names.to_owned() + &old, &[], &["6 lines without checksums"]);
    }
}

/// A file that is removed under the run is written again; one that is altered ends it.
#[test]
fn an_open_file_that_vanishes_is_noticed() {
    let folder = Scratch::new();
    let path = folder.at("measurements.jsonl");
    let line = |n: u64| format!("{{\"trajectory\":{n}}}");
    let mut journal = Journal::open(&path, &Records::none(Form::Json)).unwrap();
    assert_eq!(journal.append(&line(1)).unwrap(), None);
    fs::remove_file(&path).unwrap();
    let warning = journal.append(&line(2)).unwrap().unwrap();
    assert!(warning.contains("measurements.jsonl: was removed under the run"), "{warning}");
    // An editor puts an equal file in its place.
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &text).unwrap();
    assert!(journal.append(&line(3)).unwrap().unwrap().contains("replaced by an equal file"));
    let all = Records::read(&path, Form::Json, "", &[]).unwrap();
    assert!((1..=3).all(|n| all.has(n)) && all.faults.is_empty(), "{all:?}");
    fs::write(&path, &text).unwrap();
    let error = journal.append(&line(4)).unwrap_err().to_string();
    assert!(error.contains("was altered or replaced under the run"), "{error}");
    assert!(fs::read(&path).unwrap() == text, "it stays as somebody left it");
}
