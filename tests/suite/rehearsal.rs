//! The kernels that a rehearsal names are those that a run asks for.

use crate::chains::{DOMAIN_WALL, OTHER, PRODUCTION, STAGGERED, multigrid};
use crate::memory::{PURE, input, walked};
use crate::ranks;
use hmc::app::rehearse;
use hmc::comm::{Comm, Echo};
use hmc::device::{Cpu, Device, Instance, Record, has_emulation};
use hmc::field::Halo;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn names(record: &[Instance]) -> BTreeSet<String> {
    record.iter().map(|instance| instance.name()).collect()
}

/// A trajectory and its measurements on an emulated GPU, whose kernels the rehearsal must know; it may name a few more,
/// of solvers that take over when others fail.
fn check(text: &str, grid: [usize; 4]) {
    if !has_emulation() {
        println!("skipped: this build has no emulated GPU");
        return;
    }
    let mut input = input(text, grid);
    // That a run begins with, and what is walked here does not.
    input.parallel.self_test = false;
    ranks::run(grid.iter().product(), |comm| {
        let record = Arc::<Record>::default();
        let device = Device::new(Cpu::emulating().unwrap()).recorded(&record);
        let comm: Arc<dyn Comm> = comm;
        walked(&input, device, Arc::clone(&comm));
        let start = Instant::now();
        let known = names(&rehearse(&input, Halo::Staged, &comm).unwrap());
        let seconds = start.elapsed().as_secs_f64();
        // Messages of other carriers need no kernels of their own.
        assert_eq!(names(&rehearse(&input, Halo::Nccl, &comm).unwrap()), known);
        let mut asked = names(&record.instances());
        // The test starts from random links.
        asked.retain(|name| !name.starts_with("random_links"));
        let unknown: Vec<_> = asked.difference(&known).collect();
        let more: Vec<_> = known.difference(&asked).collect();
        println!(
            "{} on {grid:?}: {} kernels in {seconds:.2} s, unknown {unknown:#?}, {} more {more:#?}",
            input.run.name,
            asked.len(),
            more.len()
        );
        assert!(unknown.is_empty(), "{}: {unknown:#?}", input.run.name);
        assert!(more.len() * 3 < asked.len(), "{}: {more:#?}", input.run.name);
    });
}

#[test]
fn gauge_fields() {
    check(PURE, [1; 4]);
}

/// The hops of a self-test, which a chain without quarks has not.
#[test]
fn the_self_test_is_known() {
    let mut input = input(PURE, [1; 4]);
    let alone: Arc<dyn Comm> = Arc::new(Echo { size: 1 });
    let [with, without] = [true, false].map(|self_test| {
        input.parallel.self_test = self_test;
        names(&rehearse(&input, Halo::Staged, &alone).unwrap())
    });
    let more: Vec<&String> = with.difference(&without).collect();
    for precision in ["double", "single"] {
        let hop = format!("wilson_hop_12 {precision} ");
        assert_eq!(more.iter().filter(|name| name.starts_with(&hop)).count(), 1, "{more:?}");
    }
    assert!(without.is_subset(&with));
}

#[test]
fn clover_quarks() {
    check(OTHER, [1; 4]);
    check(PRODUCTION, [1, 1, 1, 2]);
}

#[test]
fn multigrid_of_clover_quarks() {
    check(&multigrid(), [1, 1, 1, 2]);
}

/// Where a term still has to choose, the kernels of all that it may choose are known.
#[test]
fn all_methods_of_auto() {
    let auto =
        OTHER.replace("precision = \"double\"\n", "method = \"auto\"\ngcr-dd = { block = [4, 4, 4, 4] }\n");
    let alone: Arc<dyn Comm> = Arc::new(Echo { size: 1 });
    let kernels = |input: &hmc::input::Input| names(&rehearse(input, Halo::Staged, &alone).unwrap());
    let input = hmc::input::parse(&auto, "run.toml", 1).unwrap().input;
    let (known, choices) = (kernels(&input), input.all_choices());
    assert_eq!(choices.len(), 6);
    let each = choices.iter().map(|choices| kernels(&input.with_choices(choices).unwrap()));
    let together: BTreeSet<String> = each.inspect(|one| assert!(one.len() < known.len())).flatten().collect();
    assert_eq!(known, together);
}

#[test]
fn staggered_quarks() {
    check(STAGGERED, [2, 1, 1, 1]);
}

#[test]
fn domain_wall_quarks() {
    check(DOMAIN_WALL, [1; 4]);
}

/// The production inputs are rehearsed for a GPU without one, whatever their lattice.
#[test]
fn shipped_inputs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
    let alone: Arc<dyn Comm> = Arc::new(Echo { size: 1 });
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let input = hmc::input::load(&path, 1).unwrap().input;
            let start = Instant::now();
            let kernels = rehearse(&input, Halo::Peer, &alone).unwrap().len();
            println!("{}: {kernels} kernels in {:.1} s", path.display(), start.elapsed().as_secs_f64());
            assert!(kernels > 9, "{}: {kernels} kernels", path.display());
        }
    }
}

/// Systems of one group come to their ends at different times: hops of any number of them may be asked for.
#[test]
fn hops_of_any_number_of_systems_are_known() {
    let alone: Arc<dyn Comm> = Arc::new(Echo { size: 1 });
    let known = names(&rehearse(&input(&multigrid(), [1; 4]), Halo::Staged, &alone).unwrap());
    for fields in 1..=4 {
        let hop = format!("wilson_hop_12 half [0, 0, {fields}, 1, ");
        assert!(known.iter().any(|name| name.starts_with(&hop)), "{hop}: {known:#?}");
    }
}
