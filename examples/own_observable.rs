//! An observable of one's own, in plain Rust on links that were copied to the host: the Polyakov loop in each of the four
//! directions, measured along a short quenched chain. In t it is the library's.
use hmc::field::HostLinks;
use hmc::lattice::{coordinates, site, volume};
use hmc::measure::Polyakov;
use hmc::prelude::*;
use num_complex::Complex64;
use serde_json::json;
use std::sync::Arc;

type Matrix = [[Complex64; 3]; 3];

/// Mean over all lines of `tr prod U_mu / 3`, mu = x, y, z, t; for one rank.
#[derive(Debug)]
struct Lines;

impl Observable for Lines {
    fn measure(&self, context: &mut Context) -> Result<Found, MeasureError> {
        if context.links.domain().comm().size() > 1 {
            return Err(MeasureError::Refused("lines of links are followed on one rank only".into()));
        }
        let links = context.links.to_host()?;
        let lines = [0, 1, 2, 3].map(|mu| mean_line(&links, mu)).map(|line| [line.re, line.im]);
        Ok(Found::from_iter([("lines".to_owned(), json!(lines))]))
    }
}

/// The trace of a closed line does not depend on where it starts, so the mean is over the sites with `x_mu = 0`.
fn mean_line(links: &HostLinks, mu: usize) -> Complex64 {
    let extents = links.local;
    let starts = (0..volume(extents)).map(|n| coordinates(extents, n)).filter(|x| x[mu] == 0);
    let traces = starts.map(|mut x| {
        let mut line = matrix(links, site(extents, x), mu);
        for step in 1..extents[mu] {
            x[mu] = step;
            line = product(&line, &matrix(links, site(extents, x), mu));
        }
        (line[0][0] + line[1][1] + line[2][2]) / 3.0
    });
    traces.sum::<Complex64>() * extents[mu] as f64 / volume(extents) as f64
}

fn matrix(links: &HostLinks, site: usize, mu: usize) -> Matrix {
    let reals = links.link(site, mu);
    [0, 1, 2].map(|row| {
        [0, 1, 2].map(|column| 6 * row + 2 * column).map(|n| Complex64::new(reals[n], reals[n + 1]))
    })
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| (0..3).map(|k| a[row][k] * b[k][column]).sum()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::local([4, 4, 4, 8])?;
    let measure = Measure { observables: vec![Arc::new(Lines), Arc::new(Polyakov)], every: 1 };

    // On unit links every line is 1.
    let cold = measure.run(&mut Context::new(&MatrixField::cold(&domain)?, &mut NoFermions))?.object();
    assert_eq!(cold["lines"], json!([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]));

    let gauge = GaugeAction::new(&domain, 5.5, [1.0, 0.0, 0.0])?;
    let level = Level { scheme: Scheme::Omelyan4, steps: 3 };
    let links = MatrixField::hot(&domain, 1)?;
    let mut chain = Chain::new(links, &[level], vec![vec![Box::new(gauge)]], 1.0, 1)?;
    for number in 0..5 {
        chain.trajectory(number, true)?;
        let measured = measure.run(&mut Context::new(&chain.links, &mut NoFermions))?;
        print!("trajectory {number}\n{}", measured.table());
        let found = measured.object();
        for part in 0..2 {
            let own = found["lines"][3][part].as_f64().ok_or("a number")?;
            let library = found["polyakov"][part].as_f64().ok_or("a number")?;
            assert!((own - library).abs() < 1e-14, "{own} and {library}");
        }
    }
    Ok(())
}
