//! A solver on a configuration: the pion of a clover quark from a point source, by BiCGstab in double-half.
use hmc::operator::CloverForm;
use hmc::prelude::*;
use hmc::solver::Method;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::local([4, 4, 4, 8])?;
    let links = MatrixField::cold(&domain)?;
    let operator = WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.0,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Asymmetric,
        clover: CloverForm::Linear,
    };
    let solver = Settings { method: Method::BICGSTAB, ..Settings::cg(Precision::Half, 1000) };
    let params = QuarkParams { operator, solver, link_reals: 12, guess: Past::NONE };
    let mut quark = WilsonQuark::new(&links, &params, 1e-10)?;
    let correlator = pion(&mut quark, Source::Point([0; 4]))?;
    for (t, c) in correlator.iter().enumerate() {
        println!("{t} {c:.10e}");
    }
    // Positive, and on unit links the same forwards and backwards in t.
    for t in 1..8 {
        assert!(correlator[t] > 0.0 && (correlator[t] / correlator[8 - t] - 1.0).abs() < 1e-8);
    }
    Ok(())
}
