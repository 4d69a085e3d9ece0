//! `hmc replay`: a trajectory from a state is the chain's own, of every action, on any ranks; the way back leads
//! back; MILC's energies; what is no state is refused.

mod domain_wall;

use crate::devices::domain;
use crate::peers::milc_start;
use crate::program::{self, Scratch, parallel};
use crate::reference::data;
use crate::reference::gauge::{Gauge, random_momenta};
use crate::terms::{quark, random_phi, two_flavours};
use hmc::action::{Action, GaugeAction};
use hmc::app::{places, set_state, state_of};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{Schur, WilsonParams};
use hmc::field::{HostLinks, MatrixField};
use hmc::hmc::{Chain, Energies, Level, Scheme};
use hmc::io::{Place, State, read_state, write_state};
use hmc::lattice::{Boundary, Extents, Partition, coordinates};
use hmc::operator::CloverForm;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

const EXTENTS: Extents = [4, 4, 4, 8];

/// The chain of [`chain`].
const TWO_FLAVOURS: &str = r#"
[run]
name = "replay"
seed = 5
trajectories = 1
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.6
[fermion.light]
action = "wilson-clover"
kappa = 0.12
c_sw = 1.0
[fermion.light.solver]
method = "cg"
precision = "double"
link_reals = 18
action_residual = 1e-14
force_residual = 1e-14
[hmc]
tau = 0.5
[[hmc.level]]
integrator = "2mn-position"
steps = 3
terms = ["light"]
[[hmc.level]]
integrator = "2mn-position"
lambda = 0.2
steps = 2
terms = ["gauge"]
"#;

/// Terms of every kind, on levels of 3G1F.
const EVERYTHING: &str = r#"
[run]
name = "replay"
seed = 5
trajectories = 1
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "iwasaki"
beta = 2.0
[fermion.light]
action = "wilson-clover"
kappa = 0.115
c_sw = 1.0
stout = { steps = 1, rho = 0.1 }
[fermion.light.solver]
method = "bicgstab"
precision = "double-single"
guess = 2
action_residual = 1e-12
force_residual = 1e-12
[[fermion.light.hasenbusch]]
name = "heavy"
mu = 0.3
[fermion.light.hasenbusch.solver]
method = "cg"
action_residual = 1e-12
force_residual = 1e-12
[fermion.strange]
action = "wilson-clover"
flavours = 1
kappa = 0.11
c_sw = 1.0
preconditioning = "symmetric"
[fermion.strange.rational]
range = [0.02, 8.0]
copies = 2
action_error = 1e-9
force_error = 1e-7
[fermion.strange.solver]
precision = "double"
action_residual = 1e-12
force_residual = 1e-12
[hmc]
tau = 0.5
[[hmc.level]]
integrator = "3g1f"
steps = 4
terms = ["light", "heavy", "strange"]
[[hmc.level]]
integrator = "3g1f"
terms = ["gauge"]
"#;

fn on_cpu(text: &str) -> String {
    format!("{text}{}", parallel([1; 4], 0, 2))
}

/// The chain of `TWO_FLAVOURS`, from warm links.
fn chain() -> Chain {
    let domain = domain(EXTENTS);
    let links = MatrixField::from_host(&domain, &Gauge::warm(EXTENTS, 0.3, 1).to_host()).unwrap();
    let operator = WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        twisted_mass: 0.0,
        c_sw: 1.0,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Symmetric,
        clover: CloverForm::Linear,
    };
    let light = two_flavours(&domain, quark(operator, Precision::Double), [1e-14; 2]);
    let light: Box<dyn Action> = Box::new(light);
    let gauge: Box<dyn Action> = Box::new(GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0]).unwrap());
    let position = |lambda, steps| Level { scheme: Scheme::Omelyan2Position { lambda }, steps };
    let levels = [position(0.193_183_327_503_783_6, 3), position(0.2, 2)];
    Chain::new(links, &levels, vec![vec![light], vec![gauge]], 0.5, 5).unwrap()
}

fn whole() -> Partition {
    Partition::whole(EXTENTS).unwrap()
}

fn write(scratch: &Scratch, name: &str, state: &State) {
    let partition = Partition::whole(state.links.local).unwrap();
    write_state(&scratch.at(name), state, &partition, &Solo).unwrap();
}

fn read(scratch: &Scratch, name: &str, places: &[Place]) -> State {
    read_state(&scratch.at(name), &whole(), &Solo, places).unwrap()
}

/// `hmc replay --json`, which must succeed.
fn replay(scratch: &Scratch, ranks: usize, arguments: &[&str]) -> Value {
    let ended = scratch.run(ranks, &[&["replay", "--json"], arguments].concat());
    ended.succeeded();
    serde_json::from_str(&ended.out).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What is printed of the energies of `TWO_FLAVOURS`.
fn printed(energies: &Value) -> [u64; 4] {
    [&energies["g"], &energies["h"], &energies["f"]["light"], &energies["f_sum"]].map(|x| number(x).to_bits())
}

/// The same, of a chain.
fn of_chain(energies: &Energies) -> [u64; 4] {
    let term = |wanted| energies.terms.iter().find(|(name, _)| name == wanted).unwrap().1;
    [term("gauge"), energies.momenta, term("light"), term("light")].map(|sum| sum.value().to_bits())
}

fn negated(state: &State) -> State {
    let mut turned = state.clone();
    turned.momenta.reals.iter_mut().for_each(|x| *x = -*x);
    turned
}

/// The greatest difference of two lists.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn a_replay_is_the_trajectory() {
    let scratch = Scratch::new();
    let mut chain = chain();
    let start = chain.links.to_host().unwrap();
    chain.refresh(7).unwrap();
    let drawn = state_of(&mut chain, on_cpu(TWO_FLAVOURS)).unwrap();
    write(&scratch, "state.h5", &drawn);

    // The chain put in the state of the file: the same bits.
    let places = places(&mut chain);
    let stored = read(&scratch, "state.h5", &places);
    assert_eq!(stored, drawn);
    set_state(&mut chain, &stored).unwrap();
    let [before, after] = chain.replay().unwrap();
    let end = state_of(&mut chain, on_cpu(TWO_FLAVOURS)).unwrap();
    let told = replay(&scratch, 0, &["--out", "after.h5", "state.h5"]);
    assert_eq!(printed(&told["before"]), of_chain(&before), "{told}");
    assert_eq!(printed(&told["after"]), of_chain(&after), "{told}");
    let delta_h = (after.total() - before.total()).value();
    assert_eq!(number(&told["delta_h"]).to_bits(), delta_h.to_bits());
    assert_eq!(read(&scratch, "after.h5", &places), end);

    // The trajectory as it is drawn. Its momenta went through no file: components come back from P to rounding of
    // 1e-16, which 10^2 moves amplify by less than 10^3. H at its start is |eta|^2, where the replay solves to 1e-14.
    chain.links.set_host(&start).unwrap();
    let outcome = chain.trajectory(7, true).unwrap();
    let off = distance(&chain.links.to_host().unwrap().reals, &end.links.reals);
    println!("dH {} drawn, {delta_h} replayed; links differ by {off:.1e}", outcome.delta_h);
    assert!(off < 1e-12, "{off:e}");
    assert!((outcome.delta_h - delta_h).abs() < 1e-9);
    assert!(delta_h.abs() > 1e-6);

    // As text.
    let ended = scratch.run(0, &["replay", "state.h5"]);
    ended.succeeded();
    for part in ["state.h5: 4x4x4x8, tau 0.5", "\nf light ", &format!("dH {delta_h:e}")] {
        assert!(ended.out.contains(part), "no '{part}' in {}", ended.out);
    }
}

/// A field of so many reals a site, zero on the sites of the other parity.
fn restricted(mut field: Vec<f64>, site_reals: usize, parity: usize) -> Vec<f64> {
    for (n, site) in field.chunks_exact_mut(site_reals).enumerate() {
        if coordinates(EXTENTS, n).iter().sum::<usize>() % 2 != parity {
            site.fill(0.0);
        }
    }
    field
}

/// Links, momenta and pseudofermions that no heat bath drew, for `EVERYTHING`.
fn any_state() -> State {
    let momenta = Gauge { extents: EXTENTS, links: random_momenta(EXTENTS, 2) };
    let odd = |seed| restricted(random_phi(EXTENTS, seed), 24, 1);
    let place =
        |term: &str, number| Place { term: term.into(), number, parity: 1, slice_reals: 24, slices: 1 };
    State {
        input: on_cpu(EVERYTHING),
        links: Gauge::warm(EXTENTS, 0.3, 1).to_host(),
        momenta: momenta.to_host(),
        pseudofermions: vec![
            (place("light", 0), odd(3)),
            (place("heavy", 0), odd(4)),
            (place("strange", 0), odd(5)),
            (place("strange", 1), odd(6)),
        ],
    }
}

/// Replays `state.h5` on one rank and on two, with mpirun and without, to `one.h5`: the same numbers and the same file.
fn on_any_ranks(scratch: &Scratch, state: &State) -> (Value, Vec<Place>) {
    write(scratch, "state.h5", state);
    let one = replay(scratch, 0, &["--out", "one.h5", "--force", "state.h5"]);
    println!("{one}");
    for ranks in [1, 2] {
        assert_eq!(replay(scratch, ranks, &["--out", "two.h5", "--force", "state.h5"]), one, "{ranks} ranks");
        let files = ["one.h5", "two.h5"].map(|name| std::fs::read(scratch.at(name)).unwrap());
        assert!(files[0] == files[1], "the files of {ranks} ranks and of one differ");
    }
    (one, state.pseudofermions.iter().map(|(place, _)| place.clone()).collect())
}

#[test]
fn a_state_is_overwritten_only_where_that_is_asked_for() {
    let scratch = Scratch::new();
    write(&scratch, "state.h5", &any_state());
    scratch.write("out.h5", "mine");
    for ranks in [0, 2] {
        scratch
            .run(ranks, &["replay", "--out", "out.h5", "state.h5"])
            .failed(2, &["error: out.h5: exists already; --force overwrites it"]);
        assert_eq!(std::fs::read(scratch.at("out.h5")).unwrap(), b"mine");
    }
    scratch.run(0, &["replay", "--force", "state.h5"]).failed(2, &["--out"]);
    scratch.run(0, &["replay", "--out", "out.h5", "--force", "state.h5"]).succeeded();
    assert!(hmc::io::state_input(&scratch.at("out.h5")).unwrap().contains("light"));
}

/// With momenta reversed it goes back to where it came from.
#[test]
fn every_action_on_any_ranks() {
    let scratch = Scratch::new();
    let state = any_state();
    let (one, places) = on_any_ranks(&scratch, &state);
    let terms: Vec<&str> = one["before"]["f"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(terms, ["light", "heavy", "strange"]);
    // Second order: far below what moves between the terms, far above rounding.
    let (delta_h, change) = (number(&one["delta_h"]), number(&one["change"]["f_sum"]));
    assert!(delta_h.abs() < 0.1 * change.abs() && delta_h.abs() > 1e-6, "{one}");

    let after = read(&scratch, "one.h5", &places);
    assert!(distance(&after.links.reals, &state.links.reals) > 0.1);
    write(&scratch, "turned.h5", &negated(&after));
    let back = replay(&scratch, 0, &["--out", "back.h5", "turned.h5"]);
    let end = negated(&read(&scratch, "back.h5", &places));
    let off =
        [distance(&end.links.reals, &state.links.reals), distance(&end.momenta.reals, &state.momenta.reals)];
    println!(
        "there and back: links {:.1e}, momenta {:.1e}, dH {} and {}",
        off[0], off[1], delta_h, back["delta_h"]
    );
    // Rounding of 1e-16 in 10^2 moves, amplified by less than 10^3; guesses from the past are reversible only as far
    // as solves are tight: residuals of 1e-12.
    assert!(off[0] < 1e-10 && off[1] < 1e-9, "{off:?}");
    assert!((number(&back["delta_h"]) + delta_h).abs() < 1e-6);
}

/// The gauge field of MILC's asqtad sample, in our conventions.
const MILC: &str = r#"
[run]
name = "milc"
seed = 1
trajectories = 1
[lattice]
extents = [6, 6, 6, 6]
[gauge]
action = "symanzik-1loop"
beta = 6.5
u0 = 0.862
[hmc]
tau = 0.1
[[hmc.level]]
integrator = "2mn-position"
lambda = 0.2
steps = 10
terms = ["gauge"]
"#;

/// The start of MILC's asqtad sample trajectory: `ACTION: g,h,f` of expected.txt.
#[test]
fn energies_of_milc() {
    let Some(path) = data::find("milc_asqtad_trajectory/momenta.f64") else { return };
    let Some([links, momenta]) = milc_start() else { return };
    let scratch = Scratch::new();
    let state = State { input: on_cpu(MILC), links, momenta, pseudofermions: Vec::new() };
    write(&scratch, "state.h5", &state);
    let told = replay(&scratch, 0, &["state.h5"]);
    println!("{told}");
    let (g, h) = (number(&told["before"]["g"]), number(&told["before"]["h"]));
    // MILC takes 4 from every link; both numbers have 15 digits.
    let links = 4.0 * 6f64.powi(4);
    assert!((h - 4.0 * links - -93.644_556_137_584_5).abs() < 1e-9, "h = {h}");
    assert!((g - 1.677_708_426_322_23e4).abs() < 1e-9, "g = {g}");
    // 10 steps of 0.01 and second order.
    assert!(number(&told["delta_h"]).abs() < 1e-2, "{told}");

    // The same through the tool that other programs' numbers come by.
    let Some(python) = program::python() else { return };
    scratch.write("links.f64", raw(&state.links.reals));
    scratch.write("run.toml", on_cpu(MILC));
    let path = path.canonicalize().unwrap().display().to_string();
    let fields = ["--links", "links.f64", "--momenta-convention", "milc", "--momenta", &path];
    make_state(&scratch, &python, &fields);
    let made = read_state(&scratch.at("made.h5"), &Partition::whole([6; 4]).unwrap(), &Solo, &[]).unwrap();
    assert_eq!((&made.links, &made.input), (&state.links, &state.input));
    // One division by i sqrt(2), done in two ways.
    assert!(distance(&made.momenta.reals, &state.momenta.reals) < 1e-15);
    assert!((number(&replay(&scratch, 1, &["made.h5"])["before"]["g"]) - g).abs() < 1e-9);
}

fn raw(reals: &[f64]) -> Vec<u8> {
    reals.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// `tools/make_state.py` with `run.toml`, to `made.h5`.
fn make_state(scratch: &Scratch, python: &OsString, arguments: &[&str]) {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/make_state.py");
    let mut command = program::command(python);
    command.arg(tool).args(["--input", "run.toml"]).args(arguments).arg("made.h5");
    let output = command.current_dir(scratch.at("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Not a second time unasked.
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("made.h5: exists already"), "{output:?}");
    assert!(command.arg("--force").status().unwrap().success());
}

/// A term of several pseudofermions, colour vectors on even sites, beside a Dirac spinor: written and read, and by
/// the tool the same.
#[test]
fn several_pseudofermions_of_either_kind() {
    let scratch = Scratch::new();
    let vector = |number: usize| {
        let mut field = random_phi(EXTENTS, 7 + number as u64);
        field.truncate(field.len() / 4);
        let place = Place { term: "staggered".into(), number, parity: 0, slice_reals: 6, slices: 1 };
        (place, restricted(field, 6, 0))
    };
    let mut state = any_state();
    state.pseudofermions = vec![vector(0), vector(1), state.pseudofermions.swap_remove(0)];
    let places: Vec<Place> = state.pseudofermions.iter().map(|(place, _)| place.clone()).collect();
    write(&scratch, "state.h5", &state);
    assert_eq!(read(&scratch, "state.h5", &places), state);

    let Some(python) = program::python() else { return };
    scratch.write("links", raw(&state.links.reals));
    scratch.write("momenta", raw(&state.momenta.reals));
    ["a", "b", "c"].iter().zip(&state.pseudofermions).for_each(|(name, (_, reals))| {
        scratch.write(name, raw(reals));
    });
    scratch.write("run.toml", &state.input);
    let mut arguments = vec!["--links", "links", "--momenta", "momenta"];
    for one in ["staggered=a", "light=c", "staggered=b"] {
        arguments.extend(["--pseudofermion", one]);
    }
    make_state(&scratch, &python, &arguments);
    assert_eq!(read(&scratch, "made.h5", &places), state);
}

/// The state of `hmc replay` with one thing wrong in it.
fn spoilt(spoil: impl FnOnce(&mut State)) -> State {
    let mut state = any_state();
    spoil(&mut state);
    state
}

#[test]
fn what_cannot_be_is_not_written() {
    let scratch = Scratch::new();
    type Spoil = fn(&mut State);
    let cases: [(Spoil, &str); 7] = [
        (
            |s| s.links.reals[72 * 5 + 18] += 1e-5,
            "/gauge/U at site [1, 1, 0, 0] (x, y, z, t), direction 1: not in SU(3)",
        ),
        (
            |s| s.links.reals[3] = f64::NAN,
            "/gauge/U at site [0, 0, 0, 0] (x, y, z, t), direction 0: not in SU(3)",
        ),
        (|s| s.links.reals[..18].iter_mut().for_each(|x| *x = -*x), "not in SU(3) to 1e-6"),
        (
            |s| s.momenta.reals[2] += 1e-9,
            "/momenta/P at site [0, 0, 0, 0] (x, y, z, t), direction 0: not hermitian and traceless to 1e-10",
        ),
        (|s| s.momenta.reals[16] += 1e-9, "not hermitian and traceless"),
        (
            |s| s.pseudofermions[1].1[0] = 1.0,
            "/pseudofermion/heavy/0 at site [0, 0, 0, 0] (x, y, z, t): not zero, but it lives on odd sites",
        ),
        (
            |s| s.pseudofermions[2].1[24] = f64::INFINITY,
            "/pseudofermion/strange/0 at site [1, 0, 0, 0] (x, y, z, t): not finite",
        ),
    ];
    for (spoil, expected) in cases {
        let error =
            write_state(&scratch.at("bad.h5"), &spoilt(spoil), &whole(), &Solo).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
        assert!(!scratch.at("bad.h5").exists() && !scratch.at("bad.h5.tmp").exists());
    }
}

/// Changes a file of a good state, and what `hmc replay` says then.
#[test]
fn what_is_no_state_is_refused() {
    let scratch = Scratch::new();
    let unlink = |name: &'static str| move |file: &hdf5::File| file.unlink(name).unwrap();
    let text = |name: &'static str, value: &str| {
        let value = value.to_owned();
        move |file: &hdf5::File| {
            let value: hdf5::types::VarLenUnicode = value.parse().unwrap();
            file.attr(name).unwrap().write_scalar(&value).unwrap();
        }
    };
    type Change = Box<dyn Fn(&hdf5::File)>;
    let cases: Vec<(Change, i32, &[&str])> = vec![
        (Box::new(|_| ()), 0, &[]),
        (Box::new(text("kind", "picture")), 1, &["state.h5: kind is 'picture', but 'hmc state' is expected"]),
        (
            Box::new(|file| file.attr("version").unwrap().write_scalar(&2u64).unwrap()),
            1,
            &["a state of version 2, this program reads 1"],
        ),
        (Box::new(unlink("gauge/U")), 1, &["state.h5: there is no /gauge/U"]),
        (Box::new(unlink("momenta")), 1, &["state.h5: there is no /momenta/P"]),
        (Box::new(unlink("pseudofermion/heavy/0")), 1, &["state.h5: there is no /pseudofermion/heavy/0"]),
        (Box::new(unlink("pseudofermion")), 1, &["state.h5: there is no /pseudofermion/light/0"]),
        (
            Box::new(|file| drop(file.create_group("pseudofermion/charm").unwrap())),
            1,
            &["/pseudofermion/charm: the input has no term 'charm' with pseudofermions"],
        ),
        (
            Box::new(|file| drop(file.create_group("pseudofermion/light/1").unwrap())),
            1,
            &["/pseudofermion/light/1: the term has 1 pseudofermions, numbered from 0"],
        ),
        (
            Box::new(|file| {
                file.unlink("pseudofermion/light/0").unwrap();
                file.new_dataset::<f64>().shape((8, 4, 4, 4, 3)).create("pseudofermion/light/0").unwrap();
            }),
            1,
            &["/pseudofermion/light/0 has shape [8, 4, 4, 4, 3], but [8, 4, 4, 4, 4, 3] is expected"],
        ),
        (
            Box::new(|file| {
                file.unlink("momenta/P").unwrap();
                file.new_dataset::<f64>().shape((8, 4, 4, 4, 4, 3, 3)).create("momenta/P").unwrap();
            }),
            1,
            &["/momenta/P does not hold pairs r, i of doubles"],
        ),
        (Box::new(text("input", "[run]\nseed = 1\n")), 2, &["state.h5 (input):1:1: missing 'name' in [run]"]),
        // A choice that is nowhere named.
        (
            Box::new(text(
                "input",
                &EVERYTHING
                    .replace("method = \"bicgstab\"\nprecision = \"double-single\"", "method = \"auto\""),
            )),
            2,
            &["state.h5: the method of term 'light' is \"auto\"", "name it in the state's input"],
        ),
        (Box::new(text("input", TWO_FLAVOURS)), 1, &["/pseudofermion/heavy: the input has no term 'heavy'"]),
    ];
    for (change, code, told) in cases {
        write(&scratch, "state.h5", &any_state());
        let file = hdf5::File::open_rw(scratch.at("state.h5")).unwrap();
        change(&file);
        file.close().unwrap();
        let ended = scratch.run(0, &["replay", "state.h5"]);
        if code == 0 {
            ended.succeeded();
        } else {
            ended.failed(code, told);
        }
    }
    // On two ranks one message, too.
    scratch
        .run(2, &["replay", "state.h5"])
        .failed(1, &["/pseudofermion/heavy: the input has no term 'heavy'"]);
    let other = State { input: on_cpu(TWO_FLAVOURS).replace("[4, 4, 4, 8]", "[4, 4, 4, 4]"), ..any_state() };
    write(
        &scratch,
        "other.h5",
        &State { pseudofermions: vec![any_state().pseudofermions.swap_remove(0)], ..other },
    );
    let shape = "/gauge/U has shape [8, 4, 4, 4, 4, 3, 3], but [4, 4, 4, 4, 4, 3, 3] is expected";
    scratch.run(0, &["replay", "other.h5"]).failed(1, &[shape]);
    scratch.write("text.h5", "no HDF5");
    scratch.run(0, &["replay", "text.h5"]).failed(1, &["text.h5: no state of hmc replay: not an HDF5 file"]);
    scratch.run(0, &["replay", "missing.h5"]).failed(1, &["error: missing.h5: cannot open: No such file"]);
    let unit = HostLinks::unit([4; 4]);
    let meta = hmc::io::Meta { plaquette: 1.0, ..Default::default() };
    let partition = Partition::whole([4; 4]).unwrap();
    hmc::io::write_links(&scratch.at("cfg.h5"), hmc::io::Format::Hdf5, &unit, &partition, &Solo, &meta)
        .unwrap();
    let no_state = "cfg.h5: no state of hmc replay: there is no attribute kind";
    scratch.run(0, &["replay", "cfg.h5"]).failed(1, &[no_state]);
}
