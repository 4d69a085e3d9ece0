//! What is measured, `[measure.*]`.

use super::checked::{Condensate, Correlator, CorrelatorKind, Flow, FlowKernel, Measure, SourceKind};
use super::domain_wall;
use super::fermions::heavy;
use super::solver::tight;
use super::terms::{Quark, Term};
use crate::config::raw::Table;
use crate::config::reader::{
    MAX_EXTENT, choice, epsilon, four, is_name, mass, positive, residual, text, whole,
};
use crate::config::report::hint;
use crate::lattice::{Extents, shape};

/// Largest step of the flow: with the Symanzik kernel, the third-order scheme is stable below
/// about 0.094 (2.51 over the largest eigenvalue 80/3 of the free kernel), Wilson's below 0.157.
const MAX_FLOW_STEP: f64 = 0.15;
const MAX_FLOW_STEP_SYMANZIK: f64 = 0.09;
/// Steps of the flow beyond which there is a warning.
const MOST_FLOW_STEPS: f64 = 100_000.0;
/// Random sources that the stream of random numbers has for a configuration.
pub const MAX_SOURCES: i64 = 16384;

pub fn measure(mut table: Table, terms: &[Term], extents: Option<Extents>) -> Option<Measure> {
    let every = table.read_or("every", 1, whole(1..=i64::MAX));
    let loops = table.switch("loops");
    let polyakov = table.switch("polyakov");
    let flow_table = table.table("flow");
    let flow = if flow_table.exists() { flow(flow_table, extents).map(Some) } else { Some(None) };
    let correlators: Vec<_> = table
        .named_tables("correlator")
        .into_iter()
        .map(|(name, table)| correlator(name, table, terms, extents))
        .collect();
    let condensates: Vec<_> = table
        .named_tables("condensate")
        .into_iter()
        .map(|(name, table)| condensate(name, table, terms))
        .collect();
    table.finish();
    let correlators = correlators.into_iter().collect::<Option<Vec<_>>>()?;
    let condensates = condensates.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Measure { loops, polyakov, flow: flow?, correlators, condensates, every })
}

fn flow(mut table: Table, extents: Option<Extents>) -> Option<Flow> {
    let kernels = [("wilson", FlowKernel::Wilson), ("symanzik", FlowKernel::Symanzik)];
    let kernel = table.read_or("kernel", FlowKernel::Wilson, choice(&kernels));
    let step = table.read_or("step", 0.02, positive);
    let t_max = table.read("t_max", positive);
    let every = table.read_or("every", 1, whole(1..=1_000_000));
    let limit = match kernel {
        FlowKernel::Wilson => MAX_FLOW_STEP,
        FlowKernel::Symanzik => MAX_FLOW_STEP_SYMANZIK,
    };
    if step > limit {
        table.mistake(
            "step",
            format!("step: the integration is unstable at {step}; expected {limit} at most"),
        );
    } else if let Some(t_max) = t_max {
        let steps = t_max / step;
        if steps.round() < 1.0 || (steps - steps.round()).abs() > 1e-6 * steps {
            table.mistake("t_max", format!("t_max: {t_max} is not a whole number of steps of {step}"));
        }
        if steps > MOST_FLOW_STEPS {
            table.warning(
                "t_max",
                format!("t_max: {steps:.0} steps of {step} take long: 0.01 to 0.05 is usual"),
            );
        }
        let (radius, least) = ((8.0 * t_max).sqrt(), extents.and_then(|extents| extents.into_iter().min()));
        if let Some(least) = least.filter(|least| radius > *least as f64) {
            let message = format!(
                "t_max: links are smeared over sqrt(8 t) = {radius:.1}, more than the extent {least} of the lattice"
            );
            table.warning("t_max", message);
        }
    }
    table.finish();
    Some(Flow { kernel, step, t_max: t_max?, every })
}

fn correlator(
    name: String,
    mut table: Table,
    terms: &[Term],
    extents: Option<Extents>,
) -> Option<Correlator> {
    check_name("a correlator", &name, &table);
    let (fermion, quark) = fermion(&mut table, terms);
    let kinds = [("point", SourceKind::Point), ("corner-wall", SourceKind::CornerWall)];
    let form = table.read_known("source_kind", SourceKind::Point, choice(&kinds));
    let source = table.read_or("source", [0; 4], four("4 coordinates [x, y, z, t]", whole(0..=MAX_EXTENT)));
    let residual = table.read_or("residual", 1e-12, residual);
    tight(&table, "residual", residual);
    let mass = quark_mass(&mut table, quark);
    let naik_epsilon = naik_epsilon(&mut table, quark);
    if let Some(extents) = extents.filter(|extents| (0..4).any(|mu| source[mu] >= extents[mu])) {
        let message = format!("source: {source:?} is outside the lattice of {}", shape(extents));
        table.mistake("source", message);
    }
    if form == Some(SourceKind::CornerWall) && source[..3] != [0; 3] {
        table.mistake("source", "source: of a corner wall only t counts; x, y and z must be 0");
    }
    let pointlike = match quark {
        Quark::Wilson => Some("Wilson"),
        Quark::DomainWall { .. } => Some("domain-wall"),
        Quark::Staggered { .. } | Quark::Unknown => None,
    };
    if let Some(quarks) = pointlike.filter(|_| form == Some(SourceKind::CornerWall)) {
        table.mistake("source_kind", format!("source_kind: {quarks} quarks have \"point\" only"));
    }
    table.finish();
    let kind = match quark {
        Quark::Staggered { .. } => CorrelatorKind::Staggered { mass: mass?, naik_epsilon, source: form? },
        Quark::DomainWall { .. } => CorrelatorKind::DomainWall { mass: mass? },
        Quark::Wilson | Quark::Unknown => CorrelatorKind::Wilson,
    };
    Some(Correlator { name, fermion: fermion?, source, residual, kind })
}

fn condensate(name: String, mut table: Table, terms: &[Term]) -> Option<Condensate> {
    check_name("a condensate", &name, &table);
    let (fermion, quark) = fermion(&mut table, terms);
    let mass = quark_mass(&mut table, quark);
    let naik_epsilon = naik_epsilon(&mut table, quark);
    let sources = table.read_or("sources", 1, whole(1..=MAX_SOURCES));
    let residual = table.read_or("residual", 1e-12, residual);
    tight(&table, "residual", residual);
    table.finish();
    if matches!(quark, Quark::Staggered { .. } | Quark::DomainWall { .. }) {
        mass?;
    }
    Some(Condensate { name, fermion: fermion?, mass, naik_epsilon, sources, residual })
}

/// Staggered quarks have a mass a measurement, Wilson's one of their own, domain-wall quarks one of their own unless a
/// measurement has another.
fn quark_mass(table: &mut Table, quark: Quark) -> Option<f64> {
    let found = match quark {
        Quark::DomainWall { mass: own } => {
            return table.read_known("mass", own, |value| domain_wall::mass(value).map(Some)).flatten();
        }
        _ => table.read_if("mass", mass),
    };
    heavy(table, found);
    match quark {
        Quark::Wilson if table.has("mass") => {
            table.mistake("mass", "mass: that of Wilson quarks is in their [fermion.NAME]");
        }
        Quark::Staggered { .. } => table.demand("mass"),
        _ => {}
    }
    found
}

fn check_name(what: &str, name: &str, table: &Table) {
    if !is_name(name) {
        table.mistake("", format!("{what} cannot be named {name:?}: letters, digits, '.', '_', '-'"));
    }
}

/// The fermion that a measurement names, and what it is.
fn fermion(table: &mut Table, terms: &[Term]) -> (Option<String>, Quark) {
    let name = table.read("fermion", text);
    let known = |term: &Term| Some((term.name.clone(), term.quark?));
    let fermions: Vec<_> = terms.iter().filter_map(known).collect();
    let Some(name) = name else { return (None, Quark::Unknown) };
    if let Some((_, quark)) = fermions.iter().find(|(other, _)| *other == name) {
        return (Some(name), *quark);
    }
    let words: Vec<&str> = fermions.iter().map(|(name, _)| name.as_str()).collect();
    let all = if words.is_empty() { "; there is no [fermion.NAME]".to_owned() } else { hint(&name, &words) };
    table.mistake("fermion", format!("fermion: unknown fermion '{name}'{all}"));
    (None, Quark::Unknown)
}

/// The correction to the Naik term, which HISQ alone has.
fn naik_epsilon(table: &mut Table, quark: Quark) -> f64 {
    let epsilon = table.read_or("naik_epsilon", 0.0, epsilon);
    if table.has("naik_epsilon") && !matches!(quark, Quark::Unknown | Quark::Staggered { naik: true }) {
        table.mistake("naik_epsilon", "naik_epsilon: only the action \"hisq\" has it");
    }
    epsilon
}
