//! The same bits on every choice of ranks, lanes, threads and device: links, dH, accepted, plaquette,
//! unitarity and all measurements.
//!
//! There is no tolerance here: every sum is exact, and every site is computed by the same operations.

use crate::chains::{DOMAIN_WALL, OTHER, PRODUCTION, STAGGERED, multigrid, walls};
use crate::program::{Chain, Job, Scratch, on, parallel, quickstart, read_chain, with};
use hmc::device::{Lanes, gpu_count, has_emulation, lane_counts};
use hmc::lattice::{LaneGrid, Partition};
use std::path::PathBuf;
use std::time::Instant;

const GRIDS: [[usize; 4]; 6] =
    [[1, 1, 1, 1], [1, 1, 1, 2], [2, 1, 1, 1], [1, 2, 2, 1], [4, 1, 1, 1], [1, 1, 2, 2]];
const LANES: [usize; 4] = [1, 4, 8, 16];

/// Two trajectories of the quickstart, of which the second may be refused.
pub(super) fn two_trajectories() -> String {
    with(&with(&quickstart(), "trajectories", "2"), "thermalisation", "1")
}

/// What computes a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum On {
    /// `lanes` 0: the best.
    Cpu { lanes: usize, threads: usize },
    /// A GPU's kernels; `transport` as a GPU's, or `mixed`, `mixed nccl`: peer within nodes of two ranks, staged or by NCCL
    /// between them.
    Emulated { transport: &'static str },
    /// How halos travel: `staged`, `peer` or, all of them, `nccl`.
    Gpu { transport: &'static str },
}
use On::{Cpu, Emulated, Gpu};

pub(super) const REFERENCE: On = Cpu { lanes: 0, threads: 1 };

impl On {
    /// `[parallel]` of a run.
    pub(super) fn input(self, grid: [usize; 4]) -> String {
        match self {
            Cpu { lanes, threads } => parallel(grid, lanes, threads),
            Emulated { transport } => {
                let asked = match transport {
                    "mixed" => "auto",
                    "mixed nccl" => "nccl",
                    other => other,
                };
                format!(
                    "[parallel]\ndevice = \"emulated\"\ngrid = {grid:?}\ntransport = \"{asked}\"\nthreads = 1\n\
                     self_test = \"off\"\n"
                )
            }
            Gpu { transport } => {
                format!("[parallel]\ndevice = \"cuda\"\ngrid = {grid:?}\ntransport = \"{transport}\"\n")
            }
        }
    }

    /// What its environment has besides.
    pub(super) fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Emulated { transport: "mixed" | "mixed nccl" } => &[("HMC_NODE_RANKS", "2")],
            // No rank has a peer.
            Emulated { transport: "nccl" } | Gpu { transport: "nccl" } => &[("HMC_NODE_RANKS", "1")],
            Cpu { .. } | Emulated { .. } | Gpu { .. } => &[],
        }
    }

    /// What the program says it ran on: a key that is not obeyed would compare a run with itself.
    fn is_told(self, grid: [usize; 4], out: &str) -> bool {
        let (ranks, shape) = (grid.iter().product::<usize>(), grid.map(|n| n.to_string()).join("x"));
        let first = out.lines().next().unwrap_or_default();
        let Some((on, device)) = first.split_once("; ") else { return false };
        let (cut, halos) = match ranks {
            1 => (" on 1 rank".to_owned(), String::new()),
            _ => (
                format!(" on {ranks} ranks as {shape}, halos "),
                on.rsplit("halos ").next().unwrap_or_default().to_owned(),
            ),
        };
        let travels = |transport: &str| {
            let told = match transport {
                "peer" => "peer to peer;",
                "nccl" => "by NCCL;",
                "mixed" => "peer to peer among ranks 0 1 | 2 3, staged between them;",
                "mixed nccl" => "peer to peer among ranks 0 1 | 2 3, by NCCL between them;",
                other => &format!("{other};"),
            };
            ranks == 1 || format!("{halos};") == told
        };
        let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        on.contains(&cut)
            && match self {
                Cpu { lanes, threads } => {
                    device.starts_with(&format!("CPU, {}, ", many(threads, "thread")))
                        && (lanes == 0 || device.contains(&format!(", {} (", Lanes::from(lanes))))
                }
                Emulated { transport } => device.starts_with("emulated GPU") && travels(transport),
                Gpu { transport } => {
                    !["CPU", "emulated"].iter().any(|other| device.starts_with(other)) && travels(transport)
                }
            }
    }
}

/// One run with its results.
pub(super) struct Run {
    scratch: Scratch,
    folder: PathBuf,
    chain: Chain,
}

impl Run {
    /// Two trajectories, or the first of them alone on an emulated GPU, which is slow.
    pub(super) fn new(text: &str, grid: [usize; 4], on: On) -> Self {
        match on {
            Emulated { .. } => Self::of(&with(text, "trajectories", "1"), 1, grid, on, |_| {}),
            Cpu { .. } | Gpu { .. } => Self::of(text, 2, grid, on, |_| {}),
        }
    }

    /// Two trajectories, and what is to be done while they are walked.
    pub(super) fn while_running(
        text: &str,
        grid: [usize; 4],
        on: On,
        meanwhile: impl FnOnce(&mut Job),
    ) -> Self {
        Self::of(text, 2, grid, on, meanwhile)
    }

    fn of(
        text: &str,
        trajectories: usize,
        grid: [usize; 4],
        on: On,
        meanwhile: impl FnOnce(&mut Job),
    ) -> Self {
        let scratch = Scratch::new();
        let ranks = grid.iter().product();
        let input = scratch.write("run.toml", format!("{text}\n{}", on.input(grid)));
        let mut job = scratch.start_with(if ranks == 1 { 0 } else { ranks }, &[&input], on.variables());
        meanwhile(&mut job);
        let ended = job.wait();
        ended.succeeded();
        assert!(on.is_told(grid, &ended.out), "{on:?} {grid:?}: {ended:?}");
        let folder = scratch.at("ensembles/quickstart");
        let chain = read_chain(&folder);
        let found = (chain.history.len(), chain.measurements.lines().count());
        assert_eq!(found, (trajectories, trajectories), "{chain:?}");
        Self { scratch, folder, chain }
    }

    /// The configuration after so many trajectories.
    fn links(&self, trajectories: usize) -> PathBuf {
        self.folder.join(format!("cfg/cfg_{trajectories:06}.h5"))
    }

    /// What differs from the same trajectories of the reference, in words; empty where nothing does.
    pub(super) fn differences(&self, reference: &Self) -> String {
        let mut found = Vec::new();
        let trajectories = self.chain.history.len();
        let links = [self, reference].map(|run| run.links(trajectories));
        let [made, expected] = links.each_ref().map(|path| self.scratch.checksum(path));
        if made != expected {
            found.push(format!("links_checksum {made} instead of {expected}"));
        }
        let files = links.map(|path| path.display().to_string());
        let compared = self.scratch.run(0, &["compare", &files[0], &files[1]]);
        if compared.code != Some(0) {
            found.push(compared.err.trim().to_owned());
        }
        for (row, expected) in self.chain.history.iter().zip(&reference.chain.history) {
            if row != expected {
                found.push(format!("history {row} instead of {expected}"));
            }
        }
        let measured = self.chain.measurements.lines();
        if !measured.eq(reference.chain.measurements.lines().take(trajectories)) {
            found.push("measurements.jsonl".into());
        }
        found.join("; ")
    }
}

/// Compares choices of grid, lanes and threads with one rank; and their grids on GPUs where there are any, with
/// every transport. Emulated GPUs, which are slow, take the first two grids that are cut.
fn same(text: &str, choices: &[([usize; 4], usize, usize)]) {
    let reference = Run::new(text, [1; 4], REFERENCE);
    let available = lane_counts();
    let mut grids = Vec::new();
    for &(grid, lanes, threads) in choices {
        // A grid is tried whatever the processor's lanes are.
        let lanes = if available.contains(&lanes) {
            lanes
        } else {
            println!("skipped: {lanes} lanes are not on this processor");
            0
        };
        let differences = Run::new(text, grid, Cpu { lanes, threads }).differences(&reference);
        assert_eq!(differences, "", "grid {grid:?}, {lanes} lanes, {threads} threads");
        if !grids.contains(&grid) {
            grids.push(grid);
        }
    }
    let mut devices = Vec::new();
    if has_emulation() {
        let mut cut = grids.iter().filter(|grid| **grid != [1; 4]);
        let first = cut.next().map(|grid| (grid, "peer"));
        let second = cut
            .next()
            .map(|grid| (grid, if grid.iter().product::<usize>() == 4 { "mixed nccl" } else { "nccl" }));
        devices
            .extend(first.into_iter().chain(second).map(|(&grid, transport)| (grid, Emulated { transport })));
    } else {
        println!("skipped: the same bits of an emulated GPU: this build has none");
    }
    match gpu_count() {
        Ok(count) => devices.extend(grids.iter().flat_map(|&grid| {
            let transports = match grid.iter().product() {
                1 => &["staged"][..],
                ranks if ranks <= count => &["staged", "peer", "nccl"],
                _ => &["staged", "peer"],
            };
            transports.iter().map(move |transport| (grid, Gpu { transport }))
        })),
        Err(none) => println!("skipped: the same bits on a GPU: {none}"),
    }
    let mut wrong = Vec::new();
    for (grid, on) in devices {
        let start = Instant::now();
        let differences = Run::new(text, grid, on).differences(&reference);
        println!("{grid:?} {on:?}, {:.1} s: '{differences}'", start.elapsed().as_secs_f64());
        if !differences.is_empty() {
            wrong.push(format!("{grid:?} {on:?}: {differences}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every grid, every lane count and both thread counts, though not each with each.
#[test]
fn quickstart_has_the_same_bits_everywhere() {
    let choices = [
        ([1, 1, 1, 1], 1, 2),
        ([1, 1, 1, 1], 16, 1),
        ([1, 1, 1, 2], 4, 2),
        ([2, 1, 1, 1], 8, 1),
        ([1, 2, 2, 1], 1, 1),
        ([4, 1, 1, 1], 16, 1),
        ([1, 1, 2, 2], 4, 1),
    ];
    assert!(GRIDS.iter().all(|grid| choices.iter().any(|choice| choice.0 == *grid)));
    assert!(LANES.iter().all(|lanes| choices.iter().any(|choice| choice.1 == *lanes)));
    same(&two_trajectories(), &choices);
}

#[test]
fn the_other_options_have_the_same_bits() {
    same(OTHER, &[([1, 1, 1, 1], 1, 2), ([1, 1, 1, 2], 8, 1), ([4, 1, 1, 1], 4, 1), ([1, 2, 2, 1], 16, 1)]);
}

#[test]
fn production_has_the_same_bits() {
    let production = |block: &str, precision: &str| {
        let own = format!("{{ block = {block}, k_max = 8, n_mr = 4 }}\nprecision = \"double-{precision}\"");
        with(PRODUCTION, "gcr-dd", &own)
    };
    same(PRODUCTION, &[([1, 1, 1, 1], 16, 2), ([4, 1, 1, 1], 4, 1), ([1, 2, 2, 1], 8, 1)]);
    same(&production("[2, 2, 2, 4]", "half-half"), &[([1, 1, 1, 1], 1, 2), ([1, 1, 1, 2], 8, 1)]);
    // A block that is the whole box of a rank, in a precision that hides no rounding of a block's sums.
    same(&production("[8, 4, 4, 4]", "double-double"), &[([1, 1, 1, 2], 4, 1)]);
}

/// Aggregates lie within ranks, across lanes. GPUs that are peers divide the coarse system; with four of them, set-up once
/// raced.
#[test]
fn multigrid_has_the_same_bits() {
    same(&multigrid(), &[([1, 1, 1, 1], 1, 2), ([1, 2, 2, 1], 16, 1), ([1, 1, 2, 2], 8, 1)]);
}

/// Time is cut and not, over ranks and lanes.
#[test]
fn walls_have_the_same_bits() {
    same(&walls(), &[([1, 1, 1, 1], 1, 2), ([1, 1, 1, 2], 16, 1)]);
}

/// A trajectory makes its space anew, so nothing of it is missed by a job that goes on.
#[test]
fn a_resumed_chain_makes_the_same_multigrid() {
    let [whole, parts] = [(); 2].map(|()| Scratch::new());
    whole.chain(0, &on(&multigrid(), 0));
    parts.chain(0, &on(&with(&multigrid(), "trajectories", "1"), 0));
    let second = parts.chain(0, &on(&multigrid(), 0)).out;
    assert!(second.contains("2/2"), "{second}");
    let [made, expected] = [&parts, &whole].map(|of| read_chain(&of.at("ensembles/quickstart")));
    assert_eq!(made.history, expected.history);
}

#[test]
fn staggered_quarks_have_the_same_bits() {
    same(
        STAGGERED,
        &[([1, 1, 1, 1], 1, 2), ([1, 1, 1, 2], 4, 1), ([2, 1, 1, 2], 1, 1), ([2, 1, 1, 1], 8, 1)],
    );
}

/// With extents of 2 in cut directions.
#[test]
fn domain_wall_quarks_have_the_same_bits() {
    same(DOMAIN_WALL, &[([1, 1, 1, 1], 1, 2), ([4, 1, 1, 1], 8, 1), ([1, 2, 2, 1], 8, 1)]);
}

/// The comparison itself can fail: one other bit in the coupling is seen in all that is compared.
#[test]
fn another_coupling_has_other_bits() {
    let [a, b] = ["5.3", "5.300000000000001"].map(|beta| {
        let text = with(&with(&two_trajectories(), "beta", beta), "extents", "[4, 4, 4, 4]");
        Run::new(&text, [1; 4], REFERENCE)
    });
    let differences = a.differences(&b);
    for part in ["links_checksum", "reals differ", "history 1,", "history 2,", "measurements.jsonl"] {
        assert!(differences.contains(part), "no '{part}' in: {differences}");
    }
}

/// Whether a rank's box can be divided among so many lanes.
fn fit(text: &str, grid: [usize; 4], lanes: usize) -> bool {
    let (_, rest) = text.split_once("extents = [").expect("the lattice");
    let (extents, _) = rest.split_once(']').expect("its extents");
    let extents: Vec<usize> = extents.split(", ").map(|n| n.parse().unwrap()).collect();
    let partition = Partition::new(extents.try_into().unwrap(), grid, grid.iter().product(), 0).unwrap();
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    LaneGrid::choose(partition.local(), cut, lanes).is_some()
}

/// Every grid with every lane count and both thread counts.
fn matrix(text: &str) {
    let reference = Run::new(text, [1; 4], REFERENCE);
    let available = lane_counts();
    let mut wrong = 0;
    println!("\nranks    lanes  threads  links_checksum    seconds  differences");
    for grid in GRIDS {
        for lanes in LANES {
            if !available.contains(&lanes) {
                println!("skipped: {lanes} lanes are not on this processor");
                continue;
            }
            if !fit(text, grid, lanes) {
                println!("{lanes} lanes do not fit a rank's box with grid {grid:?}");
                continue;
            }
            for threads in [1, 2] {
                let start = Instant::now();
                let run = Run::new(text, grid, Cpu { lanes, threads });
                let differences = run.differences(&reference);
                wrong += usize::from(!differences.is_empty());
                println!(
                    "{}  {lanes:5}  {threads:7}  {}  {:7.1}  {}",
                    grid.map(|n| n.to_string()).join("."),
                    run.scratch.checksum(&run.links(2)),
                    start.elapsed().as_secs_f64(),
                    if differences.is_empty() { "none" } else { &differences },
                );
            }
        }
    }
    for row in &reference.chain.history {
        println!("reference: {row}");
    }
    assert_eq!(wrong, 0, "runs that differ from the reference");
}

/// `make bits`
#[test]
#[ignore = "takes five minutes"]
fn whole_matrix() {
    matrix(&two_trajectories());
}

/// `make bits`
#[test]
#[ignore = "takes half an hour"]
fn whole_matrix_of_domain_wall_quarks() {
    matrix(DOMAIN_WALL);
}
