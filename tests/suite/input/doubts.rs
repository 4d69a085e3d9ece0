//! Values that are allowed but make no sense come with a warning and its reason; some are refused.

use super::{GOOD, mistakes, seconds_of_this_thread, with};
use hmc::input;
use std::fmt::Write;

fn warnings(text: &str) -> Vec<String> {
    input::parse(text, "run.toml", 1).unwrap_or_else(|error| panic!("{error}\n{text}")).warnings
}

/// A warning at this place that begins with the key and has this in its reason.
fn assert_warns(text: &str, place: &str, reason: &str) {
    let found = warnings(text);
    assert_eq!(found.len(), 1, "{place}: {found:?}");
    assert!(found[0].starts_with(&format!("run.toml:{place}: ")) && found[0].contains(reason), "{found:?}");
}

#[test]
fn senseless_values_warn_with_a_reason() {
    let kappa = |value: &str| with("mass = -0.2", &format!("kappa = {value}"));
    assert_warns(&kappa("0.25"), "12:9: kappa", "1/8 for free quarks");
    assert_warns(&kappa("130"), "12:9: kappa", "below 1/4");
    assert_warns(&with("-0.2", "-2.0"), "12:8: mass", "below 1/4");
    assert_warns(&with("-0.2", "11"), "12:8: mass", "next to no effect");
    for beta in ["2e12", "1e-300", "0.09"] {
        assert_warns(&with("5.6", beta), "9:8: beta", "6/g^2");
    }
    assert_warns(&with("c_sw = 1.0", "c_sw = 190"), "13:8: c_sw", "tree level");
    assert_warns(&with("tau = 1", "tau = 100"), "15:7: tau", "cost");
    assert_warns(&with("tau = 1", "tau = 1e-3"), "15:7: tau", "hardly moves");
    let loose = with("[hmc]", "[fermion.light.solver]\naction_residual = 0.1\n[hmc]");
    assert_warns(&loose, "15:19: action_residual", "the error of the action is seen in dH");
    assert_warns(&with("steps = 8", "steps = 100000"), "18:9: steps", "step of 0.02");
    assert_warns(&with("= 20", "= 100000000"), "4:16: trajectories", "10 million");
    let solver = |key: &str| with("[hmc]", &format!("[fermion.light.solver]\n{key} = 2e-15\n[hmc]"));
    for key in ["action_residual", "force_residual"] {
        assert_warns(&solver(key), &format!("15:{}: {key}", key.len() + 4), "rounding in double");
    }
    assert_warns(&format!("{GOOD}residual = 5e-15\n"), "26:12: residual", "rounding in double");
}

#[test]
fn sensible_values_do_not_warn() {
    let flow = "[measure.flow]\nstep = 0.05\nt_max = 8.0\n";
    for text in [
        GOOD.to_owned(),
        with("mass = -0.2", "kappa = 0.24"),
        with("5.6", "0.8"),
        with("tau = 1", "tau = 4"),
        with("steps = 8", "steps = 500"),
        format!("{GOOD}residual = 1e-14\n{flow}"),
    ] {
        assert_eq!(warnings(&text), [""; 0]);
    }
}

#[test]
fn flows_that_are_wider_than_the_lattice_or_endless_warn() {
    let flow = |step: &str, t_max: &str| format!("{GOOD}[measure.flow]\nstep = {step}\nt_max = {t_max}\n");
    // sqrt(8 t) is 8.05.
    assert_warns(&flow("0.1", "8.1"), "28:9: t_max", "sqrt(8 t) = 8.0, more than the extent 8");
    assert_warns(&flow("2e-8", "0.2"), "28:9: t_max", "10000000 steps");
    // The lattice of `hmc measure` is not known before.
    let measured = input::parse_measure("[measure.flow]\nt_max = 600\n", "m.toml").expect("right");
    assert!(measured.warnings.is_empty(), "{:?}", measured.warnings);
}

#[test]
fn staggered_spectra_and_masses() {
    let quark = |lambda_max: &str, mass: &str| {
        let (before, rest) = GOOD.split_once("[fermion").expect("a fermion");
        let (_, after) = rest.split_once("[hmc]").expect("then the dynamics");
        let (after, _) = after.split_once("[measure").expect("then measurements");
        format!(
            "{before}[fermion.light]\naction = \"hisq\"\n[fermion.light.rational]\nlambda_max = {lambda_max}\n\
             [[fermion.light.pseudofermion]]\nfactors = [{{ mass = {mass}, power = [1, 4] }}]\n[hmc]{after}"
        )
    };
    assert!(warnings(&quark("30", "0.1")).is_empty());
    assert_warns(&quark("30", "1e6"), "15:21: mass", "next to no effect");
    let refused = mistakes(&quark("30", "1e-8"), 1);
    let expected = "run.toml:15:11: factors: the mass 1e-8: lambda_max / (4 m^2) is above 1e16, more than double precision tells apart";
    assert_eq!(refused, [expected]);
    let refused = mistakes(&quark("1e-16", "0.1"), 1);
    assert_eq!(refused.len(), 1, "{refused:?}");
    let expected = "run.toml:13:14: lambda_max: 1e-16 is below the spectrum: the greatest eigenvalue of -D^2 is about 4 to 22";
    assert!(refused[0].starts_with(expected), "{refused:?}");
}

/// Where one mistake is made everywhere, the first fifty say it.
#[test]
fn many_mistakes_are_told_at_once_and_soon() {
    let mut text = GOOD.to_owned();
    for n in 0..200_000 {
        writeln!(text, "unknown_{n} = {n}").expect("a String");
    }
    let start = seconds_of_this_thread();
    let found = mistakes(&text, 1);
    let seconds = seconds_of_this_thread() - start;
    assert!(seconds < 5.0, "{seconds} s");
    assert_eq!(found.len(), 51);
    assert!(found[0].starts_with("run.toml:26:1: unknown key 'unknown_0' in [measure.correlator.pion]"));
    assert_eq!(found[50], "and 199950 more");
    // Of keys that stand twice, too.
    let twice = mistakes(&"x = 1\n".repeat(100_000), 1);
    let seconds = seconds_of_this_thread() - start;
    assert!(seconds < 10.0, "{seconds} s");
    assert_eq!(twice.len(), 51);
}
