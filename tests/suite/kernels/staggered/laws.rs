//! D is antihermitian and gauge covariant, and on unit links its spectrum is known.

use super::*;
use crate::reference::gauge::{neighbour, random_transformation};
use hmc::family::{Smearing, StaggeredLinks};
use hmc::field::{Dagger, EVEN, ODD};
use hmc::lattice::Boundary;
use hmc::operator::Operator;

const EXTENTS: Extents = [4, 6, 4, 8];

/// (x, D y) = -(D x, y): each side sums some 10^4 products with 10^-16 each.
#[test]
fn it_is_antihermitian() {
    let links = Links::random(EXTENTS, 9);
    let domain = domain(EXTENTS);
    for long_reals in LONG_REALS {
        let mut operator = links.operator(&domain, (D, long_reals), 1, BOUNDARY);
        let random = |parity, seed| upload(&domain, D, parity, &reals(&plain::random_field(EXTENTS, seed)));
        let (x, y) = (random(ODD, 1), random(EVEN, 2));
        let (mut dx, mut dy) = (colour(&domain, D), colour(&domain, D));
        operator.hop(&mut dx, &x, EVEN, 1.0, None).unwrap();
        operator.hop(&mut dy, &y, ODD, 1.0, None).unwrap();
        let (left, right) = (x.dot(&dy).unwrap(), dx.dot(&y).unwrap());
        let size = (x.norm2().unwrap().value() * dy.norm2().unwrap().value()).sqrt();
        println!("{long_reals} reals: {:.1e}", (left + right).norm() / size);
        assert!((left + right).norm() < 1e-14 * size, "{long_reals} reals: {left} and {right}");
        // As operator and adjoint.
        let mut adjoint = colour(&domain, D);
        operator.apply(&mut adjoint, &x, Dagger::Yes).unwrap();
        adjoint.axpy(1.0, &dx).unwrap();
        assert_eq!(adjoint.norm2().unwrap().value(), 0.0);
    }
}

/// X(x) -> g(x) X(x) g(x+mu)^dag, N(x) -> g(x) N(x) g(x+3mu)^dag, chi -> g chi: then D chi -> g D chi.
#[test]
fn it_is_gauge_covariant() {
    let links = Links::random(EXTENTS, 11);
    let g = random_transformation(EXTENTS, 12);
    let turned = |gauge: &Gauge, steps: usize| {
        let mut turned = gauge.clone();
        for (x, links) in turned.links.iter_mut().enumerate() {
            for (mu, u) in links.iter_mut().enumerate() {
                let end = (0..steps).fold(x, |y, _| neighbour(EXTENTS, y, (mu, 1)));
                *u = su3::mul(&su3::mul(&g[x], u), &su3::adjoint(&g[end]));
            }
        }
        turned
    };
    let other = Links { fat: turned(&links.fat, 1), long: turned(&links.long, 3), naik: links.naik };
    let psi = plain::random_field(EXTENTS, 13);
    let domain = domain(EXTENTS);
    for long_reals in LONG_REALS {
        let apply = |links: &Links, psi: &[Vector]| {
            let mut out = colour(&domain, D);
            let mut operator = links.operator(&domain, (D, long_reals), 1, BOUNDARY);
            operator.hop(&mut out, &upload(&domain, D, EVEN, &reals(psi)), ODD, 1.0, None).unwrap();
            vectors(&download(&out, ODD))
        };
        let expected = reals(&plain::transformed(&apply(&links, &psi), &g));
        let off = distance(&reals(&apply(&other, &plain::transformed(&psi, &g))), &expected);
        println!("{long_reals} reals: {off:.1e}");
        // Nine reals lose some digits where a corner of a link is small.
        assert!(off < if long_reals == 9 { 1e-13 } else { 3e-15 }, "{long_reals} reals: {off:e}");
    }
}

/// On unit links a plane wave has -D^2 = 4 sum_mu (9/8 sin p_mu - 1/24 sin 3 p_mu)^2 = 4 p^2 + O(p^6).
#[test]
fn free_quarks_have_their_dispersion() {
    const LONG: Extents = [4, 4, 8, 24];
    let domain = domain(LONG);
    let unit = MatrixField::from_host(&domain, &Gauge::unit(LONG).to_host()).unwrap();
    for smearing in [Smearing::Asqtad { u0: 1.0 }, Smearing::Hisq { special: false }] {
        let mut smeared = StaggeredLinks::new(&domain, smearing).unwrap();
        smeared.update(&unit).unwrap();
        let mut fat = MatrixField::new(&domain, 4).unwrap();
        smeared.fat(0.0, &mut fat).unwrap();
        for long_reals in LONG_REALS {
            let mut operator = Staggered::new(&domain, D, long_reals, 1, Boundary::phases(BOUNDARY)).unwrap();
            operator.update(&fat, smeared.long(), smeared.naik(0.0)).unwrap();
            for numbers in [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 3, 7], [2, 1, 5, 11]] {
                let p: [f64; 4] = std::array::from_fn(|mu| {
                    let turns = 2.0 * f64::from(numbers[mu]) + BOUNDARY[mu];
                    std::f64::consts::PI * turns / LONG[mu] as f64
                });
                let wave: Vec<Vector> = (0..volume(LONG))
                    .map(|x| {
                        let x = coordinates(LONG, x);
                        let angle = (0..4).map(|mu| p[mu] * x[mu] as f64).sum();
                        [1.0, 0.5, -2.0].map(|size| Complex64::from_polar(size, angle))
                    })
                    .collect();
                let wave = reals(&wave);
                let input = upload(&domain, D, EVEN, &wave);
                let (mut middle, mut out) = (colour(&domain, D), colour(&domain, D));
                operator.apply(&mut middle, &input, Dagger::No).unwrap();
                operator.apply(&mut out, &middle, Dagger::Yes).unwrap();
                let sine = |p: f64| 9.0 / 8.0 * p.sin() - (3.0 * p).sin() / 24.0;
                let value: f64 = p.iter().map(|&p| 4.0 * sine(p).powi(2)).sum();
                let size = input.norm2().unwrap().value().sqrt();
                out.axpy(-value, &input).unwrap();
                let off = out.norm2().unwrap().value().sqrt() / size;
                println!("{smearing:?} {long_reals} reals, {numbers:?}: {value:.6}, off by {off:.1e}");
                assert!(off < 1e-13, "{smearing:?} {long_reals} reals {numbers:?}: off by {off:e}");
                // 9/8 sin p - 1/24 sin 3p = p - 3/40 p^5 + O(p^7)
                let small: f64 = p.iter().map(|&p| 4.0 * p.powi(2) - 0.6 * p.powi(6)).sum();
                if p.iter().all(|&p| p < 0.5) {
                    let next: f64 = p.iter().map(|&p| p.powi(8)).sum();
                    assert!((value - small).abs() < next + 1e-14, "{numbers:?}: {value} and {small}");
                }
            }
        }
    }
}
