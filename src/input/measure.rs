//! What is measured, `[measure.*]`.

use crate::config::raw::Table;
use crate::config::reader::is_name;
use crate::config::report::hint;
use crate::family::keys::{Term, heavy};
use crate::lattice::{Extents, shape};
use crate::measure::{Allowed, FlowKernel, MassOf, Source, Wanted, keys};
use crate::solver::keys::tight;

/// Largest step of the flow: with the Symanzik kernel, the third-order scheme is stable below
/// about 0.094 (2.51 over the largest eigenvalue 80/3 of the free kernel), Wilson's below 0.157.
const MAX_FLOW_STEP: f64 = 0.15;
const MAX_FLOW_STEP_SYMANZIK: f64 = 0.09;
/// Steps of the flow beyond which there is a warning.
const MOST_FLOW_STEPS: f64 = 100_000.0;
/// `[measure.*]`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measure {
    /// Plaquette and rectangle.
    pub loops: bool,
    /// Polyakov loop in t.
    pub polyakov: bool,
    /// Gradient flow.
    pub flow: Option<Flow>,
    /// Pseudoscalar correlators.
    pub correlators: Vec<Correlator>,
    /// Chiral condensates.
    pub condensates: Vec<Condensate>,
    /// In a run: trajectories between measurements.
    pub every: u64,
}

impl Measure {
    /// Whether a run measures anything after trajectory `number`, counted from 1.
    #[must_use]
    pub fn is_due(&self, number: u64) -> bool {
        let Self { loops, polyakov, flow, correlators, condensates, every } = self;
        let anything =
            *loops || *polyakov || flow.is_some() || !correlators.is_empty() || !condensates.is_empty();
        anything && *every != 0 && number.is_multiple_of(*every)
    }
}

/// `[measure.flow]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The action that drives the flow.
    pub kernel: FlowKernel,
    /// Step in flow time.
    pub step: f64,
    /// Last flow time.
    pub t_max: f64,
    /// Steps between measurements.
    pub every: usize,
}

/// `[measure.correlator.NAME]`
#[derive(Clone, Debug, PartialEq)]
pub struct Correlator {
    /// NAME.
    pub name: String,
    /// The quark, by its name in `[fermion.*]`.
    pub fermion: String,
    /// Where the source is.
    pub source: Source,
    /// What is asked of the quark.
    pub wanted: Wanted,
}

/// `[measure.condensate.NAME]`
#[derive(Clone, Debug, PartialEq)]
pub struct Condensate {
    /// NAME.
    pub name: String,
    /// The quark, by its name in `[fermion.*]`.
    pub fermion: String,
    /// Random sources, 1 to 16384.
    pub sources: usize,
    /// What is asked of the quark.
    pub wanted: Wanted,
}

pub(super) fn measure(mut table: Table, terms: &[Term], extents: Option<Extents>) -> Option<Measure> {
    let every = table.get_or(&keys::EVERY, None);
    let loops = table.switch("loops");
    let polyakov = table.switch("polyakov");
    let flow_table = table.table("flow");
    let flow = if flow_table.exists() { flow(flow_table, extents).map(Some) } else { Some(None) };
    let correlators: Vec<_> = table
        .named("correlator")
        .into_iter()
        .map(|(name, table)| correlator(name, table, terms, extents))
        .collect();
    let condensates: Vec<_> =
        table.named("condensate").into_iter().map(|(name, table)| condensate(name, table, terms)).collect();
    table.finish();
    let correlators = correlators.into_iter().collect::<Option<Vec<_>>>()?;
    let condensates = condensates.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Measure { loops, polyakov, flow: flow?, correlators, condensates, every })
}

fn flow(mut table: Table, extents: Option<Extents>) -> Option<Flow> {
    let (kernel, step) = (table.get_or(&keys::FLOW_KERNEL, None), table.get_or(&keys::FLOW_STEP, None));
    let (t_max, every) = (table.get(&keys::FLOW_T_MAX), table.get_or(&keys::FLOW_EVERY, None));
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
    let (fermion, allowed) = fermion(&mut table, terms);
    let wall = table.get(&keys::SOURCE_KIND);
    let at = table.get_or(&keys::SOURCE, None);
    let wanted = wanted(&mut table, allowed);
    if extents.is_some_and(|extents| (0..4).any(|mu| at[mu] >= extents[mu])) {
        let extents = shape(extents.unwrap_or_default());
        table.mistake("source", format!("source: {at:?} is outside the lattice of {extents}"));
    }
    if wall == Some(true) && at[..3] != [0; 3] {
        table.mistake("source", "source: of a corner wall only t counts; x, y and z must be 0");
    }
    if let Some(allowed) = allowed.filter(|allowed| wall == Some(true) && !allowed.corner_wall) {
        let quarks = allowed.quarks;
        table.mistake("source_kind", format!("source_kind: {quarks} quarks have \"point\" only"));
    }
    table.finish();
    let source = if wall? { Source::CornerWall(at[3]) } else { Source::Point(at) };
    Some(Correlator { name, fermion: fermion?, source, wanted: wanted? })
}

fn condensate(name: String, mut table: Table, terms: &[Term]) -> Option<Condensate> {
    check_name("a condensate", &name, &table);
    let (fermion, allowed) = fermion(&mut table, terms);
    let wanted = wanted(&mut table, allowed);
    let sources = table.get_or(&keys::SOURCES, None);
    table.finish();
    Some(Condensate { name, fermion: fermion?, sources, wanted: wanted? })
}

/// What a measurement asks of a quark, which is `None` after a mistake; `None` after a mistake as well.
fn wanted(table: &mut Table, allowed: Option<Allowed>) -> Option<Wanted> {
    let mass = quark_mass(table, allowed);
    let naik_epsilon = table.get(&keys::QUARK_EPSILON);
    if table.has("naik_epsilon") && allowed.is_some_and(|allowed| !allowed.naik_epsilon) {
        table.mistake("naik_epsilon", "naik_epsilon: only the action \"hisq\" has it");
    }
    let residual = table.get_or(&keys::SOURCE_RESIDUAL, None);
    tight(table, "residual", residual);
    Some(Wanted { mass: mass?, naik_epsilon: naik_epsilon?, residual })
}

/// The mass of a measurement, `Some(None)` where its fermion has it; `None` after a mistake.
fn quark_mass(table: &mut Table, allowed: Option<Allowed>) -> Option<Option<f64>> {
    let key = &keys::QUARK_MASS;
    match allowed.map(|allowed| (allowed.mass, allowed.quarks)) {
        Some((MassOf::Either(form, own), _)) => {
            let found = table.get_by(key, |value| form.read(value));
            return if table.has("mass") { found } else { own }.map(Some);
        }
        Some((MassOf::Measurement(form), _)) => {
            let found = table.get_by(key, |value| form.read(value));
            table.demand("mass");
            heavy(table, found);
            return found.map(Some);
        }
        Some((MassOf::Fermion, quarks)) if table.has("mass") => {
            table.mistake("mass", format!("mass: that of {quarks} quarks is in their [fermion.NAME]"));
            let _ = table.get_by(key, |_| Ok(0.0));
        }
        _ => {
            let found = table.get(key);
            heavy(table, found);
        }
    }
    Some(None)
}

fn check_name(what: &str, name: &str, table: &Table) {
    if !is_name(name) {
        table.mistake("", format!("{what} cannot be named {name:?}: letters, digits, '.', '_', '-'"));
    }
}

/// The fermion that a measurement names, and what may be said of it; that is `None` after a mistake.
fn fermion(table: &mut Table, terms: &[Term]) -> (Option<String>, Option<Allowed>) {
    let Some(name) = table.get(&keys::FERMION) else { return (None, None) };
    let fermions: Vec<_> = terms.iter().filter(|term| term.is_fermion).collect();
    if let Some(term) = fermions.iter().find(|term| term.name == name) {
        return (Some(name), term.allowed);
    }
    let words: Vec<&str> = fermions.iter().map(|term| term.name.as_str()).collect();
    let all = if words.is_empty() { "; there is no [fermion.NAME]".to_owned() } else { hint(&name, &words) };
    table.mistake("fermion", format!("fermion: unknown fermion '{name}'{all}"));
    (None, None)
}
