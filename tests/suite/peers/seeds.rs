//! The numbers of other programs on configurations that this program makes from a seed: a clone has them all.
//!
//! `tests/data/peers` holds the inputs of the chains and measurements, the checksums of the links, and for each peer
//! its version, its inputs, its numbers with all digits that it prints, and their tolerances with a reason.

use crate::compare::close;
use crate::devices::domain;
use crate::program::{Scratch, objects, on};
use crate::reference::staggered::{self, ANTIPERIODIC};
use crate::reference::wilson::{from_openqcd, reals, sincos, spin_mul};
use crate::terms::{quark, two_flavours};
use hmc::action::{Action, GaugeAction, TermHeader};
use hmc::comm::Solo;
use hmc::device::Precision;
use hmc::family::{
    Rooted, RootedParams, RootedPseudofermion, RootedSolver, Schur, Smearing, Staggered, StaggeredLinks,
    WilsonParams,
};
use hmc::field::{AlgebraField, Domain, EVEN, HostLinks, MatrixField, ODD, Spinor};
use hmc::io;
use hmc::lattice::{Boundary, Extents, coordinates, site, volume};
use hmc::math::{MilcPseudofermion, milc_rationals};
use hmc::operator::CloverForm;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A file of `tests/data/peers`.
fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&text(name)).unwrap()
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// A configuration in a folder of its own.
struct Made {
    scratch: Scratch,
    file: String,
}

impl Made {
    /// Makes the configuration from its seed, which must give the links that the peers had.
    fn new(name: &str) -> Self {
        let all = json("configurations.json");
        let this = list(&all["configurations"]).iter().find(|one| one["name"] == name).unwrap();
        let scratch = Scratch::new();
        scratch.chain(0, &on(&text(word(&this["chain"])), 0));
        let file = format!("ensembles/{name}/cfg/{}", word(&this["file"]));
        let info = scratch.info(&scratch.at(&file));
        assert_eq!(info["links_checksum"], this["links_checksum"], "{name}: other links than the peers had");
        Self { scratch, file }
    }

    fn measure(&self, input: &str) -> Value {
        let ended = self.scratch.measure(0, &on(&text(input), 0), &["--json", &self.file]);
        ended.succeeded();
        objects(&ended.out).remove(0)
    }

    fn links(&self) -> HostLinks {
        let path = self.scratch.at(&self.file);
        let domain = domain(io::header(&path).unwrap().extents);
        io::read_links(&path, domain.partition(), &Solo).unwrap().0
    }
}

/// The numbers at a path of keys: in a list a key is a place, a `name`, or `*` for all.
fn values(found: &Value, path: &str) -> Vec<f64> {
    let Some((key, rest)) = path.split_once('/').or((!path.is_empty()).then_some((path, ""))) else {
        return found.as_array().map_or_else(|| vec![real(found)], |all| all.iter().map(real).collect());
    };
    match (found, key) {
        (Value::Array(all), "*") => all.iter().flat_map(|one| values(one, rest)).collect(),
        (Value::Array(all), _) => {
            let named = || all.iter().find(|one| one["name"] == key);
            values(key.parse::<usize>().map_or_else(|_| named(), |place| all.get(place)).unwrap(), rest)
        }
        _ => values(&found[key], rest),
    }
}

/// The peer's numbers; those of a list inside the list are summed.
fn summed(peer: &Value) -> Vec<f64> {
    list(peer)
        .iter()
        .map(|one| one.as_array().map_or_else(|| real(one), |all| all.iter().map(real).sum()))
        .collect()
}

/// Compares all that the peer measured with what `hmc measure` finds; each number on its own.
fn check_measurements(file: &str) {
    let peer = json(file);
    let mut made = BTreeMap::new();
    let mut measured = BTreeMap::new();
    for run in list(&peer["runs"]) {
        let (configuration, input) = (word(&run["configuration"]), word(&run["measure"]));
        let made = made.entry(configuration).or_insert_with(|| Made::new(configuration));
        let found =
            measured.entry((configuration, input)).or_insert_with(|| made.measure(&format!("{input}.toml")));
        for number in list(&run["numbers"]) {
            let what = format!("{configuration}, {}: {}", word(&run["program"]), word(&number["what"]));
            let (ours, peer) = (values(found, word(&number["ours"])), summed(&number["peer"]));
            assert_eq!(ours.len(), peer.len(), "{what}");
            let floor = number.get("floor").map_or(f64::MIN_POSITIVE, real);
            for (n, (ours, peer)) in ours.iter().zip(peer).enumerate() {
                let ours = real(&number["factor"]) * ours;
                close(&format!("{what} [{n}]"), ours, peer, real(&number["tolerance"]), floor);
            }
        }
    }
}

fn force(action: &mut dyn Action, links: &MatrixField) -> Vec<f64> {
    let mut force = AlgebraField::new(links.domain()).unwrap();
    action.add_force(links, &mut force).unwrap();
    force.to_host().unwrap()
}

/// `sum |F|^2` over links, and the greatest `|F|`.
fn sizes(force: &[f64]) -> (f64, f64) {
    let squares = force.chunks_exact(8).map(|f| f.iter().map(|f| f * f).sum());
    squares.fold((0.0, 0.0), |(sum, max), square: f64| (sum + square, f64::max(max, square.sqrt())))
}

/// Compares the number `key` of a peer's entry.
fn check(entry: &Value, key: &str, found: f64, tolerance: &Value) {
    let kind = entry.get("kind").map_or("", word);
    let what = format!("{} {kind} {key}", word(&entry["configuration"]));
    close(&what, found, real(&entry[key]), real(tolerance), f64::MIN_POSITIVE);
}

fn check_each(what: &str, found: [f64; 4], peer: &Value, tolerance: &Value) {
    for (mu, (found, peer)) in found.into_iter().zip(list(peer)).enumerate() {
        close(&format!("{what} [{mu}]"), found, real(peer), real(tolerance), f64::MIN_POSITIVE);
    }
}

/// `sum |X_mu|^2` for each mu.
fn norms(links: &MatrixField) -> [f64; 4] {
    let reals = links.to_host().unwrap().reals;
    let square = |mu: usize| {
        let all = reals.chunks_exact(72).flat_map(|site| &site[18 * mu..18 * (mu + 1)]);
        all.map(|x| x * x).sum()
    };
    std::array::from_fn(square)
}

/// MILC's Symanzik action at one loop, without quark loops or with them.
fn one_loop(u0: f64, n_f: f64) -> [f64; 3] {
    let log = u0.ln();
    let [a, b] = if n_f == 0.0 { [0.6264, 0.04335] } else { [0.6264 - 1.1746 * n_f, 0.0433 - 0.0156 * n_f] };
    [1.0, -(1.0 - a * log) / (20.0 * u0 * u0), b * log / (u0 * u0)]
}

/// The term of MILC's rational functions, which `text` holds as MILC reads it.
fn rooted(domain: &Arc<Domain>, smearing: Smearing, text: &str) -> Rooted {
    let range = [1e-3, 50.0];
    let functions = milc_rationals(text).unwrap();
    let pseudofermion = |functions: &MilcPseudofermion| RootedPseudofermion {
        naik_epsilon: functions.naik_epsilon,
        heat_bath: functions.heat_bath.measured(range).unwrap(),
        action: functions.action.measured(range).unwrap(),
        force: functions.md.measured(range).unwrap(),
        check_every: 1,
        inner: None,
    };
    let solver = RootedSolver {
        precisions: [Precision::Double; 2],
        delta: 1e-3,
        multi_shift: true,
        long_reals: 18,
        heat_bath_residual: 1e-13,
        max_iterations: 5000,
    };
    let params = RootedParams {
        header: TermHeader { name: "ks".into(), number: 0, action_residual: 1e-13, force_residual: 1e-13 },
        smearing,
        boundary: Boundary::phases(ANTIPERIODIC),
        solver,
        pseudofermions: functions.iter().map(pseudofermion).collect(),
    };
    Rooted::new(domain, params).unwrap()
}

/// `|D chi|^2`.
fn hopped(links: &StaggeredLinks, fat: &MatrixField, naik_epsilon: f64, chi: &[f64]) -> f64 {
    let domain = fat.domain();
    let mut d = Staggered::new(domain, Precision::Double, 18, 1, Boundary::phases(ANTIPERIODIC)).unwrap();
    d.update(fat, links.long(), links.naik(naik_epsilon)).unwrap();
    let mut found = vec![0.0; chi.len()];
    for parity in [EVEN, ODD] {
        let spinor = || Spinor::colour(domain, Precision::Double).unwrap();
        let (mut input, mut out) = (spinor(), spinor());
        input.read_host(1 - parity, chi).unwrap();
        d.hop(&mut out, &input, parity, 1.0, None).unwrap();
        out.write_host(parity, &mut found).unwrap();
    }
    found.iter().map(|x| x * x).sum()
}

/// The links moved by one site in x: so openQCD's even sites are our odd ones.
fn moved(links: &HostLinks) -> HostLinks {
    let reals = origins(links.local).into_iter().flat_map(|x| links.reals[72 * x..72 * x + 72].to_vec());
    HostLinks { local: links.local, reals: reals.collect() }
}

/// For each site of the moved lattice, the site that it was.
fn origins(extents: Extents) -> Vec<usize> {
    let origin = |x: usize| {
        let mut y = coordinates(extents, x);
        y[0] = (y[0] + 1) % extents[0];
        site(extents, y)
    };
    (0..volume(extents)).map(origin).collect()
}

#[test]
fn milc_measurements() {
    check_measurements("milc.json");
}

#[test]
fn openqcd_measurements() {
    check_measurements("openqcd.json");
}

#[test]
fn openqcd_gauge_actions_and_forces() {
    let peer = json("openqcd.json");
    let tolerance = &peer["gauge_tolerance"];
    for name in ["rough", "smooth"] {
        let host = Made::new(name).links();
        let links = MatrixField::from_host(&domain(host.local), &host).unwrap();
        let entries: Vec<&Value> =
            list(&peer["gauge"]).iter().filter(|one| one["configuration"] == name).collect();
        assert_eq!(entries.len(), 4);
        for entry in entries {
            let c0 = real(&entry["c0"]);
            let coefficients = [c0, (1.0 - c0) / 8.0, 0.0];
            let mut action = GaugeAction::new(links.domain(), real(&entry["beta"]), coefficients).unwrap();
            check(entry, "action", action.value(&links).unwrap().value(), tolerance);
            let (norm2, max) = sizes(&force(&mut action, &links));
            check(entry, "force_norm2", norm2, tolerance);
            check(entry, "force_max", max, tolerance);
        }
    }
}

/// openQCD's phi is its test spinor on even sites. Our pseudofermions live on odd ones, so the lattice is moved by one
/// site in x, where fermions are periodic.
#[test]
fn openqcd_pseudofermion() {
    let peer = json("openqcd.json");
    let tolerance = &peer["fermion_tolerance"];
    for entry in list(&peer["fermion"]) {
        let (kappa, c_sw) = (real(&entry["kappa"]), real(&entry["c_sw"]));
        let host = Made::new(word(&entry["configuration"])).links();
        let links = MatrixField::from_host(&domain(host.local), &moved(&host)).unwrap();
        let psi: Vec<_> = sincos(host.local).iter().map(|psi| spin_mul(&from_openqcd(), psi)).collect();
        let phi: Vec<_> = origins(host.local).into_iter().map(|x| psi[x]).collect();
        let schur = Schur::Asymmetric;
        let operator = WilsonParams {
            kappa,
            mu: 0.0,
            twisted_mass: 0.0,
            c_sw,
            clover: CloverForm::Linear,
            boundary: Boundary::ANTIPERIODIC,
            schur,
        };
        let mut term = two_flavours(links.domain(), quark(operator, Precision::Double), [1e-14; 2]);
        term.set_phi(&reals(&phi)).unwrap();
        // The peer's determinant is that of 2 kappa A, on half of the sites with 12 components each.
        let constant = 12.0 * volume(host.local) as f64 * (2.0 * kappa).ln();
        let action = term.value(&links).unwrap().value();
        check(entry, "action_with_det", action - constant, tolerance);
        let with_det = force(&mut term, &links);
        let (norm2, max) = sizes(&with_det);
        check(entry, "force_with_det_norm2", norm2, tolerance);
        check(entry, "force_with_det_max", max, tolerance);
        let alone = real(&entry["action_with_det"]) - real(&entry["action"]);
        term.set_phi(&vec![0.0; 24 * volume(host.local)]).unwrap();
        let log_det = term.value(&links).unwrap().value();
        close("log det", log_det - constant, alone, 1e-12, 1.0);
        check(entry, "action", action - log_det, tolerance);
        let alone: Vec<f64> =
            with_det.iter().zip(force(&mut term, &links)).map(|(both, det)| both - det).collect();
        let (norm2, max) = sizes(&alone);
        check(entry, "force_norm2", norm2, tolerance);
        check(entry, "force_max", max, tolerance);
    }
}

/// The gauge action of one loop and its force, smeared links, D, and action and force of pseudofermions.
#[test]
fn milc_staggered_terms() {
    let peer = json("milc.json");
    let (tolerance, solved) = (&peer["tolerance"], &peer["solve_tolerance"]);
    let made = ["rough", "smooth"].map(|name| (name, Made::new(name).links()));
    for entry in list(&peer["terms"]) {
        let (name, kind, u0) = (word(&entry["configuration"]), word(&entry["kind"]), real(&entry["u0"]));
        let (_, host) = made.iter().find(|(one, _)| *one == name).unwrap();
        let domain = domain(host.local);
        let links = MatrixField::from_host(&domain, host).unwrap();
        let coefficients = one_loop(u0, real(&entry["n_f"]));
        let mut gauge = GaugeAction::new(&domain, real(&entry["beta"]), coefficients).unwrap();
        check(entry, "gauge_action", gauge.value(&links).unwrap().value(), tolerance);
        let (norm2, max) = sizes(&force(&mut gauge, &links));
        check(entry, "gauge_force_norm2", norm2, tolerance);
        check(entry, "gauge_force_max", max, tolerance);

        let smearing =
            if kind == "asqtad" { Smearing::Asqtad { u0 } } else { Smearing::Hisq { special: false } };
        let mut term = rooted(&domain, smearing, word(&peer["rationals"][kind]));
        let chi = staggered::reals(&staggered::sincos(host.local));
        let mut smeared = StaggeredLinks::new(&domain, smearing).unwrap();
        smeared.update(&links).unwrap();
        let mut fat = MatrixField::new(&domain, 4).unwrap();
        for (operator, naik_epsilon) in list(&entry["operators"]).iter().zip([0.0, -0.16875]) {
            smeared.fat(naik_epsilon, &mut fat).unwrap();
            let what = |of: &str| format!("{name} {kind} eps {naik_epsilon} {of}");
            check_each(&what("fat"), norms(&fat), &operator["fat_norm2"], tolerance);
            let square = smeared.naik(naik_epsilon).powi(2);
            let long = norms(smeared.long()).map(|norm2| square * norm2);
            check_each(&what("long"), long, &operator["long_norm2"], tolerance);
            let found = hopped(&smeared, &fat, naik_epsilon, &chi);
            close(&what("D chi"), found, real(&operator["d_chi_norm2"]), real(tolerance), 1.0);
        }
        for pseudofermion in term.pseudofermions() {
            pseudofermion.field.read_host(EVEN, &chi).unwrap();
        }
        check(entry, "action", term.value(&links).unwrap().value(), solved);
        let (norm2, max) = sizes(&force(&mut term, &links));
        check(entry, "force_norm2", norm2, solved);
        check(entry, "force_max", max, solved);
    }
}
