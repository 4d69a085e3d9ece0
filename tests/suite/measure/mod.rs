//! Observables.

mod domain_wall;
mod flow;
mod mesons;
mod mu_derivative;
mod reweighting;
mod run;
mod staggered;
mod wilson_loops;

use crate::program::{Ended, Scratch, names, objects, parallel};
use serde_json::Value;

const ALONE: [usize; 4] = [1; 4];

/// A short chain with clover quarks, measured as `tables` say.
fn clover(trajectories: usize, tables: &str) -> String {
    format!(
        r#"[run]
name = "chain"
seed = 3
trajectories = {trajectories}
thermalisation = {trajectories}
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.7
[fermion.light]
action = "wilson-clover"
kappa = 0.11
c_sw = 1.0
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge", "light"]
{tables}"#
    )
}

/// A chain of the program's, measured on the way, and its configurations measured again.
struct Measured {
    scratch: Scratch,
    files: Vec<String>,
    /// What is said of all configurations, and the same read; what the chain's own job has found.
    out: String,
    found: Vec<Value>,
    during: Vec<Value>,
}

impl Measured {
    /// Makes the chain of `run`, of the name "chain", and measures what `tables` say, on one rank and on two.
    fn new(run: &str, tables: &str) -> Self {
        let scratch = Scratch::new();
        scratch.chain(0, &format!("{run}{}", parallel(ALONE, 0, 1)));
        let folder = scratch.at("ensembles/chain");
        let files =
            names(&folder.join("cfg")).iter().map(|name| format!("ensembles/chain/cfg/{name}")).collect();
        let during = objects(&std::fs::read_to_string(folder.join("measurements.jsonl")).unwrap());
        let mut measured = Self { scratch, files, out: String::new(), found: Vec::new(), during };
        let ended = measured.again(0, &format!("{tables}{}", parallel(ALONE, 0, 1)), &["--json"]);
        ended.succeeded();
        measured.found = objects(&ended.out);
        assert_eq!(measured.found.len(), measured.files.len());
        assert_eq!(measured.during.len(), measured.files.len());
        let two = measured.again(2, &format!("{tables}{}", parallel([1, 1, 1, 2], 1, 1)), &["--json"]);
        assert_eq!((two.code, &two.out), (Some(0), &ended.out), "{two:?}");
        measured.out = ended.out;
        measured
    }

    /// Measures all configurations by another input.
    fn again(&self, ranks: usize, text: &str, options: &[&str]) -> Ended {
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        self.scratch.measure(ranks, text, &[options, &files].concat())
    }
}

/// The keys of an object, in order.
fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn numbers(array: &Value) -> Vec<f64> {
    array.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}
