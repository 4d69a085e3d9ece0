//! A chain that was interrupted, however and wherever, goes on to the same bits.

use crate::program;
use crate::program::{Scratch, names, on, parallel, quickstart, read_chain, signal, with};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    same_records(scratch, reference, trajectories);
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

fn same_records(scratch: &Scratch, reference: &Scratch, trajectories: u64) {
    let [own, other] = [scratch, reference].map(|s| read_chain(&s.at(FOLDER)));
    assert_eq!(own.history.len() as u64, trajectories);
    assert_eq!(own, other);
}

fn trajectories_done(scratch: &Scratch) -> u64 {
    let number = |name: &String| name.split_once('_')?.1.strip_suffix(".h5")?.parse().ok();
    let in_folder = |place: &str| names(&scratch.at(FOLDER).join(place)).iter().filter_map(number).max();
    in_folder("checkpoint").max(in_folder("cfg")).unwrap_or(0)
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
            if done > 0 {
                job.await_words(&format!("resumes after {done} of 1000"));
                resumed += 1;
            } else {
                job.await_words("starts: ");
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

/// What happens to a folder between two jobs.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Nothing,
    EmptyCheckpoints,
    NewestCheckpoint,
    AllCheckpoints,
    NewestConfiguration,
    RemoveConfiguration,
    CutHistory,
    RemoveHistory,
    RemoveRow,
    AlterRow,
    CutMeasurements,
    RemoveLock,
    EmptyInput,
    AlterInput,
    RemoveInput,
    CutJobs,
    OtherJobs,
    /// Symbolic links to somebody else's file, where the program makes its own.
    Links,
}

const DAMAGES: [Damage; 18] = [
    Damage::Nothing,
    Damage::EmptyCheckpoints,
    Damage::NewestCheckpoint,
    Damage::AllCheckpoints,
    Damage::NewestConfiguration,
    Damage::RemoveConfiguration,
    Damage::CutHistory,
    Damage::RemoveHistory,
    Damage::RemoveRow,
    Damage::AlterRow,
    Damage::CutMeasurements,
    Damage::RemoveLock,
    Damage::EmptyInput,
    Damage::AlterInput,
    Damage::RemoveInput,
    Damage::CutJobs,
    Damage::OtherJobs,
    Damage::Links,
];

/// Somebody else's file, seen from the folder.
const VICTIM: &str = "../../victim";

/// Damages the folder; answers the configurations that it removed or damaged.
fn damage(folder: &Path, what: Damage, random: &mut ChaCha12Rng) -> Vec<String> {
    let mut below = |n: usize| (random.next_u64() % n.max(1) as u64) as usize;
    let [checkpoints, cfgs] = ["checkpoint", "cfg"].map(|place| {
        let whole = |name: &String| name.ends_with(".h5");
        names(&folder.join(place))
            .into_iter()
            .filter(whole)
            .map(|n| folder.join(place).join(n))
            .collect::<Vec<_>>()
    });
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut flip = |path: &PathBuf| {
        let mut bytes = fs::read(path).unwrap();
        let place = below(bytes.len());
        bytes[place] ^= 0x40;
        fs::write(path, bytes).unwrap();
    };
    let lines = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.lines().map(|line| format!("{line}\n")).collect()
    };
    match what {
        Damage::EmptyCheckpoints => checkpoints.iter().for_each(|path| fs::remove_file(path).unwrap()),
        Damage::NewestCheckpoint => checkpoints.last().into_iter().for_each(&mut flip),
        Damage::AllCheckpoints => checkpoints.iter().for_each(&mut flip),
        Damage::NewestConfiguration => {
            cfgs.last().into_iter().for_each(&mut flip);
            return cfgs.last().map(|path| name(path)).into_iter().collect();
        }
        Damage::RemoveConfiguration if !cfgs.is_empty() => {
            let path = &cfgs[below(cfgs.len())];
            fs::remove_file(path).unwrap();
            return vec![name(path)];
        }
        Damage::Nothing | Damage::RemoveConfiguration => {}
        // Seldom more than is made again unasked.
        Damage::CutHistory => {
            let text = lines("history.csv").concat();
            fs::write(folder.join("history.csv"), &text[..text.len() - below(text.len().min(4000))]).unwrap();
        }
        Damage::RemoveHistory => drop(fs::remove_file(folder.join("history.csv"))),
        Damage::RemoveRow | Damage::AlterRow => {
            let mut rows = lines("history.csv");
            if rows.len() > 1 {
                let at = 1 + below(rows.len() - 1);
                if matches!(what, Damage::RemoveRow) {
                    rows.remove(at);
                } else {
                    rows[at] = rows[at].replacen(['1', '2', '3'], "4", 1);
                }
                fs::write(folder.join("history.csv"), rows.concat()).unwrap();
            }
        }
        Damage::CutMeasurements => {
            let text = lines("measurements.jsonl").concat();
            fs::write(folder.join("measurements.jsonl"), &text[..below(text.len())]).unwrap();
        }
        Damage::RemoveLock => drop(fs::remove_file(folder.join("lock"))),
        Damage::EmptyInput | Damage::AlterInput | Damage::RemoveInput => {
            let kept = |name: &String| name.starts_with("run") && name.ends_with(".toml");
            let inputs: Vec<String> = names(folder).into_iter().filter(kept).collect();
            // The last one comes first: the names have numbers but for `run.toml`.
            let newest = if inputs.len() > 1 { &inputs[inputs.len() - 1] } else { "run.toml" };
            let path = folder.join(newest);
            match what {
                Damage::RemoveInput => drop(fs::remove_file(path)),
                Damage::EmptyInput => fs::write(path, "").unwrap(),
                _ => {
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    fs::write(path, text.replacen("steps = 4", "steps = 5", 1)).unwrap();
                }
            }
        }
        Damage::CutJobs => {
            let text = lines("jobs.jsonl").concat();
            fs::write(folder.join("jobs.jsonl"), &text[..below(text.len())]).unwrap();
        }
        Damage::OtherJobs => {
            let other =
                checkpoints.last().map_or_else(|| b"\xff\n\x1b".to_vec(), |path| fs::read(path).unwrap());
            fs::write(folder.join("jobs.jsonl"), other).unwrap();
        }
        Damage::Links => {
            for name in ["lock", "history.csv.tmp", "run.toml.tmp", "history.h5.tmp", "cfg/cfg_000003.h5.tmp"]
            {
                let _ = fs::remove_file(folder.join(name));
                symlink(folder.join(VICTIM), folder.join(name)).unwrap();
            }
        }
    }
    Vec::new()
}

/// `count` kills at random moments, the folder damaged at random after each. No configuration that is there and whole is
/// ever written again; a job that is refused says why and touches nothing; and the end is the uninterrupted chain.
fn kills_and_damages(count: usize, seed: u64) {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let scratch = Scratch::new();
    let folder = scratch.at(FOLDER);
    let cfgs = || -> BTreeMap<String, Vec<u8>> {
        let whole = |name: &String| name.ends_with(".h5");
        let read = |name: String| (name.clone(), fs::read(folder.join("cfg").join(name)).unwrap());
        names(&folder.join("cfg")).into_iter().filter(whole).map(read).collect()
    };
    let [mut refused, mut resumed, mut walked, mut killed] = [0; 4];
    scratch.chain(0, &cut(&small(6), 0).1);
    let (mut kept, mut spoilt) = (cfgs(), BTreeMap::new());
    let victim = scratch.write("victim", "precious");
    for number in 0..count {
        // In turn, so that each kind comes, in another state of the chain each time; nothing every other time.
        let what = if number % 2 == 0 { Damage::Nothing } else { DAMAGES[number / 2 % DAMAGES.len()] };
        let done = trajectories_done(&scratch);
        let before = program::contents(&folder);
        let gone = damage(&folder, what, &mut random);
        kept.retain(|name, _| !gone.contains(name));
        // One that is damaged may be moved aside at any time.
        spoilt.extend(cfgs().into_iter().filter(|(name, _)| gone.contains(name)));
        let after = program::chain_contents(&folder);
        let (ranks, text) = cut(&small(1000), number);
        let input = scratch.write("run.toml", &text);
        let mut job = scratch.start(ranks, &[&input]);
        let begun =
            job.wait_until(|job| job.said().contains("starts: ") || job.said().contains("resumes after "));
        // Mostly after a trajectory, so that the chain gets on.
        let wait = |job: &mut program::Job, limit: Duration, far: bool| -> bool {
            let walked = !far || job.wait_until(|_| trajectories_done(&scratch) > done);
            let start = Instant::now();
            walked && job.wait_until(|_| start.elapsed() >= limit)
        };
        let limit = Duration::from_micros(random.next_u64() % 400_000);
        let running = begun && wait(&mut job, limit, number % 4 != 1);
        let mut told = String::new();
        if running {
            resumed += usize::from(job.said().contains("resumes after "));
            killed += usize::from(job.kill());
            told = job.warned();
        } else {
            let ended = job.wait();
            println!("kill {number}, {what:?}: {}", ended.err);
            refused += 1;
            let now = program::chain_contents(&folder);
            let changed = now
                .iter()
                .filter(|file| !after.contains(file))
                .chain(after.iter().filter(|file| !now.contains(file)));
            let changed: Vec<_> = changed.map(|(path, _)| path).collect();
            assert!(changed.is_empty(), "kill {number}, {what:?}: a refused job changed {changed:?}");
            if ended.err.contains("can be read") {
                // Damage upon damage has left no state: a copy is put back.
                ended.failed(1, &["none of its checkpoints and configurations can be read"]);
                fs::remove_dir_all(&folder).unwrap();
                for (path, bytes) in &before {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, bytes).unwrap();
                }
            } else if ended.err.contains("it is a symbolic link") {
                ended.failed(1, &["lock: cannot take the lock", "remove it"]);
                fs::remove_file(folder.join("lock")).unwrap();
            } else {
                ended.failed(2, &["--gaps repair"]);
                // As it says; the moment of the kill is anywhere in what it walks again.
                let mut job = scratch.start(ranks, &["--gaps", "repair", &input]);
                assert!(wait(&mut job, limit, true), "{}", job.said());
                killed += usize::from(job.kill());
                walked += 1;
            }
        }
        assert_eq!(fs::read_to_string(scratch.at(&victim)).unwrap(), "precious");
        // Whole ones stay as they are, byte by byte.
        let now = cfgs();
        for (name, bytes) in &kept {
            let became = if now.contains_key(name) { "written again" } else { "lost" };
            assert!(
                now.get(name) == Some(bytes),
                "kill {number}, {what:?}: {name} was {became}
{told}"
            );
        }
        kept = now;
        kept.retain(|name, bytes| spoilt.get(name) != Some(bytes));
    }
    println!(
        "{killed} of {count} runs killed, {resumed} resumed, {refused} refused, {walked} with --gaps repair"
    );
    assert!(killed * 10 >= count * 9 && resumed * 2 >= count, "the kills missed the runs");
    let last = trajectories_done(&scratch);
    let (ranks, text) = cut(&small(last + 2), count);
    let input = scratch.write("run.toml", text);
    scratch.run(ranks, &["--gaps", "repair", &input]).succeeded();
    let reference = reference(last + 2);
    same_records(&scratch, &reference, last + 2);
    for path in names(&folder.join("cfg")).iter().filter(|name| name.ends_with(".h5")) {
        let [own, other] = [&scratch, &reference].map(|s| s.checksum(&s.at(FOLDER).join("cfg").join(path)));
        assert_eq!(own, other, "{path} differs");
    }
    println!(
        "{} trajectories, {} configurations: the bits of the chain that nothing interrupted",
        last + 2,
        kept.len()
    );
}

#[test]
fn kills_and_damaged_folders() {
    kills_and_damages(2 * DAMAGES.len(), 200);
}

/// The same, longer: `make kills`, by default 216 of them, else as many as `HMC_KILLS` says. A chain has up to 108, since a
/// history that is lost is walked again from the start.
#[test]
#[ignore = "takes several minutes: make kills"]
fn many_kills_and_damaged_folders() {
    let kills = std::env::var("HMC_KILLS").map_or(216, |n| n.parse().expect("a number of kills"));
    for done in (0..kills).step_by(6 * DAMAGES.len()) {
        kills_and_damages(6 * DAMAGES.len(), 201 + done as u64);
        println!("{} kills", done + 6 * DAMAGES.len());
    }
}

/// A damaged newest checkpoint costs nothing where its configuration is there, else a trajectory, and no bit; without any
/// state that is whole the run ends.
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
        if number % 2 == 1 {
            fs::remove_file(scratch.at(FOLDER).join("cfg/cfg_000003.h5")).unwrap();
        }
        let (ranks, text) = cut(&small(4), number);
        let ended = scratch.chain(ranks, &text);
        // The configuration of trajectory 3 is as good as its checkpoint; without it the one before is taken.
        let done = if number % 2 == 0 { 3 } else { 2 };
        assert!(ended.out.contains(&format!("resumes after {done} of 4")), "{what}: {ended:?}");
        let warnings: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert!(matches!(warnings[..], [one] if one.contains("ckpt_000003.h5")), "{what}: {ended:?}");
        same_as(&scratch, &reference, 4);
    }
    for path in ["checkpoint", "cfg"].iter().flat_map(|place| files(&scratch, place)) {
        fs::write(path, "no checkpoint").unwrap();
    }
    let before = program::chain_contents(&scratch.at(FOLDER));
    for number in [0, 1] {
        let (ranks, text) = cut(&small(4), number);
        let input = scratch.write("run.toml", text);
        scratch.run(ranks, &[&input]).failed(
            1,
            &["none of its checkpoints and configurations can be read", "ckpt_000004.h5", "cfg_000001.h5"],
        );
        assert!(program::chain_contents(&scratch.at(FOLDER)) == before, "files changed");
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
        job.await_words(&format!(" {}/1000 ", done + 1));
        let pids = job.ranks();
        assert_eq!(pids.len(), ranks.max(1));
        signal(*pids.last().unwrap(), libc::SIGTERM);
        let ended = job.wait();
        ended.succeeded();
        done = trajectories_done(&scratch);
        // Anywhere in its work: between trajectories, or in the measurement of one.
        assert!(done > 0 && ended.out.contains(": SIGTERM came; checkpoint written"), "{ended:?}");
        assert!(
            ended.out.contains(&format!("trajectory {done}: "))
                || ended.out.contains(&format!("after {done} "))
        );
        assert_eq!(read_chain(&scratch.at(FOLDER)).history.len() as u64, done);
    }
    scratch.chain(2, &cut(&small(done + 1), 3).1);
    same_as(&scratch, &reference(done + 1), done + 1);
}

/// In a batch job that says when it ends, a minute before that.
#[test]
fn the_end_of_the_job_ends_a_run_well() {
    for ranks in [0, 2] {
        let scratch = Scratch::new();
        let input = scratch.write("run.toml", on(&small(100_000), ranks));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let job = scratch.start_with(ranks, &[&input], &[("SLURM_JOB_END_TIME", &(now + 64).to_string())]);
        let ended = job.wait();
        ended.succeeded();
        assert!(ended.out.contains("ends a minute before the job does, at 20"), "{ended:?}");
        assert!(ended.out.contains(": the end of the job is near; checkpoint written"), "{ended:?}");
        assert!(trajectories_done(&scratch) > 0);
    }
}

#[test]
fn wall_time_ends_a_run_well() {
    let scratch = Scratch::new();
    let (ranks, text) = cut(&small(100_000), 1);
    let ended = scratch.chain(ranks, &with(&text, "seed", "1\nwall_time = \"3s\"\ncheckpoint_every = 50000"));
    let done = trajectories_done(&scratch);
    assert!(done > 0 && ended.out.contains(": wall_time is near; checkpoint written"), "{ended:?}");
    assert!(
        ended.out.contains(&format!("trajectory {done}: "))
            || ended.out.contains(&format!("stops after {done} "))
    );
    scratch.chain(0, &cut(&small(done + 1), 0).1);
    same_as(&scratch, &reference(done + 1), done + 1);
}
