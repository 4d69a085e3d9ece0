//! Quarks: each key's right and wrong forms, what is inherited, what a continued run keeps.

use super::{GOOD, differences, input, mistakes, wilson, with};
use crate::devices::domain;
use crate::reference::gauge::Gauge;
use crate::terms::{fields, quark};
use hmc::action::{Action, Determinant, DeterminantParams, InnerPoles, Power, TermHeader};
use hmc::device::Precision;
use hmc::family::{Family, Flavours, OneFlavourFunctions, StoutSteps, Wilson, WilsonFermion, WilsonParams};
use hmc::solver::{GcrDd, GcrMultigrid, Method, MultigridParams, Past, Settings, TermSolver};
use std::path::Path;

/// A fermion of `GOOD` with these keys more; tables may follow the keys.
pub(super) fn fermion(keys: &str) -> String {
    with("c_sw = 1.0\n", &format!("c_sw = 1.0\n{keys}"))
}

/// `GOOD` with one flavour, and these keys more.
fn one_flavour(keys: &str) -> String {
    fermion(&format!("flavours = 1\n[fermion.light.rational]\nrange = [0.1, 30]\n{keys}"))
}

/// `GOOD` with two Hasenbusch factors on the first level, and these keys in the first factor.
fn factors(keys: &str) -> String {
    let tables = format!(
        "[[fermion.light.hasenbusch]]\n{keys}\n[[fermion.light.hasenbusch]]\nname = \"l2\"\nmu = 0.5\n"
    );
    fermion(&tables).replacen("[\"light\"]", "[\"light\", \"l1\", \"l2\"]", 1)
}

pub(super) fn light(text: &str) -> WilsonFermion {
    wilson(input(text))
}

/// Each text has one mistake, of this message without the file.
fn assert_mistakes(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        assert_eq!(mistakes(text, 1), [format!("run.toml:{expected}")], "{text}");
    }
}

#[test]
fn plain_quarks_are_two_untwisted_ones() {
    let light = light(GOOD);
    assert_eq!((light.flavours, light.operator.mu.to_bits(), light.stout), (Flavours::Two, 0, None));
    assert!(light.hasenbusch.is_empty());
    let expected = TermSolver {
        settings: Settings {
            method: Method::CG,
            precisions: [Precision::Double, Precision::Single, Precision::Single],
            delta: 1e-3,
            max_iterations: 10_000,
        },
        link_reals: 12,
        action_residual: 1e-11,
        force_residual: 1e-9,
        guess: Past::NONE,
        candidates: Vec::new(),
    };
    assert_eq!(light.solver, expected);
}

#[test]
fn twisted_and_smeared_quarks() {
    let light = light(&fermion("mu = 0.25\nstout = { steps = 3, rho = 0.125 }\n"));
    assert_eq!(light.operator.mu.to_bits(), 0.25f64.to_bits());
    assert_eq!(light.stout, Some(StoutSteps { steps: 3, rho: 0.125 }));
    let table = fermion("[fermion.light.stout]\nsteps = 16\nrho = 0.2\n");
    assert_eq!(self::light(&table).stout, Some(StoutSteps { steps: 16, rho: 0.2 }));
    assert_mistakes(&[
        (fermion("mu = -0.1\n"), "14:6: mu: expected a number, 0 at least, found the number -0.1"),
        (
            fermion("stout = { steps = 17, rho = 0.1 }\n"),
            "14:19: steps: expected an integer from 1 to 16, found the integer 17",
        ),
        (
            fermion("stout = { steps = 1, rho = 0.25 }\n"),
            "14:28: rho: expected a number between 0 and 0.25, found the number 0.25",
        ),
        (fermion("stout = { steps = 1 }\n"), "14:9: missing 'rho' in [fermion.light.stout]"),
        (
            fermion("stout = { step = 1, rho = 0.1 }\n"),
            "14:11: unknown key 'step' in [fermion.light.stout]; did you mean 'steps'?",
        ),
        (fermion("stout = 3\n"), "14:9: expected a table [fermion.light.stout], found the integer 3"),
    ]);
}

#[test]
fn one_flavour_needs_a_rational_function() {
    let defaults = OneFlavourFunctions {
        copies: 1,
        range: [0.1, 30.0],
        action_error: 1e-12,
        force_error: 1e-7,
        check_every: 1,
        inner: None,
    };
    assert_eq!(light(&one_flavour("")).flavours, Flavours::One(defaults));
    let keys = "copies = 3\naction_error = 1e-14\nforce_error = 1e-3\ncheck_every = 5\n";
    let given = OneFlavourFunctions {
        copies: 3,
        range: [0.1, 30.0],
        action_error: 1e-14,
        force_error: 1e-3,
        check_every: 5,
        inner: None,
    };
    assert_eq!(light(&one_flavour(keys)).flavours, Flavours::One(given.clone()));
    assert_eq!(["", keys].map(|keys| light(&one_flavour(keys)).pseudofermions()), [1, 3]);
    let divided = |keys: &str| {
        let keys = format!("inner = {{ name = \"uv\", poles = 4 }}\n{keys}");
        one_flavour(&keys).replace("[\"gauge\"]", "[\"gauge\", \"uv\"]")
    };
    let inner = Some(InnerPoles { name: "uv".into(), poles: 4 });
    assert_eq!(light(&divided(keys)).flavours, Flavours::One(OneFlavourFunctions { inner, ..given }));
    let solver = "[fermion.light.solver]\n";
    let double = light(&one_flavour(&format!("{solver}method = \"cg\"\nprecision = \"double\"\n")));
    assert_eq!(double.solver.settings.precisions, [Precision::Double; 3]);
    let one = |keys: &str| one_flavour("").replacen("flavours = 1\n", &format!("flavours = 1\n{keys}"), 1);
    assert_mistakes(&[
        (fermion("flavours = 3\n"), "14:12: flavours: expected an integer from 1 to 2, found the integer 3"),
        (fermion("flavours = 1\n"), "10:1: missing 'rational' in [fermion.light]"),
        (
            fermion("[fermion.light.rational]\nrange = [0.1, 30]\n"),
            "14:1: rational: only flavours = 1 has it",
        ),
        (one("mu = 0.0\n"), "15:6: mu: only flavours = 2 has it"),
        (
            one_flavour("").replace("range = [0.1, 30]\n", ""),
            "15:1: missing 'range' in [fermion.light.rational]",
        ),
        (
            one_flavour("").replace("[0.1, 30]", "[30, 0.1]"),
            "16:9: range: expected bounds [lo, hi], 0 < lo < hi, found [30.0, 0.1]",
        ),
        (
            one_flavour("").replace("[0.1, 30]", "[1e-300, 1e300]"),
            "16:9: range: hi / lo is above 1e16, more than double precision tells apart",
        ),
        (
            one_flavour("").replace("[0.1, 30]", "[0, 30]"),
            "16:10: range: expected a positive number, found the integer 0",
        ),
        (
            one_flavour("action_error = 1e-15\n"),
            "17:16: action_error: expected an error from 1e-14 to 1e-3, found the number 1e-15",
        ),
        (
            one_flavour("force_error = 0.01\n"),
            "17:15: force_error: expected an error from 1e-14 to 1e-3, found the number 0.01",
        ),
        (
            divided("").replace(", \"uv\"", ""),
            "17:18: the term 'uv' is on no level: name it in the terms of one [[hmc.level]]",
        ),
        (
            divided("").replace("name = \"uv\"", "name = \"light\"").replace(", \"uv\"", ""),
            "17:18: name: there is a term 'light' already; each needs a name of its own",
        ),
        (
            divided("").replace("poles = 4", "poles = 0"),
            "17:32: poles: expected an integer from 1 to 64, found the integer 0",
        ),
        (
            one_flavour("copies = 65\n"),
            "17:10: copies: expected an integer from 1 to 64, found the integer 65",
        ),
        (
            one_flavour("check_every = 0\n"),
            "17:15: check_every: expected an integer, 1 at least, found the integer 0",
        ),
        (
            one_flavour(&format!("{solver}method = \"gcr-dd\"\n")),
            "18:10: method: flavours = 1 is solved by \"cg\" for all shifts at once",
        ),
        (
            one_flavour(&format!("{solver}precision = \"double-half\"\n")),
            "18:13: precision: flavours = 1 is solved in \"double-double-single\", \"double-double-half\", \"double\", \"double-single\" or \"double-single-half\"",
        ),
        (
            one_flavour(&format!("{solver}guess = 2\n")),
            "18:9: guess: with flavours = 1, solves for all shifts start from zero",
        ),
        (
            one("hasenbusch = [{ name = \"l1\", mu = 0.5 }]\n").replace("[\"light\"]", "[\"light\", \"l1\"]"),
            "15:14: hasenbusch: only flavours = 2 has it",
        ),
    ]);
}

/// A determinant over a heavier one: the terms are those ratios, the last one too.
#[test]
fn a_weight_may_end_in_a_ratio() {
    let own = light(&fermion("over = { mu = 0.3 }\n"));
    assert_eq!(own.over, Some(WilsonParams { mu: 0.3, ..own.operator }));
    let split = light(&factors("name = \"l1\"\nmu = 0.1").replacen(
        "c_sw = 1.0\n",
        "c_sw = 1.0\nover = { mu = 0.7, kappa = 0.12 }\n",
        1,
    ));
    assert_eq!(split.over, Some(WilsonParams { mu: 0.7, kappa: 0.12, ..split.operator }));
    let domain = domain([4; 4]);
    let links = fields(&Gauge::warm([4; 4], 0.3, 5), &domain);
    let factor = |mu: f64| WilsonParams { mu, ..split.operator };
    let quarks = [split.operator, factor(0.1), factor(0.5), split.over.expect("V")];
    let terms = split.terms(&domain, 0).unwrap();
    assert_eq!(terms.len(), 3);
    for ((number, mut term), pair) in (0..).zip(terms).zip(quarks.windows(2)) {
        let params = DeterminantParams {
            header: TermHeader { name: "l".into(), number, action_residual: 1e-11, force_residual: 1e-9 },
            light: quark(pair[0], Precision::Single),
            heavy: Some(quark(pair[1], Precision::Single)),
            power: Power::Inverse,
        };
        let mut ratio = Determinant::<Wilson>::new(&domain, params).unwrap();
        let [own, expected] = [&mut *term, &mut ratio as &mut dyn Action]
            .map(|term| term.refresh(&links, 1, 0).unwrap().value());
        assert_eq!(own, expected, "{}", term.name());
        let [own, expected] =
            [&mut *term, &mut ratio as &mut dyn Action].map(|term| term.value(&links).unwrap().value());
        assert!((own / expected - 1.0).abs() < 1e-9, "{}: {own} {expected}", term.name());
    }
    let heavier = "over: kappa 0.13157894736842105 and mu 0.2 are not heavier than 0.13157894736842105 and 0.5 of the last factor";
    assert_mistakes(&[
        (
            factors("name = \"l1\"\nmu = 0.1").replacen(
                "c_sw = 1.0\n",
                "c_sw = 1.0\nover = { mu = 0.2 }\n",
                1,
            ),
            &format!("14:8: {heavier}"),
        ),
        (
            one_flavour("").replacen("flavours = 1\n", "flavours = 1\nover = { kappa = 0.1 }\n", 1),
            "15:8: over: only flavours = 2 has it",
        ),
    ]);
}

#[test]
fn keys_that_are_gone_say_what_to_write() {
    assert_mistakes(&[(
        one_flavour("[fermion.light.solver]\nmultigrid_shifts = 2\n"),
        "18:1: unknown key 'multigrid_shifts' in [fermion.light.solver]; it is gone, for it cost more than it spared: \
         leave it out, with the keys of multigrid",
    )]);
}

#[test]
fn hasenbusch_factors_inherit() {
    let text = factors(
        "name = \"l1\"\nkappa = 0.125\n[fermion.light.hasenbusch.solver]\nmethod = \"cg\"\n\
         action_residual = 1e-10\nguess = 2",
    )
    .replacen(
        "[[fermion",
        "[fermion.light.solver]\nmethod = \"gcr-dd\"\nforce_residual = 1e-10\ngcr-dd = { k_max = 20 }\ndelta = 0.2\n[[fermion",
        1,
    );
    let light = light(&text);
    let schwarz = Method::GcrDd(GcrDd { k_max: 20, n_mr: 8, block: None });
    assert_eq!(light.solver.settings.method, schwarz);
    let [first, second] = light.hasenbusch.try_into().expect("two factors");
    assert_eq!((first.name.as_str(), second.name.as_str()), ("l1", "l2"));
    assert_eq!([first.kappa, first.mu, second.kappa, second.mu], [0.125, 0.0, 0.125, 0.5]);
    // The first has another method: its precision and delta are that method's, all else is inherited.
    let settings = Settings {
        method: Method::CG,
        precisions: [Precision::Double, Precision::Single, Precision::Single],
        delta: 1e-3,
        ..light.solver.settings
    };
    let guess = Past { solutions: 2, precision: Precision::Double };
    let expected = TermSolver { settings, action_residual: 1e-10, guess, ..light.solver.clone() };
    assert_eq!(first.solver, expected);
    assert_eq!(expected.force_residual.to_bits(), 1e-10f64.to_bits());
    assert_eq!(second.solver, light.solver);
}

#[test]
fn hasenbusch_factors_grow_heavier() {
    assert_eq!(
        light(&factors("name = \"l1\"\nmass = 0.0\nmu = 0.1")).hasenbusch[0].kappa.to_bits(),
        0.125f64.to_bits()
    );
    let order = "order them from light to heavy, and leave out what stays";
    let cases = [
        ("mu = 0.1", "14:1: missing 'name' in [fermion.light.hasenbusch]".to_owned()),
        (
            "name = \"l1\"",
            "14:1: a Hasenbusch factor needs 'kappa', 'mass' or 'mu', heavier than the one before".into(),
        ),
        (
            "name = \"l1\"\nkappa = 0.12\nmass = 0.3",
            "17:8: mass: kappa is given too; keep one of them".into(),
        ),
        (
            "name = \"l1\"\nkappa = 0.14",
            format!("16:9: kappa: 0.14 is not below the 0.13157894736842105 of the factor before: {order}"),
        ),
        (
            "name = \"l1\"\nmass = -0.5\nmu = 0.1",
            format!(
                "16:8: mass: its kappa 0.14285714285714285 is not below the 0.13157894736842105 \
                 of the factor before: {order}"
            ),
        ),
        ("name = \"l1\"\nmu = 0", format!("16:6: mu: 0 is not above the 0 of the factor before: {order}")),
        (
            "name = \"l1\"\nmu = 0.5",
            format!("19:6: mu: 0.5 is not above the 0.5 of the factor before: {order}"),
        ),
        (
            "name = \"l1\"\nmu = 0.1\nc_sw = 1.0",
            "17:1: unknown key 'c_sw' in [fermion.light.hasenbusch]; \
             expected 'name', 'kappa', 'mass', 'mu' or 'solver'"
                .into(),
        ),
        (
            "name = \"l1\"\nmu = 0.1\nsolver = { gcr-dd = { n_mr = 4 } }",
            "17:21: gcr-dd: only the method \"gcr-dd\" has this table".into(),
        ),
    ];
    for (keys, expected) in cases {
        let mut text = factors(keys);
        if !keys.contains("name") {
            text = text.replace("\"light\", \"l1\"", "\"light\"");
        }
        assert_mistakes(&[(text, expected.as_str())]);
    }
}

#[test]
fn hasenbusch_terms_have_names_and_levels_of_their_own() {
    let good = factors("name = \"l1\"\nmu = 0.1");
    assert_eq!(input(&good).hmc.terms[0], ["light", "l1", "l2"]);
    let taken = |name: &str| {
        factors(&format!("name = \"{name}\"\nmu = 0.1")).replace("\"light\", \"l1\"", "\"light\"")
    };
    assert_mistakes(&[
        (taken("gauge"), "15:8: name: there is a term 'gauge' already; each needs a name of its own"),
        (taken("light"), "15:8: name: there is a term 'light' already; each needs a name of its own"),
        (
            taken("a/b"),
            "15:8: name: expected a name of letters, digits, '.', '_' and '-', 200 at most, found the string \"a/b\"",
        ),
        (
            good.replace("\"l1\", \"l2\"", "\"l2\""),
            "15:8: the term 'l1' is on no level: name it in the terms of one [[hmc.level]]",
        ),
        (good.replace("[\"gauge\"]", "[\"gauge\", \"l1\"]"), "29:19: terms: 'l1' is on level 1 already"),
        (
            good.replace("fermion = \"light\"", "fermion = \"l1\""),
            "31:11: fermion: unknown fermion 'l1'; expected 'light'",
        ),
    ]);
    // The name of a fermion further down is taken too.
    let twice = good.replacen("l1", "strange", 1).replacen(
        "[hmc]",
        "[fermion.strange]\naction = \"wilson\"\nkappa = 0.12\n[hmc]",
        1,
    );
    assert_eq!(
        mistakes(&twice.replace("\"l1\"", "\"strange\""), 1),
        ["run.toml:15:8: name: there is a term 'strange' already; each needs a name of its own"]
    );
}

#[test]
fn solvers_know_their_precisions() {
    let solver = |keys: &str| fermion(&format!("[fermion.light.solver]\n{keys}\n"));
    let found = |keys: &str| light(&solver(keys)).solver;
    let (double, single, half) = (Precision::Double, Precision::Single, Precision::Half);
    let cases = [
        ("method = \"cg\"\nprecision = \"double\"", [double; 3], 1e-3),
        ("precision = \"double-half\"", [double, half, half], 0.1),
        ("precision = \"double-half\"\ndelta = 0.05", [double, half, half], 0.05),
        ("method = \"bicgstab\"", [double, single, single], 1e-3),
        ("method = \"gcr-dd\"", [double, single, half], 0.1),
        ("method = \"gcr-dd\"\nprecision = \"double-half-half\"", [double, half, half], 0.1),
        ("method = \"gcr-dd\"\nprecision = \"double-double-double\"\ndelta = 0.5", [double; 3], 0.5),
    ];
    for (keys, precision, delta) in cases {
        let solver = found(keys);
        assert_eq!(
            (solver.settings.precisions, solver.settings.delta.to_bits()),
            (precision, f64::to_bits(delta)),
            "{keys}"
        );
    }
    assert_eq!(found("method = \"bicgstab\"").settings.method, Method::BICGSTAB);
    assert_eq!(found("link_reals = 8").link_reals, 8);
    let keys = "method = \"gcr-dd\"\ngcr-dd = { k_max = 2, n_mr = 64, block = [4, 8, 2, 16] }";
    let method = Method::GcrDd(GcrDd { k_max: 2, n_mr: 64, block: Some([4, 8, 2, 16]) });
    assert_eq!(found(keys).settings.method, method);
    let rank = found("method = \"gcr-dd\"\ngcr-dd = { block = \"rank\" }");
    assert_eq!(rank.settings.method, Method::GcrDd(GcrDd { k_max: 16, n_mr: 8, block: None }));
    assert_mistakes(&[
        (solver("method = \"cgs\""), "15:10: method: unknown \"cgs\"; did you mean 'cg'?"),
        (
            solver("precision = \"double-single-half\""),
            "15:13: precision: unknown \"double-single-half\"; did you mean 'double-single'?",
        ),
        (
            solver("method = \"gcr-dd\"\nprecision = \"double-single\""),
            "16:13: precision: unknown \"double-single\"; did you mean 'double-single-half'?",
        ),
        (solver("delta = 1.0"), "15:9: delta: expected a number between 0 and 1, found the number 1.0"),
        // As it stood until 0.2.
        (
            solver("k_max = 8"),
            "15:1: unknown key 'k_max' in [fermion.light.solver]; it stands in [fermion.NAME.solver.gcr-dd] or \
             [fermion.NAME.solver.multigrid] of Wilson quarks",
        ),
        (
            solver("method = \"gcr-dd\"\nschwarz_block = \"rank\""),
            "16:1: unknown key 'schwarz_block' in [fermion.light.solver]; it is 'block' in [fermion.NAME.solver.gcr-dd] of Wilson \
             quarks",
        ),
        (
            solver("method = \"bicgstab\"\ngcr-dd = { block = \"rank\" }"),
            "16:10: gcr-dd: only the method \"gcr-dd\" has this table",
        ),
        (
            solver("method = \"gcr-dd\"\ngcr-dd = { k_max = 65 }"),
            "16:20: k_max: expected an integer from 2 to 64, found the integer 65",
        ),
        (
            solver("method = \"gcr-dd\"\ngcr-dd = { n_mr = 0 }"),
            "16:19: n_mr: expected an integer from 1 to 64, found the integer 0",
        ),
        (
            solver("method = \"gcr-dd\"\ngcr-dd = { vectors = 8 }"),
            "16:12: unknown key 'vectors' in [fermion.light.solver.gcr-dd]; it stands in \
             [fermion.NAME.solver.multigrid] of Wilson quarks",
        ),
    ]);
    let multigrid = |keys: &str| solver(&format!("method = \"multigrid\"\n{keys}"));
    let params = MultigridParams { block: [2, 2, 4, 4], coarse_block: None, vectors: 32, steps: 6 };
    assert_eq!(
        found("method = \"multigrid\"\nmultigrid = { aggregate = [2, 2, 4, 4], vectors = 32, k_max = 8 }")
            .settings
            .method,
        Method::Multigrid(GcrMultigrid { k_max: 8, params })
    );
    assert_mistakes(&[
        (
            solver("multigrid = { vectors = 8 }"),
            "15:13: multigrid: only the method \"multigrid\" has this table",
        ),
        (
            multigrid("multigrid = { vectors = 12 }"),
            "16:25: vectors: expected a multiple of 8 up to 64, found 12",
        ),
        (
            multigrid("precision = \"double-double-double\""),
            "16:13: precision: unknown \"double-double-double\"; did you mean 'double-double-single'?",
        ),
        (
            multigrid("gcr-dd = { block = \"rank\" }"),
            "16:10: gcr-dd: only the method \"gcr-dd\" has this table",
        ),
    ]);
    // What a misspelt method has is not judged by another's rules.
    let unknown = solver("method = \"gcr\"\nprecision = \"double-half-half\"\ngcr-dd = { k_max = 4 }");
    assert_eq!(mistakes(&unknown, 1).len(), 1);
}

#[test]
fn schwarz_blocks_divide_every_box() {
    let blocks = |block: &str| {
        fermion(&format!("[fermion.light.solver]\nmethod = \"gcr-dd\"\ngcr-dd = {{ block = {block} }}\n"))
    };
    assert_mistakes(&[
        (blocks("[4, 4, 4, 6]"), "16:20: block: blocks of 4x4x4x6 do not divide the lattice of 8x8x8x16"),
        (blocks("[4, 4, 4, 3]"), "16:30: block: expected an even extent, found 3"),
        (
            blocks("\"ranks\""),
            "16:20: block: expected \"rank\" or 4 even integers [x, y, z, t], found the string \"ranks\"",
        ),
    ]);
    let wide = blocks("[8, 8, 8, 16]");
    assert!(input::parse(&wide, "run.toml", 1).is_ok());
    assert_eq!(
        mistakes(&wide, 2),
        ["run.toml:16:20: block: blocks of 8x8x8x16 do not divide a rank's box of 8x8x8x8"]
    );
    assert!(input::parse_stored(&wide, "run.toml").is_ok());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/clover-nf2p1-32c64.toml");
    for ranks in [1, 2, 8, 64, 512] {
        assert!(input::load(&path, ranks).is_ok(), "{ranks} ranks");
    }
}

#[test]
fn mistakes_of_new_tables_come_all_at_once() {
    let text = factors(
        "name = \"light\"\nmu = -1\nmass = \"heavy\"\n[fermion.light.hasenbusch.solver]\nlink_reals = 9",
    )
    .replacen(
        "[[fermion",
        "mu = true\nstout = { rho = 1 }\n[fermion.light.rational]\nrange = 1\n[[fermion",
        1,
    )
    .replace("\"light\", \"l1\"", "\"light\"");
    let found = mistakes(&text, 1);
    let expected = [
        "14:6: mu: ",
        "15:9: missing 'steps' in ",
        "15:17: rho: ",
        "16:1: rational: only ",
        "17:9: range: ",
        "19:8: name: ",
        "20:6: mu: ",
        "21:8: mass: ",
        "23:14: link_reals: ",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(&format!("run.toml:{expected}")), "{found}");
    }
}

#[test]
fn inherited_guesses_warn_once() {
    let text = factors("name = \"l1\"\nmu = 0.1").replacen(
        "[[fermion",
        "[fermion.light.solver]\nguess = 3\nforce_residual = 1e-7\n[[fermion",
        1,
    );
    let loaded = input::parse(&text, "run.toml", 1).expect("only a warning");
    assert_eq!(wilson(loaded.input).hasenbusch[0].solver.guess.solutions, 3);
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}

#[test]
fn comparison_names_every_key_of_quarks() {
    let stored = factors("name = \"l1\"\nmu = 0.1\n[fermion.light.hasenbusch.solver]\nmethod = \"gcr-dd\"");
    let changed = stored
        .replace("mu = 0.1", "mu = 0.2")
        .replace("mu = 0.5", "kappa = 0.1")
        .replace("\"gcr-dd\"", "\"gcr-dd\"\nmax_iterations = 7\ngcr-dd = { n_mr = 4 }\ndelta = 0.2")
        .replacen("[[fermion", "mu = 0.01\nstout = { steps = 2, rho = 0.1 }\n[[fermion", 1);
    let expected = [
        "fermion.light.mu: was 0.0, is 0.01",
        "fermion.light.hasenbusch l1 mu: was 0.1, is 0.2",
        "fermion.light.hasenbusch l1 solver.method: was GcrDd { k_max: 16, n_mr: 8, block: None }, \
         is GcrDd { k_max: 16, n_mr: 4, block: None }",
        "fermion.light.hasenbusch l1 solver.delta: was 0.1, is 0.2",
        "fermion.light.hasenbusch l2 kappa: was 0.13157894736842105, is 0.1",
        "fermion.light.hasenbusch l2 mu: was 0.5, is 0.2",
        "fermion.light.stout.steps: was (absent), is 2",
        "fermion.light.stout.rho: was (absent), is 0.1",
    ];
    assert_eq!(differences(&stored, &changed, false), expected);
    assert_eq!(differences(&stored, &changed, true), [expected[0], expected[6], expected[7]]);

    let stored = one_flavour("");
    let changed = stored.replace("[0.1, 30]", "[0.2, 40]\ncheck_every = 3\nforce_error = 1e-6");
    let expected = [
        "fermion.light.rational.range: was [0.1, 30.0], is [0.2, 40.0]",
        "fermion.light.rational.force_error: was 1e-7, is 1e-6",
        "fermion.light.rational.check_every: was 1, is 3",
    ];
    assert_eq!(differences(&stored, &changed, false), expected);
    assert!(differences(&stored, &changed, true).is_empty());
    let flavours = differences(GOOD, &stored, true);
    assert_eq!(flavours[0], "fermion.light.flavours: was 2, is 1");
}

#[test]
fn measurements_read_the_same_fermions() {
    for tables in [factors("name = \"l1\"\nmu = 0.1\nsolver = { method = \"gcr-dd\" }"), one_flavour("")] {
        let (_, rest) = tables.split_once("[fermion").expect("a fermion");
        let (fermion, _) = rest.split_once("[hmc]").expect("then the dynamics");
        let text = format!("[fermion{fermion}[measure.correlator.pion]\nfermion = \"light\"\n");
        let loaded = input::parse_measure(&text, "m.toml").expect("as in a run");
        assert_eq!(loaded.input.fermions, input(&tables).fermions);
    }
}
