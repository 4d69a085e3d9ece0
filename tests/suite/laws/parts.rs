//! Rational forces whose poles are on levels of their own: the parts are the force, and trajectories are as of one force.

use super::{domain_wall, rhmc, rooted};
use crate::devices::domain;
use crate::reference::gauge::Gauge;
use crate::terms::{check_parts, fields};
use hmc::action::InnerPoles;
use hmc::device::Precision;
use hmc::family::Rooted;

fn inner(poles: usize) -> Option<InnerPoles> {
    Some(InnerPoles { name: "inner".into(), poles })
}

/// Both are solved to 1e-13.
#[test]
fn wilson() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.8, 5), &domain);
    for (c_sw, schur) in rhmc::FORMS {
        let mut term =
            rhmc::divided(&domain, rhmc::operator(0.115, c_sw, schur), Precision::Double, inner(6));
        check_parts(&format!("c_sw {c_sw} {schur:?}"), &links, &mut term, &["strange", "inner"], 1e-11);
    }
}

/// A ratio: the poles of light and heavy functions are divided.
#[test]
fn domain_walls() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.8, 5), &domain);
    for (name, light) in domain_wall::quarks() {
        let mut term = domain_wall::divided(&domain, &light, domain_wall::TIGHT, 1, inner(8));
        check_parts(name, &links, &mut term, &["strange", "inner"], 1e-10);
    }
}

/// The first pseudofermion's small poles are left to the term; others share a part with its other poles.
#[test]
fn staggered() {
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.5, 3), &domain);
    for multi_shift in [true, false] {
        let mut params = rooted::params(rooted::HISQ, Precision::Double, multi_shift, rooted::TIGHT);
        for (pseudofermion, outside) in params.pseudofermions.iter_mut().zip([4, 0, 2]) {
            pseudofermion.inner = inner(pseudofermion.force.degree() - outside);
        }
        params.pseudofermions[2].inner.as_mut().unwrap().name = "charm".into();
        let mut term = Rooted::new(&domain, params).unwrap();
        check_parts("HISQ", &links, &mut term, &["ks", "inner", "charm"], 1e-10);
    }
}

/// With the small poles on the level outside, and all others inside.
#[test]
fn divided_forces_are_of_second_order_and_reversible() {
    rhmc::check_divided("one flavour in two parts", |domain, operator| {
        rhmc::divided(domain, operator, Precision::Double, inner(8))
    });
}
