//! States of `hmc replay`, raw and with altered objects, and the chosen solvers of a checkpoint.

use super::cursor::Cursor;
use super::hdf5_files::{alter, patched};
use super::memory::bounded;
use super::scratch::{Scratch, names};
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::input::{self, Input};
use hmc::io::{self, Place, State};
use hmc::lattice::{Extents, Partition};
use hmc::solver::Choices;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

const EXTENTS: Extents = [2; 4];
const ATTRIBUTES: [&str; 5] = ["kind", "version", "input", "crc32", "more"];
const OBJECTS: [&str; 6] = [
    "gauge/U",
    "momenta/P",
    "pseudofermion/light/0",
    "pseudofermion/light/1",
    "pseudofermion/light",
    "pseudofermion",
];

/// Two terms whose solvers are to be chosen.
const AUTO: &str = r#"
[run]
name = "auto"
seed = 1
trajectories = 1
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.7
[fermion.light]
action = "wilson-clover"
kappa = 0.13
c_sw = 1.0
[fermion.light.solver]
method = "auto"
[[hmc.level]]
integrator = "omf4"
steps = 2
terms = ["light", "gauge"]
"#;

/// The first byte says what the others are: a file, what is done to a state by the library or to its bytes, chosen solvers.
pub(super) fn run(bytes: &[u8]) {
    let (kind, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let folder = Scratch::new();
    match kind % 5 {
        0 => raw(&folder, rest),
        3 => chosen(rest),
        4 => refused_or_state(&folder, &folder.file("given", &patched(&state().1, &mut Cursor(rest)))),
        _ => {
            let path = folder.file("given", &state().1);
            alter(&path, &mut Cursor(rest), &ATTRIBUTES, &OBJECTS);
            refused_or_state(&folder, &path);
        }
    }
}

fn wanted() -> Vec<Place> {
    vec![Place { term: "light".into(), number: 0, parity: 0, slice_reals: 24, slices: 1 }]
}

fn partition() -> Partition {
    Partition::whole(EXTENTS).expect("even extents")
}

/// A whole state: unit links, no momentum, no pseudofermion but zeros.
fn state() -> &'static (State, Vec<u8>) {
    static FILE: OnceLock<(State, Vec<u8>)> = OnceLock::new();
    FILE.get_or_init(|| {
        let links = HostLinks::unit(EXTENTS);
        let momenta = HostLinks { local: EXTENTS, reals: vec![0.0; links.reals.len()] };
        let pseudofermions = vec![(wanted().remove(0), vec![0.0; 16 * 24])];
        let state = State { input: "[run]\n".into(), links, momenta, pseudofermions };
        let folder = Scratch::new();
        let path = folder.path().join("state");
        io::write_state(&path, &state, &partition(), &Solo).unwrap();
        (state, fs::read(&path).unwrap())
    })
}

fn raw(folder: &Scratch, bytes: &[u8]) {
    let path = folder.file("given", &[b"\x89HDF\r\n\x1a\n", bytes].concat());
    if let Err(error) = bounded(bytes.len(), 16, || io::state_input(&path)) {
        names(error, &path);
    }
    if let Err(error) = bounded(bytes.len(), 16, || io::read_state(&path, &partition(), &Solo, &wanted())) {
        names(error, &path);
    }
}

/// A state without its checksum may have another input: it is refused, or is one that is written and read again the same.
fn refused_or_state(folder: &Scratch, path: &Path) {
    let (whole, _) = state();
    let size = fs::metadata(path).unwrap().len() as usize;
    let input = bounded(size, 16, || io::state_input(path));
    match bounded(size, 16, || io::read_state(path, &partition(), &Solo, &wanted())) {
        Err(error) => names(error, path),
        Ok(state) => {
            assert_eq!(input.unwrap(), state.input);
            assert_eq!(state.links, whole.links);
            let again = folder.path().join("again");
            io::write_state(&again, &state, &partition(), &Solo).unwrap();
            assert_eq!(io::read_state(&again, &partition(), &Solo, &wanted()).unwrap(), state);
            return;
        }
    }
    if let Err(error) = input {
        names(error, path);
    }
}

/// A choice that an input takes is the one that it then has.
fn chosen(bytes: &[u8]) {
    static INPUT: OnceLock<Input> = OnceLock::new();
    let input =
        INPUT.get_or_init(|| input::parse(AUTO, "auto.toml", 1).unwrap_or_else(|e| panic!("{e}")).input);
    let Ok(choices) = bounded(bytes.len(), 64, || serde_json::from_slice::<Choices>(bytes)) else { return };
    let again = serde_json::from_str::<Choices>(&serde_json::to_string(&choices).unwrap()).unwrap();
    assert_eq!(again, choices);
    if let Ok(settled) = input.with_choices(&choices) {
        let own = settled.choices();
        assert_eq!(own.get("light"), choices.get("light"));
        assert_eq!(settled.open_choices().is_empty(), choices.contains_key("light"));
    }
}
