//! Two flavours of clover quarks: the gauge action on the inner level, the determinant on the outer one.
use hmc::operator::CloverForm;
use hmc::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::local([4, 4, 4, 8])?;
    let operator = WilsonParams {
        kappa: 0.13,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.5,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Symmetric,
        clover: CloverForm::Linear,
    };
    let solver = Settings::cg(Precision::Single, 10_000);
    let params = DeterminantParams {
        header: TermHeader { name: "light".into(), number: 0, action_residual: 1e-11, force_residual: 1e-9 },
        light: QuarkParams { operator, solver, link_reals: 12, guess: Past::NONE },
        heavy: None,
        power: Power::Inverse,
    };
    let light = Determinant::new(&domain, params)?;
    let gauge = GaugeAction::new(&domain, 5.3, [1.0, 0.0, 0.0])?;
    let outer = Level { scheme: Scheme::Omelyan4, steps: 3 };
    let inner = Level { scheme: Scheme::Omelyan4, steps: 1 };
    let terms: Vec<Vec<Box<dyn Action>>> = vec![vec![Box::new(light)], vec![Box::new(gauge)]];
    let mut chain = Chain::new(MatrixField::cold(&domain)?, &[outer, inner], terms, 1.0, 1)?;
    for number in 0..5 {
        let Outcome { delta_h, levels, .. } = chain.trajectory(number, true)?;
        let plaquette = GaugeLoops::traces(&chain.links)?.plaquette();
        println!(
            "{number:>3}  dH {delta_h:>8.4}  {} iterations  plaquette {plaquette:.6}",
            levels[0].iterations
        );
        assert!(delta_h.abs() < 1.0);
    }
    Ok(())
}
