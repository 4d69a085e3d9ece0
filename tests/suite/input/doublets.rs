//! Twisted-mass doublets in an input.

use super::mistakes;
use super::quarks::{fermion, light};
use hmc::family::{Family, Flavours};

#[test]
fn doublets_have_a_twisted_mass_on_all_sites() {
    let keys = "twisted_mass = 0.25\npreconditioning = \"asymmetric\"\n";
    assert_eq!(light(&fermion(keys)).operator.twisted_mass.to_bits(), 0.25f64.to_bits());
    for (keys, refusal) in [
        ("twisted_mass = 0.25\n".to_owned(), "needs preconditioning = \"asymmetric\""),
        (format!("{keys}clover = \"exponential\"\n"), "has no exponential clover term"),
    ] {
        let text = fermion(&keys);
        let expected = format!("twisted_mass: a doublet {refusal}");
        assert!(mistakes(&text, 1)[0].contains(&expected), "{expected}");
    }
}

#[test]
fn two_masses_need_a_rational_function() {
    let keys = |more: &str| {
        let keys = "twisted_mass = 0.25\nmass_splitting = 0.125\npreconditioning = \"asymmetric\"\n";
        let text = fermion(&format!("{keys}{more}"));
        text.split("[measure").next().unwrap().to_owned()
    };
    let range = "rational = { range = [0.1, 30.0] }\n";
    let found = light(&keys(range));
    assert!(matches!(found.flavours, Flavours::OneAndOne { epsbar: 0.125, .. }) && found.is_rational());
    for (text, refusal) in [
        (keys(""), "missing 'rational'"),
        (keys(range).replace("= 0.25", "= 0.0"), "it needs 'twisted_mass'"),
        (keys(range).replace("0.125", "0.25"), "mass_splitting: it must differ from"),
        (keys(range).replace("0.125", "5.0"), "it must be below sqrt((4 + m0)^2 + twisted_mass^2)"),
        (keys(&format!("{range}mu = 0.1\n")), "mu: two flavours of different masses have none"),
        (
            keys(&format!("{range}solver = {{ method = \"multigrid\" }}\n")),
            "mass_splitting is solved by \"cg\"",
        ),
        (
            format!("{}\n[measure.correlator.k]\nfermion = \"light\"\n", keys(range)),
            "two flavours of different masses are measured by [measure.meson.NAME] alone",
        ),
        (
            format!("{}\n[measure.meson.k]\nfermion = \"light\"\nother = {{}}\n", keys(range)),
            "two flavours of different masses are the first quark, not `other`",
        ),
    ] {
        let found = mistakes(&text, 1);
        assert!(found[0].contains(refusal), "{refusal}: {found:?}");
    }
}
