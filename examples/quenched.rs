//! A quenched chain: Wilson's action at beta = 6 from a hot start. The plaquette there is 0.594 on large lattices (e.g.
//! Necco and Sommer, Nucl. Phys. B 622 (2002) 328); the chain is on its way.
use hmc::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::local([8, 8, 8, 8])?;
    let links = MatrixField::hot(&domain, 1)?;
    let gauge = GaugeAction::new(&domain, 6.0, [1.0, 0.0, 0.0])?;
    let level = Level { scheme: Scheme::Omelyan4, steps: 4 };
    let mut chain = Chain::new(links, &[level], vec![vec![Box::new(gauge)]], 1.0, 1)?;
    let mut plaquette = 0.0;
    for number in 0..10 {
        let Outcome { delta_h, accepted, .. } = chain.trajectory(number, number < 5)?;
        plaquette = GaugeLoops::traces(&chain.links)?.plaquette();
        println!("{number:>3}  dH {delta_h:>8.4}  accepted {accepted:<5}  plaquette {plaquette:.6}");
    }
    assert!((plaquette - 0.594).abs() < 0.01);
    Ok(())
}
