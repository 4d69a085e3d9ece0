//! What is fuzzed: each target reads one kind of file from arbitrary bytes, and panics where a reader breaks its word.
//!
//! | target | what it reads | what must hold |
//! |---|---|---|
//! | `toml` | inputs of runs and of measurements | what is read is read again from what a TOML writer makes of it; every mistake has its place |
//! | `lime`, `nersc`, `milc`, `openqcd` | configurations | what is read is written and read again the same; no header promises more than its file holds |
//! | `hdf5` | configurations and checkpoints | a file with altered attributes or datasets is refused, or says the same |
//! | `records` | `history.csv`, `measurements.jsonl` | whole lines are written and read again the same, without faults |
//! | `ensemble` | the texts of an ensemble's folder | the page of `hmc report` is made, and a text of the folder does not get into its markup |
//! | `state` | states of `hmc replay`; the chosen solvers of a checkpoint | as `hdf5`; a choice is kept |
//!
//! For all: an error is one line and names the file, and what is asked for in memory is a small multiple of the bytes read.
//!
//! libFuzzer runs them ([`run`]; `cargo +nightly fuzz run TARGET`), and so does `tests/fuzz.rs` of hmc, without it.

mod configuration;
mod cursor;
mod ensemble;
mod hdf5_files;
mod memory;
mod records;
mod scratch;
mod state;
mod text;

/// What a target does with its bytes.
type Target = fn(&[u8]);

/// All targets.
pub const TARGETS: [(&str, Target); 9] = [
    ("toml", text::run),
    ("lime", configuration::lime),
    ("nersc", configuration::nersc),
    ("milc", configuration::milc),
    ("openqcd", configuration::openqcd),
    ("hdf5", hdf5_files::run),
    ("records", records::run),
    ("ensemble", ensemble::run),
    ("state", state::run),
];

/// Runs a target on these bytes.
///
/// # Panics
/// A reader broke its word, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(other, _)| *other == name).expect("a target of this name");
    target(bytes);
}
