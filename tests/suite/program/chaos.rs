//! Time decides nothing: ranks that stand still now and then end with the same bits, and a rank that dies ends all.

use super::bits::{On, REFERENCE, Run, two_trajectories};
use super::{Job, Scratch, signal, with};
use crate::chains::{DOMAIN_WALL, STAGGERED};
use hmc::device::has_emulation;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A random time, short times more often.
fn moment(rng: &mut ChaCha12Rng, longest: Duration) -> Duration {
    longest / (1 + rng.next_u32() % 64)
}

/// Stops a random rank for a moment, then lets all run for one, until the end: whatever that rank sends, raises, packs or
/// adds comes late. Returns the number of pauses.
fn pause(job: &mut Job, seed: u64) -> usize {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    job.await_words("; ");
    let ranks = job.ranks();
    let mut pauses = 0;
    while job.is_running() {
        let rank = ranks[rng.next_u32() as usize % ranks.len()];
        signal(rank, libc::SIGSTOP);
        sleep(moment(&mut rng, Duration::from_millis(20)));
        signal(rank, libc::SIGCONT);
        sleep(moment(&mut rng, Duration::from_millis(10)));
        pauses += 1;
    }
    pauses
}

/// Messages of CPUs; halos and sums in each other's memory, those through the host, and of four ranks both.
fn ways(grid: [usize; 4]) -> Vec<([usize; 4], On)> {
    let four = grid.iter().product::<usize>() == 4;
    let transports =
        ["peer", "staged", "mixed"].into_iter().filter(|transport| *transport != "mixed" || four);
    let emulated: Vec<On> = transports.map(|transport| On::Emulated { transport }).collect();
    let all = [On::Cpu { lanes: 0, threads: 1 }]
        .into_iter()
        .chain(emulated.into_iter().filter(|_| has_emulation()));
    all.map(|on| (grid, on)).collect()
}

fn same_with_pauses(text: &str, ways: &[([usize; 4], On)], seed: u64) {
    if !has_emulation() {
        println!("skipped: an emulated GPU: this build has none");
    }
    let reference = Run::new(text, [1; 4], REFERENCE);
    for (number, &(grid, on)) in (0..).zip(ways) {
        let (start, mut pauses) = (Instant::now(), 0);
        let run = Run::while_running(text, grid, on, |job| pauses = pause(job, seed + number));
        println!("{grid:?} {on:?}: {pauses} pauses in {:.1} s", start.elapsed().as_secs_f64());
        assert_eq!(
            run.differences(&reference),
            "",
            "{grid:?} {on:?}, {pauses} pauses of seed {}",
            seed + number
        );
        assert!(pauses > 10, "{grid:?} {on:?}: {pauses} pauses");
    }
}

#[test]
fn ranks_that_stand_still_now_and_then_have_the_same_bits() {
    let small = with(&two_trajectories(), "extents", "[4, 4, 4, 8]");
    same_with_pauses(&small, &ways([1, 1, 1, 2]), 1);
}

/// `make bits`
#[test]
#[ignore = "takes minutes"]
fn all_families_stand_still_now_and_then() {
    for seed in 0..4 {
        same_with_pauses(&two_trajectories(), &ways([1, 1, 2, 2]), 100 * seed);
        same_with_pauses(STAGGERED, &ways([2, 1, 1, 2]), 100 * seed + 10);
        same_with_pauses(DOMAIN_WALL, &ways([1, 2, 2, 1]), 100 * seed + 20);
    }
}

/// The longest time from a rank's death to the end of all.
const LIMIT: Duration = Duration::from_secs(10);

/// The rank that a process is, as its launcher told it.
pub(super) fn number_of(process: i32) -> String {
    let variables = std::fs::read_to_string(format!("/proc/{process}/environ")).unwrap();
    let mut values = variables.split('\0').filter_map(|variable| variable.split_once('='));
    let value = values.find(|(name, _)| ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].contains(name));
    value.expect("a launcher of MPI").1.to_owned()
}

/// Whatever the ranks do, waiting for messages or for flags in their memory.
#[test]
fn a_rank_that_dies_ends_all_within_seconds() {
    let text = with(&two_trajectories(), "trajectories", "100000");
    for (way, (grid, on)) in (0..).zip(ways([1, 1, 1, 2])) {
        let scratch = Scratch::new();
        let input = scratch.write("run.toml", format!("{text}\n{}", on.input(grid)));
        let mut job = scratch.start(2, &[&input]);
        job.await_words("trajectories to go");
        sleep(Duration::from_millis(300 + 70 * way));
        let (ranks, start) = (job.ranks(), Instant::now());
        assert_eq!(ranks.len(), 2, "{on:?}");
        let number = number_of(ranks[1]);
        signal(ranks[1], libc::SIGKILL);
        let ended = job.wait();
        // The launcher may be gone a little earlier than the ranks.
        while ranks.iter().any(|&rank| super::is_alive(rank)) && start.elapsed() < LIMIT {
            sleep(Duration::from_millis(1));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{on:?}: {seconds:.2} s");
        assert!(start.elapsed() < LIMIT, "{on:?}: {seconds} s: {ended:?}");
        assert_ne!(ended.code, Some(0), "{ended:?}");
        // The launcher tells which one it was.
        assert!(ended.err.to_lowercase().contains(&format!("rank {number} ")), "{number}: {ended:?}");
    }
}
