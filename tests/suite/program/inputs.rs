//! The shipped inputs for small machines run as they are; `hmc bench trajectory` tells what each of their terms costs.

use super::{Scratch, objects};
use std::path::Path;

const SMALL: [&str; 8] = [
    "quickstart",
    "quenched-b6.0",
    "clover-nf2-8x8",
    "clover-nf2p1-8x16",
    "tm-nf2p1p1-4x4",
    "mobius-2p1-small",
    "hisq-2p1-6x6",
    "asqtad-2p1",
];

#[test]
fn small_inputs_run() {
    for name in SMALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("inputs/{name}.toml"));
        let scratch = Scratch::new();
        let input = path.to_str().expect("a path of text");
        let ended = scratch.run(1, &["bench", "trajectory", input, "--trajectories", "1", "--json"]);
        ended.succeeded();
        let [table] = &objects(&ended.out)[..] else { panic!("one object: {}", ended.out) };
        let dh = table["delta_h"][0].as_f64().expect("dH");
        assert!(dh.abs() < 10.0, "{name}: dH {dh}");
        let terms = table["terms"].as_array().expect("the terms");
        let seconds = |key: &str| terms.iter().map(|term| term[key].as_f64().expect(key)).sum::<f64>();
        let shares = seconds("heat_bath_seconds") + seconds("action_seconds") + seconds("force_seconds");
        let whole = table["seconds"].as_f64().expect("seconds");
        assert!((0.5 * whole..=whole).contains(&shares), "{name}: {shares} of {whole} s in the terms");
        let of = |name: &str| terms.iter().find(|term| term["term"] == name).expect("a term");
        assert!(of("gauge")["force"].as_f64().expect("|F|") > 1.0, "{name}");
        assert!(terms.iter().all(|term| term["forces"].as_u64() > Some(0)), "{name}");
        assert_eq!(super::names(scratch.path()), [""; 0], "{name}: nothing is written");
    }
}
