//! Domain-wall quarks: the program's operator in every storage against dense matrices in the fifth dimension, its
//! hermiticity, solutions on all sites, and the determinants that make it an overlap operator.
//!
//! Found errors are printed: `cargo test --release --test suite kernels::domain_wall -- --nocapture`.
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]

use crate::devices::domains;
use crate::reference::domain_wall::{self as plain, Dense, Field, Wall};
use crate::reference::gauge::{Gauge, parity};
use crate::reference::wilson::{random_field, restrict};
use crate::terms::listed_weights;
use hmc::device::Precision;
use hmc::family::{DomainWall, DomainWallParams, OnSlices, reflect};
use hmc::field::{Dagger, Domain, EVEN, Kind, MatrixField, ODD, Spinor};
use hmc::lattice::{Boundary, Extents, volume};
use hmc::math::WallWeights;
use hmc::operator::{Operator, WilsonLinks};
use hmc::solver::{Cg, Operators, Params, Solver};
use num_complex::Complex64;
use std::sync::Arc;

const EXTENTS: Extents = [4, 4, 4, 4];
const ANTIPERIODIC: [f64; 4] = [0.0, 0.0, 0.0, 1.0];
const TWISTED: [f64; 4] = [0.1, -0.3, 0.5, 0.8];
const LINK_REALS: [usize; 3] = [18, 12, 8];
/// Of gamma_5 D_w with M5 = 1.3, as in large ensembles.
const SPECTRUM: [f64; 2] = [0.05, 6.2];

fn params(weights: WallWeights, m5: f64, mass: [f64; 2], boundary: [f64; 4]) -> DomainWallParams {
    DomainWallParams { weights, m5, mass, boundary: Boundary::phases(boundary) }
}

/// Each kind of weights; odd N_s and the most slices that kernels take; one mass, two, and Pauli and Villars.
fn cases() -> [(&'static str, DomainWallParams); 8] {
    [
        ("Shamir 8", params(WallWeights::shamir(8), 1.8, [0.1, 0.1], ANTIPERIODIC)),
        ("Mobius 12", params(WallWeights::mobius(12, 1.5, 0.5), 1.8, [0.02, 0.6], TWISTED)),
        ("Borici 4", params(WallWeights::borici(4), 1.6, [1.0, 1.0], ANTIPERIODIC)),
        ("optimal 10", params(WallWeights::optimal(10, SPECTRUM), 1.3, [0.01, 0.01], TWISTED)),
        ("symmetric 6", params(WallWeights::symmetric_optimal(6, SPECTRUM), 1.3, [0.3, 0.05], ANTIPERIODIC)),
        ("Mobius 5", params(WallWeights::mobius(5, 1.25, 0.25), 1.4, [0.2, 0.0], TWISTED)),
        ("listed 6", params(listed_weights(6, 0.7), 1.2, [0.05, 0.05], TWISTED)),
        ("optimal 48", params(WallWeights::optimal(48, [0.001, 6.4]), 1.3, [0.004, 0.004], ANTIPERIODIC)),
    ]
}

fn wall<'a>(links: &'a Gauge, p: &DomainWallParams) -> Wall<'a> {
    Wall::new(links, [&p.weights.omega, &p.weights.sigma], p.m5, p.mass, p.boundary.theta())
}

fn operator(
    domain: &Arc<Domain>,
    (precision, reals): (Precision, usize),
    fields: usize,
    p: &DomainWallParams,
    links: &Gauge,
) -> DomainWall {
    let mut operator = DomainWall::several(domain, precision, reals, fields, p).unwrap();
    operator.update(&MatrixField::from_host(domain, &links.to_host()).unwrap()).unwrap();
    operator
}

fn random(extents: Extents, slices: usize, seed: u64) -> Field {
    (0..slices).map(|s| random_field(extents, 1000 * seed + s as u64)).collect()
}

fn of_parity(extents: Extents, psi: &Field, parity: usize) -> Field {
    psi.iter().map(|slice| restrict(extents, slice, parity)).collect()
}

fn new(domain: &Arc<Domain>, precision: Precision, slices: usize) -> Spinor {
    Spinor::of(domain, Kind::Wall(slices), precision, 1).unwrap()
}

/// The sites of `parity`, rounded to `precision`.
fn upload(domain: &Arc<Domain>, precision: Precision, parity: usize, psi: &Field) -> Spinor {
    let [mut double, mut x] = [Precision::Double, precision].map(|p| new(domain, p, psi.len()));
    let reals: Vec<f64> = plain::flat(psi).iter().flat_map(|z| [z.re, z.im]).collect();
    double.read_host(parity, &reals).unwrap();
    x.copy_from(&double).unwrap();
    x
}

/// The sites of `parity` as doubles; zero on the others.
fn download(x: &Spinor, parity: usize) -> Field {
    let (domain, slices) = (x.domain(), x.kind().slices());
    let mut double = new(domain, Precision::Double, slices);
    double.copy_from(x).unwrap();
    let mut reals = vec![0.0; 24 * slices * volume(domain.partition().local())];
    double.write_host(parity, &mut reals).unwrap();
    let complex: Vec<Complex64> = reals.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect();
    plain::shaped(&complex, slices)
}

fn dot(a: &Field, b: &Field) -> Complex64 {
    plain::flat(a).iter().zip(plain::flat(b)).map(|(a, b)| a.conj() * b).sum()
}

fn norm(a: &Field) -> f64 {
    dot(a, a).re.sqrt()
}

/// |a - b| / |b|
fn distance(a: &Field, b: &Field) -> f64 {
    norm(&plain::add(a, -1.0, b)) / norm(b)
}

fn assert_same_bits(a: &Field, b: &Field, what: &str) {
    let bits = |x: &Field| -> Vec<[u64; 2]> {
        plain::flat(x).iter().map(|z| [z.re.to_bits(), z.im.to_bits()]).collect()
    };
    assert!(bits(a) == bits(b), "{what}: other bits, distance {:.1e}", distance(a, b));
}

/// What |found - C psi| / |C psi| may be.
///
/// Rounded are the spinor, four times what is stored on the way, and links in two hops: each is off by a few roundings u
/// of its own size, 4 u for a hop's sum, and links of 8 reals by a few more where a corner is small (`storage.rs`): 20 u
/// in all. Half precision: a real is off by 2^-16 of the bound of its spinor, 2.3 times the root mean square, or more after T,
/// where that bound sums norms of all slices; 2^-16 sqrt(6) of a link: 12 times 2^-16 in all.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 20.0 * 2f64.powi(-53),
        Precision::Single => 20.0 * 2f64.powi(-24),
        Precision::Half => 12.0 * 2f64.powi(-16),
    }
}

#[test]
fn every_storage_against_the_reference() {
    let links = Gauge::random(EXTENTS, 5);
    let domains = domains(EXTENTS);
    assert!(domains.len() > 1, "no lanes");
    for (name, p) in cases() {
        let slices = p.weights.n_s();
        let odd = of_parity(EXTENTS, &random(EXTENTS, slices, 7), ODD);
        let reference = wall(&links, &p);
        let expected = [false, true].map(|dagger| reference.schur(&odd, dagger));
        for storage in Precision::ALL.into_iter().flat_map(|p| LINK_REALS.map(|r| (p, r))) {
            let mut first: Option<[Field; 2]> = None;
            for domain in &domains {
                let mut operator = operator(domain, storage, 1, &p, &links);
                let x = upload(domain, storage.0, ODD, &odd);
                let found = [false, true].map(|dagger| {
                    let mut y = new(domain, storage.0, slices);
                    operator.schur(&mut y, &x, dagger.into()).unwrap();
                    download(&y, ODD)
                });
                let what = format!("{name}, {storage:?}, {} lanes", domain.lanes().count());
                let same = |a: &[Field; 2], b: &[Field; 2]| {
                    a.iter().zip(b).for_each(|(a, b)| assert_same_bits(a, b, &what));
                };
                // As `Operator` it is M = C^dag.
                let adjoint = [true, false].map(|dagger| {
                    let mut y = new(domain, storage.0, slices);
                    operator.apply(&mut y, &x, dagger.into()).unwrap();
                    download(&y, ODD)
                });
                same(&adjoint, &found);
                match &first {
                    Some(first) => same(&found, first),
                    None => {
                        let off: Vec<f64> =
                            found.iter().zip(&expected).map(|(a, b)| distance(a, b)).collect();
                        println!("{what}: C {:.1e}, C^dag {:.1e}", off[0], off[1]);
                        assert!(off.iter().all(|off| *off < tolerance(storage.0)), "{what}: {off:?}");
                        first = Some(found);
                    }
                }
            }
        }
    }
}

#[test]
fn several_fields_and_shifts_are_as_single_ones() {
    const SHIFT: f64 = 0.37;
    let links = Gauge::random(EXTENTS, 6);
    let (_, p) = cases().into_iter().nth(1).unwrap();
    let slices = p.weights.n_s();
    for domain in domains(EXTENTS) {
        for storage in Precision::ALL.into_iter().flat_map(|p| LINK_REALS.map(|r| (p, r))) {
            let inputs =
                [1, 2, 3].map(|seed| upload(&domain, storage.0, ODD, &random(EXTENTS, slices, seed)));
            let several = || Spinor::of(&domain, p.kind(), storage.0, 3).unwrap();
            let [mut x, mut y] = [several(), several()];
            inputs.iter().enumerate().for_each(|(n, input)| x.set_field(n, input).unwrap());
            let mut together = operator(&domain, storage, 3, &p, &links);
            let mut single = operator(&domain, storage, 1, &p, &links);
            let what = format!("{storage:?}, {} lanes", domain.lanes().count());
            let mut out = new(&domain, storage.0, slices);
            let mut taken = new(&domain, storage.0, slices);
            for dagger in [false, true] {
                together.apply(&mut y, &x, dagger.into()).unwrap();
                for (n, input) in inputs.iter().enumerate() {
                    single.apply(&mut out, input, dagger.into()).unwrap();
                    y.field(n, &mut taken).unwrap();
                    assert_same_bits(&download(&taken, ODD), &download(&out, ODD), &what);
                }
            }
            // C^dag C x + shift x: where the shift is added is the operator's own affair.
            let mut middle = new(&domain, storage.0, slices);
            single.apply_normal(&mut out, &mut middle, &inputs[0], SHIFT).unwrap();
            single.apply(&mut taken, &inputs[0], Dagger::No).unwrap();
            assert_same_bits(&download(&middle, ODD), &download(&taken, ODD), &what);
            single.apply(&mut taken, &middle, Dagger::Yes).unwrap();
            let expected = plain::add(&download(&taken, ODD), SHIFT, &download(&inputs[0], ODD));
            assert!(distance(&download(&out, ODD), &expected) < tolerance(storage.0), "{what}, shifted");
        }
    }
}

#[test]
fn masses_may_change() {
    let links = Gauge::random(EXTENTS, 6);
    let domain = domains(EXTENTS).pop().unwrap();
    for (name, p) in cases() {
        let storage = (Precision::Single, 12);
        let other = DomainWallParams { mass: [0.7, 0.4], ..p.clone() };
        let mut changed = operator(&domain, storage, 1, &p, &links);
        changed.set_mass(other.mass).unwrap();
        assert_eq!(changed.params(), &other);
        let mut made = operator(&domain, storage, 1, &other, &links);
        let x = upload(&domain, storage.0, ODD, &random(EXTENTS, p.weights.n_s(), 4));
        let results = [&mut changed, &mut made].map(|operator| {
            let mut y = new(&domain, storage.0, p.weights.n_s());
            operator.apply(&mut y, &x, Dagger::No).unwrap();
            download(&y, ODD)
        });
        assert_same_bits(&results[0], &results[1], name);
    }
}

/// gamma_5 R (D_w + K) psi by the program's parts.
fn hermitian_form(domain: &Arc<Domain>, p: &DomainWallParams, links: &Gauge, psi: &Field) -> Field {
    let slices = psi.len();
    let mut hopping = WilsonLinks::new(domain, Precision::Double, 18, slices, p.boundary).unwrap();
    hopping.update(&MatrixField::from_host(domain, &links.to_host()).unwrap()).unwrap();
    let coupling = OnSlices::new(domain, Precision::Double, &p.coupling()).unwrap();
    let [even, odd] = [EVEN, ODD].map(|parity| {
        let [own, other] = [parity, 1 - parity].map(|parity| upload(domain, Precision::Double, parity, psi));
        let [mut hopped, mut out] = [(); 2].map(|()| new(domain, Precision::Double, slices));
        hopping.hop(&mut hopped, &other, parity, Dagger::No).unwrap();
        coupling.apply(&mut out, &own, 1.0, Some((-0.5, &hopped))).unwrap();
        out.axpy(4.0 - p.m5, &own).unwrap();
        reflect(&mut hopped, &out, 1.0).unwrap();
        download(&hopped, parity)
    });
    plain::add(&even, 1.0, &odd)
}

/// gamma_5 R (D_w + K) is hermitian, and so C T = T gamma_5 R C^dag gamma_5 R, for symmetric weights alone.
#[test]
fn reflection_hermiticity() {
    let links = Gauge::random(EXTENTS, 8);
    for (name, p) in cases() {
        let slices = p.weights.n_s();
        let [a, b] = [1, 2].map(|seed| random(EXTENTS, slices, seed));
        let reference = wall(&links, &p);
        let form = |psi: &Field| plain::reflected(&reference.symmetrised(psi));
        let expected = [form(&a), form(&b)];
        // Of 24 reals at each of 4^4 sites, of sums of N_s terms: 1e-14 each.
        let asymmetry = |form: &[Field; 2]| {
            (dot(&b, &form[0]) - dot(&a, &form[1]).conj()).norm() / (norm(&b) * norm(&form[0]))
        };
        let symmetric = p.weights.is_symmetric();
        let check = |asymmetry: f64, what: &str| {
            println!("{name}: {what} {asymmetry:.1e}");
            assert!(
                if symmetric { asymmetry < 1e-13 } else { asymmetry > 1e-4 },
                "{name}, {what}: {asymmetry:e}"
            );
        };
        check(asymmetry(&expected), "plain form");
        for domain in domains(EXTENTS) {
            let found = [&a, &b].map(|psi| hermitian_form(&domain, &p, &links, psi));
            for (found, expected) in found.iter().zip(&expected) {
                assert!(distance(found, expected) < 1e-13, "{name}: {:e}", distance(found, expected));
            }
            check(asymmetry(&found), "program's form");
            let mut operator = operator(&domain, (Precision::Double, 18), 1, &p, &links);
            let x = upload(&domain, Precision::Double, ODD, &a);
            let [mut y, mut z, mut reflected] = [(); 3].map(|()| new(&domain, Precision::Double, slices));
            operator.propagate(&mut y, &x, Dagger::No, 1.0, None).unwrap();
            operator.schur(&mut z, &y, Dagger::No).unwrap();
            let left = download(&z, ODD);
            reflect(&mut y, &x, 1.0).unwrap();
            operator.schur(&mut z, &y, Dagger::Yes).unwrap();
            reflect(&mut reflected, &z, 1.0).unwrap();
            operator.propagate(&mut y, &reflected, Dagger::No, 1.0, None).unwrap();
            check(distance(&download(&y, ODD), &left), "C T");
        }
    }
}

/// D x = b on all sites: omega^-1/2 b, the even-odd solve of (T^-1 - D/2) z, x = Y^-1 omega^1/2 z.
#[test]
fn solutions_on_all_sites() {
    // |b - D x| is |C C^dag y - T b'| times the norms of omega^1/2 T^-1 and of C^dag's inverse.
    const RESIDUAL: f64 = 1e-13;
    let links = Gauge::warm(EXTENTS, 0.5, 9);
    let domain = domains(EXTENTS).pop().unwrap();
    for (name, p) in cases() {
        let slices = p.weights.n_s();
        let b = random(EXTENTS, slices, 3);
        let scaled: Field = (b.iter().zip(p.omega(-0.5)))
            .map(|(slice, w)| slice.iter().map(|site| site.map(|spin| spin.map(|z| z * w))).collect())
            .collect();
        let [even, odd] = [EVEN, ODD].map(|parity| upload(&domain, Precision::Double, parity, &scaled));
        let mut operator = operator(&domain, (Precision::Double, 18), 1, &p, &links);
        let [mut rhs, mut y, mut z_even, mut z_odd] =
            [(); 4].map(|()| new(&domain, Precision::Double, slices));
        operator.prepare(&mut rhs, &even, &odd).unwrap();
        let mut solver = Cg::new(&domain, p.kind(), Precision::Double, 1e-3).unwrap();
        let wanted = Params { residual: RESIDUAL, max_iterations: 20_000 };
        let info = solver.solve(&mut Operators::new(&mut operator, None), &mut y, &rhs, wanted).unwrap();
        operator.apply(&mut z_odd, &y, Dagger::No).unwrap();
        operator.finish(&mut z_even, &z_odd, &even).unwrap();
        let to_quark = OnSlices::new(&domain, Precision::Double, &p.to_quark()).unwrap();
        let [x_even, x_odd] = [(&z_even, EVEN), (&z_odd, ODD)].map(|(z, parity)| {
            let mut x = new(&domain, Precision::Double, slices);
            to_quark.apply(&mut x, z, 1.0, None).unwrap();
            download(&x, parity)
        });
        let residual = distance(&wall(&links, &p).apply(&plain::add(&x_even, 1.0, &x_odd)), &b);
        println!("{name}: {info:?}, |b - D x| / |b| = {residual:.1e}");
        assert!(residual < 1e-11, "{name}: {residual:e}");
    }
}

const TINY: Extents = [2, 2, 2, 2];

/// C of the program, element by element.
fn dense_schur(links: &Gauge, p: &DomainWallParams) -> Dense {
    let domain = domains(TINY).remove(0);
    let (slices, sites) = (p.weights.n_s(), volume(TINY));
    let mut operator = operator(&domain, (Precision::Double, 18), 1, p, links);
    let odd: Vec<usize> = (0..12 * sites * slices).filter(|k| parity(TINY, k / 12 % sites) == ODD).collect();
    plain::matrix_of(&odd, [slices, sites], |psi| {
        let mut out = new(&domain, Precision::Double, slices);
        operator.schur(&mut out, &upload(&domain, Precision::Double, ODD, psi), Dagger::No).unwrap();
        download(&out, ODD)
    })
}

/// log |det X| on all sites, X = p + q L on each of six colours and spins of either chirality: det is
/// prod p + (-1)^N m prod q, the permutation's sign being that of a cycle.
fn log_det_x(p: &DomainWallParams) -> f64 {
    let sign = if p.weights.n_s().is_multiple_of(2) { 1.0 } else { -1.0 };
    let diagonal: f64 = p.weights.omega.iter().map(|w| (4.0 - p.m5) * w + 1.0).product();
    let beside: f64 = p.weights.sigma.iter().map(|w| (4.0 - p.m5) * w - 1.0).product();
    let of = |mass: f64| (diagonal + sign * mass * beside).abs().ln();
    6.0 * volume(TINY) as f64 * p.mass.map(of).iter().sum::<f64>()
}

/// det D = det X det C.
#[test]
fn determinant_of_all_sites() {
    let (slices, sites) = (4, volume(TINY));
    let all: Vec<usize> = (0..12 * sites * slices).collect();
    for (name, p) in [
        ("Mobius", params(WallWeights::mobius(slices, 1.5, 0.5), 1.8, [0.1, 0.4], TWISTED)),
        ("optimal", params(WallWeights::optimal(slices, SPECTRUM), 1.3, [0.05, 0.05], ANTIPERIODIC)),
    ] {
        let constant = log_det_x(&p);
        let found = [21, 22].map(|seed| {
            let links = Gauge::random(TINY, seed);
            let reference = wall(&links, &p);
            let full = plain::matrix_of(&all, [slices, sites], |psi| reference.apply(psi));
            let schur = plain::log_det(dense_schur(&links, &p));
            println!("{name}: log det C = {schur}, log det X = {constant}");
            (plain::log_det(full) - schur, schur)
        });
        assert!((found[0].1 - found[1].1).abs() > 0.1, "{name}: both gauge fields have one determinant");
        // Sums of 768 logarithms of order 1.
        for (difference, _) in found {
            assert!((difference - constant).abs() < 1e-9, "{name}: {difference} instead of {constant}");
        }
    }
}

/// The matrices of the fifth dimension against elimination, and their determinants.
#[test]
fn matrices_of_the_fifth_dimension() {
    let links = Gauge::unit(TINY);
    for (name, p) in cases() {
        let (reference, slices) = (wall(&links, &p), p.weights.n_s());
        for (of, found, expected) in
            [("T", p.propagator(), reference.t()), ("K", p.coupling(), reference.k())]
        {
            for (found, expected) in found.iter().zip(&expected) {
                let size = expected.iter().flatten().map(|z| z.norm()).fold(0.0, f64::max);
                for (column, expected) in plain::transposed(expected).iter().enumerate() {
                    let one: Vec<f64> = (0..slices).map(|s| f64::from(u8::from(s == column))).collect();
                    for (found, expected) in found.apply(&one).iter().zip(expected) {
                        let off = (found - expected.re).abs() / size;
                        assert!(off < 1e-13, "{of} of {name}, column {column}: {off:e}");
                    }
                }
            }
        }
        let log_dets: f64 = p.propagator().iter().map(|t| t.log_det()).sum();
        let expected: f64 =
            [0, 1].map(|c| plain::log_det(reference.y(c)) - plain::log_det(reference.x(c))).iter().sum();
        assert!((log_dets - expected).abs() < 1e-11, "{name}: log det T = {log_dets}, {expected}");
    }
}

/// det D(m) / det D(1) = det [(1 + m)/2 + (1 - m)/2 gamma_5 S(H)]: what the weights' sign function is of.
#[test]
fn determinant_of_the_overlap_operator() {
    let links = Gauge::random(TINY, 23);
    for (name, weights, m5) in [
        ("Shamir 4", WallWeights::shamir(4), 1.8),
        ("Mobius 6", WallWeights::mobius(6, 1.5, 0.5), 1.6),
        ("Borici 3", WallWeights::borici(3), 1.8),
        ("optimal 4", WallWeights::optimal(4, SPECTRUM), 1.3),
        ("symmetric 4", WallWeights::symmetric_optimal(4, SPECTRUM), 1.3),
    ] {
        let of = |mass: f64| {
            let p = params(weights.clone(), m5, [mass; 2], ANTIPERIODIC);
            plain::log_det(dense_schur(&links, &p)) + log_det_x(&p)
        };
        let pauli_villars = of(1.0);
        for mass in [0.03, 0.4] {
            let found = of(mass) - pauli_villars;
            let p = params(weights.clone(), m5, [mass; 2], ANTIPERIODIC);
            let expected = plain::log_det(wall(&links, &p).overlap());
            println!("{name}, m = {mass}: {found} and {expected}");
            assert!((found - expected).abs() < 1e-9, "{name}, m = {mass}: {found} instead of {expected}");
        }
    }
}
