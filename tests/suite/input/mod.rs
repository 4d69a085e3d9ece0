//! The input: shipped files are right, mistakes are told all at once and in their places, and a
//! continued run keeps its physics.

mod auto;
mod domain_wall;
mod doublets;
mod doubts;
mod files;
mod measure;
mod quarks;
pub mod reference;
mod staggered;

use hmc::config::{Change, InputError};
use hmc::device::Precision;
use hmc::family::WilsonFermion;
use hmc::hmc::Scheme;
use hmc::input::{self, Fermion, compare};
use hmc::measure::{Correlator, Loops, Source};
use hmc::solver::Method;
use std::path::Path;

/// What this thread has computed for; other work of the machine is not in it.
fn seconds_of_this_thread() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes `time`.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

fn input(text: &str) -> input::Input {
    input::parse(text, "run.toml", 1).unwrap_or_else(|error| panic!("{error}")).input
}

/// Wilson quarks, as which the first fermion of `text` is read.
fn wilson(input: input::Input) -> WilsonFermion {
    match input.fermions.into_iter().next() {
        Some(Fermion::Wilson(fermion)) => fermion,
        other => panic!("no Wilson quarks but {other:?}"),
    }
}

fn lines(error: &InputError) -> Vec<String> {
    error.to_string().lines().map(str::to_owned).collect()
}

fn mistakes(text: &str, ranks: usize) -> Vec<String> {
    lines(&input::parse(text, "run.toml", ranks).expect_err("the input has mistakes"))
}

const GOOD: &str = r#"[run]
name = "test"
seed = 1
trajectories = 20
[lattice]
extents = [8, 8, 8, 16]
[gauge]
action = "wilson"
beta = 5.6
[fermion.light]
action = "wilson-clover"
mass = -0.2
c_sw = 1.0
[hmc]
tau = 1
[[hmc.level]]
integrator = "2mn"
steps = 8
terms = ["light"]
[[hmc.level]]
integrator = "omf4"
steps = 2
terms = ["gauge"]
[measure.correlator.pion]
fermion = "light"
"#;

/// `GOOD` with `old` replaced.
fn with(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    GOOD.replacen(old, new, 1)
}

#[test]
fn shipped_inputs_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("inputs/ is there") {
        let path = entry.expect("inputs/ can be listed").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let loaded = input::load(&path, 1).unwrap_or_else(|error| panic!("{error}"));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(loaded.input.run.name.as_str()));
        files += 1;
    }
    assert!(files >= 12);
}

#[test]
fn defaults_and_masses() {
    let input = input(GOOD);
    let light = wilson(input.clone());
    assert!((light.operator.kappa - 0.5 / 3.8).abs() < 1e-16);
    assert_eq!(light.operator.boundary.theta().map(f64::to_bits), [0.0f64, 0.0, 0.0, 1.0].map(f64::to_bits));
    assert_eq!(light.solver.settings.max_iterations, 10_000);
    assert_eq!(input.hmc.levels[0].scheme, Scheme::Omelyan2 { lambda: 0.193_183_327_503_783_6 });
    assert_eq!(input.measure.of_kind::<Correlator>()[0].source, Source::Point([0; 4]));
    assert_eq!(input.measure.every, 1);
    assert!(input.measure.of_kind::<Loops>().is_empty());
}

#[test]
fn gauge_actions_with_numbers_of_their_own() {
    let of = |action: &str| input(&with("\"wilson\"", action)).gauge.coefficients;
    assert_eq!(of("\"rectangle\"\nc1 = -0.25"), [3.0, -0.25, 0.0]);
    assert_eq!(of("\"symanzik-tadpole\"\nu0 = 0.5"), [1.0, -0.2, 0.0]);
}

#[test]
fn all_mistakes_are_told_in_their_places() {
    let text = r#"[run]
name = "a/b"
sead = 1
trajectories = 20
thermalisation = 30
start = "hott"
wall_time = "soon"
[lattice]
extents = [8, 7, 8, 16]
[gauge]
action = "wilsn"
betta = 5.6
u0 = "x"
[fermion.light]
action = "wilson-clover"
kappa = 0.13
mass = -0.2
c_sw = -1
boundary = ["periodic", "periodic", "periodic", "anti"]
[fermion.light.solver]
precision = "half"
link_reals = 13
action_residual = 1e-16
force_residual = nan
[fermion.strange]
action = "wilson"
kappa = "0.13"
c_sw = 1.0
[hmc]
tau = 0
[[hmc.level]]
integrator = "omf4"
lambda = 0.2
steps = 1.5
terms = ["lihgt", "gauge"]
[[hmc.level]]
integrator = "2mn"
steps = 1
terms = ["gauge"]
[measure]
[measure.flow]
step = 0.03
t_max = 1.0
[measure.correlator.pion]
fermion = "ligt"
source = [0, 0, 0]
[parallel]
lanes = 2
threads = "many"
[outputs]
"#;
    let expected = [
        r#"2:8: name: expected a name of letters, digits, '.', '_' and '-', 200 at most, found the string "a/b""#,
        "3:1: unknown key 'sead' in [run]; did you mean 'seed'?",
        "5:18: thermalisation: 30 exceeds the 20 trajectories of the chain",
        r#"6:9: start: expected "hot", "cold" or a path with a '/' or '.' in it, found the string "hott""#,
        r#"7:13: wall_time: expected a time like "11h30m", "90m" or "3600s", found the string "soon""#,
        "9:15: extents: expected an even extent, found 7",
        r#"11:10: action: unknown "wilsn"; did you mean 'wilson'?"#,
        "12:1: unknown key 'betta' in [gauge]; did you mean 'beta'?",
        r#"13:6: u0: expected a tadpole factor above 0, 1 at most, found the string "x""#,
        "17:8: mass: kappa is given too; keep one of them",
        "18:8: c_sw: expected a number, 0 at least, found the integer -1",
        r#"19:49: boundary: unknown "anti"; did you mean 'antiperiodic'?"#,
        r#"21:13: precision: unknown "half"; expected 'double-single', 'double' or 'double-half'"#,
        "22:14: link_reals: expected 18, 12 or 8 reals per link, found 13",
        "23:19: action_residual: expected a residual from 1e-15 to 0.1, found the number 1e-16",
        "24:18: force_residual: expected a residual from 1e-15 to 0.1, found the number nan",
        "25:1: the term 'strange' is on no level: name it in the terms of one [[hmc.level]]",
        r#"27:9: kappa: expected a positive number, found the string "0.13""#,
        r#"28:8: c_sw: the action "wilson" has none; did you mean "wilson-clover"?"#,
        "30:7: tau: expected a positive number, found the integer 0",
        r#"33:10: lambda: only the integrators "2mn" and "2mn-position" have it"#,
        "34:9: steps: expected an integer from 1 to 1000000, found the number 1.5",
        "35:10: terms: unknown term 'lihgt'; did you mean 'light'?",
        "39:10: terms: 'gauge' is on level 1 already",
        "43:9: t_max: 1 is not a whole number of steps of 0.03",
        "45:11: fermion: unknown fermion 'ligt'; did you mean 'light'?",
        "46:10: source: expected 4 coordinates [x, y, z, t], found an array of 3",
        "48:9: lanes: expected 1, 4, 8 or 16 lanes, found 2",
        r#"49:11: threads: expected "auto" or a number, found the string "many""#,
        "50:2: unknown table 'outputs' in the file; expected 'run', 'lattice', 'parallel', 'gauge', 'fermion', 'hmc' or 'measure'",
    ];
    let found = mistakes(text, 1);
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(*found, format!("run.toml:{expected}"));
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn one_mistake_is_one_message() {
    let cases = [
        (with("beta = 5.6\n", ""), "7:1: missing 'beta' in [gauge]"),
        (with("mass = -0.2\n", ""), "10:1: [fermion.light] needs 'kappa' or 'mass'"),
        (with("c_sw = 1.0\n", ""), "10:1: missing 'c_sw' in [fermion.light]"),
        (with("[gauge]", "[gague]"), "7:2: unknown table 'gague' in the file; did you mean 'gauge'?"),
        (with("[lattice]\nextents = [8, 8, 8, 16]\n", ""), "1:1: missing 'lattice' in the file"),
        (with("beta = 5.6", "beta = 1e999"), "9:8: beta: expected a positive number, found the number 1e999"),
        (with("5.6", "5.6\nu0 = 0.9"), "10:6: u0: this action has no such key"),
        (with("\"wilson\"", "\"symanzik-1loop\""), "7:1: missing 'u0' in [gauge]"),
        (with("\"wilson\"", "\"symanzik-tadpole\""), "7:1: missing 'u0' in [gauge]"),
        (with("\"wilson\"", "\"rectangle\""), "7:1: missing 'c1' in [gauge]"),
        (with("[\"gauge\"]", "[\"gauge\", \"gauge\"]"), "23:19: terms: 'gauge' is on this level already"),
        (
            with("[measure", "[[hmc.level]]\nintegrator = \"omf4\"\nsteps = 1\nterms = []\n[measure"),
            "27:9: terms: a level needs at least one",
        ),
        (
            with("[measure", "[[hmc.level]]\nintegrator = \"omf4\"\nsteps = 1\n[measure"),
            "24:1: missing 'terms' in [hmc.level]",
        ),
        (
            with("fermion = \"light\"", "fermion = \"light\"\nsource = [0, 0, 8, 0]"),
            "26:10: source: [0, 0, 8, 0] is outside the lattice of 8x8x8x16",
        ),
        (
            with("seed = 1", "seed = 9223372036854775808"),
            "3:8: seed: expected an integer, 0 at least, found the integer 9223372036854775808",
        ),
        (
            with("seed = 1", "seed = 1\nstream = \"a.1\""),
            "4:10: stream: expected a name of letters, digits, '_' and '-', found the string \"a.1\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(mistakes(&text, 1), [format!("run.toml:{expected}")]);
    }
}

/// `GOOD` with "3g1f" on both levels.
fn three_to_one() -> String {
    let text = with("integrator = \"2mn\"", "integrator = \"3g1f\"");
    text.replace("integrator = \"omf4\"\nsteps = 2\n", "integrator = \"3g1f\"\n")
}

#[test]
fn integrators_that_drift_first() {
    let good = input(&three_to_one());
    let levels: Vec<_> = good.hmc.levels.iter().map(|level| (level.scheme, level.steps)).collect();
    assert_eq!(levels, [(Scheme::ThreeToOne, 8), (Scheme::ThreeToOne, 3)]);
    let position = input(&with("integrator = \"2mn\"", "integrator = \"2mn-position\"\nlambda = 0.2"));
    assert_eq!(position.hmc.levels[0].scheme, Scheme::Omelyan2Position { lambda: 0.2 });
    // Around the two levels there may be others.
    let outer = "[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 2\nterms = [\"heavy\"]\n[[hmc.level]]\n";
    let heavy = "[fermion.heavy]\naction = \"wilson\"\nkappa = 0.1\n[hmc]";
    let three = three_to_one().replacen("[[hmc.level]]\n", outer, 1).replace("[hmc]", heavy);
    assert_eq!(input(&three).hmc.levels.len(), 3);
}

#[test]
fn three_to_one_is_of_two_levels() {
    let none_inside = "17:14: integrator: \"3g1f\" is for the two innermost levels: the quarks, and inside them the \
                       gauge field; 0 levels are inside this one";
    let (base, inner) = (three_to_one(), "integrator = \"3g1f\"\nterms = [\"gauge\"]");
    let one_level = base.replace("[[hmc.level]]\nintegrator = \"3g1f\"\nterms = [\"gauge\"]\n", "");
    let third = "terms = [\"light\"]\n[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 1\nterms = [\"heavy\"]";
    let heavy = "[fermion.heavy]\naction = \"wilson\"\nkappa = 0.1\n[hmc]";
    let cases = [
        (base.replacen("3g1f", "3g1g", 1), vec!["17:14: integrator: unknown \"3g1g\"; did you mean '3g1f'?"]),
        (one_level.replace("[\"light\"]", "[\"light\", \"gauge\"]"), vec![none_inside]),
        (
            base.replace(inner, "integrator = \"3g1f\"\nsteps = 3\nterms = [\"gauge\"]"),
            vec!["22:9: steps: the inner level of \"3g1f\" always has 3; leave it out"],
        ),
        (
            base.replace(inner, "integrator = \"omf4\"\nterms = [\"gauge\"]"),
            vec!["21:14: integrator: expected \"3g1f\", as on the level outside"],
        ),
        (base.replace("steps = 8\n", ""), vec!["16:1: missing 'steps' in [hmc.level]"]),
        (
            base.replace("steps = 8", "steps = 8\nlambda = 0.2"),
            vec!["19:10: lambda: only the integrators \"2mn\" and \"2mn-position\" have it"],
        ),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|line| format!("run.toml:{line}")).collect();
        assert_eq!(mistakes(&text, 1), expected);
    }
    let three = base.replace("terms = [\"light\"]", third).replace("[hmc]", heavy);
    let found = mistakes(&three, 1);
    assert!(found[0].ends_with("2 levels are inside this one"), "{found:?}");
}

/// A refusal always says why, whatever line is lost or cut short.
#[test]
fn no_refusal_is_silent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
    let shipped = ["clover-nf2p1-32c64", "asqtad-2p1", "dwf-2p1-16c32"]
        .map(|name| std::fs::read_to_string(folder.join(name).with_extension("toml")).expect("it is there"));
    for text in [GOOD, &shipped[0], &shipped[1], &shipped[2]] {
        let lines: Vec<&str> = text.lines().collect();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.is_ascii()) {
            let key = line.split_once(' ').map_or("", |(key, _)| key);
            for new in ["", "x = 1", key, &line[..line.len().saturating_sub(1)]] {
                let mut changed = lines.clone();
                changed[place] = new;
                if let Err(error) = input::parse(&changed.join("\n"), "run.toml", 1) {
                    assert!(error.to_string().starts_with("run.toml:"), "{new:?} for {line:?}");
                }
            }
        }
    }
}

#[test]
fn broken_toml_is_told_with_its_place() {
    let found = mistakes("[run]\nname = \"x\nseed = 1\nseed = 2\n", 1);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("run.toml:2:10: not valid TOML: "), "{found:?}");
    assert_eq!(
        found[1],
        "run.toml:4:1: not valid TOML: the key 'seed' is there already, in line 3: keep one of both"
    );
}

#[test]
fn partitions_must_fit() {
    let grid = with("[gauge]", "[parallel]\ngrid = [1, 1, 1, 3]\n[gauge]");
    let uneven = "run.toml:8:8: grid: extent 16 in direction t cannot be cut into 3 parts of even extent";
    assert_eq!(mistakes(&grid, 3), [uneven]);
    assert_eq!(mistakes(&grid, 2), ["run.toml:8:8: grid: the grid 1x1x1x3 holds 3 ranks, but 2 run"]);
    let none = "run.toml:6:11: extents: a lattice of 8x8x8x16 cannot be cut evenly over 5 ranks";
    assert_eq!(mistakes(GOOD, 5), [none]);
    let lanes = with("8, 8, 8, 16]", "2, 2, 2, 4]\n[parallel]\nlanes = 16");
    assert_eq!(
        mistakes(&lanes, 1),
        ["run.toml:8:9: lanes: a rank's box of 2x2x2x4 is too small for 16 lanes"]
    );
    assert_eq!(input::parse(GOOD, "run.toml", 4).map(|loaded| loaded.input.parallel.grid).ok(), Some(None));
}

#[test]
fn loose_forces_with_guesses_warn() {
    let text = with("[hmc]", "[fermion.light.solver]\nguess = 3\nforce_residual = 1e-7\n[hmc]");
    let warnings = input::parse(&text, "run.toml", 1).expect("only a warning").warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("run.toml:15:9: guess: "), "{warnings:?}");
}

#[test]
fn measure_inputs_need_no_run() {
    let text = "[fermion.light]\naction = \"wilson\"\nkappa = 0.13\n[measure.loops]\n\
                [measure.correlator.pion]\nfermion = \"light\"\nsource = [99, 0, 0, 0]\n";
    let loaded = input::parse_measure(text, "m.toml").expect("right");
    assert_eq!(loaded.input.measure.of_kind::<Loops>().len(), 1);
    assert!(
        matches!(&loaded.input.fermions[0], Fermion::Wilson(light) if light.operator.c_sw.to_bits() == 0)
    );
    let error = input::parse_measure("[runs]\nseed = 1\n", "m.toml").expect_err("has something else");
    let expected = [
        "m.toml:1:1: missing 'measure' in the file",
        "m.toml:1:2: unknown table 'runs' in the file; expected 'parallel', 'fermion' or 'measure'",
    ];
    assert_eq!(lines(&error), expected);
}

/// Whatever the ranks that it is for; random sources are those of the run.
#[test]
fn measure_inputs_may_be_those_of_a_run() {
    let text = with("seed = 1", "seed = 42").replace("[hmc]", "[parallel]\ngrid = [1, 1, 1, 8]\n[hmc]");
    let measured = input::parse_measure(&text, "m.toml").expect("right").input;
    let run = input::parse_stored(&text, "m.toml").expect("right").input;
    assert_eq!((measured.seed, measured.parallel), (42, run.parallel));
    assert_eq!((measured.fermions, measured.measure), (run.fermions, run.measure));
    let error = input::parse_measure(&with("beta", "betta"), "m.toml").expect_err("a mistake");
    assert_eq!(lines(&error), ["m.toml:9:1: unknown key 'betta' in [gauge]; did you mean 'beta'?"]);
    let error = input::parse_measure("[run]\nname = \"x\"\nseed = 1\n", "m.toml").expect_err("half a run");
    assert!(lines(&error).contains(&"m.toml:1:1: missing 'gauge' in the file".to_owned()), "{error}");
}

/// What docs/performance.md measured as the fastest, with the same bits on any grid.
#[test]
fn the_production_input_takes_the_fastest_solvers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/clover-nf2p1-32c64.toml");
    let fermions = input::load(&path, 1).expect("right").input.fermions;
    let [Fermion::Wilson(light), Fermion::Wilson(strange)] = &fermions[..] else { panic!("{fermions:?}") };
    assert_eq!(light.solver.settings.method, Method::BICGSTAB);
    assert_eq!(light.solver.settings.precisions, [Precision::Double, Precision::Half, Precision::Half]);
    assert_eq!(light.hasenbusch[0].solver, light.solver);
    assert_eq!(strange.solver.settings.precisions, [Precision::Double, Precision::Double, Precision::Half]);
}

#[test]
fn an_unreadable_file_is_named() {
    let error = input::load(Path::new("no/such.toml"), 1).expect_err("there is none");
    assert!(error.to_string().starts_with("no/such.toml: "));
}

/// The differences between two inputs as they are told; `fixed`: only those that a chain refuses.
fn differences(stored: &str, new: &str, fixed: bool) -> Vec<String> {
    let all = compare(&input(stored), &input(new)).into_iter();
    all.filter(|one| !fixed || one.change == Change::Fixed).map(|one| one.to_string()).collect()
}

#[test]
fn comparison_names_what_matters_to_a_chain() {
    assert!(differences(GOOD, GOOD, false).is_empty());
    let machine = with("trajectories = 20", "trajectories = 50\nwall_time = \"1h\"\nsave_every = 5")
        .replace("[hmc]", "[fermion.light.solver]\nmax_iterations = 5\n[parallel]\nthreads = 2\n[hmc]")
        .replace("[measure.correlator.pion]\nfermion = \"light\"\n", "[measure.loops]\n");
    assert!(differences(GOOD, &machine, false).is_empty());

    let physics = with("seed = 1", "seed = 2")
        .replace("beta = 5.6", "beta = 5.7")
        .replace("[hmc]", "[fermion.light.solver]\nguess = 2\n[hmc]")
        .replace("[\"light\"]", "[\"light\", \"gauge\"]")
        .replace("[[hmc.level]]\nintegrator = \"omf4\"\nsteps = 2\nterms = [\"gauge\"]\n", "");
    let expected = [
        "run.seed: was 1, is 2",
        "gauge.beta: was 5.6, is 5.7",
        "fermion.light.solver.guess: was 0, is 2",
        "hmc.level 0 terms: was [\"light\"], is [\"light\", \"gauge\"]",
        "hmc.level 1 integrator: was \"omf4\", is (absent)",
        "hmc.level 1 steps: was 2, is (absent)",
        "hmc.level 1 terms: was [\"gauge\"], is (absent)",
    ];
    assert_eq!(differences(GOOD, &physics, false), expected);
    assert_eq!(differences(GOOD, &physics, true), expected[..2]);
}
