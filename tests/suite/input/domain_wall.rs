//! Domain-wall quarks: weights, one flavour, masses in between, solver, measurements.

use super::{GOOD, differences, input, mistakes};
use hmc::device::Precision;
use hmc::family::{DomainWallFermion, Family, OneFlavourFunctions, StoutSteps, WallFlavours, Weights};
use hmc::input::Fermion;
use hmc::measure::{Condensate, Correlator, Source};
use hmc::solver::{Method, Past, Settings, TermSolver};

const TABLES: &str = r#"[fermion.light]
action = "domain-wall"
weights = "mobius"
b = 1.5
c = 0.5
n_s = 12
m5 = 1.8
mass = 0.01
[fermion.light.solver]
precision = "double-half"
guess = 2
[[fermion.light.hasenbusch]]
name = "l1"
mass = 0.1
[[fermion.light.hasenbusch]]
name = "l2"
mass = 0.5
solver = { precision = "double", guess = 0 }
"#;

const ONE: &str = r#"[fermion.light]
action = "domain-wall"
weights = "shamir"
n_s = 16
m5 = 1.8
mass = 0.04
flavours = 1
one_flavour = "eofa"
[fermion.light.rational]
range = [0.5, 50]
"#;

/// `GOOD` with these tables of quarks, which begin on its line 10, and these terms on the first level.
fn quarks(tables: &str, terms: &str) -> String {
    let (before, rest) = GOOD.split_once("[fermion").expect("a fermion");
    let (_, after) = rest.split_once("[hmc]").expect("then the dynamics");
    format!("{before}{tables}[hmc]{}", after.replacen("[\"light\"]", terms, 1))
}

/// The two flavours of `TABLES` with `old` replaced.
fn with(old: &str, new: &str) -> String {
    assert!(TABLES.contains(old), "{old}");
    quarks(&TABLES.replacen(old, new, 1), "[\"light\", \"l1\", \"l2\"]")
}

/// The one flavour of `ONE` with `old` replaced.
fn one(old: &str, new: &str) -> String {
    assert!(ONE.contains(old), "{old}");
    quarks(&ONE.replacen(old, new, 1), "[\"light\"]")
}

/// `ONE` by rational functions, with these keys more.
fn rational(keys: &str) -> String {
    one("\"eofa\"", "\"rational\"")
        .replace("[0.5, 50]\n", &format!("[1e-4, 50]\nheavy_range = [0.1, 50]\n{keys}"))
}

fn light(text: &str) -> DomainWallFermion {
    match input(text).fermions.remove(0) {
        Fermion::DomainWall(fermion) => fermion,
        other => panic!("no domain-wall quarks but {other:?}"),
    }
}

/// Each text has one mistake, of this message without the file.
fn assert_mistakes(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        assert_eq!(mistakes(text, 1), [format!("run.toml:{expected}")], "{text}");
    }
}

#[test]
fn defaults_and_what_is_inherited() {
    let text = with("n_s", "n_s");
    let light = light(&text);
    assert_eq!((light.weights, light.n_s), (Weights::Mobius { b: 1.5, c: 0.5 }, 12));
    assert_eq!([light.m5, light.mass], [1.8, 0.01]);
    assert_eq!((light.flavours, light.stout), (WallFlavours::Two, None));
    assert_eq!(light.boundary.theta().map(f64::to_bits), [0.0f64, 0.0, 0.0, 1.0].map(f64::to_bits));
    let settings = Settings {
        method: Method::CG,
        precisions: [Precision::Double, Precision::Half, Precision::Half],
        delta: 0.1,
        max_iterations: 10_000,
    };
    let guess = Past { solutions: 2, precision: Precision::Double };
    let candidates = Vec::new();
    let (action_residual, force_residual) = (1e-11, 1e-9);
    let solver = TermSolver { settings, link_reals: 12, action_residual, force_residual, guess, candidates };
    assert_eq!(light.solver, solver);
    let [first, second] = light.hasenbusch.try_into().expect("two masses");
    assert_eq!((first.name.as_str(), second.name.as_str()), ("l1", "l2"));
    assert_eq!([first.mass, second.mass], [0.1, 0.5]);
    assert_eq!(first.solver, solver);
    let settings = Settings { precisions: [Precision::Double; 3], delta: 1e-3, ..settings };
    assert_eq!(second.solver, TermSolver { settings, guess: Past::NONE, ..solver });
    assert_eq!(input(&text).hmc.terms[0], ["light", "l1", "l2"]);
    assert_eq!(input(&text).fermions[0].pseudofermions(), 3);

    let plain = self::light(&with("precision = \"double-half\"\n", ""));
    assert_eq!(plain.solver.settings.precisions, [Precision::Double, Precision::Single, Precision::Single]);
    let keys = "stout = { steps = 2, rho = 0.1 }\nboundary = [0, 0.5, 0, \"periodic\"]\nmass = 0\n";
    let other = self::light(&with("mass = 0.01\n", keys));
    assert_eq!(other.stout, Some(StoutSteps { steps: 2, rho: 0.1 }));
    assert_eq!(other.boundary.theta().map(f64::to_bits), [0.0f64, 0.5, 0.0, 0.0].map(f64::to_bits));
    assert_eq!(other.mass.to_bits(), 0);
}

#[test]
fn weights_have_keys_of_their_own() {
    let mobius = "\"mobius\"\nb = 1.5\nc = 0.5\n";
    let found = |new: &str| light(&with(mobius, new)).weights;
    let spectrum = [0.05, 6.2];
    assert_eq!(found("\"shamir\"\n"), Weights::Shamir);
    assert_eq!(found("\"borici\"\n"), Weights::Borici);
    assert_eq!(found("\"mobius\"\nb = 1\nc = 1.0\n"), Weights::Mobius { b: 1.0, c: 1.0 });
    let optimal = found("\"optimal\"\nspectrum = [0.05, 6.2]\n");
    assert_eq!(optimal, Weights::Optimal { spectrum, symmetric: false });
    let symmetric = found("\"optimal-symmetric\"\nspectrum = [0.05, 6.2]\n");
    assert_eq!(symmetric, Weights::Optimal { spectrum, symmetric: true });
    let list = |n: usize, shift: f64| {
        let all: Vec<String> = (1..=n).map(|s| format!("{:?}", s as f64 + shift)).collect();
        all.join(", ")
    };
    let listed = |omega: String, sigma: String| format!("\"listed\"\nomega = [{omega}]\nsigma = [{sigma}]\n");
    let Weights::Listed(weights) = found(&listed(list(12, 0.5), list(12, -0.25))) else { panic!("listed") };
    assert_eq!((weights.omega[0], weights.sigma[11], weights.kernel_difference()), (1.5, 11.75, Some(0.75)));
    assert!(symmetric.is_symmetric() && Weights::Shamir.is_symmetric() && !optimal.is_symmetric());
    assert_mistakes(&[
        (with("\"mobius\"", "\"moebius\""), "12:11: weights: unknown \"moebius\"; did you mean 'mobius'?"),
        (with("weights = \"mobius\"\nb = 1.5\nc = 0.5\n", ""), "10:1: missing 'weights' in [fermion.light]"),
        (with("b = 1.5\n", ""), "10:1: missing 'b' in [fermion.light]"),
        (with("c = 0.5\n", ""), "10:1: missing 'c' in [fermion.light]"),
        (with("b = 1.5", "b = 0"), "13:5: b: expected a number above 0, found the integer 0"),
        (with("c = 0.5", "c = -0.5"), "14:5: c: expected a number, 0 at least, found the number -0.5"),
        (with("c = 0.5", "c = 1.6"), "14:5: c: 1.6 is above b = 1.5: the kernel could have a pole"),
        (
            with("b = 1.5", "b = 2.5"),
            "13:5: b: (b - c) m5 is 3.6, and has to be below 2: else the kernel's sign is wrong on the physical modes",
        ),
        (with("\"mobius\"\nb = 1.5\n", "\"shamir\"\n"), "13:5: c: only the weights \"mobius\" have it"),
        (
            with("c = 0.5\n", "c = 0.5\nspectrum = [0.05, 6.2]\n"),
            "15:12: spectrum: only the weights \"optimal\" and \"optimal-symmetric\" have it",
        ),
        (with(mobius, "\"optimal\"\n"), "10:1: missing 'spectrum' in [fermion.light]"),
        (
            with(mobius, "\"optimal\"\nspectrum = [6.2, 0.05]\n"),
            "13:12: spectrum: expected bounds [lo, hi], 0 < lo < hi, found [6.2, 0.05]",
        ),
        (
            with(mobius, "\"optimal-symmetric\"\nspectrum = [0.05, 6.2]\n").replace("n_s = 12", "n_s = 13"),
            "14:7: n_s: the weights \"optimal-symmetric\" come in pairs: take an even number, not 13",
        ),
        (with(mobius, &listed(list(12, 0.5), list(11, 0.5))), "14:9: sigma: 11 numbers for 12 slices"),
        (
            with(mobius, &listed(list(12, 0.5), "0.5, ".repeat(11) + "0.5")),
            "14:9: sigma: omega_s - sigma_s has to be the same for all s, and 0 at least: else the slices have no common kernel, or \
             one with a pole",
        ),
        (
            with(mobius, &listed(list(12, 2.5), list(12, 0.5))),
            "13:9: omega: (omega - sigma) m5 is 3.6, and has to be below 2: else the kernel's sign is wrong on the physical modes",
        ),
        (with("c = 0.5\n", "c = 0.5\nomega = [1]\n"), "15:9: omega: only the weights \"listed\" have it"),
        (with(mobius, "\"listed\"\nomega = [1]\n"), "10:1: missing 'sigma' in [fermion.light]"),
    ]);
    assert_eq!(
        light(&with(mobius, "\"optimal\"\nspectrum = [0.05, 6.2]\n").replace("n_s = 12", "n_s = 13")).n_s,
        13
    );
}

#[test]
fn one_mistake_is_one_message() {
    let solver = |keys: &str| with("guess = 2\n", &format!("guess = 2\n{keys}\n"));
    assert_mistakes(&[
        (
            with("domain-wall", "domain-wal"),
            "11:10: action: unknown \"domain-wal\"; did you mean 'domain-wall'?",
        ),
        (with("action = \"domain-wall\"\n", ""), "10:1: missing 'action' in [fermion.light]"),
        (with("n_s = 12\n", ""), "10:1: missing 'n_s' in [fermion.light]"),
        (with("12", "3"), "15:7: n_s: expected an integer from 4 to 48, found the integer 3"),
        (with("12", "49"), "15:7: n_s: expected an integer from 4 to 48, found the integer 49"),
        (with("m5 = 1.8", "m5 = 2"), "16:6: m5: expected a number between 0 and 2, found the integer 2"),
        (with("m5 = 1.8", "M5 = 1.8"), "16:1: unknown key 'M5' in [fermion.light]; did you mean 'm5'?"),
        (with("mass = 0.01\n", ""), "10:1: missing 'mass' in [fermion.light]"),
        (with("0.01", "1.0"), "17:8: mass: expected a mass from 0 to below 1, found the number 1.0"),
        (with("0.01", "-0.01"), "17:8: mass: expected a mass from 0 to below 1, found the number -0.01"),
        (
            with("mass = 0.01", "mass = 0.01\nkappa = 0.1"),
            "18:1: unknown key 'kappa' in [fermion.light]; expected 'action', 'weights', 'b', 'c', 'spectrum', 'omega', 'sigma', 'n_s', \
             'm5', 'mass', 'flavours', 'one_flavour', 'boundary', 'stout', 'solver', 'rational' or 'hasenbusch'",
        ),
        (
            solver("method = \"gcr-dd\"\ngcr-dd = { block = \"rank\" }"),
            "21:10: method: domain-wall quarks are solved only by \"cg\"",
        ),
        (solver("method = \"bicgstab\""), "21:10: method: domain-wall quarks are solved only by \"cg\""),
        (solver("gcr-dd = { k_max = 8 }"), "21:10: gcr-dd: only the method \"gcr-dd\" has this table"),
        (solver("link_reals = 9"), "21:14: link_reals: expected 18, 12 or 8 reals per link, found 9"),
        (
            with("guess = 0 }", "guess = 0, method = \"bicgstab\" }"),
            "27:54: method: domain-wall quarks are solved only by \"cg\"",
        ),
    ]);
}

#[test]
fn masses_in_between_grow() {
    let order = "order them from light to heavy";
    let without = |text: String, name: &str| text.replace(&format!(", \"{name}\""), "");
    assert_mistakes(&[
        (
            with("mass = 0.1\n", "mass = 0.01\n"),
            &format!("23:8: mass: 0.01 is not above the 0.01 before it: {order}"),
        ),
        (
            with("mass = 0.5", "mass = 0.1"),
            &format!("26:8: mass: 0.1 is not above the 0.1 before it: {order}"),
        ),
        (with("mass = 0.5", "mass = 1"), "26:8: mass: expected a mass between 0 and 1, found the integer 1"),
        (with("mass = 0.1\n", ""), "21:1: missing 'mass' in [fermion.light.hasenbusch]"),
        (
            with("mass = 0.1\n", "mass = 0.1\nmu = 0.1\n"),
            "24:1: unknown key 'mu' in [fermion.light.hasenbusch]; expected 'name', 'mass' or 'solver'",
        ),
        (
            without(with("\"l1\"", "\"light\""), "l1"),
            "22:8: name: there is a term 'light' already; each needs a name of its own",
        ),
        (
            without(with("l1", "l1"), "l2"),
            "25:8: the term 'l2' is on no level: name it in the terms of one [[hmc.level]]",
        ),
    ]);
}

#[test]
fn one_flavour_by_either_way() {
    let eofa = light(&one("range", "range"));
    assert_eq!(
        eofa.flavours,
        WallFlavours::OneEofa { range: [0.5, 50.0], error: 1e-10, check_every: 1, forecast: 8 }
    );
    assert_eq!(eofa.solver.settings.precisions, [Precision::Double, Precision::Single, Precision::Single]);
    let half = "\n[fermion.light.solver]\nprecision = \"double-half\"\nguess = 1\n";
    let eofa = light(&one("50]\n", &format!("50]\naction_error = 1e-10{half}")));
    assert_eq!(
        eofa.flavours,
        WallFlavours::OneEofa { range: [0.5, 50.0], error: 1e-10, check_every: 1, forecast: 8 }
    );
    assert_eq!((eofa.solver.settings.precisions[1], eofa.solver.guess.solutions), (Precision::Half, 1));
    let split = one("50]\n", "50]\n[[fermion.light.hasenbusch]]\nname = \"l1\"\nmass = 0.3\n");
    assert_eq!(light(&split.replace("[\"light\"]", "[\"light\", \"l1\"]")).hasenbusch.len(), 1);

    let functions = |action_error, force_error, check_every| WallFlavours::OneRational {
        functions: OneFlavourFunctions {
            copies: 1,
            range: [1e-4, 50.0],
            action_error,
            force_error,
            check_every,
            inner: None,
        },
        heavy_range: [0.1, 50.0],
    };
    assert_eq!(light(&rational("")).flavours, functions(1e-12, 1e-7, 1));
    let keys = "action_error = 1e-13\nforce_error = 1e-6\ncheck_every = 4\n";
    assert_eq!(light(&rational(keys)).flavours, functions(1e-13, 1e-6, 4));
    assert_eq!(["", "copies = 3\n"].map(|keys| light(&rational(keys)).pseudofermions()), [1, 3]);
    // Any weights go by rational functions, and symmetric ones by the exact action.
    let optimal = "\"optimal\"\nspectrum = [0.05, 6.2]";
    assert!(!light(&rational("").replace("\"shamir\"", optimal)).weights.is_symmetric());
    assert!(light(&one("\"shamir\"", &optimal.replace("al\"", "al-symmetric\""))).weights.is_symmetric());

    let solver = "[fermion.light.solver]\n";
    let only = "only one_flavour = \"rational\" has it";
    assert_mistakes(&[
        (
            one("\"shamir\"", optimal),
            "18:15: one_flavour: \"eofa\" needs weights that are the same from both walls: take \"optimal-symmetric\" \
             for \"optimal\", or one_flavour = \"rational\"",
        ),
        (one("one_flavour = \"eofa\"\n", ""), "10:1: missing 'one_flavour' in [fermion.light]"),
        (one("eofa", "exact"), "17:15: one_flavour: unknown \"exact\"; expected 'eofa' or 'rational'"),
        (
            one("[fermion.light.rational]\nrange = [0.5, 50]\n", ""),
            "10:1: missing 'rational' in [fermion.light]",
        ),
        (one("range = [0.5, 50]\n", ""), "18:1: missing 'range' in [fermion.light.rational]"),
        (one("[0.5, 50]", "[0, 50]"), "19:10: range: expected a positive number, found the integer 0"),
        (one("50]\n", "50]\nheavy_range = [0.1, 50]\n"), &format!("20:15: heavy_range: {only}")),
        (one("50]\n", "50]\nforce_error = 1e-6\n"), &format!("20:15: force_error: {only}")),
        (one("50]\n", "50]\ncopies = 2\n"), &format!("20:10: copies: {only}")),
        (
            one("\"shamir\"\nn_s = 16", "\"borici\"\nn_s = 15"),
            "13:7: n_s: \"eofa\" with omega = sigma needs an even number, not 15",
        ),
        (
            rational("").replace("heavy_range = [0.1, 50]\n", ""),
            "18:1: missing 'heavy_range' in [fermion.light.rational]",
        ),
        (
            rational(&format!("{solver}precision = \"double-half\"\n")),
            "22:13: precision: one_flavour = \"rational\" is solved in \"double-double-single\", \"double-double-half\", \"double\", \"double-single\" or \"double-single-half\"",
        ),
        (
            rational(&format!("{solver}guess = 2\n")),
            "22:9: guess: with one_flavour = \"rational\", solves for all shifts start from zero",
        ),
        (
            rational("[[fermion.light.hasenbusch]]\nname = \"l1\"\nmass = 0.3\n")
                .replace("[\"light\"]", "[\"light\", \"l1\"]"),
            "21:1: hasenbusch: with flavours = 1 only one_flavour = \"eofa\" has it",
        ),
        (with("m5", "one_flavour = \"eofa\"\nm5"), "16:15: one_flavour: only flavours = 1 has it"),
        (
            with(
                "[fermion.light.solver]\n",
                "[fermion.light.rational]\nrange = [1, 2]\n[fermion.light.solver]\n",
            ),
            "18:1: rational: only flavours = 1 has it",
        ),
    ]);
}

#[test]
fn mistakes_come_all_at_once() {
    let text = with("1.5", "true")
        .replace("n_s = 12", "n_s = 1.5")
        .replace("mass = 0.01", "mass = 7")
        .replace("\"double-half\"", "\"half\"")
        .replace("mass = 0.1\n", "mas = 0.1\n")
        .replace("fermion = \"light\"", "fermion = \"light\"\nmass = 2");
    let expected = [
        "13:5: b: ",
        "15:7: n_s: ",
        "17:8: mass: ",
        "19:13: precision: ",
        "23:1: unknown key 'mas' ",
        "40:8: mass: ",
    ];
    let found = mistakes(&text, 1);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(&format!("run.toml:{expected}")), "{found}");
    }
}

#[test]
fn comparison_names_every_key() {
    let stored = with("n_s", "n_s");
    let changed = stored
        .replace("c = 0.5", "c = 0.25")
        .replace("n_s = 12", "n_s = 14")
        .replace("m5 = 1.8", "m5 = 1.4\nstout = { steps = 2, rho = 0.1 }\nboundary = [0, 0, 0, 0]")
        .replace("mass = 0.01", "mass = 0.02")
        .replace("guess = 2", "guess = 3\nmax_iterations = 5")
        .replace("\"l1\"", "\"k1\"")
        .replace("mass = 0.5", "mass = 0.6")
        .replace("precision = \"double\"", "precision = \"double-single\"");
    let expected = [
        "fermion.light.c: was 0.5, is 0.25",
        "fermion.light.n_s: was 12, is 14",
        "fermion.light.m5: was 1.8, is 1.4",
        "fermion.light.mass: was 0.01, is 0.02",
        "fermion.light.boundary: was [0.0, 0.0, 0.0, 1.0], is [0.0, 0.0, 0.0, 0.0]",
        "fermion.light.solver.guess: was 2, is 3",
        "fermion.light.hasenbusch: was [\"l1\", \"l2\"], is [\"k1\", \"l2\"]",
    ];
    let found = differences(&stored, &changed, false);
    for line in expected {
        assert!(found.contains(&line.to_owned()), "{line}: {found:#?}");
    }
    for key in [
        "hasenbusch l2 mass: was 0.5, is 0.6",
        "hasenbusch l2 solver.precision: ",
        "stout.steps: was (absent), is 2",
    ] {
        assert!(
            found.iter().any(|line| line.starts_with(&format!("fermion.light.{key}"))),
            "{key}: {found:#?}"
        );
    }
    let keys = ["c", "n_s", "m5", "mass", "boundary", "stout.steps", "stout.rho"];
    let fixed = differences(&stored, &changed, true);
    assert!(
        fixed.iter().zip(keys).all(|(line, key)| line.starts_with(&format!("fermion.light.{key}: "))),
        "{fixed:?}"
    );
    assert_eq!(fixed.len(), keys.len());
    let more = stored.replace("guess = 2", "guess = 2\nmax_iterations = 5");
    assert!(differences(&stored, &more, false).is_empty());

    let eofa = one("50]\n", "50]\naction_error = 1e-11\n");
    let expected = [
        "fermion.light.rational.action_error: was 1e-11, is 1e-10",
        "fermion.light.rational.range: was [0.5, 50.0], is [0.4, 50.0]",
    ];
    assert_eq!(differences(&eofa, &one("0.5", "0.4"), false), expected);
    let heavy = rational("").replace("[0.1, 50]", "[0.2, 50]\ncopies = 2\ncheck_every = 2");
    let expected = [
        "fermion.light.rational.copies: was 1, is 2",
        "fermion.light.rational.check_every: was 1, is 2",
        "fermion.light.rational.heavy_range: was [0.1, 50.0], is [0.2, 50.0]",
    ];
    assert_eq!(differences(&rational(""), &heavy, false), expected);
    let ways = differences(&eofa, &heavy, false);
    assert!(differences(&eofa, &heavy, true).is_empty(), "the same determinant");
    assert_eq!(ways[0], "fermion.light.one_flavour: was \"eofa\", is \"rational\"");
    let kinds = differences(GOOD, &stored, true);
    assert!(kinds.contains(&"fermion.light.n_s: was (absent), is 12".to_owned()));
}

#[test]
fn measurements() {
    let measured = |keys: &str| with("n_s", "n_s") + keys;
    let found = |keys: &str| {
        let measure = input(&measured(keys)).measure;
        let correlator = measure.of_kind::<Correlator>()[0];
        (correlator.quark.wanted.mass, correlator.source)
    };
    assert_eq!(found("").0, Some(0.01));
    assert_eq!(found("mass = 0.0\nsource_kind = \"point\"\n"), (Some(0.0), Source::Point([0; 4])));
    let condensates = "[measure.condensate.a]\nfermion = \"light\"\n[measure.condensate.b]\nfermion = \"light\"\nmass = 0.2\n";
    let measure = input(&measured(condensates)).measure;
    let masses: Vec<_> = measure.of_kind::<Condensate>().iter().map(|c| c.quark.wanted.mass).collect();
    assert_eq!(masses, [Some(0.01), Some(0.2)]);
    assert_mistakes(&[
        (measured("mass = 1\n"), "40:8: mass: expected a mass from 0 to below 1, found the integer 1"),
        (measured("naik_epsilon = 0.1\n"), "40:16: naik_epsilon: only the action \"hisq\" has it"),
        (
            measured("source_kind = \"corner-wall\"\n"),
            "40:15: source_kind: domain-wall quarks have no \"corner-wall\"",
        ),
        (
            measured("").replace("fermion = \"light\"", "fermion = \"l1\""),
            "39:11: fermion: unknown fermion 'l1'; expected 'light'",
        ),
    ]);
    // The quarks of a run are read for `hmc measure` too, and where the mass is wrong that is told once.
    for tables in [TABLES, ONE] {
        let text = format!("{tables}[measure.correlator.pion]\nfermion = \"light\"\n");
        let loaded = input::parse_measure(&text, "m.toml").expect("as in a run");
        assert!(matches!(&loaded.input.fermions[0], Fermion::DomainWall(light) if light.name == "light"));
        let broken = text.replacen("mass = 0.0", "mass = -", 1);
        let error = input::parse_measure(&broken, "m.toml").expect_err("a wrong mass").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
