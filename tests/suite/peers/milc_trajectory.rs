//! MILC's asqtad trajectory (`su3_omelyan_rhmc`, double, residuals 1e-12) replayed: smeared links, D, forces, actions
//! before and after, the links at its end; with its own rational functions, and with ours.

use crate::compare::{distance, relative};
use crate::devices::domain;
use crate::program::{Scratch, parallel};
use crate::reference::data;
use crate::reference::staggered::{reals, sincos};
use hmc::action::{Action, GaugeAction, TermHeader};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{
    Rooted, RootedParams, RootedPseudofermion, RootedSolver, Smearing, Staggered, StaggeredLinks,
};
use hmc::field::{AlgebraField, Domain, EVEN, HostLinks, MatrixField, ODD, Spinor};
use hmc::io::{Place, State, read_state, write_state};
use hmc::lattice::{Boundary, Extents, Partition};
use hmc::math::milc_rationals;
use serde_json::Value;
use std::f64::consts::SQRT_2;
use std::path::PathBuf;
use std::sync::Arc;

const EXTENTS: Extents = [6; 4];
const BOUNDARY: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

/// 12 evaluations of the force at steps of 0.01, two to one step of lambda 0.2; MILC's unit of time is sqrt(2) of ours.
fn input(rational: &str) -> String {
    let tau = 0.12 * SQRT_2;
    let text = format!(
        r#"
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
[fermion.ks]
action = "asqtad"
u0 = 0.862
[fermion.ks.solver]
precision = "double"
long_link_reals = 18
heat_bath_residual = 1e-13
action_residual = 1e-13
force_residual = 1e-13
[[fermion.ks.pseudofermion]]
factors = [{{ mass = 0.01, power = [2, 4] }}, {{ mass = 0.05, power = [1, 4] }}]
[fermion.ks.pseudofermion.rational]
{rational}
[hmc]
tau = {tau:?}
[[hmc.level]]
integrator = "2mn-position"
lambda = 0.2
steps = 6
terms = ["gauge", "ks"]
"#
    );
    text + &parallel([1; 4], 0, 2)
}

/// The file of a reference, which the program reads itself.
fn file(name: &str) -> Option<PathBuf> {
    data::find(name).map(|path| path.canonicalize().unwrap())
}

struct Milc {
    links: HostLinks,
    momenta: HostLinks,
    phi: Vec<f64>,
}

fn milc() -> Option<Milc> {
    let ([links, momenta], phi) = (super::milc_start()?, data::find("milc_asqtad_trajectory/phi0.f64")?);
    Some(Milc { links, momenta, phi: data::doubles(&phi) })
}

fn close(name: &str, ours: &[f64], peer: &[f64], tolerance: f64) {
    let off = distance(ours, peer);
    println!("{name}: {off:.1e}");
    assert!(off <= tolerance, "{name}: {off:e}");
}

fn rooted(domain: &Arc<Domain>) -> Option<Rooted> {
    let text = std::fs::read_to_string(file("milc_rationals/rationals.sample.su3_omelyan_rhmc")?).unwrap();
    let functions = &milc_rationals(&text).unwrap()[0];
    let range = [1e-15, 90.0];
    let params = RootedParams {
        header: TermHeader { name: "ks".into(), number: 0, action_residual: 1e-13, force_residual: 1e-13 },
        smearing: Smearing::Asqtad { u0: 0.862 },
        boundary: Boundary::phases(BOUNDARY),
        solver: RootedSolver {
            precisions: [Precision::Double; 2],
            delta: 1e-3,
            multi_shift: true,
            long_reals: 18,
            heat_bath_residual: 1e-13,
            max_iterations: 5000,
        },
        pseudofermions: vec![RootedPseudofermion {
            naik_epsilon: 0.0,
            heat_bath: functions.heat_bath.measured(range).unwrap(),
            action: functions.action.measured(range).unwrap(),
            force: functions.md.measured(range).unwrap(),
            check_every: 1,
            inner: None,
        }],
    };
    Some(Rooted::new(domain, params).unwrap())
}

/// Fat links, D on a vector, |N|^2.
#[test]
fn links_and_operator() {
    let Some(milc) = milc() else { return };
    let domain = domain(EXTENTS);
    let links = MatrixField::from_host(&domain, &milc.links).unwrap();
    let mut smeared = StaggeredLinks::new(&domain, Smearing::Asqtad { u0: 0.862 }).unwrap();
    smeared.update(&links).unwrap();
    let mut fat = MatrixField::new(&domain, 4).unwrap();
    smeared.fat(0.0, &mut fat).unwrap();
    let peer = data::doubles(&data::find("milc_asqtad_trajectory/fatlinks_naik0.f64").unwrap());
    close("fat links", &fat.to_host().unwrap().reals, &peer, 1e-14);
    let long = smeared.long().to_host().unwrap().reals;
    let square = |mu: usize| -> f64 {
        let all = long.chunks_exact(72).flat_map(|site| &site[18 * mu..18 * (mu + 1)]);
        smeared.naik(0.0).powi(2) * all.map(|x| x * x).sum::<f64>()
    };
    relative("|N_x|^2", square(0), 1.222_572_744_333_895e1, 1e-14);
    let (mut d, x) = (
        Staggered::new(&domain, Precision::Double, 18, 1, Boundary::phases(BOUNDARY)).unwrap(),
        reals(&sincos(EXTENTS)),
    );
    d.update(&fat, smeared.long(), smeared.naik(0.0)).unwrap();
    let mut found = vec![0.0; x.len()];
    for parity in [EVEN, ODD] {
        let mut input = Spinor::colour(&domain, Precision::Double).unwrap();
        let mut out = Spinor::colour(&domain, Precision::Double).unwrap();
        input.read_host(1 - parity, &x).unwrap();
        d.hop(&mut out, &input, parity, 1.0, None).unwrap();
        out.write_host(parity, &mut found).unwrap();
    }
    let peer = data::doubles(&data::find("milc_asqtad_trajectory/dslash_sincos_naik0.f64").unwrap());
    close("D chi", &found, &peer, 1e-14);
}

/// dP/dt of MILC is -2 i F.
#[test]
fn forces() {
    let domain = domain(EXTENTS);
    let (Some(milc), Some(mut rooted)) = (milc(), rooted(&domain)) else { return };
    let links = MatrixField::from_host(&domain, &milc.links).unwrap();
    rooted.pseudofermions()[0].field.read_host(EVEN, &milc.phi).unwrap();
    let (u0, n) = (0.862f64, 0.862f64.ln());
    let coefficients = [1.0, -(1.0 - 0.6264 * n) / (20.0 * u0 * u0), 0.04335 * n / (u0 * u0)];
    let mut gauge = GaugeAction::new(&domain, 6.5, coefficients).unwrap();
    let of = |term: &mut dyn Action| -> Vec<f64> {
        let mut force = AlgebraField::new(&domain).unwrap();
        term.add_force(&links, &mut force).unwrap();
        let matrices = force.to_matrices().unwrap().reals;
        matrices.chunks_exact(2).flat_map(|z| [2.0 * z[1], -2.0 * z[0]]).collect()
    };
    let peer = |name: &str| data::doubles(&data::find(&format!("milc_asqtad_trajectory/{name}")).unwrap());
    close("gauge force", &of(&mut gauge), &peer("gauge_force_dmom_dt.f64"), 1e-13);
    close("fermion force", &of(&mut rooted), &peer("fermion_force_dmom_dt.f64"), 1e-10);
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// g, h, f before and after, and the links at the end: `ACTION` of expected.txt, h less 4 a link.
#[test]
fn the_whole_trajectory() {
    let Some(milc) = milc() else { return };
    let Some(functions) = file("milc_rationals/rationals.sample.su3_omelyan_rhmc") else { return };
    let peer = data::doubles(&data::find("milc_asqtad_trajectory/final_links.f64").unwrap());
    // MILC takes 4 from every link.
    let constant = 16.0 * 6f64.powi(4);
    let place = Place { term: "ks".into(), number: 0, parity: EVEN, slice_reals: 6, slices: 1 };
    let partition = Partition::whole(EXTENTS).unwrap();
    // Their functions: tolerances of solves to 1e-12. Ours: their error, 4.7e-5 of the force's function and 2e-6 of the
    // action's (their own comments), moves the force by as much.
    let made = "lambda_max = 90\naction_error = 1e-12\nheat_bath_error = 1e-12\nforce_error = 1e-10";
    let theirs = format!("file = {:?}", functions.display().to_string());
    for (rational, before, after, links, dh) in
        [(theirs.as_str(), 1e-10, 1e-10, 1e-10, 1e-8), (made, 1e-5, 1e-5, 1e-4, 2e-2)]
    {
        let scratch = Scratch::new();
        let pseudofermions = vec![(place.clone(), milc.phi.clone())];
        let (own, momenta) = (milc.links.clone(), milc.momenta.clone());
        let state = State { input: input(rational), links: own, momenta, pseudofermions };
        write_state(&scratch.at("state.h5"), &state, &partition, &Solo).unwrap();
        let ended = scratch.run(0, &["replay", "--json", "--out", "end.h5", "state.h5"]);
        ended.succeeded();
        let told: Value = serde_json::from_str(&ended.out).unwrap();
        println!("{rational}");
        let check = |when: &str, [g, h, f]: [f64; 3], tolerance: f64| {
            let of = |key: &str| number(&told[when][key]);
            relative(&format!("g {when}"), of("g"), g, tolerance);
            relative(&format!("h {when}"), of("h") - constant, h, 100.0 * tolerance);
            relative(&format!("f {when}"), of("f_sum"), f, tolerance);
        };
        check("before", [1.677_708_426_322_23e4, -9.364_455_613_758_45e1, 1.907_326_376_463_20e3], before);
        check("after", [1.682_259_537_495_10e4, -1.324_900_805_627_84e2, 1.900_661_345_487_91e3], after);
        println!("dH {} MILC 5.563283e-4", told["delta_h"]);
        assert!((number(&told["delta_h"]) - 5.563_283e-4).abs() < dh, "{told}");
        let end = read_state(&scratch.at("end.h5"), &partition, &Solo, std::slice::from_ref(&place)).unwrap();
        close("final links", &end.links.reals, &peer, links);
    }
}

/// A file's functions are measured: with a wrong number they are no functions of their weight.
#[test]
fn a_wrong_function_is_refused() {
    let Some(path) = file("milc_rationals/rationals.sample.su3_omelyan_rhmc") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    for (name, key) in [("GR", "res_GR"), ("FA", "res_FA"), ("MD", "pole_MD")] {
        let scratch = Scratch::new();
        // The second number of its kind, three times as large.
        let wrong: Vec<String> = text
            .lines()
            .scan(0, |found, line| {
                *found += usize::from(line.starts_with(key));
                Some(match line.strip_prefix(key) {
                    Some(number) if *found == 2 => {
                        format!("{key} {:e}", 3.0 * number.trim().parse::<f64>().unwrap())
                    }
                    _ => line.to_string(),
                })
            })
            .collect();
        scratch.write("wrong", wrong.join("\n"));
        scratch.write("run.toml", input("file = \"wrong\""));
        scratch.run(0, &["run.toml"]).failed(2, &["wrong: ", name, "the relative error is"]);
    }
}
