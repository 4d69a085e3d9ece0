//! `--check` as the judge of size, for GPUs that are not there: what fits is told with its memory, all else refused by its name.

use super::{Scratch, on, with};
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// GPUs of 80 GB, four on a node.
const GPUS: [&str; 6] = ["--device", "cuda", "--device-memory", "80GB", "--node-ranks", "4"];
const SHIPPED: [&str; 19] = [
    "quickstart",
    "quenched-b6.0",
    "clover-nf2-8x8",
    "clover-nf2-32c64",
    "clover-nf2p1-8x16",
    "clover-nf2p1-32c64",
    "clover-nf2-open-8x16",
    "tm-nf2-4x4",
    "tm-nf2p1p1-4x4",
    "tm-nf2p1p1-48c96",
    "clover-nf2p1-open-32c96",
    "swf-nf3-8x8",
    "swf-nf3-24c96",
    "mobius-2p1-small",
    "dwf-2p1-16c32",
    "odwf-nf2-16c32",
    "hisq-2p1-6x6",
    "hisq-2p1p1-physical-64c96",
    "asqtad-2p1",
];
const FAMILIES: [&str; 8] = [
    "pure gauge",
    "Wilson",
    "clover, gcr-dd",
    "clover, bicgstab",
    "clover, multigrid",
    "domain wall",
    "HISQ",
    "asqtad",
];
const LATTICES: [[usize; 4]; 8] = [
    [24, 24, 24, 48],
    [32, 32, 32, 64],
    [48, 48, 48, 96],
    [64, 64, 64, 96],
    [64, 64, 64, 128],
    [96, 96, 96, 192],
    [128, 128, 128, 256],
    [256, 256, 256, 512],
];
const RANKS: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];

/// A shipped input.
fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("inputs/{name}.toml"));
    std::fs::read_to_string(path).unwrap()
}

/// The text with `to` in place of `from`, which it must have.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no '{from}' in {text}");
    text.replace(from, to)
}

/// A chain of a family, as large ones are run.
fn chain(family: &str) -> String {
    const BICGSTAB: &str = "method = \"bicgstab\"\nprecision = \"double-half\"\n";
    let clover = shipped("clover-nf2p1-32c64");
    match family {
        "pure gauge" => shipped("quenched-b6.0"),
        "Wilson" => {
            let lines = clover.lines().filter(|line| !line.starts_with("c_sw"));
            let text: String = lines.map(|line| format!("{line}\n")).collect();
            replaced(&text, "wilson-clover", "wilson")
        }
        "clover, gcr-dd" => {
            replaced(&clover, BICGSTAB, "method = \"gcr-dd\"\nprecision = \"double-half-half\"\n")
        }
        "clover, bicgstab" => clover,
        "clover, multigrid" => {
            let own = "method = \"multigrid\"\nprecision = \"double-single-half\"\nmultigrid = { aggregate = [4, 4, 4, 4] }\n";
            replaced(&clover, BICGSTAB, own)
        }
        "domain wall" => shipped("dwf-2p1-16c32"),
        "HISQ" => shipped("hisq-2p1p1-physical-64c96"),
        "asqtad" => shipped("asqtad-2p1"),
        _ => panic!("no family {family}"),
    }
}

/// The same on a lattice of these extents.
fn on_lattice(text: &str, extents: [usize; 4]) -> String {
    let own = text.lines().find(|line| line.starts_with("extents = ")).expect("extents");
    replaced(text, own, &format!("extents = {extents:?}"))
}

/// What `--check` says of a chain on so many GPUs: the memory of one, or else why it is refused, in a word and in full.
fn judged(scratch: &Scratch, text: &str, ranks: usize) -> Result<String, (&'static str, String)> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{}.toml", NUMBER.fetch_add(1, Ordering::Relaxed));
    let input = scratch.write(&name, text);
    let ended = scratch.run(0, &[&["--check", &input, "--ranks", &ranks.to_string()], &GPUS[..]].concat());
    for fault in ["internal fault", "panicked", "allocation"] {
        assert!(!ended.err.contains(fault), "{ranks} ranks: {ended:?}\n{text}");
    }
    // The disk of this machine is no matter here.
    let is_error = |line: &&str| !line.starts_with("warning: ") && !line.contains("the file system has");
    let errors: Vec<&str> = ended.err.lines().filter(is_error).collect();
    if errors.is_empty() {
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let line = ended.out.lines().find(|line| line.starts_with("fits "));
        let words: Vec<&str> = line.expect("that it fits").split_whitespace().collect();
        return Ok(words[1..3].join(" "));
    }
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let why = errors.join("\n");
    let kinds = [
        ("are needed by 1 rank on a GPU", "memory"),
        ("more sites than a rank takes", "sites"),
        ("more links in a lane than a kernel takes", "links"),
        ("a kernel counts up to", "launch"),
        ("cannot be cut", "cut"),
        ("is thinner where it is cut", "thin"),
        ("aggregates of", "aggregate"),
    ];
    let kind = kinds.into_iter().find(|(words, _)| why.contains(words)).map(|(_, kind)| kind);
    Err((kind.unwrap_or_else(|| panic!("{ranks} ranks: {why}\n{text}")), why))
}

/// Asserts what is said of a chain on a lattice for so many ranks: that it fits, or these words.
fn require(scratch: &Scratch, text: &str, extents: [usize; 4], ranks: usize, refused: Option<&str>) {
    let found = judged(scratch, &on_lattice(text, extents), ranks);
    match (refused, &found) {
        (None, Ok(_)) => {}
        (Some(words), Err((_, why))) if why.contains(words) => {}
        _ => panic!("{extents:?} on {ranks}: {found:?}, not {refused:?}"),
    }
}

#[test]
fn sizes_are_judged_without_a_gpu() {
    let scratch = Scratch::new();
    let (links, sites) = ("more links in a lane than a kernel takes", "more sites than a rank takes");
    let many = Some("a kernel counts up to");
    let memory = Some(
        "are needed by 1 rank on a GPU (600.0 MB a rank for driver and kernels), which has 80.00 GB; take more GPUs",
    );
    let pure = chain("pure gauge");
    for (extents, ranks, refused) in [
        ([24, 24, 24, 48], 1, None),
        ([24, 24, 24, 48], 4096, Some("cannot be cut evenly over 4096 ranks")),
        ([64, 64, 64, 128], 1, None),
        ([96, 96, 96, 192], 1, memory),
        ([96, 96, 96, 192], 16, None),
        ([128, 128, 128, 256], 1, Some(links)),
        ([256, 256, 256, 512], 4, Some(sites)),
        ([256, 256, 256, 512], 16, Some(links)),
        ([256, 256, 256, 512], 256, memory),
        ([256, 256, 256, 512], 4096, None),
        ([4096, 4096, 4096, 4096], 1, Some(sites)),
    ] {
        require(&scratch, &pure, extents, ranks, refused);
    }
    let walls = chain("domain wall");
    for (extents, ranks, refused) in [
        ([24, 24, 24, 48], 1, None),
        ([64, 64, 64, 128], 16, memory),
        ([64, 64, 64, 128], 64, None),
        ([128, 128, 128, 256], 4, many),
        ([256, 256, 256, 512], 64, many),
        ([256, 256, 256, 512], 4096, memory),
    ] {
        require(&scratch, &walls, extents, ranks, refused);
    }
    require(&scratch, &chain("asqtad"), [16; 4], 4096, Some("is thinner where it is cut"));
    require(&scratch, &chain("clover, gcr-dd"), [64, 64, 64, 128], 16, None);
    require(&scratch, &chain("HISQ"), [64, 64, 64, 96], 4, None);
}

/// What is told is what a run takes, by the system, but for the program itself.
#[test]
fn memory_is_as_told() {
    let number = |text: &str, before: &str| -> f64 {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no '{before}' in {text}"));
        let number = rest.split_once(" MB").and_then(|(number, _)| number.parse().ok());
        number.unwrap_or_else(|| panic!("{text}"))
    };
    let all = "seed = 60\nsave_format = [\"ildg\", \"nersc\", \"milc\", \"openqcd\"]";
    let text = replaced(&on_lattice(&chain("pure gauge"), [16; 4]), "seed = 60", all);
    let text = with(&with(&with(&text, "trajectories", "1"), "thermalisation", "0"), "save_every", "1");
    let verified = replaced(&text, "[hmc]", "[hmc]\nverify_every = 1");
    for text in [text, verified] {
        let scratch = Scratch::new();
        let input = scratch.write("run.toml", on(&text, 0));
        let told = number(&scratch.run(0, &["--check", &input]).out, "per rank on a CPU ");
        let ended = scratch.run(0, &["--verbose", &input]);
        ended.succeeded();
        let taken = number(&ended.out, " on this rank; ");
        assert!((told + 15.0..told * 1.05 + 50.0).contains(&taken), "{taken} MB were taken, not {told} MB");
    }
}

/// Prints the whole table: GB of a GPU, driver and kernels included, or the word of the refusal.
#[test]
#[ignore = "minutes: a table to read"]
fn size_table() {
    let scratch = Scratch::new();
    let of_family = |family: &&'static str| LATTICES.map(|extents| (*family, Some(extents), &RANKS[..]));
    let shipped_ones = SHIPPED.iter().map(|name| (*name, None, &[1, 4, 8][..]));
    let cases: Vec<_> = FAMILIES.iter().flat_map(of_family).chain(shipped_ones).collect();
    let row = |(name, extents, ranks): (&str, Option<[usize; 4]>, &[usize])| {
        let text = extents.map_or_else(|| shipped(name), |extents| on_lattice(&chain(name), extents));
        let cell = |ranks: &usize| judged(&scratch, &text, *ranks).unwrap_or_else(|(why, _)| why.to_owned());
        let cells: Vec<String> = ranks.iter().map(cell).collect();
        let lattice = extents.map_or(format!("on {ranks:?}"), |[x, .., t]| format!("{x}^3x{t}"));
        format!("| {name} | {lattice} | {} |", cells.join(" | "))
    };
    let rows: Vec<String> = cases.par_iter().map(|case| row(*case)).collect();
    println!("| | lattice | {} |\n{}", RANKS.map(|ranks| ranks.to_string()).join(" | "), rows.join("\n"));
}
