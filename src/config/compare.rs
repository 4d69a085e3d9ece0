//! What a continued run may not change: every key on which the bits of the chain depend.

use super::checked::{Fermion, Flavours, Gauge, Hasenbusch, Hmc, Input, Level, Rational, Solver, Stout};
use std::fmt::Debug;

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
    let mut key = |name: String, value: &dyn Debug| keys.push((name, format!("{value:?}")));

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
    for fermion in fermions {
        let Fermion { name, flavours, kappa, mu, c_sw, boundary, schur, stout, solver, hasenbusch } = fermion;
        key(format!("fermion.{name}.flavours"), &if *flavours == Flavours::Two { 2 } else { 1 });
        if let Flavours::One(Rational { range, action_error, force_error, check_every }) = flavours {
            key(format!("fermion.{name}.rational.range"), range);
            key(format!("fermion.{name}.rational.action_error"), action_error);
            key(format!("fermion.{name}.rational.force_error"), force_error);
            key(format!("fermion.{name}.rational.check_every"), check_every);
        }
        key(format!("fermion.{name}.kappa"), kappa);
        key(format!("fermion.{name}.mu"), mu);
        key(format!("fermion.{name}.c_sw"), c_sw);
        key(format!("fermion.{name}.boundary"), boundary);
        key(format!("fermion.{name}.preconditioning"), schur);
        if let Some(Stout { steps, rho }) = stout {
            key(format!("fermion.{name}.stout.steps"), steps);
            key(format!("fermion.{name}.stout.rho"), rho);
        }
        solver_keys(&mut key, &format!("fermion.{name}.solver"), solver);
        // Their order is that of the determinant's ratios.
        let names: Vec<_> = hasenbusch.iter().map(|factor| &factor.name).collect();
        key(format!("fermion.{name}.hasenbusch"), &names);
        for Hasenbusch { name: factor, kappa, mu, solver } in hasenbusch {
            let path = format!("fermion.{name}.hasenbusch {factor}");
            key(format!("{path} kappa"), kappa);
            key(format!("{path} mu"), mu);
            solver_keys(&mut key, &format!("{path} solver"), solver);
        }
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

/// Hands the keys of a solver, whose table is called `path`, to `key`.
fn solver_keys(key: &mut impl FnMut(String, &dyn Debug), path: &str, solver: &Solver) {
    let Solver {
        method,
        precision,
        delta,
        link_reals,
        action_residual,
        force_residual,
        guess,
        max_iterations: _,
    } = solver;
    key(format!("{path}.method"), method);
    key(format!("{path}.precision"), precision);
    key(format!("{path}.delta"), delta);
    key(format!("{path}.link_reals"), link_reals);
    key(format!("{path}.action_residual"), action_residual);
    key(format!("{path}.force_residual"), force_residual);
    key(format!("{path}.guess"), guess);
}
