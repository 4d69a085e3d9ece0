//! `verify_every`: a trajectory that is walked twice shows a bit that flipped in memory.

use crate::program::{Ended, Job, Scratch, on, read_chain, with};
use hmc::device::has_emulation;
use hmc::io::History;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const PURE: &str = pure!("trajectories = 4\n", "[8, 8, 8, 8]", "[hmc]\nverify_every = 1\n", 10, "");

/// It changes nothing but the column that says so.
#[test]
fn trajectories_that_are_walked_twice_are_the_same_chain() {
    let [once, twice] = [(); 2].map(|()| Scratch::new());
    once.chain(0, &on(&with(PURE, "verify_every", "0"), 0));
    let ended = twice.chain(2, &on(&with(PURE, "verify_every", "2"), 2));
    assert_eq!(ended.out.matches(": walked twice, the same bits\n").count(), 2, "{ended:?}");
    let [a, b] = [&once, &twice].map(|scratch| scratch.at("ensembles/pure"));
    assert_eq!(read_chain(&a), read_chain(&b));
    assert_eq!(History::read(&a).unwrap().reals("verified"), [0.0; 4]);
    assert_eq!(History::read(&b).unwrap().reals("verified"), [0.0, 1.0, 0.0, 1.0]);
}

/// Writable private memory of a process, in pieces of at least a megabyte.
fn fields(pid: i32) -> Vec<(u64, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let ranges =
        maps.lines().filter(|line| line.contains("rw-p") && line.contains(" 00:00 0 ")).filter_map(|line| {
            let (from, to) = line.split_once(' ')?.0.split_once('-')?;
            Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
        });
    ranges.filter(|(from, to)| to - from >= 1 << 20).collect()
}

/// Flips low bits of numbers in the memory of the process until it ends; `None` if that is not allowed.
fn flip(job: &mut Job) -> Option<usize> {
    let pid = job.ranks()[0];
    let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).ok()?;
    let (start, mut state, mut flips) = (Instant::now(), u64::from(pid.unsigned_abs()), 0);
    while job.is_running() && start.elapsed() < Duration::from_secs(60) {
        let all = fields(pid);
        let total: u64 = all.iter().map(|(from, to)| to - from).sum();
        // One of the lower bits of the significand of a double that is a plausible number: neither zero, nor a pointer.
        for _ in 0..if total == 0 { 0 } else { 1000 } {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut place = ((state >> 16) % total) & !7;
            let within = |(from, to): &&(u64, u64)| {
                let inside = place < to - from;
                place -= if inside { 0 } else { to - from };
                inside
            };
            let Some((from, _)) = all.iter().find(within) else { continue };
            let mut bytes = [0; 8];
            let is_read = memory.read_exact_at(&mut bytes, from + place).is_ok();
            if is_read && (1e-3..4.0).contains(&f64::from_le_bytes(bytes).abs()) {
                bytes[3] ^= 1;
                flips += usize::from(memory.write_all_at(&bytes, from + place).is_ok());
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(flips)
}

/// A bit that flips in the memory of a running chain ends it. Mostly it flips within a trajectory; where it does so while files
/// are written, they do not read back, and another chain is tried.
#[test]
fn a_flipped_bit_is_noticed() {
    let text = with(&with(PURE, "trajectories", "100000"), "steps", "150");
    for _ in 0..5 {
        let scratch = Scratch::new();
        let input = scratch.write("run.toml", on(&text, 0));
        let mut job = scratch.start(0, &[&input]);
        let first = scratch.at("ensembles/pure/checkpoint/ckpt_000001.h5");
        assert!(job.wait_until(|_| first.exists()));
        let Some(flips) = flip(&mut job) else {
            println!("skipped: the memory of another process cannot be written here");
            job.kill();
            job.wait();
            return;
        };
        assert!(!job.is_running(), "{flips} flipped bits were not noticed");
        let ended = job.wait();
        println!("{flips} bits flipped: {}", ended.err.trim());
        ended.failed(1, &[]);
        if !ended.err.contains("walked twice from the same links, it has dH = ") {
            continue;
        }
        // What is kept was walked twice with the same bits, and the chain goes on from it.
        let folder = scratch.at("ensembles/pure");
        let rows = History::read(&folder).unwrap().reals("verified");
        assert!(!rows.is_empty() && rows.iter().all(|verified| *verified == 1.0), "{rows:?}");
        let longer = on(&with(&text, "trajectories", &(rows.len() + 1).to_string()), 0);
        scratch.chain(0, &longer);
        let reference = Scratch::new();
        reference.chain(0, &longer);
        assert_eq!(read_chain(&folder), read_chain(&reference.at("ensembles/pure")));
        return;
    }
    panic!("no bit flipped within a trajectory");
}

/// What `examples/own_device.rs` does that falsifies bits; `None` if it is not built.
fn drilled(drill: &str, text: &str, ranks: usize) -> Option<Ended> {
    let program = Path::new(env!("CARGO_BIN_EXE_hmc")).with_file_name("examples").join("own_device");
    if !program.exists() {
        println!("skipped: examples are not built");
        return None;
    }
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", text);
    let arguments: Vec<&str> = drill.split(' ').chain([&*input]).collect();
    let ended = scratch.start_program(&program, ranks, &arguments, &[]).wait();
    let told = format!("a drill: bits on rank {} are falsified", arguments[1]);
    assert!(ended.err.contains(&told), "{ended:?}");
    Some(ended)
}

/// A device that makes mistakes all the time is named at the start, one that makes them now and then by its trajectory.
#[test]
fn a_bad_device_is_named() {
    let Some(ended) = drilled("field 1 3", &on(PURE, 2), 2) else { return };
    ended.failed(1, &["error: the self-test of the devices has found a fault:\n  rank 1 on "]);
    assert!(!ended.err.contains("rank 0 on "), "{ended:?}");
    // What it does not do in the test shows in a trajectory.
    let Some(ended) = drilled("field 1 200", &on(&with(PURE, "trajectories", "20"), 2), 2) else { return };
    ended.failed(
        1,
        &["is not what it should be: walked twice from the same links, ", "a self-test of the devices finds"],
    );
    // Nobody looks, but a file is written whose plaquette, which the device found, is not that of its links.
    let careless = format!("{}self_test = \"off\"\n", on(&with(PURE, "verify_every", "0"), 0));
    let Some(ended) = drilled("field 0 3", &careless, 0) else { return };
    ended.failed(1, &[".h5.tmp: damaged: plaquette = ", " in the header, "]);
    // A GPU that differs from the CPU beside it.
    if has_emulation() {
        let Some(ended) = drilled("field 0 3", &with(&on(PURE, 0), "device", "\"emulated\""), 0) else {
            return;
        };
        ended.failed(1, &["error: the self-test of the devices has found a fault:\n  rank 0 on "]);
    }
}

/// A wire that changes bits shows in a trajectory.
#[test]
fn a_bad_wire_is_found() {
    let Some(ended) = drilled("halo 1 50", &on(PURE, 2), 2) else { return };
    ended.failed(1, &["is not what it should be: walked twice from the same links, ", "finds nothing now"]);
}
