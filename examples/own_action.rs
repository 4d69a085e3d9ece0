//! A term of the Hamiltonian of one's own: a Gaussian window on the plaquette, `S = w (A - A_0)^2 / 2` with
//! `A = sum_plaquettes (1 - Re tr P / 3)`, as the density of states is sampled with (Langfeld, Lucini, Rago,
//! Phys. Rev. Lett. 109 (2012) 111601). Its force is `w (A - A_0) dA`, and dA is that of the library's loops.
//!
//! The force is compared with the derivative of the action and a trajectory is walked back; then a chain is held at a
//! plaquette at which its gauge action alone would not be.
use hmc::field::{Purpose, RandomAddress};
use hmc::prelude::*;
use std::sync::Arc;

/// Plaquettes of a site.
const PLAQUETTES: f64 = 6.0;

/// The window.
struct Window {
    loops: GaugeLoops,
    /// `A_0`
    centre: f64,
    /// w
    strength: f64,
}

impl Window {
    /// A window that is `width` wide in the mean plaquette around `plaquette`.
    fn new(domain: &Arc<Domain>, plaquette: f64, width: f64) -> Result<Self, FieldError> {
        let all = PLAQUETTES * domain.global_volume();
        let (centre, strength) = (all * (1.0 - plaquette), (all * width).powi(-2));
        Ok(Self { loops: GaugeLoops::new(domain, 1.0, 0.0, 0.0)?, centre, strength })
    }

    /// `A - A_0`, the same on all ranks.
    fn distance(&self, links: &MatrixField) -> Result<f64, FieldError> {
        Ok(self.loops.action(links)?.value() - self.centre)
    }
}

impl Action for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn refresh(&mut self, links: &MatrixField, _: u64, _: u64) -> Result<ExactSum, ActionError> {
        self.value(links)
    }

    fn value(&mut self, links: &MatrixField) -> Result<ExactSum, ActionError> {
        Ok(ExactSum::from_iter([0.5 * self.strength * self.distance(links)?.powi(2)]))
    }

    fn add_force(&mut self, links: &MatrixField, force: &mut AlgebraField) -> Result<usize, ActionError> {
        self.loops.add_force(links, force, self.strength * self.distance(links)?)?;
        Ok(0)
    }
}

/// `dS(e^{i eps P} U) / d eps` at 0 in a random direction P: by the force, and by differences of fourth order.
fn derivatives(term: &mut dyn Action, links: &MatrixField) -> Result<[f64; 2], Box<dyn std::error::Error>> {
    let domain = links.domain();
    let (mut direction, mut force) = (AlgebraField::new(domain)?, AlgebraField::new(domain)?);
    direction.set_random(RandomAddress { seed: 7, trajectory: 0, purpose: Purpose::Momenta })?;
    term.add_force(links, &mut force)?;
    let (direction_reals, force_reals) = (direction.to_host()?, force.to_host()?);
    let by_force = direction_reals.iter().zip(&force_reals).map(|(p, f)| p * f).sum();
    let mut moved = |eps: f64| -> Result<ExactSum, Box<dyn std::error::Error>> {
        let mut moved = MatrixField::new(domain, 4)?;
        moved.copy_from(links)?;
        direction.drift(&mut moved, eps)?;
        Ok(term.value(&moved)?)
    };
    let eps = 1e-3;
    let mut difference = |eps: f64| Ok::<_, Box<dyn std::error::Error>>((moved(eps)? - moved(-eps)?).value());
    let by_differences = (8.0 * difference(eps)? - difference(2.0 * eps)?) / (12.0 * eps);
    Ok([by_force, by_differences])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::local([4, 4, 4, 8])?;
    let (target, width) = (0.5, 0.002);

    let hot = MatrixField::hot(&domain, 1)?;
    let [force, differences] = derivatives(&mut Window::new(&domain, target, width)?, &hot)?;
    println!("dS along a random direction: {force:.12e} by the force, {differences:.12e} by differences");
    assert!((force / differences - 1.0).abs() < 1e-8);

    // At beta = 5 the gauge action alone has a plaquette of about 0.40.
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 5.0, [1.0, 0.0, 0.0])?);
    let window: Box<dyn Action> = Box::new(Window::new(&domain, target, width)?);
    let level = Level { scheme: Scheme::Omelyan4, steps: 10 };
    let mut chain = Chain::new(MatrixField::cold(&domain)?, &[level], vec![vec![gauge, window]], 1.0, 1)?;
    let mut sum = 0.0;
    for number in 0..15 {
        let Outcome { delta_h, accepted, .. } = chain.trajectory(number, number < 5)?;
        let plaquette = GaugeLoops::traces(&chain.links)?.plaquette();
        println!("{number:>3}  dH {delta_h:>8.4}  accepted {accepted:<5}  plaquette {plaquette:.6}");
        sum += if number < 5 { 0.0 } else { plaquette };
    }
    // In the window the mean is off the centre as far as the gauge action pulls: by that one reads off which beta has its
    // plaquette there. It is about 5.5.
    let mean = sum / 10.0;
    let beta = 5.0 + (target - mean) / (PLAQUETTES * domain.global_volume() * width * width);
    println!("plaquette {mean:.4} in the window, that of beta = {beta:.2}");
    assert!((mean - target).abs() < 5.0 * width && (beta - 5.5).abs() < 0.3);

    let there_and_back = chain.reversibility(15)?;
    println!(
        "there and back: |dU| {:.1e}, dH {:.1e}",
        there_and_back.distance, there_and_back.round_trip_delta_h
    );
    assert!(there_and_back.distance < 1e-10 && there_and_back.round_trip_delta_h < 1e-7);
    Ok(())
}
