//! One flavour of Wilson or domain-wall quarks by several pseudofermions, each with a root of the determinant: force, heat
//! bath and its random numbers, the determinant, parts of the force, and dynamics.

use super::{domain_wall, rhmc};
use crate::devices::{domain, on_one_lane};
use crate::reference::gauge::Gauge;
use crate::terms;
use crate::terms::{check_force, check_parts, check_refresh, fields, quark, random_phi};
use hmc::action::{
    Action, Derivative, Determinant, DeterminantParams, InnerPoles, Power, RationalPower, TermHeader,
};
use hmc::device::Precision;
use hmc::family::{DomainWall, DomainWallParams, Schur, Wilson, WilsonParams};
use hmc::field::{Dagger, Domain, MatrixField, ODD, Purpose, RandomAddress, Spinor};
use hmc::math::ExactSum;
use hmc::quark::Quark;
use std::sync::Arc;

/// Of the residuals, and of the functions.
#[derive(Clone, Copy)]
struct Errors {
    residual: f64,
    function: f64,
}

const TIGHT: Errors = Errors { residual: 1e-14, function: 1e-12 };

/// The number of the term's first pseudofermion.
const NUMBER: u8 = 3;

/// One flavour of so many pseudofermions, alone or over a heavier one.
fn one_flavour<O>(
    domain: &Arc<Domain>,
    (light, heavy): (&O::Params, Option<O::Params>),
    errors: Errors,
    copies: u32,
    inner: Option<usize>,
) -> Determinant<O>
where
    O: Derivative,
    O::Params: Clone,
{
    let Errors { residual, function } = errors;
    let of = |operator| quark(operator, Precision::Double);
    let params = DeterminantParams {
        header: TermHeader {
            name: "strange".into(),
            number: NUMBER,
            action_residual: residual,
            force_residual: residual,
        },
        light: of(light.clone()),
        heavy: heavy.map(of),
        power: Power::Rational(RationalPower {
            copies,
            range: [1e-4, 100.0],
            heavy_range: Some([1e-3, 100.0]),
            action_error: function,
            force_error: function,
            check_every: 1000,
            inner: inner.map(|poles| InnerPoles { name: "inner".into(), poles }),
        }),
    };
    Determinant::new(domain, params).unwrap()
}

fn wilson(domain: &Arc<Domain>, light: &WilsonParams, copies: u32) -> Determinant<Wilson> {
    one_flavour(domain, (light, None), TIGHT, copies, None)
}

/// Over the Pauli-Villars fields.
fn wall(
    domain: &Arc<Domain>,
    light: &DomainWallParams,
    errors: Errors,
    copies: u32,
    inner: Option<usize>,
) -> Determinant<DomainWall> {
    one_flavour(domain, (light, Some(light.with_mass([1.0; 2]))), errors, copies, inner)
}

/// As of one pseudofermion.
#[test]
fn force() {
    let links = Gauge::warm([4; 4], 0.8, 5);
    let domain = domain([4; 4]);
    let (c_sw, schur) = rhmc::FORMS[3];
    let mut term = wilson(&domain, &rhmc::operator(0.115, c_sw, schur), 2);
    terms::set_random_pseudofermions(&mut term, 23);
    check_force(&format!("2 copies, c_sw {c_sw} {schur:?}"), &links, &mut term, &domain, 5e-3, 1e-9);
    let [_, (name, light), ..] = domain_wall::quarks();
    let mut term = wall(&domain, &light, TIGHT, 2, None);
    terms::set_random_pseudofermions(&mut term, 23);
    check_force(&format!("2 copies, {name}"), &links, &mut term, &domain, 2e-3, 1e-9);
}

/// S of a refresh is the sum of `|eta|^2` of consecutive streams, one a copy, and `-log det A` once; S of the links is the
/// same, to the errors of functions of 1e-12.
#[test]
fn heat_bath() {
    let extents = [4; 4];
    let domain = domain(extents);
    let host = Gauge::warm(extents, 0.8, 5);
    let links = fields(&host, &domain);
    let eta = |k: u32| {
        let mut eta = Spinor::new(&domain, Precision::Double).unwrap();
        let purpose = Purpose::Pseudofermion(NUMBER + k as u8);
        eta.set_random(ODD, 0.5f64.sqrt(), RandomAddress { seed: 11, trajectory: 3, purpose }).unwrap();
        eta.norm2().unwrap()
    };
    for (copies, schur) in [(1, Schur::Symmetric), (2, Schur::Asymmetric), (5, Schur::Symmetric)] {
        let operator = rhmc::operator(0.115, 1.0, schur);
        let mut term = wilson(&domain, &operator, copies);
        check_refresh(&format!("{copies} copies, {schur:?}"), &links, &mut term, 1e-11);
        let drawn = term.refresh(&links, 11, 3).unwrap();
        let gauss = (0..copies).map(eta).fold(ExactSum::default(), |sum, eta| sum + eta);
        let (found, expected) = ((drawn - gauss).value(), -terms::reference_log_det(&host, &operator));
        let error = (found - expected).abs();
        println!("{copies} copies, {schur:?}: -log det A is {found}, error {error:.1e}");
        assert!(expected.abs() > 0.1 && error < 1e-11, "{schur:?}: {found} is not {expected}");
        let report = term.report().unwrap().text;
        assert_eq!(report.contains(&format!("; {copies} pseudofermions;")), copies > 1, "{report}");
        assert!(report.contains("spectrum ["), "{report}");
    }
    let [(name, light), ..] = domain_wall::quarks();
    let mut term = wall(&domain, &light, TIGHT, 3, None);
    check_refresh(&format!("3 copies, {name}"), &links, &mut term, 1e-11);
}

/// `S = sum_k |(W^dag W)^(-1/4n) (V^dag V)^(1/4n) phi_k|^2 - log det A_W + log det A_V` of the dense reference: the weight
/// of n pseudofermions is that of one.
#[test]
fn every_copy_has_a_root_of_the_determinant() {
    let extents = [2; 4];
    let domain = on_one_lane(extents);
    let links = Gauge::warm(extents, 0.7, 9);
    let field = fields(&links, &domain);
    for (schur, is_ratio, copies) in
        [(Schur::Asymmetric, false, 64), (Schur::Symmetric, false, 3), (Schur::Symmetric, true, 2)]
    {
        let (light, heavy) = (rhmc::operator(0.12, 1.0, schur), rhmc::operator(0.1, 0.6, schur));
        let modes = [&light, &heavy].map(|operator| {
            let w = terms::reference_operator(&links, operator);
            terms::eigen(terms::product(&terms::adjoint(&w), &w))
        });
        let [of_light, of_heavy] =
            [&light, &heavy].map(|operator| terms::reference_log_det(&links, operator));
        let root = 0.25 / f64::from(copies);
        let over = is_ratio.then_some(heavy);
        let mut term = one_flavour::<Wilson>(&domain, (&light, over), TIGHT, copies, None);
        let mut expected = if is_ratio { of_heavy - of_light } else { -of_light };
        for (k, phi) in (31..).zip(term.pseudofermions()) {
            let reals = random_phi(extents, k);
            phi.field.read_host(phi.parity, &reals).unwrap();
            let odd = terms::odd_part(extents, &reals);
            let chi = if is_ratio { rhmc::power(&modes[1], root, &odd) } else { odd };
            expected += terms::norm2(&rhmc::power(&modes[0], -root, &chi));
        }
        assert_eq!(term.pseudofermions().len(), copies as usize);
        let found = term.value(&field).unwrap().value();
        let error = ((found - expected) / expected).abs();
        println!("{schur:?}, {copies} copies, ratio {is_ratio}: S {found:.12e}, error {error:.1e}");
        assert!(error < 1e-11, "{schur:?}, {copies} copies: {found} is not {expected}");
    }
}

/// What the heat bath draws has the whole determinant as its weight; the more pseudofermions, the less it fluctuates.
#[test]
fn the_weight_is_the_determinant() {
    let extents = [2; 4];
    let domain = on_one_lane(extents);
    // Far below what 200 draws resolve.
    let errors = Errors { residual: 1e-7, function: 1e-6 };
    let check = |what: &str, term: &mut dyn Action, pair: &[MatrixField; 2], expected: f64| {
        let (mean, error) = domain_wall::reweighted(term, pair);
        let off = (mean - expected) / error;
        println!("{what}: {mean:.5} +- {error:.5} against {expected:.5}: {off:.2} sigma");
        assert!((expected - 1.0).abs() > 5.0 * error, "{what}: cannot tell it from 1");
        assert!(off.abs() < 3.0, "{what}: {mean} +- {error} is not {expected}");
        error
    };
    let operator = rhmc::operator(0.12, 1.0, Schur::Symmetric);
    let pair = [0.6, 0.64].map(|epsilon| Gauge::warm(extents, epsilon, 9));
    let [from, to] = pair.each_ref().map(|links| terms::reference_log_abs_det(links, &operator));
    let (expected, pair) = ((to - from).exp(), pair.map(|links| fields(&links, &domain)));
    let of = |copies| {
        let mut term = one_flavour::<Wilson>(&domain, (&operator, None), errors, copies, None);
        check(&format!("Wilson, {copies} copies"), &mut term, &pair, expected)
    };
    let (one, three) = (of(1), of(3));
    assert!(three < 0.8 * one, "{three} is not below {one}");
    let [(name, light, pair), ..] = domain_wall::pairs();
    let [from, to] = pair.each_ref().map(|links| domain_wall::log_weight(links, &light));
    let pair = pair.map(|links| fields(&links, &domain));
    let mut term = wall(&domain, &light, errors, 3, None);
    check(&format!("{name}, 3 copies"), &mut term, &pair, (to - from).exp());
}

/// Right-hand sides that are solved together have the bits that each has alone, also if one converges long before the others
/// or is zero.
#[test]
fn sides_together_have_the_bits_of_one_by_one() {
    let extents = [4, 4, 4, 8];
    let (domain, links) = (domain(extents), Gauge::warm(extents, 0.5, 5));
    let (field, shifts) = (fields(&links, &domain), [0.3, 1e-4, 2e-2, 7.0]);
    let (c_sw, schur) = rhmc::FORMS[3];
    let [_, (_, wall), ..] = domain_wall::quarks();
    one_by_one::<Wilson>(&field, rhmc::operator(0.13, c_sw, schur), &shifts);
    one_by_one::<DomainWall>(&field, wall, &shifts);
}

fn one_by_one<O: Derivative>(links: &MatrixField, operator: O::Params, shifts: &[f64])
where
    O::Params: Clone,
{
    let domain = links.domain();
    let (d, s, h) = (Precision::Double, Precision::Single, Precision::Half);
    for (iteration, refinement) in [(d, d), (s, s), (d, s), (d, h)] {
        let mut params = quark(operator.clone(), d);
        params.solver.precisions = [d, iteration, refinement];
        let mut quarks = [4, 1].map(|sides| Quark::<O>::with_shifts(domain, &params, sides).unwrap());
        quarks.iter_mut().for_each(|quark| quark.update(links).unwrap());
        let [together, alone] = &mut quarks;
        let new = || Spinor::of(domain, alone.kind(), d, 1).unwrap();
        let mut b: Vec<Spinor> = (0..4).map(|_| new()).collect();
        let address = |k| RandomAddress { seed: 5, trajectory: 0, purpose: Purpose::Probe(k) };
        for (k, b) in (0..).zip(&mut b).filter(|(k, _)| *k != 2) {
            b.set_random(ODD, 1.0, address(k)).unwrap();
        }
        // Nearly all in the space of great eigenvalues.
        let mut middle = new();
        for _ in 0..6 {
            alone.apply(&mut middle, &b[1], Dagger::No).unwrap();
            alone.apply(&mut b[1], &middle, Dagger::Yes).unwrap();
        }
        let reals = |x: &Spinor| {
            let mut reals =
                vec![0.0; domain.partition().local().iter().product::<usize>() * 24 * x.kind().slices()];
            x.write_host(ODD, &mut reals).unwrap();
            reals
        };
        let solved = together.solve_shifted(&b, shifts, 1e-11).unwrap();
        let iterations: Vec<usize> = solved.iter().map(|(info, _)| info.total.iterations).collect();
        for (k, (info, x)) in solved.iter().enumerate() {
            let (own, y) = alone.solve_shifted(&b[k..=k], shifts, 1e-11).unwrap().remove(0);
            assert_eq!(own.total.iterations, info.total.iterations, "{iteration:?} {refinement:?}, side {k}");
            assert_eq!(own.total.applications, info.total.applications);
            assert_eq!(own.residuals, info.residuals);
            let equal = x.iter().zip(&y).all(|(x, y)| reals(x) == reals(y));
            assert!(equal, "{iteration:?} {refinement:?}, side {k}");
        }
        println!("{iteration:?} {refinement:?}: {iterations:?} iterations");
        assert!(iterations[1] < iterations[0] && iterations[2] == 0, "{iterations:?}");
    }
}

/// Each copy's force is divided by its poles.
#[test]
fn parts() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.8, 5), &domain);
    let [(name, light), ..] = domain_wall::quarks();
    let mut term = wall(&domain, &light, TIGHT, 2, Some(8));
    check_parts(name, &links, &mut term, &["strange", "inner"], 1e-10);
}

/// With the greatest poles of each copy on a level inside.
#[test]
fn divided_copies_are_of_second_order_and_reversible() {
    rhmc::check_divided("one flavour of 2 copies in two parts", |domain, operator| {
        let errors = Errors { residual: 1e-13, function: 1e-11 };
        one_flavour::<Wilson>(domain, (&operator, None), errors, 2, Some(8))
    });
}
