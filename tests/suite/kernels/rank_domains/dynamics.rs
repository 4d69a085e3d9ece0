//! Molecular dynamics by GCR-DD in the ranks' boxes against those by conjugate gradients on one rank.

use crate::program::{Scratch, parallel, read_chain};
use hmc::lattice::{Extents, volume};

/// Two flavours of clover quarks with a ratio. `@` stands for the keys of the solver.
const CHAIN: &str = r#"[run]
name = "chain"
seed = 5
trajectories = 1
thermalisation = 1
start = "cold"
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.5
[fermion.light]
action = "wilson-clover"
kappa = 0.125
c_sw = 1.5
[fermion.light.solver]
@
action_residual = 1e-12
force_residual = 1e-10
[[fermion.light.hasenbusch]]
name = "heavy"
mu = 0.3
[hmc]
tau = 0.3
reversibility_every = 1
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["light", "heavy"]
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["gauge"]
"#;

/// What of a trajectory is compared.
#[derive(Debug)]
struct Trajectory {
    delta_h: f64,
    plaquette: f64,
    /// Of the way there and back: max |U - U_back|, |dH|.
    back: [f64; 2],
}

/// The number after `what`.
fn after(line: &str, what: &str) -> f64 {
    let rest = line.split_once(what).unwrap_or_else(|| panic!("no '{what}' in {line}")).1;
    rest.split([' ', ',']).next().unwrap().parse().unwrap()
}

/// The trajectories of the chain on a grid of ranks.
fn trajectories(grid: Extents, solver: &str) -> Vec<Trajectory> {
    let scratch = Scratch::new();
    let ranks = volume(grid);
    let text = format!("{}\n{}", CHAIN.replace('@', solver), parallel(grid, 0, 1));
    let ended = scratch.chain(if ranks > 1 { ranks } else { 0 }, &text);
    assert!(!ended.out.contains("fallback"), "{ended:?}");
    let lines = ended.out.lines().filter(|line| line.contains("reversibility: "));
    let back = lines.map(|line| [after(line, "max |U - U_back| "), after(line, "|dH| there and back ")]);
    let history = read_chain(&scratch.at("ensembles/chain")).history;
    let number = |row: &str, n: usize| row.split(',').nth(n).unwrap().parse().unwrap();
    let rows = history.iter().map(|row| (number(row, 1), number(row, 3)));
    rows.zip(back).map(|((delta_h, plaquette), back)| Trajectory { delta_h, plaquette, back }).collect()
}

/// Solutions differ by |(M^dag M)^-1 M^dag M| < 100 times the residual. Of the action, about 3000 a term, that is 3e-7; of
/// forces it is 1e-8, in directions that have nothing to do with the momenta's, and in the mean plaquette far less.
/// Solves from zero are a function of the links alone: there and back differs by rounding, as in `laws::dynamics`.
#[test]
fn molecular_dynamics_are_those_of_conjugate_gradients() {
    let expected = trajectories([1; 4], "method = \"cg\"");
    println!("CG on one rank: {expected:?}");
    assert_eq!(expected.len(), 1);
    for (grid, precision) in [([1, 1, 1, 2], "double-single-half"), ([2, 1, 1, 2], "double-half-half")] {
        let keys = format!("method = \"gcr-dd\"\ngcr-dd = {{ block = \"rank\" }}\nprecision = {precision:?}");
        let found = trajectories(grid, &keys);
        println!("{grid:?} {precision}: {found:?}");
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            let (dh, plaquette) = (found.delta_h - expected.delta_h, found.plaquette - expected.plaquette);
            println!("  differences: dH {dh:.1e}, plaquette {plaquette:.1e}");
            assert!(dh.abs() < 1e-6 && plaquette.abs() < 1e-10, "{grid:?}: {found:?}, not {expected:?}");
            assert!(found.back[0] < 1e-12 && found.back[1] < 1e-7, "{grid:?}: {found:?}");
        }
    }
}
