//! A process that crashes says where, once, and the chain goes on afterwards.

use super::chaos::number_of;
use super::{Ended, Scratch, on, quickstart, read_chain, signal, with};
use std::fs;

/// That one process has told of a crash with all of `parts`, and by which frames.
fn told_once(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.err.matches(" has crashed: ").count(), 1, "{ended:?}");
    let frame = if cfg!(target_env = "gnu") { "hmc(+0x" } else { "" };
    for part in [parts, &[frame, "docs/troubleshooting.md, 'A crash'"]].concat() {
        assert!(ended.err.contains(part), "no '{part}' in {ended:?}");
    }
}

fn small(trajectories: usize) -> String {
    let text = with(&quickstart(), "extents", "[4, 4, 4, 4]");
    with(&text, "trajectories", &trajectories.to_string())
}

#[test]
fn a_rank_that_crashes_says_where_and_the_chain_goes_on() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let scratch = Scratch::new();
    let folder = scratch.at("ensembles/quickstart");
    let input = scratch.write("run.toml", on(&small(100_000), 2));
    for (number, name, row) in
        [(libc::SIGSEGV, "SIGSEGV", " 3/100000"), (libc::SIGABRT, "SIGABRT", " 6/100000")]
    {
        let mut job = scratch.start(2, &[&input]);
        job.await_words(row);
        let ranks = job.ranks();
        let second = ranks.into_iter().find(|rank| number_of(*rank) == "1").expect("two ranks");
        signal(second, number);
        let ended = job.wait();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        let place = format!("rank 1 of 2 on {}, ", host.trim());
        told_once(&ended, &[name, " from process ", &place, " trajectory "]);
        // The launcher sees the signal as without a handler.
        assert!(ended.err.contains(&format!("signal {number} ")), "{ended:?}");
    }
    let rows = read_chain(&folder).history.len() + 2;
    scratch.chain(2, &on(&small(rows), 2));
    let whole = Scratch::new();
    whole.chain(0, &on(&small(rows), 0));
    assert_eq!(read_chain(&folder), read_chain(&whole.at("ensembles/quickstart")));
}

/// Of a thread of the pool, which has a stack of its own; the standard library says that it was the stack.
#[test]
fn a_stack_that_overflows_is_told() {
    let scratch = Scratch::new();
    let input = scratch.write("run.toml", on(&small(10), 0));
    let ended = scratch.start_with(0, &[&input], &[("RUST_MIN_STACK", "40000")]).wait();
    assert_eq!(ended.code, None, "{ended:?}");
    let place = ", before the first trajectory of a chain";
    told_once(&ended, &["SIGSEGV at address 0x", "rank 0 of 1 on ", place, "has overflowed its stack"]);
}
