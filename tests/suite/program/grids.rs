//! `grid = "tuned"`: the grid is one that fits, later jobs keep it, and bits do not follow it. Which is the fastest is for the
//! machine to say.

use crate::program::{Scratch, on, parallel, quickstart, read_chain, with};

fn text(trajectories: &str) -> String {
    with(&with(&quickstart(), "trajectories", trajectories), "thermalisation", "1")
}

fn tuned(text: &str) -> String {
    format!("{text}\n{}", with(&parallel([1, 1, 1, 4], 0, 1), "grid", "\"tuned\""))
}

/// The line that tells the grid.
fn told(said: &str) -> &str {
    said.lines().find(|line| line.starts_with("grid, \"tuned\": ")).unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn a_tuned_grid_is_kept_and_changes_no_bits() {
    let (reference, scratch) = (Scratch::new(), Scratch::new());
    reference.chain(0, &on(&text("2"), 0));
    let first = scratch.chain(4, &tuned(&text("1")));
    let said = &first.out;
    let (tried, grid) = told(said).rsplit_once(": ").unwrap();
    assert!(tried.matches(" s").count() > 1 && tried.contains(&format!(" {grid} ")), "{said}");
    assert!(said.contains(&format!(" on 4 ranks as {grid}, ")), "{said}");
    let second = scratch.chain(4, &tuned(&text("2")));
    let said = &second.out;
    assert_eq!(told(said), format!("grid, \"tuned\": {grid}, as an earlier job found"));
    let folder = "ensembles/quickstart";
    let [made, expected] = [&scratch, &reference].map(|of| read_chain(&of.at(folder)));
    assert_eq!(made.history, expected.history);
    let file = format!("{folder}/cfg/cfg_000002.h5");
    assert_eq!(scratch.checksum(&scratch.at(&file)), reference.checksum(&reference.at(&file)));
}
