//! `halo_precision = "half"`: chains of all families on two ranks, whose results are those of full halos up to residuals, with
//! one set of bits a grid; how it is told, recorded and refused.

use super::bits::{On, REFERENCE};
use crate::chains::{DOMAIN_WALL, PRODUCTION, STAGGERED};
use crate::program::{Scratch, on, read_chain, with};
use hmc::device::{has_emulation, lane_counts};
use hmc::io::History;
use std::fs;

const GRID: [usize; 4] = [2, 1, 1, 1];
const FOLDER: &str = "ensembles/quickstart";

/// The chain of `text`, of two trajectories, on a device.
fn run(text: &str, device: On, halos: &str) -> Scratch {
    let scratch = Scratch::new();
    let machine = format!("{}halo_precision = {halos:?}\n", device.input(GRID));
    let input = scratch.write("run.toml", format!("{text}\n{machine}"));
    let ended = scratch.start_with(2, &[&input], device.variables()).wait();
    ended.succeeded();
    let first = ended.out.lines().next().unwrap_or_default();
    let told = first.contains(", those of half precision rounded to 16 bits (bits depend on the cuts); ");
    assert_eq!(told, halos == "half", "{first}");
    scratch
}

/// dH and plaquettes of the rows, and the sum of each column of iterations.
fn found(scratch: &Scratch) -> (Vec<[f64; 2]>, Vec<(String, f64)>) {
    let history = History::read(&scratch.at(FOLDER)).unwrap();
    let rows = history.reals("delta_h").into_iter().zip(history.reals("plaquette"));
    let names = fs::read_to_string(scratch.at(FOLDER).join("history.csv")).unwrap();
    let names = names.lines().next().unwrap_or_default().to_owned();
    let iterations = names.split(',').filter(|name| name.starts_with("iterations_of_")).map(|name| {
        let all = history.reals(name);
        (name.to_owned(), all.iter().filter(|n| n.is_finite()).sum())
    });
    (rows.map(|(dh, plaquette)| [dh, plaquette]).collect(), iterations.collect())
}

/// Solutions for actions have residuals of 1e-8 at most, and actions are some 10^4: dH differs by less than 1e-4. Forces have
/// 1e-6 at most, in directions that have nothing to do with each other, so that mean plaquettes differ by far less.
#[test]
fn chains_find_the_same_in_as_many_iterations() {
    for (name, text) in [("Wilson", PRODUCTION), ("domain walls", DOMAIN_WALL), ("staggered", STAGGERED)] {
        let [full, half] = ["full", "half"].map(|halos| run(text, REFERENCE, halos));
        let last = |scratch: &Scratch| scratch.checksum(&scratch.at(FOLDER).join("cfg/cfg_000002.h5"));
        assert_ne!(last(&full), last(&half), "{name}: nothing was rounded");
        let ((expected, iterations), (rows, rounded)) = (found(&full), found(&half));
        for ([dh, plaquette], expected) in rows.iter().zip(&expected) {
            let off = [dh - expected[0], plaquette - expected[1]];
            println!("{name}: dH {dh:.6}, off by {:.1e}; plaquette by {:.1e}", off[0], off[1]);
            assert!(off[0].abs() < 1e-4 && off[1].abs() < 1e-8, "{name}: {off:?}");
        }
        for ((column, expected), (_, found)) in iterations.iter().zip(&rounded) {
            println!("{name}: {column} {expected} and {found}");
            assert!((found - expected).abs() <= 0.1 * expected, "{name}, {column}: {expected} and {found}");
        }
    }
}

/// Lanes, threads, an emulated GPU and its transports change nothing, as long as the grid stays, and no ranks are peers.
#[test]
fn a_grid_has_one_set_of_bits() {
    let reference = run(PRODUCTION, REFERENCE, "half");
    let mut devices = vec![On::Cpu { lanes: lane_counts()[0], threads: 2 }];
    if has_emulation() {
        devices.extend(["staged", "nccl"].map(|transport| On::Emulated { transport }));
    } else {
        println!("skipped: an emulated GPU: this build has none");
    }
    for device in devices {
        let other = run(PRODUCTION, device, "half");
        let [a, b] = [&reference, &other].map(|scratch| read_chain(&scratch.at(FOLDER)));
        assert_eq!(a, b, "{device:?}");
    }
}

/// A change of the tuning, told and recorded; what was made by other halos is not made again with these.
#[test]
fn a_chain_may_go_on_with_other_halos() {
    let text = with(&with(&super::quickstart(), "trajectories", "1"), "extents", "[4, 4, 4, 8]");
    let text = with(&text, "thermalisation", "0");
    let scratch = Scratch::new();
    scratch.chain(0, &on(&text, 0));
    let half = format!("{}halo_precision = \"half\"\n", on(&with(&text, "trajectories", "2"), 0));
    let input = scratch.write("half.toml", &half);
    let checked = scratch.run(0, &["--check", &input]);
    checked.succeeded();
    let told = "halos          of half precision rounded to 16 bits in messages: the bits depend on the grid of ranks\n";
    assert!(checked.out.contains(told), "{checked:?}");
    let ended = scratch.chain(0, &half);
    let told = "other tuning from trajectory 2 on:\n  parallel.halo_precision: was \"full\", is \"half\"\n";
    assert!(ended.out.contains(told), "{ended:?}");
    let history = scratch.at(FOLDER).join("history.csv");
    let rows = fs::read_to_string(&history).unwrap();
    let without: Vec<&str> = rows.lines().filter(|row| !row.starts_with("1,")).collect();
    fs::write(&history, without.join("\n") + "\n").unwrap();
    let ended = scratch.run(0, &[&input]);
    ended.failed(2, &["trajectory 1, which is to be made again, was made with another halo_precision"]);
}
