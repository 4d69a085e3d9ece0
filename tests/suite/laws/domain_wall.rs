//! Domain-wall quarks: forces and heat baths of all their terms, the determinant of one flavour by both of its actions,
//! and dynamics.

use crate::devices::{domain, on_one_lane};
use crate::reference::domain_wall::{self as plain, Dense, Wall};
use crate::reference::gauge::{Gauge, parity};
use crate::terms;
use crate::terms::{check_dynamics, check_force, check_refresh, fields, listed_weights, quark, random_phi};
use hmc::action::{
    Action, ActionError, Determinant, DeterminantParams, GaugeAction, InnerPoles, Power, RationalPower,
    Smeared, TermHeader,
};
use hmc::device::Precision;
use hmc::family::{DomainWall, DomainWallParams, ExactOneFlavour, ExactOneFlavourParams};
use hmc::field::{Domain, EVEN, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use hmc::hmc::HmcError;
use hmc::lattice::{Boundary, Extents, volume};
use hmc::math::{Factor, Rational, WallWeights};
use num_complex::Complex64;
use std::sync::Arc;

const TWISTED: [f64; 4] = [0.1, -0.3, 0.5, 0.8];
/// Of gamma_5 D_w.
const SPECTRUM: [f64; 2] = [0.1, 6.4];
/// Of the Pauli-Villars fields.
const HEAVY: f64 = 1.0;

fn params(weights: WallWeights, m5: f64, mass: f64) -> DomainWallParams {
    DomainWallParams { weights, m5, mass: [mass; 2], boundary: Boundary::phases(TWISTED) }
}

/// A quark of each kind of weights; the exact one-flavour action takes the first three.
pub(super) fn quarks() -> [(&'static str, DomainWallParams); 5] {
    [
        ("Shamir 4", params(WallWeights::shamir(4), 1.8, 0.1)),
        ("Mobius 6", params(WallWeights::mobius(6, 1.5, 0.5), 1.6, 0.1)),
        ("symmetric 4", params(WallWeights::symmetric_optimal(4, SPECTRUM), 1.3, 0.1)),
        ("optimal 5", params(WallWeights::optimal(5, SPECTRUM), 1.4, 0.1)),
        ("listed 5", params(listed_weights(5, 0.5), 1.5, 0.1)),
    ]
}

/// How precise a term is.
#[derive(Clone, Copy)]
pub(super) struct Errors {
    precision: Precision,
    residual: f64,
    function: f64,
}

pub(super) const TIGHT: Errors = Errors { precision: Precision::Double, residual: 1e-13, function: 1e-12 };

fn two_flavours(
    domain: &Arc<Domain>,
    light: &DomainWallParams,
    heavy: f64,
    errors: Errors,
) -> Determinant<DomainWall> {
    let params = DeterminantParams {
        header: TermHeader {
            name: "light".into(),
            number: 0,
            action_residual: errors.residual,
            force_residual: errors.residual,
        },
        light: quark(light.clone(), errors.precision),
        heavy: Some(quark(light.with_mass([heavy; 2]), errors.precision)),
        power: Power::Inverse,
    };
    Determinant::new(domain, params).unwrap()
}

/// With exact chiral symmetry A is from a to a / m, `a = (1 + g m) / (1 + g)`, g the product of sigma / omega of an even
/// number of slices: from 1 of Shamir's quarks, (1 + m) / 2 of optimal ones.
const EXACT_RANGE: [f64; 2] = [0.3, 30.0];

fn exact(domain: &Arc<Domain>, light: &DomainWallParams, range: [f64; 2], errors: Errors) -> ExactOneFlavour {
    let params = ExactOneFlavourParams {
        header: TermHeader {
            name: "strange".into(),
            number: 1,
            action_residual: errors.residual,
            force_residual: errors.residual,
        },
        quark: quark(light.clone(), errors.precision),
        heavy_mass: HEAVY,
        range,
        error: errors.function,
        forecast: 4,
        check_every: 1,
    };
    ExactOneFlavour::new(domain, params).unwrap()
}

fn rational(
    domain: &Arc<Domain>,
    light: &DomainWallParams,
    errors: Errors,
    check_every: u64,
) -> Determinant<DomainWall> {
    divided(domain, light, errors, check_every, None)
}

/// One flavour over the Pauli-Villars fields, whose force is divided.
pub(super) fn divided(
    domain: &Arc<Domain>,
    light: &DomainWallParams,
    errors: Errors,
    check_every: u64,
    inner: Option<InnerPoles>,
) -> Determinant<DomainWall> {
    let params = DeterminantParams {
        header: TermHeader {
            name: "strange".into(),
            number: 1,
            action_residual: errors.residual,
            force_residual: errors.residual,
        },
        light: quark(light.clone(), errors.precision),
        heavy: Some(quark(light.with_mass([HEAVY; 2]), errors.precision)),
        power: Power::Rational(RationalPower {
            copies: 1,
            range: [1e-4, 30.0],
            heavy_range: Some([1e-3, 30.0]),
            action_error: errors.function,
            force_error: errors.function,
            check_every,
            inner,
        }),
    };
    Determinant::new(domain, params).unwrap()
}

/// Errors of the differences fall with the sixth power of their step: along the force, where A is near singular modes, they
/// were 1.4e-8 with twice this step. Rounding, residuals and errors of functions are below 2e-10.
fn force(what: &str, links: &Gauge, mut term: impl Action, domain: &Arc<Domain>) {
    terms::set_random_pseudofermions(&mut term, 23);
    check_force(what, links, &mut term, domain, 2e-3, 1e-9);
}

#[test]
fn forces_of_two_flavours() {
    for (extents, precision, quarks) in [
        ([4; 4], Precision::Double, &quarks()[..]),
        ([4; 4], Precision::Single, &quarks()[1..2]),
        ([4; 4], Precision::Half, &quarks()[3..4]),
        ([2, 4, 6, 4], Precision::Double, &quarks()[1..2]),
    ] {
        let links = Gauge::warm(extents, 0.8, 5);
        let domain = domain(extents);
        for (n, (name, light)) in quarks.iter().enumerate() {
            // Any mass may divide, of one kind of weights.
            for heavy in [0.4, HEAVY].into_iter().skip(usize::from(n > 0)) {
                let term = two_flavours(&domain, light, heavy, Errors { precision, ..TIGHT });
                force(&format!("{name} over {heavy} {extents:?} {precision:?}"), &links, term, &domain);
            }
        }
    }
}

#[test]
fn forces_of_the_exact_one_flavour_action() {
    for (extents, precision, quarks) in [
        ([4; 4], Precision::Double, &quarks()[..3]),
        ([4; 4], Precision::Single, &quarks()[2..3]),
        ([2, 4, 6, 4], Precision::Double, &quarks()[1..2]),
    ] {
        let links = Gauge::warm(extents, 0.8, 5);
        let domain = domain(extents);
        for (name, light) in quarks {
            let term = exact(&domain, light, EXACT_RANGE, Errors { precision, ..TIGHT });
            force(&format!("exact, {name} {extents:?} {precision:?}"), &links, term, &domain);
        }
    }
}

#[test]
fn forces_of_one_flavour_by_rational_functions() {
    let links = Gauge::warm([4; 4], 0.8, 5);
    let domain = domain([4; 4]);
    // The others differ in their operator alone, which two flavours have.
    let [shamir, .., optimal, _] = quarks();
    for (name, light) in [shamir, optimal] {
        force(&format!("rational, {name}"), &links, rational(&domain, &light, TIGHT, 1), &domain);
    }
}

#[test]
fn forces_through_smeared_links() {
    let links = Gauge::warm([4; 4], 0.8, 5);
    let domain = domain([4; 4]);
    let [_, (_, light), ..] = quarks();
    let terms: [Box<dyn Action>; 2] = [
        Box::new(exact(&domain, &light, EXACT_RANGE, TIGHT)),
        Box::new(two_flavours(&domain, &light, HEAVY, TIGHT)),
    ];
    for term in terms {
        force("two steps of stout", &links, Smeared::new(&domain, term, 2, 0.1).unwrap(), &domain);
    }
}

/// eta of the exact one-flavour action's heat bath, on even and on odd sites.
fn drawn(domain: &Arc<Domain>, seed: u64, trajectory: u64) -> [Spinor; 2] {
    [EVEN, ODD].map(|parity| {
        let mut eta = Spinor::new(domain, Precision::Double).unwrap();
        let address = RandomAddress { seed, trajectory, purpose: Purpose::Pseudofermion(1) };
        eta.set_random(parity, 0.5f64.sqrt(), address).unwrap();
        eta
    })
}

/// S of a refresh is `|eta|^2`, and S of its links: solves to 1e-13 and functions of errors of 1e-12.
#[test]
fn heat_baths() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.8, 5), &domain);
    for (name, light) in quarks() {
        for precision in [Precision::Double, Precision::Single] {
            let errors = Errors { precision, ..TIGHT };
            for heavy in [0.4, HEAVY] {
                let mut term = two_flavours(&domain, &light, heavy, errors);
                check_refresh(&format!("{name} over {heavy} {precision:?}"), &links, &mut term, 1e-11);
            }
            if precision == Precision::Double {
                let mut term = rational(&domain, &light, errors, 1);
                check_refresh(&format!("rational, {name}"), &links, &mut term, 1e-11);
                println!("{}", term.report().unwrap().text);
            }
            if light.weights.is_symmetric() {
                let mut term = exact(&domain, &light, EXACT_RANGE, errors);
                check_refresh(&format!("exact, {name} {precision:?}"), &links, &mut term, 1e-11);
                let eta = drawn(&domain, 11, 3).map(|eta| eta.norm2().unwrap());
                let (s, eta) = (term.value(&links).unwrap().value(), (eta[EVEN] + eta[ODD]).value());
                println!("exact, {name} {precision:?}: S / |eta|^2 - 1 = {:.1e}", s / eta - 1.0);
                assert!((s / eta - 1.0).abs() < 1e-11, "{name}: S = {s}, |eta|^2 = {eta}");
                println!("{}", term.report().unwrap().text);
            }
        }
    }
}

const TINY: Extents = [2; 4];

/// Quarks of four slices, each with a gauge field and one near by.
pub(super) fn pairs() -> [(&'static str, DomainWallParams, [Gauge; 2]); 3] {
    let near = |seed| [0.6, 0.64].map(|epsilon| Gauge::warm(TINY, epsilon, seed));
    [
        ("Shamir 4", params(WallWeights::shamir(4), 1.8, 0.1), near(9)),
        ("Mobius 4", params(WallWeights::mobius(4, 1.5, 0.5), 1.6, 0.2), near(10)),
        ("symmetric 4", params(WallWeights::symmetric_optimal(4, SPECTRUM), 1.3, 0.15), near(11)),
    ]
}

fn wall<'a>(links: &'a Gauge, p: &DomainWallParams) -> Wall<'a> {
    Wall::new(links, [&p.weights.omega, &p.weights.sigma], p.m5, p.mass, p.boundary.theta())
}

/// `log |det C(m) / det C(1)|` of the plain reference.
pub(super) fn log_weight(links: &Gauge, light: &DomainWallParams) -> f64 {
    let (slices, sites) = (light.slices(), volume(TINY));
    let odd: Vec<usize> = (0..12 * sites * slices).filter(|k| parity(TINY, k / 12 % sites) == ODD).collect();
    let [light, heavy] = [light.clone(), light.with_mass([HEAVY; 2])].map(|quark| {
        let reference = wall(links, &quark);
        plain::log_det(plain::matrix_of(&odd, [slices, sites], |psi| reference.schur(psi, false)))
    });
    light - heavy
}

/// The components of the upper (0) or lower (1) chirality on all sites.
fn chirality(number: usize) -> Vec<usize> {
    (0..12 * volume(TINY)).filter(|i| i % 12 / 6 == number).collect()
}

/// `A = 1 - v^T K^-1 w` of the upper (0) or lower (1) chirality, `w v^T = M(m) - M(1)`, of the plain reference.
fn exact_matrix(links: &Gauge, light: &DomainWallParams, number: usize) -> Dense {
    let (slices, inner) = (light.slices(), 12 * volume(TINY));
    let mass = if number == 0 { [light.mass[0], HEAVY] } else { light.mass };
    let reference = wall(links, &light.with_mass(mass));
    let coupling = reference.k();
    let heavy = wall(links, &light.with_mass([HEAVY; 2])).k();
    let step = plain::plus(&coupling[number], -1.0, &heavy[number]);
    let places = (0..slices).flat_map(|i| (0..slices).map(move |j| (i, j)));
    let (i, j) = places.max_by(|&(a, b), &(c, d)| step[a][b].norm().total_cmp(&step[c][d].norm())).unwrap();
    let w: Vec<Complex64> = step.iter().map(|row| row[j]).collect();
    let v: Vec<Complex64> = step[i].iter().map(|x| x / step[i][j]).collect();
    let all: Vec<usize> = (0..inner).collect();
    let kernel = plain::matrix_of(&all, [1, volume(TINY)], |psi| reference.kernel(psi));
    let zero = Complex64::default();
    let whole = plain::dense(slices * inner, |row, column| {
        let (s, i, from, j) = (row / inner, row % inner, column / inner, column % inner);
        let on_site = if i == j { coupling[i % 12 / 6][s][from] } else { zero };
        if s == from { kernel[i][j] + on_site } else { on_site }
    });
    let own = chirality(number);
    let source = |row: usize| -> Vec<Complex64> {
        own.iter().map(|&i| if row % inner == i { w[row / inner] } else { zero }).collect()
    };
    let sources = (0..slices * inner).map(source).collect();
    let (_, x) = plain::eliminate(whole, sources);
    let projected =
        |i: usize, j: usize| (0..slices).map(|s| v[s] * x[s * inner + own[i]][j]).sum::<Complex64>();
    plain::dense(own.len(), |i, j| f64::from(u8::from(i == j)) - projected(i, j))
}

/// The reals of `set_phi` of a chirality as complex numbers.
fn part(reals: &[f64], number: usize) -> Vec<Complex64> {
    chirality(number).iter().map(|i| Complex64::new(reals[2 * i], reals[2 * i + 1])).collect()
}

/// `x^dag y`
fn overlap(x: &[Complex64], y: &[Complex64]) -> Complex64 {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

/// `sum_c phi_c^dag A_c phi_c`
fn quadratic(a: &[Dense; 2], reals: &[f64]) -> f64 {
    let of = |number: usize| {
        let phi = part(reals, number);
        overlap(&phi, &terms::apply(&a[number], &phi)).re
    };
    of(0) + of(1)
}

/// A is hermitian and S is `phi^dag A phi`, of the dense reference, whose weight `1 / (det A_+ det A_-)` is the
/// ratio of the determinants of C, `(det C C^dag)^(1/2)`.
#[test]
fn the_exact_one_flavour_action_is_the_determinant() {
    let domain = on_one_lane(TINY);
    for (name, light, pair) in pairs() {
        let mut term = exact(&domain, &light, EXACT_RANGE, TIGHT);
        let [from, to] = pair.each_ref().map(|links| {
            let a = [0, 1].map(|number| exact_matrix(links, &light, number));
            for (a, sign) in a.iter().zip(["+", "-"]) {
                let adjoint = terms::adjoint(a);
                let differences =
                    adjoint.iter().flatten().zip(a.iter().flatten()).map(|(x, y)| (x - y).norm());
                let asymmetry = differences.fold(0.0, f64::max);
                println!("{name}: |A_{sign} - A_{sign}^dag| = {asymmetry:.1e}");
                assert!(asymmetry < 1e-12, "{name}: {asymmetry:e}");
            }
            for seed in 31..34 {
                let phi = random_phi(TINY, seed);
                let expected = quadratic(&a, &phi);
                term.set_phi([&phi, &phi]).unwrap();
                let found = term.value(&fields(links, &domain)).unwrap().value();
                let error = (found / expected - 1.0).abs();
                println!("{name}: S {found:.12e}, error {error:.1e}");
                assert!(error < 1e-12, "{name}: {found} is not {expected}");
            }
            let log_det: f64 = a.map(plain::log_det).iter().sum();
            [-log_det, log_weight(links, &light)]
        });
        let [found, expected] = [to[0] - from[0], to[1] - from[1]];
        let error = (found - expected).abs();
        println!("{name}: {found:.12} against {expected:.12}, error {error:.1e}");
        assert!(expected.abs() > 1e-2 && error < 1e-10, "{name}: {found} is not {expected}");
    }
}

/// `<exp(S(U) - S(U'))>` over heat baths on U is `det A(U) / det A(U')` whatever the action is: its mean of so many draws,
/// and the error of the mean.
pub(super) fn reweighted(term: &mut dyn Action, [from, to]: &[MatrixField; 2]) -> (f64, f64) {
    const DRAWS: u64 = 200;
    let weight = |number| {
        let drawn = term.refresh(from, 5, number).unwrap();
        (drawn - term.value(to).unwrap()).value().exp()
    };
    let weights: Vec<f64> = (0..DRAWS).map(weight).collect();
    let mean = weights.iter().sum::<f64>() / DRAWS as f64;
    let variance = weights.iter().map(|w| (w - mean) * (w - mean)).sum::<f64>() / (DRAWS - 1) as f64;
    (mean, (variance / DRAWS as f64).sqrt())
}

/// Both actions of one flavour have the ratio of the determinants as their mean, and errors small enough to see it.
#[test]
fn both_actions_of_one_flavour_are_the_determinant() {
    let domain = on_one_lane(TINY);
    // Far below what 200 draws resolve.
    let errors = |function| Errors { residual: 1e-7, function, ..TIGHT };
    for (name, light, pair) in pairs() {
        let expected = (log_weight(&pair[1], &light) - log_weight(&pair[0], &light)).exp();
        let pair = pair.map(|links| fields(&links, &domain));
        let actions: [(&str, Box<dyn Action>); 2] = [
            ("exact", Box::new(exact(&domain, &light, EXACT_RANGE, errors(1e-4)))),
            ("rational", Box::new(rational(&domain, &light, errors(1e-6), 1000))),
        ];
        for (what, mut action) in actions {
            let (mean, error) = reweighted(&mut *action, &pair);
            let off = (mean - expected) / error;
            println!("{what}, {name}: {mean:.5} +- {error:.5} against {expected:.5}: {off:.2} sigma");
            assert!((expected - 1.0).abs() > 5.0 * error, "{what}, {name}: cannot tell it from 1");
            assert!(off.abs() < 3.0, "{what}, {name}: {mean} +- {error} is not {expected}");
        }
    }
}

/// `phi = A^(-1/2) eta`, of the dense reference; and a range that A's spectrum leaves is refused.
#[test]
fn the_heat_bath_of_the_exact_one_flavour_action() {
    let domain = on_one_lane(TINY);
    for (name, light, [links, _]) in pairs() {
        let field = fields(&links, &domain);
        let modes = [0, 1].map(|number| terms::eigen(exact_matrix(&links, &light, number)));
        let values = || modes.iter().flatten().map(|(value, _)| *value);
        let (lo, hi) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        println!("{name}: A from {lo:.6} to {hi:.6}, 1 / m = {:.3}", 1.0 / light.mass[0]);
        let mut term = exact(&domain, &light, [0.98 * lo, 1.02 * hi], TIGHT);
        term.refresh(&field, 11, 3).unwrap();
        let mut phi = vec![0.0; 24 * volume(TINY)];
        for pseudofermion in term.pseudofermions() {
            pseudofermion.field.write_host(pseudofermion.parity, &mut phi).unwrap();
        }
        let mut eta = vec![0.0; 24 * volume(TINY)];
        let drawn = drawn(&domain, 11, 3);
        for parity in [EVEN, ODD] {
            drawn[parity].write_host(parity, &mut eta).unwrap();
        }
        for (number, modes) in modes.iter().enumerate() {
            let (eta, phi) = (part(&eta, number), part(&phi, number));
            let mut off = phi.clone();
            for (value, mode) in modes {
                let overlap = overlap(mode, &eta);
                off.iter_mut().zip(mode).for_each(|(off, v)| *off -= overlap / value.sqrt() * v);
            }
            let error = (terms::norm2(&off) / terms::norm2(&phi)).sqrt();
            println!("{name}, chirality {number}: phi is off by {error:.1e}");
            assert!(error < 1e-11, "{name}, chirality {number}: {error:e}");
        }
        // phi^dag E phi - |eta|^2 by the modes; narrow ranges have functions that are good far beyond them.
        let ranges =
            [(0.98, 1.02), (0.5, 2.0), (0.98, 0.9), (0.3, 0.6), (1.4, 5.0), (10.0, 20.0), (100.0, 200.0)];
        let refused = ranges.map(|(below, above)| {
            let range = [below * lo, above * hi];
            let factor = Factor { shift: 0.0, power: (-1, 2) };
            let function = Rational::to_error(&[factor], range, TIGHT.function).unwrap();
            let mut off = 0.0;
            for (number, modes) in modes.iter().enumerate() {
                let eta = part(&eta, number);
                for (value, mode) in modes {
                    let (weight, root) = (overlap(mode, &eta).norm_sqr(), function.value(*value));
                    off += (value * root * root - 1.0) * weight;
                }
            }
            let expected: f64 = f64::abs(off);
            let failed = exact(&domain, &light, range, TIGHT).refresh(&field, 11, 3).err();
            println!("{name}, range {range:.3?}: expected {expected:.2e}; {failed:?}");
            let Some(failed) = failed else {
                assert!(expected < 1e-2, "{name}, {range:?}: {expected:e} is let through");
                return false;
            };
            let text = failed.to_string();
            for part in ["off by", &format!("range [{:e}, {:e}]", range[0], range[1]), "give a wider one"] {
                assert!(text.contains(part), "no '{part}' in: {text}");
            }
            let ActionError::HeatBath { error, .. } = failed else { panic!("{text}") };
            assert!((error / expected - 1.0).abs() < 1e-6, "{name}, {range:?}: {expected:e}, {text}");
            assert!(expected > 1e-2, "{name}, {range:?}: {expected:e} is refused");
            true
        });
        assert_eq!([refused[0], refused[1], refused[6]], [false, false, true], "{name}");
        // A trajectory ends with that, and leaves the links.
        let host = links.to_host();
        let term: Box<dyn Action> = Box::new(exact(&domain, &light, [100.0 * lo, 200.0 * hi], TIGHT));
        let mut chain = terms::chain(&host, vec![vec![term]], &domain, 2);
        let failed = chain.trajectory(4, true).unwrap_err();
        let HmcError::Term { term, source: ActionError::HeatBath { .. } } = &failed else {
            panic!("{failed}")
        };
        assert_eq!(term, "strange");
        assert_eq!(chain.links.to_host().unwrap(), host, "the links stay as they are");
    }
}

/// Nf = 2+1: a Hasenbusch mass, the exact action of the third quark, Iwasaki's gauge action.
#[test]
fn a_chain_of_2_1_flavours_has_its_order_and_is_reversible() {
    let domain = domain([4; 4]);
    let quark = |mass| DomainWallParams {
        boundary: Boundary::ANTIPERIODIC,
        ..params(WallWeights::mobius(4, 1.5, 0.5), 1.8, mass)
    };
    check_dynamics("2+1", |links, steps| {
        let quarks: Vec<Box<dyn Action>> = vec![
            Box::new(two_flavours(&domain, &quark(0.4), 0.7, TIGHT)),
            Box::new(two_flavours(&domain, &quark(0.7), HEAVY, TIGHT)),
            Box::new(exact(&domain, &quark(0.5), EXACT_RANGE, TIGHT)),
        ];
        let gauge = GaugeAction::new(&domain, 2.25, [1.0 + 8.0 * 0.331, -0.331, 0.0]).unwrap();
        terms::chain_above(gauge, links, vec![quarks], &domain, terms::OMELYAN, steps)
    });
}
