//! `hmc measure` takes the input of a run as it is, and finds the numbers that the run has measured.

use crate::program::{Scratch, parallel};
use serde_json::Value;

const RUN: &str = r#"[run]
name = "chain"
seed = 77
trajectories = 2
thermalisation = 2
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.7
[fermion.light]
action = "wilson"
kappa = 0.1
[hmc]
tau = 0.5
[[hmc.level]]
integrator = "2mn"
steps = 3
terms = ["light", "gauge"]
[measure.loops]
[measure.polyakov]
[measure.correlator.pion]
fermion = "light"
[measure.condensate.light]
fermion = "light"
sources = 2
"#;
const LAST: &str = "ensembles/chain/cfg/cfg_000002.h5";

#[test]
fn the_input_of_a_run_measures_what_the_run_did() {
    let scratch = Scratch::new();
    let text = format!("{RUN}{}", parallel([1, 1, 1, 2], 0, 1));
    scratch.chain(2, &text);
    let of_run = std::fs::read_to_string(scratch.at("ensembles/chain/measurements.jsonl")).unwrap();
    let mut expected: Value = serde_json::from_str(of_run.lines().last().unwrap()).unwrap();
    expected["file"] = LAST.into();
    expected.as_object_mut().unwrap().remove("crc32");
    assert!(!expected["condensates"].is_null(), "{expected}");
    for (ranks, text) in [(2, text), (0, RUN.to_owned())] {
        let ended = scratch.measure(ranks, &text, &["--json", LAST]);
        ended.succeeded();
        assert!(ended.err.is_empty(), "{ended:?}");
        assert_eq!(serde_json::from_str::<Value>(&ended.out).unwrap(), expected);
    }
    // Its tables are checked as in a run.
    let ended = scratch.measure(0, &RUN.replace("beta", "betta"), &[LAST]);
    ended.failed(2, &["measure.toml:10:1: unknown key 'betta' in [gauge]; did you mean 'beta'?"]);
}
