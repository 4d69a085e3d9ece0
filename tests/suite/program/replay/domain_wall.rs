//! States of domain-wall quarks: pseudofermions with a fifth dimension, and on both parities.

use super::{EVERYTHING, EXTENTS, any_state, number, on_any_ranks, on_cpu, read, restricted};
use crate::devices::domain;
use crate::program::Scratch;
use crate::terms::{quark, random_phi};
use hmc::action::{Action, Determinant, DeterminantParams, Power, TermHeader};
use hmc::device::Precision;
use hmc::family::DomainWallParams;
use hmc::field::MatrixField;
use hmc::io::{Place, State};
use hmc::lattice::{Boundary, volume};
use hmc::math::WallWeights;

/// Two flavours of domain-wall quarks, and one by the exact action.
const WALLS: &str = r#"[fermion.light]
action = "domain-wall"
weights = "mobius"
b = 1.5
c = 0.5
n_s = 5
m5 = 1.8
mass = 0.3
solver = { precision = "double", link_reals = 18, action_residual = 1e-12, force_residual = 1e-11 }
[fermion.strange]
action = "domain-wall"
weights = "shamir"
n_s = 4
m5 = 1.8
mass = 0.4
flavours = 1
one_flavour = "eofa"
rational = { range = [0.5, 5.0] }
solver = { action_residual = 1e-12, force_residual = 1e-11 }
"#;

/// On one rank and on two.
#[test]
fn domain_wall_quarks_on_any_ranks() {
    let scratch = Scratch::new();
    let slices: Vec<Vec<f64>> = (0..5).map(|s| random_phi(EXTENTS, 10 + s)).collect();
    let site = |x: usize| slices.iter().flat_map(move |slice| slice[24 * x..24 * (x + 1)].iter().copied());
    let light = (0..volume(EXTENTS)).flat_map(site).collect();
    let place = |term: &str, number, parity, slices| {
        (Place { term: term.into(), number, parity, slice_reals: 24, slices }, 24 * slices)
    };
    let fields = [
        (place("light", 0, 1, 5), light),
        (place("strange", 0, 0, 1), random_phi(EXTENTS, 20)),
        (place("strange", 1, 1, 1), random_phi(EXTENTS, 21)),
    ];
    let fields = fields.map(|((place, reals), field)| {
        let field = restricted(field, reals, place.parity);
        (place, field)
    });
    let (before, rest) = EVERYTHING.split_once("[fermion").unwrap();
    let (_, after) = rest.split_once("[hmc]").unwrap();
    let after = after.replace("\"heavy\", ", "");
    let input = on_cpu(&format!("{before}{WALLS}[hmc]{after}"));
    let state = State { input, pseudofermions: fields.to_vec(), ..any_state() };
    let (one, places) = on_any_ranks(&scratch, &state);
    assert_eq!(read(&scratch, "state.h5", &places), state);
    assert_eq!(read(&scratch, "one.h5", &places).pseudofermions, state.pseudofermions);
    let (delta_h, change) = (number(&one["delta_h"]), number(&one["change"]["f_sum"]));
    assert!(delta_h.abs() < 0.1 * change.abs() && delta_h.abs() > 1e-6, "{one}");

    // The same from the slices one after another, as fields have them.
    let domain = domain(EXTENTS);
    let weights = WallWeights::mobius(5, 1.5, 0.5);
    let operator = DomainWallParams { weights, m5: 1.8, mass: [0.3; 2], boundary: Boundary::ANTIPERIODIC };
    let params = DeterminantParams {
        header: TermHeader { name: "light".into(), number: 0, action_residual: 1e-12, force_residual: 1e-11 },
        light: quark(operator.clone(), Precision::Double),
        heavy: Some(quark(operator.with_mass([1.0; 2]), Precision::Double)),
        power: Power::Inverse,
    };
    let mut term = Determinant::new(&domain, params).unwrap();
    term.set_phi(&slices.concat()).unwrap();
    let links = MatrixField::from_host(&domain, &state.links).unwrap();
    let (found, told) = (term.value(&links).unwrap().value(), number(&one["before"]["f"]["light"]));
    assert!((found / told - 1.0).abs() < 1e-12, "{found} and {told}");
}
