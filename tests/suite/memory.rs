//! What `--check` counts of memory against what a run takes: a chain of each family, a trajectory and its measurements, on
//! the device that counts and on a CPU, one rank and several.

use crate::chains::{DOMAIN_WALL, OTHER, PRODUCTION, STAGGERED, multigrid};
use crate::ranks;
use hmc::app::{domain_on, held_by};
use hmc::comm::{Comm, Echo};
use hmc::device::{Counting, Cpu, Device, Held, fastest_lanes};
use hmc::field::{Halo, MatrixField, Purpose, RandomAddress};
use hmc::input::{Input, parse};
use std::sync::Arc;

pub const PURE: &str = r#"
[run]
name = "pure"
seed = 3
trajectories = 1
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.7
[hmc]
reversibility_every = 1
[[hmc.level]]
integrator = "force-gradient"
steps = 2
terms = ["gauge"]
[measure.flow]
t_max = 0.1
"#;

/// The input for ranks in this grid.
pub fn input(text: &str, grid: [usize; 4]) -> Input {
    let text = format!("{text}\n[parallel]\ngrid = {grid:?}\n");
    parse(&text, "test.toml", grid.iter().product()).unwrap_or_else(|e| panic!("{e}")).input
}

/// A trajectory on a device, from random links.
pub fn walked(input: &Input, device: Device, comm: Arc<dyn Comm>) -> Held {
    let domain = domain_on(input, device, Halo::Staged, &comm).unwrap();
    let label = domain.device().label("links");
    let mut links = MatrixField::new(&domain, 4).unwrap();
    drop(label);
    let address = RandomAddress { seed: input.run.seed, trajectory: 0, purpose: Purpose::Start };
    links.set_random(address).unwrap();
    held_by(input, links).unwrap()
}

/// Both are the same to the byte, label by label.
fn check(text: &str, grid: [usize; 4]) {
    let input = input(text, grid);
    let size = grid.iter().product();
    let echo = || -> Arc<dyn Comm> { Arc::new(Echo { size }) };
    let fits = |lanes| domain_on(&input, Device::new(Counting::cpu(lanes)), Halo::Staged, &echo()).is_ok();
    let lanes = fastest_lanes(fits);
    let counted = walked(&input, Device::new(Counting::cpu(lanes)), echo());
    assert!(counted.bytes > 0 && counted.bytes == counted.by.iter().map(|row| row.1).sum::<u64>());
    let taken = ranks::run(size, |comm| walked(&input, Device::new(Cpu::new(lanes).unwrap()), comm));
    for taken in taken {
        assert_eq!(counted, taken, "{} on {grid:?}", input.run.name);
    }
}

#[test]
fn gauge_fields() {
    check(PURE, [1; 4]);
    check(PURE, [1, 1, 2, 2]);
}

#[test]
fn clover_quarks_in_fourth_order_with_guesses() {
    check(OTHER, [1; 4]);
}

#[test]
fn clover_quarks_with_all_solvers() {
    check(PRODUCTION, [1; 4]);
    check(PRODUCTION, [1, 1, 1, 2]);
}

/// Spaces of multigrid too, which no solve of the device that counts makes.
#[test]
fn clover_quarks_with_multigrid() {
    check(&multigrid(), [1; 4]);
    check(&multigrid(), [1, 1, 1, 2]);
}

#[test]
fn staggered_quarks() {
    check(STAGGERED, [1; 4]);
    check(STAGGERED, [2, 1, 1, 1]);
}

#[test]
fn domain_wall_quarks() {
    check(DOMAIN_WALL, [1; 4]);
    check(DOMAIN_WALL, [2, 1, 1, 1]);
}

/// A GPU keeps what is given back, and takes whole pages; a CPU has operators' links by the sites of both ends. Else they take
/// the same. The links that a trajectory starts from are in a GPU's host's memory.
#[test]
fn a_gpu_takes_about_as_much() {
    let input = input(&PRODUCTION.replace("extents = [8, 4, 4, 8]", "extents = [16, 16, 16, 16]"), [1; 4]);
    let of = |device| walked(&input, Device::new(device), Arc::new(Echo { size: 1 }));
    let (gpu, cpu) = (of(Counting::gpu()), of(Counting::cpu(1)));
    assert_eq!((gpu.aside, cpu.aside), (16_u64.pow(4) * 4 * 18 * 8, 0));
    let ratio = (gpu.bytes + gpu.aside) as f64 / cpu.bytes as f64;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}
