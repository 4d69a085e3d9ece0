//! What a continued run may not change: every key on which the bits of the chain depend.

use super::checked::{Fermion, Gauge, Hmc, Input, Level, Solver};

/// The keys of physics that differ, each with both values.
///
/// The length of the chain, the machine, the files and what is measured may change.
#[must_use]
pub fn compare(stored: &Input, new: &Input) -> Vec<String> {
    let (stored, new) = (physics(stored), physics(new));
    let value = |keys: &[(String, String)], key: &str| {
        keys.iter().find(|(other, _)| other == key).map_or("(absent)".to_owned(), |(_, value)| value.clone())
    };
    let added = new.iter().filter(|(key, _)| stored.iter().all(|(other, _)| other != key));
    stored
        .iter()
        .chain(added)
        .map(|(key, _)| (key, value(&stored, key), value(&new, key)))
        .filter(|(_, before, after)| before != after)
        .map(|(key, before, after)| format!("{key}: was {before}, is {after}"))
        .collect()
}

/// Keys and values; a number is written with all its digits. Every struct is taken apart, so that
/// a new field cannot be forgotten here.
fn physics(input: &Input) -> Vec<(String, String)> {
    let Input { run, extents, gauge, fermions, hmc, parallel: _, measure: _, text: _ } = input;
    let mut keys = Vec::new();
    let mut key = |name: String, value: &dyn std::fmt::Debug| keys.push((name, format!("{value:?}")));

    key("run.seed".into(), &run.seed);
    key("run.start".into(), &run.start);
    key("run.thermalisation".into(), &run.thermalisation);
    key("lattice.extents".into(), extents);

    let Gauge { action, beta, c_plaquette, c_rectangle, c_parallelogram } = gauge;
    key("gauge.action".into(), action);
    key("gauge.beta".into(), beta);
    key("gauge.c_plaquette".into(), c_plaquette);
    key("gauge.c_rectangle".into(), c_rectangle);
    key("gauge.c_parallelogram".into(), c_parallelogram);

    // Their order is that of the pseudofermions' random streams.
    key("fermion".into(), &fermions.iter().map(|fermion| &fermion.name).collect::<Vec<_>>());
    for Fermion { name, kappa, c_sw, boundary, schur, solver } in fermions {
        key(format!("fermion.{name}.kappa"), kappa);
        key(format!("fermion.{name}.c_sw"), c_sw);
        key(format!("fermion.{name}.boundary"), boundary);
        key(format!("fermion.{name}.preconditioning"), schur);
        let Solver { precision, link_reals, action_residual, force_residual, guess, max_iterations: _ } =
            solver;
        key(format!("fermion.{name}.solver.precision"), precision);
        key(format!("fermion.{name}.solver.link_reals"), link_reals);
        key(format!("fermion.{name}.solver.action_residual"), action_residual);
        key(format!("fermion.{name}.solver.force_residual"), force_residual);
        key(format!("fermion.{name}.solver.guess"), guess);
    }

    let Hmc { tau, levels, reproject_every, reversibility_every } = hmc;
    key("hmc.tau".into(), tau);
    key("hmc.reproject_every".into(), reproject_every);
    key("hmc.reversibility_every".into(), reversibility_every);
    for (depth, Level { integrator, steps, terms }) in (1..).zip(levels) {
        key(format!("hmc.level {depth} integrator"), integrator);
        key(format!("hmc.level {depth} steps"), steps);
        key(format!("hmc.level {depth} terms"), terms);
    }
    keys
}
