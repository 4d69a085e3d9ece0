//! A chain that was interrupted, however and wherever, goes on to the same bits.

mod common;

use common::{Scratch, names, parallel, quickstart, read_chain, signal, with};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FOLDER: &str = "ensembles/quickstart";
/// How a resumed run is cut: ranks (0: without mpirun) and their grid. Neighbours differ.
const CUTS: [(usize, [usize; 4]); 4] = [(0, [1; 4]), (2, [1, 1, 1, 2]), (1, [1; 4]), (2, [2, 1, 1, 1])];

/// The quickstart, small: a trajectory takes a fraction of a second.
fn small(trajectories: u64) -> String {
    let text = with(&quickstart(), "extents", "[4, 4, 4, 8]");
    let text = with(&with(&text, "thermalisation", "1"), "t_max", "0.2");
    // The one `steps` of the outer level is the first.
    with(&text.replacen("steps = 6", "steps = 4", 1), "trajectories", &trajectories.to_string())
}

fn cut(text: &str, number: usize) -> (usize, String) {
    let (ranks, grid) = CUTS[number % CUTS.len()];
    (ranks, format!("{text}\n{}", parallel(grid, 0, 1)))
}

/// A chain that nothing interrupted.
fn reference(trajectories: u64) -> Scratch {
    let scratch = Scratch::new();
    scratch.chain(0, &cut(&small(trajectories), 0).1);
    scratch
}

/// Configurations, or checkpoints, of a chain; no half-written file among them.
fn files(scratch: &Scratch, folder: &str) -> Vec<PathBuf> {
    let folder = scratch.at(FOLDER).join(folder);
    let names = names(&folder);
    assert!(names.iter().all(|name| name.ends_with(".h5")), "{names:?}");
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// All that must be equal: history, measurements, every configuration, the newest checkpoint.
fn same_as(scratch: &Scratch, reference: &Scratch, trajectories: u64) {
    let [own, other] = [scratch, reference].map(|s| read_chain(&s.at(FOLDER)));
    assert_eq!(own.history.len() as u64, trajectories);
    assert_eq!(own, other);
    let [cfgs, others] = [scratch, reference].map(|s| files(s, "cfg"));
    assert_eq!(cfgs.len() as u64, trajectories);
    assert_eq!(others.len() as u64, trajectories);
    for (a, b) in cfgs.iter().zip(&others) {
        assert_eq!(scratch.checksum(a), reference.checksum(b), "{} differs", a.display());
    }
    let last = [cfgs.last(), others.last()].map(|path| path.unwrap().display().to_string());
    scratch.run(0, &["compare", &last[0], &last[1]]).succeeded();
    let checkpoints = files(scratch, "checkpoint");
    assert_eq!(checkpoints.len(), 2);
    for path in &checkpoints {
        scratch.info(path);
    }
    assert_eq!(scratch.checksum(&checkpoints[1]), scratch.checksum(Path::new(&last[0])));
}

fn trajectories_done(scratch: &Scratch) -> u64 {
    let folder = scratch.at(FOLDER).join("checkpoint");
    let whole = |name: &String| name.strip_prefix("ckpt_")?.strip_suffix(".h5")?.parse().ok();
    names(&folder).iter().filter_map(whole).max().unwrap_or(0)
}

/// Whether a file is being written just now.
fn is_writing(folder: &Path) -> bool {
    names(folder).iter().any(|file| file.ends_with(".tmp"))
}

/// The moments are random, of a fixed seed: 5 while the program starts, 5 anywhere in what follows, 5 there after a
/// trajectory, 5 while a configuration or a checkpoint is being written. Every run but the last is killed, so the chain has no end until
/// then; how long it became is seen at the end.
#[test]
fn twenty_kills_change_nothing() {
    const KILLS: usize = 20;
    let mut random = ChaCha12Rng::seed_from_u64(20);
    let mut up_to = |longest: Duration| longest.mul_f64(f64::from(random.next_u32()) / f64::from(u32::MAX));
    let scratch = Scratch::new();
    let folder = scratch.at(FOLDER);
    // What this machine takes to start and for a trajectory, to spread the moments over both.
    let start = Instant::now();
    let _ = reference(2);
    let (walking, mut starting) = (start.elapsed() / 2, Duration::from_millis(200));
    let (mut killed, mut in_writing, mut resumed) = (0, 0, 0);
    for number in 0..KILLS {
        let (ranks, text) = cut(&small(1000), number);
        let input = scratch.write("run.toml", text);
        let done = trajectories_done(&scratch);
        let start = Instant::now();
        let mut job = scratch.start(ranks, &[&input]);
        if number % 4 == 3 {
            std::thread::sleep(up_to(starting));
        } else {
            job.await_words(if done == 0 { "starts: " } else { "resumes after " });
            if done > 0 {
                assert!(job.said().contains(&format!("resumes after {done} of 1000")), "{}", job.said());
                resumed += 1;
            }
            starting = start.elapsed();
            if number % 4 == 1 {
                let folder = folder.join(if number % 8 == 1 { "checkpoint" } else { "cfg" });
                in_writing += usize::from(job.wait_until(|_| is_writing(&folder)));
            } else {
                if number % 4 == 0 {
                    assert!(job.wait_until(|_| trajectories_done(&scratch) > done), "{}", job.said());
                }
                let (walk, limit) = (Instant::now(), up_to(walking.mul_f64(1.5)));
                job.wait_until(|_| walk.elapsed() >= limit);
            }
        }
        let by_kill = job.kill();
        println!(
            "kill {number}: {ranks} ranks, after {done} trajectories, {:.2} s",
            start.elapsed().as_secs_f64()
        );
        killed += usize::from(by_kill);
        // Whatever has its name is whole.
        for name in names(&folder.join("checkpoint")).iter().filter(|name| name.ends_with(".h5")) {
            scratch.info(&folder.join("checkpoint").join(name));
        }
    }
    let done = trajectories_done(&scratch);
    println!("{killed} runs killed, {in_writing} of them in writing; {resumed} resumed; {done} trajectories");
    assert_eq!((killed, in_writing), (KILLS, KILLS / 4));
    assert!(resumed >= KILLS / 2 && done >= KILLS as u64 / 4, "the chain did not advance between kills");
    let (ranks, text) = cut(&small(done + 2), KILLS + 1);
    scratch.chain(ranks, &text);
    same_as(&scratch, &reference(done + 2), done + 2);
}

/// A damaged newest checkpoint costs a trajectory, no bit; without any that is whole the run ends.
#[test]
fn damaged_checkpoints() {
    let reference = reference(4);
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("a flipped byte in the links", |bytes| bytes[200_000] ^= 0x10),
        ("a broken signature", |bytes| bytes[1] ^= 0xff),
        ("cut in the middle", |bytes| bytes.truncate(bytes.len() / 2)),
        ("empty", Vec::clear),
    ];
    let scratch = Scratch::new();
    let newest = scratch.at(FOLDER).join("checkpoint/ckpt_000003.h5");
    for (number, (what, damage)) in damages.iter().enumerate() {
        // From the third on: the checkpoint before is that of the last round.
        let _ = fs::remove_dir_all(scratch.at("ensembles"));
        scratch.chain(0, &cut(&small(3), 0).1);
        let mut bytes = fs::read(&newest).unwrap();
        damage(&mut bytes);
        fs::write(&newest, bytes).unwrap();
        let (ranks, text) = cut(&small(4), number);
        let ended = scratch.chain(ranks, &text);
        assert!(ended.out.contains("resumes after 2 of 4"), "{what}: {ended:?}");
        let warnings: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert!(matches!(warnings[..], [one] if one.contains("ckpt_000003.h5")), "{what}: {ended:?}");
        same_as(&scratch, &reference, 4);
    }
    for path in files(&scratch, "checkpoint") {
        fs::write(path, "no checkpoint").unwrap();
    }
    let before = common::contents(&scratch.at(FOLDER));
    for number in [0, 1] {
        let (ranks, text) = cut(&small(4), number);
        let input = scratch.write("run.toml", text);
        scratch
            .run(ranks, &[&input])
            .failed(1, &["no checkpoint can be read", "ckpt_000003.h5", "ckpt_000004.h5"]);
        assert!(common::contents(&scratch.at(FOLDER)) == before, "files changed");
    }
}

/// SIGTERM, to one rank of two as well, ends the job after the trajectory at hand, with a checkpoint.
#[test]
fn a_signal_ends_a_run_well() {
    let scratch = Scratch::new();
    let mut done = 0;
    for number in [0, 1] {
        let (ranks, text) = cut(&small(1000), number);
        // Rare checkpoints: that of the signal is not one that was due.
        let input = scratch.write("run.toml", with(&text, "seed", "1\ncheckpoint_every = 500"));
        let mut job = scratch.start(ranks, &[&input]);
        job.await_words(&format!("trajectory {}: ", done + 1));
        let pids = job.ranks();
        assert_eq!(pids.len(), ranks.max(1));
        signal(*pids.last().unwrap(), libc::SIGTERM);
        let ended = job.wait();
        ended.succeeded();
        done = trajectories_done(&scratch);
        let words = format!("stops after {done} trajectories: a signal came; checkpoint written");
        assert!(done > 0 && ended.out.contains(&words), "{ended:?}");
        assert_eq!(read_chain(&scratch.at(FOLDER)).history.len() as u64, done);
    }
    scratch.chain(2, &cut(&small(done + 1), 3).1);
    same_as(&scratch, &reference(done + 1), done + 1);
}

#[test]
fn wall_time_ends_a_run_well() {
    let scratch = Scratch::new();
    let (ranks, text) = cut(&small(100_000), 1);
    let ended = scratch.chain(ranks, &with(&text, "seed", "1\nwall_time = \"3s\"\ncheckpoint_every = 50000"));
    let done = trajectories_done(&scratch);
    let words = format!("stops after {done} trajectories: wall_time is near; checkpoint written");
    assert!(done > 0 && ended.out.contains(&words), "{ended:?}");
    scratch.chain(0, &cut(&small(done + 1), 0).1);
    same_as(&scratch, &reference(done + 1), done + 1);
}
