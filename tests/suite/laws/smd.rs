//! Stochastic molecular dynamics: its limits, what a refused cycle leaves, and that momenta and pseudofermions stay Gaussian.

use crate::compare::distance;
use crate::devices::domain;
use crate::reference::gauge::Gauge;
use crate::terms::{OMELYAN, quark, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::MatrixField;
use hmc::hmc::{Chain, Level, Smd};
use hmc::lattice::{Boundary, Extents, volume};
use hmc::operator::CloverForm;

const EXTENTS: Extents = [4; 4];

fn chain(steps: u32, tau: f64) -> Chain {
    let domain = domain(EXTENTS);
    let operator = WilsonParams {
        kappa: 0.13,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.5,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Symmetric,
        clover: CloverForm::Linear,
    };
    let light: Box<dyn Action> =
        Box::new(two_flavours(&domain, quark(operator, Precision::Double), [1e-12, 1e-10]));
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0]).unwrap());
    let level = |steps| Level { scheme: OMELYAN, steps };
    let links = MatrixField::from_host(&domain, &Gauge::warm(EXTENTS, 0.3, 1).to_host()).unwrap();
    Chain::new(links, &[level(steps), level(2)], vec![vec![light], vec![gauge]], tau, 77).unwrap()
}

/// With a friction that leaves nothing, cycles are trajectories: to the bit, with their random numbers.
#[test]
fn great_friction_is_hmc() {
    let mut plain = chain(3, 0.5);
    let mut cycled = chain(3, 0.5).with_smd(Smd { friction: 1e4, cycles: 3 }).unwrap();
    for number in 0..2 {
        let cycles = cycled.trajectory(number, false).unwrap();
        let all: Vec<_> = (0..3).map(|n| plain.trajectory(3 * number + n, false).unwrap()).collect();
        assert_eq!((cycles.delta_h, cycles.accepted), (all[2].delta_h, all[2].accepted));
        assert_eq!(cycles.accepted_cycles, all.iter().map(|one| one.accepted_cycles).sum::<u64>());
        let iterations = |n: usize| all.iter().map(|one| one.levels[n].iterations).sum::<usize>();
        assert_eq!([0, 1].map(|n| cycles.levels[n].iterations), [0, 1].map(iterations));
        assert!(cycled.links.to_host().unwrap() == plain.links.to_host().unwrap());
    }
}

/// Without friction momenta go on: cycles of one step are the steps of one trajectory, as long as all are accepted.
#[test]
fn no_friction_goes_on() {
    let mut plain = chain(4, 0.4);
    let mut cycled = chain(1, 0.1).with_smd(Smd { friction: 1e-300, cycles: 4 }).unwrap();
    plain.trajectory(0, true).unwrap();
    let cycles = cycled.trajectory(0, true).unwrap();
    assert_eq!(cycles.accepted_cycles, 4);
    // Equal but for the solves, each of which starts from zero.
    let [a, b] = [&cycled, &plain].map(|chain| chain.links.to_host().unwrap().reals);
    let off = distance(&a, &b);
    assert!(off < 1e-9, "{off:e}");
}

/// A trajectory begins with links alone.
#[test]
fn a_chain_goes_on_from_its_links() {
    let smd = Smd { friction: 0.7, cycles: 3 };
    let make = || chain(2, 0.3).with_smd(smd).unwrap();
    let (mut whole, mut rest) = (make(), make());
    whole.trajectory(0, false).unwrap();
    rest.links.set_host(&whole.links.to_host().unwrap()).unwrap();
    let outcomes = [&mut whole, &mut rest].map(|chain| chain.trajectory(1, false).unwrap());
    assert_eq!(outcomes[0].delta_h.to_bits(), outcomes[1].delta_h.to_bits());
    assert!(whole.links.to_host().unwrap() == rest.links.to_host().unwrap());
}

/// A refused cycle leaves the links and turns the momenta that it started with.
#[test]
fn a_refused_cycle_turns_back() {
    // So few steps that dH is some thousands.
    let mut chain = chain(1, 4.0).with_smd(Smd { friction: 1e-300, cycles: 1 }).unwrap();
    let before = chain.links.to_host().unwrap();
    let outcome = chain.trajectory(0, false).unwrap();
    assert!(!outcome.accepted && outcome.accepted_cycles == 0, "dH = {}", outcome.delta_h);
    assert_eq!(chain.links.to_host().unwrap(), before);
    let turned = chain.momenta.to_host().unwrap();
    chain.refresh(0).unwrap();
    let drawn = chain.momenta.to_host().unwrap();
    assert!(turned.iter().zip(&drawn).all(|(a, b)| *a == -*b));
}

/// Momenta and pseudofermions that are refreshed in part are as large as new ones.
#[test]
fn mixtures_keep_their_size() {
    let mut chain = chain(1, 0.05).with_smd(Smd { friction: 4.0, cycles: 40 }).unwrap();
    let mut kinetic = 0.0;
    for number in 0..4 {
        chain.trajectory(number, false).unwrap();
        kinetic += chain.momenta.kinetic().unwrap().value() / 4.0;
    }
    let light = chain.energies().unwrap().terms[0].1.value();
    chain.refresh(1000).unwrap();
    let new = chain.energies().unwrap().terms[0].1.value();
    let (sites, dof) = (volume(EXTENTS) as f64, 4.0 * 8.0 * volume(EXTENTS) as f64);
    // Of n squares of normal numbers half the sum is n / 2, give or take the root of n / 2; links move little.
    let off = (kinetic - 0.5 * dof) / (0.5 * dof / 4.0).sqrt();
    assert!(off.abs() < 5.0, "sum tr P^2 = {kinetic} instead of {}", 0.5 * dof);
    let spread = (2.0 * 12.0 * sites / 2.0).sqrt();
    assert!((light - new).abs() < 5.0 * spread, "S = {light} and {new}");
}
