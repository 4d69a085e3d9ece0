//! Averages of whole ensembles against those of other programs, and <exp(-dH)> = 1. Seeds are fixed.
//!
//! Errors are those of the mean over bins longer than the autocorrelation. The long runs are for
//! `cargo test --release --test suite peers::ensembles -- --ignored --nocapture`.

use crate::devices::domain;
use crate::terms::{OMELYAN, quark, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::{HostLinks, MatrixField, Purpose, RandomAddress};
use hmc::hmc::{Chain, Level};
use hmc::lattice::{Boundary, Extents};
use hmc::operator::{CloverForm, GaugeLoops};
use hmc::quark::QuarkParams;
use std::time::Instant;

/// A mean and its error.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: f64,
    error: f64,
}

impl Mean {
    /// Over bins of `length`; what is left over at the start is dropped.
    fn binned(series: &[f64], length: usize) -> Self {
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let bins: Vec<f64> = series.rchunks_exact(length).map(mean).collect();
        assert!(bins.len() >= 10, "{} bins give no error", bins.len());
        let value = mean(&bins);
        let variance = bins.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (bins.len() - 1) as f64;
        Self { value, error: (variance / bins.len() as f64).sqrt() }
    }

    /// Asserts that the mean is `expected` to within `sigmas` of both errors.
    fn agrees(self, what: &str, expected: f64, its_error: f64, sigmas: f64) {
        let pull = (self.value - expected) / self.error.hypot(its_error);
        let Self { value, error } = self;
        println!("{what}: {value:.6} +- {error:.6} against {expected} +- {its_error}: {pull:+.2} sigma");
        assert!(pull.abs() < sigmas, "{what}: {value} +- {error} is not {expected} +- {its_error}");
    }
}

/// What a run gave after its thermalisation.
struct Run {
    plaquette: Vec<f64>,
    exp_minus_dh: Vec<f64>,
    acceptance: f64,
}

/// `drop` trajectories to thermalise, the first ten of them always accepted, then `keep` more.
fn run(chain: &mut Chain, drop: u64, keep: u64) -> Run {
    let start = Instant::now();
    let (mut plaquette, mut exp_minus_dh, mut accepted) = (Vec::new(), Vec::new(), 0);
    for number in 0..drop + keep {
        let outcome = chain.trajectory(number, number < 10).unwrap();
        if number % 50 == 0 {
            chain.links.unitarity(true).unwrap();
        }
        if number >= drop {
            plaquette.push(GaugeLoops::traces(&chain.links).unwrap().plaquette());
            exp_minus_dh.push((-outcome.delta_h).exp());
            accepted += u64::from(outcome.accepted);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let acceptance = accepted as f64 / keep as f64;
    println!("{drop} + {keep} trajectories in {seconds:.1} s, acceptance {acceptance:.3}");
    Run { plaquette, exp_minus_dh, acceptance }
}

/// Wilson's gauge action alone, from random links.
fn pure_gauge(extents: Extents, beta: f64, steps: u32, seed: u64) -> Chain {
    let domain = domain(extents);
    let mut links = MatrixField::new(&domain, 4).unwrap();
    links.set_random(RandomAddress { seed, trajectory: 0, purpose: Purpose::Start }).unwrap();
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, beta, [1.0, 0.0, 0.0]).unwrap());
    Chain::new(links, &[Level { scheme: OMELYAN, steps }], vec![vec![gauge]], 1.0, seed).unwrap()
}

/// Two flavours of clover quarks at beta 5.6, kappa 0.138, `c_sw` 1.76 on 4^4, from unit links.
fn clover(seed: u64) -> Chain {
    let domain = domain([4; 4]);
    let operator = WilsonParams {
        kappa: 0.138,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.76,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Asymmetric,
        clover: CloverForm::Linear,
    };
    let light = QuarkParams { link_reals: 12, ..quark(operator, Precision::Single) };
    let light: Box<dyn Action> = Box::new(two_flavours(&domain, light, [1e-11, 1e-7]));
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0]).unwrap());
    let links = MatrixField::from_host(&domain, &HostLinks::unit([4; 4])).unwrap();
    let levels = [Level { scheme: OMELYAN, steps: 5 }, Level { scheme: OMELYAN, steps: 2 }];
    Chain::new(links, &levels, vec![vec![light], vec![gauge]], 1.0, seed).unwrap()
}

#[test]
fn pure_gauge_on_a_small_lattice() {
    let run = run(&mut pure_gauge([4, 4, 4, 8], 6.0, 6, 11), 200, 2000);
    let plaquette = Mean::binned(&run.plaquette, 50);
    assert!(plaquette.error < 8e-4, "{plaquette:?}");
    plaquette.agrees("plaquette", 0.59606, 0.00021, 3.0);
    Mean::binned(&run.exp_minus_dh, 20).agrees("<exp(-dH)>", 1.0, 0.0, 3.0);
    assert!(run.acceptance > 0.6 && run.acceptance < 1.0, "acceptance {}", run.acceptance);
}

#[test]
fn two_flavours_on_a_small_lattice() {
    let run = run(&mut clover(12), 40, 200);
    let plaquette = Mean::binned(&run.plaquette, 10);
    assert!(plaquette.error < 2e-3, "{plaquette:?}");
    plaquette.agrees("plaquette", 0.5905, 0.0003, 3.0);
    Mean::binned(&run.exp_minus_dh, 5).agrees("<exp(-dH)>", 1.0, 0.0, 3.0);
    assert!(run.acceptance > 0.6, "acceptance {}", run.acceptance);
}

/// The plaquette at beta 6 is 0.5937 in infinite volume, and 8^4 is near it. 200 trajectories have an error of
/// 4e-4, too near the window: 1500 have one of 1.5e-4.
#[test]
#[ignore = "minutes"]
fn pure_gauge_long() {
    let run = run(&mut pure_gauge([8; 4], 6.0, 10, 13), 100, 1500);
    let plaquette = Mean::binned(&run.plaquette, 50);
    println!("plaquette {plaquette:?}");
    Mean::binned(&run.exp_minus_dh, 10).agrees("<exp(-dH)>", 1.0, 0.0, 3.0);
    assert!(plaquette.error < 2.5e-4, "{plaquette:?}");
    assert!((plaquette.value - 0.5937).abs() < 5e-4, "{plaquette:?}");
    assert!(run.acceptance > 0.6, "acceptance {}", run.acceptance);
}

#[test]
#[ignore = "minutes"]
fn two_flavours_long() {
    let run = run(&mut clover(14), 100, 1000);
    let plaquette = Mean::binned(&run.plaquette, 25);
    assert!(plaquette.error < 1e-3, "{plaquette:?}");
    plaquette.agrees("plaquette", 0.5905, 0.0003, 3.0);
    Mean::binned(&run.exp_minus_dh, 10).agrees("<exp(-dH)>", 1.0, 0.0, 3.0);
    assert!(run.acceptance > 0.6, "acceptance {}", run.acceptance);
}
