//! Staggered quarks: pseudofermions, the sources of their functions, solver, measurements.

use super::{GOOD, differences, input, mistakes};
use crate::program::Scratch;
use hmc::device::Precision;
use hmc::family::{MassFactor, RationalSource, RootedSolver, Smearing, StaggeredFermion, StaggeredSolver};
use hmc::input::Fermion;
use hmc::measure::{Condensate, Correlator, QuarkChoice, Source, Wanted};
use std::path::PathBuf;

const TABLES: &str = r#"[fermion.light]
action = "hisq"
[fermion.light.rational]
lambda_max = 90
[[fermion.light.pseudofermion]]
factors = [{ mass = 0.01, power = [2, 4] }, { mass = 0.2, power = [-2, 4] }]
[[fermion.light.pseudofermion]]
factors = [{ mass = 0.2, power = [3, 4] }]
copies = 3
naik_epsilon = -0.1
rational = { lambda_max = 40, force_error = 1e-6, check_every = 5 }
"#;

/// `GOOD` with these tables of quarks, which begin on its line 10.
fn quarks(tables: &str) -> String {
    let (before, rest) = GOOD.split_once("[fermion").expect("a fermion");
    let (_, after) = rest.split_once("[hmc]").expect("then the dynamics");
    let after = after.replace("[measure.correlator.pion]\nfermion = \"light\"\n", "");
    format!("{before}{tables}[hmc]{after}")
}

/// The quarks of `TABLES` with `old` replaced.
fn with(old: &str, new: &str) -> String {
    assert!(TABLES.contains(old), "{old}");
    quarks(&TABLES.replacen(old, new, 1))
}

/// The quarks of `TABLES` and, from line 30 on, a measurement.
fn measured(table: &str) -> String {
    format!("{}{table}", quarks(TABLES))
}

fn light(text: &str) -> StaggeredFermion {
    match input(text).fermions.remove(0) {
        Fermion::Staggered(fermion) => fermion,
        other => panic!("no staggered quarks but {other:?}"),
    }
}

/// Each text has one mistake, of this message without the file.
fn assert_mistakes(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        assert_eq!(mistakes(text, 1), [format!("run.toml:{expected}")], "{text}");
    }
}

/// A file of MILC's with two pseudofermions, the second with a Naik correction.
fn milc_file(scratch: &Scratch) -> PathBuf {
    let function = |name: &str, y: [i32; 2], z: u32| {
        format!(
            "y_{name} {} {} 0 # comment\nz_{name} {z} {z} 4\nm_{name} 0.01 0.2 99.9\norder_{name} 1\n\
             res_{name} 1.5\nres_{name} -0.25\n\npole_{name} 99.9\npole_{name} 0.5\n",
            y[0], y[1]
        )
    };
    let functions =
        [function("MD", [-2, 3], 4), function("GR", [2, -3], 8), function("FA", [-2, 3], 8)].concat();
    let text = format!("n_pseudo 2\n# first\n{functions}naik_term_epsilon -0.125\n{functions}");
    scratch.write("functions", text);
    scratch.at("functions")
}

#[test]
fn defaults_and_what_is_inherited() {
    let light = light(&quarks(TABLES));
    assert_eq!(light.smearing, Smearing::Hisq { special: false });
    assert_eq!(light.boundary.theta().map(f64::to_bits), [0.0f64, 0.0, 0.0, 1.0].map(f64::to_bits));
    let solver = RootedSolver {
        multi_shift: true,
        precisions: [Precision::Double, Precision::Single],
        delta: 1e-3,
        long_reals: 14,
        heat_bath_residual: 1e-11,
        max_iterations: 10_000,
    };
    assert_eq!(
        light.solver,
        StaggeredSolver { settings: solver, action_residual: 1e-11, force_residual: 1e-9 }
    );
    let [first, second] = light.pseudofermions.try_into().expect("two pseudofermions");
    let factors = vec![MassFactor { mass: 0.01, power: (2, 4) }, MassFactor { mass: 0.2, power: (-2, 4) }];
    assert_eq!((first.factors, first.copies, first.naik_epsilon.to_bits()), (factors, 1, 0));
    let made = |lambda_max, force_error, check_every| RationalSource::Made {
        lambda_max,
        heat_bath_error: 1e-12,
        action_error: 1e-12,
        force_error,
        check_every,
    };
    assert_eq!(first.rational, made(90.0, 1e-7, 1));
    assert_eq!((second.copies, second.naik_epsilon.to_bits()), (3, (-0.1f64).to_bits()));
    assert_eq!(second.rational, made(40.0, 1e-6, 5));
    let asqtad =
        self::light(&with("\"hisq\"", "\"asqtad\"\nu0 = 0.862").replace("naik_epsilon = -0.1\n", ""));
    assert_eq!(asqtad.smearing, Smearing::Asqtad { u0: 0.862 });
}

#[test]
fn one_mistake_is_one_message() {
    let solver = |keys: &str| {
        with("[fermion.light.rational]", &format!("solver = {{ {keys} }}\n[fermion.light.rational]"))
    };
    assert_eq!(
        light(&solver("strategy = \"one-by-one\"")).solver.settings.precisions,
        [Precision::Single; 2]
    );
    let half = solver("precision = \"double-half\", strategy = \"one-by-one\"");
    assert_eq!(light(&half).solver.settings.precisions, [Precision::Half; 2]);
    let power = "[p, q]: integers, p from -64 to 64 but not 0, q from 1 to 64";
    let cases = [
        (with("\"hisq\"", "\"hisk\""), "11:10: action: unknown \"hisk\"; did you mean 'hisq'?"),
        (
            with("\"hisq\"", "\"hisq\"\nu0 = 0.9"),
            "12:6: u0: only the action \"asqtad\" has it; the gauge action has its own",
        ),
        (
            with("\"hisq\"", "\"hisq\"\nprojection = \"su2\""),
            "12:14: projection: unknown \"su2\"; did you mean 'su3'?",
        ),
        (
            with("\"hisq\"", "\"asqtad\"").replace("naik_epsilon = -0.1\n", ""),
            "10:1: missing 'u0' in [fermion.light]",
        ),
        (with("\"hisq\"", "\"asqtad\"\nu0 = 0.9"), "20:16: naik_epsilon: only the action \"hisq\" has it"),
        (
            with("\"hisq\"", "\"hisq\"\nkappa = 0.1"),
            "12:1: unknown key 'kappa' in [fermion.light]; expected 'action', 'u0', 'projection', 'boundary', 'solver', 'rational' or 'pseudofermion'",
        ),
        (with("mass = 0.01", "mass = 0"), "15:21: mass: expected a mass above 0, found the integer 0"),
        (with("[2, 4]", "[0, 4]"), &format!("15:35: power: expected a power {power}, found [0, 4]")),
        (with("[2, 4]", "[2, 0]"), &format!("15:35: power: expected a power {power}, found [2, 0]")),
        (with("[2, 4]", "[2]"), &format!("15:35: power: expected a power {power}, found an array of 1")),
        (with("[2, 4]", "[2, 65]"), "15:39: power: expected an integer from -64 to 64, found the integer 65"),
        (with(", power = [2, 4]", ""), "15:12: missing 'power' in [fermion.light.pseudofermion.factors]"),
        (
            with("factors = [{ mass = 0.2, power = [3, 4] }]\n", ""),
            "16:1: missing 'factors' in [fermion.light.pseudofermion]",
        ),
        (
            with("factors = [{ mass = 0.2, power = [3, 4] }]\n", "factors = []\n"),
            "17:11: factors: a pseudofermion needs at least one",
        ),
        (
            with("[3, 4] }]\ncopies = 3", "[3, 1] }]"),
            "17:11: factors: the exponents of a rational function, summed from the smallest shift (or mass) up, must \
             stay between -1 and 1, and one must be left; copies = 4 would do",
        ),
        (
            with("power = [-2, 4]", "power = [-2, 3]"),
            "15:11: factors: the exponents of a rational function, summed from the smallest shift (or mass) up, must \
             keep one sign",
        ),
        (
            with("[3, 4] }]\ncopies = 3", "[61, 64] }]\ncopies = 3"),
            "17:11: factors: the exponents of a rational function need small numerators and denominators",
        ),
        (
            with("copies = 3", "copies = 0"),
            "18:10: copies: expected an integer from 1 to 64, found the integer 0",
        ),
        (
            with("lambda_max = 90\n", ""),
            "13:1: a pseudofermion needs 'lambda_max' or 'file', in its own table 'rational' or in its \
             fermion's",
        ),
        (
            with("= 90", "= 1e12"),
            "13:14: lambda_max: 1e12 is far above the spectrum, and would take far more poles; give a bound near it",
        ),
        (with("= 90", "= -1"), "13:14: lambda_max: expected a positive number, found the integer -1"),
        (with("= 90", "= 90\nindex = 1"), "14:9: index: only a pseudofermion's own table has it"),
        (
            with("lambda_max = 40", "index = 1"),
            "20:22: index: it selects a pseudofermion of a 'file', but there is no 'file'",
        ),
        (
            with("force_error = 1e-6", "force_error = 1"),
            "20:45: force_error: expected an error from 1e-14 to 1e-3, found the integer 1",
        ),
        (
            solver("precision = \"double-half\""),
            "12:24: precision: all shifts at once are solved in \"double-double-single\", \"double-double-half\", \"double\", \"double-single\" or \"double-single-half\"; the strategy \
             \"one-by-one\" has \"double-half\"",
        ),
        (
            solver("long_link_reals = 12"),
            "12:30: long_link_reals: expected 18, 14 or 9 reals a long link, found 12",
        ),
        (
            solver("link_reals = 12"),
            "12:12: unknown key 'link_reals' in [fermion.light.solver]; expected 'strategy', 'precision', 'delta', 'long_link_reals', \
             'heat_bath_residual', 'action_residual', 'force_residual' or 'max_iterations'",
        ),
    ];
    assert_mistakes(&cases);
    let (none, _) = TABLES.split_once("[[").expect("pseudofermions");
    let needed = "10:1: staggered quarks need at least one [[fermion.NAME.pseudofermion]]";
    assert_mistakes(&[(quarks(none), needed)]);
}

#[test]
fn functions_of_a_file() {
    let scratch = Scratch::new();
    let path = milc_file(&scratch);
    let key = format!("file = {:?}", path.display().to_string());
    let text = quarks(&format!(
        "[fermion.light]\naction = \"hisq\"\n[fermion.light.rational]\n{key}\ncheck_every = 3\n\
         [[fermion.light.pseudofermion]]\n[[fermion.light.pseudofermion]]\n\
         [[fermion.light.pseudofermion]]\nfactors = [{{ mass = 0.2, power = [-3, 4] }}, {{ mass = 0.01, power = [1, 2] }}]\n\
         naik_epsilon = -0.125\nrational = {{ index = 1 }}\n\
         [[fermion.light.pseudofermion]]\nfactors = [{{ mass = 0.2, power = [1, 4] }}]\nrational = {{ lambda_max = 30 }}\n"
    ));
    let light = light(&text);
    let found: Vec<_> = light
        .pseudofermions
        .iter()
        .map(|pseudofermion| {
            let index = match &pseudofermion.rational {
                RationalSource::File { index, path: found, check_every, functions } => {
                    assert_eq!((found, *check_every), (&path, 3));
                    assert_eq!(functions.md.terms, [(-0.25, 0.5)]);
                    assert_eq!(functions.action.factors, [(0.01, (-2, 8)), (0.2, (3, 8))]);
                    Some(*index)
                }
                RationalSource::Made { check_every, .. } => {
                    assert_eq!(*check_every, 3);
                    None
                }
            };
            (index, pseudofermion.naik_epsilon)
        })
        .collect();
    assert_eq!(found, [(Some(0), 0.0), (Some(1), -0.125), (Some(1), -0.125), (None, 0.0)]);
    let weight = vec![MassFactor { mass: 0.01, power: (2, 4) }, MassFactor { mass: 0.2, power: (-3, 4) }];
    for pseudofermion in &light.pseudofermions[..3] {
        assert_eq!(pseudofermion.factors, weight);
    }

    let one = |more: &str, rational: &str| {
        quarks(&format!(
            "[fermion.light]\naction = \"hisq\"\n[[fermion.light.pseudofermion]]\n{more}\nrational = {{ {rational} }}\n"
        ))
    };
    assert_mistakes(&[
        (
            one("factors = [{ mass = 0.01, power = [1, 4] }]", &key),
            "13:11: factors: the file has 0.01^(2/4) 0.2^(-3/4); leave them out to take its own",
        ),
        (one("naik_epsilon = 0.1", &format!("{key}, index = 1")), "13:16: naik_epsilon: the file has -0.125"),
        (
            one("copies = 2", &key),
            "13:10: copies: a file's functions belong to one pseudofermion; list it once per copy",
        ),
        (
            one("", &format!("index = 2, {key}")),
            "14:22: index: pseudofermion 2, from 0, of a file that has 2",
        ),
        (
            one("", &format!("lambda_max = 40, {key}")),
            "14:27: lambda_max: a file's functions cannot be changed; keep one of the two",
        ),
        (
            one("", &format!("index = 1, {key}")).replace("\"hisq\"", "\"asqtad\"\nu0 = 0.9"),
            "15:12: rational: the file has naik_epsilon -0.125; only the action \"hisq\" has one",
        ),
        (one("", "file = \"no/such\""), "14:21: file: no/such: No such file or directory (os error 2)"),
    ]);

    let broken = milc_file(&scratch);
    let text = std::fs::read_to_string(&broken).expect("it is there").replacen("order_GR", "order_FA", 1);
    std::fs::write(&broken, text).expect("the file is written");
    let key = format!("file = {:?}", broken.display().to_string());
    let message =
        format!("14:21: file: {}: line 15: expected 'order_GR', found 'order_FA'", broken.display());
    assert_mistakes(&[(one("", &key), &message)]);
}

#[test]
fn comparison_names_every_key() {
    let stored = quarks(TABLES);
    let changed = with("[2, 4]", "[1, 2]")
        .replace("lambda_max = 90", "lambda_max = 80")
        .replace("copies = 3", "copies = 4")
        .replace("\"hisq\"", "\"hisq\"\nprojection = \"su3\"\nsolver = { max_iterations = 5, delta = 0.1 }");
    let expected = [
        "fermion.light.projection: was \"u3\", is \"su3\"",
        "fermion.light.solver.delta: was 0.001, is 0.1",
        "fermion.light.pseudofermion 0 rational.lambda_max: was 90.0, is 80.0",
        "fermion.light.pseudofermion 0 factors: was [(0.01, (2, 4)), (0.2, (-2, 4))], is [(0.01, (1, 2)), (0.2, (-2, 4))]",
        "fermion.light.pseudofermion 1 copies: was 3, is 4",
    ];
    assert_eq!(differences(&stored, &changed, false), expected);
    // The powers 2/4 and 1/2 are one determinant.
    assert_eq!(differences(&stored, &changed, true), expected[..1]);
    let heavier = quarks(TABLES).replace("0.2", "0.3");
    assert_ne!(heavier, stored);
    let determinant = differences(&stored, &heavier, true);
    assert!(
        determinant.len() == 1 && determinant[0].starts_with("fermion.light.determinant: was ["),
        "{determinant:?}"
    );
    let kinds = differences(GOOD, &stored, true);
    assert_eq!(kinds[0], "fermion.light.action: was \"wilson\", is \"hisq\"");
}

#[test]
fn measurements() {
    let text = measured(
        "[measure.correlator.pion]\nfermion = \"light\"\nmass = 0.01\nsource_kind = \"corner-wall\"\nsource = [0, 0, 0, 3]\n\
         [measure.correlator.heavy]\nfermion = \"light\"\nmass = 0.4\nnaik_epsilon = -0.1\n\
         [measure.condensate.light]\nfermion = \"light\"\nmass = 0.01\nsources = 3\nresidual = 1e-9\n",
    );
    let measure = input(&text).measure;
    let quark = |mass: f64, naik_epsilon, residual| QuarkChoice {
        fermion: "light".into(),
        wanted: Wanted { mass: Some(mass), twisted_mass: None, naik_epsilon, residual },
    };
    let correlators = measure.of_kind::<Correlator>();
    assert_eq!(correlators[0].quark, quark(0.01, 0.0, 1e-12));
    assert_eq!(correlators[0].source, Source::CornerWall(3));
    assert_eq!(correlators[1].quark, quark(0.4, -0.1, 1e-12));
    assert_eq!(correlators[1].source, Source::Point([0; 4]));
    let condensate = Condensate { name: "light".into(), quark: quark(0.01, 0.0, 1e-9), sources: 3 };
    assert_eq!(measure.of_kind::<Condensate>(), [&condensate]);
    assert_eq!(input(GOOD).measure.of_kind::<Correlator>()[0].quark.wanted.mass, None);

    let pion = |keys: &str| measured(&format!("[measure.correlator.pion]\nfermion = \"light\"\n{keys}"));
    let wilson = |keys: &str| format!("{GOOD}{keys}");
    let condensate =
        |keys: &str| measured(&format!("[measure.condensate.light]\nfermion = \"light\"\n{keys}"));
    assert!(input::parse(&wilson("source_kind = \"point\"\n"), "run.toml", 1).is_ok());
    let text = wilson("[measure.condensate.c]\nfermion = \"light\"\nsources = 16384\n");
    assert_eq!(input(&text).measure.of_kind::<Condensate>()[0].quark.wanted.mass, None);
    let asqtad =
        |text: String| text.replace("\"hisq\"", "\"asqtad\"\nu0 = 0.9").replace("naik_epsilon = -0.1\n", "");
    assert_mistakes(&[
        (pion(""), "31:1: missing 'mass' in [measure.correlator.pion]"),
        (
            pion("mass = 0.01\nsource_kind = \"wall\"\n"),
            "34:15: source_kind: unknown \"wall\"; expected 'point', 'corner-wall' or 'slice'",
        ),
        (
            pion("mass = 0.01\nsource_kind = \"corner-wall\"\nsource = [2, 0, 0, 0]\n"),
            "35:10: source: a wall or a slice has only a t; x, y and z must be 0",
        ),
        (
            asqtad(pion("mass = 0.01\nnaik_epsilon = -0.2\n")),
            "34:16: naik_epsilon: only the action \"hisq\" has it",
        ),
        (wilson("mass = 0.1\n"), "26:8: mass: that of Wilson quarks is in their [fermion.NAME]"),
        (wilson("naik_epsilon = 0.1\n"), "26:16: naik_epsilon: only the action \"hisq\" has it"),
        (
            wilson("source_kind = \"corner-wall\"\n"),
            "26:15: source_kind: Wilson quarks have no \"corner-wall\"",
        ),
        (
            wilson("[measure.condensate.c]\nfermion = \"light\"\nmass = 0.1\n"),
            "28:8: mass: that of Wilson quarks is in their [fermion.NAME]",
        ),
        (
            measured("[measure]\nseed = 7\n"),
            "32:1: unknown key 'seed' in [measure]; expected 'every', 'loops', 'polyakov', 'flow', 'correlator', 'condensate', 'mu_derivative', 'meson', 'reweighting', 'spectrum' or 'wilson_loops'",
        ),
        (condensate(""), "31:1: missing 'mass' in [measure.condensate.light]"),
        (
            condensate("mass = 0.1\nsources = 0\n"),
            "34:11: sources: expected an integer from 1 to 16384, found the integer 0",
        ),
        (
            condensate("mass = 0.1\n").replacen("fermion = \"light\"", "fermion = \"lihgt\"", 1),
            "32:11: fermion: unknown fermion 'lihgt'; did you mean 'light'?",
        ),
    ]);

    let (none, _) = TABLES.split_once("[fermion.light.rational]").expect("a rational function");
    let text = format!("{none}[measure.condensate.c]\nfermion = \"light\"\nmass = 0.1\n");
    let loaded = input::parse_measure(&text, "m.toml").expect("pseudofermions are for runs");
    assert!(
        matches!(&loaded.input.fermions[0], Fermion::Staggered(light) if light.pseudofermions.is_empty())
    );
    assert_eq!(loaded.input.seed, 1);
    let seeded = input::parse_measure(&format!("{text}[measure]\nseed = 7\n"), "m.toml").unwrap();
    assert_eq!(seeded.input.seed, 7);
}

/// Boxes of two layers are too thin for long links, where ranks are neighbours; the lattice of `GOOD` is 8x8x8x16.
#[test]
fn thin_boxes_are_refused() {
    let cut = |grid: &str, ranks: usize| {
        let text = quarks(TABLES);
        assert!(!text.contains("[parallel]"), "{text}");
        input::parse(&format!("{text}[parallel]\ngrid = {grid}\n"), "run.toml", ranks).map(|_| ())
    };
    assert!(cut("[1, 1, 1, 4]", 4).is_ok());
    let refused = cut("[1, 1, 1, 8]", 8).unwrap_err().to_string();
    let expected = "run.toml:11:10: action: long links reach 3 layers, and a rank's box of 8x8x8x2 is thinner where it is \
                    cut: take fewer ranks or another grid";
    assert!(refused.contains(expected), "{refused}");
}
