//! Measurements with channels, momenta and loops.

use super::{GOOD, mistakes, with};
use hmc::input;
use hmc::measure::{Channel, Meson, Source, WilsonLoops};

fn assert_mistakes(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        assert_eq!(mistakes(text, 1), [format!("run.toml:{expected}")], "{text}");
    }
}

/// With a meson, whose own keys begin in line 28.
fn meson(keys: &str) -> String {
    format!("{GOOD}[measure.meson.m]\nfermion = \"light\"\n{keys}")
}

#[test]
fn mesons() {
    let of = |keys: &str| {
        let measure = super::input(&meson(keys)).measure;
        let found: Vec<Meson> = measure.of_kind().into_iter().cloned().collect();
        found.into_iter().next().expect("one")
    };
    let default = of("");
    assert_eq!((default.channels, default.momenta), (vec![Channel::Pion], vec![[0; 3]]));
    assert_eq!((default.source, default.quark.wanted.residual), (Source::Point([0; 4]), 1e-12));
    let found =
        of("channels = [\"rho_y\", \"a4p\"]\nmomenta = [[0, 0, 0], [1, -2, 0]]\nsource = [1, 2, 3, 4]\n");
    assert_eq!(found.channels, [Channel::RhoAlong(1), Channel::A4P]);
    assert_eq!((found.momenta, found.source), (vec![[0; 3], [1, -2, 0]], Source::Point([1, 2, 3, 4])));
    assert_mistakes(&[
        (meson("channels = [\"pi0n\"]\n"), "28:13: channels: unknown \"pi0n\"; did you mean 'pion'?"),
        (meson("channels = []\n"), "28:12: channels: at least one is required"),
        (meson("momenta = []\n"), "28:11: momenta: at least one is required"),
        (
            meson("momenta = [[0, 0]]\n"),
            "28:12: momenta: expected 3 integers [n_x, n_y, n_z], found an array of 2",
        ),
        (meson("mass = 0.1\n"), "28:8: mass: that of Wilson quarks is in their [fermion.NAME]"),
    ]);
    let staggered = "[fermion.s]\naction = \"hisq\"\n[measure.meson.m]\nfermion = \"s\"\nmass = 0.1\n";
    let error = input::parse_measure(staggered, "m.toml").expect_err("no spin").to_string();
    assert_eq!(
        error,
        "m.toml:4:11: fermion: staggered quarks have no spin; use [measure.correlator.NAME] for their pion"
    );
}

#[test]
fn wilson_loops() {
    let loops = |keys: &str| format!("{GOOD}[measure.wilson_loops]\n{keys}");
    let measure = super::input(&loops("r_max = 3\nt_max = 5\n")).measure;
    assert_eq!(measure.of_kind::<WilsonLoops>(), [&WilsonLoops { r_max: 3, t_max: 5 }]);
    assert_mistakes(&[
        (loops("r_max = 3\n"), "26:1: missing 't_max' in [measure.wilson_loops]"),
        (
            loops("r_max = 0\nt_max = 2\n"),
            "27:9: r_max: expected an integer from 1 to 1024, found the integer 0",
        ),
    ]);
    let far = input::parse(&loops("r_max = 5\nt_max = 8\n"), "run.toml", 1).expect("only a warning");
    let expected = "run.toml:27:9: r_max: loops longer than half the lattice's extent 8 wrap around it";
    assert_eq!(far.warnings, [expected]);
}

/// What `hmc measure` measures always comes first, once.
#[test]
fn loops_are_always_measured() {
    let text = with(
        "[measure.correlator.pion]\nfermion = \"light\"\n",
        "[measure.polyakov]\n[measure.flow]\nt_max = 1\n",
    );
    let measure = super::input(&text).measure;
    assert_eq!((measure.observables.len(), measure.border()), (2, 1));
    let all = measure.with_loops();
    assert_eq!((all.observables.len(), all.border(), all.with_loops() == all), (3, 2, true));
    assert_ne!(all, measure);
}
