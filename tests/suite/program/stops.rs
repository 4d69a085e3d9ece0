//! What ends a run early: signals, and a wall time that no measurement fits.

use super::folder::{FOLDER, PURE, same};
use super::{Scratch, on, read_chain, signal, with};
use std::time::{Duration, Instant};

/// A signal is answered when it comes, and a second SIGINT ends the job at once; the chain goes on from what there is.
#[test]
fn interrupts_are_answered_at_once() {
    let scratch = Scratch::new();
    let text = with(&with(PURE, "steps", "100000"), "trajectories", "2");
    let input = scratch.write("run.toml", on(&text, 0));
    let mut job = scratch.start(0, &[&input]);
    job.await_words("trajectories to go");
    let folder = scratch.at(FOLDER);
    assert!(job.wait_until(|_| folder.join("jobs.jsonl").exists()));
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    signal(job.ranks()[0], libc::SIGINT);
    assert!(job.wait_until(|job| job.warned().contains("SIGINT: the run ends after this trajectory")));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(job.is_running());
    signal(job.ranks()[0], libc::SIGINT);
    let ended = job.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    scratch.chain(0, &on(PURE, 0));
}

/// F6: a signal, of whatever kind, ends a measurement within two seconds; it is made when the chain goes on.
#[test]
fn a_signal_ends_a_measurement() {
    let text = |t_max: &str| with(&with(&with(PURE, "t_max", t_max), "step", "0.01"), "every", "1");
    // The flow of a trajectory takes far longer than the test.
    let slow = text("20.0").replace("[measure.flow]", "[measure.flow]\nevery = 500");
    let reference = Scratch::new();
    reference.chain(0, &on(&with(&slow, "trajectories", "2"), 0));
    for (number, ranks) in [(libc::SIGTERM, 0), (libc::SIGUSR1, 2), (libc::SIGHUP, 0), (libc::SIGINT, 0)] {
        let scratch = Scratch::new();
        let folder = scratch.at(FOLDER);
        let input = scratch.write("run.toml", on(&with(&slow, "trajectories", "2"), ranks));
        let mut job = scratch.start(ranks, &[&input]);
        job.await_words("1/2 ");
        // The measurement has begun once the configuration is there.
        assert!(job.wait_until(|_| folder.join("checkpoint/ckpt_000001.h5").exists()));
        std::thread::sleep(Duration::from_millis(30));
        let start = Instant::now();
        signal(*job.ranks().last().unwrap(), number);
        let ended = job.wait();
        ended.succeeded();
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert!(ended.out.contains("stops in the measurement of trajectory 1: SIG"), "{ended:?}");
        let chain = read_chain(&folder);
        assert_eq!((chain.history.len(), chain.measurements.len()), (1, 0));
        // The next job makes it, unless it has to stop there as well.
        let mut job = scratch.start(ranks, &[&input]);
        job.await_words("resumes after 1 of 2");
        std::thread::sleep(Duration::from_millis(30));
        signal(*job.ranks().last().unwrap(), number);
        let ended = job.wait();
        ended.succeeded();
        assert!(ended.out.contains("stops while records are made again: SIG"), "{ended:?}");
        let ended = scratch.chain(ranks, &on(&with(&slow, "trajectories", "2"), ranks));
        assert!(ended.out.contains("trajectory 1: its measurement is made"), "{ended:?}");
        same(&scratch, &reference);
    }
}

/// A measurement that no job's time is enough for does not go on for ever.
#[test]
fn wall_time_ends_a_measurement() {
    let scratch = Scratch::new();
    let text = with(&with(&with(PURE, "t_max", "4000.0"), "seed", "3\nwall_time = \"3s\""), "every", "1");
    let input = scratch.write("run.toml", on(&text, 0));
    let start = Instant::now();
    let ended = scratch.run(0, &[&input]);
    ended.succeeded();
    assert!(ended.out.contains("stops in the measurement of trajectory 1: wall_time is near"), "{ended:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
    scratch
        .run(0, &[&input])
        .failed(2, &["wall_time is near before a single record of the chain was made again"]);
}
