//! Derivatives in the chemical potential: those of the plain operators, and the traces made of them.

use super::{Measured, clover, keys};
use crate::devices::domain;
use crate::reference::gauge::Gauge;
use crate::reference::staggered::{self, Paths, Staggered, Vector};
use crate::reference::wilson::{self, Dirac, Parameters, Spinor};
use crate::terms::whole;
use hmc::field::{Domain, EVEN, Kind, ODD};
use hmc::input::{Fermion, parse_measure};
use hmc::lattice::Extents;
use hmc::measure::{Noise, Wanted, mu_traces};
use hmc::quark::{Fields, HopDerivative, Inverse, QuarkError, fields};
use hmc::solver::Info;
use num_complex::Complex64;
use std::sync::Arc;

const EXTENTS: Extents = [4, 4, 2, 6];
const PHASES: [f64; 4] = [0.0, 0.3, 0.0, 1.0];
const EPSILON: f64 = 0.1;

/// The fermion of these keys.
fn fermion(keys: &str) -> Fermion {
    let text = format!("[fermion.light]\n{keys}\nboundary = {PHASES:?}\n[measure.loops]\n");
    parse_measure(&text, "").unwrap_or_else(|error| panic!("{error}")).input.fermions.remove(0)
}

/// The program's derivative of a field, as reals in order of the sites.
fn derivative(fermion: &Fermion, gauge: &Gauge, order: u32, kind: Kind, x: &[f64]) -> Vec<f64> {
    let links = whole(&gauge.to_host());
    let wanted = Wanted { mass: None, twisted_mass: None, naik_epsilon: EPSILON, residual: 1e-10 };
    let mut found = fermion.derivative(&links, wanted, order).unwrap().unwrap();
    let [mut input, mut out] = [(); 2].map(|()| fields(links.domain(), kind, 1).unwrap());
    let mut reals = vec![0.0; x.len()];
    for parity in [EVEN, ODD] {
        input[parity][0].read_host(parity, x).unwrap();
    }
    found.apply(&mut out, &input).unwrap();
    for parity in [EVEN, ODD] {
        out[parity][0].write_host(parity, &mut reals).unwrap();
    }
    reals
}

/// Links in time times e^{i n h}: what a chemical potential i h does to hops over n sites.
fn with_potential(gauge: &Gauge, sites: f64, h: f64) -> Gauge {
    let mut turned = gauge.clone();
    let factor = Complex64::cis(sites * h);
    turned.links.iter_mut().for_each(|links| links[3].iter_mut().flatten().for_each(|u| *u *= factor));
    turned
}

/// `d^n M / d mu^n x` from differences: mu = i h.
fn difference(order: u32, apply: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    const H: f64 = 1e-4;
    let [below, at, above] = [-H, 0.0, H].map(apply);
    let of = |n: usize| match order {
        1 => (above[n] - below[n]) / (2.0 * H),
        _ => -(above[n] - 2.0 * at[n] + below[n]) / (H * H),
    };
    let found: Vec<f64> = (0..at.len()).map(of).collect();
    // That of the first order is times i.
    match order {
        1 => found.chunks_exact(2).flat_map(|z| [z[1], -z[0]]).collect(),
        _ => found,
    }
}

fn compare(what: &str, found: &[f64], expected: &[f64]) {
    let size = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
    let error = found.iter().zip(expected).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt() / size;
    println!("{what}: {error:.1e}");
    // The differences are good to h^2, and of second order to 1e-16 / h^2.
    assert!(error < 1e-6 && size > 1.0, "{what}: {error:e}");
}

#[test]
fn derivatives_are_those_of_the_operators() {
    let gauge = Gauge::warm(EXTENTS, 0.5, 8);
    for order in [1, 2] {
        let psi = wilson::random_field(EXTENTS, 5);
        let parameters = Parameters { phases: PHASES, ..Parameters::from_kappa(0.12, 1.3) };
        let clover = fermion("action = \"wilson-clover\"\nkappa = 0.12\nc_sw = 1.3");
        let found = derivative(&clover, &gauge, order, Kind::Dirac, &wilson::reals(&psi));
        let expected = difference(order, |h| {
            let turned = with_potential(&gauge, 1.0, h);
            wilson::reals(&Dirac::new(&turned, parameters).apply(&psi))
        });
        compare(&format!("clover, order {order}"), &found, &expected);

        let chi: Vec<Vector> = psi.iter().map(|psi: &Spinor| psi[0]).collect();
        let reals = |chi: &[Vector]| chi.iter().flatten().flat_map(|z| [z.re, z.im]).collect::<Vec<f64>>();
        let hisq = fermion("action = \"hisq\"");
        let found = derivative(&hisq, &gauge, order, Kind::Colour, &reals(&chi));
        let fat7 = staggered::reunitarised_fat7(&gauge);
        let paths = Paths::hisq(EPSILON);
        let (fat, long) =
            (staggered::smear(&fat7, |mu| paths.fat(mu)), staggered::smear(&fat7, |mu| paths.long(mu)));
        let expected = difference(order, |h| {
            let turned = (with_potential(&fat, 1.0, h), with_potential(&long, 3.0, h));
            reals(&Staggered::of_links(turned.0, turned.1, PHASES).apply(&chi))
        });
        compare(&format!("HISQ, order {order}"), &found, &expected);
    }
}

/// `M = a`.
struct Multiple(Arc<Domain>, Complex64);

impl Multiple {
    fn times(factor: Complex64, out: &mut Fields, x: &Fields) {
        for (out, x) in out.iter_mut().flatten().zip(x.iter().flatten()) {
            out.set_zero().unwrap();
            out.caxpy(factor, x).unwrap();
        }
    }
}

impl Inverse for Multiple {
    fn domain(&self) -> &Arc<Domain> {
        &self.0
    }

    fn kind(&self) -> Kind {
        Kind::Colour
    }

    fn together(&self) -> usize {
        2
    }

    fn solve(&mut self, x: &mut Fields, b: &Fields) -> Result<Info, QuarkError> {
        Self::times(1.0 / self.1, x, b);
        Ok(Info::default())
    }
}

impl HopDerivative for Multiple {
    fn apply(&mut self, out: &mut Fields, x: &Fields) -> Result<(), QuarkError> {
        Self::times(self.1, out, x);
        Ok(())
    }
}

/// Where all are numbers, the traces are them, times `|R|^2 / V`, which is 3 in the mean.
#[test]
fn traces_are_put_together_rightly() {
    let domain = domain([4; 4]);
    let number = |re, im| Multiple(Arc::clone(&domain), Complex64::new(re, im));
    let (m, once, twice) = ([2.0, 1.0], [0.5, -1.5], [0.25, 3.0]);
    let [mut quark, mut first, mut second] = [m, once, twice].map(|[re, im]| number(re, im));
    let noise = Noise { seed: 5, trajectory: 1 };
    let traces = mu_traces(&mut quark, [&mut first, &mut second], 5, noise, &|| false).unwrap();
    let [m, once, twice] = [m, once, twice].map(|[re, im]| Complex64::new(re, im));
    let of = |n: usize, factor: Complex64| -> f64 {
        let [re, im] = traces.first.values[n];
        let size = Complex64::new(re, im) / (once / m);
        assert!(size.im.abs() < 1e-12 && (size.re - 3.0).abs() < 0.4, "{size}");
        let expected = factor * size.re;
        let [second, product] = [&traces.second, &traces.product].map(|trace| trace.values[n]);
        let found = if factor == twice / m { second } else { product };
        (Complex64::new(found[0], found[1]) - expected).norm()
    };
    for n in 0..5 {
        assert!(of(n, twice / m) < 1e-12 && of(n, once / m * once / m) < 1e-12, "source {n}");
    }
    let mean = traces.first.values.iter().map(|value| value[1]).sum::<f64>() / 5.0;
    assert!((traces.first.mean[1] - mean).abs() < 1e-15 && traces.first.error.unwrap()[0] > 0.0);
}

/// In a run, and on several ranks, where bits are the same.
#[test]
fn runs_measure_them() {
    let table = "[measure.mu_derivative.light]\nfermion = \"light\"\nsources = 3\n";
    let run = clover(2, table);
    let measured = Measured::new(&run, &run);
    let of = |lines: &[serde_json::Value]| {
        lines.iter().map(|line| line["mu_derivatives"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&measured.found), of(&measured.during));
    assert_eq!(measured.during.len(), 2);
    for line in &measured.during {
        let found = &line["mu_derivatives"][0];
        assert_eq!((found["name"].as_str(), found["sources"].as_u64()), (Some("light"), Some(3)));
        for trace in ["first", "second", "product"] {
            assert_eq!(found[trace]["values"].as_array().unwrap().len(), 3);
            assert_eq!(keys(&found[trace]), ["mean", "error", "values"]);
        }
    }
}
