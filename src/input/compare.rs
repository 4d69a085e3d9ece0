//! What a continued run may not change: every key on which the bits of the chain depend.

use super::checked::{
    Fermion, Flavours, Gauge, Hasenbusch, Hmc, Input, Level, Pseudofermion, Rational, RationalSource, Solver,
    StaggeredFermion, StaggeredSolver, Stout, WilsonFermion,
};
use super::domain_wall::{DomainWallFermion, WallFactor, WallFlavours};
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
    key("fermion".into(), &fermions.iter().map(Fermion::name).collect::<Vec<_>>());
    for fermion in fermions {
        match fermion {
            Fermion::Wilson(fermion) => wilson_keys(&mut key, fermion),
            Fermion::Staggered(fermion) => staggered_keys(&mut key, fermion),
            Fermion::DomainWall(fermion) => domain_wall_keys(&mut key, fermion),
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

/// Hands the keys of Wilson quarks to `key`.
fn wilson_keys(key: &mut impl FnMut(String, &dyn Debug), fermion: &WilsonFermion) {
    let WilsonFermion { name, flavours, kappa, mu, c_sw, boundary, schur, stout, solver, hasenbusch } =
        fermion;
    key(format!("fermion.{name}.flavours"), &if *flavours == Flavours::Two { 2 } else { 1 });
    if let Flavours::One(rational) = flavours {
        rational_keys(key, name, rational);
    }
    key(format!("fermion.{name}.kappa"), kappa);
    key(format!("fermion.{name}.mu"), mu);
    key(format!("fermion.{name}.c_sw"), c_sw);
    key(format!("fermion.{name}.boundary"), boundary);
    key(format!("fermion.{name}.preconditioning"), schur);
    stout_keys(key, name, stout.as_ref());
    solver_keys(key, &format!("fermion.{name}.solver"), solver);
    // Their order is that of the determinant's ratios.
    let names: Vec<_> = hasenbusch.iter().map(|factor| &factor.name).collect();
    key(format!("fermion.{name}.hasenbusch"), &names);
    for Hasenbusch { name: factor, kappa, mu, solver } in hasenbusch {
        let path = format!("fermion.{name}.hasenbusch {factor}");
        key(format!("{path} kappa"), kappa);
        key(format!("{path} mu"), mu);
        solver_keys(key, &format!("{path} solver"), solver);
    }
}

/// Hands the keys of domain-wall quarks to `key`.
fn domain_wall_keys(key: &mut impl FnMut(String, &dyn Debug), fermion: &DomainWallFermion) {
    let DomainWallFermion { name, weights, n_s, m5, mass, flavours, boundary, stout, hasenbusch, solver } =
        fermion;
    key(format!("fermion.{name}.weights"), weights);
    key(format!("fermion.{name}.n_s"), n_s);
    key(format!("fermion.{name}.m5"), m5);
    key(format!("fermion.{name}.mass"), mass);
    key(format!("fermion.{name}.flavours"), &if *flavours == WallFlavours::Two { 2 } else { 1 });
    match flavours {
        WallFlavours::Two => {}
        WallFlavours::OneEofa { range, error, check_every } => {
            key(format!("fermion.{name}.one_flavour"), &"eofa");
            key(format!("fermion.{name}.rational.range"), range);
            key(format!("fermion.{name}.rational.action_error"), error);
            key(format!("fermion.{name}.rational.check_every"), check_every);
        }
        WallFlavours::OneRational { rational, heavy_range } => {
            key(format!("fermion.{name}.one_flavour"), &"rational");
            rational_keys(key, name, rational);
            key(format!("fermion.{name}.rational.heavy_range"), heavy_range);
        }
    }
    key(format!("fermion.{name}.boundary"), boundary);
    stout_keys(key, name, stout.as_ref());
    solver_keys(key, &format!("fermion.{name}.solver"), solver);
    // Their order is that of the determinant's ratios.
    let names: Vec<_> = hasenbusch.iter().map(|factor| &factor.name).collect();
    key(format!("fermion.{name}.hasenbusch"), &names);
    for WallFactor { name: factor, mass, solver } in hasenbusch {
        let path = format!("fermion.{name}.hasenbusch {factor}");
        key(format!("{path} mass"), mass);
        solver_keys(key, &format!("{path} solver"), solver);
    }
}

/// Hands the keys of one flavour's functions, of the fermion `name`, to `key`.
fn rational_keys(key: &mut impl FnMut(String, &dyn Debug), name: &str, rational: &Rational) {
    let Rational { range, action_error, force_error, check_every } = rational;
    key(format!("fermion.{name}.rational.range"), range);
    key(format!("fermion.{name}.rational.action_error"), action_error);
    key(format!("fermion.{name}.rational.force_error"), force_error);
    key(format!("fermion.{name}.rational.check_every"), check_every);
}

/// Hands the keys of the smearing of the fermion `name` to `key`.
fn stout_keys(key: &mut impl FnMut(String, &dyn Debug), name: &str, stout: Option<&Stout>) {
    if let Some(Stout { steps, rho }) = stout {
        key(format!("fermion.{name}.stout.steps"), steps);
        key(format!("fermion.{name}.stout.rho"), rho);
    }
}

/// Hands the keys of staggered quarks to `key`.
fn staggered_keys(key: &mut impl FnMut(String, &dyn Debug), fermion: &StaggeredFermion) {
    let StaggeredFermion { name, links, boundary, pseudofermions, solver } = fermion;
    key(format!("fermion.{name}.action"), links);
    key(format!("fermion.{name}.boundary"), boundary);
    for (n, pseudofermion) in pseudofermions.iter().enumerate() {
        let Pseudofermion { factors, copies, naik_epsilon, rational } = pseudofermion;
        let path = format!("fermion.{name}.pseudofermion {n}");
        let factors: Vec<_> = factors.iter().map(|factor| (factor.mass, factor.power)).collect();
        key(format!("{path} factors"), &factors);
        key(format!("{path} copies"), copies);
        key(format!("{path} naik_epsilon"), naik_epsilon);
        match rational {
            RationalSource::Made { lambda_max, heat_bath_error, action_error, force_error, check_every } => {
                key(format!("{path} rational.lambda_max"), lambda_max);
                key(format!("{path} rational.heat_bath_error"), heat_bath_error);
                key(format!("{path} rational.action_error"), action_error);
                key(format!("{path} rational.force_error"), force_error);
                key(format!("{path} rational.check_every"), check_every);
            }
            // The same functions may come from another path.
            RationalSource::File { functions, check_every, path: _, index: _ } => {
                key(format!("{path} rational.file"), functions);
                key(format!("{path} rational.check_every"), check_every);
            }
        }
    }
    let StaggeredSolver {
        strategy,
        precision,
        delta,
        long_link_reals,
        heat_bath_residual,
        action_residual,
        force_residual,
        max_iterations: _,
    } = solver;
    let path = format!("fermion.{name}.solver");
    key(format!("{path}.strategy"), strategy);
    key(format!("{path}.precision"), precision);
    key(format!("{path}.delta"), delta);
    key(format!("{path}.long_link_reals"), long_link_reals);
    key(format!("{path}.heat_bath_residual"), heat_bath_residual);
    key(format!("{path}.action_residual"), action_residual);
    key(format!("{path}.force_residual"), force_residual);
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
