//! One flavour by rational functions, alone and over a heavier one: solves with many shifts, the ends of the spectrum,
//! force, heat bath, dynamics, the determinant, and what happens outside the range.

use crate::devices::{domain, on_one_lane};
use crate::reference::gauge::{Gauge, random_momenta, shifted};
use crate::terms;
use crate::terms::{OMELYAN, check_dynamics, check_force, check_refresh, fields, quark, random_phi};
use hmc::action::{
    Action, ActionError, Determinant, DeterminantParams, GaugeAction, InnerPoles, Power, RationalPower,
    TermHeader,
};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{
    AlgebraField, Dagger, Domain, HostLinks, Kind, MatrixField, ODD, Purpose, RandomAddress, Spinor,
};
use hmc::hmc::{Chain, HmcError, Level};
use hmc::lattice::Boundary;
use hmc::operator::{CloverForm, Operator};

use hmc::quark::Quark;
use hmc::solver::{Cg, MultiShift, Operators, Params};
use num_complex::Complex64;
use std::sync::Arc;

pub(super) fn operator(kappa: f64, c_sw: f64, schur: Schur) -> WilsonParams {
    WilsonParams {
        kappa,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
        schur,
    }
}

/// Wide enough for both forms of every operator here.
const RANGE: [f64; 2] = [5e-3, 100.0];

fn one_flavour(domain: &Arc<Domain>, operator: WilsonParams, precision: Precision) -> Determinant<Wilson> {
    divided(domain, operator, precision, None)
}

/// One flavour whose force is divided.
pub(super) fn divided(
    domain: &Arc<Domain>,
    operator: WilsonParams,
    precision: Precision,
    inner: Option<InnerPoles>,
) -> Determinant<Wilson> {
    let params = DeterminantParams {
        header: TermHeader {
            name: "strange".into(),
            number: 0,
            action_residual: 1e-14,
            force_residual: 1e-13,
        },
        light: quark(operator, precision),
        heavy: None,
        power: Power::Rational(RationalPower {
            copies: 1,
            range: RANGE,
            heavy_range: None,
            action_error: 1e-12,
            force_error: 1e-11,
            check_every: 1,
            inner,
        }),
    };
    Determinant::new(domain, params).unwrap()
}

pub(super) const FORMS: [(f64, Schur); 4] =
    [(0.0, Schur::Asymmetric), (0.0, Schur::Symmetric), (1.0, Schur::Asymmetric), (1.0, Schur::Symmetric)];

/// The Wilson operator without a clover term in double, single and half.
pub(super) fn wilson(domain: &Arc<Domain>, links: &Gauge, schur: Schur) -> [Wilson; 3] {
    let field = fields(links, domain);
    [Precision::Double, Precision::Single, Precision::Half].map(|precision| {
        let mut wilson = Wilson::new(domain, precision, 18, operator(0.14, 0.0, schur)).unwrap();
        wilson.update(&field, None).unwrap();
        wilson
    })
}

pub(super) fn random(domain: &Arc<Domain>, number: u8) -> Spinor {
    let mut b = Spinor::new(domain, Precision::Double).unwrap();
    b.set_random(ODD, 1.0, RandomAddress { seed: 5, trajectory: 0, purpose: Purpose::Probe(number) })
        .unwrap();
    b
}

/// Second order and reversibility of one flavour with the greatest poles of its force on a level inside. `make` makes the
/// term `strange` with the inner part `inner`.
pub(super) fn check_divided(what: &str, make: impl Fn(&Arc<Domain>, WilsonParams) -> Determinant<Wilson>) {
    let domain = domain([4; 4]);
    check_dynamics(what, |links, steps| {
        let term = make(
            &domain,
            WilsonParams { boundary: Boundary::ANTIPERIODIC, ..operator(0.13, 1.76, Schur::Asymmetric) },
        );
        let gauge = GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0]).unwrap();
        let level = |steps| Level { scheme: OMELYAN, steps };
        let names = [vec!["strange".into()], vec!["inner".into()], vec!["gauge".into()]];
        let links = MatrixField::from_host(&domain, links).unwrap();
        let all: Vec<Box<dyn Action>> = vec![Box::new(gauge), Box::new(term)];
        Chain::with_parts(links, &[level(steps), level(1), level(2)], all, &names, 0.5, 2024).unwrap()
    });
}

#[test]
fn many_shifts_are_as_many_solves() {
    let extents = [4; 4];
    let domain = domain(extents);
    let links = Gauge::warm(extents, 0.2, 5);
    let [mut double, mut single, mut half] = wilson(&domain, &links, Schur::Symmetric);
    let shifts = [0.3, 1e-4, 2e-2, 7.0, 0.0, 40.0];
    let b = random(&domain, 1);
    let spinor = || Spinor::new(&domain, Precision::Double).unwrap();
    let (d, s, h) = (Precision::Double, Precision::Single, Precision::Half);
    for ([iteration, refinement], residual) in [
        ([d, d], 1e-12),
        ([s, s], 1e-12),
        ([s, s], 1e-5),
        ([s, h], 1e-10),
        ([h, h], 1e-10),
        // The operator's precision falls with the residual.
        ([d, s], 1e-12),
        ([d, h], 1e-12),
        ([d, h], 1e-7),
    ] {
        let params = Params { residual, max_iterations: 2000 };
        let mut cg = Cg::new(&domain, Kind::Dirac, refinement, 1e-2).unwrap();
        let precisions = [iteration, refinement];
        let many = MultiShift::new(&domain, Kind::Dirac, precisions, 1e-2, 1);
        let mut x: Vec<Spinor> = shifts.iter().map(|_| spinor()).collect();
        let mut operators =
            Operators { double: &mut double, single: Some(&mut single), half: Some(&mut half) };
        let info = many.solve_all(&mut operators, &mut x, &b, &shifts, params).unwrap();
        let mut separate = 0;
        for ((x, &shift), &reported) in x.iter().zip(&shifts).zip(&info.residuals) {
            // The true residual, without the solver.
            let (mut middle, mut r) = (spinor(), spinor());
            double.apply(&mut middle, x, Dagger::No).unwrap();
            double.apply(&mut r, &middle, Dagger::Yes).unwrap();
            r.axpy(shift, x).unwrap();
            r.axpy(-1.0, &b).unwrap();
            let found = (r.norm2().unwrap().value() / b.norm2().unwrap().value()).sqrt();
            assert!(found <= residual, "shift {shift}: {found:e}");
            assert!((found - reported).abs() < 1e-15 + 1e-3 * found, "{found:e} is reported as {reported:e}");
            // |x - y| / |x| <= 2 residual (lambda_max + shift) / (lambda_min + shift)
            let mut y = spinor();
            let mut operators =
                Operators { double: &mut double, single: Some(&mut single), half: Some(&mut half) };
            separate += cg.solve_shifted(&mut operators, shift, &mut y, &b, params).unwrap().iterations;
            y.axpy(-1.0, x).unwrap();
            let apart = (y.norm2().unwrap().value() / x.norm2().unwrap().value()).sqrt();
            println!(
                "{precisions:?} to {residual:e}, shift {shift}: residual {found:.2e}, apart {apart:.1e}"
            );
            assert!(apart < 1e3 * residual, "shift {shift}: {apart:e}");
        }
        println!(
            "{} iterations, {} of them to refine; {separate} apart",
            info.total.iterations, info.refinements
        );
        // In double nothing is left to refine, and little where the operator's precision falls.
        let few = if refinement == d { 0 } else { info.total.iterations / 8 };
        assert!(iteration != d || info.refinements <= few, "{info:?}");
        // Half brings a digit or two before each shift is on its own.
        assert!(iteration == h || info.total.iterations < separate, "{info:?} against {separate}");
    }
    // Too few iterations are an error.
    let mut x: Vec<Spinor> = shifts.iter().map(|_| spinor()).collect();
    let many = MultiShift::new(&domain, Kind::Dirac, [Precision::Double; 2], 1e-3, 1);
    let params = Params { residual: 1e-12, max_iterations: 5 };
    let mut operators = Operators::new(&mut double, None);
    let error = many.solve_all(&mut operators, &mut x, &b, &shifts, params).unwrap_err();
    assert!(error.to_string().contains("did not converge"), "{error}");
}

/// The force is that of a rational function of error 1e-11, the action of one of 1e-12: their difference shows.
#[test]
fn force() {
    for (extents, precision, forms) in [
        ([4; 4], Precision::Double, &FORMS[..]),
        ([4; 4], Precision::Single, &FORMS[3..]),
        ([4, 2, 6, 4], Precision::Double, &FORMS[2..]),
    ] {
        let links = Gauge::warm(extents, 0.8, 5);
        let domain = domain(extents);
        for &(c_sw, schur) in forms {
            let mut term = one_flavour(&domain, operator(0.115, c_sw, schur), precision);
            term.set_phi(&random_phi(extents, 23)).unwrap();
            let what = format!("one flavour {extents:?} c_sw {c_sw} {schur:?} {precision:?}");
            check_force(&what, &links, &mut term, &domain, 5e-3, 1e-9);
        }
    }
}

/// Errors of both functions, of 1e-12 each.
#[test]
fn heat_bath() {
    let extents = [4; 4];
    let domain = domain(extents);
    let links = fields(&Gauge::warm(extents, 0.8, 5), &domain);
    for (c_sw, schur) in FORMS {
        for precision in [Precision::Double, Precision::Single] {
            let mut term = one_flavour(&domain, operator(0.115, c_sw, schur), precision);
            assert!(term.report().unwrap().text.contains("not yet measured"));
            check_refresh(&format!("c_sw {c_sw} {schur:?} {precision:?}"), &links, &mut term, 1e-11);
            println!("{}", term.report().unwrap().text);
            assert!(term.report().unwrap().text.contains("spectrum ["));
        }
    }
}

#[test]
fn one_flavour_is_of_second_order_and_reversible() {
    let domain = domain([4; 4]);
    check_dynamics("one flavour", |links, steps| {
        let operator =
            WilsonParams { boundary: Boundary::ANTIPERIODIC, ..operator(0.13, 1.76, Schur::Asymmetric) };
        let term: Box<dyn Action> = Box::new(one_flavour(&domain, operator, Precision::Double));
        terms::chain(links, vec![vec![term]], &domain, steps)
    });
}

/// `(W^dag W)^power x` by the eigenvectors of `W^dag W`.
pub(super) fn power(modes: &[(f64, Vec<Complex64>)], power: f64, x: &[Complex64]) -> Vec<Complex64> {
    let mut sum = vec![Complex64::default(); x.len()];
    for (value, v) in modes {
        let overlap: Complex64 = v.iter().zip(x).map(|(v, x)| v.conj() * x).sum();
        sum.iter_mut().zip(v).for_each(|(s, v)| *s += value.powf(power) * overlap * v);
    }
    sum
}

/// `S = phi^dag (W^dag W)^(-1/2) phi - log det A` of the dense reference, whose weight is |det M|.
#[test]
fn one_flavour_is_the_root_of_the_determinant() {
    let extents = [2; 4];
    let domain = on_one_lane(extents);
    let links = Gauge::warm(extents, 0.7, 9);
    let near = shifted(&links, 0.05, &random_momenta(extents, 77));
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        let params = operator(0.12, 1.0, schur);
        let mut term = one_flavour(&domain, params, Precision::Double);
        let mut log_weight = |links: &Gauge| {
            let field = fields(links, &domain);
            let w = terms::reference_operator(links, &params);
            let log_det = terms::reference_log_det(links, &params);
            let modes = terms::eigen(terms::product(&terms::adjoint(&w), &w));
            for seed in 31..34 {
                let phi = random_phi(extents, seed);
                let odd = terms::odd_part(extents, &phi);
                let expected = terms::norm2(&power(&modes, -0.25, &odd)) - log_det;
                term.set_phi(&phi).unwrap();
                let found = term.value(&field).unwrap().value();
                let error = ((found - expected) / expected).abs();
                println!("{schur:?}: S {found:.12e}, error {error:.1e}");
                assert!(error < 1e-11, "{schur:?}: {found} is not {expected}");
            }
            0.5 * modes.iter().map(|(value, _)| value.ln()).sum::<f64>() + log_det
        };
        let found = log_weight(&near) - log_weight(&links);
        let expected =
            terms::reference_log_abs_det(&near, &params) - terms::reference_log_abs_det(&links, &params);
        let error = (found - expected).abs();
        println!("{schur:?}: {found:.12} against {expected:.12}, error {error:.1e}");
        assert!(expected.abs() > 5e-3 && error < 1e-10, "{schur:?}: {found} is not {expected}");
    }
}

/// At the refresh, and at the value, where the trajectory has moved already: a clear message, and the links are those
/// of the start.
#[test]
fn outside_the_range_a_trajectory_fails_and_leaves_the_links() {
    let domain = domain([4; 4]);
    let host = Gauge::warm([4; 4], 0.3, 1).to_host();
    let make = |range: [f64; 2], check_every| {
        let params = DeterminantParams {
            header: TermHeader {
                name: "strange".into(),
                number: 0,
                action_residual: 1e-10,
                force_residual: 1e-7,
            },
            light: quark(operator(0.12, 1.0, Schur::Asymmetric), Precision::Double),
            heavy: None,
            power: Power::Rational(RationalPower {
                copies: 1,
                range,
                heavy_range: None,
                action_error: 1e-9,
                force_error: 1e-6,
                check_every,
                inner: None,
            }),
        };
        let term: Box<dyn Action> = Box::new(Determinant::new(&domain, params).unwrap());
        terms::chain(&host, vec![vec![term]], &domain, 2)
    };
    let fails = |range, check_every| {
        let mut chain = make(range, check_every);
        let error = chain.trajectory(4, true).unwrap_err();
        let text = error.to_string();
        println!("{text}");
        assert_eq!(chain.links.to_host().unwrap(), host, "the links stay as they are");
        let HmcError::Term { term, source } = error else { panic!("{text}") };
        let ActionError::Range { quark, least, greatest, lo, hi, wanted } = source else { panic!("{text}") };
        assert_eq!((term.as_str(), quark, [lo, hi]), ("strange", "quark", range));
        assert!(text.contains("range") && text.contains(&format!("{least:.4e}")), "{text}");
        (least, greatest, wanted)
    };
    let (least, _, wanted) = fails([1e-3, 5.0], 1);
    fails([3.0, 100.0], 1);
    // Inside, but not well inside.
    fails([0.97 * least, 100.0], 1);
    // Checked at the first trajectory of a run, whatever its number.
    fails([3.0, 100.0], 100);
    // The range that the message names will do.
    make(wanted, 1).trajectory(4, true).unwrap();
    // The links of the start fit, those of the end do not.
    let mut moved = make([1e-3, 100.0], 1);
    moved.trajectory(4, true).unwrap();
    let ends = |links: &HostLinks| {
        let params = quark(operator(0.12, 1.0, Schur::Asymmetric), Precision::Double);
        let mut quark = Quark::new(&domain, &params).unwrap();
        quark.update(&MatrixField::from_host(&domain, links).unwrap()).unwrap();
        quark.bounds(&mut random(&domain, 1), 1e-5).unwrap()
    };
    let (start, end) = (ends(&host), ends(&moved.links.to_host().unwrap()));
    println!("from {start:?} to {end:?}");
    let between = |a: f64, b: f64| (a * b).sqrt();
    let (down, up) = (start.least / end.least, end.greatest / start.greatest);
    // Ends are measured to 1e-2 at worst, and mostly far better.
    assert!(down.max(up) > 1.03, "an end that moves out");
    let range = if down > up {
        [0.95 * between(start.least, end.least), 100.0]
    } else {
        [1e-3, 1.05 * between(start.greatest, end.greatest)]
    };
    let seen = fails(range, 1);
    assert!(
        (seen.0 / end.least - 1.0).abs() < 1e-2 && (seen.1 / end.greatest - 1.0).abs() < 1e-2,
        "{seen:?}"
    );
}

/// One flavour over another, each in its range.
fn ratio(
    domain: &Arc<Domain>,
    light: WilsonParams,
    heavy: WilsonParams,
    precision: Precision,
) -> Determinant<Wilson> {
    let params = DeterminantParams {
        header: TermHeader { name: "ratio".into(), number: 0, action_residual: 1e-14, force_residual: 1e-13 },
        light: quark(light, precision),
        heavy: Some(quark(heavy, precision)),
        power: Power::Rational(RationalPower {
            copies: 1,
            range: RANGE,
            heavy_range: Some([1e-2, 100.0]),
            action_error: 1e-12,
            force_error: 1e-12,
            check_every: 1,
            inner: None,
        }),
    };
    Determinant::new(domain, params).unwrap()
}

fn describe(light: WilsonParams, heavy: WilsonParams, precision: Precision) -> String {
    let [light_of, heavy_of] =
        [light, heavy].map(|w| format!("kappa {} mu {} c_sw {}", w.kappa, w.mu, w.c_sw));
    format!("{light_of} over {heavy_of}, {:?} {precision:?}", light.schur)
}

fn set_phi(term: &mut dyn Action, reals: &[f64]) {
    let [phi] = &mut term.pseudofermions()[..] else { panic!("one pseudofermion") };
    phi.field.read_host(phi.parity, reals).unwrap();
}

/// (kappa, c_sw) of quarks over which a light one of 0.115, 1.0 is taken: determinants of A cancel, or do not.
const HEAVIER: [(f64, f64); 3] = [(0.105, 1.0), (0.115, 0.6), (0.1, 0.0)];

/// The forces of the two quarks nearly cancel, and so what is found has more of the errors of both, 1e-12 for each
/// function; 4e-10 of the whole is the noise of S in its differences. More cancels for a twisted mass of 0.3.
#[test]
fn forces_of_ratios() {
    let extents = [4; 4];
    let links = Gauge::warm(extents, 0.8, 5);
    let domain = domain(extents);
    let check = |light: WilsonParams, heavy: WilsonParams, precision, tolerance| {
        let mut term = ratio(&domain, light, heavy, precision);
        set_phi(&mut term, &random_phi(extents, 23));
        check_force(&describe(light, heavy, precision), &links, &mut term, &domain, 5e-3, tolerance);
    };
    for (c_sw, schur) in FORMS {
        check(operator(0.115, c_sw, schur), operator(0.105, c_sw, schur), Precision::Double, 2e-9);
    }
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        for (kappa, c_sw) in &HEAVIER[1..] {
            check(operator(0.115, 1.0, schur), operator(*kappa, *c_sw, schur), Precision::Double, 2e-9);
        }
    }
    let twisted = WilsonParams { mu: 0.3, ..operator(0.115, 1.0, Schur::Symmetric) };
    check(operator(0.115, 1.0, Schur::Symmetric), twisted, Precision::Single, 1e-8);
}

#[test]
fn heat_baths_of_ratios() {
    let extents = [4; 4];
    let domain = domain(extents);
    let links = fields(&Gauge::warm(extents, 0.8, 5), &domain);
    for schur in [Schur::Asymmetric, Schur::Symmetric] {
        for (kappa, c_sw) in HEAVIER {
            for precision in [Precision::Double, Precision::Single] {
                let (light, heavy) = (operator(0.115, 1.0, schur), operator(kappa, c_sw, schur));
                let mut term = ratio(&domain, light, heavy, precision);
                check_refresh(&describe(light, heavy, precision), &links, &mut term, 1e-11);
                let [light, heavy] = term.measured().map(|bounds| bounds.expect("a spectrum").least);
                let report = term.report().unwrap().text;
                println!("{report}");
                for (name, least) in [("light", light), ("heavy", heavy)] {
                    let told = report.split(&format!("{name}: spectrum [")).nth(1).expect("a spectrum");
                    let told: f64 = told.split(',').next().unwrap().parse().unwrap();
                    assert!((told / least - 1.0).abs() < 0.05, "{name}, {least}: {report}");
                }
            }
        }
    }
}

/// A quark over itself: `S = |phi|^2` on any links, and no force.
#[test]
fn a_ratio_of_one_is_trivial() {
    let extents = [4; 4];
    let domain = domain(extents);
    let links = fields(&Gauge::warm(extents, 0.8, 5), &domain);
    let phi = random_phi(extents, 23);
    let norm2 = terms::norm2(&terms::odd_part(extents, &phi));
    let norm = |term: &mut dyn Action| {
        let mut force = AlgebraField::new(&domain).unwrap();
        set_phi(term, &phi);
        term.add_force(&links, &mut force).unwrap();
        force.to_host().unwrap().iter().map(|f| f * f).sum::<f64>().sqrt()
    };
    for (c_sw, schur) in FORMS {
        let quark = operator(0.115, c_sw, schur);
        let mut term = ratio(&domain, quark, quark, Precision::Double);
        let residue = norm(&mut term);
        let whole = norm(&mut one_flavour(&domain, quark, Precision::Double));
        let error = (term.value(&links).unwrap().value() / norm2 - 1.0).abs();
        println!(
            "c_sw {c_sw} {schur:?}: S off by {error:.1e}, force {residue:.1e}, of one flavour {whole:.1e}"
        );
        assert!(error < 1e-11 && residue < 1e-9 * whole, "{schur:?}: {error:e}, {residue:e}");
    }
}

/// One flavour, split in two by a heavier one.
#[test]
fn a_split_flavour_is_of_second_order_and_reversible() {
    let domain = domain([4; 4]);
    check_dynamics("a ratio and its denominator", |links, steps| {
        let of = |kappa| WilsonParams {
            boundary: Boundary::ANTIPERIODIC,
            ..operator(kappa, 1.76, Schur::Asymmetric)
        };
        let (light, heavy) = (of(0.13), of(0.11));
        let terms: Vec<Vec<Box<dyn Action>>> = vec![
            vec![Box::new(ratio(&domain, light, heavy, Precision::Double))],
            vec![Box::new(one_flavour(&domain, heavy, Precision::Double))],
        ];
        terms::chain(links, terms, &domain, steps)
    });
}

/// `S = |(W^dag W)^(-1/4) (V^dag V)^(1/4) phi|^2 - log det A_W + log det A_V` of the dense reference, whose weight is
/// `|det M|` of the light quark over that of the heavy one.
#[test]
fn a_ratio_is_that_of_the_determinants() {
    let extents = [2; 4];
    let domain = on_one_lane(extents);
    let links = Gauge::warm(extents, 0.7, 9);
    let near = shifted(&links, 0.05, &random_momenta(extents, 77));
    for (schur, (kappa, c_sw)) in [(Schur::Asymmetric, (0.1, 0.6)), (Schur::Symmetric, (0.1, 1.0))] {
        let quarks = [operator(0.12, 1.0, schur), operator(kappa, c_sw, schur)];
        let mut term = ratio(&domain, quarks[0], quarks[1], Precision::Double);
        let mut log_weight = |links: &Gauge| {
            let field = fields(links, &domain);
            let modes = quarks.map(|operator| {
                let w = terms::reference_operator(links, &operator);
                terms::eigen(terms::product(&terms::adjoint(&w), &w))
            });
            let [light, heavy] = quarks.map(|operator| terms::reference_log_det(links, &operator));
            for seed in 31..34 {
                let phi = random_phi(extents, seed);
                let chi = power(&modes[1], 0.25, &terms::odd_part(extents, &phi));
                let expected = terms::norm2(&power(&modes[0], -0.25, &chi)) - light + heavy;
                set_phi(&mut term, &phi);
                let found = term.value(&field).unwrap().value();
                let error = ((found - expected) / expected).abs();
                println!("{schur:?}: S {found:.12e}, error {error:.1e}");
                assert!(error < 1e-11, "{schur:?}: {found} is not {expected}");
            }
            let half_log = |modes: &[(f64, _)]| 0.5 * modes.iter().map(|(value, _)| value.ln()).sum::<f64>();
            half_log(&modes[0]) - half_log(&modes[1]) + light - heavy
        };
        let found = log_weight(&near) - log_weight(&links);
        let change = |operator| {
            terms::reference_log_abs_det(&near, operator) - terms::reference_log_abs_det(&links, operator)
        };
        let expected = change(&quarks[0]) - change(&quarks[1]);
        let error = (found - expected).abs();
        println!("{schur:?}: {found:.12} against {expected:.12}, error {error:.1e}");
        assert!(expected.abs() > 1e-3 && error < 1e-10, "{schur:?}: {found} is not {expected}");
    }
}

/// Each of the two spectra has a range of its own, and the message names the quark.
#[test]
fn each_quark_of_a_ratio_has_its_range() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.3, 1), &domain);
    let refused = |light_range, heavy_range| {
        let params = DeterminantParams {
            header: TermHeader {
                name: "ratio".into(),
                number: 0,
                action_residual: 1e-10,
                force_residual: 1e-7,
            },
            light: quark(operator(0.12, 1.0, Schur::Asymmetric), Precision::Double),
            heavy: Some(quark(operator(0.1, 1.0, Schur::Asymmetric), Precision::Double)),
            power: Power::Rational(RationalPower {
                copies: 1,
                range: light_range,
                heavy_range: Some(heavy_range),
                action_error: 1e-9,
                force_error: 1e-6,
                check_every: 1,
                inner: None,
            }),
        };
        let mut term = Determinant::new(&domain, params).unwrap();
        let text = term.refresh(&links, 1, 0).unwrap_err().to_string();
        println!("{text}");
        text
    };
    assert!(refused([3.0, 100.0], RANGE).contains("of the light quark's operator"));
    assert!(refused(RANGE, [8.0, 100.0]).contains("of the heavy quark's operator"));
}
