//! `--check`: what it says of a chain, of memory and of GPUs that are not there.

use super::folder::{FOLDER, PURE, long, pure};
use crate::program::{contents, with};
use std::fs;
use std::path::Path;

/// `--check` says what would stand in the way, with the run's own exit code, and writes nothing.
#[test]
fn check_tells_the_truth() {
    let scratch = pure();
    let before = contents(&scratch.at(""));
    let check = |text: &str, more: &[&str]| {
        let input = scratch.write("check.toml", text);
        let ended = scratch.run(0, &[&["--check", &input], more].concat());
        fs::remove_file(scratch.at("check.toml")).unwrap();
        ended
    };
    let ended = check(&long(9), &[]);
    ended.succeeded();
    for part in [
        "resumes after 6 of 9",
        "per trajectory on 1 rank",
        "free in ensembles/pure",
        "nothing prevents the start\n",
    ] {
        assert!(ended.out.contains(part), "no '{part}' in {ended:?}");
    }
    let new = |key: &str, value: &str| with(&with(PURE, "name", "\"new\""), key, value);
    let start = |file: &str| new("seed", &format!("4\nstart = \"./{file}\""));
    check(&start("none.h5"), &[]).failed(1, &["none.h5: ", "No such file"]);
    let other = new("extents", "[4, 4, 4, 8]")
        .replace("seed = 3", "seed = 4\nstart = \"ensembles/pure/cfg/cfg_000001.h5\"");
    check(&other, &[]).failed(1, &["holds a lattice of 4x4x4x4, but 4x4x4x8 is asked for"]);
    check(&with(PURE, "beta", "6.0"), &[]).failed(2, &["other physics", "gauge.beta: was 5.7, is 6.0"]);
    check(&new("extents", "[128, 128, 128, 192]"), &[]).failed(2, &["are needed by 1 rank on a node"]);
    check(&new("extents", "[4096, 4096, 4096, 4096]"), &[]).failed(2, &["more sites than a rank takes"]);
    check(&new("seed", "4\nensembles = \"check.toml/none\""), &[])
        .failed(1, &["check.toml: cannot make a folder in"]);
    // What the run would write to.
    let lock = scratch.at(FOLDER).join("lock");
    let text = fs::read(&lock).unwrap();
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink("nowhere", &lock).unwrap();
    check(&long(9), &[]).failed(1, &["ensembles/pure/lock", "no plain file"]);
    fs::remove_file(&lock).unwrap();
    fs::write(&lock, text).unwrap();
    // A chain that is longer than the disk permits may begin.
    let ended = check(&with(&new("extents", "[32, 32, 32, 32]"), "trajectories", "10000000"), &[]);
    ended.succeeded();
    assert!(ended.out.ends_with("\nnothing prevents the start; warnings: 1 (disk)\n"), "{ended:?}");
    // GPUs that are not there.
    let cuda = new("seed", "4") + "[parallel]\ndevice = \"cuda\"\n";
    if hmc::device::gpu_count().is_err() {
        let ended = check(&cuda, &[]);
        ended.succeeded();
        assert!(ended.out.ends_with("\nnothing prevents the start; warnings: 1 (GPU)\n"), "{ended:?}");
        assert!(ended.out.contains("fits           if a GPU has 60"), "{ended:?}");
    }
    for text in [&cuda, &new("seed", "4")] {
        let ended = check(text, &["--device", "cuda", "--device-memory", "2GiB"]);
        ended.succeeded();
        let fits = " on a GPU (600.0 MB a rank for driver and kernels), which has 2.15 GB";
        assert!(ended.out.contains(fits), "{ended:?}");
        check(text, &["--device", "cuda", "--device-memory", "599.5MB"])
            .failed(2, &["are needed by 1 rank on a GPU", "which has 599.5 MB; take more GPUs"]);
    }
    check(&cuda, &["--device-memory", "80"]).failed(2, &["expected a size such as 80GB"]);
    // The memory of a node is shared.
    let small = new("extents", "[4, 4, 4, 8]");
    let on_nodes =
        |more: &[&str]| check(&small, &[&["--ranks", "4", "--device-memory", "150MB"], more].concat());
    on_nodes(&[]).failed(2, &["are needed by 4 ranks on a node", "which has 150.0 MB; take more nodes"]);
    on_nodes(&["--node-ranks", "2"]).succeeded();
    // Ranks that are not there.
    let ended = check(&new("extents", "[32, 32, 32, 64]"), &["--ranks", "64"]);
    ended.succeeded();
    assert!(ended.out.contains("ranks          64 as "), "{ended:?}");
    check(&new("extents", "[4, 4, 4, 4]"), &["--ranks", "3"]).failed(2, &["extents: "]);
    // Between nodes halos are messages, whose memory peers do not need.
    let gpus = new("extents", "[16, 16, 16, 32]") + "[parallel]\ndevice = \"cuda\"\n";
    let memory = |node: &str| {
        let ended = check(&gpus, &["--ranks", "8", "--node-ranks", node]);
        let line = ended.out.lines().find(|line| line.starts_with("memory ")).map(str::to_owned);
        line.expect("the memory of a rank")
    };
    assert_eq!(memory("8"), memory("9"));
    assert_ne!(memory("8"), memory("2"));
    let now = contents(&scratch.at(""));
    let is_log = |path: &Path| path.extension().is_some_and(|ending| ending == "out" || ending == "err");
    assert!(now.iter().filter(|file| !is_log(&file.0)).all(|file| before.contains(file)), "--check wrote");
}
