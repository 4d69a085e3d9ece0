//! A doublet of two masses, `M = A + i mubar gamma_5 tau_3 - epsbar tau_1 - D/2`, by rational functions.

use crate::devices::{domain, on_lanes, on_one_lane};
use crate::reference::gauge::Gauge;
use crate::terms::{
    self, check_dynamics, check_force_by, check_refresh, fields, log_abs_det, quark, reference_doublet,
};
use hmc::action::{Action, Determinant, DeterminantParams, InnerPoles, Power, RationalPower, TermHeader};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{Doublet, DoubletParams, Schur, Wilson, WilsonParams};
use hmc::field::{Dagger, Domain, Kind, ODD, Purpose, RandomAddress, Spinor};
use hmc::lattice::{Boundary, Partition, TimeBoundary, volume};
use hmc::operator::{CloverForm, Operator};
use std::sync::Arc;

pub const PARAMS: DoubletParams = DoubletParams {
    wilson: WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.5,
        c_sw: 1.3,
        clover: CloverForm::Linear,
        boundary: Boundary::phases([0.0, 0.3, 0.0, 1.0]),
        schur: Schur::Asymmetric,
    },
    epsbar: 0.4,
};

fn params(c_sw: f64) -> DoubletParams {
    DoubletParams { wilson: WilsonParams { c_sw, ..PARAMS.wilson }, ..PARAMS }
}

pub fn term(
    domain: &Arc<Domain>,
    operator: DoubletParams,
    (precision, copies): (Precision, u32),
    [action_residual, force_residual]: [f64; 2],
    error: f64,
) -> Determinant<Doublet> {
    let power = Power::Rational(RationalPower {
        copies,
        range: [5e-3, 100.0],
        heavy_range: None,
        action_error: error,
        force_error: 10.0 * error,
        check_every: 1,
        inner: Some(InnerPoles { name: "inner".into(), poles: 6 }),
    });
    let header = TermHeader { name: "heavy".into(), number: 0, action_residual, force_residual };
    let light = quark(operator, precision);
    Determinant::new(domain, DeterminantParams { header, light, heavy: None, power }).unwrap()
}

/// Errors of both functions.
#[test]
fn force_and_heat_bath() {
    let extents = [4, 2, 4, 6];
    for (time, c_f) in [(TimeBoundary::Periodic, [1.0; 2]), (TimeBoundary::Open, [0.9, 0.8])] {
        let partition = Partition::whole(extents).unwrap().with_time(time);
        let domain = on_lanes(1, partition, Arc::new(Solo), 2);
        let links = Gauge::warm(extents, 0.5, 22);
        let all = [(0.0, 1, Precision::Double), (1.3, 1, Precision::Single), (1.3, 2, Precision::Double)];
        for &(c_sw, copies, precision) in &all[if time == TimeBoundary::Periodic { 0.. } else { 2.. }] {
            let mut operator = params(c_sw);
            operator.wilson.boundary = operator.wilson.boundary.with_c_f(c_f);
            let mut term = term(&domain, operator, (precision, copies), [1e-14, 1e-13], 1e-12);
            let what = format!("1+1 {time} c_sw {c_sw} {precision:?}");
            check_refresh(&what, &fields(&links, &domain), &mut term, 1e-11);
            check_force_by(&what, &links, &mut term, &domain, [5e-3, 4e-3], 1e-9);
        }
    }
}

#[test]
fn second_order_and_reversible() {
    let domain = domain([4; 4]);
    check_dynamics("1+1", |links, steps| {
        let term: Box<dyn Action> =
            Box::new(term(&domain, PARAMS, (Precision::Double, 1), [1e-14, 1e-13], 1e-12));
        terms::chain(links, vec![vec![term]], &domain, steps)
    });
}

/// `exp(-S)` has det M of the plain reference: that of A + X on even sites, of Mhat on odd ones.
#[test]
fn the_determinant() {
    let extents = [2; 4];
    let domain = on_one_lane(extents);
    let links = Gauge::warm(extents, 0.7, 9);
    let field = fields(&links, &domain);
    for (c_sw, epsbar) in [(0.0, 0.4), (1.3, 0.4), (1.3, 0.6)] {
        let operator = DoubletParams { epsbar, ..params(c_sw) };
        let mut term = term(&domain, operator, (Precision::Double, 1), [1e-14; 2], 1e-12);
        let reals = 2 * 24 * volume(extents);
        term.set_phi(&vec![0.0; reals]).unwrap();
        let log_det = -term.value(&field).unwrap().value();
        let mut clover = Doublet::clover_term(&domain, &operator).unwrap();
        clover.iter_mut().for_each(|clover| clover.update(&field).unwrap());
        let mut w = Doublet::several(&domain, Precision::Double, 18, 1, operator).unwrap();
        w.update(&field, clover.as_ref()).unwrap();
        let dense = terms::odd_matrix(extents, 2, |psi| {
            let [mut x, mut y] = [0; 2].map(|_| Spinor::of(&domain, w.kind(), w.precision(), 1).unwrap());
            x.read_host(ODD, psi).unwrap();
            w.apply(&mut y, &x, Dagger::No).unwrap();
            let mut image = vec![0.0; reals];
            y.write_host(ODD, &mut image).unwrap();
            image
        });
        let mubar = operator.wilson.twisted_mass;
        let square = operator.wilson.diagonal().powi(2) + mubar * mubar - epsbar * epsbar;
        let constant = if c_sw == 0.0 { 6.0 * volume(extents) as f64 * square.ln() } else { 0.0 };
        let found = log_det + constant + log_abs_det(dense);
        let expected = log_abs_det(reference_doublet(&links, &operator));
        println!("c_sw {c_sw}, epsbar {epsbar}: log det {found}, {expected}");
        assert!((found - expected).abs() < 1e-10);
    }
}

/// Without a splitting the flavours are those of degenerate quarks, to the bit.
#[test]
fn without_a_splitting() {
    let extents = [4, 4, 2, 6];
    let domain = domain(extents);
    let links = fields(&Gauge::warm(extents, 0.5, 3), &domain);
    for c_sw in [0.0, 1.3] {
        let doublet = DoubletParams { epsbar: 0.0, ..params(c_sw) };
        let of = |kind| Spinor::of(&domain, kind, Precision::Double, 1).unwrap();
        let mut x = of(Kind::Wall(2));
        x.set_random(ODD, 1.0, RandomAddress { seed: 5, trajectory: 0, purpose: Purpose::Probe(1) }).unwrap();
        let reals = 24 * volume(extents);
        let host = |x: &Spinor| {
            let mut host = vec![0.0; reals * x.kind().slices()];
            x.write_host(ODD, &mut host).unwrap();
            host
        };
        for dagger in [Dagger::No, Dagger::Yes] {
            let mut clover = Doublet::clover_term(&domain, &doublet).unwrap();
            clover.iter_mut().for_each(|clover| clover.update(&links).unwrap());
            let mut w = Doublet::several(&domain, Precision::Double, 18, 1, doublet).unwrap();
            w.update(&links, clover.as_ref()).unwrap();
            let mut y = of(Kind::Wall(2));
            w.apply(&mut y, &x, dagger).unwrap();
            for (flavour, sign) in [1.0, -1.0].into_iter().enumerate() {
                let twisted_mass = sign * doublet.wilson.twisted_mass;
                let one = WilsonParams { twisted_mass, ..doublet.wilson };
                let mut clover = Wilson::clover_term(&domain, &one).unwrap();
                clover.iter_mut().for_each(|clover| clover.update(&links).unwrap());
                let mut w = Wilson::new(&domain, Precision::Double, 18, one).unwrap();
                w.update(&links, clover.as_ref()).unwrap();
                let [mut own, mut image] = [of(Kind::Dirac), of(Kind::Dirac)];
                let part = flavour * reals..(flavour + 1) * reals;
                own.read_host(ODD, &host(&x)[part.clone()]).unwrap();
                w.apply(&mut image, &own, dagger).unwrap();
                assert!(host(&image)[..] == host(&y)[part], "c_sw {c_sw} flavour {flavour} {dagger:?}");
            }
        }
    }
}
