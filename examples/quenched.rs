//! A quenched chain: Wilson's action at beta = 6 from a cold start. The plaquette there is 0.5937.
use hmc::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::local([8, 8, 8, 8])?;
    let links = MatrixField::cold(&domain)?;
    let gauge = GaugeAction::new(&domain, 6.0, [1.0, 0.0, 0.0])?;
    let level = Level { scheme: Scheme::Omelyan4, steps: 4 };
    let mut chain = Chain::new(links, &[level], vec![vec![Box::new(gauge)]], 1.0, 1)?;
    let mut last = Vec::new();
    for number in 0..20 {
        let Outcome { delta_h, accepted, .. } = chain.trajectory(number, number < 10)?;
        let plaquette = GaugeLoops::traces(&chain.links)?.plaquette();
        println!("{number:>3}  dH {delta_h:>8.4}  accepted {accepted:<5}  plaquette {plaquette:.6}");
        last.extend((number >= 10).then_some(plaquette));
    }
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    assert!((mean - 0.5937).abs() < 0.005, "{mean}");
    Ok(())
}
