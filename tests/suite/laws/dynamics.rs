//! Molecular dynamics on a thermalised two-flavour clover lattice: the order of every scheme, reversibility,
//! and the links' drift off the group.

use crate::devices::domain;
use crate::reference::gauge::Gauge;
use crate::terms::{OMELYAN, quark, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::{HostLinks, MatrixField};
use hmc::hmc::{Chain, Level, Scheme};
use hmc::lattice::{Boundary, Extents};
use hmc::operator::CloverForm;
use hmc::quark::QuarkParams;
use hmc::solver::Past;
use std::sync::OnceLock;

const EXTENTS: Extents = [4; 4];
const SEED: u64 = 2024;
const POSITION: Scheme = Scheme::Omelyan2Position { lambda: 0.193_183_327_503_783_6 };

/// Quarks outside and the gauge action inside, two inner steps in each drift.
struct Setting {
    scheme: Scheme,
    steps: u32,
    tau: f64,
    residual: f64,
    guess: Past,
}

const QUARK: WilsonParams = WilsonParams {
    kappa: 0.138,
    mu: 0.0,
    twisted_mass: 0.0,
    c_sw: 1.76,
    boundary: Boundary::ANTIPERIODIC,
    schur: Schur::Asymmetric,
    clover: CloverForm::Linear,
};

fn chain(links: &HostLinks, setting: &Setting) -> Chain {
    let domain = domain(EXTENTS);
    let light = QuarkParams { guess: setting.guess, ..quark(QUARK, Precision::Double) };
    let residuals = [setting.residual.min(1e-12), setting.residual];
    let light: Box<dyn Action> = Box::new(two_flavours(&domain, light, residuals));
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0]).unwrap());
    let level = |steps| Level { scheme: setting.scheme, steps };
    let field = MatrixField::from_host(&domain, links).unwrap();
    let levels = [level(setting.steps), level(if setting.scheme == Scheme::ThreeToOne { 3 } else { 2 })];
    Chain::new(field, &levels, vec![vec![light], vec![gauge]], setting.tau, SEED).unwrap()
}

/// A configuration of the ensemble.
fn thermalised() -> &'static HostLinks {
    static LINKS: OnceLock<HostLinks> = OnceLock::new();
    LINKS.get_or_init(|| {
        let setting = Setting { scheme: OMELYAN, steps: 8, tau: 1.0, residual: 1e-9, guess: Past::NONE };
        let mut chain = chain(&Gauge::warm(EXTENTS, 0.3, 1).to_host(), &setting);
        let mut accepted = 0;
        for number in 0..15 {
            accepted += u32::from(chain.trajectory(number, number < 5).unwrap().accepted);
        }
        assert!(accepted >= 10, "{accepted} of 15 accepted");
        chain.links.unitarity(true).unwrap();
        chain.links.to_host().unwrap()
    })
}

/// Mean |dH| over four draws of momenta and pseudofermions.
fn mean_delta_h(scheme: Scheme, steps: u32) -> f64 {
    // Solves to 1e-14: dH is exact to about 1e-11.
    let setting = Setting { scheme, steps, tau: 0.5, residual: 1e-14, guess: Past::NONE };
    let mut chain = chain(thermalised(), &setting);
    let mut sum = 0.0;
    for number in 100..104 {
        sum += chain.trajectory(number, true).unwrap().delta_h.abs();
        chain.links.set_host(thermalised()).unwrap();
    }
    sum / 4.0
}

fn order(scheme: Scheme, steps: u32, expected: f64, tolerance: f64) {
    let (coarse, fine) = (mean_delta_h(scheme, steps), mean_delta_h(scheme, 2 * steps));
    let found = (coarse / fine).log2();
    println!(
        "{scheme:?}: |dH| {coarse:.3e} with {steps} steps, {fine:.3e} with {}: order {found:.3}",
        2 * steps
    );
    // Far above rounding and solves, far below where higher orders mix in.
    assert!(fine > 1e-9 && coarse < 0.5, "{scheme:?}: |dH| of {coarse:e} and {fine:e} show no order");
    assert!((found - expected).abs() < tolerance, "{scheme:?}: order {found} is not {expected}");
}

#[test]
fn leapfrog_is_of_second_order() {
    order(Scheme::Leapfrog, 16, 2.0, 0.1);
}

#[test]
fn omelyan_is_of_second_order() {
    order(OMELYAN, 8, 2.0, 0.1);
}

#[test]
fn schemes_that_drift_first_are_of_second_order() {
    order(POSITION, 8, 2.0, 0.1);
    order(Scheme::ThreeToOne, 8, 2.0, 0.1);
}

#[test]
fn omelyan_of_five_forces_is_of_fourth_order() {
    order(Scheme::Omelyan4, 4, 4.0, 0.2);
}

#[test]
fn force_gradient_is_of_fourth_order() {
    order(Scheme::ForceGradient, 6, 4.0, 0.2);
}

fn round_trip(scheme: Scheme, steps: u32, residual: f64, guess: Past) -> f64 {
    let mut chain = chain(thermalised(), &Setting { scheme, steps, tau: 1.0, residual, guess });
    let report = chain.reversibility(7).unwrap();
    println!("{scheme:?}, residual {residual:e}, {guess:?}: {report:?}");
    assert_eq!(&chain.links.to_host().unwrap(), thermalised(), "the links stay as they are");
    assert!(report.delta_h != 0.0);
    report.distance
}

/// Rounding of 1e-16 in 10^2 moves, amplified by less than 10^3 along a trajectory of unit length.
#[test]
fn every_scheme_is_reversible() {
    for (scheme, steps) in [
        (Scheme::Leapfrog, 10),
        (OMELYAN, 8),
        (POSITION, 8),
        (Scheme::ThreeToOne, 8),
        (Scheme::Omelyan4, 3),
        (Scheme::ForceGradient, 4),
    ] {
        let distance = round_trip(scheme, steps, 1e-13, Past::NONE);
        assert!(distance < 1e-12, "{scheme:?}: {distance:e}");
    }
}

/// Solves that start from zero are a function of the links alone, so loose ones are reversible too; a guess from
/// the past is reversible where solves are tight, and visibly not where they are loose.
#[test]
fn a_guess_needs_tight_solves() {
    let loose = round_trip(OMELYAN, 8, 1e-5, Past::NONE);
    assert!(loose < 1e-12, "loose solves from zero: {loose:e}");
    for precision in [Precision::Double, Precision::Single] {
        let guess = Past { solutions: 5, precision };
        let tight = round_trip(OMELYAN, 8, 1e-14, guess);
        assert!(tight < 1e-12, "tight solves from a guess in {precision:?}: {tight:e}");
        let spoilt = round_trip(OMELYAN, 8, 1e-5, guess);
        assert!(spoilt > 1e-8, "loose solves from a guess in {precision:?}: {spoilt:e}");
    }
}

/// Solutions in single precision guess as well as those in double, which need twice the memory.
#[test]
fn a_guess_saves_iterations_in_either_precision() {
    let [zero, double, single] = [(0, Precision::Double), (5, Precision::Double), (5, Precision::Single)]
        .map(|(solutions, precision)| {
            let guess = Past { solutions, precision };
            let setting = Setting { scheme: OMELYAN, steps: 8, tau: 1.0, residual: 1e-9, guess };
            let outcome = chain(thermalised(), &setting).trajectory(7, true).unwrap();
            let iterations = outcome.terms[0].force.iterations;
            println!("{guess:?}: {iterations} iterations, dH {}", outcome.delta_h);
            iterations
        });
    assert!(10 * double < 9 * zero, "{double} instead of {zero}");
    assert!(single <= double + double / 100, "{single} in single, {double} in double");
}

#[test]
fn links_stay_on_the_group() {
    let mut chain = chain(
        thermalised(),
        &Setting { scheme: OMELYAN, steps: 8, tau: 1.0, residual: 1e-10, guess: Past::NONE },
    );
    chain.trajectory(3, true).unwrap();
    assert_ne!(&chain.links.to_host().unwrap(), thermalised());
    // 32 drifts, each off by a rounding.
    let drift = chain.links.unitarity(false).unwrap();
    assert!(drift < 1e-13, "{drift:e}");
    chain.links.unitarity(true).unwrap();
    let projected = chain.links.unitarity(false).unwrap();
    println!("drift {drift:e}, projected {projected:e}");
    assert!(projected < 2e-15, "{projected:e}");
}
